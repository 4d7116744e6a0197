// Host routines that prepare weights: permute, pad, slice, concat, reshape, cast, arithmetic, matmul, quantise. Both
// users call the same code, so equal inputs give equal bytes on any host: constant folding in the compiler, and the
// VM's builtins of a `prepare` function that stays in the file.
//
// In: compact tensors in host memory. Out: every element of `out`, which the caller allocated with the right dtype and
// dims and which overlaps no input. A tensor that does not fit is a status (bad_input) that says what was expected and
// got. Nothing is allocated. Arithmetic runs in a fixed order without fused multiply-add (-ffp-contract=off) on one
// thread: float16, bfloat16 and float8 compute in float32 and round once per result, integers wrap around. Broadcasting
// is NumPy's. Nothing here is a kernel of the inference path.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "runtime/status.h"
#include "runtime/tensor.h"

namespace ingot::host {

// Lets a caller stop a routine before its end: the routine reads the flag between rows or blocks of elements and
// returns a cancelled status when the flag is not zero. Without a flag it runs to its end.
struct Poll {
  const std::atomic<int32_t>* flag = nullptr;
  bool is_stopped() const { return flag != nullptr && flag->load(std::memory_order_relaxed) != 0; }
};

// out: in with axis i of out being axis axes[i] of in.
Status Permute(const TensorView& in, std::span<const int64_t> axes, const TensorView& out, Poll poll = {});
// out := value; out[before + i] := in[i]; out's dims say how much follows.
Status Pad(const TensorView& in, std::span<const int64_t> before, double value, const TensorView& out, Poll poll = {});
// out[i] := in[starts + i * steps]; steps may be negative; every index that out's dims reach lies inside in.
Status Slice(const TensorView& in, std::span<const int64_t> starts, std::span<const int64_t> steps,
             const TensorView& out, Poll poll = {});
// The inputs one after the other along axis (0 <= axis < rank).
Status Concat(std::span<const TensorView> inputs, int64_t axis, const TensorView& out, Poll poll = {});
// out[position + i] := in[i] along axis (0 <= axis < rank), where it must fit; other elements of out stay.
Status Insert(const TensorView& in, int64_t axis, int64_t position, const TensorView& out, Poll poll = {});
// The same elements in row-major order under other dims.
Status Reshape(const TensorView& in, const TensorView& out, Poll poll = {});
// in repeated along the axes that NumPy's broadcasting to out's dims adds or stretches.
Status BroadcastTo(const TensorView& in, const TensorView& out, Poll poll = {});
// Element conversion. To floats: to nearest even. Floats to integers: towards zero, saturating, NaN to 0. Integers to
// integers: the low bits. To bool: != 0.
Status Cast(const TensorView& in, const TensorView& out, Poll poll = {});

enum class BinaryOp : uint8_t { kAdd, kSub, kMul, kDiv, kMin, kMax };
// With broadcasting; dtypes are equal. Integer division truncates towards zero, by zero gives 0; INT_MIN / -1 wraps.
// Minimum and maximum of a NaN and anything are NaN.
Status Binary(BinaryOp op, const TensorView& a, const TensorView& b, const TensorView& out, Poll poll = {});
Status Sqrt(const TensorView& in, const TensorView& out, Poll poll = {});    // floats
Status Negate(const TensorView& in, const TensorView& out, Poll poll = {});  // floats (the sign bit) and integers

// out[.., m, n] := sum over k, ascending, of a[.., m, k] * b[.., k, n]; batch dims broadcast; rank >= 2. dtypes of a
// and b are equal, out's may be wider; floats add up in float32 (float64 when out is), integers wrap in out's dtype.
Status MatMul(const TensorView& a, const TensorView& b, const TensorView& out, Poll poll = {});
// out := saturate(round_to_even(in / scale) + zero_point): in is a float, out an integer; scale (float32) and
// zero_point (out's dtype) are scalars, or vectors along axis. NaN gives the zero point.
Status Quantize(const TensorView& in, const TensorView& scale, const TensorView& zero_point, int64_t axis,
                const TensorView& out, Poll poll = {});

}  // namespace ingot::host
