// com.microsoft's attention of generative models: heads that share keys, with their rotations and norms, and a past that
// grows.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/attention_mask.h"
#include "compiler/importer/ops/contrib_attention.h"
#include "compiler/importer/ops/families.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

// ---- rotations

// Returns the positions of all queries [batch, sequence]: those of an input, or numbers from the first one on.
Result<Expr> PositionsFrom(const NodeImporter& node, const Expr& first, const PrimExpr& batch, const PrimExpr& length) {
  INGOT_ASSIGN_OR_RETURN(Expr places, node.Bind("arange", {Number(ir::Int64(0)), Number(length), Number(ir::Int64(1))},
                                                {{"dtype", kIndex}}));
  INGOT_ASSIGN_OR_RETURN(places, node.Bind("add", {places, first}));
  return node.Bind("broadcast_to", {places, ShapeOf({batch, length})});
}

// Returns sines, an input as long and wide as the cosines are.
Result<Expr> SinesOf(const NodeImporter& node, size_t i, const std::vector<PrimExpr>& cosines) {
  INGOT_ASSIGN_OR_RETURN(const Expr sine, node.Input(i));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, i));
  if (cosines.size() != 2) return node.Invalid("cosines are not of rank 2");
  if (!std::ranges::equal(dims, cosines, [](const auto& a, const auto& b) { return !op::DimsDiffer(a, b); })) {
    return node.Invalid("sines and cosines are not alike in dims");
  }
  return WithDims(node, sine, cosines);
}

// Returns positions, an input, of each query of each sequence.
Result<Expr> PositionsOf(const NodeImporter& node, size_t i, const PrimExpr& batch, const PrimExpr& length) {
  INGOT_ASSIGN_OR_RETURN(const Expr positions, node.Input(i));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, i));
  if (dims.size() != 2 || op::DimsDiffer(dims[0], batch) || op::DimsDiffer(dims[1], length)) {
    return node.Invalid("expected a position of each query");
  }
  return WithDims(node, positions, {batch, length});
}

// Checks that a cache of this many rows has those of all positions.
Status MatchRows(const NodeImporter& node, const PrimExpr& rows, const PrimExpr& positions) {
  const PrimExpr most = op::SimplifyDim(ir::Max(rows, positions));
  if (op::DimsEqual(most, rows)) return Status();
  if (op::DimsDiffer(most, rows)) return node.Invalid("fewer cosines than positions");
  node.Match(ShapeOf({most}), ir::Make<ir::ShapeTypeNode>(std::vector<PrimExpr>{rows}));
  return Status();
}

// Inputs: the data, the positions (or the first one), and the cosines and sines of positions.
Outputs MsRotaryEmbedding(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(
      CheckAttributes(node, {"interleaved", "is_packed_batching", "num_heads", "rotary_embedding_dim", "scale"}));
  INGOT_RETURN_IF_ERROR(RefuseUnless(node, "is_packed_batching", 0));
  INGOT_ASSIGN_OR_RETURN(const double scale, node.Float("scale", 1));
  if (scale != 1) return node.Unsupported("a scale");
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  if (dims.size() != 3 && dims.size() != 4) return node.Invalid("expected a rank of 3 or 4");
  INGOT_ASSIGN_OR_RETURN(Expr positions, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> given, StaticRankDims(node, 1));
  const PrimExpr& length = dims[dims.size() - 2];
  INGOT_ASSIGN_OR_RETURN(const Expr cosine, node.Input(2));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> cache, StaticRankDims(node, 2));
  INGOT_ASSIGN_OR_RETURN(const Expr sine, SinesOf(node, 3, cache));
  INGOT_RETURN_IF_ERROR(MatchRows(node, cache[0], length));
  if (given.size() == 1) {
    if (op::DimsDiffer(given[0], ir::Int64(1))) return node.Invalid("expected one first position");
    positions = WithDims(node, std::move(positions), {ir::Int64(1)});
    INGOT_ASSIGN_OR_RETURN(positions, CastTo(node, std::move(positions), kIndex));
    INGOT_ASSIGN_OR_RETURN(positions, PositionsFrom(node, positions, dims[0], length));
  } else {
    INGOT_ASSIGN_OR_RETURN(positions, PositionsOf(node, 1, dims[0], length));
  }
  INGOT_ASSIGN_OR_RETURN(int64_t heads, node.Int("num_heads", 0));
  if (heads == 0 && dims.size() == 3) {  // the cache is as long as half a head
    const auto width = ir::AsConstInt(dims[2]), half = ir::AsConstInt(cache.back());
    if (!width || !half || *half < 1) return node.Unsupported("a number of heads that is symbolic");
    heads = *width / (2 * *half);
  }
  Attributes attributes = Copied(node, {"interleaved", "rotary_embedding_dim"});
  attributes.push_back(AttributeOf("num_heads", heads));
  return One(Apply(node, "RotaryEmbedding", {x, cosine, sine, positions}, std::move(attributes)));
}

