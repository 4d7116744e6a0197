// Which outputs of a function may be bound to the memory of one of its inputs. The kernels' descriptors declare what a
// kernel may write in place (kernel_abi.h allows no other overlap); a function may do so when all that it reads of the
// input is read before it first writes the output, by the kernel at the latest that declares this pair.
//
// In: a verified function. Out: pairs. Functions with jumps have none: the order of instructions is not that of time.
#pragma once

#include <cstdint>
#include <vector>

#include "vm/program.h"

namespace ingot::vm {

struct SharedOutput {
  uint32_t output;  // of the signature's results
  uint32_t param;   // of its parameters
  friend bool operator==(const SharedOutput&, const SharedOutput&) = default;
};

std::vector<SharedOutput> FindSharedOutputs(const Program& program, const Function& function);

}  // namespace ingot::vm
