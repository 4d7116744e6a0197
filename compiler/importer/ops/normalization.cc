// Softmax and normalisations.
#include "compiler/importer/ops/families.h"

#include <algorithm>

#include "compiler/importer/ops/util.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

// From opset 13 on it works along one axis (-1 by default). Before, the input is seen as a matrix, split at `axis` (1
// by default), and each row is normalised.
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

constexpr char kHardmax[] = "nn.hardmax";
constexpr char kLogSoftmax[] = "nn.log_softmax";
constexpr char kSoftmax[] = "nn.softmax";

// The outputs behind the first one are the running statistics of training from opset 14 on, and others before.
Outputs BatchNormalization(const NodeImporter& node) {
  const std::vector<std::string>& outputs = node.node().outputs;
  const bool has_more = outputs.size() > 1 && std::any_of(outputs.begin() + 1, outputs.end(),
                                                          [](const std::string& name) { return !name.empty(); });
  if (has_more && node.opset() < 14)
    return node.Unsupported("the training outputs of BatchNormalization until opset 13");
  INGOT_ASSIGN_OR_RETURN(const int64_t training, node.Int("training_mode", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t spatial, node.Int("spatial", 1));
  if (spatial != 1) return node.Unsupported("spatial=0");
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  if (in.size() < 2) return node.Invalid("expected a rank of 2 or more, got " + std::to_string(in.size()));
  std::vector<Expr> args;
  for (size_t i = 0; i < 5; ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr arg, node.Input(i));
    args.push_back(std::move(arg));
  }
  INGOT_ASSIGN_OR_RETURN(const double epsilon, node.Float("epsilon", 1e-5f));
  INGOT_ASSIGN_OR_RETURN(const double momentum, node.Float("momentum", 0.9f));
  return Fields(
      node.Bind("nn.batch_norm", std::move(args),
                {{"axis", int64_t{1}}, {"epsilon", epsilon}, {"momentum", 1 - momentum}, {"training", training != 0}}));
}

// Returns the axes from `axis` (-1 by default) to the last.
Result<std::vector<int64_t>> TrailingAxes(const NodeImporter& node, int64_t rank) {
  INGOT_ASSIGN_OR_RETURN(int64_t axis, node.Int("axis", -1));
  INGOT_ASSIGN_OR_RETURN(axis, NormaliseAxis(node, axis, rank));
  std::vector<int64_t> axes;
  for (int64_t i = axis; i < rank; ++i) axes.push_back(i);
  return axes;
}

// Returns a parameter with the dims of the last axes of x: as it is where they are proved equal, else broadcast to them,
// which is checked at run time.
Result<Expr> TrailingParameter(const NodeImporter& node, size_t input, std::span<const PrimExpr> dims) {
  INGOT_ASSIGN_OR_RETURN(Expr param, node.Input(input));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> own, StaticRankDims(node, input));
  if (own.size() > dims.size()) {
    return node.Unsupported("a parameter of rank " + std::to_string(own.size()) + " for " +
                            std::to_string(dims.size()) + " normalised axes");
  }
  if (std::ranges::equal(own, dims, op::DimsEqual)) return param;
  return node.Bind("broadcast_to", {param, ShapeOf({dims.begin(), dims.end()})});
}