// ---- GroupQueryAttention

// Checks that every sequence of the batch has as many keys as there are, or one to that many where there is no past
// (what stands behind a sequence's end is seen by nothing before it): seqlens_k counts all but the last one, and
// total_sequence_length is the number of keys.
Status MatchLengths(const NodeImporter& node, const PrimExpr& batch, const PrimExpr& num_keys, bool has_past) {
  const PrimExpr zero = ir::Int64(0), one = ir::Int64(1);
  INGOT_ASSIGN_OR_RETURN(Expr lengths, node.Input(5));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 5));
  if (op::DimsDiffer(Product(dims), batch)) return node.Invalid("seqlens_k has no number for each sequence");
  if (dims.size() != 1) {
    INGOT_ASSIGN_OR_RETURN(lengths, node.Bind("reshape", {lengths, ShapeOf({Product(dims)})}));
  }
  lengths = WithDims(node, std::move(lengths), {batch});
  INGOT_ASSIGN_OR_RETURN(lengths, CastTo(node, std::move(lengths), kIndex));
  INGOT_ASSIGN_OR_RETURN(Expr total, node.Input(6));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> total_dims, StaticRankDims(node, 6));
  if (total_dims.size() > 1 || op::DimsDiffer(Product(total_dims), one)) {
    return node.Invalid("total_sequence_length is not one number");
  }
  if (total_dims.size() == 1) total = WithDims(node, std::move(total), {one});
  INGOT_ASSIGN_OR_RETURN(total, CastTo(node, std::move(total), kIndex));
  const auto number_of = [&](PrimExpr dim) { return node.Bind("shape_to_tensor", {ShapeOf({std::move(dim)})}); };
  // Each flag is 1 where a number does not fit, and their sum is 0: there may be no sequences.
  const auto flagged = [&](const char* row, const Expr& x, const PrimExpr& limit) -> Result<Expr> {
    INGOT_ASSIGN_OR_RETURN(const Expr number, number_of(limit));
    INGOT_ASSIGN_OR_RETURN(Expr flags, node.Bind(row, {x, number}));
    INGOT_ASSIGN_OR_RETURN(flags, CastTo(node, std::move(flags), kIndex));
    return node.Bind("sum", {flags}, {{"axis", AttrValue::Ints({0})}, {"keepdims", true}});
  };
  const PrimExpr last = op::SimplifyDim(num_keys - one);
  std::vector<Expr> wrong;
  if (has_past) {
    INGOT_ASSIGN_OR_RETURN(wrong.emplace_back(), flagged("not_equal", lengths, last));
  } else {
    INGOT_ASSIGN_OR_RETURN(wrong.emplace_back(), flagged("greater", lengths, last));
    INGOT_ASSIGN_OR_RETURN(wrong.emplace_back(), flagged("less", lengths, op::SimplifyDim(ir::Min(last, zero))));
  }
  INGOT_ASSIGN_OR_RETURN(wrong.emplace_back(), flagged("not_equal", total, num_keys));
  Expr sum = wrong[0];
  for (const Expr& flags : std::span(wrong).subspan(1)) {
    INGOT_ASSIGN_OR_RETURN(sum, node.Bind("add", {sum, flags}));
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> count, node.NameElements(std::move(sum)));
  node.Match(ShapeOf(count), ir::Make<ir::ShapeTypeNode>(std::vector<PrimExpr>{zero}));
  return Status();
}

