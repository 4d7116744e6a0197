// Einstein's summation: "bij,bjk->bik" and the like, after NumPy. The text is read here once for the operator's row and
// for importers, which turn what is a matrix product into one.
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

// ranks: of the operands. Without "->" the result has the ellipsis and then, in alphabetical order, the labels that
// occur once.
Result<EinsumLabels> ParseEinsum(std::string_view subscripts, const std::vector<int>& ranks);

}  // namespace ingot::op
