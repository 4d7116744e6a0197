// Tensors as text, the way NumPy's str() prints them: brackets, aligned columns, eight digits, lines of 75 characters,
// and, above 1000 elements, three at each end of every axis: fewer than NumPy has where the rank is 5 or more.
#pragma once

#include <string>

#include "runtime/tensor.h"

namespace ingot::formats {

struct TensorPrintOptions {
  int precision = 8;          // digits after the point, at most
  int64_t threshold = 1000;   // more elements than this are shortened
  int edge_items = 3;         // kept at each end of a shortened axis, or fewer:
  int64_t most_shown = 2000;  // of a shortened tensor's elements
  int line_width = 75;
};

// A host tensor of any layout; without a newline at the end. Element types that are no numbers (complex, handles,
// several lanes) are refused.
Result<std::string> TensorToText(const Tensor& tensor, const TensorPrintOptions& options = {});

// The shortest text that reads back to the same element: "0.1", "1e-05", "nan", "True", "-3".
std::string ElementToText(DataType dtype, uint64_t bits);

}  // namespace ingot::formats