// Returns the heads of x [batch, sequence, heads * depth], each divided by the root of its mean square, times a weight.
Result<Expr> NormalisedHeads(const NodeImporter& node, const Expr& x, int64_t heads, size_t weight,
                             const char* epsilon) {
  const std::vector<PrimExpr> dims = DimsOf(x);
  const auto width = dims.size() == 3 ? ir::AsConstInt(dims[2]) : std::nullopt;
  if (!width || *width % heads != 0) return node.Unsupported("heads of unknown depth");
  INGOT_ASSIGN_OR_RETURN(const double shared, node.Float("qk_norm_epsilon", 1e-6f));
  INGOT_ASSIGN_OR_RETURN(const double own, node.Float(epsilon, shared));
  const PrimExpr depth = ir::Int64(*width / heads);
  INGOT_ASSIGN_OR_RETURN(Expr scale, node.Input(weight));
  INGOT_RETURN_IF_ERROR(StaticRankDims(node, weight).status());
  scale = WithDims(node, std::move(scale), {depth});
  INGOT_ASSIGN_OR_RETURN(Expr y, node.Bind("reshape", {x, ShapeOf({dims[0], dims[1], ir::Int64(heads), depth})}));
  INGOT_ASSIGN_OR_RETURN(
      y, Apply(node, "RMSNormalization", {y, scale}, {AttributeOf("epsilon", static_cast<float>(own))}));
  return node.Bind("reshape", {y, ShapeOf(dims)});
}

// Returns query times key, [batch, heads, queries, keys], with what is added to it, or after softmax; 0 where a key is
// not seen.
Result<Expr> ScoresOf(const NodeImporter& node, const HeadsCall& call, const Expr& keys, bool is_after_softmax) {
  if (call.sink != nullptr) return node.Unsupported("qk_output beside a sink");
  const DataType dtype = DTypeOf(call.query);
  INGOT_ASSIGN_OR_RETURN(const Expr query, JoinedPast(node, call.query, call.query_heads, nullptr));
  const auto depth = ir::AsConstInt(DimsOf(query)[3]);
  if (!depth) return node.Unsupported("heads of unknown depth");
  KeyVisibility visibility{DimsOf(query)[2], DimsOf(keys)[2]};
  visibility.past = op::SimplifyDim(visibility.num_keys - visibility.num_queries);
  visibility.is_causal = call.is_causal;
  if (call.left >= 0) visibility.left = call.left;
  Expr seen, bias;
  if (visibility.is_anything()) {
    INGOT_ASSIGN_OR_RETURN(seen, VisibilityBias(node, visibility, dtype));
    bias = seen;
  }
  if (node.HasInput(call.bias)) {
    INGOT_ASSIGN_OR_RETURN(const Expr given, ScoreBias(node, call, DimsOf(keys)[2]));
    bias = given;
    if (seen != nullptr) {
      INGOT_ASSIGN_OR_RETURN(bias, node.Bind("add", {given, seen}));
    }
  }
  INGOT_ASSIGN_OR_RETURN(const double scale, node.Float("scale", 0));
  INGOT_ASSIGN_OR_RETURN(const double softcap, node.Float("softcap", 0));
  const ScoreOptions options{scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(*depth)), softcap,
                             is_after_softmax ? 3 : 2, bias};
  INGOT_ASSIGN_OR_RETURN(const Expr scores, AttentionScores(node, query, keys, options));
  if (is_after_softmax || seen == nullptr) return scores;
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, dtype));
  INGOT_ASSIGN_OR_RETURN(const Expr is_seen, node.Bind("equal", {seen, zero}));
  return node.Bind("where", {is_seen, scores, zero});
}

// Rotates the heads of x by the positions from the past's length on, or by those that are given.
Result<Expr> Rotated(const NodeImporter& node, const Expr& x, int64_t heads, const PrimExpr& past) {
  INGOT_ASSIGN_OR_RETURN(const Expr cosine, node.Input(7));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> cache, StaticRankDims(node, 7));
  INGOT_ASSIGN_OR_RETURN(const Expr sine, SinesOf(node, 8, cache));
  const auto half = cache.size() == 2 ? ir::AsConstInt(cache[1]) : std::nullopt;
  if (!half) return node.Unsupported("a cache of unknown width");
  Expr positions;
  if (node.HasInput(9)) {
    INGOT_ASSIGN_OR_RETURN(positions, PositionsOf(node, 9, DimsOf(x)[0], DimsOf(x)[1]));
  } else {
    INGOT_RETURN_IF_ERROR(MatchRows(node, cache[0], op::SimplifyDim(past + DimsOf(x)[1])));
    INGOT_ASSIGN_OR_RETURN(const Expr first, node.Bind("shape_to_tensor", {ShapeOf({past})}));
    INGOT_ASSIGN_OR_RETURN(positions, PositionsFrom(node, first, DimsOf(x)[0], DimsOf(x)[1]));
  }
  INGOT_ASSIGN_OR_RETURN(const int64_t interleaved, node.Int("rotary_interleaved", 0));
  return Apply(node, "RotaryEmbedding", {x, cosine, sine, positions},
               {AttributeOf("num_heads", heads), AttributeOf("interleaved", interleaved),
                AttributeOf("rotary_embedding_dim", int64_t{2} * *half)});
}

