// Activations and normalisations that exporters write as small operators: GELU in its erf and tanh forms, SiLU, hard
// swish, layer and RMS normalisation. Powers are products by then, since arithmetic rewrites come first.
#include <numbers>

#include "compiler/ir/float_format.h"
#include "compiler/op/infer.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/rewrite.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;

namespace {

template <const auto& kRow>
Expr Unary(const Match& match, RewriteContext& context) {
  return context.Call(kRow, {match.Get("x")});
}
constexpr char kGelu[] = "nn.gelu";
constexpr char kGeluTanh[] = "nn.gelu_tanh";
constexpr char kSilu[] = "nn.silu";
constexpr char kHardSwish[] = "nn.hard_swish";

// x * 0.5 * factor, halved first or last. If it is halved last, a factor of up to 2 may overflow before.
enum class Halved : uint8_t { kFirst, kLast };
Pattern HalfOf(const Pattern& factor, Halved halved) {
  const Pattern x = Any("x");
  const Pattern half = Number(0.5);
  if (halved == Halved::kFirst) return OneOf({Product(x, Product(half, factor)), Product(Product(x, half), factor)});
  return OneOf({Product(Product(x, factor), half), Op("divide", {Product(x, factor), Number(2.0)})});
}

Pattern GeluPattern(Halved halved) {
  const Pattern x = Any("x");
  const Pattern scaled =
      OneOf({Op("divide", {x, Number(std::numbers::sqrt2)}), Product(x, Number(1 / std::numbers::sqrt2))});
  return HalfOf(Sum(Op("erf", {scaled}), Number(1.0)), halved);
}

// x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
Pattern GeluTanhPattern(Halved halved) {
  const Pattern x = Any("x");
  const Pattern square = OneOf({Product(x, x), Op("square", {x})});
  const Pattern cube = OneOf({Product(square, x), Op("power", {x, Number(3.0)})});
  const Pattern small = Number(0.044715);
  const double root = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const Pattern inner = OneOf({Sum(x, Product(cube, small)), Sum(x, Product(Product(x, small), square)),
                               Product(x, Sum(Product(square, small), Number(1.0)))});
  const Pattern argument = OneOf(
      {Product(inner, Number(root)), Product(Product(x, Number(root)), Sum(Product(square, small), Number(1.0)))});
  return HalfOf(Sum(Op("tanh", {argument}), Number(1.0)), halved);
}

bool IsClip(const ir::Call& call, double low, double high) {
  const auto is = [&](size_t i, double expected) {
    const Result<ir::PrimExpr> value = op::PrimArg(call, i);
    if (!value.ok()) return false;
    const auto* number = As<ir::FloatImmNode>(*value);
    const auto integer = ir::AsConstInt(*value);
    return number != nullptr ? number->value == expected : integer && static_cast<double>(*integer) == expected;
  };
  return is(1, low) && is(2, high);
}

Pattern Relu6OfSum() {
  return Op("clip", {Sum(Any("x"), Number(3.0)), Any(), Any()}).Where([](const ir::Call& call) {
    return IsClip(call, 0, 6);
  });
}
// x * (relu6(x + 3) / 6), or x * hard_sigmoid(x) with its slope of 1/6.
Pattern HardSwishPattern() {
  constexpr double kSixth = 1.0 / 6;  // an attribute is a float32
  return Product(Any("x"), OneOf({Op("divide", {Relu6OfSum(), Number(6.0)}), Product(Relu6OfSum(), Number(kSixth)),
                                  Op("nn.hard_sigmoid", {Any("x")}).Where([](const ir::Call& call) {
                                    const DataType dtype = *As<ir::TensorTypeNode>(call->type)->dtype;
                                    return IsRounded(dtype, call->attrs.GetFloat("alpha"), kSixth) &&
                                           call->attrs.GetFloat("beta") == 0.5;
                                  })}));
}
// x * relu6(x + 3) / 6: the intermediate value is up to six times x.
Pattern HardSwishLatePattern() {
  const Pattern product = Product(Any("x"), Relu6OfSum());
  return OneOf({Op("divide", {product, Number(6.0)}), Product(product, Number(1.0 / 6))});
}

// Returns the axes of a mean that keeps its dims; nothing if it does not keep them.
std::optional<std::vector<int64_t>> KeptAxes(const ir::Call& mean) {
  if (!mean->attrs.GetBool("keepdims")) return std::nullopt;
  return op::IntsAttr(mean, "axis");
}

// Whether a value can be a parameter of the normalised axes: these are the last ones, and it has as many dims.
bool IsParameter(const Expr& parameter, const Expr& x, const std::vector<int64_t>& axes) {
  const auto* own = DimsOf(parameter);
  const auto* dims = DimsOf(x);
  if (own == nullptr || dims == nullptr || own->size() != axes.size() || own->size() > dims->size()) return false;
  const int64_t rank = std::ssize(*dims);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis != rank - std::ssize(axes) + static_cast<int64_t>(i)) return false;
    if (!op::DimsEqual((*own)[i], (*dims)[static_cast<size_t>(axis)])) return false;
  }
  return true;
}

