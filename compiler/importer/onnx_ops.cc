// The table of ONNX operators, and one function for each that is more than a name. The semantics are those of ONNX's
// operator documentation (docs/Operators.md, Changelog.md), for opsets 7 and later.
#include "compiler/importer/onnx_ops.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/type.h"
#include "compiler/op/registry.h"

namespace ingot::importer {

using ir::AttrValue;
using ir::Expr;
using ir::PrimExpr;

namespace {

using Outputs = Result<std::vector<Expr>>;

// ---- Helpers

Result<std::vector<PrimExpr>> StaticRankDims(const NodeImporter& node, size_t input) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(input));
  return *type->dims;
}

Expr ShapeOf(std::vector<PrimExpr> dims) { return ir::Make<ir::ShapeExprNode>(std::move(dims)); }

PrimExpr Product(std::span<const PrimExpr> dims) {
  PrimExpr product = ir::Int64(1);
  for (const PrimExpr& dim : dims) product = product * dim;
  return arith::Analyzer().Simplify(product);
}

// Axes count from the end when negative.
Result<int64_t> NormaliseAxis(const NodeImporter& node, int64_t axis, int64_t rank, bool end_allowed = false) {
  const int64_t limit = end_allowed ? rank + 1 : rank;
  if (axis >= -rank && axis < limit) return axis < 0 ? axis + rank : axis;
  return node.Invalid("axis " + std::to_string(axis) + " is outside of rank " + std::to_string(rank));
}

Outputs One(Result<Expr> value) {
  if (!value.ok()) return std::move(value).status();
  return std::vector<Expr>{*std::move(value)};
}

// ---- Elementwise

Outputs Identity(const NodeImporter& node) { return One(node.Input(0)); }

// At inference the identity; the mask (a second output) is not made.
Outputs Dropout(const NodeImporter& node) {
  if (node.node().outputs.size() > 1 && !node.node().outputs[1].empty()) {
    return node.Unsupported("the mask output of Dropout");
  }
  if (node.HasInput(2)) {
    INGOT_ASSIGN_OR_RETURN(const Expr training, node.Input(2));
    const auto* constant = ir::As<ir::ConstantNode>(training);
    if (constant == nullptr || constant->data->bytes().size() != 1 || constant->data->bytes()[0] != std::byte{0}) {
      return node.Unsupported("Dropout in training mode");
    }
  }
  return One(node.Input(0));
}

// Max, Min and Sum of any number of inputs: one after the other.
template <const auto& kRow>
Outputs Chain(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr result, node.Input(0));
  for (size_t i = 1; i < node.num_inputs(); ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr next, node.Input(i));
    const bool is_last = i + 1 == node.num_inputs();
    INGOT_ASSIGN_OR_RETURN(result, is_last ? node.Call(kRow, {result, next}) : node.Bind(kRow, {result, next}));
  }
  return std::vector<Expr>{std::move(result)};
}
constexpr char kMaximum[] = "maximum";
constexpr char kMinimum[] = "minimum";
constexpr char kAdd[] = "add";

// The exponent may have another type; the result has the base's.
Outputs Pow(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr base, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr exponent, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* base_type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* exponent_type, node.InputType(1));
  if (base_type->dtype != exponent_type->dtype) {
    INGOT_ASSIGN_OR_RETURN(exponent, node.Bind("astype", {exponent}, {{"dtype", *base_type->dtype}}));
  }
  return One(node.Call("power", {base, exponent}));
}

Outputs Gelu(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::string approximate, node.String("approximate", "none"));
  if (approximate == "none") return One(node.Call("nn.gelu", {x}));
  if (approximate == "tanh") return One(node.Call("nn.gelu_tanh", {x}));
  return node.Invalid("approximate is \"" + approximate + "\"");
}

Outputs LeakyRelu(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const double alpha, node.Float("alpha", 0.01f));
  return One(node.Call("nn.leakyrelu", {x}, {{"alpha", alpha}}));
}

