// Tensors as text, the way NumPy prints them: brackets, aligned columns, eight digits, shortened with "..." when long.
#pragma once

#include <string>

#include "runtime/status.h"
#include "runtime/tensor.h"

namespace ingot::formats {

struct TensorPrintOptions {
  int precision = 8;         // digits after the point
  int64_t threshold = 1000;  // more elements than this are shortened
  int edge_items = 3;        // kept at each end of a shortened axis
  int line_width = 75;
};

// A host tensor of any strides; without a newline at the end.
Result<std::string> TensorToText(const Tensor& tensor, const TensorPrintOptions& options = {});

}  // namespace ingot::formats
