// com.microsoft's attention, which ONNX Runtime's optimisers and its generative models write: ONNX's Attention of operands
// that are joined, have biases, or are rotated first, and of masks that are numbers of words or flags.
#include "compiler/importer/ops/contrib_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/attention_mask.h"
#include "compiler/importer/ops/families.h"
#include "compiler/ir/float_format.h"
#include "compiler/op/infer.h"

namespace ingot::importer {

Result<std::vector<Expr>> SplitAt(const NodeImporter& node, const Expr& x, const std::vector<int64_t>& lengths) {
  const int64_t axis = std::ssize(DimsOf(x)) - 1;
  ir::AttrList places;
  int64_t end = 0;
  constexpr int64_t kLongest = int64_t{1} << 48;  // (their sum does not wrap)
  if (std::ranges::any_of(lengths, [](int64_t length) { return length < 0 || length > kLongest; })) {
    return node.Invalid("a part of the last axis is of no length that an axis has");
  }
  for (size_t i = 0; i + 1 < lengths.size(); ++i) places.emplace_back(end += lengths[i]);
  std::vector<PrimExpr> whole = DimsOf(x);
  whole.back() = ir::Int64(end + lengths.back());
  if (op::DimsDiffer(DimsOf(x).back(), whole.back())) return node.Invalid("the last axis is not as long as its parts");
  INGOT_ASSIGN_OR_RETURN(const Expr call, node.Bind("split", {WithDims(node, x, std::move(whole))},
                                                    {{"indices_or_sections", std::move(places)}, {"axis", axis}}));
  INGOT_ASSIGN_OR_RETURN(std::vector<Expr> parts, Fields(call));
  for (Expr& part : parts) part = node.BindValue(part, "part");
  return parts;
}

Result<Expr> JoinedPast(const NodeImporter& node, Expr x, int64_t heads, const Expr& past) {
  if (DimsOf(x).size() == 3) {
    const std::vector<PrimExpr> dims = DimsOf(x);
    const auto width = ir::AsConstInt(dims[2]);
    if (!width || *width % heads != 0) return node.Unsupported("heads of unknown depth");
    INGOT_ASSIGN_OR_RETURN(
        x, node.Bind("reshape", {x, ShapeOf({dims[0], dims[1], ir::Int64(heads), ir::Int64(*width / heads)})}));
    INGOT_ASSIGN_OR_RETURN(x, Permuted(node, x, {0, 2, 1, 3}));
  }
  if (past == nullptr) return x;
  return node.Bind("concat", {TupleOf({past, x})}, {{"axis", int64_t{2}}});
}

Result<Expr> ScoreBias(const NodeImporter& node, const HeadsCall& call, const PrimExpr& num_keys) {
  INGOT_ASSIGN_OR_RETURN(const Expr bias, node.Input(call.bias));
  INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> dims, StaticRankDims(node, call.bias));
  if (dims.size() != 4) return node.Invalid("what is added to the scores is not of rank 4");
  const PrimExpr one = ir::Int64(1), zero = ir::Int64(0);
  const std::vector<PrimExpr> scores = {DimsOf(call.query)[0], ir::Int64(call.query_heads), DimsOf(call.query)[1],
                                        num_keys};
  std::vector<PrimExpr> flags, ones;
  for (size_t i = 0; i < 4; ++i) {
    const bool is_shared = i < 2 && ir::IsConstInt(dims[i], 1);
    if (is_shared || op::DimsEqual(dims[i], scores[i])) continue;
    if (op::DimsDiffer(dims[i], scores[i]) && (i >= 2 || ir::AsConstInt(dims[i]))) {
      return node.Invalid("what is added to the scores does not have their dim " + std::to_string(i));
    }
    if (i >= 2 || ir::AsConstInt(dims[i])) {
      dims[i] = scores[i];
      continue;
    }
    flags.push_back(ir::Select(ir::Or(ir::Equal(dims[i], one), ir::Equal(dims[i], scores[i])), one, zero));
    ones.push_back(one);
  }
  if (!flags.empty()) node.Match(ShapeOf(std::move(flags)), ir::Make<ir::ShapeTypeNode>(std::move(ones)));
  return WithDims(node, bias, std::move(dims));
}

