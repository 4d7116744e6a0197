// The operators R.sequence.*, lists of tensors: a part of the family in compiler/op/control.cc.
#pragma once

#include <vector>

#include "compiler/op/registry.h"

namespace ingot::op {

std::vector<OpRow> SequenceOps();

}  // namespace ingot::op
