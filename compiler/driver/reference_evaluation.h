// A whole model by the operators' reference evaluations (op::OpRow::reference): whole tensors in float64, one call
// after the other, sharing nothing with passes and kernels. Slow; for golden cases of models whose results the user
// does not have. In: a loaded module with constant shapes; out: the results of "main". Calls of functions, loops and
// calls whose rows have no reference are refused by name.
#pragma once

#include <span>
#include <vector>

#include "compiler/ir/module.h"
#include "runtime/status.h"
#include "runtime/tensor.h"

namespace ingot::driver {

// inputs: one for each parameter of "main", in order. Tuples of results are taken apart.
Result<std::vector<Tensor>> EvaluateByReference(const ir::IRModule& module, std::span<const Tensor> inputs);

}  // namespace ingot::driver
