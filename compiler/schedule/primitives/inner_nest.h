// A nest of serial loops around one block, seen as the body of a block of blocks: each iteration variable v, bound to
// base + inner where inner runs with the nest's own loops over [0, e), is o * e + inner with o = base / e. blockize and
// tensorize make the outer block.
#pragma once

#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/schedule/region.h"
#include "compiler/schedule/state.h"

namespace ingot::schedule {

// One iteration variable as an outer variable and a value over that and the nest's loops.
struct SplitIteration {
  ir::IterVar outer;
  ir::PrimExpr binding;  // of the outer variable
  ir::PrimExpr value;    // of the old variable, over the outer one and the nest's loops
};

struct InnerNest {
  std::vector<For> loops;
  std::vector<ir::PrimVar> vars;  // of the loops
  BlockRealize realize;
  std::vector<SplitIteration> iterations;  // as in the block
  // Knows the ranges of all loops and of the outer variables.
  arith::Analyzer analyzer;

  std::vector<InnerVar> InnerVars() const;
  // The block's binding with the outer variables in place of what they are bound to.
  ir::PrimVarMap Values() const;
};

// The nest that begins at the place. Refuses, in the name of the primitive, what is no perfect nest of serial loops around
// a single regular block, and iterations that do not fall into whole tiles of the nest.
Result<InnerNest> FindInnerNest(const ScheduleState& state, const LoopSite& place, const char* primitive);

}  // namespace ingot::schedule
