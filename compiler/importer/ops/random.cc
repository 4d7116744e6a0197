// Random numbers, as a function of a seed and the place of an element: each call of a model gives the same ones. The
// seed is the node's, or follows from the name of its output and its place, so that nodes without one differ.
//
//   bits(i) = mix(i * 0x9e3779b1 + key)          32 bits; mix: two rounds of shifts and odd factors ("lowbias32", by
//                                                Chris Wellons' search for hash functions of little bias, 2018)
//   u(i)    = (bits(i) >> 8 + offset) / 2^24     uniform in [0, 1) with offset 0, in (0, 1] with 1; with 1 / 2, and one
//                                                bit less, inside
//   normal  = sqrt(-2 ln u1) cos(2 pi u2)        Box and Muller, 1958
#include <bit>
#include <cmath>
#include <numbers>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/util.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

// Numbers are drawn in float32, from words of 32 bits, and then cast.
constexpr DataType kDrawn = DataType::Float(32), kBits = DataType::UInt(32);

uint32_t Mix(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352d;
  x = (x ^ (x >> 15)) * 0x846ca68b;
  return x ^ (x >> 16);
}

// Two streams of a node's numbers are independent.
enum Stream : uint32_t { kFirst = 0, kSecond = 1 };

// Dropout's seed is an integer, all others are floats.
Result<uint32_t> SeedOf(const NodeImporter& node) {
  if (node.node().op_type != "Dropout") {
    INGOT_ASSIGN_OR_RETURN(const double seed, node.Float("seed", 0));
    return std::bit_cast<uint32_t>(static_cast<float>(seed));
  }
  INGOT_ASSIGN_OR_RETURN(const int64_t seed, node.Int("seed", 0));
  return Mix(static_cast<uint32_t>(seed)) ^ static_cast<uint32_t>(seed >> 32);
}

// Iterations of a loop would have equal numbers, so nodes in bodies are refused.
Result<uint32_t> KeyOf(const NodeImporter& node, Stream stream) {
  if (!node.IsOutermost()) return node.Unsupported("random numbers in a branch or in the body of a loop");
  uint32_t key = 2166136261;
  if (node.HasAttr("seed")) {
    INGOT_ASSIGN_OR_RETURN(key, SeedOf(node));
  } else {
    const std::string name = node.node().outputs.empty() ? std::string() : node.node().outputs[0];
    for (const char c : name) key = (key ^ static_cast<unsigned char>(c)) * 16777619;  // FNV-1a
    key ^= static_cast<uint32_t>(node.num_bindings());
  }
  return Mix(Mix(key) + 0x85ebca6b * (stream + 1));
}

Expr Bits(uint32_t value) { return ConstantOf<uint32_t>(kBits, {}, {value}); }

// Uniform float32 numbers of these dims.
Result<Expr> Uniform(const NodeImporter& node, const std::vector<PrimExpr>& dims, Stream stream, double offset) {
  INGOT_ASSIGN_OR_RETURN(const uint32_t key, KeyOf(node, stream));
  INGOT_ASSIGN_OR_RETURN(Expr x,
                         node.Bind("arange", {Number(ir::Int64(0)), Number(Product(dims)), Number(ir::Int64(1))},
                                   {{"dtype", DataType::Int(64)}}));
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, x, kBits));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("multiply", {x, Bits(0x9e3779b1)}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("add", {x, Bits(key)}));
  const auto round = [&](uint32_t shift, uint32_t factor) -> Status {
    INGOT_ASSIGN_OR_RETURN(const Expr high, node.Bind("right_shift", {x, Bits(shift)}));
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("bitwise_xor", {x, high}));
    if (factor == 1) return Status();
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("multiply", {x, Bits(factor)}));
    return Status();
  };
  INGOT_RETURN_IF_ERROR(round(16, 0x7feb352d));
  INGOT_RETURN_IF_ERROR(round(15, 0x846ca68b));
  INGOT_RETURN_IF_ERROR(round(16, 1));
  const uint32_t dropped = offset == 0.5 ? 9 : 8;  // 24 bits with the offset are exact
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("right_shift", {x, Bits(dropped)}));
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, x, kDrawn));
  if (offset != 0) {
    INGOT_ASSIGN_OR_RETURN(const Expr shift, node.Scalar(offset, kDrawn));
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("add", {x, shift}));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr unit, node.Scalar(std::ldexp(1.0, static_cast<int>(dropped) - 32), kDrawn));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("multiply", {x, unit}));
  return ReshapeTo(node, x, dims);
}

// x * scale + shift.
Result<Expr> Affine(const NodeImporter& node, Expr x, double scale, double shift) {
  INGOT_ASSIGN_OR_RETURN(const Expr factor, node.Scalar(scale, kDrawn));
  INGOT_ASSIGN_OR_RETURN(const Expr term, node.Scalar(shift, kDrawn));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("multiply", {x, factor}));
  return node.Bind("add", {x, term});
}