namespace {

// Returns a bias, input `i`, of this many numbers.
Result<Expr> BiasOf(const NodeImporter& node, size_t i, const PrimExpr& length) {
  INGOT_ASSIGN_OR_RETURN(const Expr bias, node.Input(i));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, i));
  if (dims.size() != 1 || op::DimsDiffer(dims[0], length)) return node.Invalid("expected a bias for each output");
  return WithDims(node, bias, {length});
}

// Returns 0 where a flag is set, and `hidden` elsewhere, or the lowest finite number that there is.
Result<Expr> HiddenUnless(const NodeImporter& node, Expr flags, double hidden, DataType dtype) {
  hidden = std::max(hidden, -ir::LargestFinite(dtype));
  INGOT_ASSIGN_OR_RETURN(const Expr is_seen, CastTo(node, std::move(flags), DataType::Bool()));
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, dtype));
  INGOT_ASSIGN_OR_RETURN(const Expr low, node.Scalar(hidden, dtype));
  return node.Bind("where", {is_seen, zero, low});
}

// Returns part `i` of an axis, of parts of this length.
Result<Expr> PartOf(const NodeImporter& node, const Expr& x, int64_t along, int64_t i, const PrimExpr& length) {
  const std::vector<int64_t> axis = {along};
  const std::vector<PrimExpr> begin = {op::SimplifyDim(length * i)}, end = {op::SimplifyDim(length * (i + 1))};
  return node.Bind("strided_slice", {x, PrimTuple(axis), PrimTuple(begin), PrimTuple(end)});
}

// Returns which keys count, [batch, 1, 1, keys], by where those of each sequence end: [batch]; by the ends and behind
// them the beginnings: [2 * batch]; or by the ends, behind which more stands: [3 * batch + 2]. Which of these it is is
// asked when the model runs where the lengths do not say it.
Result<Expr> KeysOfSpans(const NodeImporter& node, const Expr& mask, const PrimExpr& batch, const PrimExpr& num_keys) {
  const DataType dtype = DTypeOf(mask);
  const PrimExpr one = ir::Int64(1), zero = ir::Int64(0), given = DimsOf(mask)[0];
  const PrimExpr twice = op::SimplifyDim(batch * 2), more = op::SimplifyDim(batch * 3 + 2);
  INGOT_ASSIGN_OR_RETURN(const Expr places,
                         node.Bind("arange", {Number(zero), Number(num_keys), Number(one)}, {{"dtype", dtype}}));
  const auto compared = [&](const char* row, const Expr& bounds) -> Result<Expr> {
    INGOT_ASSIGN_OR_RETURN(const Expr apart, node.Bind("reshape", {bounds, ShapeOf({batch, one, one, one})}));
    return node.Bind(row, {places, apart});
  };
  const bool has_starts = op::DimsEqual(given, twice), has_more = op::DimsEqual(given, more);
  const bool is_known = has_starts || has_more || (ir::AsConstInt(given) && ir::AsConstInt(batch));
  if (op::DimsEqual(given, batch) || (is_known && !has_starts && !has_more)) {
    return compared("less", WithDims(node, mask, {batch}));
  }
  if (!is_known) {
    const PrimExpr fits = ir::Or(ir::Or(ir::Equal(given, batch), ir::Equal(given, twice)), ir::Equal(given, more));
    node.Match(ShapeOf({ir::Select(fits, one, zero)}), ir::Make<ir::ShapeTypeNode>(std::vector<PrimExpr>{one}));
  }
  INGOT_ASSIGN_OR_RETURN(Expr ends, PartOf(node, mask, 0, 0, batch));
  INGOT_ASSIGN_OR_RETURN(const Expr before, compared("less", WithDims(node, std::move(ends), {batch})));
  if (has_more) return before;
  // Where there are no beginnings, 0 is one.
  const PrimExpr begin = has_starts ? batch : op::SimplifyDim(ir::Select(ir::Equal(given, twice), batch, zero));
  const std::vector<PrimExpr> axis = {zero}, from = {begin}, to = {op::SimplifyDim(begin + batch)};
  INGOT_ASSIGN_OR_RETURN(Expr starts,
                         node.Bind("strided_slice", {mask, PrimTuple(axis), PrimTuple(from), PrimTuple(to)}));
  starts = WithDims(node, std::move(starts), {batch});
  if (!has_starts) {
    INGOT_ASSIGN_OR_RETURN(Expr factor,
                           node.Bind("shape_to_tensor", {ShapeOf({ir::Select(ir::Equal(given, twice), one, zero)})}));
    INGOT_ASSIGN_OR_RETURN(factor, CastTo(node, std::move(factor), dtype));
    INGOT_ASSIGN_OR_RETURN(starts, node.Bind("multiply", {starts, factor}));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr behind, compared("greater_equal", starts));
  return node.Bind("logical_and", {before, behind});
}

