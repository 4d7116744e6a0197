// com.microsoft's quantised operators, which onnxruntime.quantization writes: products of integers of which the result
// is a float, and operators between a DequantizeLinear and a QuantizeLinear. An LSTM of quantised weights multiplies
// bytes where these are signed and known; else weights that are dequantised, with states that are not rounded at each
// step.
#include <algorithm>

#include "compiler/importer/ops/contrib.h"
#include "compiler/importer/ops/families.h"

namespace ingot::importer {
namespace {

const DataType kReal = DataType::Float(32);

// ---- products

// Returns the product of integers without their zero points (null: 0), in int32.
Result<Expr> IntegerProduct(const NodeImporter& node, const Expr& a, const Expr& b, const Expr& a_zero,
                            const Expr& b_zero) {
  return Apply(node, "MatMulInteger", {a, b, a_zero, b_zero});
}

// Returns a product of integers times both scales.
Result<Expr> Scaled(const NodeImporter& node, Expr product, const Expr& a_scale, const Expr& b_scale) {
  INGOT_ASSIGN_OR_RETURN(product, CastTo(node, std::move(product), kReal));
  INGOT_ASSIGN_OR_RETURN(const Expr scale, node.Bind("multiply", {a_scale, b_scale}));
  return node.Bind("multiply", {product, scale});
}

// Returns a product plus a bias of its columns, [N] or a row of it, an input that may be left out; b has the second factor's dims.
Result<Expr> PlusBias(const NodeImporter& node, Expr product, size_t bias, const std::vector<PrimExpr>& b) {
  if (!node.HasInput(bias)) return product;
  if (b.size() < 2) return node.Unsupported("a bias beside a product with a vector");
  INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> dims, StaticRankDims(node, bias));
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = i + 1 < dims.size() ? ir::Int64(1) : b.back();
  if (dims.empty() || dims.size() > b.size()) return node.Invalid("expected a bias of the result's columns");
  INGOT_ASSIGN_OR_RETURN(const Expr numbers, InputOfDims(node, bias, dims));
  return node.Bind("add", {product, numbers});
}

// Inputs: A, B, the scale of each, the zero point of each, and a bias.
Outputs MatMulIntegerToFloat(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {}));
  std::vector<Expr> in;
  for (size_t i : {0, 1, 4, 5}) {
    INGOT_ASSIGN_OR_RETURN(Expr input, InputOrNull(node, i));
    in.push_back(std::move(input));
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> b, StaticRankDims(node, 1));
  INGOT_ASSIGN_OR_RETURN(Expr product, IntegerProduct(node, in[0], in[1], in[2], in[3]));
  INGOT_ASSIGN_OR_RETURN(const Expr a_scale, OneNumber(node, 2));
  INGOT_ASSIGN_OR_RETURN(const Expr b_scale, OfMatrix(node, 3, b));
  INGOT_ASSIGN_OR_RETURN(product, Scaled(node, std::move(product), a_scale, b_scale));
  return One(PlusBias(node, std::move(product), 6, b));
}

// Inputs: A, which is quantised by its own range, B, its scale and zero point, and a bias.
Outputs DynamicQuantizeMatMul(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {}));
  INGOT_ASSIGN_OR_RETURN(const Expr a, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const Expr b, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 1));
  INGOT_ASSIGN_OR_RETURN(const Expr b_scale, OfMatrix(node, 2, dims));
  INGOT_ASSIGN_OR_RETURN(const Expr b_zero, InputOrNull(node, 3));
  INGOT_ASSIGN_OR_RETURN(const std::vector<Expr> quantised,
                         ApplyAll(node, "DynamicQuantizeLinear", {a}, {}, {"q", "scale", "zero"}));
  INGOT_ASSIGN_OR_RETURN(Expr product, IntegerProduct(node, quantised[0], b, quantised[2], b_zero));
  INGOT_ASSIGN_OR_RETURN(product, Scaled(node, std::move(product), quantised[1], b_scale));
  return One(PlusBias(node, std::move(product), 4, dims));
}

