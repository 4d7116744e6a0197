// Every routine: check the tensors, then walk the rows of `out` (its last axis) with an odometer over the other axes
// that carries one element offset per input. Elements are read and written through small accessor types: native ones,
// small floats (computed as float) and sub-byte integers (computed as int64).
#include "runtime/host_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "runtime/small_float.h"

namespace ingot::host {
namespace {

Status Bad(const char* routine, const std::string& message) {
  return Status(StatusCode::kBadInput, std::string(routine) + ": " + message);
}

std::string DimsToString(std::span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(dims[i]);
  return text + "]";
}

Status CheckHost(const char* routine, const TensorView& tensor) {
  if (!tensor.is_compact) return Bad(routine, "expected a compact tensor, got a strided " + tensor.TypeToString());
  if (!tensor.device.is_host_accessible()) return Bad(routine, "expected a tensor in host memory");
  if (!tensor.dtype.is_scalar() || tensor.dtype.is_handle() || tensor.dtype.code == TypeCode::kComplex) {
    return Bad(routine, "unsupported dtype " + tensor.dtype.ToString());
  }
  return Status();
}

// The same for a result. The unused bits of a packed tensor's last byte become zero, so that equal elements are equal
// bytes.
Status CheckResult(const char* routine, const TensorView& out) {
  INGOT_RETURN_IF_ERROR(CheckHost(routine, out));
  if (out.is_read_only) return Bad(routine, "the result " + out.TypeToString() + " is read-only");
  if (out.dtype.bits < 8 && out.size_bytes > 0) static_cast<uint8_t*>(out.data)[out.size_bytes - 1] = 0;
  return Status();
}

Status CheckSameType(const char* routine, const TensorView& expected, const TensorView& got) {
  if (expected.dtype == got.dtype) return Status();
  return Bad(routine, "expected dtype " + expected.dtype.ToString() + ", got " + got.TypeToString());
}

Status CheckDims(const char* routine, std::span<const int64_t> expected, const TensorView& out) {
  if (std::ranges::equal(expected, out.shape())) return Status();
  return Bad(routine, "expected a result of dims " + DimsToString(expected) + ", got " + out.TypeToString());
}

using Strides = std::array<int64_t, kMaxRank>;

// Calls row(out_offset, offsets of the N inputs) for every row of `out`, in order; offsets count elements.
template <size_t N, typename Row>
void ForEachRow(const TensorView& out, const std::array<Strides, N>& strides, std::array<int64_t, N> offsets, Row row) {
  if (out.num_elements == 0) return;
  const int outer = std::max(out.rank - 1, 0);
  const int64_t row_length = out.rank == 0 ? 1 : out.dims[out.rank - 1];
  std::array<int64_t, kMaxRank> index{};
  for (int64_t out_offset = 0;; out_offset += row_length) {
    row(out_offset, offsets);
    int axis = outer - 1;
    for (; axis >= 0; --axis) {
      for (size_t i = 0; i < N; ++i) offsets[i] += strides[i][axis];
      if (++index[axis] < out.dims[axis]) break;
      for (size_t i = 0; i < N; ++i) offsets[i] -= strides[i][axis] * out.dims[axis];
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

// The strides with which `in` is read as a tensor of out's dims, or a status when it does not broadcast to them.
Result<Strides> BroadcastStrides(const char* routine, const TensorView& in, const TensorView& out) {
  Strides strides{};
  const int missing = out.rank - in.rank;
  bool fits = missing >= 0;
  for (int axis = 0; fits && axis < in.rank; ++axis) {
    const int64_t extent = in.dims[axis];
    fits = extent == 1 || extent == out.dims[missing + axis];
    strides[missing + axis] = extent == 1 ? 0 : in.strides[axis];
  }
  if (!fits) return Bad(routine, in.TypeToString() + " does not broadcast to " + DimsToString(out.shape()));
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

// ---- Moving elements without looking at them: `to` from `to_offset` on := `from` at from_offset, +stride, ...
void MoveRow(int bits, const void* from, int64_t from_offset, int64_t stride, void* to, int64_t to_offset,
             int64_t count) {
  const auto move = [&]<typename T>(T) {
    const T* source = static_cast<const T*>(from) + from_offset;
    T* target = static_cast<T*>(to) + to_offset;
    if (stride == 1) {
      std::memcpy(target, source, static_cast<size_t>(count) * sizeof(T));
    } else {
      for (int64_t i = 0; i < count; ++i) target[i] = source[i * stride];
    }
  };
  switch (bits) {
    case 8:
      return move(uint8_t{});
    case 16:
      return move(uint16_t{});
    case 32:
      return move(uint32_t{});
    case 64:
      return move(uint64_t{});
    default:
      for (int64_t i = 0; i < count; ++i) {
        StoreBits(to, bits, to_offset + i, LoadBits(from, bits, from_offset + i * stride));
      }
  }
}

void MoveStrided(const TensorView& in, const Strides& strides, int64_t offset, const TensorView& out) {
  const int64_t count = out.rank == 0 ? 1 : out.dims[out.rank - 1];
  const int64_t stride = out.rank == 0 ? 1 : strides[out.rank - 1];
  ForEachRow<1>(out, {strides}, {offset}, [&](int64_t out_offset, const std::array<int64_t, 1>& from) {
    MoveRow(in.dtype.bits, in.data, from[0], stride, out.data, out_offset, count);
  });
}

// ---- Elements as numbers.
template <typename T>
struct Native {
  using Compute = T;
  T* data;
  Compute Get(int64_t i) const { return data[i]; }
  void Set(int64_t i, Compute value) const { data[i] = value; }
};
struct SmallFloat {
  using Compute = float;
  void* data;
  DataType dtype;
  float Get(int64_t i) const {
    const uint64_t bits =
        dtype.bits == 8 ? static_cast<const uint8_t*>(data)[i] : static_cast<const uint16_t*>(data)[i];
    return static_cast<float>(DecodeFloat(dtype, bits));
  }
  void Set(int64_t i, double value) const {
    const uint64_t bits = EncodeFloat(dtype, value);
    if (dtype.bits == 8) {
      static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(bits);
    } else {
      static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>(bits);
    }
  }
};
struct SubByteInt {
  using Compute = int64_t;
  void* data;
  DataType dtype;
  int64_t Get(int64_t i) const {
    const auto bits = static_cast<int64_t>(LoadBits(data, dtype.bits, i));
    const bool negative = dtype.is_int() && ((bits >> (dtype.bits - 1)) & 1) != 0;
    return negative ? bits - (int64_t{1} << dtype.bits) : bits;
  }
  void Set(int64_t i, int64_t value) const { StoreBits(data, dtype.bits, i, static_cast<uint64_t>(value)); }
};
struct Bool {
  using Compute = bool;
  uint8_t* data;
  bool Get(int64_t i) const { return data[i] != 0; }
  void Set(int64_t i, bool value) const { data[i] = value ? 1 : 0; }
};

// Calls use(accessor) with the accessor of the tensor's dtype (checked before).
template <typename Use>
auto WithElements(const TensorView& tensor, Use use) {
  const DataType dtype = tensor.dtype;
  void* data = tensor.data;
  if (dtype.is_bool()) return use(Bool{static_cast<uint8_t*>(data)});
  if (dtype.is_floating()) {
    if (dtype.code == TypeCode::kFloat && dtype.bits == 32) return use(Native<float>{static_cast<float*>(data)});
    if (dtype.code == TypeCode::kFloat && dtype.bits == 64) return use(Native<double>{static_cast<double*>(data)});
    return use(SmallFloat{data, dtype});
  }
  switch (dtype.bits) {
    case 8:
      if (dtype.is_int()) return use(Native<int8_t>{static_cast<int8_t*>(data)});
      return use(Native<uint8_t>{static_cast<uint8_t*>(data)});
    case 16:
      if (dtype.is_int()) return use(Native<int16_t>{static_cast<int16_t*>(data)});
      return use(Native<uint16_t>{static_cast<uint16_t*>(data)});
    case 32:
      if (dtype.is_int()) return use(Native<int32_t>{static_cast<int32_t*>(data)});
      return use(Native<uint32_t>{static_cast<uint32_t*>(data)});
    case 64:
      if (dtype.is_int()) return use(Native<int64_t>{static_cast<int64_t*>(data)});
      return use(Native<uint64_t>{static_cast<uint64_t*>(data)});
    default:
      return use(SubByteInt{data, dtype});
  }
}

int64_t SaturatingTruncate(double value, int64_t low, int64_t high) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(low)) return low;
  if (value >= static_cast<double>(high)) return high;
  return static_cast<int64_t>(value);
}

// The inclusive range of an integer dtype; uint64's upper end does not fit and is INT64_MAX.
void IntegerRange(DataType dtype, int64_t& low, int64_t& high) {
  if (dtype.is_int()) {
    high = dtype.bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (dtype.bits - 1)) - 1;
    low = -high - 1;
  } else {
    high = dtype.bits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << dtype.bits) - 1;
    low = 0;
  }
}

// One element of `from` as what `to` stores.
template <typename From, typename To>
void ConvertRow(const From& from, const To& to, DataType to_dtype, int64_t count) {
  using Source = typename From::Compute;
  using Target = typename To::Compute;
  if constexpr (std::is_same_v<Target, bool>) {
    for (int64_t i = 0; i < count; ++i) to.Set(i, from.Get(i) != Source(0));
  } else if constexpr (std::is_same_v<To, SmallFloat>) {
    for (int64_t i = 0; i < count; ++i) to.Set(i, static_cast<double>(from.Get(i)));
  } else if constexpr (std::is_floating_point_v<Source> && std::is_same_v<Target, uint64_t>) {
    constexpr double kTwo64 = 18446744073709551616.0;
    for (int64_t i = 0; i < count; ++i) {
      const double value = from.Get(i);
      const bool above = value >= kTwo64;
      to.Set(i, above ? ~uint64_t{0} : value > 0 ? static_cast<uint64_t>(value) : 0);
    }
  } else if constexpr (std::is_floating_point_v<Source> && std::is_integral_v<Target>) {
    int64_t low = 0;
    int64_t high = 0;
    IntegerRange(to_dtype, low, high);
    for (int64_t i = 0; i < count; ++i) to.Set(i, static_cast<Target>(SaturatingTruncate(from.Get(i), low, high)));
  } else {
    for (int64_t i = 0; i < count; ++i) to.Set(i, static_cast<Target>(from.Get(i)));
  }
}

// Integers compute in 64 bits without a sign, so that wrapping around is defined; storing keeps the low bits.
template <typename T>
T Compute(BinaryOp op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (op) {
      case BinaryOp::kAdd:
        return a + b;
      case BinaryOp::kSub:
        return a - b;
      case BinaryOp::kMul:
        return a * b;
      case BinaryOp::kDiv:
        return a / b;
      case BinaryOp::kMin:
        return std::isnan(a) || a < b ? a : b;
      case BinaryOp::kMax:
        return std::isnan(a) || a > b ? a : b;
    }
  } else {
    const auto x = static_cast<uint64_t>(a);
    const auto y = static_cast<uint64_t>(b);
    switch (op) {
      case BinaryOp::kAdd:
        return static_cast<T>(x + y);
      case BinaryOp::kSub:
        return static_cast<T>(x - y);
      case BinaryOp::kMul:
        return static_cast<T>(x * y);
      case BinaryOp::kDiv:
        if (b == 0) return 0;
        if constexpr (std::is_signed_v<T>) {
          if (b == T(-1)) return static_cast<T>(0 - x);
        }
        return static_cast<T>(a / b);
      case BinaryOp::kMin:
        return a < b ? a : b;
      case BinaryOp::kMax:
        return a > b ? a : b;
    }
  }
  INGOT_UNREACHABLE();
}

template <BinaryOp op, typename Elements>
void BinaryRows(const Elements& x, const Elements& y, const Elements& z, const TensorView& out,
                const std::array<Strides, 2>& strides) {
  const int64_t count = out.rank == 0 ? 1 : out.dims[out.rank - 1];
  const int64_t x_step = out.rank == 0 ? 0 : strides[0][out.rank - 1];
  const int64_t y_step = out.rank == 0 ? 0 : strides[1][out.rank - 1];
  ForEachRow<2>(out, strides, {0, 0}, [&](int64_t to, const std::array<int64_t, 2>& from) {
    for (int64_t i = 0; i < count; ++i) {
      z.Set(to + i, Compute(op, x.Get(from[0] + i * x_step), y.Get(from[1] + i * y_step)));
    }
  });
}

const char* NameOf(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return "add";
    case BinaryOp::kSub:
      return "sub";
    case BinaryOp::kMul:
      return "mul";
    case BinaryOp::kDiv:
      return "div";
    case BinaryOp::kMin:
      return "minimum";
    case BinaryOp::kMax:
      return "maximum";
  }
  INGOT_UNREACHABLE();
}

