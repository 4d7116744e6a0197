// com.microsoft's mixtures of experts: each row of the data goes to the k of E small networks that its router prefers,
// and their results are summed by its weights. Here all experts compute all rows, as products of batches of matrices,
// and those that were not chosen are left out of the sum: E / k times the work, in kernels that have no rows to sort.
#include <limits>
#include <optional>
#include <utility>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/contrib.h"
#include "compiler/importer/ops/families.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

const DataType kRouteScore = DataType::Float(32), kRouteIndex = DataType::Int(64);

// What an expert multiplies with: [experts, outputs, inputs] and [experts, outputs]; null where there is none.
struct ExpertLayer {
  Expr weight, bias;
};
struct Experts {
  PrimExpr rows;
  int64_t count = 0, chosen = 0, width = 0;  // experts, those of a row, and the numbers in a row
  bool sums_to_one = false;                  // the weights of those of a row
};

Status CheckExpertAttributes(const NodeImporter& node, bool is_quantised) {
  if (is_quantised) {
    INGOT_RETURN_IF_ERROR(CheckAttributes(
        node, {"accuracy_level", "activation_alpha", "activation_beta", "activation_type", "block_size",
               "expert_weight_bits", "fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits", "k",
               "normalize_routing_weights", "quant_type", "swiglu_fusion", "swiglu_limit",
               "swiglu_limit_after_activation", "use_sparse_mixer", "weights_prepacked"}));
  } else {
    INGOT_RETURN_IF_ERROR(CheckAttributes(
        node, {"activation_alpha", "activation_beta", "activation_type", "k", "normalize_routing_weights",
               "swiglu_fusion", "swiglu_limit", "swiglu_limit_after_activation", "use_sparse_mixer"}));
  }
  for (const char* name : {"use_sparse_mixer", "swiglu_limit_after_activation"}) {
    INGOT_ASSIGN_OR_RETURN(const int64_t value, node.Int(name, 0));
    if (value != 0) return node.Unsupported(name);
  }
  return Status();
}

// Reads the data (input 0) and what its router says of it (input 1).
Result<Experts> ReadExperts(const NodeImporter& node) {
  Experts experts;
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> router, StaticRankDims(node, 1));
  if ((dims.size() != 2 && dims.size() != 3) || router.size() != 2) {
    return node.Invalid("expected data of rank 2 or 3 and a router of rank 2");
  }
  const auto width = ir::AsConstInt(dims.back()), count = ir::AsConstInt(router[1]);
  if (!width || !count) return node.Unsupported("a symbolic number of experts, or a hidden size that is symbolic");
  experts.rows = Product(std::span(dims).first(dims.size() - 1));
  experts.width = *width;
  experts.count = *count;
  INGOT_ASSIGN_OR_RETURN(const int64_t normalises, node.Int("normalize_routing_weights", 0));
  experts.sums_to_one = normalises != 0;
  INGOT_ASSIGN_OR_RETURN(experts.chosen, node.Int("k", 1));
  if (experts.chosen < 1 || experts.chosen > experts.count) {
    return node.Invalid("k is " + std::to_string(experts.chosen) + " of " + std::to_string(experts.count) + " experts");
  }
  return experts;
}