// Mean and reciprocal deviation, the other outputs, are computed separately if they are used.
Outputs LayerNormalization(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, TrailingAxes(node, static_cast<int64_t>(in.size())));
  INGOT_ASSIGN_OR_RETURN(const double epsilon, node.Float("epsilon", 1e-5f));
  const std::span<const PrimExpr> normalised = std::span(in).last(axes.size());
  std::vector<Expr> args = {x};
  // A scale or an offset with more dims than are normalised is applied afterwards.
  bool is_apart = false;
  for (size_t i : {1, 2}) {
    if (!node.HasInput(i)) continue;
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> own, StaticRankDims(node, i));
    is_apart = is_apart || own.size() > normalised.size();
    if (own.size() > in.size()) return node.Invalid("a parameter of rank " + std::to_string(own.size()));
  }
  for (size_t i = 1; i < 3 && !is_apart; ++i) {
    if (!node.HasInput(i)) continue;
    INGOT_ASSIGN_OR_RETURN(Expr param, TrailingParameter(node, i, normalised));
    args.push_back(std::move(param));
  }
  if (is_apart) {
    INGOT_ASSIGN_OR_RETURN(
        Expr ones, node.Bind("ones", {ShapeOf({normalised.begin(), normalised.end()})}, {{"dtype", DTypeOf(x)}}));
    args.push_back(std::move(ones));
  }
  INGOT_ASSIGN_OR_RETURN(Expr y,
                         node.Call("nn.layer_norm", args, {{"axes", AttrValue::Ints(axes)}, {"epsilon", epsilon}}));
  for (size_t i = 1; i < 3 && is_apart; ++i) {
    if (!node.HasInput(i)) continue;
    INGOT_ASSIGN_OR_RETURN(Expr param, node.Input(i));
    INGOT_ASSIGN_OR_RETURN(param, BroadcastInto(node, std::move(param), in));
    y = node.BindValue(std::move(y), "normalised");
    INGOT_ASSIGN_OR_RETURN(y, node.Call(i == 1 ? "multiply" : "add", {y, param}));
  }
  std::vector<Expr> outputs = {std::move(y)};
  const std::vector<std::string>& names = node.node().outputs;
  const auto wanted = [&](size_t i) { return names.size() > i && !names[i].empty(); };
  if (!wanted(1) && !wanted(2)) return outputs;
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(const int64_t stash, node.Int("stash_type", 1));
  INGOT_ASSIGN_OR_RETURN(const DataType stash_dtype, OnnxDataType(stash));
  if (stash_dtype != *type->dtype) {
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("astype", {x}, {{"dtype", stash_dtype}}));
  }
  const ir::Attrs over = {{"axis", AttrValue::Ints(axes)}, {"keepdims", true}};
  INGOT_ASSIGN_OR_RETURN(Expr mean, node.Call("mean", {x}, over));
  outputs.push_back(std::move(mean));
  if (!wanted(2)) return outputs;
  INGOT_ASSIGN_OR_RETURN(Expr spread, node.Bind("variance", {x}, over));
  INGOT_ASSIGN_OR_RETURN(const Expr epsilon_scalar, node.Scalar(epsilon, stash_dtype));
  INGOT_ASSIGN_OR_RETURN(spread, node.Bind("add", {spread, epsilon_scalar}));
  INGOT_ASSIGN_OR_RETURN(spread, node.Call("rsqrt", {spread}));
  outputs.push_back(std::move(spread));
  return outputs;
}

Outputs RmsNormalization(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, TrailingAxes(node, static_cast<int64_t>(in.size())));
  INGOT_ASSIGN_OR_RETURN(const double epsilon, node.Float("epsilon", 1e-5f));
  INGOT_ASSIGN_OR_RETURN(Expr scale, TrailingParameter(node, 1, std::span(in).last(axes.size())));
  return One(node.Call("nn.rms_norm", {x, scale}, {{"axes", AttrValue::Ints(axes)}, {"epsilon", epsilon}}));
}

Result<AttrValue> SpatialAxes(const NodeImporter& node, size_t rank) {
  if (rank < 3) return node.Invalid("expected a rank of 3 or more, got " + std::to_string(rank));
  std::vector<int64_t> axes;
  for (size_t i = 2; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  return AttrValue::Ints(axes);
}

Outputs InstanceNormalization(const NodeImporter& node) {
  std::vector<Expr> args;
  for (size_t i : {0, 1, 2}) {
    INGOT_ASSIGN_OR_RETURN(Expr arg, node.Input(i));
    args.push_back(std::move(arg));
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const AttrValue axes, SpatialAxes(node, in.size()));
  INGOT_ASSIGN_OR_RETURN(const double epsilon, node.Float("epsilon", 1e-5f));
  return One(node.Call("nn.instance_norm", args, {{"axes", axes}, {"epsilon", epsilon}}));
}

// Until opset 20 scale and bias are per group, from 21 on per channel.
Outputs GroupNormalization(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const AttrValue axes, SpatialAxes(node, in.size()));
  INGOT_ASSIGN_OR_RETURN(const double epsilon, node.Float("epsilon", 1e-5f));
  INGOT_ASSIGN_OR_RETURN(const int64_t groups, node.Int("num_groups", 0));
  if (groups < 1) return node.Invalid("num_groups must be positive, got " + std::to_string(groups));
  std::vector<Expr> args = {x};
  for (size_t i : {1, 2}) {
    INGOT_ASSIGN_OR_RETURN(Expr param, node.Input(i));
    if (node.opset() < 21) {
      const PrimExpr count = ir::Int64(groups), each = op::SimplifyDim(ir::FloorDiv(in[1], count));
      INGOT_ASSIGN_OR_RETURN(param, node.Bind("reshape", {param, ShapeOf({count, ir::Int64(1)})}));
      INGOT_ASSIGN_OR_RETURN(param, node.Bind("broadcast_to", {param, ShapeOf({count, each})}));
      INGOT_ASSIGN_OR_RETURN(param, node.Bind("reshape", {param, ShapeOf({in[1]})}));
    }
    args.push_back(std::move(param));
  }
  return One(node.Call("nn.group_norm", args, {{"num_groups", groups}, {"axes", axes}, {"epsilon", epsilon}}));
}

