// Shape arithmetic element by element (sums, comparisons, casts, choices), and reductions of integers.
#include <cmath>

#include "compiler/importer/shape_evaluation.h"

namespace ingot::importer::shapes {
namespace {

// ---- element by element

// Floats are constants here, or integral values.
using UnaryFn = Element (*)(const Evaluation& e, DataType dtype, const PrimExpr& x);
using BinaryFn = Element (*)(const Evaluation& e, DataType dtype, const PrimExpr& x, const PrimExpr& y);

template <const auto& fn>
Outputs Unary(const Evaluation& e) {
  if (!e.Has(0)) return std::nullopt;
  ShapeValue out{e.in(0).dtype, e.in(0).dims, {}};
  for (const PrimExpr& x : e.in(0).elements) {
    Element element = fn(e, out.dtype, x);
    if (element.has_value()) element = e.Finish(out.dtype, *element);
    if (!element.has_value()) return std::nullopt;
    out.elements.push_back(*std::move(element));
  }
  return One(std::move(out));
}

std::optional<ShapeValue> ApplyBinary(const Evaluation& e, const BinaryFn& fn, const ShapeValue& a, const ShapeValue& b,
                                      std::optional<DataType> dtype = std::nullopt) {
  const std::optional<Dims> dims = Broadcast(a.dims, b.dims);
  if (!dims.has_value() || a.dtype != b.dtype) return std::nullopt;
  const std::optional<ShapeValue> x = BroadcastTo(a, *dims), y = BroadcastTo(b, *dims);
  if (!x.has_value() || !y.has_value()) return std::nullopt;
  ShapeValue out{dtype.value_or(a.dtype), *dims, {}};
  for (size_t i = 0; i < x->elements.size(); ++i) {
    Element element = fn(e, a.dtype, x->elements[i], y->elements[i]);
    if (element.has_value()) element = e.Finish(out.dtype, *element);
    if (!element.has_value()) return std::nullopt;
    out.elements.push_back(*std::move(element));
  }
  return out;
}

// Applies fn to one input, two inputs, or a chain of several.
template <const auto& fn>
Outputs Elementwise(const Evaluation& e) {
  if (!e.Has(0) || e.in(0).dtype.is_bool()) return std::nullopt;
  std::optional<ShapeValue> result = e.in(0);
  for (size_t i = 1; i < e.num_inputs() && result.has_value(); ++i) {
    if (!e.Has(i)) return std::nullopt;
    result = ApplyBinary(e, fn, *result, e.in(i));
  }
  return One(std::move(result));
}
template <const auto& fn>
Outputs Comparison(const Evaluation& e) {
  if (!e.Has(0) || !e.Has(1)) return std::nullopt;
  return One(ApplyBinary(e, fn, e.in(0), e.in(1), DataType::Bool()));
}

bool BothWhole(const PrimExpr& x, const PrimExpr& y) {
  return x->kind != ir::PrimKind::kFloatImm && y->kind != ir::PrimKind::kFloatImm;
}
bool BothConstant(const PrimExpr& x, const PrimExpr& y) { return IsConstant(x) && IsConstant(y); }

// A product or a quotient of floats that is 0 is -0 if one of them is negative.
void NoteZeroSign(const Evaluation& e, const PrimExpr& x, const PrimExpr& y) {
  if (!e.ProveNonNegative(x) || !e.ProveNonNegative(y)) e.conditions().LoseZeroSign();
}
// Whether the number may be a zero of either sign, by which no result can be told.
bool IsUnsignedZero(const Evaluation& e, const PrimExpr& x) {
  return IsConstant(x) && NumberOf(x) == 0 && e.conditions().loses_zero_sign();
}

// Sums and products of integral values are integral; those of other floats are rounded, so both must be constants.
template <ir::BinaryOp op>
Element Ring(const Evaluation& e, DataType dtype, const PrimExpr& x, const PrimExpr& y) {
  if (dtype.is_floating() && BothConstant(x, y)) {
    const double a = NumberOf(x), b = NumberOf(y);
    return FloatOf(dtype, op == ir::BinaryOp::kAdd ? a + b : op == ir::BinaryOp::kSub ? a - b : a * b);
  }
  if (!BothWhole(x, y)) return std::nullopt;
  if (dtype.is_floating() && op == ir::BinaryOp::kMul) NoteZeroSign(e, x, y);
  return ir::MakeBinary(op, x, y);
}
template <ir::BinaryOp op>
Element Extremum(const Evaluation& e, DataType dtype, const PrimExpr& x, const PrimExpr& y) {
  if (BothWhole(x, y) && !e.Fit(x, y)) return std::nullopt;
  if (BothWhole(x, y)) return op == ir::BinaryOp::kMin ? ir::Min(x, y) : ir::Max(x, y);
  if (!BothConstant(x, y)) return std::nullopt;
  const double a = NumberOf(x), b = NumberOf(y);
  if (std::isnan(a) || std::isnan(b)) return std::nullopt;
  return FloatOf(dtype, op == ir::BinaryOp::kMin ? std::min(a, b) : std::max(a, b));
}
// x / y rounded towards zero, where y is known to be above 0.
Element Quotient(const Evaluation& e, const PrimExpr& x, const PrimExpr& y) {
  if (e.ProveNonNegative(x) && e.ProveNonNegative(y)) return ir::FloorDiv(x, y);
  if (!e.ProveNonNegative(y - 1)) return std::nullopt;
  return ir::FloorDiv(ir::Select(ir::MakeBinary(ir::BinaryOp::kLT, x, ir::Int64(0)), x + (y - 1), x), y);
}
Element Divide(const Evaluation& e, DataType dtype, const PrimExpr& x, const PrimExpr& y) {
  if (IsUnsignedZero(e, y)) return std::nullopt;
  if (dtype.is_floating() && BothConstant(x, y)) return FloatOf(dtype, NumberOf(x) / NumberOf(y));
  if (!BothWhole(x, y) || ir::IsConstInt(y, 0) || !e.Fit(x, y)) return std::nullopt;
  if (dtype.is_floating()) {  // the quotient is exact, or not known
    NoteZeroSign(e, x, y);
    if (!e.conditions().Add(ir::NotEqual(y, ir::Int64(0)))) return std::nullopt;
    if (!ir::IsConstInt(e.Simplify(ir::FloorMod(x, y)), 0)) return std::nullopt;
    return ir::FloorDiv(x, y);
  }
  if (BothConstant(x, y)) {
    const int64_t a = *ir::AsConstInt(x), b = *ir::AsConstInt(y);
    if (b == -1 && a == std::numeric_limits<int64_t>::min()) return std::nullopt;
    return ir::Int64(a / b);
  }
  return Quotient(e, x, y);
}
Element Modulo(const Evaluation& e, DataType dtype, const PrimExpr& x, const PrimExpr& y) {
  if (dtype.is_floating() || ir::IsConstInt(y, 0) || !e.Fit(x, y)) return std::nullopt;
  const std::optional<int64_t> fmod = e.Int("fmod", 0);
  if (fmod != 0 && (!e.ProveNonNegative(x) || !e.ProveNonNegative(y))) {
    const Element quotient = Quotient(e, x, y);
    if (!quotient.has_value()) return std::nullopt;
    return x - *quotient * y;
  }
  if (ir::IsConstInt(y, -1)) return ir::Int64(0);
  return ir::FloorMod(x, y);
}
Element Power(const Evaluation& e, DataType dtype, const PrimExpr& x, const PrimExpr& y) {
  if (!dtype.is_floating() || !BothConstant(x, y) || IsUnsignedZero(e, x)) return std::nullopt;
  return FloatOf(dtype, std::pow(NumberOf(x), NumberOf(y)));
}
template <ir::BinaryOp op>
Element Compare(const Evaluation& e, DataType dtype, const PrimExpr& x, const PrimExpr& y) {
  if (dtype.is_bool() && op != ir::BinaryOp::kEQ) return std::nullopt;
  if (BothWhole(x, y) && x->dtype == y->dtype) {
    if (!e.Fit(x, y)) return std::nullopt;
    return ir::MakeBinary(op, x, y);
  }
  if (!BothConstant(x, y)) return std::nullopt;
  const double a = NumberOf(x), b = NumberOf(y);
  const bool less = a < b, equal = a == b;
  if (op == ir::BinaryOp::kEQ) return ir::BoolImm(equal);
  if (op == ir::BinaryOp::kLT || op == ir::BinaryOp::kLE)
    return ir::BoolImm(less || (op == ir::BinaryOp::kLE && equal));
  return ir::BoolImm(a > b || (op == ir::BinaryOp::kGE && equal));
}
enum class Gate { kAnd, kOr, kXor };
template <Gate gate>
Element Logic(const Evaluation&, DataType dtype, const PrimExpr& x, const PrimExpr& y) {
  if (!dtype.is_bool()) return std::nullopt;
  if (gate == Gate::kXor) return ir::NotEqual(x, y);
  return gate == Gate::kAnd ? ir::And(x, y) : ir::Or(x, y);
}

Element Negate(const Evaluation& e, DataType dtype, const PrimExpr& x) {
  if (dtype.is_bool()) return std::nullopt;
  if (dtype.is_floating() && IsConstant(x)) return FloatOf(dtype, -NumberOf(x));  // negates 0 too: -0
  if (dtype.is_floating() && !e.ProveNonNegative(x - 1)) e.conditions().LoseZeroSign();
  return ir::Int64(0) - x;
}
Element Absolute(const Evaluation& e, DataType dtype, const PrimExpr& x) {
  if (dtype.is_bool()) return std::nullopt;
  if (x->kind == ir::PrimKind::kFloatImm) return FloatOf(dtype, std::abs(NumberOf(x)));
  if (!e.conditions().Fits(x)) return std::nullopt;
  if (e.ProveNonNegative(x)) return x;
  return ir::Max(x, ir::Int64(0) - x);
}
Element Invert(const Evaluation&, DataType dtype, const PrimExpr& x) {
  if (!dtype.is_bool()) return std::nullopt;
  return ir::Not(x);
}
// Integral values stay as they are; others must be constants.
template <double (*round)(double)>
Element Round(const Evaluation&, DataType dtype, const PrimExpr& x) {
  if (!dtype.is_floating()) return std::nullopt;
  return x->kind == ir::PrimKind::kFloatImm ? FloatOf(dtype, round(NumberOf(x))) : x;
}
double FloorOf(double x) { return std::floor(x); }
double CeilOf(double x) { return std::ceil(x); }
double RoundOf(double x) { return std::nearbyint(x); }
Element SquareRoot(const Evaluation&, DataType dtype, const PrimExpr& x) {
  if (!dtype.is_floating() || !IsConstant(x)) return std::nullopt;
  return FloatOf(dtype, std::sqrt(NumberOf(x)));
}
Element Reciprocal(const Evaluation& e, DataType dtype, const PrimExpr& x) {
  if (!dtype.is_floating() || !IsConstant(x) || IsUnsignedZero(e, x)) return std::nullopt;
  return FloatOf(dtype, 1 / NumberOf(x));
}

constexpr UnaryFn kNegate = Negate, kAbsolute = Absolute, kInvert = Invert, kFloor = Round<FloorOf>,
                  kCeil = Round<CeilOf>, kRound = Round<RoundOf>, kSquareRoot = SquareRoot, kReciprocal = Reciprocal;
constexpr BinaryFn kAdd = Ring<ir::BinaryOp::kAdd>, kSubtract = Ring<ir::BinaryOp::kSub>,
                   kMultiply = Ring<ir::BinaryOp::kMul>, kMinimum = Extremum<ir::BinaryOp::kMin>,
                   kMaximum = Extremum<ir::BinaryOp::kMax>, kDivide = Divide, kModulo = Modulo, kPower = Power,
                   kEqual = Compare<ir::BinaryOp::kEQ>, kLess = Compare<ir::BinaryOp::kLT>,
                   kLessEqual = Compare<ir::BinaryOp::kLE>, kGreater = Compare<ir::BinaryOp::kGT>,
                   kGreaterEqual = Compare<ir::BinaryOp::kGE>, kAnd = Logic<Gate::kAnd>, kOr = Logic<Gate::kOr>,
                   kXor = Logic<Gate::kXor>;

Outputs Identity(const Evaluation& e) {
  if (!e.Has(0)) return std::nullopt;
  return One(e.in(0));
}

Outputs Cast(const Evaluation& e) {
  const std::optional<int64_t> to = e.Int("to", 0);
  if (!e.Has(0) || !to.has_value()) return std::nullopt;
  const Result<DataType> dtype = OnnxDataType(*to);
  if (!dtype.ok()) return std::nullopt;
  ShapeValue out{*dtype, e.in(0).dims, {}};
  for (const PrimExpr& x : e.in(0).elements) {
    PrimExpr element = x;
    if (dtype->is_bool()) {
      if (!x->dtype.is_bool()) {
        if (!e.conditions().Fits(x)) return std::nullopt;
        element = x->kind == ir::PrimKind::kFloatImm ? ir::BoolImm(NumberOf(x) != 0) : ir::NotEqual(x, ir::Int64(0));
      }
    } else if (x->dtype.is_bool()) {
      element = IsConstant(x) ? ir::Int64(*ir::AsConstInt(x)) : ir::Select(x, ir::Int64(1), ir::Int64(0));
    } else if (x->kind == ir::PrimKind::kFloatImm) {
      if (dtype->is_floating()) {
        element = FloatOf(*dtype, NumberOf(x));
      } else {
        const double value = std::trunc(NumberOf(x));
        if (!(std::abs(value) < 9e18)) return std::nullopt;
        element = ir::Int64(static_cast<int64_t>(value));
      }
    } else if (dtype->is_floating() && IsConstant(x)) {
      element = FloatOfInteger(*dtype, *ir::AsConstInt(x));
    }
    const Element finished = e.Finish(*dtype, std::move(element));
    if (!finished.has_value()) return std::nullopt;
    out.elements.push_back(*finished);
  }
  return One(std::move(out));
}

Outputs Where(const Evaluation& e) {
  if (!e.Has(0) || !e.Has(1) || !e.Has(2) || !e.in(0).dtype.is_bool() || e.in(1).dtype != e.in(2).dtype) {
    return std::nullopt;
  }
  const std::optional<Dims> values = Broadcast(e.in(1).dims, e.in(2).dims);
  const std::optional<Dims> dims = values.has_value() ? Broadcast(*values, e.in(0).dims) : std::nullopt;
  if (!dims.has_value()) return std::nullopt;
  const std::optional<ShapeValue> c = BroadcastTo(e.in(0), *dims), x = BroadcastTo(e.in(1), *dims),
                                  y = BroadcastTo(e.in(2), *dims);
  if (!c.has_value() || !x.has_value() || !y.has_value()) return std::nullopt;
  ShapeValue out{e.in(1).dtype, *dims, {}};
  for (size_t i = 0; i < c->elements.size(); ++i) {
    const PrimExpr &condition = c->elements[i], &a = x->elements[i], &b = y->elements[i];
    if (const auto chosen = ir::AsConstInt(condition)) {
      out.elements.push_back(*chosen != 0 ? a : b);
      continue;
    }
    if (!BothWhole(a, b)) return std::nullopt;
    const Element element = e.Finish(out.dtype, ir::Select(condition, a, b));
    if (!element.has_value()) return std::nullopt;
    out.elements.push_back(*element);
  }
  return One(std::move(out));
}

// ---- reductions of integers

template <const auto& fn>
Outputs Reduce(const Evaluation& e) {
  const std::optional<int64_t> keep = e.Int("keepdims", 1), noop = e.Int("noop_with_empty_axes", 0);
  const std::optional<Dims> axes = e.Axes();
  if (!e.Has(0) || !e.in(0).is_integer() || !axes.has_value() || !keep.has_value() || !noop.has_value()) {
    return std::nullopt;
  }
  const ShapeValue& x = e.in(0);
  std::vector<bool> reduced(x.dims.size(), axes->empty() && *noop == 0);
  for (int64_t axis : *axes) {
    const std::optional<int64_t> at = Axis(axis, std::ssize(x.dims));
    if (!at.has_value()) return std::nullopt;
    reduced[*at] = true;
  }
  Dims kept = x.dims, dims;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (reduced[i]) kept[i] = 1;
    if (!reduced[i] || *keep != 0) dims.push_back(kept[i]);
  }
  if (x.elements.empty()) return std::nullopt;
  const Dims strides = StridesOf(kept);
  ShapeValue out{x.dtype, std::move(dims), {}};
  out.elements.resize(*CountOf(kept));
  size_t next = 0;
  bool known = true;
  ForEachIndex(x.dims, [&](const Dims& index) {
    int64_t at = 0;
    for (size_t i = 0; i < index.size(); ++i) at += reduced[i] ? 0 : index[i] * strides[i];
    const PrimExpr& element = x.elements[next++];
    PrimExpr& sum = out.elements[at];
    if (sum == nullptr) {
      sum = element;
      return;
    }
    Element combined = fn(e, x.dtype, sum, element);
    if (combined.has_value()) combined = e.Finish(x.dtype, *combined);
    known &= combined.has_value();
    if (combined.has_value()) sum = *combined;
  });
  return known ? One(std::move(out)) : std::nullopt;
}

constexpr Row kArithmeticRows[] = {
    {"Abs", Unary<kAbsolute>},
    {"Add", Elementwise<kAdd>},
    {"And", Comparison<kAnd>},
    {"Cast", Cast},
    {"Ceil", Unary<kCeil>},
    {"Div", Elementwise<kDivide>},
    {"Equal", Comparison<kEqual>},
    {"Floor", Unary<kFloor>},
    {"Greater", Comparison<kGreater>},
    {"GreaterOrEqual", Comparison<kGreaterEqual>},
    {"Identity", Identity},
    {"Less", Comparison<kLess>},
    {"LessOrEqual", Comparison<kLessEqual>},
    {"Max", Elementwise<kMaximum>},
    {"Min", Elementwise<kMinimum>},
    {"Mod", Elementwise<kModulo>},
    {"Mul", Elementwise<kMultiply>},
    {"Neg", Unary<kNegate>},
    {"Not", Unary<kInvert>},
    {"Or", Comparison<kOr>},
    {"Pow", Elementwise<kPower>},
    {"Reciprocal", Unary<kReciprocal>},
    {"ReduceMax", Reduce<kMaximum>},
    {"ReduceMin", Reduce<kMinimum>},
    {"ReduceProd", Reduce<kMultiply>},
    {"ReduceSum", Reduce<kAdd>},
    {"Round", Unary<kRound>},
    {"Sqrt", Unary<kSquareRoot>},
    {"Sub", Elementwise<kSubtract>},
    {"Sum", Elementwise<kAdd>},
    {"Where", Where},
    {"Xor", Comparison<kXor>},
};

}  // namespace

std::span<const Row> Arithmetic() { return kArithmeticRows; }

}  // namespace ingot::importer::shapes
