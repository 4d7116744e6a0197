// Transpositions whose result is the right factor of a matrix product: the product reads the matrix before them as fast.
#pragma once

#include <cstddef>

#include "compiler/ir/expr.h"
#include "compiler/transform/pass.h"

namespace ingot::transform {

// Of tensor functions that may join a product.
inline constexpr const char* kJoinsProductsAttr = "ingot.joins_products";

// mark_transpositions: gives the attribute to functions that only move elements, and whose last two axes are y, x where
// the tensor's last one is y; for CUDA alone also to those where it is x.
Result<ir::IRModule> MarkTranspositions(ir::IRModule module, PassContext& context);

// Whether `product`, a sum of products, reads its parameter `param` as [.., k, n], k summed over and n the last axis of
// the result, and `permutation` is marked as one that makes that of a tensor. Not where both lengths are symbols: the last
// columns are read in place then. For CUDA alone, whose tiles take factors in any order of axes, the parameter is any
// factor of which one of the last two axes is summed over, with lengths of any kind.
bool MayJoinProduct(const ir::PrimFunc& permutation, const ir::PrimFunc& product, size_t param);

}  // namespace ingot::transform
