// The routines that move elements. Each checks its tensors, then walks the rows of `out` (its last axis) with an
// odometer over the other axes that carries one element offset per input. No element is interpreted. Arithmetic is in
// host_arithmetic.cc.
#include "runtime/host_ops.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "runtime/host_elements.h"

namespace ingot::host {
namespace {

// Calls row(out_offset, offsets of the N inputs) for every row of `out`, in order; offsets count elements.
template <size_t N, typename Row>
Status ForEachRow(Poll poll, const TensorView& out, const std::array<Strides, N>& strides,
                  std::array<int64_t, N> offsets, Row row) {
  if (out.num_elements == 0) return Status();
  const int outer = std::max(out.rank - 1, 0);
  const int64_t row_length = out.rank == 0 ? 1 : out.dims[out.rank - 1];
  std::array<int64_t, kMaxRank> index{};
  for (int64_t out_offset = 0;; out_offset += row_length) {
    if (poll.is_stopped()) return Stopped();
    row(out_offset, offsets);
    int axis = outer - 1;
    for (; axis >= 0; --axis) {
      for (size_t i = 0; i < N; ++i) offsets[i] += strides[i][axis];
      if (++index[axis] < out.dims[axis]) break;
      for (size_t i = 0; i < N; ++i) offsets[i] -= strides[i][axis] * out.dims[axis];
      index[axis] = 0;
    }
    if (axis < 0) return poll.is_stopped() ? Stopped() : Status();
  }
}

// `to` from `to_offset` on := `from` at from_offset, +stride, ...
void MovePiece(int bits, const void* from, int64_t from_offset, int64_t stride, void* to, int64_t to_offset,
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

// The same in pieces, until it is stopped: one row may be the whole tensor.
void MoveRow(Poll poll, int bits, const void* from, int64_t from_offset, int64_t stride, void* to, int64_t to_offset,
             int64_t count) {
  constexpr int64_t kPiece = 1 << 20;  // elements
  for (int64_t at = 0; at < count && !poll.is_stopped(); at += kPiece) {
    MovePiece(bits, from, from_offset + at * stride, stride, to, to_offset + at, std::min(kPiece, count - at));
  }
}

Status MoveStrided(Poll poll, const TensorView& in, const Strides& strides, int64_t offset, const TensorView& out) {
  const int64_t count = out.rank == 0 ? 1 : out.dims[out.rank - 1];
  const int64_t stride = out.rank == 0 ? 1 : strides[out.rank - 1];
  return ForEachRow<1>(poll, out, {strides}, {offset}, [&](int64_t out_offset, const std::array<int64_t, 1>& from) {
    MoveRow(poll, in.dtype.bits, in.data, from[0], stride, out.data, out_offset, count);
  });
}

}  // namespace

Status Permute(const TensorView& in, std::span<const int64_t> axes, const TensorView& out, Poll poll) {
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
    return Bad("permute", {"axes ", DimsToString(axes), " are no permutation of the axes of ", in.TypeToString()});
  }
  INGOT_RETURN_IF_ERROR(CheckDims("permute", {dims.data(), axes.size()}, out));
  return MoveStrided(poll, in, strides, 0, out);
}

Status Pad(const TensorView& in, std::span<const int64_t> before, double value, const TensorView& out, Poll poll) {
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
    return Bad("pad", {in.TypeToString(), " does not fit into ", out.TypeToString(), " at ", DimsToString(before)});
  }
  Fill(out, value, poll);
  if (poll.is_stopped()) return Stopped();
  // Walk the rows of `in`, which is compact: its offset is the running one, out's the odometer's.
  const int64_t count = in.rank == 0 ? 1 : in.dims[in.rank - 1];
  return ForEachRow<1>(poll, in, {out.strides}, {offset}, [&](int64_t from, const std::array<int64_t, 1>& to) {
    MoveRow(poll, in.dtype.bits, in.data, from, 1, out.data, to[0], count);
  });
}

Status Slice(const TensorView& in, std::span<const int64_t> starts, std::span<const int64_t> steps,
             const TensorView& out, Poll poll) {
  INGOT_RETURN_IF_ERROR(CheckHost("slice", in));
  INGOT_RETURN_IF_ERROR(CheckResult("slice", out));
  INGOT_RETURN_IF_ERROR(CheckSameType("slice", in, out));
  const auto rank = static_cast<size_t>(in.rank);
  if (starts.size() != rank || steps.size() != rank || out.rank != in.rank) {
    return Bad("slice", {"starts ", DimsToString(starts), " and steps ", DimsToString(steps), " do not match ",
                         in.TypeToString(), " and ", out.TypeToString()});
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
      return Bad("slice", {"axis ", axis, " of ", in.TypeToString(), " from ", starts[axis], " by ", steps[axis],
                           " leaves the tensor before ", out.dims[axis], " elements"});
    }
    strides[axis] = out.dims[axis] == 1 ? 0 : steps[axis] * in.strides[axis];
    offset += starts[axis] * in.strides[axis];
  }
  return MoveStrided(poll, in, strides, offset, out);
}

