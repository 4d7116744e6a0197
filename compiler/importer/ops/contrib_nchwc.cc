// com.microsoft.nchwc, which ONNX Runtime's optimiser makes of convolutions and pools for a CPU: their pictures keep the
// dims [N, C, H, W], of whole blocks of channels, and have the channels of a block beside each other in memory,
// [N, C / block, H, W, block]. Here an operator takes such a picture apart, works on channels in their order, and puts
// the result together again; what one undoes of the other is dropped later, with other views and permutations.
#include "compiler/importer/channel_blocks.h"
#include "compiler/importer/ops/contrib.h"
#include "compiler/importer/ops/families.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

Result<int64_t> BlockOf(const NodeImporter& node) { return node.Int(kChannelBlockAttr, 16); }

// The number of channels of a picture; bad input if it is none.
Result<PrimExpr> ChannelsOf(const NodeImporter& node, const Expr& x, size_t axis = 1) {
  if (DimsOf(x).size() != 4) return node.Invalid("expected a picture of rank 4");
  return DimsOf(x)[axis];
}

// How many blocks there are of channels that are whole blocks, which the reshape compares that takes them apart.
Result<PrimExpr> WholeBlocks(const NodeImporter& node, const PrimExpr& channels, int64_t block) {
  const auto number = ir::AsConstInt(channels);
  if (number && *number % block != 0) {
    return node.Invalid(std::to_string(*number) + " channels are no whole blocks of " + std::to_string(block));
  }
  return op::SimplifyDim(ir::FloorDiv(channels, ir::Int64(block)));
}

// Returns x with an axis split into its number of blocks and the block, the axes in this order, in these dims.
Result<Expr> SplitAndMoved(const NodeImporter& node, const Expr& x, std::vector<PrimExpr> apart,
                           const std::vector<int64_t>& order, std::vector<PrimExpr> dims) {
  INGOT_ASSIGN_OR_RETURN(Expr y, node.Bind("reshape", {x, ShapeOf(std::move(apart))}));
  INGOT_ASSIGN_OR_RETURN(y, Permuted(node, std::move(y), order));
  return node.Bind("reshape", {y, ShapeOf(std::move(dims))});
}

// Returns an input that lies in blocks with its channels in their order.
Result<Expr> InOrder(const NodeImporter& node, size_t input) {
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(input));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, input));
  INGOT_ASSIGN_OR_RETURN(const int64_t block, BlockOf(node));
  INGOT_ASSIGN_OR_RETURN(const PrimExpr channels, ChannelsOf(node, x));
  INGOT_ASSIGN_OR_RETURN(const PrimExpr blocks, WholeBlocks(node, channels, block));
  return SplitAndMoved(node, x, {dims[0], blocks, dims[2], dims[3], ir::Int64(block)}, {0, 1, 4, 2, 3}, dims);
}

// The other way round: of a whole number of blocks.
Result<Expr> InBlocks(const NodeImporter& node, const Expr& x) {
  const std::vector<PrimExpr> dims = DimsOf(x);
  INGOT_ASSIGN_OR_RETURN(const int64_t block, BlockOf(node));
  INGOT_ASSIGN_OR_RETURN(const PrimExpr channels, ChannelsOf(node, x));
  INGOT_ASSIGN_OR_RETURN(const PrimExpr blocks, WholeBlocks(node, channels, block));
  return SplitAndMoved(node, x, {dims[0], blocks, ir::Int64(block), dims[2], dims[3]}, {0, 1, 3, 4, 2}, dims);
}

Outputs InBlocksAgain(const NodeImporter& node, Result<Expr> y) {
  if (!y.ok()) return std::move(y).status();
  return One(InBlocks(node, *y));
}

// ---- pictures

Outputs ReorderInput(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {kChannelBlockAttr, "channels_last"}));
  INGOT_ASSIGN_OR_RETURN(const int64_t channels_last, node.Int("channels_last", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t block, BlockOf(node));
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_RETURN_IF_ERROR(StaticRankDims(node, 0).status());
  INGOT_ASSIGN_OR_RETURN(const PrimExpr given, ChannelsOf(node, x, channels_last != 0 ? 3 : 1));
  const auto channels = ir::AsConstInt(given);
  if (!channels) return node.Unsupported("a symbolic number of channels");
  if (channels_last != 0) {
    INGOT_ASSIGN_OR_RETURN(x, Permuted(node, std::move(x), {0, 3, 1, 2}));
  }
  if (const int64_t rest = *channels % block; rest != 0) {
    const std::vector<int64_t> widths = {0, 0, 0, block - rest, 0, 0, 0, 0};
    INGOT_ASSIGN_OR_RETURN(
        x, node.Bind("nn.pad", {x},
                     {{"pad_width", AttrValue::Ints(widths)}, {"pad_value", 0.0}, {"pad_mode", "constant"}}));
  }
  return One(InBlocks(node, x));
}

