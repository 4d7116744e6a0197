// Conversions between elements and numbers, walks over row-major indices, and packing of elements to bytes.
#include "compiler/op/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/check.h"
#include "runtime/small_float.h"

namespace ingot::op {

std::vector<DataType> MovedDataTypes() {
  return {DataType::Float(32), DataType::Float(64), DataType::Float(16), DataType::Bfloat16(), DataType::Int(8),
          DataType::Int(16),   DataType::Int(32),   DataType::Int(64),   DataType::UInt(8),    DataType::UInt(16),
          DataType::UInt(32),  DataType::UInt(64),  DataType::Bool()};
}

std::vector<DataType> FloatDataTypes() {
  return {DataType::Float(32), DataType::Float(16), DataType::Bfloat16(), DataType::Float(64)};
}

std::vector<ReferenceTensor> OneReference(ReferenceTensor tensor) {
  std::vector<ReferenceTensor> results;
  results.push_back(std::move(tensor));
  return results;
}

int64_t CountOf(std::span<const int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

ReferenceTensor NewReference(DataType dtype, std::vector<int64_t> dims) {
  ReferenceTensor tensor{dtype, std::move(dims), {}, {}};
  const auto count = static_cast<size_t>(CountOf(tensor.dims));
  if (dtype.is_floating()) {
    tensor.floats.resize(count);
  } else {
    tensor.ints.resize(count);
  }
  return tensor;
}

double GetNumber(const ReferenceTensor& tensor, int64_t i) {
  const auto at = static_cast<size_t>(i);
  if (tensor.dtype.is_floating()) return tensor.floats.at(at);
  const int64_t number = tensor.ints.at(at);
  return tensor.dtype == DataType::UInt(64) ? static_cast<double>(static_cast<uint64_t>(number))
                                            : static_cast<double>(number);
}

void SetNumber(ReferenceTensor& tensor, int64_t i, double value) {
  const auto at = static_cast<size_t>(i);
  const DataType dtype = tensor.dtype;
  if (dtype.is_floating()) {
    tensor.floats.at(at) = dtype.bits < 32 ? DecodeFloat(dtype, EncodeFloat(dtype, value)) : value;
    return;
  }
  if (dtype.is_bool()) {
    tensor.ints.at(at) = value != 0 ? 1 : 0;
    return;
  }
  if (dtype == DataType::UInt(64) && value >= 0x1p63) {
    tensor.ints.at(at) = value < 0x1p64 ? static_cast<int64_t>(static_cast<uint64_t>(value)) : -1;
    return;
  }
  const double high = std::ldexp(1.0, dtype.is_int() ? dtype.bits - 1 : dtype.bits);
  const double low = dtype.is_int() ? -high : 0.0;
  if (std::isnan(value)) {
    tensor.ints.at(at) = 0;
  } else if (value >= high) {
    tensor.ints.at(at) = dtype.bits >= 63 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(high) - 1;
  } else {
    tensor.ints.at(at) = static_cast<int64_t>(std::max(value, low));
  }
}

bool IsLessElement(const ReferenceTensor& tensor, int64_t i, int64_t j) {
  const auto first = static_cast<size_t>(i), second = static_cast<size_t>(j);
  if (!tensor.dtype.is_floating()) {
    const int64_t a = tensor.ints.at(first), b = tensor.ints.at(second);
    return tensor.dtype == DataType::UInt(64) ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
  }
  const double a = tensor.floats.at(first), b = tensor.floats.at(second);
  return a < b || (std::isnan(b) && !std::isnan(a));
}

void CopyElement(const ReferenceTensor& from, int64_t i, ReferenceTensor& to, int64_t j) {
  if (from.dtype.is_floating()) {
    to.floats.at(static_cast<size_t>(j)) = from.floats.at(static_cast<size_t>(i));
  } else {
    to.ints.at(static_cast<size_t>(j)) = from.ints.at(static_cast<size_t>(i));
  }
}

void ForEachIndex(std::span<const int64_t> dims, const std::function<void(const Index& index, int64_t flat)>& fn) {
  const int64_t count = CountOf(dims);
  Index index(dims.size(), 0);
  for (int64_t flat = 0; flat < count; ++flat) {
    fn(index, flat);
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (++index[axis] < dims[axis]) break;
      index[axis] = 0;
    }
  }
}

int64_t Flatten(std::span<const int64_t> dims, std::span<const int64_t> index) {
  int64_t flat = 0;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    INGOT_CHECK(index[axis] >= 0 && index[axis] < dims[axis]);
    flat = flat * dims[axis] + index[axis];
  }
  return flat;
}

