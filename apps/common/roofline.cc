// A kernel's roof is the time that the slower of two would take: its operations at the peak of multiply-adds, its bytes
// at the rate at which a working set of that size is read.
#include "apps/common/roofline.h"

#include <algorithm>
#include <cstdio>

namespace ingot::apps {
namespace {

struct Roof {
  double of_flops, of_bytes;  // shares of the peaks
  bool is_bound_by_memory;
  double share() const { return std::max(of_flops, of_bytes); }
};

Roof RoofOf(const Profile::KernelTime& kernel, const MachinePeaks& peaks) {
  const auto ns = static_cast<double>(std::max<int64_t>(kernel.total_ns, 1));
  const double rate = peaks.GbytesPerSecond(kernel.bytes / static_cast<double>(kernel.calls));
  const double of_flops = peaks.gflops > 0 ? kernel.flops / ns / peaks.gflops : 0;
  const double of_bytes = rate > 0 ? kernel.bytes / ns / rate : 0;
  return {of_flops, of_bytes, of_bytes > of_flops};
}

std::string SizeText(int64_t bytes) {
  return bytes >= 1 << 20 ? std::to_string(bytes >> 20) + " MiB" : std::to_string(bytes >> 10) + " KiB";
}

}  // namespace

std::string RooflineTable(const Profile& profile, const MachinePeaks& peaks) {
  char line[160];
  std::snprintf(line, sizeof line, "peaks: %.1f GFLOP/s (float32, vectors of %d bits)", peaks.gflops,
                peaks.vector_bits);
  std::string out = line;
  for (const MachinePeaks::Read& read : peaks.reads) {
    std::snprintf(line, sizeof line, ", %.1f GB/s of %s", read.gbytes_per_s, SizeText(read.bytes).c_str());
    out += line;
  }
  out += "\n  share    mean us  GFLOP/s  of peak     GB/s  of peak  bound   kernel\n";
  for (const Profile::KernelTime& kernel : profile.Kernels()) {
    const Roof roof = RoofOf(kernel, peaks);
    const auto ns = static_cast<double>(std::max<int64_t>(kernel.total_ns, 1));
    std::snprintf(line, sizeof line, "%6.2f%% %10.3f %8.2f %7.1f%% %8.2f %7.1f%%  %-6s  ", 100 * kernel.share,
                  ns * 1e-3 / static_cast<double>(kernel.calls), kernel.flops / ns, 100 * roof.of_flops,
                  kernel.bytes / ns, 100 * roof.of_bytes, roof.is_bound_by_memory ? "memory" : "core");
    out += line + kernel.name + "\n";
  }
  return out;
}

Json RooflineJson(const Profile& profile, const MachinePeaks& peaks) {
  Json reads = Json::Array();
  for (const MachinePeaks::Read& read : peaks.reads) {
    reads.push_back({{"working_set_bytes", read.bytes}, {"gbytes_per_s", read.gbytes_per_s}});
  }
  Json kernels = Json::Array();
  for (const Profile::KernelTime& kernel : profile.Kernels()) {
    const Roof roof = RoofOf(kernel, peaks);
    const auto ns = static_cast<double>(std::max<int64_t>(kernel.total_ns, 1));
    kernels.push_back({{"name", kernel.name},
                       {"calls", kernel.calls},
                       {"total_ns", kernel.total_ns},
                       {"share", kernel.share},
                       {"flops", kernel.flops / static_cast<double>(kernel.calls)},
                       {"bytes", kernel.bytes / static_cast<double>(kernel.calls)},
                       {"gflops_per_s", kernel.flops / ns},
                       {"gbytes_per_s", kernel.bytes / ns},
                       {"of_peak_flops", roof.of_flops},
                       {"of_peak_bytes", roof.of_bytes},
                       {"of_roof", roof.share()},
                       {"bound", roof.is_bound_by_memory ? "memory" : "core"}});
  }
  return {{"peaks",
           {{"threads", peaks.threads},
            {"vector_bits", peaks.vector_bits},
            {"gflops_per_s", peaks.gflops},
            {"reads", std::move(reads)}}},
          {"kernels", std::move(kernels)}};
}

}  // namespace ingot::apps
