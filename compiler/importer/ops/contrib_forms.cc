// com.microsoft's operators that ONNX's own domain has, too: what ONNX Runtime's quantiser writes for models of opsets
// that lack 4 and 16 bits, older names and other forms, and distances of rows. They are imported as ONNX's own.
#include <algorithm>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/contrib.h"
#include "compiler/importer/ops/families.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

// An operator of the same name, inputs and attributes, as this opset has it.
template <const auto& kOp, int64_t opset = kLatestOpset>
Outputs SameForm(const NodeImporter& node) {
  std::vector<Expr> in;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr input, InputOrNull(node, i));
    in.push_back(std::move(input));
  }
  return One(Apply(node, kOp, in, node.node().attributes, opset));
}
constexpr char kQuantize[] = "QuantizeLinear";
constexpr char kDequantize[] = "DequantizeLinear";
constexpr char kGatherNd[] = "GatherND";
constexpr char kGridSample[] = "GridSample";
constexpr char kTrilu[] = "Trilu";

// Distances between the rows of A [m, k] and those of B [n, k], as ONNX Runtime computes them: |a|^2 + |b|^2 - 2 a b,
// and 0 where rounding makes less of it.
Outputs CDist(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"metric"}));
  INGOT_ASSIGN_OR_RETURN(const std::string metric, node.String("metric", "sqeuclidean"));
  if (metric != "sqeuclidean" && metric != "euclidean") return node.Unsupported("metric \"" + metric + "\"");
  std::vector<Expr> rows, squares;
  for (size_t i : {0, 1}) {
    INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(i));
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, i));
    if (dims.size() != 2) return node.Invalid("expected matrices, got rank " + std::to_string(dims.size()));
    INGOT_ASSIGN_OR_RETURN(Expr square, node.Bind("multiply", {x, x}));
    INGOT_ASSIGN_OR_RETURN(square, node.Bind("sum", {square}, {{"axis", AttrValue::Ints({1})}, {"keepdims", i == 0}}));
    rows.push_back(std::move(x));
    squares.push_back(std::move(square));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr turned, node.Bind("permute_dims", {rows[1]}, {{"axes", AttrValue::Ints({1, 0})}}));
  INGOT_ASSIGN_OR_RETURN(Expr product, node.Bind("matmul", {rows[0], turned}));
  INGOT_ASSIGN_OR_RETURN(const Expr two, node.Scalar(2, DTypeOf(product)));
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, DTypeOf(product)));
  INGOT_ASSIGN_OR_RETURN(product, node.Bind("multiply", {product, two}));
  INGOT_ASSIGN_OR_RETURN(const Expr sum, node.Bind("add", {squares[0], squares[1]}));
  INGOT_ASSIGN_OR_RETURN(Expr distance, node.Bind("subtract", {sum, product}));
  INGOT_ASSIGN_OR_RETURN(distance, node.Bind("maximum", {distance, zero}));
  if (metric == "sqeuclidean") return One(std::move(distance));
  return One(node.Call("sqrt", {distance}));
}

// What a tensor of one number, or of one row, holds, of rank 0 or 1; a constant stays one.
Result<Expr> OfRank(const NodeImporter& node, const Expr& x, std::vector<PrimExpr> dims) {
  const auto* constant = ir::As<ir::ConstantNode>(x);
  std::vector<int64_t> lengths;
  for (const PrimExpr& dim : dims) lengths.push_back(ir::AsConstInt(dim).value_or(-1));
  if (constant == nullptr || std::ranges::find(lengths, -1) != lengths.end()) {
    return node.Bind("reshape", {x, ShapeOf(std::move(dims))});
  }
  const std::span<const std::byte> bytes = constant->data->bytes();
  return Expr(ir::Make<ir::ConstantNode>(
      ir::ConstantData::FromBytes(constant->data->dtype(), std::move(lengths), {bytes.begin(), bytes.end()})));
}

