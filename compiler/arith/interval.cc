// Arithmetic on the ends of intervals: an end that is unbounded, or that overflows, makes the result's end unbounded.
#include "compiler/arith/interval.h"

#include <algorithm>

#include "compiler/ir/int_math.h"

namespace ingot::arith {
namespace {

constexpr int64_t kBelow = Interval::kUnboundedBelow;
constexpr int64_t kAbove = Interval::kUnboundedAbove;

bool IsUnbounded(int64_t end) { return end == kBelow || end == kAbove; }

// Products of ends: an unbounded end times 0 is 0, since every value inside is finite.
int64_t MultiplyEnds(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  const int64_t unbounded = (a < 0) == (b < 0) ? kAbove : kBelow;
  if (IsUnbounded(a) || IsUnbounded(b)) return unbounded;
  return ir::CheckedMul(a, b).value_or(unbounded);
}

int64_t DivideEnd(int64_t a, int64_t divisor) {
  return IsUnbounded(a) ? a : ir::CheckedFloorDiv(a, divisor).value_or(kBelow);
}

}  // namespace

Interval operator+(const Interval& a, const Interval& b) {
  Interval sum;
  if (a.min != kBelow && b.min != kBelow) sum.min = ir::CheckedAdd(a.min, b.min).value_or(kBelow);
  if (a.max != kAbove && b.max != kAbove) sum.max = ir::CheckedAdd(a.max, b.max).value_or(kAbove);
  return sum;
}

Interval operator-(const Interval& a) { return {a.max == kAbove ? kBelow : -a.max, a.min == kBelow ? kAbove : -a.min}; }

Interval operator*(const Interval& a, const Interval& b) {
  const int64_t ends[] = {MultiplyEnds(a.min, b.min), MultiplyEnds(a.min, b.max), MultiplyEnds(a.max, b.min),
                          MultiplyEnds(a.max, b.max)};
  return {*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)};
}

Interval Union(const Interval& a, const Interval& b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }
Interval Intersect(const Interval& a, const Interval& b) { return {std::max(a.min, b.min), std::min(a.max, b.max)}; }
Interval MinOf(const Interval& a, const Interval& b) { return {std::min(a.min, b.min), std::min(a.max, b.max)}; }
Interval MaxOf(const Interval& a, const Interval& b) { return {std::max(a.min, b.min), std::max(a.max, b.max)}; }

Interval FloorDivide(const Interval& a, int64_t divisor) {
  return {DivideEnd(a.min, divisor), DivideEnd(a.max, divisor)};
}

Interval FloorModulo(const Interval& a, int64_t divisor) {
  if (a.is_bounded()) {
    const auto first = ir::CheckedFloorDiv(a.min, divisor);
    const auto last = ir::CheckedFloorDiv(a.max, divisor);
    if (first == last && first.has_value()) {
      return {*ir::CheckedFloorMod(a.min, divisor), *ir::CheckedFloorMod(a.max, divisor)};
    }
  }
  return {0, divisor - 1};
}

}  // namespace ingot::arith
