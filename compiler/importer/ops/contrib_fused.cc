// com.microsoft's fused operators, which ONNX Runtime's optimisers write: products and convolutions with an activation,
// forms of GELU, normalisations of sums, and convolutions of channels that come last.
#include <algorithm>

#include "compiler/importer/ops/contrib.h"
#include "compiler/importer/ops/families.h"

namespace ingot::importer {
namespace {

// ---- activations

// QuickGelu: x * sigmoid(alpha * x).
Outputs QuickGelu(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"alpha"}));
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(const double alpha, node.Float("alpha", 1.702f));
  INGOT_ASSIGN_OR_RETURN(const Expr scale, node.Scalar(alpha, *type->dtype));
  INGOT_ASSIGN_OR_RETURN(Expr gate, node.Bind("multiply", {x, scale}));
  INGOT_ASSIGN_OR_RETURN(gate, node.Bind("sigmoid", {gate}));
  return One(node.Call("multiply", {x, gate}));
}

// Gelu, BiasGelu and FastGelu: of x, or of x and a bias of its last axis.
template <bool is_fast>
Outputs GeluOfSum(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {}));
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  if (node.HasInput(1)) {
    INGOT_ASSIGN_OR_RETURN(Expr bias, node.Input(1));
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> own, StaticRankDims(node, 1));
    if (own.size() != 1 || dims.empty()) return node.Invalid("expected a bias of rank 1");
    bias = WithDims(node, std::move(bias), {dims.back()});
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("add", {x, bias}));
  }
  Attributes attributes;
  if (is_fast) attributes.push_back(AttributeOf("approximate", std::string("tanh")));
  return One(Apply(node, "Gelu", {x}, std::move(attributes)));
}

// The activation that a fused operator names, with its parameters under their names in ONNX.
Result<Expr> Activated(const NodeImporter& node, const Expr& x, const std::string& name, Attributes attributes) {
  for (const std::string_view known : {"Celu", "Elu", "HardSigmoid", "LeakyRelu", "Relu", "Selu", "Sigmoid", "Softplus",
                                       "Softsign", "Tanh", "ThresholdedRelu"}) {
    if (name == known) return Apply(node, name, {x}, std::move(attributes));
  }
  return node.Unsupported("the activation \"" + name + "\"");
}

// ---- products and convolutions

// Returns an operand of FusedMatMul as [batch, rows, columns]; `batches`: the rows are the first axis.
Result<Expr> MatrixOperand(const NodeImporter& node, size_t input, bool swaps, bool batches) {
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(input));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, input));
  const size_t rank = dims.size();
  if (batches && rank < 3) return node.Unsupported("transposed batches of an operand of rank " + std::to_string(rank));
  if (rank < 2 || (!swaps && !batches)) return x;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  if (batches) std::rotate(axes.begin(), axes.begin() + 1, axes.end() - 1);
  if (swaps) std::swap(axes[rank - 2], axes[rank - 1]);
  return node.Bind("permute_dims", {x}, {{"axes", AttrValue::Ints(axes)}});
}

Result<Expr> ProductOf(const NodeImporter& node) {
  std::vector<Expr> operands;
  for (size_t i : {0, 1}) {
    INGOT_ASSIGN_OR_RETURN(const int64_t swaps, node.Int(i == 0 ? "transA" : "transB", 0));
    INGOT_ASSIGN_OR_RETURN(const int64_t batches, node.Int(i == 0 ? "transBatchA" : "transBatchB", 0));
    INGOT_ASSIGN_OR_RETURN(Expr operand, MatrixOperand(node, i, swaps != 0, batches != 0));
    operands.push_back(std::move(operand));
  }
  INGOT_ASSIGN_OR_RETURN(const double alpha, node.Float("alpha", 1));
  INGOT_ASSIGN_OR_RETURN(const Expr product, node.Bind("matmul", operands));
  if (alpha == 1) return product;
  INGOT_ASSIGN_OR_RETURN(const Expr scale, node.Scalar(alpha, DTypeOf(product)));
  return node.Bind("multiply", {product, scale});
}

Outputs FusedMatMul(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"alpha", "transA", "transB", "transBatchA", "transBatchB"}));
  return One(ProductOf(node));
}

// The attributes of an activation that are there, under their names in ONNX.
Attributes ParametersOf(const NodeImporter& node) {
  Attributes parameters = Copied(node, {"activation_alpha", "activation_axis", "activation_beta", "activation_gamma"});
  for (OnnxAttribute& parameter : parameters) parameter.name.erase(0, std::string_view("activation_").size());
  return parameters;
}

