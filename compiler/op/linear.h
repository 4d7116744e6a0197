// The dims of matrix products after NumPy, which several operators share.
#pragma once

#include <optional>

#include "compiler/op/infer.h"
#include "compiler/target/target.h"

namespace ingot::op {

// The dims of a x b of known dims and ranks >= 1: a vector is a row on the left and a column on the right, batches
// broadcast. An error where the summed axes differ in length or batches do not broadcast; nothing where dims are
// unknown.
Result<std::optional<Dims>> MatmulDims(const ir::Call& call, const ir::TensorType& a, const ir::TensorType& b);
// Two operations for each element of the result and of the axis that is summed over.
double MatmulCost(const ir::Call& call, const Target& target);

}  // namespace ingot::op