// Returns a mask of keys as what is added to the scores [batch, heads, queries, keys]: numbers above 0 for keys that
// count [batch, keys], or that count for a query [batch, queries, keys], or which ones do (KeysOfSpans).
Result<Expr> KeyMask(const NodeImporter& node, const HeadsCall& call, const PrimExpr& num_keys) {
  const size_t input = call.mask;
  const DataType dtype = DTypeOf(call.query);
  const PrimExpr batch = DimsOf(call.query)[0], num_queries = DimsOf(call.query)[1];
  INGOT_ASSIGN_OR_RETURN(Expr mask, node.Input(input));
  INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> dims, StaticRankDims(node, input));
  INGOT_ASSIGN_OR_RETURN(const double hidden, node.Float("mask_filter_value", -10000));
  const PrimExpr one = ir::Int64(1);
  if (dims.size() == 1) {
    INGOT_ASSIGN_OR_RETURN(mask, KeysOfSpans(node, mask, batch, num_keys));
    return HiddenUnless(node, std::move(mask), hidden, dtype);
  }
  if (dims.size() != 2 && dims.size() != 3) return node.Unsupported("a mask of rank " + std::to_string(dims.size()));
  const std::vector<PrimExpr> wanted =
      dims.size() == 2 ? std::vector{batch, num_keys} : std::vector{batch, num_queries, num_keys};
  if (!std::ranges::equal(dims, wanted, [](const auto& a, const auto& b) { return !op::DimsDiffer(a, b); })) {
    return node.Invalid("a mask that is not of the batch, the queries and the keys");
  }
  dims = wanted;
  mask = WithDims(node, std::move(mask), dims);
  dims.insert(dims.begin() + 1, one);
  if (dims.size() == 3) dims.insert(dims.begin() + 1, one);
  INGOT_ASSIGN_OR_RETURN(mask, node.Bind("reshape", {mask, ShapeOf(dims)}));
  if (!DTypeOf(mask).is_bool()) {
    INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, DTypeOf(mask)));
    INGOT_ASSIGN_OR_RETURN(mask, node.Bind("greater", {mask, zero}));
  }
  return HiddenUnless(node, std::move(mask), hidden, dtype);
}

// Returns what is added to the scores [batch, heads, queries, keys] for a mask and a bias; null: there is neither.
Result<Expr> AddedToScores(const NodeImporter& node, const HeadsCall& call, const PrimExpr& num_keys) {
  Expr mask;
  if (call.mask != 0 && node.HasInput(call.mask)) {
    INGOT_ASSIGN_OR_RETURN(mask, KeyMask(node, call, num_keys));
  }
  if (call.bias == 0 || !node.HasInput(call.bias)) return mask;
  INGOT_ASSIGN_OR_RETURN(Expr bias, ScoreBias(node, call, num_keys));
  return mask == nullptr ? Result<Expr>(std::move(bias)) : node.Bind("add", {mask, bias});
}

