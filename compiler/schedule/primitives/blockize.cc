// blockize: a nest of loops with its block becomes the body of a block of its own, whose iterations are the nest's tiles.
// The iteration variables of the block inside keep their domains and are bound to places in the tile, so that its
// initialisation and its accesses are as before.
#include "compiler/schedule/primitives.h"
#include "compiler/schedule/primitives/inner_nest.h"
#include "compiler/schedule/region.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

Result<BlockName> Blockize(ScheduleState& state, const LoopVar& loop) {
  INGOT_ASSIGN_OR_RETURN(const LoopSite place, state.FindLoop(loop));
  INGOT_ASSIGN_OR_RETURN(InnerNest nest, FindInnerNest(state, place, "blockize"));
  const BlockNode& inside = *nest.realize->block;
  for (size_t i = 0; i < nest.iterations.size(); ++i) {
    // A tile would have to start what an earlier one has summed.
    if (!inside.init || inside.iter_vars[i]->type != IterType::kReduce) continue;
    if (IsConstInt(nest.iterations[i].outer->domain.extent, 1)) continue;
    return Refuse("blockize", Describe(place),
                  "the reduction over " + inside.iter_vars[i]->var->name + " goes on outside of the nest");
  }
  const PrimVarMap values = nest.Values();
  const std::vector<InnerVar> inner = nest.InnerVars();
  const auto tiles_of = [&](const std::vector<BufferRegion>& regions) {
    std::vector<BufferRegion> tiles;
    for (const BufferRegion& region : regions) {
      BufferRegion placed{region.buffer, {}};
      for (const Range& range : region.region) {
        placed.region.push_back({Substitute(range.min, values), Substitute(range.extent, values)});
      }
      tiles.push_back(RelaxRegion(placed, inner, nest.analyzer));
    }
    return tiles;
  };
  BlockRealizeNode bound = *nest.realize;
  for (size_t i = 0; i < nest.iterations.size(); ++i) bound.iter_values[i] = nest.iterations[i].value;
  Stmt body = Make<BlockRealizeNode>(std::move(bound));
  for (size_t i = nest.loops.size(); i-- > 0;) {
    ForNode copy = *nest.loops[i];
    copy.body = std::move(body);
    body = Make<ForNode>(std::move(copy));
  }
  BlockNode block(state.FreshBlockName(inside.name + "_o"), {}, tiles_of(inside.reads), tiles_of(inside.writes),
                  std::move(body));
  const BlockName name = block.name;
  BlockRealizeNode realize({}, BoolImm(true), nullptr);
  for (const SplitIteration& part : nest.iterations) {
    block.iter_vars.push_back(part.outer);
    realize.iter_values.push_back(part.binding);
  }
  realize.block = Make<BlockNode>(std::move(block));
  if (state.IsRecomputed(inside.name)) state.MarkRecomputed(name);
  state.Replace(place.loop, Make<BlockRealizeNode>(std::move(realize)));
  return name;
}

}  // namespace ingot::schedule