Outputs FusedMatMulActivation(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(
      CheckAttributes(node, {"activation", "activation_alpha", "activation_axis", "activation_beta", "activation_gamma",
                             "alpha", "transA", "transB", "transBatchA", "transBatchB"}));
  INGOT_ASSIGN_OR_RETURN(const Expr product, ProductOf(node));
  INGOT_ASSIGN_OR_RETURN(const std::string activation, node.String("activation", ""));
  return One(Activated(node, product, activation, ParametersOf(node)));
}

Outputs FusedGemm(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"activation", "activation_alpha", "activation_beta", "activation_gamma",
                                               "alpha", "beta", "transA", "transB"}));
  std::vector<Expr> in;
  for (size_t i = 0; i < 3; ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr input, InputOrNull(node, i));
    in.push_back(std::move(input));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr y, Apply(node, "Gemm", in, Copied(node, {"alpha", "beta", "transA", "transB"})));
  INGOT_ASSIGN_OR_RETURN(const std::string activation, node.String("activation", ""));
  if (activation.empty()) return One(y);
  return One(Activated(node, y, activation, ParametersOf(node)));
}

// The activation of a convolution; its parameters are listed without names.
Result<Expr> ConvActivated(const NodeImporter& node, const Expr& x) {
  INGOT_ASSIGN_OR_RETURN(const std::string name, node.String("activation", ""));
  if (name.empty()) return x;
  std::vector<float> given;
  if (const OnnxAttribute* attribute = node.FindAttr("activation_params")) {
    const auto* values = std::get_if<std::vector<float>>(&attribute->value);
    if (values == nullptr) return node.Invalid("attribute \"activation_params\": expected floats");
    given = *values;
  }
  const size_t expected = name == "LeakyRelu" ? 1 : name == "Clip" || name == "HardSigmoid" ? 2 : 0;
  if (given.size() != expected) {
    return node.Invalid(name + " takes " + std::to_string(expected) + " parameters, got " +
                        std::to_string(given.size()));
  }
  if (name == "Clip") {
    return node.Bind("clip", {x, ir::Make<ir::PrimValueNode>(ir::FloatImm(DTypeOf(x), given[0])),
                              ir::Make<ir::PrimValueNode>(ir::FloatImm(DTypeOf(x), given[1]))});
  }
  if (name == "HardSwish") return Apply(node, name, {x});
  if (name != "HardSigmoid" && name != "LeakyRelu" && name != "Relu" && name != "Sigmoid" && name != "Tanh") {
    return node.Unsupported("the activation \"" + name + "\"");
  }
  Attributes parameters;
  for (size_t i = 0; i < given.size(); ++i) parameters.push_back(AttributeOf(i == 0 ? "alpha" : "beta", given[i]));
  return Activated(node, x, name, std::move(parameters));
}

// Inputs: those of Conv, and a tensor that is added before the activation.
Outputs FusedConv(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(
      node, {"activation", "activation_params", "auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  std::vector<Expr> in;
  for (size_t i = 0; i < 3; ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr input, InputOrNull(node, i));
    in.push_back(std::move(input));
  }
  INGOT_ASSIGN_OR_RETURN(
      Expr y,
      Apply(node, "Conv", in, Copied(node, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"})));
  if (node.HasInput(3)) {
    INGOT_ASSIGN_OR_RETURN(Expr sum, node.Input(3));
    INGOT_RETURN_IF_ERROR(StaticRankDims(node, 3).status());
    sum = WithDims(node, std::move(sum), DimsOf(y));
    INGOT_ASSIGN_OR_RETURN(y, node.Bind("add", {y, sum}));
  }
  return One(ConvActivated(node, y));
}

// A convolution of a picture whose channels come last, in the weights [O, H, W, C / group] as well.
Outputs NhwcConv(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  const int64_t rank = std::ssize(dims);
  if (rank < 3) return node.Invalid("expected a picture, got rank " + std::to_string(rank));
  std::vector<int64_t> to_front = {0, rank - 1}, to_end = {0};
  for (int64_t axis = 1; axis + 1 < rank; ++axis) {
    to_front.push_back(axis);
    to_end.push_back(axis + 1);
  }
  to_end.push_back(1);
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("permute_dims", {x}, {{"axes", AttrValue::Ints(to_front)}}));
  INGOT_ASSIGN_OR_RETURN(Expr weight, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> of_weight, StaticRankDims(node, 1));
  if (std::ssize(of_weight) != rank) return node.Invalid("the weights are of another rank than the picture");
  INGOT_ASSIGN_OR_RETURN(weight, node.Bind("permute_dims", {weight}, {{"axes", AttrValue::Ints(to_front)}}));
  INGOT_ASSIGN_OR_RETURN(const Expr bias, InputOrNull(node, 2));
  INGOT_ASSIGN_OR_RETURN(const Expr y, Apply(node, "Conv", {x, weight, bias}, node.node().attributes));
  return One(node.Call("permute_dims", {y}, {{"axes", AttrValue::Ints(to_end)}}));
}

// ---- normalisations

Outputs SimplifiedLayerNormalization(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"axis", "epsilon", "stash_type"}));
  INGOT_RETURN_IF_ERROR(RefuseOutput(node, 1, "inv_std_var"));
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const Expr scale, node.Input(1));
  return One(Apply(node, "RMSNormalization", {x, scale}, Copied(node, {"axis", "epsilon", "stash_type"})));
}

