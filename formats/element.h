// One element of a host tensor as a number: for printing and for making tensors from text, never for computing.
// Floating dtypes travel as double (exact), integers as 64 bits; sub-byte elements are unpacked (low bits first).
#pragma once

#include <cstdint>

#include "runtime/tensor.h"

namespace ingot::formats {

// Whether the functions below know the dtype: bool, integers and floating kinds of one lane.
bool IsNumeric(DataType dtype);

// The bits of the index-th element of a compact tensor, in the low end. The tensor has IsNumeric elements.
uint64_t ElementBits(const TensorView& tensor, int64_t index);
void SetElementBits(const TensorView& tensor, int64_t index, uint64_t bits);

// The value of a signed integer of `bits` bits.
int64_t SignExtend(uint64_t value, int bits);

}  // namespace ingot::formats
