// Transpositions whose result is the right factor of a matrix product: the product reads the matrix before them as fast.
#pragma once

#include <cstddef>

#include "compiler/ir/expr.h"

namespace ingot::transform {

// Whether `product`, a sum of products, reads its parameter `param` as [.., k, n], k summed over and n the last axis of
// the result, and `permutation` makes that of a tensor whose last axis is k. Not where both lengths are symbols: the last
// columns are read in place then.
bool TransposesRightFactor(const ir::PrimFunc& permutation, const ir::PrimFunc& product, size_t param);

}  // namespace ingot::transform
