// com.microsoft's operators on scores: softmax of sums, what relative positions add, and words that may not follow.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/contrib.h"
#include "compiler/importer/ops/families.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

// Softmax of the data and a bias that broadcasts to them, over all axes from one on.
Outputs BiasSoftmax(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"axis", "is_inner_broadcast"}));
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr bias, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  INGOT_RETURN_IF_ERROR(StaticRankDims(node, 1).status());
  INGOT_ASSIGN_OR_RETURN(const int64_t axis, node.Int("axis", 1));
  INGOT_ASSIGN_OR_RETURN(bias, BroadcastInto(node, std::move(bias), dims));
  INGOT_ASSIGN_OR_RETURN(const Expr sum, node.Bind("add", {x, bias}));
  constexpr int64_t kFlattens = 11;  // until this opset softmax is over all axes from one on
  return One(Apply(node, "Softmax", {sum}, {AttributeOf("axis", axis)}, kFlattens));
}

// ---- relative positions

// The bucket of each distance up to the greatest one: near ones have one each, farther ones share them by their
// logarithm (Raffel et al., 2020).
std::vector<int32_t> BucketsOf(int64_t num_buckets, int64_t max_distance) {
  const auto near = static_cast<int32_t>(num_buckets / 2), last = static_cast<int32_t>(num_buckets - 1);
  std::vector<int32_t> buckets;
  for (int32_t distance = 0; distance <= max_distance; ++distance) {
    if (distance < near) {
      buckets.push_back(distance);
      continue;
    }
    const float part = std::log(static_cast<float>(distance) / static_cast<float>(near)) /
                       std::log(static_cast<float>(max_distance) / static_cast<float>(near));
    buckets.push_back(std::min(last, near + static_cast<int32_t>(part * static_cast<float>(num_buckets - near))));
  }
  return buckets;
}

// What a head adds to the score of a key for its distance from the query, [1, heads, queries, keys]. Inputs: the table,
// whose dims are those of its transposition [buckets, heads], and the numbers of queries and keys.
Outputs RelativePositionBias(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"is_bidirectional", "max_distance"}));
  INGOT_ASSIGN_OR_RETURN(Expr table, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  if (dims.size() != 2) return node.Invalid("expected a table of rank 2, got " + std::to_string(dims.size()));
  const auto num_buckets = ir::AsConstInt(dims[0]);
  if (!num_buckets) return node.Unsupported("a table of an unknown number of buckets");
  INGOT_ASSIGN_OR_RETURN(const int64_t is_bidirectional, node.Int("is_bidirectional", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t max_distance, node.Int("max_distance", 0));
  const int64_t one_way = is_bidirectional != 0 ? *num_buckets / 2 : *num_buckets;
  constexpr int64_t kFarthest = int64_t{1} << 20;
  if (one_way < 2 || max_distance <= one_way / 2 || max_distance > kFarthest) {
    return node.Invalid("max_distance is " + std::to_string(max_distance) + " for " + std::to_string(*num_buckets) +
                        " buckets");
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> queries, node.DataInts(1, "the number of queries", 1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> keys, node.DataInts(2, "the number of keys", 1));
  if (queries.size() != 1 || keys.size() != 1) return node.Invalid("expected one number of queries and one of keys");
  const PrimExpr one = ir::Int64(1);
  INGOT_ASSIGN_OR_RETURN(const Expr rows, CountedUp(node, queries[0], {queries[0], one}));
  INGOT_ASSIGN_OR_RETURN(const Expr columns, CountedUp(node, keys[0], {one, keys[0]}));
  INGOT_ASSIGN_OR_RETURN(const Expr ahead, node.Bind("subtract", {columns, rows}));
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, kIndex));
  INGOT_ASSIGN_OR_RETURN(const Expr farthest, node.Scalar(max_distance, kIndex));
  Expr distance;
  if (is_bidirectional != 0) {
    INGOT_ASSIGN_OR_RETURN(distance, node.Bind("abs", {ahead}));
  } else {
    INGOT_ASSIGN_OR_RETURN(distance, node.Bind("subtract", {rows, columns}));
    INGOT_ASSIGN_OR_RETURN(distance, node.Bind("maximum", {distance, zero}));
  }
  INGOT_ASSIGN_OR_RETURN(distance, node.Bind("minimum", {distance, farthest}));
  const Expr buckets = ConstantOf(DataType::Int(32), {max_distance + 1}, BucketsOf(one_way, max_distance));
  INGOT_ASSIGN_OR_RETURN(Expr bucket, node.Bind("take", {buckets, distance}, {{"axis", int64_t{0}}}));
  if (is_bidirectional != 0) {  // those of keys behind the query follow
    INGOT_ASSIGN_OR_RETURN(Expr behind, node.Bind("greater", {ahead, zero}));
    INGOT_ASSIGN_OR_RETURN(behind, CastTo(node, std::move(behind), DataType::Int(32)));
    INGOT_ASSIGN_OR_RETURN(const Expr offset, node.Scalar(one_way, DataType::Int(32)));
    INGOT_ASSIGN_OR_RETURN(behind, node.Bind("multiply", {behind, offset}));
    INGOT_ASSIGN_OR_RETURN(bucket, node.Bind("add", {bucket, behind}));
  }
  INGOT_ASSIGN_OR_RETURN(table, node.Bind("reshape", {table, ShapeOf({dims[1], dims[0]})}));
  INGOT_ASSIGN_OR_RETURN(const Expr bias, node.Bind("take", {table, bucket}, {{"axis", int64_t{1}}}));
  return One(ReshapeTo(node, bias, {one, dims[1], queries[0], keys[0]}));
}

