// The percentile bootstrap: resample the ratios with replacement, take the median of each resample, and of those
// medians the 2.5th and the 97.5th percentile (Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13).
#include "compiler/tune/measure/paired_ratio.h"

#include <algorithm>
#include <vector>

#include "runtime/check.h"

namespace ingot::tune {
namespace {

constexpr int kResamples = 2000;

// splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
uint64_t NextRandom(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

double MedianOf(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

PairedRatio ComparePaired(std::span<const double> first, std::span<const double> second, uint64_t seed) {
  INGOT_CHECK(first.size() == second.size() && !first.empty());
  std::vector<double> ratios;
  for (size_t i = 0; i < first.size(); ++i) ratios.push_back(first[i] / second[i]);
  std::vector<double> medians, sample(ratios.size());
  for (int i = 0; i < kResamples; ++i) {
    for (double& value : sample) value = ratios[NextRandom(seed) % ratios.size()];
    medians.push_back(MedianOf(sample));
  }
  std::sort(medians.begin(), medians.end());
  const double median = MedianOf(ratios);
  return {median, medians[kResamples * 25 / 1000], medians[kResamples * 975 / 1000 - 1]};
}

}  // namespace ingot::tune
