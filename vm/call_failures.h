// How calls fail at the borders of functions, in words. Apart from the code that finds it, which is compiled for speed:
// none of these is fast or small.
#pragma once

#include <span>

#include "runtime/tensor.h"
#include "vm/executable.h"
#include "vm/linked_program.h"

namespace ingot::vm {

[[gnu::cold]] Status RunsAlready();
[[gnu::cold]] Status InFile(Status status, const Executable& executable);
[[gnu::cold]] Status InFunction(Status status, const Function& function);
// A stack that is too deep, in calls or in bytes.
[[gnu::cold]] Status CallsTooDeep(const LinkedFunction& callee);
[[gnu::cold]] Status FramesTooLarge(const LinkedFunction& callee, size_t num_frames);
// A closure that another executable made.
[[gnu::cold]] Status ForeignClosure();
[[gnu::cold]] Status WrongArgumentCount(const Function& function, size_t num_arguments);
[[gnu::cold]] Status WrongCounts(const Function& function, size_t num_inputs, size_t num_outputs);
// A symbol's value that is not in its range, of a parameter's dim or a state.
[[gnu::cold]] Status ParameterOutsideOfRange(const Function& function, const Symbol& symbol, size_t parameter,
                                             int64_t value);
[[gnu::cold]] Status StateOutsideOfRange(const Function& function, const Symbol& symbol, const State& state,
                                         int64_t value);
// Tensors that the caller gave for the results.
[[gnu::cold]] Status OutputRefused(const Function& function, size_t output, Text why);
[[gnu::cold]] Status OutputMismatch(const Function& function, size_t output, std::span<const int64_t> symbols,
                                    const TensorView& got);
[[gnu::cold]] Status OutputElsewhere(const Function& function, size_t output, const TensorView& got);
[[gnu::cold]] Status OutputOverlaps(const Function& function, size_t output, size_t parameter);
[[gnu::cold]] Status ResultMismatch(const Function& function, size_t output, const TensorView& result,
                                    const TensorView& got);

}  // namespace ingot::vm