// Where caches are of bytes, returns what is written into both, and makes keys and values what is read from there.
Result<std::vector<Expr>> CachedAsBytes(const NodeImporter& node, HeadsCall& call) {
  std::vector<Expr> presents;
  for (const bool is_key : {true, false}) {
    Expr& fresh = is_key ? call.key : call.value;
    Expr& past = is_key ? call.past_key : call.past_value;
    const DataType dtype = DTypeOf(fresh);
    INGOT_ASSIGN_OR_RETURN(const Expr heads, JoinedPast(node, fresh, call.key_heads, nullptr));
    INGOT_ASSIGN_OR_RETURN(const CacheOfBytes cache,
                           ReadCacheOfBytes(node, is_key ? "k_quant_type" : "v_quant_type", is_key ? 12 : 13,
                                            call.key_heads, DimsOf(heads)[3]));
    if (cache.bits == 0) {
      if (!presents.empty()) return node.Invalid("k_quant_type without v_quant_type");
      continue;
    }
    if (!is_key && presents.empty()) return node.Invalid("v_quant_type without k_quant_type");
    INGOT_ASSIGN_OR_RETURN(Expr present, cache.Write(node, heads));
    INGOT_ASSIGN_OR_RETURN(fresh, cache.Read(node, present, dtype));
    if (past != nullptr) {
      if (KnownTensor(past->type) == nullptr) return node.Unsupported("a past of unknown rank");
      INGOT_ASSIGN_OR_RETURN(const Expr read, cache.Read(node, past, dtype));
      INGOT_ASSIGN_OR_RETURN(present, node.Bind("concat", {TupleOf({past, present})}, {{"axis", int64_t{2}}}));
      past = read;
    }
    presents.push_back(std::move(present));
  }
  return presents;
}