// Attention with a sink: one more key of zeros, whose score is the sink's, and a mask that says which others are seen.
// Returns the output, keys and values; `mask` (null: none) is what is added to the scores.
Result<std::vector<Expr>> AttendWithSink(const NodeImporter& node, const HeadsCall& call, const Expr& mask,
                                         Attributes attributes) {
  const DataType dtype = DTypeOf(call.query);
  const PrimExpr one = ir::Int64(1), num_queries = DimsOf(call.query)[1], heads = ir::Int64(call.query_heads);
  INGOT_ASSIGN_OR_RETURN(const Expr key, JoinedPast(node, call.key, call.key_heads, call.past_key));
  INGOT_ASSIGN_OR_RETURN(const Expr value, JoinedPast(node, call.value, call.key_heads, call.past_value));
  const PrimExpr num_keys = DimsOf(key)[2];
  KeyVisibility visibility{num_queries, num_keys};
  visibility.past = op::SimplifyDim(num_keys - num_queries);
  visibility.is_causal = call.is_causal;
  if (call.left >= 0) visibility.left = call.left;
  Expr bias = mask;
  if (visibility.is_anything()) {
    INGOT_ASSIGN_OR_RETURN(bias, VisibilityBias(node, visibility, dtype));
    if (mask != nullptr) {
      INGOT_ASSIGN_OR_RETURN(bias, node.Bind("add", {mask, bias}));
    }
  } else if (bias == nullptr) {
    INGOT_ASSIGN_OR_RETURN(bias, node.Scalar(0, dtype));
  }
  const PrimExpr batch = DimsOf(bias).size() == 4 ? DimsOf(bias)[0] : one;
  INGOT_ASSIGN_OR_RETURN(bias, node.Bind("broadcast_to", {bias, ShapeOf({batch, heads, num_queries, num_keys})}));
  Expr sink = WithDims(node, call.sink, {heads});
  INGOT_ASSIGN_OR_RETURN(sink, CastTo(node, std::move(sink), dtype));
  INGOT_ASSIGN_OR_RETURN(sink, node.Bind("reshape", {sink, ShapeOf({one, heads, one, one})}));
  INGOT_ASSIGN_OR_RETURN(sink, node.Bind("broadcast_to", {sink, ShapeOf({batch, heads, num_queries, one})}));
  INGOT_ASSIGN_OR_RETURN(bias, node.Bind("concat", {TupleOf({bias, sink})}, {{"axis", int64_t{3}}}));
  const auto with_zeros = [&](const Expr& x) -> Result<Expr> {
    std::vector<PrimExpr> dims = DimsOf(x);
    dims[2] = one;
    INGOT_ASSIGN_OR_RETURN(const Expr zeros, node.Bind("zeros", {ShapeOf(dims)}, {{"dtype", dtype}}));
    return node.Bind("concat", {TupleOf({x, zeros})}, {{"axis", int64_t{2}}});
  };
  INGOT_ASSIGN_OR_RETURN(const Expr keys, with_zeros(key));
  INGOT_ASSIGN_OR_RETURN(const Expr values, with_zeros(value));
  INGOT_ASSIGN_OR_RETURN(Expr y, Apply(node, "Attention", {call.query, keys, values, bias}, std::move(attributes)));
  return std::vector<Expr>{std::move(y), key, value};
}

}  // namespace

Result<std::vector<Expr>> AttendTo(const NodeImporter& node, const HeadsCall& call, bool wants_present) {
  PrimExpr num_keys = DimsOf(call.key)[DimsOf(call.key).size() == 4 ? 2 : 1];
  if (call.past_key != nullptr) num_keys = op::SimplifyDim(num_keys + DimsOf(call.past_key)[2]);
  INGOT_ASSIGN_OR_RETURN(const Expr mask, AddedToScores(node, call, num_keys));
  Attributes attributes = Copied(node, {"softcap"});
  // A scale of 0 is one that is not given.
  INGOT_ASSIGN_OR_RETURN(const double scale, node.Float("scale", 0));
  if (scale != 0) attributes.push_back(AttributeOf("scale", static_cast<float>(scale)));
  attributes.push_back(AttributeOf("q_num_heads", call.query_heads));
  attributes.push_back(AttributeOf("kv_num_heads", call.key_heads));
  if (call.sink != nullptr) return AttendWithSink(node, call, mask, std::move(attributes));
  attributes.push_back(AttributeOf("is_causal", int64_t{call.is_causal}));
  if (call.left >= 0) attributes.push_back(AttributeOf("left_window_size", call.left));
  std::vector<std::string> outputs = {"y"};
  if (wants_present) outputs.insert(outputs.end(), {"present_key", "present_value"});
  return ApplyAll(node, "Attention", {call.query, call.key, call.value, mask, call.past_key, call.past_value},
                  std::move(attributes), std::move(outputs));
}

