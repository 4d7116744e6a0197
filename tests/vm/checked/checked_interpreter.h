// A second, slow and simple interpreter of a decoded program, which believes nothing: every step compares the values
// that it finds with what the verifier promises about them. It is written from the semantics in opcodes.def and shares
// no code with the verifier or the virtual machine. Kernels are stubs; of builtins it runs those that need no arithmetic
// on tensors and ends the run, without a verdict, at the others.
#pragma once

#include <string>
#include <vector>

#include "tests/vm/checked/checked_value.h"

namespace ingot::vm::checked {

struct CheckedRun {
  enum class End : uint8_t {
    kReturned,
    kFailed,        // as the program may: a dim that differs, an empty optional, fail
    kStopped,       // out of steps or depth, or something that is not modelled
    kDisagreement,  // the verifier promised something else
  };
  End end = End::kStopped;
  std::string message;
  std::vector<CheckedValue> results;
  bool is_comparable = true;  // no value depends on memory that an earlier call may have left
};

// `zeroed` lists per function the instructions whose memory the linker zeroes. Opcodes that ran are marked in `ran`.
CheckedRun RunChecked(const Program& program, FunctionId function, const std::vector<CheckedValue>& arguments,
                      const std::vector<std::vector<uint32_t>>& zeroed, std::vector<bool>& ran);

}  // namespace ingot::vm::checked