// Inputs: the data, the widths (which may be one row of a matrix), and the value that is added.
Outputs MsPad(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"mode"}));
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr widths, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 1));
  if (dims.size() == 2) {
    if (op::DimsDiffer(dims[0], ir::Int64(1))) return node.Invalid("expected one row of widths");
    INGOT_ASSIGN_OR_RETURN(widths, OfRank(node, WithDims(node, widths, {ir::Int64(1), dims[1]}), {dims[1]}));
  }
  INGOT_ASSIGN_OR_RETURN(Expr value, InputOrNull(node, 2));
  if (value != nullptr) {
    INGOT_RETURN_IF_ERROR(StaticRankDims(node, 2).status());
    if (op::DimsDiffer(Product(DimsOf(value)), ir::Int64(1))) return node.Invalid("expected one value");
    INGOT_ASSIGN_OR_RETURN(value, OfRank(node, value, {}));
  }
  return One(Apply(node, "Pad", {x, widths, value}, Copied(node, {"mode"})));
}

// Inputs: the first number, the limit, and the step, which is 1 if it is left out.
Outputs MsRange(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {}));
  INGOT_ASSIGN_OR_RETURN(const Expr start, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const Expr limit, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(Expr step, InputOrNull(node, 2));
  if (step == nullptr) {
    INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
    const DataType dtype = *type->dtype;
    if (dtype == DataType::Float(64)) step = ConstantOf<double>(dtype, {}, {1});
    if (dtype == DataType::Float(32)) step = ConstantOf<float>(dtype, {}, {1});
    if (dtype == DataType::Int(64)) step = ConstantOf<int64_t>(dtype, {}, {1});
    if (dtype == DataType::Int(32)) step = ConstantOf<int32_t>(dtype, {}, {1});
    if (dtype == DataType::Int(16)) step = ConstantOf<int16_t>(dtype, {}, {1});
    if (step == nullptr) return node.Invalid("numbers of " + dtype.ToString());
  }
  return One(Apply(node, "Range", {start, limit, step}));
}

// Outputs: the elements in the order in which they occur first, the place of each of the data's among these, and how
// often each occurs.
Outputs MsUnique(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {}));
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  if (dims.size() != 1) return node.Invalid("expected a rank of 1, got " + std::to_string(dims.size()));
  INGOT_ASSIGN_OR_RETURN(
      const std::vector<Expr> found,
      ApplyAll(node, "Unique", {x}, {AttributeOf("sorted", int64_t{0})}, {"y", "indices", "inverse", "counts"}));
  return std::vector<Expr>{found.at(0), found.at(2), found.at(3)};
}

Outputs ExpandDims(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {}));
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, node.ConstantInts(1, "the axis"));
  if (axes.size() != 1) return node.Invalid("expected one axis");
  constexpr int64_t kByAttribute = 11;
  return One(Apply(node, "Unsqueeze", {x}, {AttributeOf("axes", axes)}, kByAttribute));
}

// All parts of `size` elements of an axis, each `step` from the last one; the elements of a part lie along a new last axis.
Outputs UnfoldTensor(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"dim", "size", "step"}));
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(node, "dim", -1));
  INGOT_ASSIGN_OR_RETURN(const int64_t size, node.Int("size", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t step, node.Int("step", 1));
  constexpr int64_t kLongest = int64_t{1} << 32;
  if (size < 1 || size > kLongest || step < 1 || step > kLongest) {
    return node.Invalid("size or step is no length");
  }
  const PrimExpr one = ir::Int64(1), zero = ir::Int64(0), &length = dims[static_cast<size_t>(axis)];
  if (const auto known = ir::AsConstInt(length); known && *known < size) {
    return node.Invalid("parts of " + std::to_string(size) + " elements of an axis of " + std::to_string(*known));
  }
  // An axis that is shorter has no part, where ONNX Runtime gives none either, but an error.
  const PrimExpr count =
      op::SimplifyDim(ir::FloorDiv(ir::Max(length - ir::Int64(size) + ir::Int64(step), zero), ir::Int64(step)));
  const auto range = [&](const PrimExpr& many, std::vector<PrimExpr> own) -> Result<Expr> {
    INGOT_ASSIGN_OR_RETURN(const Expr numbers, node.Bind("arange", {Number(zero), Number(many), Number(one)},
                                                         {{"dtype", DataType::Int(64)}}));
    return node.Bind("reshape", {numbers, ShapeOf(std::move(own))});
  };
  INGOT_ASSIGN_OR_RETURN(Expr begins, range(count, {count, one}));
  INGOT_ASSIGN_OR_RETURN(const Expr stride, node.Scalar(step, DataType::Int(64)));
  INGOT_ASSIGN_OR_RETURN(begins, node.Bind("multiply", {begins, stride}));
  INGOT_ASSIGN_OR_RETURN(const Expr inside, range(ir::Int64(size), {one, ir::Int64(size)}));
  INGOT_ASSIGN_OR_RETURN(const Expr places, node.Bind("add", {begins, inside}));
  INGOT_ASSIGN_OR_RETURN(const Expr parts, node.Bind("take", {x, places}, {{"axis", axis}}));
  std::vector<int64_t> order;
  for (int64_t i = 0; i <= std::ssize(dims); ++i) {
    if (i != axis + 1) order.push_back(i);
  }
  order.push_back(axis + 1);
  return One(Permuted(node, parts, order));
}