// One matrix of a product: rows of `c` collect a[m, k] * b[k, :] for ascending k.
template <typename A, typename T>
void MatrixProduct(const A& a, int64_t a_offset, const A& b, int64_t b_offset, T* c, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    T* row = c + i * n;
    std::fill_n(row, n, T(0));
    for (int64_t l = 0; l < k; ++l) {
      const auto factor = static_cast<T>(a.Get(a_offset + i * k + l));
      for (int64_t j = 0; j < n; ++j) row[j] += factor * static_cast<T>(b.Get(b_offset + l * n + j));
    }
  }
}

// The same one element at a time, for results that are stored narrower than they are added up.
template <typename Sum, typename A, typename C>
void MatrixProductByElement(const A& a, int64_t a_offset, const A& b, int64_t b_offset, const C& c, int64_t c_offset,
                            int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      Sum sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += static_cast<Sum>(a.Get(a_offset + i * k + l)) * static_cast<Sum>(b.Get(b_offset + l * n + j));
      }
      c.Set(c_offset + i * n + j, static_cast<typename C::Compute>(sum));
    }
  }
}

}  // namespace

Status Permute(const TensorView& in, std::span<const int64_t> axes, const TensorView& out) {
  INGOT_RETURN_IF_ERROR(CheckHost("permute", in));
  INGOT_RETURN_IF_ERROR(CheckResult("permute", out));
  INGOT_RETURN_IF_ERROR(CheckSameType("permute", in, out));
  std::array<int64_t, kMaxRank> dims{};
  Strides strides{};
  unsigned seen = 0;
  bool valid = static_cast<int64_t>(axes.size()) == in.rank;
  for (size_t i = 0; valid && i < axes.size(); ++i) {
    valid = axes[i] >= 0 && axes[i] < in.rank && (seen >> axes[i] & 1u) == 0;
    if (!valid) break;
    seen |= 1u << axes[i];
    dims[i] = in.dims[axes[i]];
    strides[i] = in.strides[axes[i]];
  }
  if (!valid) {
    return Bad("permute", "axes " + DimsToString(axes) + " are no permutation of the axes of " + in.TypeToString());
  }
  INGOT_RETURN_IF_ERROR(CheckDims("permute", {dims.data(), axes.size()}, out));
  MoveStrided(in, strides, 0, out);
  return Status();
}