// Inputs: A, its scale and zero point, B, its scale and zero point, C in int32 of both scales, and the result's scale
// and zero point; without the scale the result is a float.
Outputs QGemm(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"alpha", "transA", "transB"}));
  INGOT_ASSIGN_OR_RETURN(const int64_t trans_a, node.Int("transA", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t trans_b, node.Int("transB", 0));
  INGOT_ASSIGN_OR_RETURN(const double alpha, node.Float("alpha", 1));
  std::vector<Expr> in;
  for (size_t i = 0; i < 9; ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr input, InputOrNull(node, i));
    in.push_back(std::move(input));
  }
  for (const auto& [place, transposed] : {std::pair<size_t, int64_t>(0, trans_a), {3, trans_b}}) {
    if (transposed == 0) continue;
    INGOT_ASSIGN_OR_RETURN(in[place], Apply(node, "Transpose", {in[place]}));
  }
  INGOT_ASSIGN_OR_RETURN(Expr product, IntegerProduct(node, in[0], in[3], in[2], in[5]));
  if (in[6] != nullptr) {
    INGOT_ASSIGN_OR_RETURN(in[6], BroadcastInto(node, in[6], DimsOf(product)));
    INGOT_ASSIGN_OR_RETURN(product, node.Bind("add", {product, in[6]}));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr a_scale, OneNumber(node, 1));
  INGOT_ASSIGN_OR_RETURN(const Expr b_scale, OfMatrix(node, 4, DimsOf(in[3])));
  INGOT_ASSIGN_OR_RETURN(product, Scaled(node, std::move(product), a_scale, b_scale));
  if (alpha != 1) {
    INGOT_ASSIGN_OR_RETURN(const Expr factor, node.Scalar(alpha, kReal));
    INGOT_ASSIGN_OR_RETURN(product, node.Bind("multiply", {product, factor}));
  }
  if (in[7] == nullptr) return One(std::move(product));
  return One(Apply(node, "QuantizeLinear", {product, in[7], in[8]}));
}

// ---- between DequantizeLinear and QuantizeLinear

// Returns input i, its scale (i + 1) and its zero point (i + 2) as floats.
Result<Expr> Dequantised(const NodeImporter& node, size_t i) {
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(i));
  INGOT_ASSIGN_OR_RETURN(const Expr scale, node.Input(i + 1));
  INGOT_ASSIGN_OR_RETURN(const Expr zero, InputOrNull(node, i + 2));
  return Apply(node, "DequantizeLinear", {x, scale, zero});
}

// Returns y quantised by the scale (input i) and the zero point (i + 1, or 0), in the dtype of input 0.
Outputs Quantised(const NodeImporter& node, const Expr& y, size_t i, size_t like) {
  constexpr int64_t kUInt8 = 2, kInt8 = 3;  // of TensorProto.DataType
  INGOT_ASSIGN_OR_RETURN(const Expr scale, node.Input(i));
  INGOT_ASSIGN_OR_RETURN(const Expr zero, InputOrNull(node, i + 1));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(like));
  Attributes attributes;
  if (zero == nullptr) attributes = {AttributeOf("output_dtype", type->dtype->is_int() ? kInt8 : kUInt8)};
  return One(Apply(node, "QuantizeLinear", {y, scale, zero}, std::move(attributes)));
}

// The same, of a kernel that adds the zero point before it rounds: halves are rounded to even sums.
Outputs RoundedSum(const NodeImporter& node, Expr y, size_t i) {
  INGOT_ASSIGN_OR_RETURN(const Expr scale, node.Input(i));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(y, node.Bind("divide", {y, scale}));
  if (node.HasInput(i + 1)) {
    INGOT_ASSIGN_OR_RETURN(Expr zero, node.Input(i + 1));
    INGOT_ASSIGN_OR_RETURN(zero, CastTo(node, std::move(zero), kReal));
    INGOT_ASSIGN_OR_RETURN(y, node.Bind("add", {y, zero}));
  }
  INGOT_ASSIGN_OR_RETURN(y, node.Bind("round", {y}));
  const bool is_signed = type->dtype->is_int();
  const auto limit = [](double value) -> Expr {
    return ir::Make<ir::PrimValueNode>(ir::FloatImm(DataType::Float(32), value));
  };
  INGOT_ASSIGN_OR_RETURN(y, node.Bind("clip", {y, limit(is_signed ? -128 : 0), limit(is_signed ? 127 : 255)}));
  return One(node.Call("astype", {y}, {{"dtype", *type->dtype}}));
}

template <const auto& kOp>
Outputs QLinearBinary(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {}));
  INGOT_ASSIGN_OR_RETURN(const Expr a, Dequantised(node, 0));
  INGOT_ASSIGN_OR_RETURN(const Expr b, Dequantised(node, 3));
  INGOT_ASSIGN_OR_RETURN(const Expr y, Apply(node, kOp, {a, b}));
  return RoundedSum(node, y, 6);
}
constexpr char kQLinearAdd[] = "Add";
constexpr char kQLinearMul[] = "Mul";