// Products of numbers of 16 bits, in 32: those of unsigned ones are unsigned.
Outputs MatMulInteger16(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {}));
  std::vector<Expr> operands;
  bool is_signed = false;
  for (size_t i : {0, 1}) {
    INGOT_ASSIGN_OR_RETURN(operands.emplace_back(), node.Input(i));
    INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(i));
    is_signed = is_signed || type->dtype->is_int();
  }
  for (Expr& x : operands) {
    INGOT_ASSIGN_OR_RETURN(x, CastTo(node, std::move(x), is_signed ? DataType::Int(32) : DataType::UInt(32)));
  }
  return One(node.Call("matmul", std::move(operands)));
}

// An embedding in training: what only its gradient reads is left out.
Outputs TorchEmbedding(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {}));
  INGOT_ASSIGN_OR_RETURN(const Expr table, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const Expr places, node.Input(1));
  return One(Apply(node, "Gather", {table, places}));
}

// Dropout of a sum with a bias, of each element or of the last axis, plus what is skipped.
Outputs BiasDropout(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"seed"}));
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr bias, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  INGOT_RETURN_IF_ERROR(StaticRankDims(node, 1).status());
  INGOT_ASSIGN_OR_RETURN(bias, BroadcastInto(node, std::move(bias), dims));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("add", {x, bias}));
  INGOT_ASSIGN_OR_RETURN(const Expr ratio, InputOrNull(node, 3));
  INGOT_ASSIGN_OR_RETURN(const Expr training, InputOrNull(node, 4));
  INGOT_ASSIGN_OR_RETURN(std::vector<Expr> outputs,
                         ApplyAll(node, "Dropout", {x, ratio, training}, Copied(node, {"seed"}), {"y", "mask"}));
  if (!node.HasInput(2)) return outputs;
  INGOT_ASSIGN_OR_RETURN(const Expr skip, InputOfDims(node, 2, dims));
  INGOT_ASSIGN_OR_RETURN(outputs[0], node.Bind("add", {outputs[0], skip}));
  return outputs;
}

constexpr OnnxOpRow kFormRows[] = {
    {"BiasDropout", nullptr, BiasDropout, kMicrosoft},
    {"CDist", nullptr, CDist, kMicrosoft},
    {"DequantizeLinear", nullptr, SameForm<kDequantize>, kMicrosoft},
    {"ExpandDims", nullptr, ExpandDims, kMicrosoft},
    {"GatherND", nullptr, SameForm<kGatherNd>, kMicrosoft},
    {"GridSample", nullptr, SameForm<kGridSample, 16>, kMicrosoft},
    {"MatMulInteger16", nullptr, MatMulInteger16, kMicrosoft},
    {"Pad", nullptr, MsPad, kMicrosoft},
    {"QuantizeLinear", nullptr, SameForm<kQuantize>, kMicrosoft},
    {"Range", nullptr, MsRange, kMicrosoft},
    {"TorchEmbedding", nullptr, TorchEmbedding, kMicrosoft},
    {"Trilu", nullptr, SameForm<kTrilu>, kMicrosoft},
    {"UnfoldTensor", nullptr, UnfoldTensor, kMicrosoft},
    {"Unique", nullptr, MsUnique, kMicrosoft},
};

}  // namespace

std::span<const OnnxOpRow> FormOnnxOps() { return kFormRows; }

}  // namespace ingot::importer
