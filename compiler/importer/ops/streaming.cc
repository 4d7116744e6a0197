// Operators of streaming models, which continue where their last call stopped: they take their state as a tensor, and
// return the new one.
#include "compiler/importer/build.h"
#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/util.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

// A depthwise convolution over the last axis that also reads the state, the end of the input so far.
Outputs CausalConvWithState(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const Expr weight, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> kernel, StaticRankDims(node, 1));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(const std::string activation, node.String("activation", "none"));
  const bool is_swish = activation == "silu" || activation == "swish";
  if (!is_swish && activation != "none") return node.Invalid("activation is \"" + activation + "\"");
  if (in.size() != 3 || kernel.size() != 3) return node.Invalid("expected an input and a weight of rank 3");
  const auto channels = ir::AsConstInt(kernel[0]), width = ir::AsConstInt(kernel[2]);
  if (!channels || !width) return node.Unsupported("a weight of symbolic dims");
  const std::vector<PrimExpr> state_dims = {in[0], in[1], ir::Int64(*width - 1)};
  Expr past;
  if (node.HasInput(3)) {
    INGOT_ASSIGN_OR_RETURN(past, node.Input(3));
  } else {
    INGOT_ASSIGN_OR_RETURN(past, node.Bind("zeros", {ShapeOf(state_dims)}, {{"dtype", *type->dtype}}));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr all, node.Bind("concat", {TupleOf({past, x})}, {{"axis", int64_t{2}}}));
  INGOT_ASSIGN_OR_RETURN(Expr y, node.Bind("nn.conv1d", {all, weight}, {{"groups", *channels}}));
  if (node.HasInput(2)) {
    INGOT_ASSIGN_OR_RETURN(Expr bias, node.Input(2));
    INGOT_ASSIGN_OR_RETURN(bias, node.Bind("reshape", {bias, ShapeOf({ir::Int64(*channels), ir::Int64(1)})}));
    INGOT_ASSIGN_OR_RETURN(y, node.Bind("add", {y, bias}));
  }
  if (is_swish) {
    INGOT_ASSIGN_OR_RETURN(y, node.Bind("nn.silu", {y}));
  }
  const auto numbers = [](const PrimExpr& value) { return TupleOf({Number(value)}); };
  INGOT_ASSIGN_OR_RETURN(Expr present, node.Bind("strided_slice", {all, numbers(ir::Int64(2)), numbers(in[2]),
                                                                   numbers(op::SimplifyDim(in[2] + (*width - 1)))}));
  return std::vector<Expr>{std::move(y), std::move(present)};
}

// Writes each sample's update into its cache from the sample's own position on, around the end if the cache is
// circular.
Outputs TensorScatter(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const Expr cache, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr update, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> room, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> in, StaticRankDims(node, 1));
  INGOT_ASSIGN_OR_RETURN(const std::string mode, node.String("mode", "linear"));
  INGOT_ASSIGN_OR_RETURN(int64_t axis, node.Int("axis", -2));
  INGOT_ASSIGN_OR_RETURN(axis, NormaliseAxis(node, axis, std::ssize(in)));
  if (mode != "linear" && mode != "circular") return node.Invalid("mode is \"" + mode + "\"");
  if (axis == 0 || room.size() != in.size())
    return node.Invalid("the axis is that of the batch, or the ranks are unlike");
  for (size_t i = 0; i < in.size(); ++i) {
    if (static_cast<int64_t>(i) != axis) in[i] = room[i];
  }
  update = WithDims(node, std::move(update), in);
  const DataType index = DataType::Int(64);
  const PrimExpr& length = in[static_cast<size_t>(axis)];
  std::vector<PrimExpr> along(in.size(), ir::Int64(1)), batch = along;
  along[static_cast<size_t>(axis)] = length;
  batch[0] = in[0];
  INGOT_ASSIGN_OR_RETURN(Expr places, node.Bind("arange", {Number(ir::Int64(0)), Number(length), Number(ir::Int64(1))},
                                                {{"dtype", index}}));
  INGOT_ASSIGN_OR_RETURN(places, node.Bind("reshape", {places, ShapeOf(along)}));
  if (node.HasInput(2)) {
    INGOT_ASSIGN_OR_RETURN(Expr begin, node.Input(2));
    INGOT_ASSIGN_OR_RETURN(begin, node.Bind("astype", {begin}, {{"dtype", index}}));
    INGOT_ASSIGN_OR_RETURN(begin, node.Bind("reshape", {begin, ShapeOf(batch)}));
    INGOT_ASSIGN_OR_RETURN(places, node.Bind("add", {places, begin}));
  }
  if (mode == "circular") {
    INGOT_ASSIGN_OR_RETURN(Expr around, node.Bind("shape_to_tensor", {ShapeOf({room[static_cast<size_t>(axis)]})}));
    INGOT_ASSIGN_OR_RETURN(places, node.Bind("floor_mod", {places, around}));
  }
  INGOT_ASSIGN_OR_RETURN(places, node.Bind("broadcast_to", {places, ShapeOf(in)}));
  return One(node.Call("scatter_elements", {cache, places, update}, {{"axis", axis}, {"reduction", "update"}}));
}

constexpr OnnxOpRow kStreamingRows[] = {
    {"CausalConvWithState", nullptr, CausalConvWithState},
    {"TensorScatter", nullptr, TensorScatter},
};

}  // namespace

std::span<const OnnxOpRow> StreamingOnnxOps() { return kStreamingRows; }

}  // namespace ingot::importer
