// Whether one program is faster than another by times that were measured in turns (Candidate::rival).
#pragma once

#include <cstdint>
#include <span>

namespace ingot::tune {

// Of the time of the first program by that of the second: below 1 where the first one is faster.
struct PairedRatio {
  double median = 1;
  double lower = 0, upper = 0;  // the 95% percentile bootstrap interval of the median
};

// The median of the ratios of pairs first[i] / second[i], and its interval by 2,000 resamples, which depend on the seed
// alone. Both have the same length, at least 1, and positive times.
PairedRatio ComparePaired(std::span<const double> first, std::span<const double> second, uint64_t seed = 0);

}  // namespace ingot::tune
