// One method per kind of need: processor, devices, memory, files of weights, external functions, trust.
#include "vm/tools/doctor.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "formats/signature.h"
#include "runtime/cpu_features.h"
#ifdef INGOT_CUDA
#include "runtime/cuda_driver.h"
#endif
#include "runtime/device_list.h"
#include "vm/program/device_program.h"
#include "vm/program/kernel_image.h"
#include "vm/program/program_codec.h"
#include "vm/program/trust.h"
#include "vm/verify/verifier.h"

namespace ingot::vm {
namespace {

#if defined(__x86_64__)
constexpr const char* kHostArchitecture = "x86_64";
#elif defined(__aarch64__)
constexpr const char* kHostArchitecture = "aarch64";
#else
#error "an architecture without a name"
#endif

std::string Megabytes(int64_t bytes) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

constexpr int kOldestCuda = 11020;  // that runtime/cuda_driver.cc takes

// The CUDA whose drivers know the version of PTX that an image begins with: PTX 7.x came with CUDA 11.x, and PTX 8.x
// with CUDA 12.x (up to PTX 8.5, and no later one is made).
int CudaVersionFor(const KernelImage& image) {
  const auto* text = reinterpret_cast<const char*>(image.bytes.data());
  const std::string_view head(text, std::min<size_t>(image.bytes.size(), 4096));
  const size_t at = head.find(".version ");
  int major = 0, minor = 0;
  if (at != std::string_view::npos) {
    std::sscanf(std::string(head.substr(at, 32)).c_str(), ".version %d.%d", &major, &minor);
  }
  return (std::clamp(major, 0, 99) + 4) * 1000 + std::clamp(minor, 0, 99) * 10;
}

class Doctor {
 public:
  Doctor(const formats::Container& container, const Program& program, const DoctorOptions& options)
      : container_(container), program_(program), options_(options) {}

  std::vector<Finding> Run() {
    Say("format", "version " + std::to_string(formats::kContainerVersion),
        "version " + std::to_string(formats::kContainerVersion), StatusCode::kOk);
    Processor();
    Devices(program_);
    SecondProgram();
    Memory();
    WeightFiles();
    Externals();
    Trust();
    return std::move(findings_);
  }

 private:
  void Say(std::string what, std::string needs, std::string has, StatusCode verdict) {
    findings_.push_back({std::move(what), std::move(needs), std::move(has), verdict});
  }

  // Reports whether every kernel for the CPU has a variant that runs here, or which features its least demanding
  // variant lacks.
  void Processor() {
    const CpuFeatures here = CpuFeatures::Detect();
    const std::string has = std::string(kHostArchitecture) +
                            (here.HighestLevel() > 0 ? ", x86-64-v" + std::to_string(here.HighestLevel()) : "");
    int64_t num_kernels = 0, num_fitting = 0;
    std::string lacking, architecture;
    std::map<std::string, int64_t> chosen;
    for (const Kernel& kernel : program_.kernels) {
      if (program_.devices[kernel.device].kind != "cpu" || kernel.variants.empty()) continue;
      ++num_kernels;
      const KernelVariant* best = nullptr;
      for (const KernelVariant& variant : kernel.variants) {
        const KernelImage& image = program_.images[variant.image];
        architecture = image.arch;
        const bool fits = image.arch == kHostArchitecture && here.Covers(CpuFeatures{variant.required_features});
        if (best == nullptr && fits) best = &variant;
      }
      if (best != nullptr) {
        ++num_fitting;
        ++chosen[program_.images[best->image].name];
      } else {
        lacking = CpuFeatures{kernel.variants.back().required_features & ~here.bits}.ToString();
      }
    }
    if (num_kernels == 0) return Say("cpu", "no native kernels", has, StatusCode::kOk);
    std::string needs;
    for (const KernelImage& image : program_.images) {
      if (image.format == ImageFormat::kElf) needs += (needs.empty() ? "" : " or ") + image.name;
    }
    needs = architecture + ", " + needs;
    if (num_fitting < num_kernels) {
      const bool is_foreign = architecture != kHostArchitecture;
      return Say("cpu", needs, is_foreign ? has : has + ", without " + lacking, StatusCode::kUnsupportedFile);
    }
    std::string uses;
    for (const auto& [name, count] : chosen) uses += ", " + std::to_string(count) + " kernels of " + name;
    Say("cpu", needs, has + uses, StatusCode::kOk);
  }

#ifdef INGOT_CUDA
  // Whether each kernel that is launched has code that the device runs; empty: all have. `version` is that of the driver.
  static std::string MissingOn(const Program& program, const Device& device, int version) {
    for (const Kernel& kernel : program.kernels) {
      if (kernel.launches.empty()) continue;
      const auto runs = [&](const KernelVariant& variant) {
        const KernelImage& image = program.images[variant.image];
        return image.format == ImageFormat::kPtx && device.RunsCodeFor(image.arch, CodeForm::kPortable) &&
               CudaVersionFor(image) <= version;
      };
      if (std::ranges::none_of(kernel.variants, runs)) return ", without code for kernel \"" + kernel.name + "\"";
    }
    return "";
  }
#endif