// Bounds are attributes until opset 10 and inputs from 11 on; one that is left out bounds nothing.
Outputs Clip(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  if (!type->dtype->is_floating()) return node.Unsupported("Clip of " + type->dtype->ToString());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  INGOT_ASSIGN_OR_RETURN(double low, node.Float("min", -kInfinity));
  INGOT_ASSIGN_OR_RETURN(double high, node.Float("max", kInfinity));
  INGOT_ASSIGN_OR_RETURN(low, node.ConstantNumber(1, "the lower bound", low));
  INGOT_ASSIGN_OR_RETURN(high, node.ConstantNumber(2, "the upper bound", high));
  return One(node.Call("clip", {x, ir::Make<ir::PrimValueNode>(ir::FloatImm(*type->dtype, low)),
                                ir::Make<ir::PrimValueNode>(ir::FloatImm(*type->dtype, high))}));
}

Outputs Cast(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const int64_t to, node.Int("to", 0));
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, OnnxDataType(to));
  INGOT_ASSIGN_OR_RETURN(const int64_t saturate, node.Int("saturate", 1));
  if (saturate == 0) return node.Unsupported("Cast with saturate=0");
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  if (type->dtype == dtype) return std::vector<Expr>{std::move(x)};
  return One(node.Call("astype", {x}, {{"dtype", dtype}}));
}

Outputs Constant(const NodeImporter& node) {
  const auto make = [&node](DataType dtype, std::vector<int64_t> dims, const void* data, size_t size) -> Outputs {
    std::vector<std::byte> bytes(size);
    if (size > 0) std::memcpy(bytes.data(), data, size);
    const std::string name = node.node().outputs.empty() ? "" : node.node().outputs[0];
    return std::vector<Expr>{
        ir::Make<ir::ConstantNode>(ir::ConstantData::FromBytes(dtype, std::move(dims), std::move(bytes)), name)};
  };
  if (const OnnxAttribute* tensor = node.FindAttr("value")) {
    const auto* data = std::get_if<ConstantDataPtr>(&tensor->value);
    if (data == nullptr) return node.Invalid("attribute \"value\": expected a tensor");
    return std::vector<Expr>{
        ir::Make<ir::ConstantNode>(*data, node.node().outputs.empty() ? "" : node.node().outputs[0])};
  }
  if (node.HasAttr("value_int")) {
    INGOT_ASSIGN_OR_RETURN(const int64_t value, node.Int("value_int", 0));
    return make(DataType::Int(64), {}, &value, sizeof(value));
  }
  if (node.HasAttr("value_float")) {
    INGOT_ASSIGN_OR_RETURN(const double wide, node.Float("value_float", 0));
    const float value = static_cast<float>(wide);
    return make(DataType::Float(32), {}, &value, sizeof(value));
  }
  if (node.HasAttr("value_ints")) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> values, node.Ints("value_ints", {}));
    return make(DataType::Int(64), {static_cast<int64_t>(values.size())}, values.data(), values.size() * 8);
  }
  if (const OnnxAttribute* floats = node.FindAttr("value_floats")) {
    const auto* values = std::get_if<std::vector<float>>(&floats->value);
    if (values == nullptr) return node.Invalid("attribute \"value_floats\": expected floats");
    return make(DataType::Float(32), {static_cast<int64_t>(values->size())}, values->data(), values->size() * 4);
  }
  return node.Unsupported("a Constant that is no tensor of numbers");
}

// ---- Shapes and layouts

// A view with other dims; the same expression when they are what it has.
Result<Expr> ReshapeTo(const NodeImporter& node, Expr x, std::vector<PrimExpr> dims) {
  return node.Call("reshape", {std::move(x), ShapeOf(std::move(dims))});
}

// -1 stands for what is left over, 0 for the input's dimension (unless allowzero).
Outputs Reshape(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, node.ConstantInts(1, "the shape"));
  INGOT_ASSIGN_OR_RETURN(const int64_t allow_zero, node.Int("allowzero", 0));
  if (std::count(shape.begin(), shape.end(), -1) > 1) return node.Invalid("the shape has more than one -1");
  std::vector<PrimExpr> out;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < -1) return node.Invalid("the shape holds " + std::to_string(shape[i]));
    const bool copies = shape[i] == 0 && allow_zero == 0;
    if (copies && i >= in.size()) {
      return node.Invalid("the shape copies dimension " + std::to_string(i) + ", which is not there");
    }
    out.push_back(copies ? in[i] : ir::Int64(shape[i]));
  }
  return One(ReshapeTo(node, std::move(x), std::move(out)));
}

