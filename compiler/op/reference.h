// Helpers with which operators' reference evaluations are written: whole tensors of doubles or int64, walked element by
// element in row-major order. Slow and obvious on purpose; shares nothing with kernels, tensor expressions or host
// routines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "compiler/op/registry.h"

namespace ingot::op {

using Index = std::vector<int64_t>;

// The dtypes of operators that only move elements, for CaseTraits: every width of integers and floats, and bool.
std::vector<DataType> MovedDataTypes();
// Every width of floats that kernels compute in.
std::vector<DataType> FloatDataTypes();

// The list of a single result.
std::vector<ReferenceTensor> OneReference(ReferenceTensor tensor);
// A tensor of zeros.
ReferenceTensor NewReference(DataType dtype, std::vector<int64_t> dims);
int64_t CountOf(std::span<const int64_t> dims);
// An element of any dtype as a double (int64 beyond 2^53 is rounded), and the way back: integers truncate towards zero
// and saturate, NaN gives 0, bool is != 0, small floats round to their precision.
double GetNumber(const ReferenceTensor& tensor, int64_t i);
void SetNumber(ReferenceTensor& tensor, int64_t i, double value);
// Whether element i is less than element j: integers of any size are compared as they are, NaN is the greatest float.
bool IsLessElement(const ReferenceTensor& tensor, int64_t i, int64_t j);
// Copies one element between tensors of equal dtype.
void CopyElement(const ReferenceTensor& from, int64_t i, ReferenceTensor& to, int64_t j);
// Calls fn(index, flat position) for every element.
void ForEachIndex(std::span<const int64_t> dims, const std::function<void(const Index& index, int64_t flat)>& fn);
int64_t Flatten(std::span<const int64_t> dims, std::span<const int64_t> index);
// The element of a tensor of these dims that NumPy's broadcasting reads for an index of a larger result.
int64_t FlattenBroadcast(std::span<const int64_t> dims, std::span<const int64_t> index);
// NumPy's broadcast of both; they must broadcast.
std::vector<int64_t> BroadcastReferenceDims(std::span<const int64_t> a, std::span<const int64_t> b);

// The bytes of the elements as they lie in memory (compact, little-endian; several elements of less than a byte share
// one), and back.
std::vector<std::byte> PackReference(const ReferenceTensor& tensor);
ReferenceTensor UnpackReference(DataType dtype, std::vector<int64_t> dims, std::span<const std::byte> bytes);

}  // namespace ingot::op