namespace {

// Checks that `in` fits into `out` from `position` on along the axis.
Status CheckPlace(const char* what, const TensorView& in, int64_t axis, int64_t position, const TensorView& out) {
  INGOT_RETURN_IF_ERROR(CheckHost(what, in));
  INGOT_RETURN_IF_ERROR(CheckSameType(what, out, in));
  bool fits = in.rank == out.rank && position >= 0 && position <= out.dims[axis];
  for (int i = 0; fits && i < in.rank; ++i) {
    fits = i == axis ? in.dims[i] <= out.dims[i] - position : in.dims[i] == out.dims[i];
  }
  if (fits) return Status();
  return Bad(what, {in.TypeToString(), " does not fit at ", position, " of axis ", axis, " of ", out.TypeToString()});
}

Status MoveInto(Poll poll, const TensorView& in, int64_t axis, int64_t position, const TensorView& out) {
  const int64_t count = in.dims[in.rank - 1];
  return ForEachRow<1>(poll, in, {out.strides}, {position * out.strides[axis]},
                       [&](int64_t from, const std::array<int64_t, 1>& to) {
                         MoveRow(poll, in.dtype.bits, in.data, from, 1, out.data, to[0], count);
                       });
}

Status CheckAxis(const char* what, int64_t axis, const TensorView& out) {
  INGOT_RETURN_IF_ERROR(CheckResult(what, out));
  if (axis >= 0 && axis < out.rank) return Status();
  return Bad(what, {"axis ", axis, " is outside ", out.TypeToString()});
}

}  // namespace

Status Concat(std::span<const TensorView> inputs, int64_t axis, const TensorView& out, Poll poll) {
  INGOT_RETURN_IF_ERROR(CheckAxis("concat", axis, out));
  int64_t position = 0;
  for (const TensorView& in : inputs) {
    INGOT_RETURN_IF_ERROR(CheckPlace("concat", in, axis, position, out));
    position += in.dims[axis];
  }
  if (position != out.dims[axis]) {
    return Bad("concat", {"the inputs fill ", position, " of axis ", axis, " of ", out.TypeToString()});
  }
  position = 0;
  for (const TensorView& in : inputs) {
    INGOT_RETURN_IF_ERROR(MoveInto(poll, in, axis, position, out));
    position += in.dims[axis];
  }
  return Status();
}

Status Insert(const TensorView& in, int64_t axis, int64_t position, const TensorView& out, Poll poll) {
  INGOT_RETURN_IF_ERROR(CheckAxis("insert", axis, out));
  INGOT_RETURN_IF_ERROR(CheckPlace("insert", in, axis, position, out));
  return MoveInto(poll, in, axis, position, out);
}

Status Reshape(const TensorView& in, const TensorView& out, Poll poll) {
  INGOT_RETURN_IF_ERROR(CheckHost("reshape", in));
  INGOT_RETURN_IF_ERROR(CheckResult("reshape", out));
  INGOT_RETURN_IF_ERROR(CheckSameType("reshape", in, out));
  if (in.num_elements != out.num_elements) {
    return Bad("reshape", {in.TypeToString(), " and ", out.TypeToString(), " differ in their number of elements"});
  }
  constexpr int64_t kPiece = 1 << 24;  // bytes
  for (int64_t at = 0; at < in.size_bytes; at += kPiece) {
    if (poll.is_stopped()) return Stopped();
    const auto size = static_cast<size_t>(std::min(kPiece, in.size_bytes - at));
    std::memcpy(static_cast<std::byte*>(out.data) + at, static_cast<const std::byte*>(in.data) + at, size);
  }
  return Status();
}

Status BroadcastTo(const TensorView& in, const TensorView& out, Poll poll) {
  INGOT_RETURN_IF_ERROR(CheckHost("broadcast_to", in));
  INGOT_RETURN_IF_ERROR(CheckResult("broadcast_to", out));
  INGOT_RETURN_IF_ERROR(CheckSameType("broadcast_to", in, out));
  INGOT_ASSIGN_OR_RETURN(const Strides strides, BroadcastStrides("broadcast_to", in, out));
  return MoveStrided(poll, in, strides, 0, out);
}

}  // namespace ingot::host
