// Per clock and multiprocessor, by NVIDIA's papers on the architectures (A100, H100): shared memory gives 128 bytes, four
// schedulers start an instruction each. The rest is in the table.
#include "tests/cuda_standin/roofline.h"

#include <algorithm>

#include "runtime/check.h"
#include "tests/cuda_standin/machine.h"

namespace ingot::ptx {
namespace {

struct Rates {
  int sm;
  double memory_bytes, cache_bytes;  // of all multiprocessors together
  double matrix_work;                // of each: multiply-adds of 16 bits
};
constexpr Rates kRates[] = {{80, 1100, 5120, 1024}, {90, 1900, 5500, 2048}};
constexpr double kSectorBytes = 32, kSchedulers = 4;

}  // namespace

double Roofline::Bound() const { return std::max({memory, cache, shared, matrix, instructions}); }

Roofline EstimateClocks(const LaunchCounts& counts, int64_t blocks, int64_t bytes, int sm) {
  const auto* const rates = std::ranges::find(kRates, sm, &Rates::sm);
  INGOT_CHECK(rates != std::end(kRates) && blocks > 0, "an architecture without rates, or no blocks");
  const int64_t multiprocessors = LimitsOf(sm)->multiprocessors;
  // What the busiest multiprocessor does of all work.
  const double share =
      static_cast<double>((blocks + multiprocessors - 1) / multiprocessors) / static_cast<double>(blocks);
  const auto own = [&](int64_t work, double rate) { return static_cast<double>(work) * share / rate; };
  return {static_cast<double>(bytes) / rates->memory_bytes,
          static_cast<double>(counts.global_sectors) * kSectorBytes / rates->cache_bytes,
          own(counts.shared_wavefronts, 1), own(counts.matrix_work, rates->matrix_work),
          own(counts.warp_instructions, kSchedulers)};
}

}  // namespace ingot::ptx