Result<Expr> UniformOf(const NodeImporter& node, const std::vector<PrimExpr>& dims) {
  INGOT_ASSIGN_OR_RETURN(const double low, node.Float("low", 0));
  INGOT_ASSIGN_OR_RETURN(const double high, node.Float("high", 1));
  INGOT_ASSIGN_OR_RETURN(const Expr u, Uniform(node, dims, kFirst, 0));
  return Affine(node, u, high - low, low);
}

Result<Expr> NormalOf(const NodeImporter& node, const std::vector<PrimExpr>& dims) {
  INGOT_ASSIGN_OR_RETURN(const double mean, node.Float("mean", 0));
  INGOT_ASSIGN_OR_RETURN(const double scale, node.Float("scale", 1));
  INGOT_ASSIGN_OR_RETURN(Expr radius, Uniform(node, dims, kFirst, 1));
  INGOT_ASSIGN_OR_RETURN(radius, node.Bind("log", {radius}));
  INGOT_ASSIGN_OR_RETURN(const Expr minus_two, node.Scalar(-2, kDrawn));
  INGOT_ASSIGN_OR_RETURN(radius, node.Bind("multiply", {radius, minus_two}));
  INGOT_ASSIGN_OR_RETURN(radius, node.Bind("sqrt", {radius}));
  INGOT_ASSIGN_OR_RETURN(Expr angle, Uniform(node, dims, kSecond, 0));
  INGOT_ASSIGN_OR_RETURN(const Expr turn, node.Scalar(2 * std::numbers::pi, kDrawn));
  INGOT_ASSIGN_OR_RETURN(angle, node.Bind("multiply", {angle, turn}));
  INGOT_ASSIGN_OR_RETURN(angle, node.Bind("cos", {angle}));
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Bind("multiply", {radius, angle}));
  return Affine(node, x, scale, mean);
}

using Numbers = Result<Expr> (*)(const NodeImporter& node, const std::vector<PrimExpr>& dims);

Result<DataType> DtypeAttr(const NodeImporter& node, DataType default_dtype) {
  if (!node.HasAttr("dtype")) return default_dtype;
  INGOT_ASSIGN_OR_RETURN(const int64_t number, node.Int("dtype", 0));
  return OnnxDataType(number);
}

// Of the dims in an attribute.
template <Numbers numbers>
Outputs OfShape(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, node.Ints("shape", {}));
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, DtypeAttr(node, kDrawn));
  std::vector<PrimExpr> dims;
  for (const int64_t extent : shape) {
    if (extent < 0) return node.Invalid("shape: expected integers >= 0, got " + std::to_string(extent));
    dims.push_back(ir::Int64(extent));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr x, numbers(node, dims));
  return One(CastTo(node, x, dtype));
}

// Of the dims of the input, and of its dtype where it is one of floats.
template <Numbers numbers>
Outputs Like(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, DtypeAttr(node, *type->dtype));
  if (!dtype.is_floating()) return node.Invalid("expected a dtype of floats");
  INGOT_ASSIGN_OR_RETURN(const Expr x, numbers(node, dims));
  return One(CastTo(node, x, dtype));
}

// 1 with the probability that the input gives.
Outputs Bernoulli(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr p, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, DtypeAttr(node, *type->dtype));
  INGOT_ASSIGN_OR_RETURN(p, CastTo(node, p, kDrawn));
  INGOT_ASSIGN_OR_RETURN(const Expr u, Uniform(node, dims, kFirst, 0));
  INGOT_ASSIGN_OR_RETURN(const Expr is_one, node.Bind("less", {u, p}));
  return One(CastTo(node, is_one, dtype));
}

// Classes drawn with replacement from unnormalised log probabilities [batch, classes]: the greatest one after noise of
// Gumbel's distribution, -ln(-ln u), is class c with probability softmax(c).
Outputs Multinomial(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr scores, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t samples, node.Int("sample_size", 1));
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, DtypeAttr(node, DataType::Int(32)));
  if (in.size() != 2) return node.Invalid("expected a rank of 2, got " + std::to_string(in.size()));
  if (samples < 1) return node.Invalid("sample_size: expected an integer >= 1, got " + std::to_string(samples));
  INGOT_ASSIGN_OR_RETURN(Expr noise, Uniform(node, {in[0], ir::Int64(samples), in[1]}, kFirst, 0.5));
  for (int i = 0; i < 2; ++i) {
    INGOT_ASSIGN_OR_RETURN(noise, node.Bind("log", {noise}));
    INGOT_ASSIGN_OR_RETURN(noise, node.Bind("negative", {noise}));
  }
  INGOT_ASSIGN_OR_RETURN(scores, CastTo(node, scores, kDrawn));
  INGOT_ASSIGN_OR_RETURN(scores, ReshapeTo(node, scores, {in[0], ir::Int64(1), in[1]}));
  INGOT_ASSIGN_OR_RETURN(scores, node.Bind("add", {scores, noise}));
  INGOT_ASSIGN_OR_RETURN(const Expr classes,
                         node.Bind("argmax", {scores}, {{"axis", int64_t{2}}, {"keepdims", false}}));
  return One(CastTo(node, classes, dtype));
}