Outputs Lrn(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const int64_t size, node.Int("size", 0));
  INGOT_ASSIGN_OR_RETURN(const double alpha, node.Float("alpha", 1e-4f));
  INGOT_ASSIGN_OR_RETURN(const double beta, node.Float("beta", 0.75));
  INGOT_ASSIGN_OR_RETURN(const double bias, node.Float("bias", 1));
  return One(node.Call("nn.lrn", {x}, {{"size", size}, {"alpha", alpha}, {"beta", beta}, {"bias", bias}}));
}

// x / |x|_p along an axis; 0 where the norm is 0.
Outputs LpNormalization(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(const int64_t p, node.Int("p", 2));
  INGOT_ASSIGN_OR_RETURN(const int64_t axis, node.Int("axis", -1));
  if (p != 1 && p != 2) return node.Invalid("p must be 1 or 2, got " + std::to_string(p));
  const DataType dtype = *type->dtype;
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, x, StepType(dtype)));
  INGOT_ASSIGN_OR_RETURN(Expr norm, node.Bind(p == 1 ? "abs" : "square", {x}));
  INGOT_ASSIGN_OR_RETURN(norm, node.Bind("sum", {norm}, {{"axis", AttrValue::Ints({axis})}, {"keepdims", true}}));
  if (p == 2) {
    INGOT_ASSIGN_OR_RETURN(norm, node.Bind("sqrt", {norm}));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, StepType(dtype)));
  INGOT_ASSIGN_OR_RETURN(const Expr vanishes, node.Bind("equal", {norm, zero}));
  INGOT_ASSIGN_OR_RETURN(const Expr quotient, node.Bind("divide", {x, norm}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("where", {vanishes, zero, quotient}));
  return One(CastTo(node, x, dtype));
}

// (x - mean) / (deviation + 1e-9), over all axes but the channels' by default.
Outputs MeanVarianceNormalization(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, node.Ints("axes", {0, 2, 3}));
  const ir::Attrs over = {{"axis", AttrValue::Ints(axes)}, {"keepdims", true}};
  const DataType dtype = *type->dtype;
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, x, StepType(dtype)));
  INGOT_ASSIGN_OR_RETURN(const Expr mean, node.Bind("mean", {x}, over));
  INGOT_ASSIGN_OR_RETURN(const Expr distance, node.Bind("subtract", {x, mean}));
  INGOT_ASSIGN_OR_RETURN(Expr spread, node.Bind("variance", {x}, over));
  INGOT_ASSIGN_OR_RETURN(spread, node.Bind("sqrt", {spread}));
  INGOT_ASSIGN_OR_RETURN(const Expr tiny, node.Scalar(1e-9, StepType(dtype)));
  INGOT_ASSIGN_OR_RETURN(spread, node.Bind("add", {spread, tiny}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("divide", {distance, spread}));
  return One(CastTo(node, x, dtype));
}

constexpr OnnxOpRow kNormalizationRows[] = {
    {"BatchNormalization", nullptr, BatchNormalization},
    {"GroupNormalization", nullptr, GroupNormalization},
    {"Hardmax", nullptr, Softmax<kHardmax>},
    {"InstanceNormalization", nullptr, InstanceNormalization},
    {"LRN", nullptr, Lrn},
    {"LayerNormalization", nullptr, LayerNormalization},
    {"LogSoftmax", nullptr, Softmax<kLogSoftmax>},
    {"LpNormalization", nullptr, LpNormalization},
    {"MeanVarianceNormalization", nullptr, MeanVarianceNormalization},
    {"RMSNormalization", nullptr, RmsNormalization},
    {"Softmax", nullptr, Softmax<kSoftmax>},
};

}  // namespace

std::span<const OnnxOpRow> NormalizationOnnxOps() { return kNormalizationRows; }

}  // namespace ingot::importer
