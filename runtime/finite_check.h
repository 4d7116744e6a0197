// Looking for NaN and infinity in tensors of floating elements, for --check-finite. Reads host memory; changes nothing.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/tensor.h"

namespace ingot {

enum class Finiteness : uint8_t { kFinite = 0, kHasInfinity = 1, kHasNaN = 2 };

struct FiniteReport {
  Finiteness worst = Finiteness::kFinite;
  int64_t element = -1;  // the first of that kind, in row-major order
};

// Checks a compact tensor in host memory; a tensor whose elements are not floating is finite.
FiniteReport CheckFinite(const TensorView& view);

// "element [0, 3] is NaN".
std::string DescribeElement(const TensorView& view, const FiniteReport& report);

}  // namespace ingot