// Returns input 0 plus what is skipped (input 1), which may lack the batch, plus a bias of the last axis (an input, which may be left out).
Result<Expr> SkipSum(const NodeImporter& node, size_t bias) {
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr skip, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  INGOT_RETURN_IF_ERROR(StaticRankDims(node, 1).status());
  INGOT_ASSIGN_OR_RETURN(skip, BroadcastInto(node, std::move(skip), dims));
  INGOT_ASSIGN_OR_RETURN(Expr sum, node.Bind("add", {x, skip}));
  if (!node.HasInput(bias)) return sum;
  if (dims.empty()) return node.Invalid("expected data with a last axis");
  INGOT_ASSIGN_OR_RETURN(const Expr numbers, PerChannel(node, bias, dims.back()));
  return node.Bind("add", {sum, numbers});
}

// Outputs: the normalised sum, its mean and inverse deviation (which only training reads), and the sum itself.
template <bool is_simplified>
Outputs SkipNormalization(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"epsilon"}));
  INGOT_RETURN_IF_ERROR(RefuseOutput(node, 1, "mean"));
  INGOT_RETURN_IF_ERROR(RefuseOutput(node, 2, "inv_std_var"));
  INGOT_ASSIGN_OR_RETURN(const double epsilon, node.Float("epsilon", 1e-12f));
  INGOT_ASSIGN_OR_RETURN(const Expr sum, SkipSum(node, is_simplified ? 3 : 4));
  INGOT_ASSIGN_OR_RETURN(const Expr gamma, node.Input(2));
  std::vector<Expr> in = {sum, gamma};
  if (!is_simplified && node.HasInput(3)) {
    INGOT_ASSIGN_OR_RETURN(Expr beta, node.Input(3));
    in.push_back(std::move(beta));
  }
  INGOT_ASSIGN_OR_RETURN(
      const Expr y, Apply(node, is_simplified ? "RMSNormalization" : "LayerNormalization", in,
                          {AttributeOf("epsilon", static_cast<float>(epsilon)), AttributeOf("axis", int64_t{-1})}));
  return std::vector<Expr>{y, y, y, sum};
}

