// Golden cases for an executable (vm-compile --golden): a call of "main" with inputs from a tensor file, and the
// outputs that it should have: those in the same file under the outputs' names, or, if there are none, the results of
// the operators' reference evaluations. Compiled kernels never make them: a golden case is to find their faults.
#pragma once

#include <string>

#include "compiler/driver/compile.h"
#include "formats/tensor_compare.h"
#include "vm/program/golden_cases.h"

namespace ingot::driver {

// model and options: as for LoadModel; the program is what they were compiled to.
Result<vm::GoldenCase> MakeGoldenCase(const vm::Program& program, const std::string& model,
                                      const CompileOptions& options, const std::string& tensors,
                                      const formats::Tolerance& tolerance);

}  // namespace ingot::driver
