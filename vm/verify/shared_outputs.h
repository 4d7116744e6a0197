// Which outputs of a function may be bound to the memory of one of its inputs. A function may write such an output when
// its last read of the input comes before its first write of the output. Both may be the same kernel call, if the
// kernel's descriptor declares that this parameter may be written in place (kernel_abi.h allows no other overlap).
//
// In: a verified function. Out: pairs. Functions with jumps have none, since their instructions do not run in their
// order; nor have those of so many inputs, outputs and instructions that finding the pairs would take long.
#pragma once

#include <cstdint>
#include <vector>

#include "vm/program/program.h"

namespace ingot::vm {

struct SharedOutput {
  uint32_t output;  // of the signature's results
  uint32_t param;   // of its parameters
  friend bool operator==(const SharedOutput&, const SharedOutput&) = default;
};

std::vector<SharedOutput> FindSharedOutputs(const Program& program, const Function& function);

}  // namespace ingot::vm
