// Blocks of an image, as nn.fold adds them up.
#pragma once

#include <optional>

#include "compiler/ir/expr.h"
#include "compiler/op/infer.h"

namespace ingot::op {

// How many blocks of a call of nn.fold lie along each axis of an image of this size; nothing if its attributes are not
// those of blocks of such an image.
std::optional<Dims> FoldCounts(const ir::Call& call, const Dims& size);

}  // namespace ingot::op
