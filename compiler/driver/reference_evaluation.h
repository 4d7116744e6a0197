// A whole model by the operators' reference evaluations (op::OpRow::reference): whole tensors in float64, one call
// after the other, sharing nothing with passes and kernels. Slow; for golden cases of models whose results the user
// does not have. In: a loaded module with constant shapes; out: the results of "main". Calls of functions, loops and
// calls whose rows have no reference are refused by name.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/ir/module.h"
#include "runtime/status.h"
#include "runtime/tensor.h"

namespace ingot::driver {

// Whether what an operator gives is rounded to its dtype before the next one reads it. Rows compute in float64 and
// round what is narrower than float32 themselves; without more, float32 keeps the precision and the range of float64
// between operators: near to the exact result, and blind to overflow and to numbers that are added to round others.
enum class Rounding : uint8_t { kNarrow, kEveryOperator };

// inputs: one for each parameter of "main", in order. Tuples of results are taken apart.
Result<std::vector<Tensor>> EvaluateByReference(const ir::IRModule& module, std::span<const Tensor> inputs,
                                                Rounding rounding = Rounding::kNarrow);

}  // namespace ingot::driver
