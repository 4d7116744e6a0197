// Arithmetic that changes nothing or can be done once: neutral elements, consecutive constants, small powers,
// conversions there and back, selections with a known condition. Masks of imported transformers consist of these.
#include <cmath>

#include "compiler/ir/float_format.h"
#include "compiler/op/infer.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/rewrite.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;

namespace {

DataType DTypeOf(const Expr& expr) { return *As<ir::TensorTypeNode>(expr->type)->dtype; }

// Returns the tensor that a call returns unchanged, if the other operand is a constant with the neutral value
// everywhere. The pass checks that the type stays the same.
Expr DropOne(const Match& match, RewriteContext&) { return IsFilledWith(match.Get("c"), 1) ? match.Get("x") : nullptr; }
// -0 + 0 is 0, and so is -0 - -0: the neutral zero of a sum is -0, that of a difference is +0.
template <bool is_sum>
Expr DropZero(const Match& match, RewriteContext& context) {
  const Expr x = match.Get("x"), c = match.Get("c");
  if (IsFilledWith(c, is_sum && DTypeOf(c).is_floating() ? -0.0 : 0.0)) return x;
  return (IsFilledWith(c, 0.0) || IsFilledWith(c, -0.0)) && HasNoSign(context, x) ? x : nullptr;
}
Expr DropAnyZero(const Match& match, RewriteContext&) {
  return IsFilledWith(match.Get("c"), 0) ? match.Get("x") : nullptr;
}

// Whether the format has infinities and both zeros.
bool IsIeee(DataType dtype) {
  return dtype.is_floating() && ir::FloatFormatOf(dtype).special == ir::FloatFormat::Special::kIeee;
}
double SmallestNormal(DataType dtype) { return std::ldexp(1.0, 1 - ir::FloatFormatOf(dtype).bias); }

bool IsPowerOfTwo(double x) {
  int exponent = 0;
  return std::fabs(std::frexp(x, &exponent)) == 0.5;
}
// Whether the value is finite and has all digits of the format (it is no denormal).
bool IsNormal(DataType dtype, double x) {
  return std::isfinite(ir::RoundToFloat(dtype, x)) && std::fabs(x) >= SmallestNormal(dtype);
}

// Joins two consecutive constants to one. Numbers are combined here, so that later patterns see a number; larger
// constants by a call, which is evaluated like all values that depend on weights only.
template <const auto& kRow>
Expr JoinConstants(const Match& match, RewriteContext& context) {
  const Expr a = match.Get("a"), b = match.Get("b");
  const std::optional<double> x = AsNumber(a), y = AsNumber(b);
  if (!DTypeOf(a).is_floating() || DTypeOf(a) != DTypeOf(b)) return nullptr;
  if (x && y) {
    const double joined = std::string_view(kRow) == "add" ? *x + *y : *x * *y;
    return context.Call(kRow, {match.Get("x"), NumberConstant(joined, DTypeOf(a))});
  }
  const Expr both = context.Bind(kRow, {a, b});
  const auto* dims = both ? DimsOf(both) : nullptr;
  const auto* result = DimsOf(match.Get("x"));
  // The result must not be larger than the operand, or the work would grow.
  if (dims == nullptr || result == nullptr || dims->size() > result->size()) return nullptr;
  return context.Call(kRow, {match.Get("x"), both});
}
constexpr char kAdd[] = "add";
constexpr char kMultiply[] = "multiply";

// Whether x * a overflows exactly where the whole product does, and is rounded like it, except below normal numbers.
bool CanJoinFactors(DataType dtype, double a, double b) {
  if (!IsNormal(dtype, a * b)) return false;
  if (std::fabs(a) <= 1 && std::fabs(b) <= 1) return IsPowerOfTwo(a) || IsPowerOfTwo(b);
  return std::fabs(a) >= 1 && std::fabs(b) >= 1 && IsPowerOfTwo(a) && IsPowerOfTwo(b);
}
Expr JoinFactors(const Match& match, RewriteContext& context) {
  const DataType dtype = DTypeOf(match.Get("a"));
  if (!dtype.is_floating() || dtype != DTypeOf(match.Get("b"))) return nullptr;
  const double a = match.GetNumber("a"), b = match.GetNumber("b");
  if (!CanJoinFactors(dtype, a, b)) return nullptr;
  return context.Call("multiply", {match.Get("x"), NumberConstant(a * b, dtype)});
}

Expr DivideNumber(const Match& match, RewriteContext& context) {
  const DataType dtype = DTypeOf(match.Get("c"));
  const double divisor = match.GetNumber("c");
  if (!IsIeee(dtype) || !IsPowerOfTwo(divisor) || !IsNormal(dtype, 1 / divisor)) return nullptr;
  return context.Call("multiply", {match.Get("x"), NumberConstant(1 / divisor, dtype)});
}

// Only inside of erf, which is smooth: a division, rounding or comparison behind it would show the different rounding.
// In 16 bits the rounding of 1 / c, which moves all elements to the same side, would show in whole networks.
Expr ErfOfQuotient(const Match& match, RewriteContext& context) {
  const DataType dtype = DTypeOf(match.Get("c"));
  const double divisor = match.GetNumber("c");
  if (!IsIeee(dtype) || ir::FloatFormatOf(dtype).bits < 32) return nullptr;
  if (!(std::fabs(divisor) >= 1) || !IsNormal(dtype, 1 / divisor)) return nullptr;
  return context.Call("erf", {context.Bind("multiply", {match.Get("x"), NumberConstant(1 / divisor, dtype)})});
}

Expr SmallPower(const Match& match, RewriteContext& context) {
  const Expr x = match.Get("x");
  if (!DTypeOf(x).is_floating()) return nullptr;
  const double exponent = match.GetNumber("e");
  if (exponent == 1) return x;
  if (exponent == 2) return context.Call("multiply", {x, x});
  if (exponent == 3) return context.Call("multiply", {context.Bind("multiply", {x, x}), x});
  return nullptr;
}

template <bool of_any_sign>
Expr RootPower(const Match& match, RewriteContext& context) {
  const Expr x = match.Get("x");
  const double exponent = match.GetNumber("e");
  if (!DTypeOf(x).is_floating() || (exponent != 0.5 && exponent != -0.5)) return nullptr;
  if (!of_any_sign && !HasNoSign(context, x)) return nullptr;
  return context.Call(exponent == 0.5 ? "sqrt" : "rsqrt", {x});
}

Expr ReciprocalRoot(const Match& match, RewriteContext& context) { return context.Call("rsqrt", {match.Get("x")}); }

// Drops a conversion to the same dtype, and one behind a conversion that loses nothing (of a bool, or of a narrower
// number of the same kind).
Expr DropCast(const Match& match, RewriteContext&) {
  return match.Get("x");  // the pass compares the types
}
bool IsLossless(DataType from, DataType to) {
  if (from.is_bool()) return to.is_integral() || IsIeee(to);
  if (from.is_floating() || to.is_floating()) {
    if (!IsIeee(from) || !IsIeee(to)) return false;
    const ir::FloatFormat &narrow = ir::FloatFormatOf(from), &wide = ir::FloatFormatOf(to);
    return narrow.exponent_bits <= wide.exponent_bits && narrow.mantissa_bits <= wide.mantissa_bits;
  }
  const bool both_signed = from.is_int() && to.is_int();
  const bool both_unsigned = from.is_uint() && to.is_uint();
  return (both_signed || both_unsigned) && from.bits <= to.bits;
}
Expr JoinCasts(const Match& match, RewriteContext& context) {
  const Expr x = match.Get("x");
  const ir::Call outer = match.GetCall("outer"), inner = match.GetCall("inner");
  if (!IsLossless(DTypeOf(x), DTypeOf(inner))) return nullptr;
  if (DTypeOf(outer) == DTypeOf(x)) return x;
  return context.Call("astype", {x}, outer->attrs);
}

// condition ? a : b with a condition that is the same everywhere.
Expr KnownChoice(const Match& match, RewriteContext& context) {
  const bool always = IsFilledWith(match.Get("condition"), 1);
  if (!always && !IsFilledWith(match.Get("condition"), 0)) return nullptr;
  const Expr chosen = match.Get(always ? "a" : "b");
  const auto* dims = DimsOf(match.Get("choice"));
  if (dims == nullptr) return nullptr;
  if (SameType(chosen->type, match.Get("choice")->type)) return chosen;
  return context.Call("broadcast_to", {chosen, ir::Make<ir::ShapeExprNode>(*dims)});
}

Expr DropSingleConcat(const Match& match, RewriteContext& context) {
  const auto* tuple = As<ir::TupleNode>(context.Resolve(match.Get("parts")));
  return tuple != nullptr && tuple->fields.size() == 1 ? tuple->fields[0] : nullptr;
}

// Drops a slice of everything: its steps are one and no dim shrinks.
Expr DropWholeSlice(const Match& match, RewriteContext&) {
  const ir::Call slice = match.GetCall("slice");
  if (op::HasArg(slice, 4)) {
    const Result<std::vector<int64_t>> strides = op::IntTupleArg(slice, 4);
    if (!strides.ok()) return nullptr;
    for (int64_t stride : *strides) {
      if (stride != 1) return nullptr;
    }
  }
  return slice->args[0];
}

}  // namespace

