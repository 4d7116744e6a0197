// What a kernel is expected to take on one core, before it runs: a walk over the lowered loops with likely trip counts,
// which counts what occupies the ports of the target's record. It knows widths, registers and caches, but no machine:
// rates are at a nominal clock. vm-compile --explain prints them; nothing is decided by them.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "compiler/ir/expr.h"
#include "compiler/target/target.h"

namespace ingot::kernels {

// A symbol counts as this many where nothing else is known of it, as in the rules for symbolic images.
inline constexpr int64_t kLikelySize = 56;

struct PredictedCost {
  double nanoseconds = 0;    // of one call on one core, warm
  double stores = 0;         // elements of memory that are stored
  double vector_stores = 0;  // of these, by vectors
  int lanes = 1;             // of the vectors that do most of the arithmetic
  double parallel = 0;       // the share of the time in parallel loops
  bool is_bound_by_memory = false;
};

// `bytes` is what the kernel's tensors take together at the likely sizes.
PredictedCost PredictCost(const ir::PrimFunc& lowered, const Target& target, double bytes);

// The value of an integer expression: of variables that `values` lacks, kLikelySize.
int64_t LikelyValue(const ir::PrimExpr& expr, const std::unordered_map<const ir::PrimVarNode*, int64_t>& values = {});

}  // namespace ingot::kernels
