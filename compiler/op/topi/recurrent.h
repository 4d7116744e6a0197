// The scan of a recurrent layer as statements: loops over steps, panels of hidden units and sequences, with the
// products in vectors of a panel's lanes. It is no tensor expression (a step reads what the last one wrote), so no rule
// sees it: the loops here are the schedule. On CUDA each step is a launch, or two. Panels are divided among tasks where a step is worth a fork-join.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/op/build.h"
#include "compiler/op/recurrent.h"
#include "compiler/target/target.h"

namespace ingot::op::topi {

std::vector<ir::Stmt> Scan(const Recurrence& recurrence, const Buffers& inputs, const Buffers& outputs,
                           const Target& target);

}  // namespace ingot::op::topi
