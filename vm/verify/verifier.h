// The verifier: proves the checks of vm/program/checks.def about a decoded Program, in time and memory bounded by its
// size. A program that passes can be linked and run on stub kernels without any further trust; no check can say what
// native kernels do.
#pragma once

#include "formats/container.h"
#include "vm/program/checks.h"
#include "vm/program/program.h"

namespace ingot::vm {

// A failure names its place: 'function "main", instruction 3 (call_kernel): ... [KernelOperands]'.
Status Verify(const Program& program, const CheckSet& checks = CheckSet::All());
// The same within the heap for reading the file that the program is decoded from (vm/program/reading_heap.h).
Status Verify(const Program& program, const formats::Container& file);

}  // namespace ingot::vm
