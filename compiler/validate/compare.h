// Compares results before and after a step: bit for bit, or within the rounding of their dtype.
#pragma once

#include <span>
#include <string>

#include "compiler/validate/value.h"

namespace ingot::validate {

enum class Exactness : uint8_t {
  kBitwise,   // equal bits; all NaNs are equal
  kRounding,  // finite numbers within a multiple of the dtype's epsilon of the largest; infinities and NaN stay
  kSums,      // as kRounding, of sums in any order: near the end of the dtype's range one may overflow
  kFinite,    // as kRounding, but finite numbers may become infinite or NaN (a stated region of a bounded rewrite)
};

// Returns "" when the results agree, otherwise where and how they differ: "result 1, element 5 of float32[2, 3]: 1.5,
// was 2".
std::string Difference(std::span<const HostTensor> before, std::span<const HostTensor> after, Exactness exactness);

}  // namespace ingot::validate
