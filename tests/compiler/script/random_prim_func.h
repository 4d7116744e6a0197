// Tensor functions at random; see random_modules.h.
#pragma once

#include "compiler/ir/expr.h"
#include "tests/compiler/script/random_source.h"

namespace ingot::script::testing {

ir::PrimFunc RandomPrimFunc(RandomSource& random);
// An expression of the symbols given; of int64.
ir::PrimExpr RandomDim(RandomSource& random, const std::vector<ir::PrimVar>& symbols, int depth = 0);

}  // namespace ingot::script::testing