Status Pad(const TensorView& in, std::span<const int64_t> before, double value, const TensorView& out) {
  INGOT_RETURN_IF_ERROR(CheckHost("pad", in));
  INGOT_RETURN_IF_ERROR(CheckResult("pad", out));
  INGOT_RETURN_IF_ERROR(CheckSameType("pad", in, out));
  bool fits = static_cast<int64_t>(before.size()) == in.rank && in.rank == out.rank;
  int64_t offset = 0;
  for (int axis = 0; fits && axis < in.rank; ++axis) {
    fits = before[axis] >= 0 && in.dims[axis] <= out.dims[axis] && before[axis] <= out.dims[axis] - in.dims[axis];
    offset += fits ? before[axis] * out.strides[axis] : 0;
  }
  if (!fits) {
    return Bad("pad", in.TypeToString() + " does not fit into " + out.TypeToString() + " at " + DimsToString(before));
  }
  WithElements(out, [&](const auto& elements) {
    using Target = typename std::decay_t<decltype(elements)>::Compute;
    for (int64_t i = 0; i < out.num_elements; ++i) {
      if constexpr (std::is_same_v<Target, bool>) {
        elements.Set(i, value != 0);
      } else if constexpr (std::is_integral_v<Target>) {
        int64_t low = 0;
        int64_t high = 0;
        IntegerRange(out.dtype, low, high);
        elements.Set(i, static_cast<Target>(SaturatingTruncate(value, low, high)));
      } else {
        elements.Set(i, static_cast<Target>(value));
      }
    }
  });
  // Walk the rows of `in`, which is compact: its offset is the running one, out's the odometer's.
  const int64_t count = in.rank == 0 ? 1 : in.dims[in.rank - 1];
  ForEachRow<1>(in, {out.strides}, {offset}, [&](int64_t from, const std::array<int64_t, 1>& to) {
    MoveRow(in.dtype.bits, in.data, from, 1, out.data, to[0], count);
  });
  return Status();
}