// Returns each row's weight for each expert, [experts, rows, 1] of float32: 0 for those that are not chosen. Weights
// that are given apart (null: none) are taken as they are.
Result<Expr> RoutingWeights(const NodeImporter& node, const Experts& experts, const Expr& given) {
  INGOT_ASSIGN_OR_RETURN(Expr scores, node.Input(1));
  const PrimExpr count = ir::Int64(experts.count), one = ir::Int64(1), chosen = ir::Int64(experts.chosen);
  scores = WithDims(node, std::move(scores), {experts.rows, count});
  INGOT_ASSIGN_OR_RETURN(scores, CastTo(node, std::move(scores), kRouteScore));
  INGOT_ASSIGN_OR_RETURN(Expr shares, node.Bind("nn.softmax", {scores}, {{"axis", int64_t{-1}}}));
  INGOT_ASSIGN_OR_RETURN(const std::vector<Expr> best,
                         Fields(node.Bind("topk", {shares}, {{"k", experts.chosen}, {"dtype", kRouteIndex}})));
  Expr weights = node.BindValue(best.at(0), "weights");
  const Expr places = node.BindValue(best.at(1), "places");
  if (given != nullptr) {
    INGOT_ASSIGN_OR_RETURN(Expr apart, CastTo(node, given, kRouteScore));
    apart = WithDims(node, std::move(apart), {experts.rows, count});
    INGOT_ASSIGN_OR_RETURN(weights, node.Bind("gather_elements", {apart, places}, {{"axis", int64_t{1}}}));
  }
  if (experts.sums_to_one) {
    INGOT_ASSIGN_OR_RETURN(const Expr sum,
                           node.Bind("sum", {weights}, {{"axis", AttrValue::Ints({1})}, {"keepdims", true}}));
    INGOT_ASSIGN_OR_RETURN(weights, node.Bind("divide", {weights, sum}));
  }
  INGOT_ASSIGN_OR_RETURN(weights, node.Bind("reshape", {weights, ShapeOf({one, experts.rows, chosen})}));
  INGOT_ASSIGN_OR_RETURN(const Expr apart, node.Bind("reshape", {places, ShapeOf({one, experts.rows, chosen})}));
  INGOT_ASSIGN_OR_RETURN(
      Expr names, node.Bind("arange", {Number(ir::Int64(0)), Number(count), Number(one)}, {{"dtype", kRouteIndex}}));
  INGOT_ASSIGN_OR_RETURN(names, node.Bind("reshape", {names, ShapeOf({count, one, one})}));
  INGOT_ASSIGN_OR_RETURN(const Expr is_chosen, node.Bind("equal", {names, apart}));
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, kRouteScore));
  INGOT_ASSIGN_OR_RETURN(weights, node.Bind("where", {is_chosen, weights, zero}));
  return node.Bind("sum", {weights}, {{"axis", AttrValue::Ints({2})}, {"keepdims", true}});
}

// Returns rows [experts or 1, rows, inputs] times an expert's matrix, plus its bias.
Result<Expr> Multiplied(const NodeImporter& node, const Expr& rows, const ExpertLayer& layer) {
  INGOT_ASSIGN_OR_RETURN(const Expr turned, Permuted(node, layer.weight, {0, 2, 1}));
  INGOT_ASSIGN_OR_RETURN(Expr y, node.Bind("matmul", {rows, turned}));
  if (layer.bias == nullptr) return y;
  const std::vector<PrimExpr> dims = DimsOf(layer.weight);
  Expr bias = WithDims(node, layer.bias, {dims[0], dims[1]});
  INGOT_ASSIGN_OR_RETURN(bias, node.Bind("reshape", {bias, ShapeOf({dims[0], ir::Int64(1), dims[1]})}));
  return node.Bind("add", {y, bias});
}

Result<Expr> Limited(const NodeImporter& node, const Expr& x, double low, double high) {
  return node.Bind("clip", {x, ir::Make<ir::PrimValueNode>(ir::FloatImm(DTypeOf(x), low)),
                            ir::Make<ir::PrimValueNode>(ir::FloatImm(DTypeOf(x), high))});
}

// gate * sigmoid(alpha * gate) * (linear + beta), of numbers within the limit.
Result<Expr> Gated(const NodeImporter& node, Expr gate, Expr linear) {
  constexpr double kMost = std::numeric_limits<double>::infinity();
  INGOT_ASSIGN_OR_RETURN(const double alpha, node.Float("activation_alpha", 1));
  INGOT_ASSIGN_OR_RETURN(const double beta, node.Float("activation_beta", 0));
  INGOT_ASSIGN_OR_RETURN(const double limit, node.Float("swiglu_limit", kMost));
  if (limit != kMost) {
    if (!(limit > 0)) return node.Invalid("swiglu_limit is no positive number");
    INGOT_ASSIGN_OR_RETURN(gate, Limited(node, gate, -kMost, limit));
    INGOT_ASSIGN_OR_RETURN(linear, Limited(node, linear, -limit, limit));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr scale, node.Scalar(alpha, DTypeOf(gate)));
  INGOT_ASSIGN_OR_RETURN(const Expr shift, node.Scalar(beta, DTypeOf(gate)));
  INGOT_ASSIGN_OR_RETURN(Expr share, node.Bind("multiply", {gate, scale}));
  INGOT_ASSIGN_OR_RETURN(share, node.Bind("sigmoid", {share}));
  INGOT_ASSIGN_OR_RETURN(gate, node.Bind("multiply", {gate, share}));
  INGOT_ASSIGN_OR_RETURN(linear, node.Bind("add", {linear, shift}));
  return node.Bind("multiply", {gate, linear});
}

