// Results before and after a step, compared: bit for bit, or within the rounding of their dtype.
#pragma once

#include <span>
#include <string>

#include "compiler/validate/value.h"

namespace ingot::validate {

enum class Exactness : uint8_t {
  kBitwise,   // equal bits; one NaN is as good as another
  kRounding,  // finite numbers within a multiple of the dtype's epsilon of the largest one; what is not finite stays so
  kFinite,    // as kRounding, and finite numbers may become such as are not (a stated region of a bounded rewrite)
};

// Empty when they agree, else where and how they differ: "result 1, element 5 of float32[2, 3]: 1.5, was 2".
std::string Difference(std::span<const HostTensor> before, std::span<const HostTensor> after, Exactness exactness);

}  // namespace ingot::validate