int64_t FlattenBroadcast(std::span<const int64_t> dims, std::span<const int64_t> index) {
  const size_t extra = index.size() - dims.size();
  int64_t flat = 0;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    flat = flat * dims[axis] + (dims[axis] == 1 ? 0 : index[extra + axis]);
  }
  return flat;
}

std::vector<int64_t> BroadcastReferenceDims(std::span<const int64_t> a, std::span<const int64_t> b) {
  if (a.size() < b.size()) return BroadcastReferenceDims(b, a);
  std::vector<int64_t> dims(a.begin(), a.end());
  const size_t extra = a.size() - b.size();
  for (size_t axis = 0; axis < b.size(); ++axis) {
    if (dims[extra + axis] == 1) dims[extra + axis] = b[axis];
  }
  return dims;
}

namespace {

// Of elements of less than a byte, the first one in the lowest bits.
std::vector<std::byte> PackBits(const ReferenceTensor& tensor) {
  const DataType dtype = tensor.dtype;
  const int64_t count = CountOf(tensor.dims);
  std::vector<std::byte> bytes(static_cast<size_t>((count * dtype.bits + 7) / 8));
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    const uint64_t code =
        dtype.is_floating() ? EncodeFloat(dtype, tensor.floats[at]) : static_cast<uint64_t>(tensor.ints[at]);
    const uint64_t bits = code & ((uint64_t{1} << dtype.bits) - 1);
    bytes[static_cast<size_t>(i * dtype.bits / 8)] |= static_cast<std::byte>(bits << (i * dtype.bits % 8));
  }
  return bytes;
}

}  // namespace

std::vector<std::byte> PackReference(const ReferenceTensor& tensor) {
  const int64_t count = CountOf(tensor.dims);
  const auto width = static_cast<size_t>(tensor.dtype.bits / 8);
  if (width == 0) return PackBits(tensor);
  std::vector<std::byte> bytes(static_cast<size_t>(count) * width);
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    const uint64_t bits = tensor.dtype.is_floating() ? EncodeFloat(tensor.dtype, tensor.floats[at])
                                                     : static_cast<uint64_t>(tensor.ints[at]);
    std::memcpy(bytes.data() + at * width, &bits, width);  // little-endian
  }
  return bytes;
}

ReferenceTensor UnpackReference(DataType dtype, std::vector<int64_t> dims, std::span<const std::byte> bytes) {
  ReferenceTensor tensor = NewReference(dtype, std::move(dims));
  const auto width = static_cast<size_t>(dtype.bits / 8);
  for (int64_t i = 0; i < CountOf(tensor.dims); ++i) {
    const auto at = static_cast<size_t>(i);
    uint64_t bits = 0;
    if (width == 0) {
      const auto byte = static_cast<uint64_t>(bytes[static_cast<size_t>(i * dtype.bits / 8)]);
      bits = byte >> (i * dtype.bits % 8) & ((uint64_t{1} << dtype.bits) - 1);
    } else {
      std::memcpy(&bits, bytes.data() + at * width, width);
    }
    if (dtype.is_floating()) {
      tensor.floats[at] = DecodeFloat(dtype, bits);
    } else if (dtype.is_int()) {
      const int shift = 64 - dtype.bits;
      tensor.ints[at] = static_cast<int64_t>(bits << shift) >> shift;
    } else {
      tensor.ints[at] = static_cast<int64_t>(bits);
    }
  }
  return tensor;
}

}  // namespace ingot::op