// Returns both halves of the last axis: every second number (by_pairs), or the first and the last ones.
Result<std::pair<Expr, Expr>> GateAndLinear(const NodeImporter& node, const Expr& x, bool by_pairs) {
  std::vector<PrimExpr> dims = DimsOf(x);
  const PrimExpr two = ir::Int64(2), part_width = op::SimplifyDim(ir::FloorDiv(dims.back(), two));
  if (op::DimsDiffer(dims.back(), op::SimplifyDim(part_width * 2))) {
    return node.Invalid("gates and linear parts are not alike in number");
  }
  std::vector<PrimExpr> apart = dims, half = dims;
  apart.back() = by_pairs ? part_width : two;
  apart.push_back(by_pairs ? two : part_width);
  half.back() = part_width;
  INGOT_ASSIGN_OR_RETURN(const Expr split, node.Bind("reshape", {x, ShapeOf(apart)}));
  std::vector<Expr> parts;
  for (int64_t i : {0, 1}) {
    const std::vector<int64_t> axis = {std::ssize(dims) - (by_pairs ? 0 : 1)}, begin = {i}, end = {i + 1};
    INGOT_ASSIGN_OR_RETURN(Expr part,
                           node.Bind("strided_slice", {split, PrimTuple(axis), PrimTuple(begin), PrimTuple(end)}));
    INGOT_ASSIGN_OR_RETURN(part, node.Bind("reshape", {part, ShapeOf(half)}));
    parts.push_back(std::move(part));
  }
  return std::pair(parts[0], parts[1]);
}

// Returns what the experts' second layer takes: their first one's result, activated, and times their third one's.
Result<Expr> Hidden(const NodeImporter& node, const Expr& rows, const ExpertLayer& first, const ExpertLayer& third) {
  INGOT_ASSIGN_OR_RETURN(const std::string name, node.String("activation_type", "relu"));
  INGOT_ASSIGN_OR_RETURN(const int64_t fusion, node.Int("swiglu_fusion", 0));
  INGOT_ASSIGN_OR_RETURN(Expr h, Multiplied(node, rows, first));
  if (name == "swiglu") {
    if (fusion < 0 || fusion > 2) return node.Invalid("swiglu_fusion is " + std::to_string(fusion));
    if ((fusion == 0) != (third.weight != nullptr)) return node.Invalid("swiglu_fusion does not fit the layers");
    if (fusion == 0) {
      INGOT_ASSIGN_OR_RETURN(Expr linear, Multiplied(node, rows, third));
      return Gated(node, std::move(h), std::move(linear));
    }
    INGOT_ASSIGN_OR_RETURN(const auto halves, GateAndLinear(node, h, fusion == 1));
    return Gated(node, halves.first, halves.second);
  }
  if (name == "relu") {
    INGOT_ASSIGN_OR_RETURN(h, node.Bind("nn.relu", {h}));
  } else if (name == "gelu") {
    INGOT_ASSIGN_OR_RETURN(h, Apply(node, "Gelu", {h}, {AttributeOf("approximate", std::string("tanh"))}));
  } else if (name == "silu") {
    INGOT_ASSIGN_OR_RETURN(h, node.Bind("nn.silu", {h}));
  } else if (name != "identity") {
    return node.Unsupported("the activation \"" + name + "\"");
  }
  if (third.weight == nullptr) return h;
  INGOT_ASSIGN_OR_RETURN(const Expr factor, Multiplied(node, rows, third));
  return node.Bind("multiply", {h, factor});
}

