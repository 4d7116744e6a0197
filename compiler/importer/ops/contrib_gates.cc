// com.microsoft's operators of language models whose layers have gates and states (Qwen3-Next and the like): gated norms
// and activations, the gates of linear attention, rotations by three positions, and convolutions that continue where the
// last call stopped. All compute in float32, whatever their floats are, and round once.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/contrib_attention.h"
#include "compiler/importer/ops/families.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

Result<Expr> ExactInput(const NodeImporter& node, size_t input) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(input));
  INGOT_RETURN_IF_ERROR(StaticRankDims(node, input).status());
  return CastTo(node, std::move(x), kExact);
}

// ---- norms and activations

// The data's rows of as many elements as there are scales, each divided by the root of its mean square, times the scales
// and an activated gate.
Outputs GatedRmsNorm(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"activation", "epsilon"}));
  INGOT_ASSIGN_OR_RETURN(const std::string activation, node.String("activation", "silu"));
  INGOT_ASSIGN_OR_RETURN(const double epsilon, node.Float("epsilon", 1e-5f));
  const bool is_silu = activation == "silu" || activation == "swish";
  if (!is_silu && activation != "sigmoid") return node.Invalid("activation is \"" + activation + "\"");
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> of_scale, StaticRankDims(node, 1));
  if (dims.empty() || of_scale.size() != 1) return node.Invalid("expected data with a last axis, and scales of rank 1");
  const auto length = ir::AsConstInt(of_scale[0]);
  if (!length) return node.Unsupported("an unknown number of scales");
  if (*length < 1 || ir::AsConstInt(dims.back()).value_or(0) % *length != 0) {
    return node.Invalid("the scales do not divide the last axis");
  }
  std::vector<PrimExpr> rows = dims;
  rows.back() = op::SimplifyDim(ir::FloorDiv(dims.back(), of_scale[0]));
  rows.push_back(of_scale[0]);
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(Expr x, ExactInput(node, 0));
  INGOT_ASSIGN_OR_RETURN(const Expr scale, ExactInput(node, 1));
  INGOT_ASSIGN_OR_RETURN(Expr gate, InputOfDims(node, 2, dims));
  INGOT_ASSIGN_OR_RETURN(gate, CastTo(node, std::move(gate), kExact));
  INGOT_ASSIGN_OR_RETURN(gate, node.Bind(is_silu ? "nn.silu" : "sigmoid", {gate}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {x, ShapeOf(rows)}));
  INGOT_ASSIGN_OR_RETURN(
      x, Apply(node, "RMSNormalization", {x, scale}, {AttributeOf("epsilon", static_cast<float>(epsilon))}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {x, ShapeOf(dims)}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("multiply", {x, gate}));
  return One(CastTo(node, std::move(x), *type->dtype));
}

// Inputs: the gate and what it lets through, or both as the halves of one tensor's last axis.
Outputs MsSwiGlu(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"activation_alpha", "activation_beta", "limit", "round_activation"}));
  INGOT_ASSIGN_OR_RETURN(const double alpha, node.Float("activation_alpha", 1));
  INGOT_ASSIGN_OR_RETURN(const double beta, node.Float("activation_beta", 0));
  INGOT_ASSIGN_OR_RETURN(const double limit, node.Float("limit", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t rounds, node.Int("round_activation", 0));
  if (!std::isfinite(alpha) || !std::isfinite(beta) || std::isnan(limit)) return node.Invalid("a factor is no number");
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(Expr gate, ExactInput(node, 0));
  Expr up;
  if (node.HasInput(1)) {
    INGOT_ASSIGN_OR_RETURN(up, InputOfDims(node, 1, dims));
    INGOT_ASSIGN_OR_RETURN(up, CastTo(node, std::move(up), kExact));
  } else {
    INGOT_ASSIGN_OR_RETURN(std::tie(gate, up), Halves(node, gate));
  }
  const auto number = [](double value) { return Number(ir::FloatImm(kExact, value)); };
  if (limit > 0 && std::isfinite(limit)) {
    INGOT_ASSIGN_OR_RETURN(const Expr most, node.Scalar(limit, kExact));
    INGOT_ASSIGN_OR_RETURN(gate, node.Bind("minimum", {gate, most}));
    INGOT_ASSIGN_OR_RETURN(up, node.Bind("clip", {up, number(-limit), number(limit)}));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr factor, node.Scalar(alpha, kExact));
  INGOT_ASSIGN_OR_RETURN(Expr open, node.Bind("multiply", {gate, factor}));
  INGOT_ASSIGN_OR_RETURN(open, node.Bind("sigmoid", {open}));
  INGOT_ASSIGN_OR_RETURN(gate, node.Bind("multiply", {gate, open}));
  if (rounds != 0) {
    INGOT_ASSIGN_OR_RETURN(gate, CastTo(node, std::move(gate), *type->dtype));
    INGOT_ASSIGN_OR_RETURN(gate, CastTo(node, std::move(gate), kExact));
  }
  if (beta != 0) {
    INGOT_ASSIGN_OR_RETURN(const Expr offset, node.Scalar(beta, kExact));
    INGOT_ASSIGN_OR_RETURN(up, node.Bind("add", {up, offset}));
  }
  INGOT_ASSIGN_OR_RETURN(gate, node.Bind("multiply", {gate, up}));
  return One(CastTo(node, std::move(gate), *type->dtype));
}

