// Golden cases for an executable (vm-compile --golden): a call of "main" by a tensor file, with the outputs that it
// should have: those in the same file under the outputs' names, or, where it holds none, what the operators' reference
// evaluations give. Never what compiled kernels give: a golden case is to find their faults.
#pragma once

#include <string>

#include "compiler/driver/compile.h"
#include "formats/tensor_compare.h"
#include "vm/golden_cases.h"

namespace ingot::driver {

// model and options: as for LoadModel; the program is what they were compiled to.
Result<vm::GoldenCase> MakeGoldenCase(const vm::Program& program, const std::string& model,
                                      const CompileOptions& options, const std::string& tensors,
                                      const formats::Tolerance& tolerance);

}  // namespace ingot::driver