Outputs QLinearSigmoid(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {}));
  INGOT_ASSIGN_OR_RETURN(const Expr x, Dequantised(node, 0));
  INGOT_ASSIGN_OR_RETURN(const Expr y, Apply(node, "Sigmoid", {x}));
  return Quantised(node, y, 3, 0);
}

Outputs QLinearLeakyRelu(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"alpha"}));
  INGOT_ASSIGN_OR_RETURN(const Expr x, Dequantised(node, 0));
  INGOT_ASSIGN_OR_RETURN(const Expr y, Apply(node, "LeakyRelu", {x}, Copied(node, {"alpha"})));
  return Quantised(node, y, 3, 0);
}

// The attribute `opset` says which meaning of the axis is meant.
Outputs QLinearSoftmax(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"axis", "opset"}));
  INGOT_ASSIGN_OR_RETURN(const int64_t opset, node.Int("opset", 0));
  if (opset < 7 || opset > kLatestOpset) return node.Unsupported("opset " + std::to_string(opset));
  INGOT_ASSIGN_OR_RETURN(const Expr x, Dequantised(node, 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t axis, node.Int("axis", -1));
  INGOT_ASSIGN_OR_RETURN(const Expr y, Apply(node, "Softmax", {x}, {AttributeOf("axis", axis)}, opset));
  return Quantised(node, y, 3, 0);
}

// Inputs: the result's scale and zero point, then each part, its scale and its zero point.
Outputs QLinearConcat(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"axis"}));
  if (node.num_inputs() < 5 || node.num_inputs() % 3 != 2) return node.Invalid("expected three inputs per part");
  std::vector<Expr> parts;
  for (size_t i = 2; i < node.num_inputs(); i += 3) {
    INGOT_ASSIGN_OR_RETURN(Expr part, Dequantised(node, i));
    parts.push_back(std::move(part));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr y, Apply(node, "Concat", parts, Copied(node, {"axis"})));
  return Quantised(node, y, 0, 2);
}

// Moves the channels of a picture to axis 1, or back to the end.
Result<Expr> MoveChannels(const NodeImporter& node, const Expr& x, bool to_front) {
  const auto rank = static_cast<int64_t>(DimsOf(x).size());
  std::vector<int64_t> axes = {0};
  if (to_front) axes.push_back(rank - 1);
  for (int64_t axis = to_front ? 1 : 2; axis < rank - (to_front ? 1 : 0); ++axis) axes.push_back(axis);
  if (!to_front) axes.push_back(1);
  return node.Bind("permute_dims", {x}, {{"axes", AttrValue::Ints(axes)}});
}

// Where windows count what they have beyond the padding, too, which AveragePool does not: the data with zeros as far as
// the last window reaches, and the attributes of a pool over it. x has its channels on axis 1.
Result<Expr> PaddedForWindows(const NodeImporter& node, const Expr& x, Attributes* attributes) {
  const std::vector<PrimExpr> dims = DimsOf(x);
  const int64_t spatial = std::ssize(dims) - 2;
  if (spatial < 1) return node.Invalid("windows over data of rank " + std::to_string(dims.size()));
  INGOT_ASSIGN_OR_RETURN(const std::string auto_pad, node.String("auto_pad", "NOTSET"));
  if (auto_pad != "NOTSET") return node.Unsupported("ceil_mode and count_include_pad beside auto_pad");
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> kernel, node.Ints("kernel_shape", {}, spatial));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> strides,
                         node.Ints("strides", std::vector<int64_t>(static_cast<size_t>(spatial), 1), spatial));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> pads,
                         node.Ints("pads", std::vector<int64_t>(2 * static_cast<size_t>(spatial), 0), 2 * spatial));
  std::vector<int64_t> widths = {0, 0, 0, 0};
  for (size_t i = 0; i < kernel.size(); ++i) {
    const auto length = ir::AsConstInt(dims[i + 2]);
    if (!length) return node.Unsupported("ceil_mode beside count_include_pad over a symbolic dimension");
    constexpr int64_t kMost = int64_t{1} << 31;
    const int64_t k = kernel[i], stride = strides[i], before = pads[i], after = pads[i + kernel.size()];
    const auto fits = [](int64_t value, int64_t least) { return value >= least && value <= kMost; };
    if (!fits(k, 1) || !fits(stride, 1) || !fits(before, 0) || !fits(after, 0)) {
      return node.Invalid("kernel_shape, strides or pads are no lengths");
    }
    const int64_t room = *length + before + after - k;
    if (room <= -stride) return node.Invalid("a window that is longer than the data");
    int64_t steps = (room + stride - 1) / stride;
    if (steps * stride >= *length + before) --steps;  // a window begins in the data or before it
    widths.insert(widths.end(), {before, after + std::max<int64_t>(steps * stride - room, 0)});
  }
  *attributes = Copied(node, {"kernel_shape", "strides"});
  return node.Bind("nn.pad", {x},
                   {{"pad_width", AttrValue::Ints(widths)}, {"pad_value", 0.0}, {"pad_mode", "constant"}});
}