// Inputs: the ids of words and segments, the embeddings of words, positions and segments, gamma, beta, a mask, and the
// positions. Outputs: the normalised sum of embeddings, how many words of each sentence count, and the sum itself.
// Tables and factors of the quantised form are bytes: their scales are the inputs 8 on, their zero points 13 on.
template <bool is_quantised>
Outputs EmbedLayerNormalization(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"epsilon", "mask_index_type"}));
  const DataType int32 = DataType::Int(32);
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> ids, StaticRankDims(node, 0));
  if (ids.size() != 2) return node.Invalid("expected ids of rank 2, got " + std::to_string(ids.size()));
  if (node.HasInput(1) != node.HasInput(4)) return node.Invalid("segments and their embedding go together");
  constexpr size_t kFirstTable = 2, kPositions = 8, kFirstScale = 8, kFirstZero = 13;
  const auto as_floats = [&](size_t table, const Expr& x) -> Result<Expr> {
    if (!is_quantised) return x;
    INGOT_ASSIGN_OR_RETURN(const Expr scale, node.Input(table - kFirstTable + kFirstScale));
    INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Input(table - kFirstTable + kFirstZero));
    return Apply(node, "DequantizeLinear", {x, scale, zero});
  };
  const auto taken = [&](size_t table, const Expr& places) -> Result<Expr> {
    INGOT_ASSIGN_OR_RETURN(const Expr rows, node.Input(table));
    INGOT_ASSIGN_OR_RETURN(const Expr reached, node.Bind("take", {rows, places}, {{"axis", int64_t{0}}}));
    return as_floats(table, reached);
  };
  INGOT_ASSIGN_OR_RETURN(const Expr words, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr sum, taken(2, words));
  Expr positions;
  if (!is_quantised && node.HasInput(kPositions)) {
    INGOT_ASSIGN_OR_RETURN(positions, node.Input(kPositions));
  } else {
    const Expr first = ir::Make<ir::PrimValueNode>(ir::Int64(0)), step = ir::Make<ir::PrimValueNode>(ir::Int64(1));
    INGOT_ASSIGN_OR_RETURN(positions, node.Bind("arange", {first, ir::Make<ir::PrimValueNode>(ids[1]), step},
                                                {{"dtype", DataType::Int(64)}}));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr placed, taken(3, positions));
  INGOT_ASSIGN_OR_RETURN(sum, node.Bind("add", {sum, placed}));
  if (node.HasInput(1)) {
    INGOT_ASSIGN_OR_RETURN(const Expr segments, InputOfDims(node, 1, ids));
    INGOT_ASSIGN_OR_RETURN(const Expr segment, taken(4, segments));
    INGOT_ASSIGN_OR_RETURN(sum, node.Bind("add", {sum, segment}));
  }
  INGOT_ASSIGN_OR_RETURN(const double epsilon, node.Float("epsilon", 1e-12f));
  INGOT_ASSIGN_OR_RETURN(Expr gamma, node.Input(5));
  INGOT_ASSIGN_OR_RETURN(gamma, as_floats(5, gamma));
  INGOT_ASSIGN_OR_RETURN(Expr beta, node.Input(6));
  INGOT_ASSIGN_OR_RETURN(beta, as_floats(6, beta));
  INGOT_ASSIGN_OR_RETURN(
      const Expr y, Apply(node, "LayerNormalization", {sum, gamma, beta},
                          {AttributeOf("epsilon", static_cast<float>(epsilon)), AttributeOf("axis", int64_t{-1})}));
  Expr counts;
  if (node.HasInput(7)) {
    INGOT_ASSIGN_OR_RETURN(counts, InputOfDims(node, 7, ids));
    INGOT_ASSIGN_OR_RETURN(counts, node.Bind("sum", {counts}, {{"axis", AttrValue::Ints({1})}, {"keepdims", false}}));
    INGOT_ASSIGN_OR_RETURN(counts, CastTo(node, std::move(counts), int32));
  } else {
    INGOT_ASSIGN_OR_RETURN(counts, node.Bind("zeros", {ShapeOf({ids[0]})}, {{"dtype", int32}}));
  }
  if (is_quantised) return std::vector<Expr>{y, counts};
  return std::vector<Expr>{y, counts, sum};
}

constexpr OnnxOpRow kFusedRows[] = {
    {"BiasGelu", nullptr, GeluOfSum<false>, kMicrosoft},
    {"EmbedLayerNormalization", nullptr, EmbedLayerNormalization<false>, kMicrosoft},
    {"FastGelu", nullptr, GeluOfSum<true>, kMicrosoft},
    {"FusedConv", nullptr, FusedConv, kMicrosoft},
    {"FusedGemm", nullptr, FusedGemm, kMicrosoft},
    {"FusedMatMul", nullptr, FusedMatMul, kMicrosoft},
    {"FusedMatMulActivation", nullptr, FusedMatMulActivation, kMicrosoft},
    {"Gelu", nullptr, GeluOfSum<false>, kMicrosoft},
    {"NhwcConv", nullptr, NhwcConv, kMicrosoft},
    {"QEmbedLayerNormalization", nullptr, EmbedLayerNormalization<true>, kMicrosoft},
    {"QuickGelu", nullptr, QuickGelu, kMicrosoft},
    // ONNX Runtime writes it in ONNX's own domain, which lacks it.
    {"SimplifiedLayerNormalization", nullptr, SimplifiedLayerNormalization},
    {"SkipLayerNormalization", nullptr, SkipNormalization<false>, kMicrosoft},
    {"SkipSimplifiedLayerNormalization", nullptr, SkipNormalization<true>, kMicrosoft},
    {"TransposeMatMul", nullptr, FusedMatMul, kMicrosoft},  // its older name
};

}  // namespace

std::span<const OnnxOpRow> FusedOnnxOps() { return kFusedRows; }

}  // namespace ingot::importer
