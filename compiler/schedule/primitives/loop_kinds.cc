// Primitives that say how a loop runs (parallel, vectorized, unrolled, as threads), and annotations.
#include <algorithm>
#include <iterator>
#include <string_view>

#include "compiler/schedule/primitives.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

bool Binds(const BlockRealizeNode& realize, const LoopVar& loop, IterType type) {
  for (size_t i = 0; i < realize.iter_values.size(); ++i) {
    if (realize.block->iter_vars[i]->type == type && UsesVar(realize.iter_values[i], loop)) return true;
  }
  return false;
}

bool BindsOnly(const BlockRealizeNode& realize, const LoopVar& loop, IterType type) {
  for (size_t i = 0; i < realize.iter_values.size(); ++i) {
    if (realize.block->iter_vars[i]->type != type && UsesVar(realize.iter_values[i], loop)) return false;
  }
  return true;
}

bool LivesInside(const ScheduleState& state, const Buffer& buffer, const For& loop) {
  if (!state.IsAllocated(buffer)) return false;
  const std::vector<BlockSite> inside = ScheduleState::BlocksIn(loop->body);
  for (const BlockSite& site : state.Blocks()) {
    if (!ReadsFrom(site.block(), buffer) && !WritesTo(site.block(), buffer)) continue;
    if (std::none_of(inside.begin(), inside.end(),
                     [&](const BlockSite& b) { return b.realize.same_as(site.realize); })) {
      return false;
    }
  }
  return true;
}

namespace {

// Checks that different iterations write different elements. By the invariant of the state a spatial binding shows that
// for buffers that are visible outside; buffers that live inside of the loop belong to each iteration.
Status CheckIndependent(const ScheduleState& state, const char* primitive, const LoopSite& site) {
  for (const BlockSite& block : ScheduleState::BlocksIn(site.loop->body)) {
    const std::string place = Describe(site);
    const std::string name = "block \"" + block.block().name + "\"";
    if (!state.IsRegular(block.block().name))
      return Refuse(primitive, place, name + " has bindings that are not simple");
    if (IsConstInt(site.loop->extent, 1)) continue;
    if (!BindsOnly(*block.realize, site.loop->var, IterType::kSpatial)) {
      return Refuse(primitive, place, "it reduces in " + name + "; iterations depend on each other");
    }
    const bool repeats = !Binds(*block.realize, site.loop->var, IterType::kSpatial);
    const bool own =
        state.IsRecomputed(block.block().name) &&
        std::all_of(block.block().writes.begin(), block.block().writes.end(),
                    [&](const BufferRegion& write) { return LivesInside(state, write.buffer, site.loop); });
    if (repeats && !own) return Refuse(primitive, place, name + " writes the same elements in every iteration");
  }
  return Status();
}

// Whether the loop is a reduction by +, min or max without its initialisation: vectorized, its lanes are combined with
// each other before the result.
bool JoinsLanes(const ScheduleState& state, const LoopSite& site) {
  const auto* realize = As<BlockRealizeNode>(site.loop->body);
  if (realize == nullptr || realize->block->init || !state.IsRegular(realize->block->name)) return false;
  const auto* update = As<BufferStoreNode>(realize->block->body);
  const auto* combined = update != nullptr ? As<BinaryNode>(update->value) : nullptr;
  if (combined == nullptr ||
      (combined->op != BinaryOp::kAdd && combined->op != BinaryOp::kMin && combined->op != BinaryOp::kMax)) {
    return false;
  }
  const auto* out = As<BufferLoadNode>(combined->a);
  return out != nullptr && out->buffer.same_as(update->buffer) && IsTrue(realize->predicate) &&
         Binds(*realize, site.loop->var, IterType::kReduce) && BindsOnly(*realize, site.loop->var, IterType::kReduce);
}

Status SetKind(ScheduleState& state, const char* primitive, const LoopSite& site, ForKind kind) {
  if (site.loop->for_kind != ForKind::kSerial) return Refuse(primitive, Describe(site), "the loop has a kind already");
  ForNode copy = *site.loop;
  copy.for_kind = kind;
  state.Replace(site.loop, Make<ForNode>(std::move(copy)));
  return Status();
}

}  // namespace

Status Parallel(ScheduleState& state, const LoopVar& loop) {
  INGOT_ASSIGN_OR_RETURN(const LoopSite site, state.FindLoop(loop));
  INGOT_RETURN_IF_ERROR(CheckIndependent(state, "parallel", site));
  return SetKind(state, "parallel", site, ForKind::kParallel);
}