std::vector<RewriteRow> ArithmeticRewrites() {
  const Pattern x = Any("x");
  const Pattern c = OneOf({Constant("c"), Op("broadcast_to", {Constant("c"), Any()})});
  return {
      {RewriteId::kAddZero, Sum(x, c), DropZero<true>},
      {RewriteId::kAddPositiveZero, Sum(x, c), DropAnyZero},
      {RewriteId::kSubtractZero, Op("subtract", {x, c}), DropZero<false>},
      {RewriteId::kMultiplyOne, Product(x, c), DropOne},
      {RewriteId::kDivideOne, Op("divide", {x, c}), DropOne},
      {RewriteId::kAddAdd, Sum(Sum(x, Constant("a")), Constant("b")), JoinConstants<kAdd>},
      {RewriteId::kMultiplyMultiply, Product(Product(x, Number("a")), Number("b")), JoinFactors},
      {RewriteId::kMultiplyMultiplyAny, Product(Product(x, Constant("a")), Constant("b")), JoinConstants<kMultiply>},
      {RewriteId::kDivideNumber, Op("divide", {x, Number("c")}), DivideNumber},
      {RewriteId::kErfOfQuotient, Op("erf", {Op("divide", {x, Number("c")})}), ErfOfQuotient},
      {RewriteId::kSmallPower, Op("power", {x, Number("e")}), SmallPower},
      {RewriteId::kRootPower, Op("power", {x, Number("e")}), RootPower<false>},
      {RewriteId::kRootPowerAny, Op("power", {x, Number("e")}), RootPower<true>},
      {RewriteId::kReciprocalRoot, Op("divide", {Number(1.0), Op("sqrt", {x})}), ReciprocalRoot},
      {RewriteId::kSameCast, Op("astype", {x}), DropCast},
      {RewriteId::kCastCast, Op("astype", {Op("astype", {x}).As("inner")}).As("outer"), JoinCasts},
      {RewriteId::kKnownChoice, Op("where", {Constant("condition"), Any("a"), Any("b")}).As("choice"), KnownChoice},
      {RewriteId::kAndTrue, OneOf({Op("logical_and", {x, c}), Op("logical_and", {c, x})}), DropOne},
      {RewriteId::kSameBroadcast, Op("broadcast_to", {x, Any()}), DropCast},
      {RewriteId::kConcatOfOne, Op("concat", {Any("parts")}), DropSingleConcat},
      {RewriteId::kWholeSlice,
       OneOf({Op("strided_slice", {Any(), Any(), Any(), Any()}),
              Op("strided_slice", {Any(), Any(), Any(), Any(), Any()})})
           .As("slice"),
       DropWholeSlice},
  };
}

}  // namespace ingot::transform
