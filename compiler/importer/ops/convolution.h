// How a convolution node reads its window, for the float and the integer operators.
#pragma once

#include <string>
#include <vector>

#include "compiler/importer/ops/util.h"

namespace ingot::importer {

struct ConvCall {
  std::string row;  // "nn.conv2d" and the like
  ir::Attrs attrs;
  std::vector<PrimExpr> data, weight;  // dims
};
// Of a node with data and weight at these inputs.
Result<ConvCall> ReadConv(const NodeImporter& node, size_t data, size_t weight);

}  // namespace ingot::importer
