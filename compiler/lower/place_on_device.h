// Places the tensors of a lowered program on the device that launches its kernels.
//
// Memory is placed as a whole: an entry of the memory plan, a state, a constant, what one instruction allocates, and all
// registers that show it. It lies on the device if kernels use it and nothing else looks at its elements; so do parameters
// and results of a function that callers of the executable alone call, whose tensors then have to be there. What other
// instructions use too (operands of builtins and of other functions) stays on the host; around a kernel call the device
// has a copy of it, which is made before the call if the kernel reads it, and copied back behind the call if the kernel
// writes it. Between two labels a copy serves all calls until something may have written the original.
#pragma once

#include "vm/program/program.h"

namespace ingot::lower {

// All registers are on device 0, the host; kernels say on which one they run, which is 0 or 1.
void PlaceOnDevice(vm::Program& program);

}  // namespace ingot::lower