// Inputs: the queries [batch, sequence, heads * depth], a bias of these, what relative positions add [1, heads, queries,
// keys], weights [depth, D] and a bias of a product of queries, and a factor of each head. The product's halves, each a
// sum, are two gates (Chi et al., 2022).
Outputs GatedRelativePositionBias(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"num_heads"}));
  INGOT_RETURN_IF_ERROR(RefuseInput(node, 6, "token_offset"));
  INGOT_ASSIGN_OR_RETURN(const int64_t heads, node.Int("num_heads", 0));
  INGOT_ASSIGN_OR_RETURN(Expr query, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> of_weight, StaticRankDims(node, 3));
  if (dims.size() != 3 || of_weight.size() != 2) {
    return node.Invalid("expected queries of rank 3 and weights of rank 2");
  }
  const auto width = ir::AsConstInt(dims[2]), gates = ir::AsConstInt(of_weight[1]);
  if (!width || !gates) return node.Unsupported("a hidden size that is symbolic");
  if (heads < 1 || *width % heads != 0 || *gates < 2 || *gates % 2 != 0) {
    return node.Invalid("the heads or the gates do not divide the hidden size");
  }
  const PrimExpr one = ir::Int64(1), two = ir::Int64(2), count = ir::Int64(heads), depth = ir::Int64(*width / heads);
  const PrimExpr &batch = dims[0], &length = dims[1];
  INGOT_ASSIGN_OR_RETURN(const Expr query_bias, PerChannel(node, 1, dims[2]));
  INGOT_ASSIGN_OR_RETURN(query, node.Bind("add", {query, query_bias}));
  INGOT_ASSIGN_OR_RETURN(query, node.Bind("reshape", {query, ShapeOf({batch, length, count, depth})}));
  INGOT_ASSIGN_OR_RETURN(query, Permuted(node, std::move(query), {0, 2, 1, 3}));
  INGOT_ASSIGN_OR_RETURN(const Expr weight, InputOfDims(node, 3, {depth, of_weight[1]}));
  INGOT_ASSIGN_OR_RETURN(const Expr bias, PerChannel(node, 4, of_weight[1]));
  INGOT_ASSIGN_OR_RETURN(Expr gate, node.Bind("matmul", {query, weight}));
  INGOT_ASSIGN_OR_RETURN(gate, node.Bind("add", {gate, bias}));
  INGOT_ASSIGN_OR_RETURN(gate,
                         node.Bind("reshape", {gate, ShapeOf({batch, count, length, two, ir::Int64(*gates / 2)})}));
  INGOT_ASSIGN_OR_RETURN(gate, node.Bind("sum", {gate}, {{"axis", AttrValue::Ints({4})}, {"keepdims", false}}));
  INGOT_ASSIGN_OR_RETURN(gate, node.Bind("sigmoid", {gate}));
  const auto half = [&](int64_t i) {
    const std::vector<int64_t> axis = {3}, begin = {i}, end = {i + 1};
    return node.Bind("strided_slice", {gate, PrimTuple(axis), PrimTuple(begin), PrimTuple(end)});
  };
  INGOT_ASSIGN_OR_RETURN(const Expr update, half(0));
  INGOT_ASSIGN_OR_RETURN(Expr reset, half(1));
  INGOT_ASSIGN_OR_RETURN(const Expr factor, InputOfDims(node, 5, {one, count, one, one}));
  const DataType dtype = DTypeOf(gate);
  INGOT_ASSIGN_OR_RETURN(const Expr first, node.Scalar(1, dtype));
  INGOT_ASSIGN_OR_RETURN(const Expr second, node.Scalar(2, dtype));
  INGOT_ASSIGN_OR_RETURN(reset, node.Bind("multiply", {reset, factor}));
  INGOT_ASSIGN_OR_RETURN(reset, node.Bind("subtract", {reset, first}));
  INGOT_ASSIGN_OR_RETURN(reset, node.Bind("multiply", {update, reset}));
  INGOT_ASSIGN_OR_RETURN(reset, node.Bind("add", {reset, second}));
  INGOT_ASSIGN_OR_RETURN(const Expr positions, InputOfDims(node, 2, {one, count, length, length}));
  return One(node.Call("multiply", {reset, positions}));
}

