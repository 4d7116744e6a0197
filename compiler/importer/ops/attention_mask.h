// What attention adds to its scores beyond a given mask, made of calls: which keys a query may see by its place among
// them and by how many keys of its batch count; and the scores themselves, as the output that ONNX's Attention has of
// them.
#pragma once

#include <optional>
#include <string>

#include "compiler/importer/ops/util.h"

namespace ingot::importer {

// Query i stands at position i + offset among the keys. The offset is what came before, or of each batch the number of
// its keys that count less the number of queries.
struct KeyVisibility {
  PrimExpr num_queries, num_keys;
  PrimExpr past = ir::Int64(0);
  Expr num_counting;                   // int64[batch]: keys from there on do not count; null: all do
  bool is_causal = false;              // no key behind the query's position
  std::optional<int64_t> left, right;  // keys at most so far from it
  bool is_anything() const { return num_counting != nullptr || is_causal || left || right; }
};
// 0 where a key is seen and -inf where not, of the dtype: [queries, keys] or [batch, 1, queries or 1, keys].
Result<Expr> VisibilityBias(const NodeImporter& node, const KeyVisibility& visibility, DataType dtype);

// Query times key in the form that `mode` asks for: 0 as it is, 1 capped, 2 with the bias, 3 after softmax.
// [batch, heads, queries, keys]; the operands are [batch, heads, sequence, depth].
struct ScoreOptions {
  double scale;
  double softcap;  // 0: none
  int64_t mode;
  Expr bias;  // null: none
};
Result<Expr> AttentionScores(const NodeImporter& node, Expr query, Expr key, const ScoreOptions& options);

}  // namespace ingot::importer
