// The tensor-level interpreter: runs any PrimFunc, scheduled or not, with blocks or lowered, over buffers on the host.
// It is the oracle of tests: slow, exact (every operation is rounded to its dtype), and strict: accesses out of bounds,
// reads of elements that were never written, and unordered accesses of parallel iterations are errors that name the
// block, the buffer and the indices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/ir/expr.h"
#include "runtime/status.h"

namespace ingot::interp {

// A compact, row-major buffer of the caller; sub-byte dtypes are packed, little-endian.
struct HostBuffer {
  DataType dtype;
  std::vector<int64_t> dims;
  std::span<std::byte> bytes;
  bool initialized = true;  // false: an output; reading an element before the function wrote it is an error
};

struct InterpretOptions {
  bool check_races = true;
  int64_t max_steps = 0;  // 0: no limit; else statements that may be executed
  // The number of executed statements is added to it (counted only under a limit). May be null.
  int64_t* executed_steps = nullptr;
  // Handles T.call_extern and T.call_packed; null: such a call is an error.
  std::function<Status(std::string_view name, std::span<const int64_t> ints)> external;
};

// Runs the function. buffers: one per buffer parameter, in order; scalars: one per scalar parameter, in order (floats
// as the bit pattern of their own width). Symbolic dimensions are bound from the buffers' dims and checked. Errors:
// kBadInput for arguments that do not fit, kFailed for a failure of the function.
Status Interpret(const ir::PrimFunc& function, std::span<const HostBuffer> buffers,
                 std::span<const int64_t> scalars = {}, const InterpretOptions& options = {});

}  // namespace ingot::interp
