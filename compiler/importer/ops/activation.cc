// Activation functions and the hyperbolic and inverse trigonometric functions.
#include "compiler/importer/ops/families.h"

#include "compiler/importer/ops/util.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

// A numeric attribute: ONNX's name, the operator's name, ONNX's default (rounded to float32 where its documents do so).
struct NumberAttr {
  const char* onnx;
  const char* row;
  double value;
};

// Imports a node as an operator of one argument whose attributes are numbers.
template <const auto& kRow, const auto& kAttrs>
Outputs WithNumbers(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  ir::Attrs attrs;
  for (const NumberAttr& attr : kAttrs) {
    INGOT_ASSIGN_OR_RETURN(const double number, node.Float(attr.onnx, attr.value));
    attrs = attrs.With(attr.row, number);
  }
  return One(node.Call(kRow, {x}, std::move(attrs)));
}
constexpr char kCelu[] = "nn.celu", kElu[] = "nn.elu", kHardSigmoid[] = "nn.hard_sigmoid", kSelu[] = "nn.selu",
               kShrink[] = "nn.shrink", kThresholdedRelu[] = "nn.thresholded_relu";
constexpr NumberAttr kAlpha[] = {{"alpha", "alpha", 1}};
constexpr NumberAttr kHardSigmoidAttrs[] = {{"alpha", "alpha", 0.2f}, {"beta", "beta", 0.5}};
constexpr NumberAttr kSeluAttrs[] = {{"alpha", "alpha", 1.67326319217681884765625},
                                     {"gamma", "scale", 1.05070102214813232421875}};
constexpr NumberAttr kShrinkAttrs[] = {{"lambd", "lambd", 0.5}, {"bias", "bias", 0}};

// Integers are compared and moved as numbers, which are then rounded towards zero.
Outputs Shrink(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  if (type->dtype->is_floating()) return WithNumbers<kShrink, kShrinkAttrs>(node);
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const double lambd, node.Float("lambd", 0.5));
  INGOT_ASSIGN_OR_RETURN(const double bias, node.Float("bias", 0));
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, std::move(x), DataType::Float(64)));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind(kShrink, {x}, {{"lambd", lambd}, {"bias", bias}}));
  return One(CastTo(node, std::move(x), *type->dtype));
}

// The operator's default threshold, for TVM's users, replaces the sum by x early. With 40 the sum is computed in every
// dtype until it makes no difference.
Outputs Softplus(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  return One(node.Call("nn.softplus", {x}, {{"beta", 1.0}, {"threshold", 40.0}}));
}

Outputs Swish(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const double alpha, node.Float("alpha", 1));
  if (alpha == 1) return One(node.Call("nn.silu", {x}));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(Expr scale, node.Scalar(alpha, *type->dtype));
  INGOT_ASSIGN_OR_RETURN(Expr scaled, node.Bind("multiply", {x, scale}));
  INGOT_ASSIGN_OR_RETURN(scaled, node.Bind("sigmoid", {scaled}));
  return One(node.Call("multiply", {x, scaled}));
}

Outputs Reciprocal(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(Expr one, node.Scalar(1, *type->dtype));
  return One(node.Call("divide", {one, x}));
}

// Slopes along one axis, as many as the data has there, are the operator's; others are broadcast to the data's dims:
// where(x < 0, x * slope, x).
Outputs PRelu(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr slope, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 1));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  if (dims.size() > in.size()) {
    return node.Invalid("slopes of rank " + std::to_string(dims.size()) + " for data of rank " +
                        std::to_string(in.size()));
  }
  const size_t skipped = in.size() - dims.size();
  size_t axis = 0;
  int64_t long_axes = 0;
  bool is_proved = true;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (ir::IsConstInt(dims[i], 1)) continue;
    axis = skipped + i;
    ++long_axes;
    is_proved &= op::DimsEqual(dims[i], in[axis]);
  }
  if (long_axes == 1 && is_proved && type->dtype->is_floating()) {
    if (dims.size() > 1) {
      INGOT_ASSIGN_OR_RETURN(slope, node.Bind("reshape", {slope, ShapeOf({in[axis]})}));
    }
    return One(node.Call("nn.prelu", {x, slope}, {{"axis", static_cast<int64_t>(axis)}}));
  }
  if (!is_proved) {
    INGOT_ASSIGN_OR_RETURN(slope, node.Bind("broadcast_to", {slope, ShapeOf(in)}));
  }
  INGOT_ASSIGN_OR_RETURN(Expr zero, node.Scalar(0, *type->dtype));
  INGOT_ASSIGN_OR_RETURN(Expr negative, node.Bind("less", {x, zero}));
  INGOT_ASSIGN_OR_RETURN(Expr scaled, node.Bind("multiply", {x, slope}));
  return One(node.Call("where", {negative, scaled, x}));
}

constexpr OnnxOpRow kActivationRows[] = {
    {"Acos", "acos"},
    {"Acosh", "acosh"},
    {"Asin", "asin"},
    {"Asinh", "asinh"},
    {"Atan", "atan"},
    {"Atanh", "atanh"},
    {"Celu", nullptr, WithNumbers<kCelu, kAlpha>},
    {"Cosh", "cosh"},
    {"Elu", nullptr, WithNumbers<kElu, kAlpha>},
    {"HardSigmoid", nullptr, WithNumbers<kHardSigmoid, kHardSigmoidAttrs>},
    {"HardSwish", "nn.hard_swish"},
    {"Mish", "nn.mish"},
    {"PRelu", nullptr, PRelu},
    {"Reciprocal", nullptr, Reciprocal},
    {"Selu", nullptr, WithNumbers<kSelu, kSeluAttrs>},
    {"Shrink", nullptr, Shrink},
    {"Sinh", "sinh"},
    {"Softplus", nullptr, Softplus},
    {"Softsign", "nn.softsign"},
    {"Swish", nullptr, Swish},
    {"ThresholdedRelu", nullptr, WithNumbers<kThresholdedRelu, kAlpha>},
};

}  // namespace

std::span<const OnnxOpRow> ActivationOnnxOps() { return kActivationRows; }

}  // namespace ingot::importer