// The decay and the rate of linear attention. Inputs: a projection [batch, sequence, heads], a bias and a factor of each
// head, and another projection, if the rate is asked for.
Outputs LinearAttentionGate(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {}));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  if (dims.size() != 3) return node.Invalid("expected a rank of 3, got " + std::to_string(dims.size()));
  if (WantsOutput(node, 1) && !node.HasInput(3)) return node.Invalid("a rate without its projection");
  INGOT_ASSIGN_OR_RETURN(Expr decay, ExactInput(node, 0));
  INGOT_ASSIGN_OR_RETURN(const Expr bias, PerChannel(node, 1, dims[2]));
  INGOT_ASSIGN_OR_RETURN(const Expr factor, PerChannel(node, 2, dims[2]));
  INGOT_ASSIGN_OR_RETURN(decay, node.Bind("add", {decay, bias}));
  INGOT_ASSIGN_OR_RETURN(decay, Apply(node, "Softplus", {decay}));
  INGOT_ASSIGN_OR_RETURN(decay, node.Bind("multiply", {decay, factor}));
  INGOT_ASSIGN_OR_RETURN(decay, CastTo(node, std::move(decay), *type->dtype));
  if (!WantsOutput(node, 1)) return One(std::move(decay));
  INGOT_ASSIGN_OR_RETURN(Expr rate, InputOfDims(node, 3, dims));
  INGOT_ASSIGN_OR_RETURN(rate, CastTo(node, std::move(rate), kExact));
  INGOT_ASSIGN_OR_RETURN(rate, node.Bind("sigmoid", {rate}));
  INGOT_ASSIGN_OR_RETURN(rate, CastTo(node, std::move(rate), *type->dtype));
  return std::vector<Expr>{std::move(decay), std::move(rate)};
}

// ---- rotations

// Which of the three positions gives each column its angle: columns one after another, or the second and the third
// position's among those of the first.
Result<std::vector<int32_t>> PositionOfColumn(const NodeImporter& node, int64_t half) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> sections, node.Ints("mrope_section", {}, 3));
  INGOT_ASSIGN_OR_RETURN(const int64_t layout, node.Int("mrope_layout", 0));
  if (layout != 0 && layout != 1) return node.Invalid("mrope_layout is " + std::to_string(layout));
  int64_t sum = 0;
  for (const int64_t section : sections) {
    if (section < 0 || section > half) return node.Invalid("mrope_section has " + std::to_string(section));
    sum += section;
  }
  if (sum != half) return node.Invalid("mrope_section is not of " + std::to_string(half) + " angles");
  std::vector<int32_t> chosen(static_cast<size_t>(half));
  for (int64_t column = 0; column < half; ++column) {
    int64_t which = 0;
    if (layout == 0) {
      which = column < sections[0] ? 0 : column < sections[0] + sections[1] ? 1 : 2;
    } else if (const int64_t place = column % 3; place != 0 && column < 3 * sections[static_cast<size_t>(place)]) {
      which = place;
    }
    chosen[static_cast<size_t>(column)] = static_cast<int32_t>(which);
  }
  return chosen;
}