// ---- words

// Scores [batch, vocabulary] of the words that may follow: those that would end a row of so many words that stands among
// the ids [batch, length] already have none.
Outputs NGramRepeatBlock(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"ngram_size"}));
  INGOT_ASSIGN_OR_RETURN(const int64_t size, node.Int("ngram_size", 0));
  constexpr int64_t kLongest = 1 << 10;
  if (size < 1 || size > kLongest) return node.Invalid("ngram_size is " + std::to_string(size));
  INGOT_ASSIGN_OR_RETURN(const Expr ids, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> of_scores, StaticRankDims(node, 1));
  if (dims.size() != 2 || of_scores.size() != 2) return node.Invalid("expected ids and scores of rank 2");
  INGOT_ASSIGN_OR_RETURN(const Expr scores, InputOfDims(node, 1, {dims[0], of_scores[1]}));
  const PrimExpr one = ir::Int64(1), zero = ir::Int64(0), before = ir::Int64(size - 1);
  const PrimExpr count = op::SimplifyDim(ir::Max(dims[1] - before, zero));
  const auto length = ir::AsConstInt(dims[1]);
  if (length && *length < size) return One(scores);
  const auto taken = [&](const Expr& places) { return node.Bind("take", {ids, places}, {{"axis", int64_t{1}}}); };
  INGOT_ASSIGN_OR_RETURN(const Expr ends, CountedUp(node, count, {count}));
  INGOT_ASSIGN_OR_RETURN(const Expr distance, node.Scalar(size - 1, kIndex));
  INGOT_ASSIGN_OR_RETURN(Expr words, node.Bind("add", {ends, distance}));
  INGOT_ASSIGN_OR_RETURN(words, taken(words));
  // Among the marks of words the first one is of none, and what is no word of the vocabulary lies behind the last one,
  // which no ids in a row that is unlike the last one need be.
  const PrimExpr marks = op::SimplifyDim(of_scores[1] + one);
  INGOT_ASSIGN_OR_RETURN(const Expr none, node.Scalar(0, kIndex));
  INGOT_ASSIGN_OR_RETURN(const Expr first, node.Scalar(1, kIndex));
  INGOT_ASSIGN_OR_RETURN(const Expr behind, node.Bind("shape_to_tensor", {ShapeOf({marks})}));
  INGOT_ASSIGN_OR_RETURN(const Expr is_negative, node.Bind("less", {words, none}));
  INGOT_ASSIGN_OR_RETURN(words, node.Bind("add", {words, first}));
  INGOT_ASSIGN_OR_RETURN(words, node.Bind("where", {is_negative, behind, words}));
  if (size > 1) {
    INGOT_ASSIGN_OR_RETURN(const Expr begins, CountedUp(node, count, {count, one}));
    INGOT_ASSIGN_OR_RETURN(const Expr inside, CountedUp(node, before, {one, before}));
    INGOT_ASSIGN_OR_RETURN(const Expr places, node.Bind("add", {begins, inside}));
    INGOT_ASSIGN_OR_RETURN(const Expr rows, taken(places));  // [batch, count, size - 1]
    // The last words, for each row: where there are no rows, there need be no words.
    INGOT_ASSIGN_OR_RETURN(const Expr from, node.Bind("shape_to_tensor", {ShapeOf({count})}));
    INGOT_ASSIGN_OR_RETURN(Expr last, node.Bind("add", {inside, from}));
    INGOT_ASSIGN_OR_RETURN(last, node.Bind("broadcast_to", {last, ShapeOf({count, before})}));
    INGOT_ASSIGN_OR_RETURN(last, taken(last));
    INGOT_ASSIGN_OR_RETURN(Expr unlike, node.Bind("not_equal", {rows, last}));
    INGOT_ASSIGN_OR_RETURN(unlike, CastTo(node, std::move(unlike), DataType::Int(32)));
    INGOT_ASSIGN_OR_RETURN(unlike, node.Bind("sum", {unlike}, {{"axis", AttrValue::Ints({2})}, {"keepdims", false}}));
    INGOT_ASSIGN_OR_RETURN(unlike, CastTo(node, std::move(unlike), DataType::Bool()));
    INGOT_ASSIGN_OR_RETURN(words, node.Bind("where", {unlike, none, words}));
  }
  const DataType mark = DataType::Int(32);
  INGOT_ASSIGN_OR_RETURN(Expr marked, node.Bind("zeros", {ShapeOf({dims[0], marks})}, {{"dtype", mark}}));
  INGOT_ASSIGN_OR_RETURN(const Expr each, node.Bind("ones", {ShapeOf({dims[0], count})}, {{"dtype", mark}}));
  INGOT_ASSIGN_OR_RETURN(
      marked, node.Bind("scatter_elements", {marked, words, each}, {{"axis", int64_t{1}}, {"reduction", "update"}}));
  const auto along = [](const PrimExpr& value) { return TupleOf({Number(value)}); };
  INGOT_ASSIGN_OR_RETURN(marked, node.Bind("strided_slice", {marked, along(one), along(one), along(marks)}));
  INGOT_ASSIGN_OR_RETURN(const Expr is_blocked, CastTo(node, std::move(marked), DataType::Bool()));
  INGOT_ASSIGN_OR_RETURN(const Expr blocked, node.Scalar(-std::numeric_limits<double>::infinity(), DTypeOf(scores)));
  return One(node.Call("where", {is_blocked, blocked, scores}));
}

constexpr OnnxOpRow kScoreRows[] = {
    {"BiasSoftmax", nullptr, BiasSoftmax, kMicrosoft},
    {"GatedRelativePositionBias", nullptr, GatedRelativePositionBias, kMicrosoft},
    {"NGramRepeatBlock", nullptr, NGramRepeatBlock, kMicrosoft},
    {"RelativePositionBias", nullptr, RelativePositionBias, kMicrosoft},
};

}  // namespace

std::span<const OnnxOpRow> ScoreOnnxOps() { return kScoreRows; }

}  // namespace ingot::importer