Outputs Flatten(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(int64_t axis, node.Int("axis", 1));
  INGOT_ASSIGN_OR_RETURN(axis, NormaliseAxis(node, axis, static_cast<int64_t>(in.size()), true));
  const std::span<const PrimExpr> dims(in);
  return One(ReshapeTo(node, std::move(x), {Product(dims.first(axis)), Product(dims.subspan(axis))}));
}

// Axes are an attribute until opset 12 and an input from 13 on.
Result<std::vector<int64_t>> AxesOf(const NodeImporter& node) {
  if (node.HasInput(1)) return node.ConstantInts(1, "the axes");
  return node.Ints("axes", {});
}

Outputs Squeeze(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, AxesOf(node));
  std::vector<bool> drop(in.size());
  for (int64_t axis : axes) {
    INGOT_ASSIGN_OR_RETURN(const int64_t index, NormaliseAxis(node, axis, static_cast<int64_t>(in.size())));
    if (!ir::IsConstInt(in[index], 1)) return node.Invalid("axis " + std::to_string(axis) + " is not of size 1");
    drop[index] = true;
  }
  std::vector<PrimExpr> out;
  for (size_t i = 0; i < in.size(); ++i) {
    if (axes.empty() ? !ir::IsConstInt(in[i], 1) : !drop[i]) out.push_back(in[i]);
  }
  return One(ReshapeTo(node, std::move(x), std::move(out)));
}

Outputs Unsqueeze(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, AxesOf(node));
  const int64_t rank = static_cast<int64_t>(in.size() + axes.size());
  std::vector<bool> added(rank);
  for (int64_t axis : axes) {
    INGOT_ASSIGN_OR_RETURN(const int64_t index, NormaliseAxis(node, axis, rank));
    if (added[index]) return node.Invalid("axis " + std::to_string(axis) + " is given twice");
    added[index] = true;
  }
  std::vector<PrimExpr> out;
  for (size_t i = 0, from = 0; i < added.size(); ++i) out.push_back(added[i] ? ir::Int64(1) : in[from++]);
  return One(ReshapeTo(node, std::move(x), std::move(out)));
}

Outputs Transpose(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  std::vector<int64_t> reversed;
  for (size_t i = in.size(); i-- > 0;) reversed.push_back(static_cast<int64_t>(i));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                         node.Ints("perm", std::move(reversed), static_cast<int64_t>(in.size())));
  return One(node.Call("permute_dims", {x}, {{"axes", AttrValue::Ints(axes)}}));
}

Outputs Concat(const NodeImporter& node) {
  std::vector<Expr> fields;
  std::vector<ir::Type> types;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr field, node.Input(i));
    types.push_back(field->type);
    fields.push_back(std::move(field));
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(int64_t axis, node.Int("axis", 0));
  INGOT_ASSIGN_OR_RETURN(axis, NormaliseAxis(node, axis, static_cast<int64_t>(in.size())));
  const Expr tuple = ir::Make<ir::TupleNode>(std::move(fields), ir::Make<ir::TupleTypeNode>(std::move(types)));
  return One(node.Call("concat", {tuple}, {{"axis", axis}}));
}

// NumPy's broadcasting both ways: a 1 in the shape keeps the input's dimension.
Outputs Expand(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, node.ConstantInts(1, "the shape"));
  std::vector<PrimExpr> out(std::max(in.size(), shape.size()), ir::Int64(1));
  for (size_t i = 0; i < in.size(); ++i) out[out.size() - in.size() + i] = in[i];
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0) return node.Invalid("the shape holds " + std::to_string(shape[i]));
    if (shape[i] != 1) out[out.size() - shape.size() + i] = ir::Int64(shape[i]);
  }
  return One(node.Call("broadcast_to", {x, ShapeOf(std::move(out))}));
}

// ---- Reductions