template <const auto& kOp, bool sums_first>
Outputs QLinearPool(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(
      node, {"auto_pad", "ceil_mode", "channels_last", "count_include_pad", "kernel_shape", "pads", "strides"}));
  INGOT_ASSIGN_OR_RETURN(const int64_t channels_last, node.Int("channels_last", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t ceil_mode, node.Int("ceil_mode", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t counts_padding, node.Int("count_include_pad", 0));
  INGOT_RETURN_IF_ERROR(StaticRankDims(node, 0).status());
  INGOT_ASSIGN_OR_RETURN(Expr x, Dequantised(node, 0));
  if (channels_last != 0) {
    INGOT_ASSIGN_OR_RETURN(x, MoveChannels(node, x, true));
  }
  Attributes attributes =
      Copied(node, {"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"});
  if (sums_first && ceil_mode != 0 && counts_padding != 0) {
    INGOT_ASSIGN_OR_RETURN(x, PaddedForWindows(node, x, &attributes));
  }
  INGOT_ASSIGN_OR_RETURN(Expr y, Apply(node, kOp, {x}, std::move(attributes)));
  if (channels_last != 0) {
    INGOT_ASSIGN_OR_RETURN(y, MoveChannels(node, y, false));
  }
  return sums_first ? RoundedSum(node, y, 3) : Quantised(node, y, 3, 0);
}
constexpr char kQLinearAverage[] = "AveragePool";
constexpr char kQLinearGlobal[] = "GlobalAveragePool";

// A convolution of quantised numbers whose channels may come last; inputs and weights are those of QLinearConv.
Outputs QLinearConvOfAnyLayout(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(
      CheckAttributes(node, {"auto_pad", "channels_last", "dilations", "group", "kernel_shape", "pads", "strides"}));
  INGOT_ASSIGN_OR_RETURN(const int64_t channels_last, node.Int("channels_last", 0));
  INGOT_RETURN_IF_ERROR(StaticRankDims(node, 0).status());
  std::vector<Expr> in;
  for (size_t i = 0; i < 9; ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr input, InputOrNull(node, i));
    in.push_back(std::move(input));
  }
  if (channels_last != 0) {
    INGOT_ASSIGN_OR_RETURN(in[0], MoveChannels(node, in[0], true));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr y,
                         Apply(node, "QLinearConv", in,
                               Copied(node, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"})));
  return One(channels_last != 0 ? MoveChannels(node, y, false) : y);
}

// The greatest of each window of a picture whose channels come last.
Outputs NhwcMaxPool(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(
      CheckAttributes(node, {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"}));
  INGOT_RETURN_IF_ERROR(StaticRankDims(node, 0).status());
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(x, MoveChannels(node, x, true));
  INGOT_ASSIGN_OR_RETURN(const Expr y, Apply(node, "MaxPool", {x}, node.node().attributes));
  return One(MoveChannels(node, y, false));
}

// Inputs: the condition, each choice with its scale and zero point, and those of the result.
Outputs QLinearWhere(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {}));
  INGOT_ASSIGN_OR_RETURN(const Expr condition, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const Expr x, Dequantised(node, 1));
  INGOT_ASSIGN_OR_RETURN(const Expr y, Dequantised(node, 4));
  INGOT_ASSIGN_OR_RETURN(const Expr z, Apply(node, "Where", {condition, x, y}));
  return Quantised(node, z, 7, 1);
}

// ---- LSTM

// Returns weights [directions, rows, 4 * hidden] as floats [directions, 4 * hidden, rows]: one scale and zero point per
// direction, or per direction and column.
Result<Expr> LstmWeights(const NodeImporter& node, size_t input, size_t scale) {
  INGOT_ASSIGN_OR_RETURN(Expr w, node.Input(input));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, input));
  if (dims.size() != 3) return node.Invalid("expected W and R of rank 3");
  INGOT_ASSIGN_OR_RETURN(w, CastTo(node, std::move(w), kReal));
  for (const auto& [place, row] : {std::pair<size_t, const char*>(scale + 1, "subtract"), {scale, "multiply"}}) {
    INGOT_ASSIGN_OR_RETURN(Expr param, node.Input(place));
    INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> own, StaticRankDims(node, place));
    if (own.empty() || own.size() > 2)
      return node.Invalid("a scale or zero point of rank " + std::to_string(own.size()));
    if (own.size() == 1) own.push_back(ir::Int64(1));
    own.insert(own.begin() + 1, ir::Int64(1));
    INGOT_ASSIGN_OR_RETURN(param, CastTo(node, std::move(param), kReal));
    INGOT_ASSIGN_OR_RETURN(param, node.Bind("reshape", {param, ShapeOf(own)}));
    INGOT_ASSIGN_OR_RETURN(param, BroadcastInto(node, std::move(param), dims));
    INGOT_ASSIGN_OR_RETURN(w, node.Bind(row, {w, param}));
  }
  return node.Bind("permute_dims", {w}, {{"axes", AttrValue::Ints({0, 2, 1})}});
}

// Returns x rounded to the 256 numbers of its range.
Result<Expr> RoundedToRange(const NodeImporter& node, const Expr& x) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<Expr> quantised,
                         ApplyAll(node, "DynamicQuantizeLinear", {x}, {}, {"q", "scale", "zero"}));
  return Apply(node, "DequantizeLinear", quantised);
}

