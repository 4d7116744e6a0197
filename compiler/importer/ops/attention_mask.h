// What attention adds to its scores besides a given mask, made of calls: which keys a query may see by its position
// among them and by the number of valid keys in its batch; and the scores themselves, which ONNX's Attention has as an
// output.
#pragma once

#include <optional>
#include <string>

#include "compiler/importer/ops/util.h"

namespace ingot::importer {

// Query i is at position i + offset among the keys. The offset is the length of the past; with num_counting it is, per
// batch, the number of valid keys less the number of queries.
struct KeyVisibility {
  PrimExpr num_queries, num_keys;
  PrimExpr past = ir::Int64(0);
  Expr num_counting;                   // int64[batch]: number of valid keys; null: all are valid
  bool is_causal = false;              // no key behind the query's position is seen
  std::optional<int64_t> left, right;  // keys up to this distance are seen
  bool is_anything() const { return num_counting != nullptr || is_causal || left || right; }
};
// Returns 0 where a key is seen and -inf elsewhere, of the dtype: [queries, keys] or [batch, 1, queries or 1, keys].
Result<Expr> VisibilityBias(const NodeImporter& node, const KeyVisibility& visibility, DataType dtype);

// Returns query times key, [batch, heads, queries, keys], in the form that `mode` asks for: 0 plain, 1 capped, 2 with
// the bias, 3 after softmax. The operands are [batch, heads, sequence, depth].
struct ScoreOptions {
  double scale;
  double softcap;  // 0: no cap
  int64_t mode;
  Expr bias;  // null: no bias
};
Result<Expr> AttentionScores(const NodeImporter& node, Expr query, Expr key, const ScoreOptions& options);

}  // namespace ingot::importer