Outputs ReorderOutput(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {kChannelBlockAttr, "channels", "channels_last"}));
  INGOT_ASSIGN_OR_RETURN(const int64_t channels_last, node.Int("channels_last", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t channels, node.Int("channels", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t block, BlockOf(node));
  INGOT_ASSIGN_OR_RETURN(Expr y, InOrder(node, 0));
  INGOT_ASSIGN_OR_RETURN(const PrimExpr all, ChannelsOf(node, y));
  const int64_t filled = ir::AsConstInt(all).value_or(0);  // (implied_dims.cc: the attribute says it)
  if (channels < 1 || channels > filled || filled - channels >= block) {
    return node.Invalid("channels is " + std::to_string(channels) + ", of " + std::to_string(filled) +
                        " in blocks of " + std::to_string(block));
  }
  if (channels != filled) {
    const std::vector<int64_t> axis = {1}, begin = {0}, end = {channels};
    INGOT_ASSIGN_OR_RETURN(y, node.Bind("strided_slice", {y, PrimTuple(axis), PrimTuple(begin), PrimTuple(end)}));
  }
  if (channels_last == 0) return std::vector<Expr>{std::move(y)};
  return One(Permuted(node, std::move(y), {0, 2, 3, 1}));
}

// ---- operators

// Returns the weights [O, I, H, W] in their order, of which the block of outputs lies last, and before it that of the
// inputs where these lie in blocks.
Result<Expr> WeightsInOrder(const NodeImporter& node, bool has_input_blocks) {
  INGOT_ASSIGN_OR_RETURN(const Expr w, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 1));
  INGOT_ASSIGN_OR_RETURN(const int64_t block, BlockOf(node));
  const PrimExpr width = ir::Int64(block), outer = ir::Int64(*ir::AsConstInt(dims[0]) / block);
  if (!has_input_blocks)
    return SplitAndMoved(node, w, {outer, dims[1], dims[2], dims[3], width}, {0, 4, 1, 2, 3}, dims);
  const PrimExpr inner = ir::Int64(*ir::AsConstInt(dims[1]) / block);
  return SplitAndMoved(node, w, {outer, inner, dims[2], dims[3], width, width}, {0, 5, 1, 4, 2, 3}, dims);
}

// Inputs: those of FusedConv. A picture of fewer channels than a block lies as it is.
Outputs BlockedConv(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"activation", "activation_params", "auto_pad", kChannelBlockAttr,
                                               "dilations", "group", "kernel_shape", "pads", "strides"}));
  INGOT_ASSIGN_OR_RETURN(const int64_t block, BlockOf(node));
  INGOT_ASSIGN_OR_RETURN(const int64_t group, node.Int("group", 1));
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_RETURN_IF_ERROR(StaticRankDims(node, 0).status());
  INGOT_ASSIGN_OR_RETURN(const PrimExpr given, ChannelsOf(node, x));
  const auto channels = ir::AsConstInt(given);
  if (!channels) return node.Unsupported("a symbolic number of channels");
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> weight, StaticRankDims(node, 1));
  if (weight.size() != 4) return node.Invalid("expected weights of rank 4");
  const auto out = ir::AsConstInt(weight[0]), in = ir::AsConstInt(weight[1]);
  if (!out || !in || !ir::AsConstInt(weight[2]) || !ir::AsConstInt(weight[3])) {
    return node.Unsupported("weights of symbolic dims");
  }
  const bool is_plain = group == 1 && *channels<block, is_depthwise = group> 1 && *in == 1 && *out == group;
  const bool has_blocks = *in % block == 0 && group > 0 && *out % group == 0 && *out / group % block == 0;
  if (*out % block != 0 || !(is_plain || is_depthwise || has_blocks)) {
    return node.Invalid("weights of " + std::to_string(*out) + " and " + std::to_string(*in) +
                        " channels are no blocks of " + std::to_string(block));
  }
  if (!is_plain) {
    INGOT_ASSIGN_OR_RETURN(x, InOrder(node, 0));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr w, WeightsInOrder(node, !is_plain && !is_depthwise));
  INGOT_ASSIGN_OR_RETURN(const Expr bias, InputOrNull(node, 2));
  Expr sum;
  if (node.HasInput(3)) {
    INGOT_ASSIGN_OR_RETURN(sum, InOrder(node, 3));
  }
  return InBlocksAgain(node, Apply(node, "FusedConv", {x, w, bias, sum},
                                   Copied(node, {"activation", "activation_params", "auto_pad", "dilations", "group",
                                                 "kernel_shape", "pads", "strides"})));
}

