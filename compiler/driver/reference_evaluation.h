// A whole model by the operators' reference evaluations (op::OpRow::reference): whole tensors in float64, one call
// after the other, sharing nothing with passes and kernels. Slow; for golden cases of models whose results the user
// does not have. In: a loaded module with constant shapes; out: the results of "main". Calls of functions, loops and
// operators without a reference evaluation are refused by name.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/ir/module.h"
#include "runtime/status.h"
#include "runtime/tensor.h"

namespace ingot::driver {

// Whether an operator's result is rounded to its dtype before the next operator reads it. References compute in float64
// and round dtypes narrower than float32 themselves. With kNarrow, float32 values keep the precision and range of
// float64 between operators: close to the exact result, but blind to overflow and to constants that are added in order
// to round.
enum class Rounding : uint8_t { kNarrow, kEveryOperator };

// inputs: one for each parameter of "main", in order. Results that are tuples are flattened.
Result<std::vector<Tensor>> EvaluateByReference(const ir::IRModule& module, std::span<const Tensor> inputs,
                                                Rounding rounding = Rounding::kNarrow);

}  // namespace ingot::driver