Result<int64_t> CheckedHeads(const NodeImporter& node, const char* name) {
  INGOT_ASSIGN_OR_RETURN(const int64_t heads, node.Int(name, 0));
  constexpr int64_t kMostHeads = std::numeric_limits<int32_t>::max();
  if (heads < 1 || heads > kMostHeads) return node.Invalid(std::string(name) + " is " + std::to_string(heads));
  return heads;
}

Status RefuseUnless(const NodeImporter& node, const char* name, int64_t value) {
  INGOT_ASSIGN_OR_RETURN(const int64_t given, node.Int(name, value));
  return given == value ? Status() : node.Unsupported(std::string(name) + " of " + std::to_string(given));
}

namespace {

// ---- Attention and QAttention: one product of the input gives queries, keys and values

// joined: [batch, sequence, queries, keys and values]; past: the input [2, batch, heads, past, depth].
Outputs AttendJoined(const NodeImporter& node, const Expr& joined, size_t mask, size_t bias, size_t past) {
  const auto width = ir::AsConstInt(DimsOf(joined).back());
  if (!width) return node.Unsupported("a hidden size that is symbolic");
  HeadsCall call;
  INGOT_ASSIGN_OR_RETURN(call.query_heads, CheckedHeads(node, "num_heads"));
  call.key_heads = call.query_heads;
  call.mask = mask;
  call.bias = bias;
  INGOT_ASSIGN_OR_RETURN(const int64_t causal, node.Int("unidirectional", 0));
  call.is_causal = causal != 0;
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                         node.Ints("qkv_hidden_sizes", {*width / 3, *width / 3, *width / 3}, 3));
  INGOT_ASSIGN_OR_RETURN(const std::vector<Expr> parts, SplitAt(node, joined, sizes));
  call.query = parts[0];
  call.key = parts[1];
  call.value = parts[2];
  if (node.HasInput(past)) {
    INGOT_ASSIGN_OR_RETURN(const Expr both, node.Input(past));
    INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> dims, StaticRankDims(node, past));
    if (dims.size() != 5) return node.Invalid("expected a past of rank 5");
    for (int64_t i : {0, 1}) {
      INGOT_ASSIGN_OR_RETURN(Expr part, PartOf(node, both, 0, i, ir::Int64(1)));
      INGOT_ASSIGN_OR_RETURN(
          part, node.Bind("reshape", {part, ShapeOf(std::vector<PrimExpr>(dims.begin() + 1, dims.end()))}));
      (i == 0 ? call.past_key : call.past_value) = part;
    }
  }
  const bool wants_present = WantsOutput(node, 1);
  INGOT_ASSIGN_OR_RETURN(std::vector<Expr> results, AttendTo(node, call, wants_present));
  if (!wants_present) return results;
  std::vector<Expr> halves;
  for (size_t i : {1, 2}) {
    std::vector<PrimExpr> dims = DimsOf(results[i]);
    dims.insert(dims.begin(), ir::Int64(1));
    INGOT_ASSIGN_OR_RETURN(Expr half, node.Bind("reshape", {results[i], ShapeOf(std::move(dims))}));
    halves.push_back(std::move(half));
  }
  INGOT_ASSIGN_OR_RETURN(results[1], node.Bind("concat", {TupleOf(std::move(halves))}, {{"axis", int64_t{0}}}));
  results.resize(2);
  return results;
}

