// How a convolution node reads its window, for the float and the integer operators.
#pragma once

#include <string>
#include <vector>

#include "compiler/importer/ops/util.h"

namespace ingot::importer {

// An axis of symbolic length whose padding by auto_pad SAME depends on the length, since the window moves by more than
// 1: the operator's own padding is 0 there, and its operand is padded before.
struct SameAxis {
  size_t axis;
  int64_t most;          // the greatest padding on either side
  PrimExpr before;       // the padding before the first element
  PrimExpr padded, out;  // lengths with the padding, and of the result
};

struct ConvCall {
  std::string row;  // "nn.conv2d" and the like
  ir::Attrs attrs;
  std::vector<PrimExpr> data, weight;  // dims
  std::vector<SameAxis> same;
};
// The operand with the padding of these axes, and the result with the lengths that follow; both as they are where there
// are none.
Result<Expr> PadSame(const NodeImporter& node, Expr x, const std::vector<SameAxis>& same, double value = 0);
Result<Expr> MatchSame(const NodeImporter& node, Expr result, const std::vector<SameAxis>& same);
// Of a node with data and weight at these inputs.
Result<ConvCall> ReadConv(const NodeImporter& node, size_t data, size_t weight);

}  // namespace ingot::importer