Status Slice(const TensorView& in, std::span<const int64_t> starts, std::span<const int64_t> steps,
             const TensorView& out) {
  INGOT_RETURN_IF_ERROR(CheckHost("slice", in));
  INGOT_RETURN_IF_ERROR(CheckResult("slice", out));
  INGOT_RETURN_IF_ERROR(CheckSameType("slice", in, out));
  const auto rank = static_cast<size_t>(in.rank);
  if (starts.size() != rank || steps.size() != rank || out.rank != in.rank) {
    return Bad("slice", "starts " + DimsToString(starts) + " and steps " + DimsToString(steps) + " do not match " +
                            in.TypeToString() + " and " + out.TypeToString());
  }
  if (out.num_elements == 0) return Status();
  Strides strides{};
  int64_t offset = 0;
  for (size_t axis = 0; axis < rank; ++axis) {
    int64_t last = 0;
    const bool overflow = __builtin_mul_overflow(out.dims[axis] - 1, steps[axis], &last) ||
                          __builtin_add_overflow(last, starts[axis], &last);
    const int64_t extent = in.dims[axis];
    if (overflow || starts[axis] < 0 || starts[axis] >= extent || last < 0 || last >= extent) {
      return Bad("slice", "axis " + std::to_string(axis) + " of " + in.TypeToString() + " from " +
                              std::to_string(starts[axis]) + " by " + std::to_string(steps[axis]) +
                              " leaves the tensor before " + std::to_string(out.dims[axis]) + " elements");
    }
    strides[axis] = out.dims[axis] == 1 ? 0 : steps[axis] * in.strides[axis];
    offset += starts[axis] * in.strides[axis];
  }
  MoveStrided(in, strides, offset, out);
  return Status();
}