// Inputs: queries (or all operands), keys, values, their past, the lengths of the sequences, the caches of rotations, the
// positions, what is added to the scores, a sink, the scales of caches of bytes, and the norms of queries and keys.
// Beside a past all sequences of a batch are as long as the data.
Outputs GroupQueryAttention(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(
      node, {"causal", "do_rotary", "k_norm_epsilon", "k_quant_type", "kv_num_heads", "local_window_size", "num_heads",
             "kv_cache_bit_width", "q_norm_epsilon", "qk_norm_epsilon", "qk_output", "rotary_interleaved", "scale",
             "sliding_window_cache", "smooth_softmax", "softcap", "v_quant_type"}));
  INGOT_RETURN_IF_ERROR(RefuseUnless(node, "sliding_window_cache", 0));
  INGOT_RETURN_IF_ERROR(RefuseInput(node, 16, "query_seqlens"));
  INGOT_ASSIGN_OR_RETURN(const int64_t scores, node.Int("qk_output", 0));
  if (scores < 0 || scores > 2) return node.Invalid("qk_output is " + std::to_string(scores));
  if (scores == 0) INGOT_RETURN_IF_ERROR(RefuseOutput(node, 3, "output_qk"));
  const bool wants_scores = scores != 0 && WantsOutput(node, 3);
  HeadsCall call;
  INGOT_ASSIGN_OR_RETURN(call.query_heads, CheckedHeads(node, "num_heads"));
  INGOT_ASSIGN_OR_RETURN(call.key_heads, CheckedHeads(node, "kv_num_heads"));
  call.bias = 10;
  INGOT_ASSIGN_OR_RETURN(const int64_t causal, node.Int("causal", 1));
  call.is_causal = causal != 0;
  INGOT_ASSIGN_OR_RETURN(const int64_t window, node.Int("local_window_size", -1));
  if (window < -1 || window == 0) return node.Invalid("local_window_size is " + std::to_string(window));
  call.left = window == -1 ? -1 : window - 1;  // a query itself is one of its window
  INGOT_ASSIGN_OR_RETURN(const int64_t is_smooth, node.Int("smooth_softmax", 0));
  INGOT_ASSIGN_OR_RETURN(call.query, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(call.sink, InputOrNull(node, 11));
  if (call.sink != nullptr) INGOT_RETURN_IF_ERROR(StaticRankDims(node, 11).status());
  if (call.sink == nullptr && is_smooth == 1) {
    INGOT_ASSIGN_OR_RETURN(
        call.sink, node.Bind("zeros", {ShapeOf({ir::Int64(call.query_heads)})}, {{"dtype", DTypeOf(call.query)}}));
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  if (dims.size() != 3) return node.Invalid("expected queries of rank 3");
  if (node.HasInput(1)) {
    INGOT_ASSIGN_OR_RETURN(call.key, node.Input(1));
    INGOT_ASSIGN_OR_RETURN(call.value, node.Input(2));
  } else {
    const auto width = ir::AsConstInt(dims[2]);
    if (!width) return node.Unsupported("a hidden size that is symbolic");
    const int64_t heads = call.query_heads + 2 * call.key_heads, depth = *width / heads;
    if (depth == 0) return node.Invalid("a hidden size of " + std::to_string(*width) + " is less than the heads");
    INGOT_ASSIGN_OR_RETURN(
        const std::vector<Expr> parts,
        SplitAt(node, call.query, {call.query_heads * depth, call.key_heads * depth, call.key_heads * depth}));
    call.query = parts[0];
    call.key = parts[1];
    call.value = parts[2];
  }
  INGOT_ASSIGN_OR_RETURN(call.past_key, InputOrNull(node, 3));
  INGOT_ASSIGN_OR_RETURN(call.past_value, InputOrNull(node, 4));
  PrimExpr past = ir::Int64(0);
  if (call.past_key != nullptr) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> room, StaticRankDims(node, 3));
    if (room.size() != 4) return node.Invalid("expected a past of rank 4");
    past = room[2];
  }
  if (!call.is_causal && window != -1) return node.Invalid("local_window_size beside causal of 0");
  INGOT_RETURN_IF_ERROR(
      MatchLengths(node, dims[0], op::SimplifyDim(past + dims[1]), call.past_key != nullptr || !call.is_causal));
  if (node.HasInput(14) != node.HasInput(15)) return node.Invalid("q_norm_weight and k_norm_weight go together");
  if (node.HasInput(14)) {
    INGOT_ASSIGN_OR_RETURN(call.query, NormalisedHeads(node, call.query, call.query_heads, 14, "q_norm_epsilon"));
    INGOT_ASSIGN_OR_RETURN(call.key, NormalisedHeads(node, call.key, call.key_heads, 15, "k_norm_epsilon"));
  }
  INGOT_ASSIGN_OR_RETURN(const int64_t rotates, node.Int("do_rotary", 0));
  if (rotates != 0) {
    INGOT_ASSIGN_OR_RETURN(call.query, Rotated(node, call.query, call.query_heads, past));
    INGOT_ASSIGN_OR_RETURN(call.key, Rotated(node, call.key, call.key_heads, past));
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<Expr> caches, CachedAsBytes(node, call));
  INGOT_ASSIGN_OR_RETURN(std::vector<Expr> results,
                         AttendTo(node, call, wants_scores || WantsOutput(node, 1) || WantsOutput(node, 2)));
  Expr product;
  if (wants_scores) {
    INGOT_ASSIGN_OR_RETURN(product, ScoresOf(node, call, results.at(1), scores == 2));
  }
  if (!caches.empty()) {
    results.resize(1);
    results.insert(results.end(), caches.begin(), caches.end());
  }
  if (wants_scores) results.push_back(std::move(product));
  return results;
}

constexpr OnnxOpRow kGroupRows[] = {
    {"GroupQueryAttention", nullptr, GroupQueryAttention, kMicrosoft},
    {"RotaryEmbedding", nullptr, MsRotaryEmbedding, kMicrosoft},
};

}  // namespace

std::span<const OnnxOpRow> GroupOnnxOps() { return kGroupRows; }

}  // namespace ingot::importer
