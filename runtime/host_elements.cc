// Checks of the host routines' operands, and the loads and stores that convert between elements of any dtype and double
// or int64.
#include "runtime/host_elements.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/small_float.h"

namespace ingot::host {

Status Stopped() { return Status(StatusCode::kCancelled, "stopped before its end"); }
Status Bad(const char* routine, Text message) { return Status(StatusCode::kBadInput, {routine, ": ", message}); }

std::string DimsToString(std::span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += StrCat({i == 0 ? "" : ", ", dims[i]});
  return text + "]";
}

Status CheckHost(const char* routine, const TensorView& tensor) {
  if (!tensor.is_compact) return Bad(routine, {"expected a compact tensor, got a strided ", tensor.TypeToString()});
  if (!tensor.device.is_host_accessible()) return Bad(routine, "expected a tensor in host memory");
  if (!tensor.dtype.is_scalar() || tensor.dtype.is_handle() || tensor.dtype.code == TypeCode::kComplex) {
    return Bad(routine, {"unsupported dtype ", tensor.dtype.ToString()});
  }
  return Status();
}

Status CheckResult(const char* routine, const TensorView& out) {
  INGOT_RETURN_IF_ERROR(CheckHost(routine, out));
  if (out.is_read_only) return Bad(routine, {"the result ", out.TypeToString(), " is read-only"});
  if (out.dtype.bits < 8 && out.size_bytes > 0) static_cast<uint8_t*>(out.data)[out.size_bytes - 1] = 0;
  return Status();
}

Status CheckSameType(const char* routine, const TensorView& expected, const TensorView& got) {
  if (expected.dtype == got.dtype) return Status();
  return Bad(routine, {"expected dtype ", expected.dtype.ToString(), ", got ", got.TypeToString()});
}

Status CheckDims(const char* routine, std::span<const int64_t> expected, const TensorView& out) {
  if (std::ranges::equal(expected, out.shape())) return Status();
  return Bad(routine, {"expected a result of dims ", DimsToString(expected), ", got ", out.TypeToString()});
}

Result<Strides> BroadcastStrides(const char* routine, const TensorView& in, const TensorView& out) {
  Strides strides{};
  const int missing = out.rank - in.rank;
  bool fits = missing >= 0;
  for (int axis = 0; fits && axis < in.rank; ++axis) {
    const int64_t extent = in.dims[axis];
    fits = extent == 1 || extent == out.dims[missing + axis];
    strides[missing + axis] = extent == 1 ? 0 : in.strides[axis];
  }
  if (!fits) return Bad(routine, {in.TypeToString(), " does not broadcast to ", DimsToString(out.shape())});
  return strides;
}

uint64_t LoadBits(const void* data, int bits, int64_t i) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  const int per_byte = 8 / bits;
  return (bytes[i / per_byte] >> (i % per_byte * bits)) & ((1u << bits) - 1);
}
void StoreBits(void* data, int bits, int64_t i, uint64_t value) {
  auto* bytes = static_cast<uint8_t*>(data);
  const int per_byte = 8 / bits;
  const int shift = static_cast<int>(i % per_byte) * bits;
  const unsigned mask = ((1u << bits) - 1) << shift;
  bytes[i / per_byte] = static_cast<uint8_t>((bytes[i / per_byte] & ~mask) | ((value << shift) & mask));
}

namespace {

constexpr int64_t kFillBlock = 64;

bool IsNative(DataType dtype, int bits) { return dtype.code == TypeCode::kFloat && dtype.bits == bits; }

template <typename T, typename Number>
void LoadNative(const void* data, int64_t offset, int64_t stride, int64_t count, Number* to) {
  const T* from = static_cast<const T*>(data) + offset;
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<Number>(from[i * stride]);
}
template <typename T, typename Number>
void StoreNative(void* data, int64_t offset, int64_t count, const Number* from) {
  T* to = static_cast<T*>(data) + offset;
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(from[i]);
}

uint64_t SmallFloatBits(const TensorView& tensor, int64_t i) {
  return tensor.dtype.bits == 8 ? static_cast<const uint8_t*>(tensor.data)[i]
                                : static_cast<const uint16_t*>(tensor.data)[i];
}

}  // namespace

void Load(const TensorView& tensor, int64_t offset, int64_t stride, int64_t count, double* to) {
  if (IsNative(tensor.dtype, 32)) return LoadNative<float>(tensor.data, offset, stride, count, to);
  if (IsNative(tensor.dtype, 64)) return LoadNative<double>(tensor.data, offset, stride, count, to);
  for (int64_t i = 0; i < count; ++i) to[i] = DecodeFloat(tensor.dtype, SmallFloatBits(tensor, offset + i * stride));
}