// Axes are an attribute, or an input from opset 18 on (ReduceSum: 13). Without any, all of them, or none with
// noop_with_empty_axes.
template <const auto& kRow>
Outputs Reduce(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, AxesOf(node));
  INGOT_ASSIGN_OR_RETURN(const int64_t keep, node.Int("keepdims", 1));
  INGOT_ASSIGN_OR_RETURN(const int64_t noop, node.Int("noop_with_empty_axes", 0));
  if (axes.empty() && noop != 0) return std::vector<Expr>{std::move(x)};
  const AttrValue axis = axes.empty() ? AttrValue() : AttrValue::Ints(axes);
  return One(node.Call(kRow, {x}, {{"axis", axis}, {"keepdims", keep != 0}}));
}
constexpr char kMax[] = "max";
constexpr char kMean[] = "mean";
constexpr char kMin[] = "min";
constexpr char kProd[] = "prod";
constexpr char kSum[] = "sum";

Outputs GlobalAveragePool(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  if (in.size() < 3) return node.Invalid("expected a rank of 3 or more, got " + std::to_string(in.size()));
  std::vector<int64_t> axes;
  for (size_t i = 2; i < in.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  return One(node.Call("mean", {x}, {{"axis", AttrValue::Ints(axes)}, {"keepdims", true}}));
}

// ---- Matrix products

Result<Expr> TransposedMatrix(const NodeImporter& node, Expr x) {
  return node.Bind("permute_dims", {std::move(x)}, {{"axes", AttrValue::Ints({1, 0})}});
}

// alpha * A' * B' + beta * C. A constant B takes alpha (it is folded then), otherwise the product does.
Outputs Gemm(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr a, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr b, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* a_type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* b_type, node.InputType(1));
  INGOT_ASSIGN_OR_RETURN(const double alpha, node.Float("alpha", 1));
  INGOT_ASSIGN_OR_RETURN(const double beta, node.Float("beta", 1));
  INGOT_ASSIGN_OR_RETURN(const int64_t trans_a, node.Int("transA", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t trans_b, node.Int("transB", 0));
  if (a_type->rank != 2 || b_type->rank != 2) {
    return node.Invalid("expected matrices, got ranks " + std::to_string(a_type->rank) + " and " +
                        std::to_string(b_type->rank));
  }
  const DataType dtype = *a_type->dtype;
  const bool has_bias = node.HasInput(2) && beta != 0;
  const bool b_is_constant = ir::As<ir::ConstantNode>(b) != nullptr;
  const auto scaled = [&node, dtype](Expr x, double factor) -> Result<Expr> {
    INGOT_ASSIGN_OR_RETURN(Expr scalar, node.Scalar(factor, dtype));
    return node.Bind("multiply", {std::move(x), std::move(scalar)});
  };
  if (trans_a != 0) {
    INGOT_ASSIGN_OR_RETURN(a, TransposedMatrix(node, std::move(a)));
  }
  if (alpha != 1 && b_is_constant) {
    INGOT_ASSIGN_OR_RETURN(b, scaled(std::move(b), alpha));
  }
  if (trans_b != 0) {
    INGOT_ASSIGN_OR_RETURN(b, TransposedMatrix(node, std::move(b)));
  }
  const bool scale_product = alpha != 1 && !b_is_constant;
  if (!has_bias && !scale_product) return One(node.Call("matmul", {a, b}));
  INGOT_ASSIGN_OR_RETURN(Expr product, node.Bind("matmul", {a, b}));
  if (scale_product) {
    if (!has_bias) {
      INGOT_ASSIGN_OR_RETURN(Expr scalar, node.Scalar(alpha, dtype));
      return One(node.Call("multiply", {product, scalar}));
    }
    INGOT_ASSIGN_OR_RETURN(product, scaled(std::move(product), alpha));
  }
  INGOT_ASSIGN_OR_RETURN(Expr c, node.Input(2));
  if (beta != 1) {
    INGOT_ASSIGN_OR_RETURN(c, scaled(std::move(c), beta));
  }
  return One(node.Call("add", {product, c}));
}

// ---- Convolution and pooling

// The window attributes that Conv and the pools share, for two spatial dimensions.
struct Window {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> padding;  // top, left, bottom, right: ONNX's order of pads
};

constexpr int64_t kMaxWindow = int64_t{1} << 31;  // of each figure; keeps their products inside 64 bits

Result<Window> ReadWindow(const NodeImporter& node, std::vector<int64_t> kernel, std::span<const PrimExpr> spatial) {
  Window window;
  window.kernel = std::move(kernel);
  INGOT_ASSIGN_OR_RETURN(window.strides, node.Ints("strides", {1, 1}, 2));
  INGOT_ASSIGN_OR_RETURN(window.dilations, node.Ints("dilations", {1, 1}, 2));
  INGOT_ASSIGN_OR_RETURN(const std::string auto_pad, node.String("auto_pad", "NOTSET"));
  for (const auto* figures : {&window.kernel, &window.strides, &window.dilations}) {
    for (int64_t figure : *figures) {
      if (figure < 1 || figure > kMaxWindow) {
        return node.Invalid("kernel_shape, strides and dilations must be positive, got " + std::to_string(figure));
      }
    }
  }
  if (auto_pad == "NOTSET") {
    INGOT_ASSIGN_OR_RETURN(window.padding, node.Ints("pads", {0, 0, 0, 0}, 4));
    for (int64_t pad : window.padding) {
      if (pad < 0 || pad > kMaxWindow) return node.Invalid("pads must not be negative, got " + std::to_string(pad));
    }
    return window;
  }
  window.padding = {0, 0, 0, 0};
  if (auto_pad == "VALID") return window;
  if (auto_pad != "SAME_UPPER" && auto_pad != "SAME_LOWER") return node.Invalid("auto_pad is \"" + auto_pad + "\"");
  for (size_t i = 0; i < 2; ++i) {
    const int64_t* size = ir::AsConstInt(spatial[i]);
    if (size == nullptr) return node.Unsupported("auto_pad " + auto_pad + " with a symbolic height or width");
    if (*size > kMaxWindow) return node.Invalid("a spatial dimension of " + std::to_string(*size));
    const int64_t out = *size / window.strides[i] + (*size % window.strides[i] != 0 ? 1 : 0);
    const int64_t needed = (out - 1) * window.strides[i] + (window.kernel[i] - 1) * window.dilations[i] + 1;
    const int64_t total = std::max<int64_t>(needed - *size, 0);
    const int64_t less = total / 2;
    window.padding[i] = auto_pad == "SAME_UPPER" ? less : total - less;
    window.padding[i + 2] = total - window.padding[i];
  }
  return window;
}

Outputs Conv(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr weight, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> w, StaticRankDims(node, 1));
  if (in.size() != 4) return node.Unsupported("a convolution of rank " + std::to_string(in.size()) + "; only 2-D is");
  if (w.size() != 4) return node.Invalid("weights of rank " + std::to_string(w.size()) + ", expected 4");
  std::vector<int64_t> kernel;
  for (size_t i = 2; i < 4; ++i) {
    const int64_t* size = ir::AsConstInt(w[i]);
    if (size == nullptr) return node.Unsupported("a kernel of symbolic size");
    kernel.push_back(*size);
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> stated, node.Ints("kernel_shape", kernel, 2));
  if (stated != kernel) return node.Invalid("kernel_shape differs from the weights' dimensions");
  INGOT_ASSIGN_OR_RETURN(const Window window, ReadWindow(node, kernel, std::span(in).subspan(2)));
  INGOT_ASSIGN_OR_RETURN(const int64_t groups, node.Int("group", 1));
  const ir::Attrs attrs = {{"strides", AttrValue::Ints(window.strides)},
                           {"padding", AttrValue::Ints(window.padding)},
                           {"dilation", AttrValue::Ints(window.dilations)},
                           {"groups", groups}};
  if (!node.HasInput(2)) return One(node.Call("nn.conv2d", {x, weight}, attrs));
  INGOT_ASSIGN_OR_RETURN(Expr product, node.Bind("nn.conv2d", {x, weight}, attrs));
  INGOT_ASSIGN_OR_RETURN(Expr bias, node.Input(2));
  INGOT_ASSIGN_OR_RETURN(bias, node.Bind("reshape", {bias, ShapeOf({ir::Int64(1), w[0], ir::Int64(1), ir::Int64(1)})}));
  return One(node.Call("add", {product, bias}));
}