Status Concat(std::span<const TensorView> inputs, int64_t axis, const TensorView& out) {
  INGOT_RETURN_IF_ERROR(CheckResult("concat", out));
  if (axis < 0 || axis >= out.rank) {
    return Bad("concat", "axis " + std::to_string(axis) + " is outside " + out.TypeToString());
  }
  int64_t position = 0;
  for (const TensorView& in : inputs) {
    INGOT_RETURN_IF_ERROR(CheckHost("concat", in));
    INGOT_RETURN_IF_ERROR(CheckSameType("concat", out, in));
    bool fits = in.rank == out.rank;
    for (int i = 0; fits && i < in.rank; ++i) {
      fits = i == axis ? in.dims[i] <= out.dims[i] - position : in.dims[i] == out.dims[i];
    }
    if (!fits) {
      return Bad("concat", in.TypeToString() + " does not fit at " + std::to_string(position) + " of axis " +
                               std::to_string(axis) + " of " + out.TypeToString());
    }
    position += in.dims[axis];
  }
  if (position != out.dims[axis]) {
    return Bad("concat", "the inputs fill " + std::to_string(position) + " of axis " + std::to_string(axis) + " of " +
                             out.TypeToString());
  }
  position = 0;
  for (const TensorView& in : inputs) {
    const int64_t count = in.dims[in.rank - 1];
    ForEachRow<1>(in, {out.strides}, {position * out.strides[axis]},
                  [&](int64_t from, const std::array<int64_t, 1>& to) {
                    MoveRow(in.dtype.bits, in.data, from, 1, out.data, to[0], count);
                  });
    position += in.dims[axis];
  }
  return Status();
}