// Inputs: the data, the weights, a bias, a mask, the past, and what is added to the scores.
Outputs MsAttention(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(
      CheckAttributes(node, {"do_rotary", "mask_filter_value", "num_heads", "past_present_share_buffer",
                             "qkv_hidden_sizes", "rotary_embedding_dim", "scale", "unidirectional"}));
  for (const char* name : {"do_rotary", "past_present_share_buffer", "rotary_embedding_dim"}) {
    INGOT_RETURN_IF_ERROR(RefuseUnless(node, name, 0));
  }
  INGOT_RETURN_IF_ERROR(RefuseInput(node, 6, "past_sequence_length"));
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const Expr weights, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(Expr joined, node.Bind("matmul", {x, weights}));
  if (node.HasInput(2)) {
    INGOT_ASSIGN_OR_RETURN(const Expr bias, BiasOf(node, 2, DimsOf(joined).back()));
    INGOT_ASSIGN_OR_RETURN(joined, node.Bind("add", {joined, bias}));
  }
  return AttendJoined(node, joined, 3, 5, 4);
}

// Inputs: the data, the weights, a bias, the scales of data and weights, a mask, their zero points, and the past.
Outputs QAttention(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(
      node, {"do_rotary", "mask_filter_value", "num_heads", "past_present_share_buffer", "scale", "unidirectional"}));
  for (const char* name : {"do_rotary", "past_present_share_buffer"}) {
    INGOT_RETURN_IF_ERROR(RefuseUnless(node, name, 0));
  }
  std::vector<Expr> in;
  for (size_t i = 0; i < 8; ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr input, InputOrNull(node, i));
    in.push_back(std::move(input));
  }
  INGOT_ASSIGN_OR_RETURN(Expr joined, Apply(node, "MatMulInteger", {in[0], in[1], in[6], in[7]}));
  INGOT_ASSIGN_OR_RETURN(joined, CastTo(node, std::move(joined), DTypeOf(in[3])));
  INGOT_ASSIGN_OR_RETURN(const Expr scale, node.Bind("multiply", {in[3], in[4]}));
  INGOT_ASSIGN_OR_RETURN(joined, node.Bind("multiply", {joined, scale}));
  INGOT_ASSIGN_OR_RETURN(const Expr bias, BiasOf(node, 2, DimsOf(joined).back()));
  INGOT_ASSIGN_OR_RETURN(joined, node.Bind("add", {joined, bias}));
  return AttendJoined(node, joined, 5, 0, 8);
}

// ---- MultiHeadAttention

// Returns operands that stand beside each other in one, [batch, sequence, heads, count, depth], as
// [batch, sequence, heads * depth].
Result<std::vector<Expr>> Unjoined(const NodeImporter& node, size_t input, int64_t count) {
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(input));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, input));
  if (dims.size() != 5 || !ir::IsConstInt(dims[3], count)) {
    return node.Invalid("expected " + std::to_string(count) + " operands in one of rank 5");
  }
  std::vector<Expr> operands;
  for (int64_t i = 0; i < count; ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr part, PartOf(node, x, 3, i, ir::Int64(1)));
    const PrimExpr width = op::SimplifyDim(dims[2] * dims[4]);
    INGOT_ASSIGN_OR_RETURN(part, node.Bind("reshape", {part, ShapeOf({dims[0], dims[1], width})}));
    operands.push_back(std::move(part));
  }
  return operands;
}

// Returns queries, keys and values: three inputs, queries and both others in one, or all in the first one.
Result<std::vector<Expr>> OperandsOfHeads(const NodeImporter& node) {
  if (!node.HasInput(1) && !node.HasInput(2)) return Unjoined(node, 0, 3);
  std::vector<Expr> in;
  for (size_t i : {0, 1, 2}) {
    if (i == 1 && !node.HasInput(2)) {
      INGOT_ASSIGN_OR_RETURN(const std::vector<Expr> pair, Unjoined(node, 1, 2));
      in.insert(in.end(), pair.begin(), pair.end());
      return in;
    }
    INGOT_ASSIGN_OR_RETURN(Expr input, node.Input(i));
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, i));
    if (dims.size() != 3 && (dims.size() != 4 || i == 0)) {
      return node.Invalid("an operand of rank " + std::to_string(dims.size()));
    }
    in.push_back(std::move(input));
  }
  return in;
}