Outputs Mixed(const NodeImporter& node, const Experts& experts, const ExpertLayer (&layers)[3], const Expr& given) {
  const PrimExpr width = ir::Int64(experts.width), one = ir::Int64(1);
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  const DataType dtype = DTypeOf(x);
  for (const ExpertLayer& layer : layers) {
    if (layer.weight == nullptr) continue;
    const std::vector<PrimExpr>& dims = DimsOf(layer.weight);
    if (dims.size() != 3 || op::DimsDiffer(dims[0], ir::Int64(experts.count))) {
      return node.Invalid("expected the weights of " + std::to_string(experts.count) + " experts");
    }
    const bool is_last = &layer == &layers[1];
    if (op::DimsDiffer(dims[is_last ? 1 : 2], width)) {
      return node.Invalid(std::string(is_last ? "outputs" : "inputs") + " of an expert that are not " +
                          std::to_string(experts.width));
    }
    if (&layer == &layers[2] && op::DimsDiffer(dims[1], DimsOf(layers[0].weight)[1])) {
      return node.Invalid("first and third layers are not alike in outputs");
    }
    if (layer.bias == nullptr) continue;
    const std::vector<PrimExpr>& bias = DimsOf(layer.bias);
    if (bias.size() != 2 || op::DimsDiffer(bias[0], dims[0]) || op::DimsDiffer(bias[1], dims[1])) {
      return node.Invalid("expected a bias for each output of an expert");
    }
  }
  INGOT_ASSIGN_OR_RETURN(const Expr weights, RoutingWeights(node, experts, given));
  INGOT_ASSIGN_OR_RETURN(const Expr rows, node.Bind("reshape", {x, ShapeOf({one, experts.rows, width})}));
  INGOT_ASSIGN_OR_RETURN(const Expr hidden, Hidden(node, rows, layers[0], layers[2]));
  INGOT_ASSIGN_OR_RETURN(Expr y, Multiplied(node, hidden, layers[1]));
  INGOT_ASSIGN_OR_RETURN(y, CastTo(node, std::move(y), kRouteScore));
  // What was not chosen may be infinite.
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, kRouteScore));
  INGOT_ASSIGN_OR_RETURN(const Expr counts, node.Bind("not_equal", {weights, zero}));
  INGOT_ASSIGN_OR_RETURN(y, node.Bind("multiply", {y, weights}));
  INGOT_ASSIGN_OR_RETURN(y, node.Bind("where", {counts, y, zero}));
  INGOT_ASSIGN_OR_RETURN(y, node.Bind("sum", {y}, {{"axis", AttrValue::Ints({0})}, {"keepdims", false}}));
  INGOT_ASSIGN_OR_RETURN(y, CastTo(node, std::move(y), dtype));
  return One(ReshapeTo(node, std::move(y), DimsOf(x)));
}

// Inputs: the data, the router's scores, and the weights and biases of three layers.
Outputs MixtureOfExperts(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckExpertAttributes(node, false));
  INGOT_ASSIGN_OR_RETURN(const Experts experts, ReadExperts(node));
  ExpertLayer layers[3];
  for (size_t i = 0; i < 3; ++i) {
    const size_t place = 2 + 2 * i;
    if (i == 2 && !node.HasInput(place)) break;
    INGOT_ASSIGN_OR_RETURN(layers[i].weight, node.Input(place));
    INGOT_RETURN_IF_ERROR(StaticRankDims(node, place).status());
    INGOT_ASSIGN_OR_RETURN(layers[i].bias, InputOrNull(node, place + 1));
    if (layers[i].bias != nullptr) INGOT_RETURN_IF_ERROR(StaticRankDims(node, place + 1).status());
  }
  return Mixed(node, experts, layers, nullptr);
}

// ---- weights of few bits

// Returns numbers for each row of a matrix, or for each of its blocks, [experts, outputs, blocks, 1].
Result<Expr> PerRowBlock(const NodeImporter& node, Expr x, const std::vector<PrimExpr>& dims, DataType dtype) {
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, std::move(x), dtype));
  return node.Bind("reshape", {x, ShapeOf(dims)});
}