// Inputs: those of LSTM, and the scale and zero point of W and of R.
Outputs DynamicQuantizeLstm(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"activation_alpha", "activation_beta", "activations", "clip",
                                               "direction", "hidden_size", "input_forget"}));
  INGOT_RETURN_IF_ERROR(StaticRankDims(node, 0).status());
  if (std::optional<Outputs> outputs = LstmOfBytes(node)) return *std::move(outputs);
  std::vector<Expr> in;
  for (size_t i = 0; i < 8; ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr input, InputOrNull(node, i));
    in.push_back(std::move(input));
  }
  INGOT_ASSIGN_OR_RETURN(in[0], RoundedToRange(node, in[0]));
  INGOT_ASSIGN_OR_RETURN(in[1], LstmWeights(node, 1, 8));
  INGOT_ASSIGN_OR_RETURN(in[2], LstmWeights(node, 2, 10));
  return ApplyAll(node, "LSTM", in, node.node().attributes, node.node().outputs);
}

constexpr OnnxOpRow kQLinearRows[] = {
    {"DynamicQuantizeLSTM", nullptr, DynamicQuantizeLstm, kMicrosoft},
    {"DynamicQuantizeMatMul", nullptr, DynamicQuantizeMatMul, kMicrosoft},
    {"MatMulIntegerToFloat", nullptr, MatMulIntegerToFloat, kMicrosoft},
    {"NhwcMaxPool", nullptr, NhwcMaxPool, kMicrosoft},
    {"QGemm", nullptr, QGemm, kMicrosoft},
    {"QLinearAdd", nullptr, QLinearBinary<kQLinearAdd>, kMicrosoft},
    {"QLinearAveragePool", nullptr, QLinearPool<kQLinearAverage, true>, kMicrosoft},
    {"QLinearConcat", nullptr, QLinearConcat, kMicrosoft},
    {"QLinearConv", nullptr, QLinearConvOfAnyLayout, kMicrosoft},
    {"QLinearGlobalAveragePool", nullptr, QLinearPool<kQLinearGlobal, false>, kMicrosoft},
    {"QLinearLeakyRelu", nullptr, QLinearLeakyRelu, kMicrosoft},
    {"QLinearMul", nullptr, QLinearBinary<kQLinearMul>, kMicrosoft},
    {"QLinearSigmoid", nullptr, QLinearSigmoid, kMicrosoft},
    {"QLinearSoftmax", nullptr, QLinearSoftmax, kMicrosoft},
    {"QLinearWhere", nullptr, QLinearWhere, kMicrosoft},
};

}  // namespace

std::span<const OnnxOpRow> QLinearOnnxOps() { return kQLinearRows; }

}  // namespace ingot::importer