template <const auto& kRow>
Outputs Pool(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  if (in.size() != 4) return node.Unsupported("a pool of rank " + std::to_string(in.size()) + "; only 2-D is");
  if (node.node().outputs.size() > 1 && !node.node().outputs[1].empty()) {
    return node.Unsupported("the indices output of a pool");
  }
  INGOT_ASSIGN_OR_RETURN(std::vector<int64_t> kernel, node.Ints("kernel_shape", {}, 2));
  INGOT_ASSIGN_OR_RETURN(const Window window, ReadWindow(node, std::move(kernel), std::span(in).subspan(2)));
  INGOT_ASSIGN_OR_RETURN(const int64_t ceil_mode, node.Int("ceil_mode", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t count_include_pad, node.Int("count_include_pad", 0));
  return One(node.Call(kRow, {x},
                       {{"pool_size", AttrValue::Ints(window.kernel)},
                        {"strides", AttrValue::Ints(window.strides)},
                        {"dilation", AttrValue::Ints(window.dilations)},
                        {"padding", AttrValue::Ints(window.padding)},
                        {"ceil_mode", ceil_mode != 0},
                        {"count_include_pad", count_include_pad != 0}}));
}
constexpr char kAveragePool[] = "nn.avg_pool2d";
constexpr char kMaxPool[] = "nn.max_pool2d";

// ---- Normalisation

// From opset 13 on along one axis (-1 by default). Before: the input is seen as a matrix, split at `axis` (1 by
// default), and each row is normalised.
template <const auto& kRow>
Outputs Softmax(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  const int64_t rank = static_cast<int64_t>(in.size());
  const bool as_matrix = node.opset() < 13;
  INGOT_ASSIGN_OR_RETURN(int64_t axis, node.Int("axis", as_matrix ? 1 : -1));
  INGOT_ASSIGN_OR_RETURN(axis, NormaliseAxis(node, axis, rank, as_matrix));
  if (!as_matrix || axis == rank - 1) return One(node.Call(kRow, {x}, {{"axis", axis}}));
  const std::span<const PrimExpr> dims(in);
  INGOT_ASSIGN_OR_RETURN(Expr matrix,
                         node.Bind("reshape", {x, ShapeOf({Product(dims.first(axis)), Product(dims.subspan(axis))})}));
  INGOT_ASSIGN_OR_RETURN(matrix, node.Bind(kRow, {matrix}, {{"axis", int64_t{1}}}));
  return One(ReshapeTo(node, std::move(matrix), in));
}

constexpr char kLogSoftmax[] = "nn.log_softmax";
constexpr char kSoftmax[] = "nn.softmax";

// At inference y = x * (scale / sqrt(variance + epsilon)) + (bias - mean * ...): the factors depend on weights alone
// and fold.
Outputs BatchNormalization(const NodeImporter& node) {
  if (node.node().outputs.size() > 1) {
    for (size_t i = 1; i < node.node().outputs.size(); ++i) {
      if (!node.node().outputs[i].empty()) return node.Unsupported("the training outputs of BatchNormalization");
    }
  }
  INGOT_ASSIGN_OR_RETURN(const int64_t training, node.Int("training_mode", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t spatial, node.Int("spatial", 1));
  if (training != 0 || spatial != 1) return node.Unsupported("training_mode or spatial=0");
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  if (in.size() < 2) return node.Invalid("expected a rank of 2 or more, got " + std::to_string(in.size()));
  INGOT_ASSIGN_OR_RETURN(Expr scale, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(Expr bias, node.Input(2));
  INGOT_ASSIGN_OR_RETURN(Expr mean, node.Input(3));
  INGOT_ASSIGN_OR_RETURN(Expr variance, node.Input(4));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* variance_type, node.InputType(4));
  INGOT_ASSIGN_OR_RETURN(const double epsilon, node.Float("epsilon", 1e-5f));
  INGOT_ASSIGN_OR_RETURN(Expr epsilon_scalar, node.Scalar(epsilon, *variance_type->dtype));
  INGOT_ASSIGN_OR_RETURN(Expr deviation, node.Bind("add", {variance, epsilon_scalar}));
  INGOT_ASSIGN_OR_RETURN(deviation, node.Bind("sqrt", {deviation}));
  INGOT_ASSIGN_OR_RETURN(Expr factor, node.Bind("divide", {scale, deviation}));
  INGOT_ASSIGN_OR_RETURN(Expr shift, node.Bind("multiply", {mean, factor}));
  INGOT_ASSIGN_OR_RETURN(shift, node.Bind("subtract", {bias, shift}));
  std::vector<PrimExpr> channel_dims(in.size() - 1, ir::Int64(1));
  channel_dims[0] = in[1];
  INGOT_ASSIGN_OR_RETURN(factor, node.Bind("reshape", {factor, ShapeOf(channel_dims)}));
  INGOT_ASSIGN_OR_RETURN(shift, node.Bind("reshape", {shift, ShapeOf(channel_dims)}));
  INGOT_ASSIGN_OR_RETURN(Expr scaled, node.Bind("multiply", {x, factor}));
  return One(node.Call("add", {scaled, shift}));
}

// ---- The table, ordered by name

constexpr OnnxOpRow kRows[] = {
    {"Abs", "abs"},
    {"Add", "add"},
    {"And", "logical_and"},
    {"AveragePool", nullptr, Pool<kAveragePool>},
    {"BatchNormalization", nullptr, BatchNormalization},
    {"BitwiseNot", "bitwise_not"},
    {"Cast", nullptr, Cast},
    {"Ceil", "ceil"},
    {"Clip", nullptr, Clip},
    {"Concat", nullptr, Concat},
    {"Constant", nullptr, Constant},
    {"Conv", nullptr, Conv},
    {"Cos", "cos"},
    {"Div", "divide"},
    {"Dropout", nullptr, Dropout},
    {"Equal", "equal"},
    {"Erf", "erf"},
    {"Exp", "exp"},
    {"Expand", nullptr, Expand},
    {"Flatten", nullptr, Flatten},
    {"Floor", "floor"},
    {"Gelu", nullptr, Gelu},
    {"Gemm", nullptr, Gemm},
    {"GlobalAveragePool", nullptr, GlobalAveragePool},
    {"Greater", "greater"},
    {"GreaterOrEqual", "greater_equal"},
    {"Identity", nullptr, Identity},
    {"IsNaN", "isnan"},
    {"LeakyRelu", nullptr, LeakyRelu},
    {"Less", "less"},
    {"LessOrEqual", "less_equal"},
    {"Log", "log"},
    {"LogSoftmax", nullptr, Softmax<kLogSoftmax>},
    {"MatMul", "matmul"},
    {"Max", nullptr, Chain<kMaximum>},
    {"MaxPool", nullptr, Pool<kMaxPool>},
    {"Min", nullptr, Chain<kMinimum>},
    {"Mul", "multiply"},
    {"Neg", "negative"},
    {"Not", "logical_not"},
    {"Or", "logical_or"},
    {"Pow", nullptr, Pow},
    {"ReduceMax", nullptr, Reduce<kMax>},
    {"ReduceMean", nullptr, Reduce<kMean>},
    {"ReduceMin", nullptr, Reduce<kMin>},
    {"ReduceProd", nullptr, Reduce<kProd>},
    {"ReduceSum", nullptr, Reduce<kSum>},
    {"Relu", "nn.relu"},
    {"Reshape", nullptr, Reshape},
    {"Round", "round"},
    {"Sigmoid", "sigmoid"},
    {"Sign", "sign"},
    {"Sin", "sin"},
    {"Softmax", nullptr, Softmax<kSoftmax>},
    {"Sqrt", "sqrt"},
    {"Squeeze", nullptr, Squeeze},
    {"Sub", "subtract"},
    {"Sum", nullptr, Chain<kAdd>},
    {"Tan", "tan"},
    {"Tanh", "tanh"},
    {"Transpose", nullptr, Transpose},
    {"Unsqueeze", nullptr, Unsqueeze},
    {"Where", "where"},
    {"Xor", "logical_xor"},
};

}  // namespace

std::span<const OnnxOpRow> OnnxOps() { return kRows; }

const OnnxOpRow* FindOnnxOp(std::string_view op_type) {
  const auto* row = std::lower_bound(std::begin(kRows), std::end(kRows), op_type,
                                     [](const OnnxOpRow& r, std::string_view name) { return r.op_type < name; });
  return row != std::end(kRows) && row->op_type == op_type ? row : nullptr;
}

Outputs ImportOnnxNode(const OnnxOpRow& row, const NodeImporter& node) {
  if (row.import != nullptr) return row.import(node);
  std::vector<Expr> args;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr arg, node.Input(i));
    args.push_back(std::move(arg));
  }
  return One(node.Call(row.row, std::move(args)));
}

}  // namespace ingot::importer