Status Reshape(const TensorView& in, const TensorView& out) {
  INGOT_RETURN_IF_ERROR(CheckHost("reshape", in));
  INGOT_RETURN_IF_ERROR(CheckResult("reshape", out));
  INGOT_RETURN_IF_ERROR(CheckSameType("reshape", in, out));
  if (in.num_elements != out.num_elements) {
    return Bad("reshape", in.TypeToString() + " and " + out.TypeToString() + " differ in their number of elements");
  }
  if (in.size_bytes > 0) std::memcpy(out.data, in.data, static_cast<size_t>(in.size_bytes));
  return Status();
}

Status BroadcastTo(const TensorView& in, const TensorView& out) {
  INGOT_RETURN_IF_ERROR(CheckHost("broadcast_to", in));
  INGOT_RETURN_IF_ERROR(CheckResult("broadcast_to", out));
  INGOT_RETURN_IF_ERROR(CheckSameType("broadcast_to", in, out));
  INGOT_ASSIGN_OR_RETURN(const Strides strides, BroadcastStrides("broadcast_to", in, out));
  MoveStrided(in, strides, 0, out);
  return Status();
}

Status Cast(const TensorView& in, const TensorView& out) {
  INGOT_RETURN_IF_ERROR(CheckHost("cast", in));
  INGOT_RETURN_IF_ERROR(CheckResult("cast", out));
  INGOT_RETURN_IF_ERROR(CheckDims("cast", in.shape(), out));
  WithElements(in, [&](const auto& from) {
    WithElements(out, [&](const auto& to) { ConvertRow(from, to, out.dtype, in.num_elements); });
  });
  return Status();
}

Status Binary(BinaryOp op, const TensorView& a, const TensorView& b, const TensorView& out) {
  const char* name = NameOf(op);
  INGOT_RETURN_IF_ERROR(CheckHost(name, a));
  INGOT_RETURN_IF_ERROR(CheckHost(name, b));
  INGOT_RETURN_IF_ERROR(CheckResult(name, out));
  INGOT_RETURN_IF_ERROR(CheckSameType(name, a, b));
  INGOT_RETURN_IF_ERROR(CheckSameType(name, a, out));
  if (a.dtype.is_bool()) return Bad(name, "expected numbers, got bool");
  INGOT_ASSIGN_OR_RETURN(const Strides a_strides, BroadcastStrides(name, a, out));
  INGOT_ASSIGN_OR_RETURN(const Strides b_strides, BroadcastStrides(name, b, out));
  for (int axis = 0; axis < out.rank; ++axis) {
    const int a_axis = axis - (out.rank - a.rank);
    const int b_axis = axis - (out.rank - b.rank);
    if ((a_axis < 0 || a.dims[a_axis] != out.dims[axis]) && (b_axis < 0 || b.dims[b_axis] != out.dims[axis])) {
      return Bad(name, a.TypeToString() + " and " + b.TypeToString() + " do not broadcast to " + out.TypeToString());
    }
  }
  WithElements(out, [&](const auto& z) {
    using Elements = std::decay_t<decltype(z)>;
    if constexpr (!std::is_same_v<Elements, Bool>) {
      Elements x = z;
      Elements y = z;
      x.data = static_cast<decltype(x.data)>(a.data);
      y.data = static_cast<decltype(y.data)>(b.data);
      switch (op) {
        case BinaryOp::kAdd:
          return BinaryRows<BinaryOp::kAdd>(x, y, z, out, {a_strides, b_strides});
        case BinaryOp::kSub:
          return BinaryRows<BinaryOp::kSub>(x, y, z, out, {a_strides, b_strides});
        case BinaryOp::kMul:
          return BinaryRows<BinaryOp::kMul>(x, y, z, out, {a_strides, b_strides});
        case BinaryOp::kDiv:
          return BinaryRows<BinaryOp::kDiv>(x, y, z, out, {a_strides, b_strides});
        case BinaryOp::kMin:
          return BinaryRows<BinaryOp::kMin>(x, y, z, out, {a_strides, b_strides});
        case BinaryOp::kMax:
          return BinaryRows<BinaryOp::kMax>(x, y, z, out, {a_strides, b_strides});
      }
    }
  });
  return Status();
}