// Returns a layer's weights, input `place`, of this dtype: the number less its zero point (`zero`, or half of the
// range), times its scale (place + 1).
Result<Expr> DequantisedLayer(const NodeImporter& node, size_t place, size_t zero, const char* bits_of,
                              DataType dtype) {
  INGOT_ASSIGN_OR_RETURN(int64_t bits, node.Int("expert_weight_bits", 4));
  INGOT_ASSIGN_OR_RETURN(bits, node.Int(bits_of, bits));
  if (bits != 2 && bits != 4 && bits != 8) return node.Unsupported("numbers of " + std::to_string(bits) + " bits");
  INGOT_ASSIGN_OR_RETURN(const int64_t block, node.Int("block_size", 0));
  INGOT_ASSIGN_OR_RETURN(Expr w, node.Input(place));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> packed, StaticRankDims(node, place));
  INGOT_ASSIGN_OR_RETURN(const Expr scale, node.Input(place + 1));
  INGOT_RETURN_IF_ERROR(StaticRankDims(node, place + 1).status());
  const DataType scale_type = DTypeOf(scale);
  if (!scale_type.is_floating() || scale_type.bits < 16) return node.Unsupported("scales of " + scale_type.ToString());
  const auto bytes = packed.size() == 3 ? ir::AsConstInt(packed[2]) : std::nullopt;
  if (!bytes || DTypeOf(w) != DataType::UInt(8)) return node.Invalid("expected packed weights of rank 3");
  constexpr int64_t kMostBytes = int64_t{1} << 40;
  if (*bytes < 1 || *bytes > kMostBytes) return node.Invalid("rows of " + std::to_string(*bytes) + " packed bytes");
  const int64_t width = *bytes * (8 / bits), length = block > 0 ? block : width;
  if (block < 0 || width % length != 0)
    return node.Invalid("blocks of " + std::to_string(block) + " do not divide rows");
  const int64_t blocks = width / length;
  const std::vector<PrimExpr> per_block = {packed[0], packed[1], ir::Int64(blocks), ir::Int64(1)};
  INGOT_ASSIGN_OR_RETURN(w, UnpackedBits(node, w, bits));
  INGOT_ASSIGN_OR_RETURN(
      w, node.Bind("reshape", {w, ShapeOf({packed[0], packed[1], ir::Int64(blocks), ir::Int64(length)})}));
  INGOT_ASSIGN_OR_RETURN(w, CastTo(node, std::move(w), dtype));
  Expr start;
  if (node.HasInput(zero)) {
    INGOT_ASSIGN_OR_RETURN(start, node.Input(zero));
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, zero));
    INGOT_ASSIGN_OR_RETURN(start, UnpackedBits(node, start, bits));
    const int64_t wanted = block > 0 ? blocks : ir::AsConstInt(packed[1]).value_or(0);
    const int64_t last = dims.empty() ? 0 : ir::AsConstInt(DimsOf(start).back()).value_or(0);
    if (wanted < 1 || last < wanted || last - wanted >= 8 / bits)
      return node.Invalid("expected a zero point for each scale");
    if (last != wanted) {
      const std::vector<int64_t> axis = {std::ssize(dims) - 1}, begin = {0}, end = {wanted};
      INGOT_ASSIGN_OR_RETURN(start,
                             node.Bind("strided_slice", {start, PrimTuple(axis), PrimTuple(begin), PrimTuple(end)}));
    }
    INGOT_ASSIGN_OR_RETURN(start, PerRowBlock(node, std::move(start), per_block, dtype));
  } else {
    INGOT_ASSIGN_OR_RETURN(start, node.Scalar(1 << (bits - 1), dtype));
  }
  INGOT_ASSIGN_OR_RETURN(w, node.Bind("subtract", {w, start}));
  INGOT_ASSIGN_OR_RETURN(const Expr factor, PerRowBlock(node, scale, per_block, dtype));
  INGOT_ASSIGN_OR_RETURN(w, node.Bind("multiply", {w, factor}));
  return node.Bind("reshape", {w, ShapeOf({packed[0], packed[1], ir::Int64(width)})});
}

// Inputs: the data, the router's scores, the weights, scales and biases of three layers, their zero points, and the
// weights of experts where these are not the scores; else they sum to one, whatever the attribute says, as ONNX Runtime
// has it on a CPU.
Outputs QuantisedExperts(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckExpertAttributes(node, true));
  INGOT_ASSIGN_OR_RETURN(const std::string kind, node.String("quant_type", "int"));
  if (kind != "int") return node.Unsupported("quant_type \"" + kind + "\"");
  INGOT_ASSIGN_OR_RETURN(const int64_t prepacked, node.Int("weights_prepacked", -1));
  if (prepacked == 1) return node.Unsupported("weights that are packed for a device");
  for (size_t i = 15; i < node.num_inputs(); ++i) {
    INGOT_RETURN_IF_ERROR(RefuseInput(node, i, "of global or activation scales"));
  }
  INGOT_ASSIGN_OR_RETURN(Experts experts, ReadExperts(node));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  constexpr const char* kBits[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits"};
  ExpertLayer layers[3];
  for (size_t i = 0; i < 3; ++i) {
    const size_t place = 2 + 3 * i;
    if (i == 2 && !node.HasInput(place)) break;
    INGOT_ASSIGN_OR_RETURN(layers[i].weight, DequantisedLayer(node, place, 11 + i, kBits[i], *type->dtype));
    INGOT_ASSIGN_OR_RETURN(layers[i].bias, InputOrNull(node, place + 2));
    if (layers[i].bias != nullptr) INGOT_RETURN_IF_ERROR(StaticRankDims(node, place + 2).status());
  }
  INGOT_ASSIGN_OR_RETURN(const Expr given, InputOrNull(node, 14));
  if (given != nullptr) INGOT_RETURN_IF_ERROR(StaticRankDims(node, 14).status());
  if (given == nullptr) experts.sums_to_one = true;
  return Mixed(node, experts, layers, given);
}

constexpr OnnxOpRow kExpertRows[] = {
    {"MoE", nullptr, MixtureOfExperts, kMicrosoft},
    {"QMoE", nullptr, QuantisedExperts, kMicrosoft},
};

}  // namespace

std::span<const OnnxOpRow> ExpertOnnxOps() { return kExpertRows; }

}  // namespace ingot::importer
