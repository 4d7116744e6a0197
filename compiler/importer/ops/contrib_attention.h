// What the importers of com.microsoft's attention share: operands that are taken apart, and the call of ONNX's own
// Attention.
#pragma once

#include <string>
#include <vector>

#include "compiler/importer/ops/contrib.h"

namespace ingot::importer {

inline constexpr DataType kExact = DataType::Float(32);  // in which layers compute that round once

// What is passed on to ONNX's Attention.
struct HeadsCall {
  Expr query, key, value;  // [batch, sequence, heads * depth], or keys and values [batch, heads, sequence, depth]
  int64_t query_heads = 0, key_heads = 0;
  size_t mask = 0, bias = 0;  // inputs; 0: there is none
  Expr past_key, past_value;
  bool is_causal = false;
  int64_t left = -1;  // keys up to this distance before a query are seen; -1: all
  Expr sink;          // [heads]: the score of one more key, whose value is 0; null: there is none
};

// Returns parts of these lengths of the last axis of x.
Result<std::vector<Expr>> SplitAt(const NodeImporter& node, const Expr& x, const std::vector<int64_t>& lengths);
// Returns what is added to the scores [batch, heads, queries, keys], the input call.bias: of as many queries and keys, and
// of one batch or one head or of all.
Result<Expr> ScoreBias(const NodeImporter& node, const HeadsCall& call, const PrimExpr& num_keys);
// Returns keys or values of a past (null: none) and of the call as [batch, heads, sequence, depth].
Result<Expr> JoinedPast(const NodeImporter& node, Expr x, int64_t heads, const Expr& past);
// Returns the output, and the keys and values of past and present.
Result<std::vector<Expr>> AttendTo(const NodeImporter& node, const HeadsCall& call, bool wants_present);
// Returns a number of heads, of which few enough are there that products do not wrap; bad input if the attribute gives
// none.
Result<int64_t> CheckedHeads(const NodeImporter& node, const char* name);
// Unsupported unless the attribute has the value that stands for nothing special.
Status RefuseUnless(const NodeImporter& node, const char* name, int64_t value);

// How a cache [batch, heads, sequence, depth] holds keys or values as numbers of so many bits, each times a scale.
struct CacheOfBytes {
  int64_t bits = 0;  // 0: it holds them as they are
  Expr scale;        // of all numbers, or of each head and element of its depth

  // What a cache holds, as floats of this dtype.
  Result<Expr> Read(const NodeImporter& node, Expr x, DataType dtype) const;
  // Keys or values as a cache holds them.
  Result<Expr> Write(const NodeImporter& node, Expr x) const;
};
// Reads the attribute `kind` and the scales, an input.
Result<CacheOfBytes> ReadCacheOfBytes(const NodeImporter& node, const char* kind, size_t scale, int64_t heads,
                                      const PrimExpr& depth);

}  // namespace ingot::importer