void Load(const TensorView& tensor, int64_t offset, int64_t stride, int64_t count, int64_t* to) {
  const DataType dtype = tensor.dtype;
  const bool is_signed = dtype.is_int();
  switch (dtype.bits) {
    case 8:
      if (is_signed) return LoadNative<int8_t>(tensor.data, offset, stride, count, to);
      LoadNative<uint8_t>(tensor.data, offset, stride, count, to);
      for (int64_t i = 0; dtype.is_bool() && i < count; ++i) to[i] = to[i] != 0 ? 1 : 0;
      return;
    case 16:
      if (is_signed) return LoadNative<int16_t>(tensor.data, offset, stride, count, to);
      return LoadNative<uint16_t>(tensor.data, offset, stride, count, to);
    case 32:
      if (is_signed) return LoadNative<int32_t>(tensor.data, offset, stride, count, to);
      return LoadNative<uint32_t>(tensor.data, offset, stride, count, to);
    case 64:
      return LoadNative<int64_t>(tensor.data, offset, stride, count, to);
    default:
      for (int64_t i = 0; i < count; ++i) {
        const auto bits = static_cast<int64_t>(LoadBits(tensor.data, dtype.bits, offset + i * stride));
        const bool is_negative = is_signed && ((bits >> (dtype.bits - 1)) & 1) != 0;
        to[i] = is_negative ? bits - (int64_t{1} << dtype.bits) : bits;
      }
  }
}

void Store(const TensorView& tensor, int64_t offset, int64_t count, const double* from) {
  if (IsNative(tensor.dtype, 32)) return StoreNative<float>(tensor.data, offset, count, from);
  if (IsNative(tensor.dtype, 64)) return StoreNative<double>(tensor.data, offset, count, from);
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = EncodeFloat(tensor.dtype, from[i]);
    if (tensor.dtype.bits == 8) {
      static_cast<uint8_t*>(tensor.data)[offset + i] = static_cast<uint8_t>(bits);
    } else {
      static_cast<uint16_t*>(tensor.data)[offset + i] = static_cast<uint16_t>(bits);
    }
  }
}

void Store(const TensorView& tensor, int64_t offset, int64_t count, const int64_t* from) {
  if (tensor.dtype.is_bool()) return StoreNative<bool>(tensor.data, offset, count, from);
  switch (tensor.dtype.bits) {
    case 8:
      return StoreNative<uint8_t>(tensor.data, offset, count, from);
    case 16:
      return StoreNative<uint16_t>(tensor.data, offset, count, from);
    case 32:
      return StoreNative<uint32_t>(tensor.data, offset, count, from);
    case 64:
      return StoreNative<uint64_t>(tensor.data, offset, count, from);
    default:
      for (int64_t i = 0; i < count; ++i) {
        StoreBits(tensor.data, tensor.dtype.bits, offset + i, static_cast<uint64_t>(from[i]));
      }
  }
}

int64_t SaturatingTruncate(double value, int64_t low, int64_t high) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(low)) return low;
  if (value >= static_cast<double>(high)) return high;
  return static_cast<int64_t>(value);
}

void IntegerRange(DataType dtype, int64_t& low, int64_t& high) {
  if (dtype.is_int()) {
    high = dtype.bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (dtype.bits - 1)) - 1;
    low = -high - 1;
  } else {
    high = dtype.bits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << dtype.bits) - 1;
    low = 0;
  }
}

int64_t ToInteger(DataType dtype, double value) {
  constexpr double kTwo63 = 9223372036854775808.0;
  constexpr double kTwo64 = 2 * kTwo63;
  if (dtype.is_bool()) return value != 0 ? 1 : 0;
  if (!dtype.is_int() && dtype.bits == 64 && value >= kTwo63) {
    return static_cast<int64_t>(value >= kTwo64 ? ~uint64_t{0} : static_cast<uint64_t>(value));
  }
  int64_t low = 0;
  int64_t high = 0;
  IntegerRange(dtype, low, high);
  return SaturatingTruncate(value, low, high);
}

void Fill(const TensorView& out, double value, Poll poll) {
  std::array<double, kFillBlock> floats;
  std::array<int64_t, kFillBlock> integers;
  floats.fill(value);
  integers.fill(out.dtype.is_floating() ? 0 : ToInteger(out.dtype, value));
  for (int64_t at = 0; at < out.num_elements && !poll.is_stopped(); at += kFillBlock) {
    const int64_t count = std::min(kFillBlock, out.num_elements - at);
    if (out.dtype.is_floating()) {
      Store(out, at, count, floats.data());
    } else {
      Store(out, at, count, integers.data());
    }
  }
}

}  // namespace ingot::host
