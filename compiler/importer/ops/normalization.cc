// Softmax and batch normalisation.
#include "compiler/importer/ops/families.h"

#include "compiler/importer/ops/util.h"

namespace ingot::importer {
namespace {

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

constexpr OnnxOpRow kRows[] = {
    {"BatchNormalization", nullptr, BatchNormalization},
    {"LogSoftmax", nullptr, Softmax<kLogSoftmax>},
    {"Softmax", nullptr, Softmax<kSoftmax>},
};

}  // namespace

std::span<const OnnxOpRow> NormalizationOnnxOps() { return kRows; }

}  // namespace ingot::importer
