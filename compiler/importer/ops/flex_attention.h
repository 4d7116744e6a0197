// FlexAttention of ai.onnx.preview, in the steps between which the graphs of its node change scores and shares.
#pragma once

#include "compiler/importer/ops/util.h"

namespace ingot::importer {

inline constexpr std::string_view kPreview = "ai.onnx.preview";

// Operands [batch, heads, sequence, depth]; heads of keys and values are shared by as many query heads that follow each
// other.
struct FlexAttention {
  Expr query, key, value;
  double scale;
  DataType precision;  // of scores and shares
};
Result<FlexAttention> ReadFlexAttention(const NodeImporter& node);
// The result where no graph changes anything.
Result<Expr> PlainFlexAttention(const NodeImporter& node, const FlexAttention& attention);
// [batch, query heads, queries, keys]
Result<Expr> FlexScores(const NodeImporter& node, const FlexAttention& attention);
// What a graph made of scores or shares: of the same dtype and dims, which are compared when the program runs where
// that is not proved.
Result<Expr> CheckedModification(const NodeImporter& node, const char* graph, const Expr& before, Expr after);
Result<Expr> FlexShares(const NodeImporter& node, const Expr& scores);
Result<Expr> FlexResult(const NodeImporter& node, const FlexAttention& attention, Expr shares);

}  // namespace ingot::importer
