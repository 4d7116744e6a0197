// The stub that runs in the place of a native kernel, where its code is not trusted or missing. It reads and writes
// exactly the declared extents, so that sanitizers find a caller that passes less memory.
#include <algorithm>
#include <cstring>

#include "vm/link/linked_program.h"

namespace ingot::vm {
namespace {

Result<int64_t> SizeOf(const KernelParam& param, std::span<const int64_t> ints) {
  int64_t count = 1;
  for (const DimCode& extent : param.extents) {
    INGOT_ASSIGN_OR_RETURN(const int64_t value, extent.Evaluate(ints));
    if (value < 0 || __builtin_mul_overflow(count, value, &count)) {
      return Status(StatusCode::kBadInput, {"an extent of ", value});
    }
  }
  return param.dtype.SizeBytes(count);
}

}  // namespace

Status RunStubKernel(const Kernel& kernel, void* const* buffers, const int64_t* ints, host::Poll poll) {
  constexpr int64_t kPiece = 1 << 20;  // bytes
  const std::span<const int64_t> arguments(ints, kernel.ints.size());
  uint64_t state = 0xcbf29ce484222325;  // FNV-1a over what is read
  const auto mix = [&](unsigned char byte) { state = (state ^ byte) * 0x100000001b3; };
  for (char c : kernel.name) mix(static_cast<unsigned char>(c));
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    if (kernel.params[i].role == ParamRole::kOut) continue;
    INGOT_ASSIGN_OR_RETURN(const int64_t size, SizeOf(kernel.params[i], arguments));
    const auto* bytes = static_cast<const unsigned char*>(buffers[i]);
    for (int64_t k = 0; k < size; ++k) {
      if (k % kPiece == 0 && poll.is_stopped()) return Status(StatusCode::kCancelled, "stopped");
      mix(bytes[k]);
    }
  }
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    if (kernel.params[i].role == ParamRole::kIn) continue;
    INGOT_ASSIGN_OR_RETURN(const int64_t size, SizeOf(kernel.params[i], arguments));
    // Bytes below 64 are small positive numbers in every element type.
    auto* bytes = static_cast<unsigned char*>(buffers[i]);
    for (int64_t k = 0; k < size; k += kPiece) {
      if (poll.is_stopped()) return Status(StatusCode::kCancelled, "stopped");
      std::memset(bytes + k, static_cast<int>(state >> 32 & 63), static_cast<size_t>(std::min(kPiece, size - k)));
    }
  }
  return Status();
}

}  // namespace ingot::vm
