// Attention and RotaryEmbedding (opset 23): scaled dot-product attention with a key-value cache, grouped heads, masks
// and soft caps, and the rotation of positions. Three-dimensional operands hold their heads in the last axis and are
// viewed as [batch, sequence, heads, depth]; four-dimensional ones are [batch, heads, sequence, depth].
#include "compiler/importer/ops/families.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "compiler/importer/ops/attention_mask.h"
#include "compiler/importer/ops/util.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

// An operand of attention, and the order of its axes: B (batch), S (sequence), N (heads), H (depth).
struct Operand {
  Expr value;
  std::string layout;
  const PrimExpr& dim(char axis) const { return DimsOf(value)[layout.find(axis)]; }
};

Result<Operand> SplitHeads(const NodeImporter& node, size_t input, int64_t num_heads) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(input));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, input));
  if (dims.size() == 4) return Operand{std::move(x), "BNSH"};
  if (dims.size() != 3) return node.Invalid("expected a rank of 3 or 4, got " + std::to_string(dims.size()));
  if (num_heads <= 0) return node.Invalid("the number of heads of an operand of rank 3 is not given");
  const auto width = ir::AsConstInt(dims[2]);
  if (!width) return node.Unsupported("an operand whose last dim is not constant");
  if (*width % num_heads != 0) return node.Invalid("the last dim is no multiple of the number of heads");
  INGOT_ASSIGN_OR_RETURN(
      x, node.Bind("reshape", {x, ShapeOf({dims[0], dims[1], ir::Int64(num_heads), ir::Int64(*width / num_heads)})}));
  return Operand{std::move(x), "BSNH"};
}

// Returns the operand as [batch, heads, sequence, depth].
Result<Expr> HeadsFirst(const NodeImporter& node, const Operand& operand) {
  if (operand.layout == "BNSH") return operand.value;
  return node.Bind("permute_dims", {operand.value}, {{"axes", AttrValue::Ints({0, 2, 1, 3})}});
}

// Returns the cache [batch, heads, past, depth] followed by the new elements.
Result<Operand> AppendToPast(const NodeImporter& node, size_t past, Operand fresh) {
  INGOT_ASSIGN_OR_RETURN(fresh.value, HeadsFirst(node, fresh));
  fresh.layout = "BNSH";
  if (!node.HasInput(past)) return fresh;
  INGOT_ASSIGN_OR_RETURN(const Expr cache, node.Input(past));
  INGOT_RETURN_IF_ERROR(StaticRankDims(node, past).status());
  const Expr parts =
      ir::Make<ir::TupleNode>(std::vector<Expr>{cache, fresh.value},
                              ir::Make<ir::TupleTypeNode>(std::vector<ir::Type>{cache->type, fresh.value->type}));
  INGOT_ASSIGN_OR_RETURN(fresh.value, node.Bind("concat", {parts}, {{"axis", int64_t{2}}}));
  return fresh;
}

// Returns the mask as a tensor to add to the scores, as long as there are keys: keys beyond the given mask are hidden.
Result<Expr> AdditiveMask(const NodeImporter& node, size_t input, DataType dtype, const PrimExpr& num_keys) {
  INGOT_ASSIGN_OR_RETURN(Expr mask, node.Input(input));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, input));
  INGOT_ASSIGN_OR_RETURN(const Expr hidden, node.Scalar(-std::numeric_limits<double>::infinity(), dtype));
  if (DTypeOf(mask).is_bool()) {
    INGOT_ASSIGN_OR_RETURN(const Expr seen, node.Scalar(0, dtype));
    INGOT_ASSIGN_OR_RETURN(mask, node.Bind("where", {mask, seen, hidden}));
  } else if (DTypeOf(mask) != dtype) {
    INGOT_ASSIGN_OR_RETURN(mask, node.Bind("astype", {mask}, {{"dtype", dtype}}));
  }
  if (dims.empty() || op::DimsEqual(dims.back(), num_keys) || ir::IsConstInt(dims.back(), 1)) return mask;
  std::vector<PrimExpr> missing = dims;
  const PrimExpr one = ir::Int64(1);
  missing.back() = op::SimplifyDim(num_keys - dims.back());
  if (!ir::AsConstInt(dims.back())) {  // a mask of one key is repeated
    missing.back() = op::SimplifyDim(ir::Select(ir::Equal(dims.back(), one), ir::Int64(0), missing.back()));
  }
  const auto count = ir::AsConstInt(missing.back());
  if (count && *count < 0) return node.Invalid("the mask is longer than there are keys");
  INGOT_ASSIGN_OR_RETURN(const Expr rest, node.Bind("full", {ShapeOf(missing), hidden}, {{"dtype", dtype}}));
  const Expr parts = ir::Make<ir::TupleNode>(
      std::vector<Expr>{mask, rest}, ir::Make<ir::TupleTypeNode>(std::vector<ir::Type>{mask->type, rest->type}));
  return node.Bind("concat", {parts}, {{"axis", static_cast<int64_t>(dims.size()) - 1}});
}