  // What of GPUs and drivers runs the code of the file, one way after the other. Cubins stand beside PTX of their kernels.
  static std::string LaunchedCode(const Program& program) {
    std::string text;
    for (const KernelImage& image : program.images) {
      if (image.format != ImageFormat::kPtx) continue;
      const bool is_exact = image.arch.ends_with('a');
      const int version = std::max(CudaVersionFor(image), kOldestCuda);
      text += (text.empty() ? ": " : ", or ") + image.arch + (is_exact ? "" : " or later") + " and a driver for CUDA " +
              std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10) + " or later";
    }
    return text;
  }

  // What the program for GPUs beside the one for the CPU needs. The file runs without, so that nothing of it is missing.
  void SecondProgram() {
    const auto open = [&]() -> Status {
      INGOT_ASSIGN_OR_RETURN(const std::optional<formats::Container> container, OpenDeviceProgram(container_));
      if (!container) return Status();
      INGOT_ASSIGN_OR_RETURN(const Program program, DecodeProgramWithoutWeights(*container));
      INGOT_RETURN_IF_ERROR(Verify(program, *container));
      INGOT_RETURN_IF_ERROR(CheckSameFunctions(program_, program));
      Devices(program, /*is_optional=*/true);
      return Status();
    };
    if (const Status status = open(); !status.ok()) Say("device", kDeviceProgramName, status.message(), status.code());
  }

  void Devices(const Program& program, bool is_optional = false) {
    for (const VirtualDevice& device : program.devices) {
      if (is_optional && device.kind != kCudaDevice) continue;
      const bool launches = device.kind == kCudaDevice;
      const std::string needs = device.kind + " " + std::to_string(device.index) +
                                (launches ? LaunchedCode(program) : std::string()) +
                                (is_optional ? ", for --device cuda" : "");
      const auto rows = DeviceList();
      const auto row = std::ranges::find_if(rows, [&](const DeviceRow& r) { return device.kind == r.name; });
      if (row == rows.end()) {
        Say("device", needs, "this build has no driver for it",
            is_optional ? StatusCode::kOk : StatusCode::kUnsupportedFile);
        continue;
      }
      const Result<Ref<Device>> made = row->create(launches ? device.index : 0, HostAllocator::Default());
      std::string has = made.ok() ? "there is one" : made.status().message();
      bool is_fine = made.ok();
#ifdef INGOT_CUDA
      if (launches && made.ok()) {
        const Result<Ref<CudaDriver>> driver = CudaDriver::Open(nullptr);
        const std::string missing =
            driver.ok() ? MissingOn(program, **made, (*driver)->version()) : driver.status().message();
        has = std::string((*made)->description()) + missing;
        is_fine = missing.empty();
      }
#endif
      Say("device", needs, has, is_fine || is_optional ? StatusCode::kOk : StatusCode::kUnsupportedFile);
    }
  }