// Whether the dtype has the exponent range of float32. In smaller ranges squares of ordinary numbers overflow, and the
// normalisation would return a number where the single steps do not.
bool HasWideRange(const Expr& x) {
  const DataType dtype = *As<ir::TensorTypeNode>(x->type)->dtype;
  return dtype.is_floating() && ir::FloatFormatOf(dtype).exponent_bits >= 8;
}

// d / sqrt(variance + epsilon), or times its reciprocal.
Pattern OverRoot(const Pattern& d, const Pattern& mean_of_squares) {
  const Pattern biased = Sum(mean_of_squares, Number("epsilon"));
  return OneOf({Op("divide", {d, Op("sqrt", {biased})}), Product(d, Op("rsqrt", {biased}))});
}
Pattern SquareOf(const Pattern& x) { return OneOf({Product(x, x), Op("square", {x}), Op("power", {x, Number(2.0)})}); }

// (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * gamma; the next row adds beta.
Pattern LayerNormPattern() {
  const Pattern distance = Op("subtract", {Any("x"), Op("mean", {Any("x")}).As("mean")}).As("d");
  const Pattern variance = OneOf({Op("mean", {SquareOf(distance)}), Op("variance", {Any("x")})}).As("variance");
  return Product(OverRoot(distance, variance), Any("gamma"));
}

Expr LayerNorm(const Match& match, RewriteContext& context) {
  const Expr x = match.Get("x"), gamma = match.Get("gamma");
  const std::optional<std::vector<int64_t>> axes = KeptAxes(match.GetCall("mean"));
  if (!axes || axes != KeptAxes(match.GetCall("variance")) || !IsParameter(gamma, x, *axes)) return nullptr;
  if (!HasWideRange(x)) return nullptr;
  return context.Call(
      "nn.layer_norm", {x, gamma},
      {{"axes", ir::AttrValue::Ints(*axes)}, {"epsilon", match.GetNumber("epsilon")}, {"center", false}});
}

Expr LayerNormBeta(const Match& match, RewriteContext& context) {
  const ir::Call norm = match.GetCall("norm");
  if (norm->attrs.GetBool("center")) return nullptr;
  if (!IsParameter(match.Get("beta"), norm, norm->attrs.GetInts("axes"))) return nullptr;
  return context.Call("nn.layer_norm", {match.Get("x"), match.Get("gamma"), match.Get("beta")},
                      norm->attrs.With("center", true));
}

Pattern RmsNormPattern() {
  const Pattern squares = Op("mean", {SquareOf(Any("x"))}).As("mean");
  return Product(OverRoot(Any("x"), squares), Any("weight"));
}

Expr RmsNorm(const Match& match, RewriteContext& context) {
  const Expr x = match.Get("x"), weight = match.Get("weight");
  const std::optional<std::vector<int64_t>> axes = KeptAxes(match.GetCall("mean"));
  if (!axes || !IsParameter(weight, x, *axes) || !HasWideRange(x)) return nullptr;
  return context.Call("nn.rms_norm", {x, weight},
                      {{"axes", ir::AttrValue::Ints(*axes)}, {"epsilon", match.GetNumber("epsilon")}});
}

}  // namespace

std::vector<RewriteRow> ActivationRewrites() {
  return {
      {RewriteId::kGelu, GeluPattern(Halved::kFirst), Unary<kGelu>},
      {RewriteId::kGeluLateHalf, GeluPattern(Halved::kLast), Unary<kGelu>},
      {RewriteId::kGeluTanh, GeluTanhPattern(Halved::kFirst), Unary<kGeluTanh>},
      {RewriteId::kGeluTanhLateHalf, GeluTanhPattern(Halved::kLast), Unary<kGeluTanh>},
      {RewriteId::kSilu, Product(Any("x"), Op("sigmoid", {Any("x")})), Unary<kSilu>},
      {RewriteId::kHardSwish, HardSwishPattern(), Unary<kHardSwish>},
      {RewriteId::kHardSwishLateSixth, HardSwishLatePattern(), Unary<kHardSwish>},
      {RewriteId::kLayerNorm, LayerNormPattern(), LayerNorm},
      {RewriteId::kLayerNormBeta, Sum(Op("nn.layer_norm", {Any("x"), Any("gamma")}).As("norm"), Any("beta")),
       LayerNormBeta},
      {RewriteId::kRmsNorm, RmsNormPattern(), RmsNorm},
  };
}

}  // namespace ingot::transform
