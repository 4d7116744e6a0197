// What a cost model knows of a schedule: numbers about the lowered loops, mostly as logarithms. Symbols count as likely
// sizes (kernels/predict_cost.h).
#pragma once

#include "compiler/ir/expr.h"
#include "compiler/target/target.h"
#include "compiler/tune/cost_model.h"

namespace ingot::tune {

// `bytes`: of the kernel's tensors together.
Features FeaturesOf(const ir::PrimFunc& lowered, const Target& target, double bytes);

}  // namespace ingot::tune
