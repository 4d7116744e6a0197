// Before: a function of blocks. After: a reduction over axes that may be empty (of symbolic extent) has its
// initialisation in a block of its own, in front of the reduction's loops, so that it runs even if they do not: the sum
// of no elements is 0. Default schedules do so themselves; this pass is for functions without one. If the primitive
// refuses (a block writes a part of the result only), the block stays as it is. It comes before blocks are lowered,
// since it moves blocks.
#include "compiler/schedule/primitives.h"
#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/state.h"
#include "compiler/transform/tensor/passes.h"

namespace ingot::transform {

using namespace ir;  // NOLINT

Result<PrimFunc> SeparateInits(const PrimFunc& function, const Target&) {
  const auto* root = As<BlockRealizeNode>(function->body);
  if (root == nullptr || !root->block->iter_vars.empty() || root->block->init) return function;
  INGOT_ASSIGN_OR_RETURN(schedule::ScheduleState state, schedule::ScheduleState::Create(function));
  for (const schedule::BlockSite& site : state.Blocks()) {
    const PrimVar loop = schedule::LoopOfEmptyReduction(site);
    if (!loop) continue;
    schedule::ScheduleState attempt = state;
    if (schedule::DecomposeReduction(attempt, site.block().name, loop).ok()) state = std::move(attempt);
  }
  return state.function();
}

}  // namespace ingot::transform
