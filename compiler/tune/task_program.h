// The programs that are measured for a task: an executable of one function, "kernel", and its inputs.
#pragma once

#include <string>
#include <vector>

#include "compiler/schedule/choices.h"
#include "compiler/target/target.h"
#include "compiler/tune/measure/candidate.h"
#include "compiler/tune/task.h"
#include "runtime/status.h"

namespace ingot::tune {

// The task's kernel with these choices, compiled. The same choices give the same bytes.
Result<MeasuredProgram> KernelProgram(const Task& task, const Target& target, int opt_level,
                                      const schedule::Chosen& chosen);
// What the kernel is called with: floats at random; integers are zeros, since they may be places that are read; what is
// no weight is warm. Of a
// task whose sizes are symbols, one case for each of the sizes, without what it does not depend on; kUnsupportedModel
// where there are none, and where they lack one of its symbols.
Result<std::vector<MeasuredCase>> KernelCases(const Task& task, std::span<const Sizes> sizes);
// The hash of the executable, as records have it.
std::string ProgramHash(const MeasuredProgram& program);

}  // namespace ingot::tune
