// What runners measure of a whole model.
#pragma once

#include <vector>

#include "compiler/tune/measure/candidate.h"
#include "compiler/tune/sizes.h"
#include "runtime/status.h"
#include "vm/program/program.h"

namespace ingot::driver {

Result<tune::MeasuredProgram> MeasuredModel(const vm::Program& program);
// The inputs of "main": one case for each of the sizes; of a model without symbols a single one. Fails where the inputs
// are no tensors, and where sizes are missing.
Result<std::vector<tune::MeasuredCase>> ModelCases(const vm::Program& program, const std::vector<tune::Sizes>& sizes);

}  // namespace ingot::driver