Status Sqrt(const TensorView& in, const TensorView& out) {
  INGOT_RETURN_IF_ERROR(CheckHost("sqrt", in));
  INGOT_RETURN_IF_ERROR(CheckResult("sqrt", out));
  INGOT_RETURN_IF_ERROR(CheckSameType("sqrt", in, out));
  INGOT_RETURN_IF_ERROR(CheckDims("sqrt", in.shape(), out));
  if (!in.dtype.is_floating()) return Bad("sqrt", "expected floats, got " + in.TypeToString());
  WithElements(out, [&](const auto& to) {
    using Elements = std::decay_t<decltype(to)>;
    if constexpr (std::is_floating_point_v<typename Elements::Compute>) {
      Elements from = to;
      from.data = static_cast<decltype(from.data)>(in.data);
      for (int64_t i = 0; i < out.num_elements; ++i) to.Set(i, std::sqrt(from.Get(i)));
    }
  });
  return Status();
}

Status Negate(const TensorView& in, const TensorView& out) {
  INGOT_RETURN_IF_ERROR(CheckHost("negate", in));
  INGOT_RETURN_IF_ERROR(CheckResult("negate", out));
  INGOT_RETURN_IF_ERROR(CheckSameType("negate", in, out));
  INGOT_RETURN_IF_ERROR(CheckDims("negate", in.shape(), out));
  if (in.dtype.is_bool()) return Bad("negate", "expected numbers, got bool");
  WithElements(out, [&](const auto& to) {
    using Elements = std::decay_t<decltype(to)>;
    using Number = typename Elements::Compute;
    Elements from = to;
    from.data = static_cast<decltype(from.data)>(in.data);
    for (int64_t i = 0; i < out.num_elements; ++i) {
      if constexpr (std::is_floating_point_v<Number>) {
        to.Set(i, -from.Get(i));
      } else {
        to.Set(i, static_cast<Number>(uint64_t{0} - static_cast<uint64_t>(from.Get(i))));
      }
    }
  });
  return Status();
}

Status MatMul(const TensorView& a, const TensorView& b, const TensorView& out) {
  INGOT_RETURN_IF_ERROR(CheckHost("matmul", a));
  INGOT_RETURN_IF_ERROR(CheckHost("matmul", b));
  INGOT_RETURN_IF_ERROR(CheckResult("matmul", out));
  INGOT_RETURN_IF_ERROR(CheckSameType("matmul", a, b));
  if (a.dtype.is_bool() || a.dtype.is_floating() != out.dtype.is_floating() || out.dtype.is_bool()) {
    return Bad("matmul",
               "no product of " + a.TypeToString() + " and " + b.TypeToString() + " in " + out.dtype.ToString());
  }
  const int rank = std::max(a.rank, b.rank);
  bool fits = a.rank >= 2 && b.rank >= 2 && out.rank == rank && a.dims[a.rank - 1] == b.dims[b.rank - 2] &&
              out.dims[rank - 2] == a.dims[a.rank - 2] && out.dims[rank - 1] == b.dims[b.rank - 1];
  Strides a_strides{};
  Strides b_strides{};
  for (int axis = 0; fits && axis < rank - 2; ++axis) {
    const int a_axis = axis - (rank - a.rank);
    const int b_axis = axis - (rank - b.rank);
    const int64_t a_extent = a_axis < 0 ? 1 : a.dims[a_axis];
    const int64_t b_extent = b_axis < 0 ? 1 : b.dims[b_axis];
    fits = (a_extent == b_extent || a_extent == 1 || b_extent == 1) &&
           out.dims[axis] == (a_extent == 1 ? b_extent : a_extent);
    a_strides[axis] = a_extent == 1 ? 0 : a.strides[a_axis];
    b_strides[axis] = b_extent == 1 ? 0 : b.strides[b_axis];
  }
  if (!fits) {
    return Bad("matmul", a.TypeToString() + " times " + b.TypeToString() + " is no " + out.TypeToString());
  }
  const int64_t m = out.dims[rank - 2];
  const int64_t n = out.dims[rank - 1];
  const int64_t k = a.dims[a.rank - 1];
  if (out.num_elements == 0) return Status();
  // The batch axes, with one row that stands for a whole matrix.
  TensorView batches;
  batches.rank = rank - 1;
  batches.num_elements = out.num_elements / (m * n);
  std::copy_n(out.dims.begin(), rank - 2, batches.dims.begin());
  batches.dims[rank - 2] = 1;
  const auto for_each_matrix = [&](auto product) {
    ForEachRow<2>(batches, {a_strides, b_strides}, {0, 0},
                  [&](int64_t batch, const std::array<int64_t, 2>& from) { product(batch * m * n, from[0], from[1]); });
  };
  WithElements(a, [&](const auto& x) {
    using Elements = std::decay_t<decltype(x)>;
    Elements y = x;
    y.data = static_cast<decltype(y.data)>(b.data);
    WithElements(out, [&](const auto& z) {
      using Target = std::decay_t<decltype(z)>;
      constexpr bool kFloats = std::is_floating_point_v<typename Elements::Compute>;
      if constexpr (kFloats != std::is_floating_point_v<typename Target::Compute>) {
        INGOT_UNREACHABLE("checked above");
      } else if constexpr (std::is_same_v<Target, Native<float>> || std::is_same_v<Target, Native<double>>) {
        for_each_matrix([&](int64_t to, int64_t i, int64_t j) { MatrixProduct(x, i, y, j, z.data + to, m, n, k); });
      } else {
        using Sum = std::conditional_t<kFloats, float, uint64_t>;
        for_each_matrix(
            [&](int64_t to, int64_t i, int64_t j) { MatrixProductByElement<Sum>(x, i, y, j, z, to, m, n, k); });
      }
    });
  });
  return Status();
}

