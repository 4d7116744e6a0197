// The statuses of calls that fail where a function is entered or left. They stand apart from the code that detects the
// failures, which is compiled for speed; none of these is fast or small.
#pragma once

#include <span>
#include <string>

#include "runtime/kernel_context.h"
#include "runtime/tensor.h"
#include "vm/link/linked_program.h"
#include "vm/run/executable.h"

namespace ingot::vm {

// Where the last invocation failed; empty when it was outside of any function.
struct FailurePlace {
  std::string function;
  std::string operation;  // the source operation, or the instruction
};

[[gnu::cold]] Status RunsAlready();
[[gnu::cold]] Status InFile(Status status, const Executable& executable);
[[gnu::cold]] Status InFunction(Status status, const Function& function);
// The stack is too deep, in calls or in bytes.
[[gnu::cold]] Status CallsTooDeep(const LinkedFunction& callee);
[[gnu::cold]] Status FramesTooLarge(const LinkedFunction& callee, size_t num_frames);
// The closure was made by another executable.
[[gnu::cold]] Status ForeignClosure();
[[gnu::cold]] Status WrongArgumentCount(const Function& function, size_t num_arguments);
[[gnu::cold]] Status WrongCounts(const Function& function, size_t num_inputs, size_t num_outputs);
// An argument does not fit its parameter, in its kind or in one of its dims, of which `extents` are the argument's.
[[gnu::cold]] Status ParameterMismatch(const Function& function, size_t parameter, const std::string& got);
[[gnu::cold]] Status DimMismatch(const LinkedFunction& linked, size_t parameter, const int64_t* extents, size_t axis,
                                 int64_t expected);
// What a kernel reported of its last call.
[[gnu::cold]] Status KernelFailed(const Kernel& kernel, const KernelFailure& failure);
// A state gives a symbol a value outside of its range.
[[gnu::cold]] Status StateOutsideOfRange(const Function& function, const Symbol& symbol, const State& state,
                                         int64_t value);
// A tensor that the caller gave for a result does not fit.
[[gnu::cold]] Status OutputRefused(const Function& function, size_t output, Text why);
[[gnu::cold]] Status OutputMismatch(const Function& function, size_t output, std::span<const int64_t> symbols,
                                    const TensorView& got);
[[gnu::cold]] Status OutputElsewhere(const Function& function, size_t output, const TensorView& got);
[[gnu::cold]] Status OutputOverlaps(const Function& function, size_t output, size_t parameter);
[[gnu::cold]] Status ResultMismatch(const Function& function, size_t output, const TensorView& result,
                                    const TensorView& got);

}  // namespace ingot::vm
