// com.microsoft's operators that ONNX Runtime's optimiser of transformers writes for diffusion models and GPUs: groups
// of channels that are normalised, with what is added before and the activation behind, and sums with biases.
#include "compiler/importer/ops/contrib.h"
#include "compiler/importer/ops/families.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

// How the channels of a normalised picture lie.
struct Picture {
  std::vector<PrimExpr> dims;
  bool channels_last;
  const PrimExpr& channels() const { return dims[channels_last ? 3 : 1]; }
  // The dims of one number for each channel, or for each picture and channel.
  std::vector<PrimExpr> Spread(const PrimExpr& batch) const {
    const PrimExpr one = ir::Int64(1);
    return channels_last ? std::vector{batch, one, one, dims[3]} : std::vector{batch, dims[1], one, one};
  }
};

Result<Picture> ReadPicture(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"activation", "channels_last", "epsilon", "groups"}));
  INGOT_ASSIGN_OR_RETURN(const int64_t channels_last, node.Int("channels_last", 1));
  INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  if (dims.size() != 4) return node.Invalid("expected a picture of rank 4, got " + std::to_string(dims.size()));
  return Picture{std::move(dims), channels_last != 0};
}

// Returns x normalised by groups of channels, times gamma (input 1) plus beta (input 2), and activated; all in float32,
// and then in the dtype of x.
Result<Expr> Normalised(const NodeImporter& node, const Expr& x, const Picture& picture) {
  const DataType dtype = DTypeOf(x), step = StepType(dtype);
  INGOT_ASSIGN_OR_RETURN(const int64_t groups, node.Int("groups", 0));
  INGOT_ASSIGN_OR_RETURN(const double epsilon, node.Float("epsilon", 1e-5f));
  INGOT_ASSIGN_OR_RETURN(const int64_t activation, node.Int("activation", 0));
  if (activation != 0 && activation != 1) return node.Unsupported("activation " + std::to_string(activation));
  INGOT_ASSIGN_OR_RETURN(Expr y, CastTo(node, x, step));
  std::vector<Expr> in;
  if (picture.channels_last) {
    INGOT_ASSIGN_OR_RETURN(y, Permuted(node, std::move(y), {0, 3, 1, 2}));
  }
  in.push_back(std::move(y));
  for (size_t i : {1, 2}) {
    INGOT_ASSIGN_OR_RETURN(Expr param, PerChannel(node, i, picture.channels()));
    INGOT_ASSIGN_OR_RETURN(param, CastTo(node, std::move(param), step));
    in.push_back(std::move(param));
  }
  INGOT_ASSIGN_OR_RETURN(
      y, Apply(node, "GroupNormalization", in,
               {AttributeOf("num_groups", groups), AttributeOf("epsilon", static_cast<float>(epsilon))}));
  if (activation == 1) {
    INGOT_ASSIGN_OR_RETURN(y, node.Bind("nn.silu", {y}));
  }
  if (picture.channels_last) {
    INGOT_ASSIGN_OR_RETURN(y, Permuted(node, std::move(y), {0, 2, 3, 1}));
  }
  return CastTo(node, std::move(y), dtype);
}

// Inputs: the picture, gamma and beta.
Outputs GroupNorm(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const Picture picture, ReadPicture(node));
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  return One(Normalised(node, x, picture));
}

// Inputs: those of GroupNorm, what is skipped (a picture, or a number for each picture and channel), and a bias.
// Outputs: the result, and the sum that was normalised.
Outputs SkipGroupNorm(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const Picture picture, ReadPicture(node));
  INGOT_ASSIGN_OR_RETURN(Expr sum, node.Input(0));
  Expr skip;
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 3));
  if (dims.size() == 2) {
    INGOT_ASSIGN_OR_RETURN(skip, InputOfDims(node, 3, {picture.dims[0], picture.channels()}));
    INGOT_ASSIGN_OR_RETURN(skip, node.Bind("reshape", {skip, ShapeOf(picture.Spread(picture.dims[0]))}));
  } else if (dims.size() == 4) {
    std::vector<PrimExpr> own = dims;  // a number for each picture and channel has a height and a width of 1
    own[0] = picture.dims[0];
    own[picture.channels_last ? 3 : 1] = picture.channels();
    INGOT_ASSIGN_OR_RETURN(skip, InputOfDims(node, 3, own));
    INGOT_ASSIGN_OR_RETURN(skip, BroadcastInto(node, std::move(skip), picture.dims));
  } else {
    return node.Invalid("skip: expected a rank of 2 or 4, got " + std::to_string(dims.size()));
  }
  INGOT_ASSIGN_OR_RETURN(sum, node.Bind("add", {sum, skip}));
  if (node.HasInput(4)) {
    INGOT_ASSIGN_OR_RETURN(Expr bias, PerChannel(node, 4, picture.channels()));
    INGOT_ASSIGN_OR_RETURN(bias, node.Bind("reshape", {bias, ShapeOf(picture.Spread(ir::Int64(1)))}));
    INGOT_ASSIGN_OR_RETURN(sum, node.Bind("add", {sum, bias}));
  }
  INGOT_ASSIGN_OR_RETURN(Expr y, Normalised(node, sum, picture));
  return std::vector<Expr>{std::move(y), std::move(sum)};
}

// Returns input 0 of rank 3 plus a bias of its last axis (input 1).
Result<Expr> Biased(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {}));
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  if (dims.size() != 3) return node.Invalid("expected a rank of 3, got " + std::to_string(dims.size()));
  INGOT_ASSIGN_OR_RETURN(const Expr bias, PerChannel(node, 1, dims[2]));
  return node.Bind("add", {x, bias});
}

Outputs BiasAdd(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const Expr sum, Biased(node));
  INGOT_ASSIGN_OR_RETURN(const Expr skip, InputOfDims(node, 2, DimsOf(sum)));
  return One(node.Call("add", {sum, skip}));
}

// The first half of x + bias times GELU of the second one.
Outputs BiasSplitGelu(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const Expr sum, Biased(node));
  INGOT_ASSIGN_OR_RETURN(const auto halves, Halves(node, sum));
  INGOT_ASSIGN_OR_RETURN(const Expr gate, Apply(node, "Gelu", {halves.second}));
  return One(node.Call("multiply", {halves.first, gate}));
}

// Inputs: both operands of a product, and a bias.
Outputs GemmFastGelu(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {}));
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const Expr w, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const Expr bias, InputOrNull(node, 2));
  INGOT_ASSIGN_OR_RETURN(const Expr product, node.Bind("matmul", {x, w}));
  return One(Apply(node, "FastGelu", {product, bias}));
}

constexpr OnnxOpRow kDiffusionRows[] = {
    {"BiasAdd", nullptr, BiasAdd, kMicrosoft},
    {"BiasSplitGelu", nullptr, BiasSplitGelu, kMicrosoft},
    {"GemmFastGelu", nullptr, GemmFastGelu, kMicrosoft},
    {"GroupNorm", nullptr, GroupNorm, kMicrosoft},
    {"SkipGroupNorm", nullptr, SkipGroupNorm, kMicrosoft},
};

}  // namespace

std::span<const OnnxOpRow> DiffusionOnnxOps() { return kDiffusionRows; }

}  // namespace ingot::importer
