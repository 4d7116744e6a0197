// sample_perfect_tile, sample_categorical: they take the given decision where it fits the function, and the default
// one elsewhere.
#include <algorithm>

#include "compiler/schedule/primitives.h"

namespace ingot::schedule {

Result<Sampled<std::vector<int64_t>>> SamplePerfectTile(const ScheduleState& state, const LoopVar& loop, int64_t n,
                                                        int64_t max_innermost_factor, const Decision& decision) {
  INGOT_ASSIGN_OR_RETURN(const LoopSite site, state.FindLoop(loop));
  const auto extent = ir::AsConstInt(site.loop->extent);
  if (!extent || n < 1 || max_innermost_factor < 1) {
    return Refuse("sample_perfect_tile", Describe(site), "needs a constant extent, n >= 1 and a limit >= 1");
  }
  std::vector<int64_t> factors = decision.numbers;
  int64_t product = 1;
  bool fits = static_cast<int64_t>(factors.size()) == n && factors.back() <= max_innermost_factor;
  for (int64_t factor : factors) {
    fits &= factor >= 1;
    if (fits) fits = !__builtin_mul_overflow(product, factor, &product);
  }
  if (!fits || product != *extent) {
    factors.assign(n, 1);
    int64_t last = n == 1 ? *extent : std::min(max_innermost_factor, *extent);
    while (last > 1 && *extent % last != 0) --last;
    factors.back() = std::max<int64_t>(last, 1);
    if (n > 1) factors.front() = *extent / factors.back();
  }
  return Sampled<std::vector<int64_t>>{factors, factors};
}

Result<Sampled<int64_t>> SampleCategorical(const ScheduleState&, const std::vector<int64_t>& candidates,
                                           const Decision& decision) {
  if (candidates.empty()) return Status(StatusCode::kInvalidArgument, "sample_categorical: no candidates");
  const bool fits = decision.numbers.size() == 1 && decision.numbers[0] >= 0 &&
                    decision.numbers[0] < static_cast<int64_t>(candidates.size());
  const int64_t index = fits ? decision.numbers[0] : 0;
  return Sampled<int64_t>{candidates[index], index};
}

}  // namespace ingot::schedule
