// What the host routines share: checks of their operands, and elements as numbers. Elements of any dtype are read and
// written in blocks, as double (all floats, exactly) or as int64 (all integers; the bit pattern of a uint64), so that a
// routine is written twice instead of once per dtype. Private to host_ops.cc and host_arithmetic.cc.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/host_ops.h"
#include "runtime/status.h"
#include "runtime/tensor.h"

namespace ingot::host {

using Strides = std::array<int64_t, kMaxRank>;

Status Bad(const char* routine, Text message);
// The status that a routine returns when its Poll stopped it.
Status Stopped();
std::string DimsToString(std::span<const int64_t> dims);
// Refuses a tensor that is strided, not in host memory, or whose elements are handles, complex or vectors.
Status CheckHost(const char* routine, const TensorView& tensor);
// The same for a result, which may not be read-only either. The unused bits of a packed tensor's last byte become zero,
// so that equal elements are equal bytes.
Status CheckResult(const char* routine, const TensorView& out);
Status CheckSameType(const char* routine, const TensorView& expected, const TensorView& got);
Status CheckDims(const char* routine, std::span<const int64_t> expected, const TensorView& out);
// The strides with which `in` is read as a tensor of out's dims, or a status when it does not broadcast to them.
Result<Strides> BroadcastStrides(const char* routine, const TensorView& in, const TensorView& out);

// A packed element of 1, 2 or 4 bits.
uint64_t LoadBits(const void* data, int bits, int64_t i);
void StoreBits(void* data, int bits, int64_t i, uint64_t value);

// to[i] := element offset + i * stride, for count elements. The double form is for floats, the int64 form for integers
// and bools.
void Load(const TensorView& tensor, int64_t offset, int64_t stride, int64_t count, double* to);
void Load(const TensorView& tensor, int64_t offset, int64_t stride, int64_t count, int64_t* to);
// Element offset + i := from[i]. Floats round once, to nearest even; integers keep the low bits; a bool is != 0.
void Store(const TensorView& tensor, int64_t offset, int64_t count, const double* from);
void Store(const TensorView& tensor, int64_t offset, int64_t count, const int64_t* from);

// Converts a number to an integer dtype or bool: rounds towards zero and saturates; NaN gives 0.
int64_t ToInteger(DataType dtype, double value);
// The inclusive range of an integer dtype; uint64's upper end does not fit and is INT64_MAX.
void IntegerRange(DataType dtype, int64_t& low, int64_t& high);
// Rounds towards zero and clamps to [low, high]; NaN gives 0.
int64_t SaturatingTruncate(double value, int64_t low, int64_t high);
// Every element := value, until it is stopped.
void Fill(const TensorView& out, double value, Poll poll);

}  // namespace ingot::host