// Returns query times key and what is added to it, [batch, heads, queries, keys].
Result<Expr> ScoresBeforeSoftmax(const NodeImporter& node, const HeadsCall& call) {
  INGOT_ASSIGN_OR_RETURN(const Expr query, JoinedPast(node, call.query, call.query_heads, nullptr));
  INGOT_ASSIGN_OR_RETURN(const Expr keys, JoinedPast(node, call.key, call.key_heads, call.past_key));
  const auto depth = ir::AsConstInt(DimsOf(query)[3]);
  if (!depth) return node.Unsupported("heads of unknown depth");
  INGOT_ASSIGN_OR_RETURN(const double scale, node.Float("scale", 0));
  INGOT_ASSIGN_OR_RETURN(const Expr added, AddedToScores(node, call, DimsOf(keys)[2]));
  constexpr int64_t kPlain = 0, kWithBias = 2;
  return AttentionScores(node, query, keys,
                         {scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(*depth)), 0,
                          added == nullptr ? kPlain : kWithBias, added});
}

// Inputs: queries, keys, values, a bias of all three, a mask, what is added to the scores, and the past.
Outputs MultiHeadAttention(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"mask_filter_value", "num_heads", "scale", "unidirectional"}));
  INGOT_RETURN_IF_ERROR(RefuseInput(node, 8, "past_sequence_length"));
  INGOT_RETURN_IF_ERROR(RefuseInput(node, 9, "cache_indirection"));
  INGOT_ASSIGN_OR_RETURN(std::vector<Expr> in, OperandsOfHeads(node));
  HeadsCall call;
  INGOT_ASSIGN_OR_RETURN(call.query_heads, CheckedHeads(node, "num_heads"));
  call.key_heads = call.query_heads;
  call.mask = 4;
  call.bias = 5;
  INGOT_ASSIGN_OR_RETURN(const int64_t causal, node.Int("unidirectional", 0));
  call.is_causal = causal != 0;
  if (node.HasInput(3)) {
    std::vector<int64_t> lengths;
    PrimExpr length = ir::Int64(0);
    for (const Expr& operand : in) {
      const std::vector<PrimExpr>& dims = DimsOf(operand);
      const auto width = ir::AsConstInt(dims.size() == 4 ? op::SimplifyDim(dims[1] * dims[3]) : dims.back());
      if (!width) return node.Unsupported("a bias of a symbolic number of elements");
      lengths.push_back(*width);
      length = op::SimplifyDim(length + *width);
    }
    INGOT_ASSIGN_OR_RETURN(const Expr bias, BiasOf(node, 3, length));
    INGOT_ASSIGN_OR_RETURN(const std::vector<Expr> parts, SplitAt(node, bias, lengths));
    for (size_t i : {0, 1, 2}) {
      if (DimsOf(in[i]).size() == 4) continue;  // keys and values that have theirs
      INGOT_ASSIGN_OR_RETURN(in[i], node.Bind("add", {in[i], parts[i]}));
    }
  }
  call.query = in[0];
  call.key = in[1];
  call.value = in[2];
  INGOT_ASSIGN_OR_RETURN(call.past_key, InputOrNull(node, 6));
  INGOT_ASSIGN_OR_RETURN(call.past_value, InputOrNull(node, 7));
  for (const Expr& past : {call.past_key, call.past_value}) {
    if (past != nullptr && KnownTensor(past->type) == nullptr) return node.Unsupported("a past of unknown rank");
  }
  INGOT_ASSIGN_OR_RETURN(std::vector<Expr> results, AttendTo(node, call, WantsOutput(node, 1) || WantsOutput(node, 2)));
  if (!WantsOutput(node, 3)) return results;
  if (call.is_causal) return node.Unsupported("the output qk beside unidirectional");
  INGOT_ASSIGN_OR_RETURN(Expr scores, ScoresBeforeSoftmax(node, call));
  results.resize(3, results[0]);  // outputs that nobody asked for keep their places
  results.push_back(std::move(scores));
  return results;
}

constexpr OnnxOpRow kHeadsRows[] = {
    {"Attention", nullptr, MsAttention, kMicrosoft},
    {"MultiHeadAttention", nullptr, MultiHeadAttention, kMicrosoft},
    {"QAttention", nullptr, QAttention, kMicrosoft},
};

}  // namespace

std::span<const OnnxOpRow> HeadsOnnxOps() { return kHeadsRows; }

}  // namespace ingot::importer
