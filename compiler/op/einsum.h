// Einstein's summation: "bij,bjk->bik" and the like, after NumPy. The subscripts are parsed here for both the
// operator and the importer, which turns those that describe a matrix product into matmul.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/status.h"

namespace ingot::op {

// The axes of operands and result as labels: letters are their own codes, axes of an ellipsis are -1 for the last of
// them, -2 for the one before, and so on.
struct EinsumLabels {
  std::vector<std::vector<int>> inputs;
  std::vector<int> output;
};

// ranks are those of the operands; an error when they do not fit the subscripts. Without "->" the result has the
// ellipsis and then, in alphabetical order, the labels that occur once.
Result<EinsumLabels> ParseEinsum(std::string_view subscripts, const std::vector<int>& ranks);

}  // namespace ingot::op
