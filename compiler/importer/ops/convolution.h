// Reading the window of a convolution node, for the float and the integer operators.
#pragma once

#include <string>
#include <vector>

#include "compiler/importer/ops/util.h"

namespace ingot::importer {

// An axis of symbolic length whose padding by auto_pad SAME depends on the length, since the stride is larger than 1.
// The operator itself gets padding 0 there, and its operand is padded before it.
struct SameAxis {
  size_t axis;
  int64_t most;          // the greatest padding on either side
  PrimExpr before;       // padding before the first element
  PrimExpr padded, out;  // lengths of the padded axis and of the result
};

struct ConvCall {
  std::string row;  // "nn.conv2d" and the like
  ir::Attrs attrs;
  std::vector<PrimExpr> data, weight;  // dims
  std::vector<SameAxis> same;
};
// PadSame pads the operand along these axes; MatchSame gives the result the lengths that follow. Both return their
// operand if there are no such axes.
Result<Expr> PadSame(const NodeImporter& node, Expr x, const std::vector<SameAxis>& same, double value = 0);
Result<Expr> MatchSame(const NodeImporter& node, Expr result, const std::vector<SameAxis>& same);
// Reads a node whose data and weight are these inputs.
Result<ConvCall> ReadConv(const NodeImporter& node, size_t data, size_t weight);

}  // namespace ingot::importer
