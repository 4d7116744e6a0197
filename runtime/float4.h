// float4_e2m1fn, the four-bit float of the OCP microscaling formats: sign, two bits of exponent, one of mantissa, numbers
// alone (0, 0.5, 1, 1.5, 2, 3, 4, 6). Two elements share a byte, the first one in the low bits. DLPack's code 17 stands
// outside of TypeCode, since no kernel computes with it: between the borders of a graph such elements have a byte each.
#pragma once

#include "runtime/data_type.h"

namespace ingot {

inline constexpr TypeCode kFloat4Code = static_cast<TypeCode>(17);
inline constexpr DataType kFloat4E2M1FN(kFloat4Code, 4);

}  // namespace ingot