Status Quantize(const TensorView& in, const TensorView& scale, const TensorView& zero_point, int64_t axis,
                const TensorView& out) {
  for (const TensorView* tensor : {&in, &scale, &zero_point}) {
    INGOT_RETURN_IF_ERROR(CheckHost("quantize", *tensor));
  }
  INGOT_RETURN_IF_ERROR(CheckResult("quantize", out));
  INGOT_RETURN_IF_ERROR(CheckDims("quantize", in.shape(), out));
  if (!in.dtype.is_floating() || !out.dtype.is_integral() || scale.dtype != DataType::Float(32) ||
      zero_point.dtype != out.dtype) {
    return Bad("quantize", "expected a float to an integer by a float32 scale and a zero point of the integer, got " +
                               in.TypeToString() + " to " + out.TypeToString() + " by " + scale.TypeToString() +
                               " and " + zero_point.TypeToString());
  }
  const bool has_axis = axis >= 0 && axis < in.rank;
  for (const TensorView* tensor : {&scale, &zero_point}) {
    if (tensor->rank == 0 || (has_axis && tensor->rank == 1 && tensor->dims[0] == in.dims[axis])) continue;
    return Bad("quantize", "expected a scalar or one value per slice of axis " + std::to_string(axis) + " of " +
                               in.TypeToString() + ", got " + tensor->TypeToString());
  }
  int64_t low = 0;
  int64_t high = 0;
  IntegerRange(out.dtype, low, high);
  const int64_t inner = has_axis ? in.strides[axis] : 1;
  const int64_t extent = has_axis ? in.dims[axis] : 1;
  const auto* scales = static_cast<const float*>(scale.data);
  WithElements(in, [&](const auto& from) {
    WithElements(zero_point, [&](const auto& zeros) {
      using Integers = std::decay_t<decltype(zeros)>;
      using Integer = typename Integers::Compute;
      if constexpr (std::is_integral_v<Integer> && !std::is_same_v<Integer, bool>) {
        Integers to = zeros;
        to.data = static_cast<decltype(to.data)>(out.data);
        for (int64_t i = 0; i < in.num_elements; ++i) {
          const int64_t slice = i / inner % extent;
          const auto zero = static_cast<int64_t>(zeros.Get(zero_point.rank == 0 ? 0 : slice));
          // float32 division like the kernels'; half to even, then exact in double up to 2^53.
          const float quotient = static_cast<float>(from.Get(i)) / scales[scale.rank == 0 ? 0 : slice];
          const double rounded = std::isnan(quotient) ? 0.0 : static_cast<double>(std::nearbyint(quotient));
          to.Set(i, static_cast<Integer>(SaturatingTruncate(rounded + static_cast<double>(zero), low, high)));
        }
      }
    });
  });
  return Status();
}

}  // namespace ingot::host