  void Memory() {
    int64_t weights = 0, prepared = 0;
    for (const Constant& constant : program_.constants) {
      (constant.prepared_by ? prepared : weights) += constant.size_bytes();
    }
    const formats::Section* data = container_.Find(formats::SectionKind::kConstantData);
    const bool is_compressed = data != nullptr && data->codec != formats::Codec::kNone;
    const int64_t held = prepared + (is_compressed ? static_cast<int64_t>(data->size) : 0);
    const std::string has =
        options_.available_memory_bytes > 0 ? Megabytes(options_.available_memory_bytes) + " available" : "not known";
    const auto fits = [&](int64_t bytes) {
      const bool is_enough = options_.available_memory_bytes == 0 || bytes <= options_.available_memory_bytes;
      return is_enough ? StatusCode::kOk : StatusCode::kOutOfMemory;
    };
    Say("memory for weights",
        Megabytes(weights) + (is_compressed ? " decompressed" : " mapped") +
            (prepared > 0 ? ", and " + Megabytes(prepared) + " packed when it is loaded" : ""),
        has, fits(held));
    const MemoryNeeds of_program = MemoryNeedsOf(program_);
    for (const Function& function : program_.functions) {
      if (!function.exported) continue;
      const std::string what = "memory of \"" + function.name + "\"";
      const Result<std::vector<int64_t>> symbols = SymbolValues(function.signature, options_.shapes);
      if (!symbols.ok()) {
        Say(what, symbols.status().message() + " (--dim NAME=N says it)", has, StatusCode::kOk);
        continue;
      }
      const MemoryNeeds needs = MemoryNeedsOf(of_program, function);
      const Result<int64_t> total = needs.Total(*symbols);
      if (!total.ok()) {
        Say(what, total.status().message(), has, total.status().code());
        continue;
      }
      std::string at;
      for (size_t i = 0; i < symbols->size(); ++i) {
        at += (i == 0 ? " at " : ", ") + function.signature.symbols[i].name + "=" + std::to_string((*symbols)[i]);
      }
      Say(what,
          Megabytes(*total) + at + (needs.depends_on_data ? ", and what depends on data" : "") +
              (needs.calls ? ", and what the functions take that it calls" : ""),
          has, fits(*total + held));
    }
  }

  void WeightFiles() {
    for (const WeightFile& file : program_.weight_files) {
      struct stat info {};
      const std::string path = options_.directory + "/" + file.path;
      const std::string needs = file.path + " of " + std::to_string(file.size) + " bytes";
      if (stat(path.c_str(), &info) != 0) {
        Say("weights", needs, "there is no such file", StatusCode::kIo);
      } else if (static_cast<uint64_t>(info.st_size) != file.size) {
        Say("weights", needs, std::to_string(info.st_size) + " bytes", StatusCode::kCorrupt);
      } else {
        Say("weights", needs, "a file of this size", StatusCode::kOk);
      }
    }
  }

  // External functions come from the embedding program, not from the machine, so they are listed as fine.
  void Externals() {
    for (const External& external : program_.externals) {
      Say("external function", "\"" + external.name + "\"" + external.signature.ToString(),
          "the embedding program registers it", StatusCode::kOk);
    }
  }

  // The outcome of the trust check with which opening would begin, and the verdict on each signature.
  void Trust() {
    std::string signature;
    bool is_forged = false;
    for (const auto& [signer, verdict] : formats::ExamineSignatures(container_, nullptr)) {
      using Verdict = formats::SignatureFinding::Verdict;
      is_forged = is_forged || verdict == Verdict::kWrong;
      const char* const how = verdict == Verdict::kRight   ? "signed by "
                              : verdict == Verdict::kWrong ? "with a wrong signature of "
                                                           : "with an unchecked signature of ";
      signature += (signature.empty() ? "" : ", ") + std::string(how) + signer;
    }
    if (signature.empty()) signature = "not signed";
    if (is_forged) return Say("trust", signature, "a signature that is wrong says nothing", StatusCode::kNotTrusted);
    TrustPolicy policy;
    const Result<bool> has_policy = ReadMachinePolicy(options_.machine_policy_path, &policy);
    if (!has_policy.ok()) return Say("trust", signature, has_policy.status().message(), StatusCode::kNotTrusted);
    if (!*has_policy) return Say("trust", signature, "this machine has no policy", StatusCode::kOk);
    const Status status = CheckTrust(policy, container_, options_.file, nullptr);
    Say("trust", signature, options_.machine_policy_path + (status.ok() ? " trusts it" : ": " + status.message()),
        status.code());
  }

  const formats::Container& container_;
  const Program& program_;
  const DoctorOptions& options_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> Diagnose(const formats::Container& container, const Program& program,
                              const DoctorOptions& options) {
  return Doctor(container, program, options).Run();
}

int64_t AvailableMemoryBytes() {
  FILE* file = std::fopen("/proc/meminfo", "r");
  if (file == nullptr) return 0;
  char line[256];
  long long kilobytes = 0;
  while (std::fgets(line, sizeof line, file) != nullptr &&
         std::sscanf(line, "MemAvailable: %lld kB", &kilobytes) != 1) {
  }
  std::fclose(file);
  return kilobytes * 1024;
}

}  // namespace ingot::vm
