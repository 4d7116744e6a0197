// Intervals of 64-bit integers whose ends may be unbounded. An end that overflows becomes unbounded.
#pragma once

#include <cstdint>
#include <limits>

namespace ingot::arith {

// Inclusive; INT64_MIN and INT64_MAX stand for unbounded.
struct Interval {
  static constexpr int64_t kUnboundedBelow = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kUnboundedAbove = std::numeric_limits<int64_t>::max();

  int64_t min = kUnboundedBelow;
  int64_t max = kUnboundedAbove;

  static Interval Everything() { return {}; }
  bool is_bounded() const { return min != kUnboundedBelow && max != kUnboundedAbove; }
  bool is_single() const { return min == max && is_bounded(); }
  bool contains(const Interval& other) const { return min <= other.min && other.max <= max; }
};

Interval operator+(const Interval& a, const Interval& b);
Interval operator-(const Interval& a);
Interval operator*(const Interval& a, const Interval& b);
Interval Union(const Interval& a, const Interval& b);
Interval Intersect(const Interval& a, const Interval& b);
Interval MinOf(const Interval& a, const Interval& b);
Interval MaxOf(const Interval& a, const Interval& b);
// Quotient (rounded towards negative infinity) and remainder by a positive divisor.
Interval FloorDivide(const Interval& a, int64_t divisor);
Interval FloorModulo(const Interval& a, int64_t divisor);

}  // namespace ingot::arith