template <const auto& kOp>
Outputs BlockedPool(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"auto_pad", "ceil_mode", kChannelBlockAttr, "count_include_pad",
                                               "dilations", "kernel_shape", "pads", "storage_order", "strides"}));
  INGOT_RETURN_IF_ERROR(RefuseOutput(node, 1, "indices"));
  INGOT_ASSIGN_OR_RETURN(const Expr x, InOrder(node, 0));
  return InBlocksAgain(node, Apply(node, kOp, {x},
                                   Copied(node, {"auto_pad", "ceil_mode", "count_include_pad", "dilations",
                                                 "kernel_shape", "pads", "strides"})));
}
constexpr char kBlockedAverage[] = "AveragePool";
constexpr char kBlockedMax[] = "MaxPool";
constexpr char kBlockedGlobalAverage[] = "GlobalAveragePool";
constexpr char kBlockedGlobalMax[] = "GlobalMaxPool";

// Attributes: a whole number by which each axis is scaled, and Resize's mode and coordinates.
Outputs BlockedUpsample(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {kChannelBlockAttr, "coordinate_transformation_mode", "mode", "scales"}));
  INGOT_ASSIGN_OR_RETURN(const Expr x, InOrder(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::string mode, node.String("mode", "nearest"));
  INGOT_ASSIGN_OR_RETURN(const std::string places, node.String("coordinate_transformation_mode", "asymmetric"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> scales, node.Ints("scales", {1, 1, 1, 1}, 4));
  const bool is_nearest = mode == "nearest";
  if (!is_nearest && mode != "linear") return node.Unsupported("mode \"" + mode + "\"");
  if (places != "asymmetric" && (is_nearest || (places != "align_corners" && places != "half_pixel"))) {
    return node.Unsupported("coordinate_transformation_mode \"" + places + "\"");
  }
  constexpr int64_t kMost = int64_t{1} << 24;
  if (scales[0] != 1 || scales[1] != 1 || scales[2] < 1 || scales[2] > kMost || scales[3] < 1 || scales[3] > kMost) {
    return node.Invalid("scales: expected 1, 1 and two numbers from 1 on");
  }
  const std::vector<float> factors(scales.begin(), scales.end());
  Attributes attributes = {AttributeOf("mode", mode), AttributeOf("coordinate_transformation_mode", places)};
  if (is_nearest) attributes.push_back(AttributeOf("nearest_mode", std::string("floor")));
  const Expr factor = ConstantOf(DataType::Float(32), {4}, factors);
  return InBlocksAgain(node, Apply(node, "Resize", {x, nullptr, factor}, std::move(attributes)));
}

constexpr OnnxOpRow kChannelBlockRows[] = {
    {"AveragePool", nullptr, BlockedPool<kBlockedAverage>, kChannelBlocks},
    {"Conv", nullptr, BlockedConv, kChannelBlocks},
    {"GlobalAveragePool", nullptr, BlockedPool<kBlockedGlobalAverage>, kChannelBlocks},
    {"GlobalMaxPool", nullptr, BlockedPool<kBlockedGlobalMax>, kChannelBlocks},
    {"MaxPool", nullptr, BlockedPool<kBlockedMax>, kChannelBlocks},
    {"ReorderInput", nullptr, ReorderInput, kChannelBlocks},
    {"ReorderOutput", nullptr, ReorderOutput, kChannelBlocks},
    {"Upsample", nullptr, BlockedUpsample, kChannelBlocks},
};

}  // namespace

std::span<const OnnxOpRow> ChannelBlockOnnxOps() { return kChannelBlockRows; }

}  // namespace ingot::importer
