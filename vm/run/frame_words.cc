// Sizes of tensors from words of a frame, and what memory they share. This file is compiled for speed.
#include "vm/run/frame_words.h"

namespace ingot::vm {

Result<int64_t> EvaluateDims(std::span<const DimCode> dims, std::span<const int64_t> words, DataType dtype,
                             int64_t* out) {
  for (size_t i = 0; i < dims.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(out[i], dims[i].Evaluate(words));
  }
  INGOT_ASSIGN_OR_RETURN(const int64_t count, CountElements({out, dims.size()}));
  return dtype.SizeBytes(count);
}

bool Overlap(const TensorView& a, const TensorView& b) {
  if (a.num_elements == 0 || b.num_elements == 0) return false;
  const auto x = reinterpret_cast<uintptr_t>(a.data), y = reinterpret_cast<uintptr_t>(b.data);
  const TensorView& lower = x < y ? a : b;
  const int64_t span = lower.is_compact ? lower.size_bytes : lower.SpanBytes();
  return (x < y ? y - x : x - y) < static_cast<uintptr_t>(span);
}

}  // namespace ingot::vm
