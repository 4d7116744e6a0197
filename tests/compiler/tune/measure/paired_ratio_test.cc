// The interval of paired ratios covers the ratio that is there as often as it says, and depends on the seed alone.
#include "compiler/tune/measure/paired_ratio.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

namespace ingot::tune {
namespace {

TEST_CASE("paired ratio: equal pairs give an interval without width") {
  const std::vector<double> first{1, 2, 3}, second{2, 4, 6};
  const PairedRatio ratio = ComparePaired(first, second);
  CHECK(ratio.median == 0.5);
  CHECK(ratio.lower == 0.5);
  CHECK(ratio.upper == 0.5);
  CHECK(ComparePaired(std::vector<double>{1, 3}, std::vector<double>{1, 1}).median == 2);
}

TEST_CASE("paired ratio: intervals cover the true ratio nearly as often as they should") {
  std::mt19937 random(1);
  std::lognormal_distribution<double> noise(0, 0.1), load(0, 0.5);
  int covered = 0, faster = 0;
  constexpr int kTrials = 50;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> first, second;
    for (int i = 0; i < 20; ++i) {
      const double common = load(random);  // what slows both down
      first.push_back(0.9 * common * noise(random));
      second.push_back(common * noise(random));
    }
    const PairedRatio ratio = ComparePaired(first, second, static_cast<uint64_t>(trial));
    covered += ratio.lower <= 0.9 && 0.9 <= ratio.upper;
    faster += ratio.upper < 0.98;
    CHECK(ratio.lower <= ratio.median);
    CHECK(ratio.median <= ratio.upper);
  }
  CHECK(covered >= 40);
  CHECK(faster >= 5);
  MESSAGE(covered << " of " << kTrials << " intervals cover the ratio, " << faster << " say faster");
}

TEST_CASE("paired ratio: the same seed gives the same interval") {
  std::vector<double> first, second;
  for (int i = 1; i < 20; ++i) first.push_back(i), second.push_back(std::sqrt(i) + 3);
  const PairedRatio one = ComparePaired(first, second, 5), two = ComparePaired(first, second, 5);
  CHECK(one.lower == two.lower);
  CHECK(one.upper == two.upper);
}

}  // namespace
}  // namespace ingot::tune
