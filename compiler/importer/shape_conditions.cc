// Bounds of formulas from the inside out, with a condition wherever a product, a sum or a result might leave its range.
#include "compiler/importer/shape_conditions.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compiler/ir/int_math.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "vm/program/limits.h"

namespace ingot::importer::shapes {
namespace {

using arith::Interval;
using ir::BinaryOp;
using ir::PrimExpr;

constexpr size_t kMaxConditions = 16;
constexpr int64_t kSmallDim = 256;                 // a formula that wraps around or is rounded even here is none
constexpr int64_t kLargestDim = vm::kMaxBoundDim;  // of a tensor without elements
constexpr int64_t kLargestInMemory = int64_t{1} << 48;
constexpr int64_t kLeastLimit = int64_t{1} << 24;  // as is one that lets no larger numbers pass
constexpr int64_t kLargestProduct = int64_t{1} << 62;
constexpr int64_t kLargestTerm = int64_t{1} << 61;  // of a sum

int64_t Magnitude(const Interval& bounds) { return std::max(bounds.max, -bounds.min); }

// The integers that a dtype holds exactly, whose neighbours it holds, too.
Interval Exact(DataType dtype) {
  if (dtype == DataType::Int(32)) return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
  const int64_t whole = int64_t{1} << (dtype == DataType::Float(32) ? 24 : 53);
  return {-whole, whole};
}

}  // namespace

bool Conditions::Add(const PrimExpr& condition) {
  const PrimExpr simple = analyzer_.Simplify(condition);
  if (const auto truth = ir::AsConstInt(simple)) return *truth != 0;
  if (analyzer_.Prove(simple)) return true;
  const auto is_same = [&](const PrimExpr& other) { return ir::StructuralEqual(other, simple); };
  if (std::ranges::any_of(list_, is_same)) return true;
  if (list_.size() == kMaxConditions) return false;
  list_.push_back(simple);
  return true;
}

bool Conditions::Fits(const PrimExpr& expr) {
  if (!expr->dtype.is_int() || ir::AsConstInt(expr)) return true;
  if (!Bounds(expr)) return false;
  // Products of longer dims wrap around, which their quotients by a factor tell.
  for (const int64_t most : {kLargestDim, kLargestInMemory}) {
    if (BoundsWith(most, expr)) return most == kLargestDim || LimitDims(expr, most);
  }
  return LimitDims(expr, largest_dim_);
}

bool Conditions::Keeps(DataType dtype, const PrimExpr& expr) {
  if (dtype == DataType::Int(64) || !expr->dtype.is_int()) return true;
  if (!Bounds(expr).has_value()) return false;
  PrimExpr number = expr;
  // Floats are as exact for even numbers as for their halves.
  for (int halved = 0; dtype.is_floating() && halved < 32 && !ir::AsConstInt(number); ++halved) {
    if (!analyzer_.ProveDivisible(number, 2)) break;
    number = analyzer_.Simplify(ir::FloorDiv(number, ir::Int64(2)));
  }
  const Interval exact = Exact(dtype);
  const std::optional<Interval> bounds = Bounds(number);
  if (!bounds) return false;
  if (exact.contains(*bounds)) {
    for (const int64_t most : {kLargestDim, std::max(exact.max, largest_dim_)}) {
      const std::optional<Interval> of_longer = BoundsWith(most, number);
      if (of_longer && exact.contains(*of_longer)) return most == kLargestDim || LimitDims(number, most);
    }
    return LimitDims(number, largest_dim_);
  }
  const std::optional<Interval> usual = BoundsWith(kSmallDim, number);
  if (!usual || !exact.contains(*usual)) return false;
  return (bounds->max <= exact.max || Add(number <= ir::Int64(exact.max))) &&
         (bounds->min >= exact.min || Add(number >= ir::Int64(exact.min)));
}

// The bounds if no dim is larger than this, without conditions.
std::optional<Interval> Conditions::BoundsWith(int64_t largest_dim, const PrimExpr& expr) {
  const int64_t largest = std::exchange(largest_dim_, largest_dim);
  adds_ = false;
  const std::optional<Interval> bounds = Bounds(expr);
  adds_ = true;
  largest_dim_ = largest;
  return bounds;
}

// Sees to it that no dim in an expression is larger than this.
bool Conditions::LimitDims(const PrimExpr& expr, int64_t most) {
  for (const ir::PrimVar& symbol : ir::FreePrimVars(expr)) {
    const Interval known = analyzer_.Bounds(symbol);
    if (known.max > most && limit_dim_(symbol, most)) continue;
    if (known.max > most && !Add(symbol <= ir::Int64(most))) return false;
    if (known.min < -most && !Add(symbol >= ir::Int64(-most))) return false;
  }
  return true;
}

// Keeps an expression within the limit by a condition.
bool Conditions::Limit(const PrimExpr& expr, Interval& bounds, int64_t limit) {
  if (Magnitude(bounds) <= limit) return true;
  if (limit < kLeastLimit || !adds_) return false;
  if (bounds.max > limit && !Add(expr <= ir::Int64(limit))) return false;
  if (bounds.min < -limit && !Add(expr >= ir::Int64(-limit))) return false;
  bounds = Intersect(bounds, {-limit, limit});
  return true;
}

std::optional<Interval> Conditions::BoundsOfBinary(const ir::BinaryNode& node) {
  std::optional<Interval> a = Bounds(node.a), b = Bounds(node.b);
  if (!a || !b) return std::nullopt;
  switch (node.op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub: {
      const auto sum = [&] { return node.op == BinaryOp::kAdd ? *a + *b : *a + -*b; };
      if (sum().is_bounded()) return sum();
      if (!Limit(node.a, *a, kLargestTerm) || !Limit(node.b, *b, kLargestTerm)) return std::nullopt;
      return sum();
    }
    case BinaryOp::kMul: {
      const Interval product = *a * *b;
      if (product.is_bounded() && Magnitude(product) <= kLargestProduct) return product;
      if (Limit(node.a, *a, kLargestProduct / std::max<int64_t>(Magnitude(*b), 1))) return *a * *b;
      if (Limit(node.b, *b, kLargestProduct / std::max<int64_t>(Magnitude(*a), 1))) return *a * *b;
      return std::nullopt;
    }
    case BinaryOp::kMin:
      return MinOf(*a, *b);
    case BinaryOp::kMax:
      return MaxOf(*a, *b);
    case BinaryOp::kFloorDiv:
      if (b->is_single() && b->min > 0) return FloorDivide(*a, b->min);
      return Interval{-Magnitude(*a), Magnitude(*a)};
    case BinaryOp::kFloorMod:
      if (b->is_single() && b->min > 0) return FloorModulo(*a, b->min);
      return Interval{-Magnitude(*b), Magnitude(*b)};
    default:
      return std::nullopt;
  }
}

// Nothing if a part might leave int64 and no condition is plausible.
std::optional<Interval> Conditions::Bounds(const PrimExpr& expr) {
  if (const auto value = ir::AsConstInt(expr)) {
    if (*value == std::numeric_limits<int64_t>::min() || *value == std::numeric_limits<int64_t>::max()) {
      return std::nullopt;
    }
    return Interval{*value, *value};
  }
  const Interval known = analyzer_.Bounds(expr);
  if (ir::As<ir::PrimVarNode>(expr) != nullptr) {
    const Interval dims{-largest_dim_, std::max(largest_dim_, known.min)};
    return Interval{std::max(known.min, dims.min), std::min(known.max, dims.max)};
  }
  std::optional<Interval> bounds;
  if (const auto* binary = ir::As<ir::BinaryNode>(expr)) {
    bounds = BoundsOfBinary(*binary);
  } else if (const auto* select = ir::As<ir::SelectNode>(expr)) {
    const std::optional<Interval> yes = Bounds(select->true_value), no = Bounds(select->false_value);
    if (yes && no) bounds = Union(*yes, *no);
  }
  return bounds ? std::optional(Intersect(*bounds, known)) : std::nullopt;
}

}  // namespace ingot::importer::shapes