// ---- Dropout

// In training each element is dropped with the probability `ratio`, and the others are multiplied by 1 / (1 - ratio);
// else, until opset 11 always, the result is the data and the mask is all true. What is an input that only run time
// knows decides then: no element is dropped with a ratio of 0.
Outputs Dropout(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  const DataType dtype = DTypeOf(x), mask_dtype = node.opset() < 10 ? dtype : DataType::Bool();
  const bool wants_mask = node.node().outputs.size() > 1 && !node.node().outputs[1].empty();
  const auto constant = [&](size_t input) -> Result<std::optional<double>> {
    if (!node.HasInput(input)) return std::optional<double>(input == 1 ? 0.5 : 0.0);
    if (!node.IsConstant(input)) return std::optional<double>();
    INGOT_ASSIGN_OR_RETURN(const double number, node.ConstantNumber(input, input == 1 ? "the ratio" : "the mode", 0));
    return std::optional(number);
  };
  INGOT_ASSIGN_OR_RETURN(const std::optional<double> trains, constant(2));
  INGOT_ASSIGN_OR_RETURN(const std::optional<double> share, constant(1));
  if (trains != 0.0 && share && !(*share >= 0 && *share < 1)) {
    return node.Invalid("a ratio of " + std::to_string(*share));
  }
  if (trains == 0.0 || share == 0.0) {
    std::vector<Expr> outputs = {std::move(x)};
    if (!wants_mask) return outputs;
    INGOT_ASSIGN_OR_RETURN(Expr mask, node.Call("ones", {ShapeOf(dims)}, {{"dtype", mask_dtype}}));
    outputs.push_back(std::move(mask));
    return outputs;
  }
  INGOT_ASSIGN_OR_RETURN(Expr ratio, share ? node.Scalar(*share, kDrawn) : node.Input(1));
  INGOT_ASSIGN_OR_RETURN(ratio, CastTo(node, ratio, kDrawn));
  INGOT_ASSIGN_OR_RETURN(ratio, node.Bind("reshape", {ratio, ShapeOf({})}));
  if (!trains) {
    INGOT_ASSIGN_OR_RETURN(Expr mode, node.Input(2));
    INGOT_ASSIGN_OR_RETURN(mode, node.Bind("reshape", {mode, ShapeOf({})}));
    INGOT_ASSIGN_OR_RETURN(const Expr none, node.Scalar(0, kDrawn));
    INGOT_ASSIGN_OR_RETURN(ratio, node.Bind("where", {mode, ratio, none}));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr u, Uniform(node, dims, kFirst, 0));
  INGOT_ASSIGN_OR_RETURN(Expr mask, node.Bind("greater_equal", {u, ratio}));
  INGOT_ASSIGN_OR_RETURN(const Expr one, node.Scalar(1, kDrawn));
  INGOT_ASSIGN_OR_RETURN(Expr scale, node.Bind("subtract", {one, ratio}));
  INGOT_ASSIGN_OR_RETURN(scale, node.Bind("divide", {one, scale}));
  INGOT_ASSIGN_OR_RETURN(scale, CastTo(node, scale, dtype));
  INGOT_ASSIGN_OR_RETURN(const Expr kept, CastTo(node, mask, dtype));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("multiply", {x, kept}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("multiply", {x, scale}));
  INGOT_ASSIGN_OR_RETURN(mask, CastTo(node, mask, mask_dtype));
  std::vector<Expr> outputs = {std::move(x)};
  if (wants_mask) outputs.push_back(std::move(mask));
  return outputs;
}

constexpr OnnxOpRow kRandomRows[] = {
    {"Bernoulli", nullptr, Bernoulli},
    {"Dropout", nullptr, Dropout},
    {"Multinomial", nullptr, Multinomial},
    {"RandomNormal", nullptr, OfShape<NormalOf>},
    {"RandomNormalLike", nullptr, Like<NormalOf>},
    {"RandomUniform", nullptr, OfShape<UniformOf>},
    {"RandomUniformLike", nullptr, Like<UniformOf>},
};

}  // namespace

std::span<const OnnxOpRow> RandomOnnxOps() { return kRandomRows; }

}  // namespace ingot::importer