Result<Expr> QueryTimesKey(const NodeImporter& node, const Operand& query, const Operand& key, double softcap,
                           const Expr& bias) {
  ScoreOptions options{0, softcap, 0, bias};
  INGOT_ASSIGN_OR_RETURN(options.mode, node.Int("qk_matmul_output_mode", 0));
  const auto depth = ir::AsConstInt(query.dim('H'));
  if (!depth) return node.Unsupported("the scores of heads of unknown depth");
  INGOT_ASSIGN_OR_RETURN(options.scale, node.Float("scale", 1 / std::sqrt(static_cast<double>(*depth))));
  INGOT_ASSIGN_OR_RETURN(const Expr q, HeadsFirst(node, query));
  INGOT_ASSIGN_OR_RETURN(const Expr k, HeadsFirst(node, key));
  return AttentionScores(node, q, k, options);
}

Outputs Attention(const NodeImporter& node) {
  const std::vector<std::string>& names = node.node().outputs;
  const auto wanted = [&](size_t i) { return names.size() > i && !names[i].empty(); };
  INGOT_ASSIGN_OR_RETURN(const int64_t left, node.Int("left_window_size", -1));
  INGOT_ASSIGN_OR_RETURN(const int64_t right, node.Int("right_window_size", -1));
  INGOT_ASSIGN_OR_RETURN(const int64_t query_heads, node.Int("q_num_heads", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t key_heads, node.Int("kv_num_heads", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t is_causal, node.Int("is_causal", 0));
  INGOT_ASSIGN_OR_RETURN(const double softcap, node.Float("softcap", 0));
  INGOT_ASSIGN_OR_RETURN(const Operand query, SplitHeads(node, 0, query_heads));
  INGOT_ASSIGN_OR_RETURN(Operand key, SplitHeads(node, 1, key_heads));
  INGOT_ASSIGN_OR_RETURN(Operand value, SplitHeads(node, 2, key_heads));
  const bool knows_heads = ir::AsConstInt(query.dim('N')) && ir::AsConstInt(key.dim('N'));
  if (!knows_heads && !op::DimsEqual(query.dim('N'), key.dim('N'))) {
    return node.Unsupported("heads of which it is not known how many share a key");
  }
  if (!node.HasAttr("scale") && !ir::AsConstInt(query.dim('H'))) {
    return node.Unsupported("heads of unknown depth without a scale");
  }
  const PrimExpr fresh_keys = key.dim('S');
  const bool has_past = node.HasInput(4);
  if (has_past != node.HasInput(5)) return node.Invalid("past_key and past_value go together");
  if (has_past || wanted(1) || wanted(2)) {
    INGOT_ASSIGN_OR_RETURN(key, AppendToPast(node, 4, std::move(key)));
    INGOT_ASSIGN_OR_RETURN(value, AppendToPast(node, 5, std::move(value)));
  }
  const DataType dtype = DTypeOf(query.value);
  Expr bias;
  if (node.HasInput(3)) {
    INGOT_ASSIGN_OR_RETURN(bias, AdditiveMask(node, 3, dtype, key.dim('S')));
  }
  KeyVisibility visibility{query.dim('S'), key.dim('S')};
  if (has_past) visibility.past = op::SimplifyDim(key.dim('S') - fresh_keys);
  if (left >= 0) visibility.left = left;
  if (right >= 0) visibility.right = right;
  if (node.HasInput(6)) {
    if (has_past) return node.Invalid("nonpad_kv_seqlen and a past exclude each other");
    INGOT_ASSIGN_OR_RETURN(visibility.num_counting, node.Input(6));
    INGOT_RETURN_IF_ERROR(StaticRankDims(node, 6).status());
  }
  // The attention operator supports causal masks that begin at the first key, and those of a cache if there are as many
  // new keys as queries.
  const bool is_plain =
      visibility.num_counting == nullptr && !wanted(3) && (!has_past || op::DimsEqual(fresh_keys, query.dim('S')));
  visibility.is_causal = is_causal != 0 && !is_plain;
  if (visibility.is_anything()) {
    INGOT_ASSIGN_OR_RETURN(const Expr seen, VisibilityBias(node, visibility, dtype));
    if (bias == nullptr) {
      bias = seen;
    } else {
      INGOT_ASSIGN_OR_RETURN(bias, node.Bind("add", {bias, seen}));
    }
  }
  std::vector<Expr> args = {query.value, key.value, value.value};
  if (bias != nullptr) args.push_back(bias);
  ir::Attrs attrs = {
      {"softcap", softcap},
      {"stepwise", true},
      {"masked_gives_zero", true},
      {"scales_operands", true},
      {"layouts", ir::AttrList{query.layout, key.layout, value.layout, query.layout}},
  };
  if (node.HasAttr("scale")) {
    INGOT_ASSIGN_OR_RETURN(const double scale, node.Float("scale", 0));
    attrs = attrs.With("scale", scale);
  }
  // Every query sees all keys of the past; of the new keys, each query sees those up to its own position.
  if (is_causal != 0 && is_plain) attrs = attrs.With("causal_mask", has_past ? "BottomRight" : "TopLeft");
  std::vector<Expr> outputs;
  if (query.layout == "BNSH") {
    INGOT_ASSIGN_OR_RETURN(Expr y, node.Call("nn.attention", std::move(args), std::move(attrs)));
    outputs.push_back(std::move(y));
  } else {
    INGOT_ASSIGN_OR_RETURN(const Expr y, node.Bind("nn.attention", std::move(args), std::move(attrs)));
    const std::vector<PrimExpr>& dims = DimsOf(y);
    INGOT_ASSIGN_OR_RETURN(Expr joined, ReshapeTo(node, y, {dims[0], dims[1], op::SimplifyDim(dims[2] * dims[3])}));
    outputs.push_back(std::move(joined));
  }
  if (wanted(1) || wanted(2)) {
    outputs.push_back(key.value);
    outputs.push_back(value.value);
  }
  if (wanted(3)) {
    outputs.resize(3, outputs[0]);  // outputs that nobody asked for keep their places
    INGOT_ASSIGN_OR_RETURN(Expr scores, QueryTimesKey(node, query, key, softcap, bias));
    outputs.push_back(std::move(scores));
  }
  return outputs;
}

// Returns x[..., begin:end:stride] along the last axis.
Result<Expr> SliceLast(const NodeImporter& node, const Expr& x, int64_t begin, int64_t end, int64_t stride) {
  const auto list = [](int64_t number) -> Expr {
    const Expr value = ir::Make<ir::PrimValueNode>(ir::Int64(number));
    return ir::Make<ir::TupleNode>(std::vector<Expr>{value},
                                   ir::Make<ir::TupleTypeNode>(std::vector<ir::Type>{value->type}));
  };
  const int64_t axis = static_cast<int64_t>(DimsOf(x).size()) - 1;
  return node.Bind("strided_slice", {x, list(axis), list(begin), list(end), list(stride)});
}

Result<Expr> ConcatLast(const NodeImporter& node, std::vector<Expr> parts) {
  std::vector<ir::Type> types;
  for (const Expr& part : parts) types.push_back(part->type);
  const int64_t axis = static_cast<int64_t>(DimsOf(parts[0]).size()) - 1;
  return node.Bind("concat", {ir::Make<ir::TupleNode>(std::move(parts), ir::Make<ir::TupleTypeNode>(std::move(types)))},
                   {{"axis", axis}});
}

// Returns the cosines or sines of each position: [batch, sequence, half], with an axis for the heads if x has one.
Result<Expr> PositionCache(const NodeImporter& node, size_t input, const Operand& x, int64_t half) {
  INGOT_ASSIGN_OR_RETURN(Expr cache, node.Input(input));
  INGOT_RETURN_IF_ERROR(StaticRankDims(node, input).status());
  if (node.HasInput(3)) {
    INGOT_ASSIGN_OR_RETURN(const Expr positions, node.Input(3));
    INGOT_RETURN_IF_ERROR(StaticRankDims(node, 3).status());
    INGOT_ASSIGN_OR_RETURN(cache, node.Bind("take", {cache, positions}, {{"axis", int64_t{0}}}));
  }
  std::vector<PrimExpr> dims = {x.dim('B'), x.dim('S'), ir::Int64(half)};
  const auto fits = [](const PrimExpr& own, const PrimExpr& dim) { return !op::DimsDiffer(own, dim); };
  if (!std::ranges::equal(DimsOf(cache), dims, fits)) {
    return node.Invalid("expected a cache of [batch, sequence, " + std::to_string(half) + "]");
  }
  cache = WithDims(node, std::move(cache), dims);
  dims.insert(dims.begin() + static_cast<ptrdiff_t>(x.layout.find('N')), ir::Int64(1));
  return node.Bind("reshape", {cache, ShapeOf(std::move(dims))});
}

// Rotates the pairs (x1, x2) of the first `rotary` elements of each head by the position's angle.
Outputs RotaryEmbedding(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const int64_t num_heads, node.Int("num_heads", 0));
  INGOT_ASSIGN_OR_RETURN(int64_t rotary, node.Int("rotary_embedding_dim", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t interleaved, node.Int("interleaved", 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const Operand x, SplitHeads(node, 0, num_heads));
  const auto depth = ir::AsConstInt(x.dim('H'));
  if (!depth) return node.Unsupported("heads of unknown depth");
  if (rotary == 0) rotary = *depth;
  if (rotary < 0 || rotary % 2 != 0 || rotary > *depth) return node.Invalid("rotary_embedding_dim does not fit");
  const int64_t half = rotary / 2;
  INGOT_ASSIGN_OR_RETURN(const Expr cosine, PositionCache(node, 1, x, half));
  INGOT_ASSIGN_OR_RETURN(const Expr sine, PositionCache(node, 2, x, half));
  const bool pairs = interleaved != 0;
  INGOT_ASSIGN_OR_RETURN(const Expr x1, SliceLast(node, x.value, 0, pairs ? rotary : half, pairs ? 2 : 1));
  INGOT_ASSIGN_OR_RETURN(const Expr x2, SliceLast(node, x.value, pairs ? 1 : half, rotary, pairs ? 2 : 1));
  const auto turned = [&](const char* row, const Expr& a, const Expr& b) -> Result<Expr> {
    INGOT_ASSIGN_OR_RETURN(const Expr first, node.Bind("multiply", {a, x1}));
    INGOT_ASSIGN_OR_RETURN(const Expr second, node.Bind("multiply", {b, x2}));
    return node.Bind(row, {first, second});
  };
  INGOT_ASSIGN_OR_RETURN(Expr real, turned("subtract", cosine, sine));
  INGOT_ASSIGN_OR_RETURN(Expr imaginary, turned("add", sine, cosine));
  Expr result;
  if (pairs) {
    std::vector<PrimExpr> dims = DimsOf(real);
    dims.push_back(ir::Int64(1));
    INGOT_ASSIGN_OR_RETURN(real, node.Bind("reshape", {real, ShapeOf(dims)}));
    INGOT_ASSIGN_OR_RETURN(imaginary, node.Bind("reshape", {imaginary, ShapeOf(dims)}));
    INGOT_ASSIGN_OR_RETURN(result, ConcatLast(node, {real, imaginary}));
    dims.pop_back();
    dims.back() = ir::Int64(rotary);
    INGOT_ASSIGN_OR_RETURN(result, node.Bind("reshape", {result, ShapeOf(dims)}));
  } else {
    INGOT_ASSIGN_OR_RETURN(result, ConcatLast(node, {real, imaginary}));
  }
  if (rotary < *depth) {
    INGOT_ASSIGN_OR_RETURN(const Expr rest, SliceLast(node, x.value, rotary, *depth, 1));
    INGOT_ASSIGN_OR_RETURN(result, ConcatLast(node, {result, rest}));
  }
  return One(ReshapeTo(node, std::move(result), in));
}

constexpr std::array kAttentionRows = {
    OnnxOpRow{"Attention", nullptr, Attention},
    OnnxOpRow{"RotaryEmbedding", nullptr, RotaryEmbedding},
};

}  // namespace

std::span<const OnnxOpRow> AttentionOnnxOps() { return kAttentionRows; }

}  // namespace ingot::importer