Status Vectorize(ScheduleState& state, const LoopVar& loop) {
  INGOT_ASSIGN_OR_RETURN(const LoopSite site, state.FindLoop(loop));
  for (const BlockSite& block : ScheduleState::BlocksIn(site.loop->body)) {
    if (!HoldsLoops(block.block())) continue;
    return Refuse("vectorize", Describe(site), "block \"" + block.block().name + "\" holds loops of its own");
  }
  if (!JoinsLanes(state, site)) INGOT_RETURN_IF_ERROR(CheckIndependent(state, "vectorize", site));
  const auto extent = AsConstInt(site.loop->extent);
  if (!extent) return Refuse("vectorize", Describe(site), "the extent is not constant");
  if (*extent < 1 || *extent > 1024) return Refuse("vectorize", Describe(site), "the extent is not in 1..1024");
  const auto* inner = As<ForNode>(site.loop->body);
  const bool is_square = inner != nullptr && inner->for_kind == ForKind::kVectorized;
  if (As<BlockRealizeNode>(site.loop->body) == nullptr && !is_square) {
    return Refuse("vectorize", Describe(site), "the loop is not the innermost one around a single block");
  }
  return SetKind(state, "vectorize", site, ForKind::kVectorized);
}

Status Unroll(ScheduleState& state, const LoopVar& loop) {
  INGOT_ASSIGN_OR_RETURN(const LoopSite site, state.FindLoop(loop));
  if (!AsConstInt(site.loop->extent)) {
    return Refuse("unroll", Describe(site), "the extent is not constant");
  }
  return SetKind(state, "unroll", site, ForKind::kUnrolled);
}

Status Bind(ScheduleState& state, const LoopVar& loop, const std::string& thread_axis) {
  INGOT_ASSIGN_OR_RETURN(const LoopSite site, state.FindLoop(loop));
  static constexpr std::string_view kAxes[] = {"blockIdx.x",  "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y",
                                               "threadIdx.z", "vthread.x",  "vthread.y",  "vthread.z"};
  if (std::find(std::begin(kAxes), std::end(kAxes), thread_axis) == std::end(kAxes)) {
    return Refuse(
        "bind", Describe(site),
        "there is no thread axis \"" + thread_axis + "\"; expected blockIdx, threadIdx or vthread with .x, .y or .z");
  }
  INGOT_RETURN_IF_ERROR(CheckIndependent(state, "bind", site));
  // Nests that stand side by side may run as launches of their own.
  const For& nest = site.outer.empty() ? site.loop : site.outer.front();
  for (const BlockSite& block : ScheduleState::BlocksIn(nest)) {
    const bool inside = std::any_of(block.loops.begin(), block.loops.end(),
                                    [&](const For& around) { return around.same_as(site.loop); });
    for (const For& other : block.loops) {
      if (other->for_kind != ForKind::kThreadBinding || other->thread_tag != thread_axis) continue;
      if (inside) {
        return Refuse(
            "bind", Describe(site),
            "loop " + other->var->name + " around block \"" + block.block().name + "\" is " + thread_axis + " already");
      }
      arith::Analyzer analyzer;
      if (analyzer.ProveEqual(other->extent, site.loop->extent)) continue;
      return Refuse("bind", Describe(site),
                    thread_axis + " has another extent in loop " + other->var->name + " around block \"" +
                        block.block().name + "\"");
    }
  }
  if (site.loop->for_kind != ForKind::kSerial) return Refuse("bind", Describe(site), "the loop has a kind already");
  ForNode copy = *site.loop;
  copy.for_kind = ForKind::kThreadBinding;
  copy.thread_tag = thread_axis;
  state.Replace(site.loop, Make<ForNode>(std::move(copy)));
  return Status();
}

Status Annotate(ScheduleState& state, const std::variant<BlockName, LoopVar>& target, const std::string& key,
                AttrValue value) {
  if (const auto* loop = std::get_if<LoopVar>(&target)) {
    INGOT_ASSIGN_OR_RETURN(const LoopSite site, state.FindLoop(*loop));
    ForNode copy = *site.loop;
    copy.annotations = copy.annotations.With(key, std::move(value));
    state.Replace(site.loop, Make<ForNode>(std::move(copy)));
    return Status();
  }
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(std::get<BlockName>(target)));
  BlockNode block = site.block();
  block.annotations = block.annotations.With(key, std::move(value));
  BlockRealizeNode copy = *site.realize;
  copy.block = Make<BlockNode>(std::move(block));
  state.Replace(site.realize, Make<BlockRealizeNode>(std::move(copy)));
  return Status();
}

}  // namespace ingot::schedule
