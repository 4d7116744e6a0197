// Arithmetic that changes nothing or can be done once: neutral elements, constants in a row, small powers, conversions
// there and back, choices whose condition is known. Masks of imported transformers are made of these.
#include <cmath>

#include "compiler/op/infer.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/rewrite.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;

namespace {

// The tensor that a call passes on unchanged where the other operand, a constant, has the neutral value everywhere. The
// pass sees to it that the type stays the same.
template <int neutral>
Expr DropNeutral(const Match& match, RewriteContext&) {
  return IsFilledWith(match.Get("c"), neutral) ? match.Get("x") : nullptr;
}

DataType DTypeOf(const Expr& expr) { return *As<ir::TensorTypeNode>(expr->type)->dtype; }

// Two constants one after the other become one. Numbers are combined here, so that later patterns see a number; larger
// ones by a call, which is prepared like all that depends on weights alone.
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
  // Never more work than before.
  if (dims == nullptr || result == nullptr || dims->size() > result->size()) return nullptr;
  return context.Call(kRow, {match.Get("x"), both});
}
constexpr char kAdd[] = "add";
constexpr char kMultiply[] = "multiply";

Expr SmallPower(const Match& match, RewriteContext& context) {
  const Expr x = match.Get("x");
  if (!DTypeOf(x).is_floating()) return nullptr;
  const double exponent = match.GetNumber("e");
  if (exponent == 1) return x;
  if (exponent == 2) return context.Call("multiply", {x, x});
  if (exponent == 3) return context.Call("multiply", {context.Bind("multiply", {x, x}), x});
  if (exponent == 0.5) return context.Call("sqrt", {x});
  if (exponent == -0.5) return context.Call("rsqrt", {x});
  return nullptr;
}

Expr ReciprocalRoot(const Match& match, RewriteContext& context) { return context.Call("rsqrt", {match.Get("x")}); }

// A conversion to the same dtype; one that follows another which loses nothing (a bool, or a narrower number of the
// same kind, made wider).
Expr DropCast(const Match& match, RewriteContext&) {
  return match.Get("x");  // the pass compares the types
}
bool IsLossless(DataType from, DataType to) {
  if (from.is_bool()) return !to.is_bool();
  if (from.is_floating() && to.is_floating()) return from.bits < to.bits;
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

// condition ? a : b of a condition that is the same everywhere.
Expr KnownChoice(const Match& match, RewriteContext& context) {
  const bool always = IsFilledWith(match.Get("condition"), 1);
  if (!always && !IsFilledWith(match.Get("condition"), 0)) return nullptr;
  const Expr chosen = match.Get(always ? "a" : "b");
  const auto* dims = DimsOf(match.Get("choice"));
  if (dims == nullptr) return nullptr;
  if (SameType(chosen->type, match.Get("choice")->type)) return chosen;
  return context.Call("broadcast_to", {chosen, ir::Make<ir::ShapeExprNode>(*dims)});
}

// x and a constant that is true everywhere.
Expr DropTrue(const Match& match, RewriteContext&) {
  return IsFilledWith(match.Get("c"), 1) ? match.Get("x") : nullptr;
}

Expr DropSingleConcat(const Match& match, RewriteContext& context) {
  const auto* tuple = As<ir::TupleNode>(context.Resolve(match.Get("parts")));
  return tuple != nullptr && tuple->fields.size() == 1 ? tuple->fields[0] : nullptr;
}

// A slice of everything: steps of one and no dim that shrank.
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
      {"add_zero", "x + 0 = x", Sum(x, c), DropNeutral<0>},
      {"subtract_zero", "x - 0 = x", Op("subtract", {x, c}), DropNeutral<0>},
      {"multiply_one", "x * 1 = x", Product(x, c), DropNeutral<1>},
      {"divide_one", "x / 1 = x", Op("divide", {x, c}), DropNeutral<1>},
      {"add_add", "(x + a) + b = x + (a + b)", Sum(Sum(x, Constant("a")), Constant("b")), JoinConstants<kAdd>},
      {"multiply_multiply", "(x * a) * b = x * (a * b)", Product(Product(x, Constant("a")), Constant("b")),
       JoinConstants<kMultiply>},
      {"small_power", "x^2, x^3 and roots without pow", Op("power", {x, Number("e")}), SmallPower},
      {"reciprocal_root", "1 / sqrt(x) = rsqrt(x)", Op("divide", {Number(1.0), Op("sqrt", {x})}), ReciprocalRoot},
      {"same_cast", "a conversion to the same dtype", Op("astype", {x}), DropCast},
      {"cast_cast", "a conversion of a lossless conversion", Op("astype", {Op("astype", {x}).As("inner")}).As("outer"),
       JoinCasts},
      {"known_choice", "where(true, a, b) = a", Op("where", {Constant("condition"), Any("a"), Any("b")}).As("choice"),
       KnownChoice},
      {"and_true", "x and true = x", OneOf({Op("logical_and", {x, c}), Op("logical_and", {c, x})}), DropTrue},
      {"same_broadcast", "a broadcast to the same shape", Op("broadcast_to", {x, Any()}), DropCast},
      {"concat_of_one", "concat of a single tensor", Op("concat", {Any("parts")}), DropSingleConcat},
      {"whole_slice", "a slice of everything",
       OneOf({Op("strided_slice", {Any(), Any(), Any(), Any()}),
              Op("strided_slice", {Any(), Any(), Any(), Any(), Any()})})
           .As("slice"),
       DropWholeSlice},
  };
}

}  // namespace ingot::transform