// Inputs: the data, three positions of each word [3, batch, sequence], and the cosines and sines of positions.
Outputs MRotaryEmbedding(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"interleaved", "is_packed_batching", "mrope_layout", "mrope_section",
                                               "num_heads", "rotary_embedding_dim", "scale"}));
  INGOT_RETURN_IF_ERROR(RefuseUnless(node, "is_packed_batching", 0));
  INGOT_ASSIGN_OR_RETURN(const double scale, node.Float("scale", 1));
  if (scale != 1) return node.Unsupported("a scale");
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  if (dims.size() != 3 && dims.size() != 4) return node.Invalid("expected a rank of 3 or 4");
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> cache, StaticRankDims(node, 2));
  if (cache.size() != 2) return node.Invalid("cosines are not of rank 2");
  const auto half = ir::AsConstInt(cache[1]);
  if (!half) return node.Unsupported("a cache of unknown width");
  INGOT_ASSIGN_OR_RETURN(const std::vector<int32_t> chosen, PositionOfColumn(node, *half));
  const PrimExpr three = ir::Int64(3), &batch = dims[0], &length = dims[dims.size() - 2];
  INGOT_ASSIGN_OR_RETURN(const Expr positions, InputOfDims(node, 1, {three, batch, length}));
  const Expr columns = ConstantOf(DataType::Int(32), {*half}, chosen);
  std::vector<Expr> caches;
  for (size_t input : {2, 3}) {
    INGOT_ASSIGN_OR_RETURN(const Expr table, InputOfDims(node, input, cache));
    INGOT_ASSIGN_OR_RETURN(const Expr angles, node.Bind("take", {table, positions}, {{"axis", int64_t{0}}}));
    Expr mixed;
    for (int64_t which : {0, 1, 2}) {
      const std::vector<int64_t> axis = {0}, begin = {which}, end = {which + 1};
      INGOT_ASSIGN_OR_RETURN(Expr own,
                             node.Bind("strided_slice", {angles, PrimTuple(axis), PrimTuple(begin), PrimTuple(end)}));
      INGOT_ASSIGN_OR_RETURN(own, node.Bind("reshape", {own, ShapeOf({batch, length, cache[1]})}));
      if (mixed == nullptr) {
        mixed = std::move(own);
        continue;
      }
      INGOT_ASSIGN_OR_RETURN(const Expr number, node.Scalar(which, DataType::Int(32)));
      INGOT_ASSIGN_OR_RETURN(const Expr is_own, node.Bind("equal", {columns, number}));
      INGOT_ASSIGN_OR_RETURN(mixed, node.Bind("where", {is_own, own, mixed}));
    }
    caches.push_back(std::move(mixed));
  }
  INGOT_ASSIGN_OR_RETURN(int64_t heads, node.Int("num_heads", 0));
  if (heads == 0 && dims.size() == 3) {
    const auto width = ir::AsConstInt(dims[2]);
    if (!width || *half < 1) return node.Unsupported("a number of heads that is symbolic");
    heads = *width / (2 * *half);
  }
  Attributes attributes = Copied(node, {"interleaved", "rotary_embedding_dim"});
  attributes.push_back(AttributeOf("num_heads", heads));
  return One(Apply(node, "RotaryEmbedding", {x, caches[0], caches[1]}, std::move(attributes)));
}

constexpr OnnxOpRow kGateRows[] = {
    {"GatedRMSNorm", nullptr, GatedRmsNorm, kMicrosoft},
    {"LinearAttentionGate", nullptr, LinearAttentionGate, kMicrosoft},
    {"MRotaryEmbedding", nullptr, MRotaryEmbedding, kMicrosoft},
    {"SwiGLU", nullptr, MsSwiGlu, kMicrosoft},
};

}  // namespace

std::span<const OnnxOpRow> GateOnnxOps() { return kGateRows; }

}  // namespace ingot::importer
