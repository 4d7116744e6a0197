// Visitors that read the facts of analysis.h off a block's body, and steps of scheduling that several rules share.
#include "compiler/schedule/rules/analysis.h"

#include <algorithm>
#include <cstdlib>

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

class LoadLister : public StmtVisitor {
 public:
  std::vector<const BufferLoadNode*> loads;
  int64_t operations = 0;
  bool conditional = false;

 protected:
  using StmtVisitor::Visit;
  void Visit(const BufferLoadNode& load) override { loads.push_back(&load); }  // index arithmetic is no cost
  void Visit(const BinaryNode& node) override {
    ++operations;
    StmtVisitor::Visit(node);
  }
  void Visit(const SelectNode& node) override {
    ++operations;
    StmtVisitor::Visit(node);
  }
  void Visit(const PrimCallNode& call) override {
    constexpr int kTranscendental = 10;
    conditional |= call.op == Intrinsic::kIfThenElse;
    const bool is_elementary = call.op == Intrinsic::kIfThenElse || call.op == Intrinsic::kDotBytes ||
                               call.op == Intrinsic::kShiftLeft || call.op == Intrinsic::kShiftRight ||
                               call.op == Intrinsic::kBitwiseAnd || call.op == Intrinsic::kBitwiseOr;
    operations += is_elementary ? 1 : kTranscendental;
    StmtVisitor::Visit(call);
  }
};

LoadLister ListBody(const BlockSite& site) {
  LoadLister lister;
  lister.VisitStmt(site.block().body);
  return lister;
}

Match<> HasPlainStore(const ScheduleState& state, const BlockSite& site) {
  const auto* store = As<BufferStoreNode>(site.block().body);
  if (store == nullptr) return Declined{"it has statements beside one store"};
  if (!state.IsRegular(site.block().name)) return Declined{"its loops are not those of one block for each place"};
  if (!IsTrue(site.realize->predicate)) return Declined{"it runs under a condition"};
  for (size_t d = 0; d < store->indices.size(); ++d) {
    if (IterOfDimension(site, d) < 0 && !IsConstInt(store->buffer->shape[d], 1)) {
      return Declined{"it stores at computed places"};
    }
  }
  return Taken{};
}

}  // namespace

bool IsBoundToThreads(const BlockSite& site) {
  return std::any_of(site.loops.begin(), site.loops.end(),
                     [](const For& loop) { return loop->for_kind == ForKind::kThreadBinding; });
}

bool IsSpatialLoop(const BlockSite& site, const For& loop) {
  return Binds(*site.realize, loop->var, IterType::kSpatial) && BindsOnly(*site.realize, loop->var, IterType::kSpatial);
}

const BufferStoreNode& StoreOf(const BlockSite& site) { return *As<BufferStoreNode>(site.block().body); }

Match<> AsInjective(const ScheduleState& state, const BlockSite& site) {
  const Match<> store = HasPlainStore(state, site);
  if (!store) return store;
  if (site.block().init || !ReduceIters(site).empty()) return Declined{"it is a reduction", true};
  if (ReadsFrom(site.block(), StoreOf(site).buffer)) return Declined{"it reads what it writes"};
  return Taken{};
}
bool IsInjective(const ScheduleState& state, const BlockSite& site) { return bool{AsInjective(state, site)}; }

Match<> AsReduction(const ScheduleState& state, const BlockSite& site) {
  const Match<> store = HasPlainStore(state, site);
  if (!store) return store;
  if (!site.block().init || ReduceIters(site).empty()) return Declined{"it is no reduction", true};
  return Taken{};
}
bool IsReduction(const ScheduleState& state, const BlockSite& site) { return bool{AsReduction(state, site)}; }

bool IsPlainMove(const BlockSite& site) {
  PrimExpr value = StoreOf(site).value;
  while (const auto* cast = As<CastNode>(value)) value = cast->value;
  return As<BufferLoadNode>(value) != nullptr;
}

bool ReadsUnderCondition(const BlockSite& site) { return ListBody(site).conditional; }

bool WritesOutput(const ScheduleState& state, const BlockSite& site) {
  return std::any_of(site.block().writes.begin(), site.block().writes.end(),
                     [&](const BufferRegion& write) { return !state.IsAllocated(write.buffer); });
}

std::vector<LoadUse> LoadsOf(const BlockSite& site) {
  std::vector<PrimVar> vars;
  for (const IterVar& iter : site.block().iter_vars) vars.push_back(iter->var);
  std::vector<LoadUse> uses;
  for (const BufferLoadNode* load : ListBody(site).loads) {
    if (load->buffer.same_as(StoreOf(site).buffer)) continue;  // the accumulator
    LoadUse use{load, std::vector<bool>(vars.size()), std::vector<std::optional<int64_t>>(vars.size(), 0),
                std::vector<bool>(vars.size())};
    for (size_t d = 0; d < load->indices.size(); ++d) {
      const bool last = d + 1 == load->indices.size();
      for (size_t v = 0; v < vars.size(); ++v) {
        if (!UsesVar(load->indices[d], vars[v])) continue;
        use.uses[v] = true;
        if (!last) {
          use.outside_last[v] = true;
        } else {
          const std::optional<arith::LinearForm> linear = arith::DetectLinear(load->indices[d], {vars[v]});
          const auto coefficient = linear ? AsConstInt(linear->coefficients[0]) : std::nullopt;
          use.last_coefficient[v] = coefficient ? std::optional<int64_t>(*coefficient) : std::nullopt;
        }
      }
    }
    uses.push_back(std::move(use));
  }
  return uses;
}

int IterOfDimension(const BlockSite& site, size_t d) {
  const BufferStoreNode& store = StoreOf(site);
  for (size_t i = 0; i < site.block().iter_vars.size(); ++i) {
    const IterVarNode& iter = *site.block().iter_vars[i];
    if (iter.type == IterType::kSpatial && store.indices[d].get() == iter.var.get()) return static_cast<int>(i);
  }
  return -1;
}

namespace {
std::vector<int> ItersOfType(const BlockSite& site, IterType type) {
  std::vector<int> iters;
  for (size_t i = 0; i < site.block().iter_vars.size(); ++i) {
    if (site.block().iter_vars[i]->type == type) iters.push_back(static_cast<int>(i));
  }
  return iters;
}
}  // namespace
std::vector<int> SpatialIters(const BlockSite& site) { return ItersOfType(site, IterType::kSpatial); }
std::vector<int> ReduceIters(const BlockSite& site) { return ItersOfType(site, IterType::kReduce); }

std::vector<WindowAxis> WindowAxes(const BlockSite& site) {
  const std::vector<IterVar>& iters = site.block().iter_vars;
  const auto var_of = [&](int iter) { return iters[static_cast<size_t>(iter)]->var; };
  const auto is_long = [&](int iter) { return ConstantExtent(*iters[static_cast<size_t>(iter)]) != 1; };
  std::vector<WindowAxis> axes;
  for (const LoadUse& use : LoadsOf(site)) {
    for (const PrimExpr& index : use.load->indices) {
      for (const int iter : SpatialIters(site)) {
        for (const int reduced : ReduceIters(site)) {
          if (!is_long(iter) || !is_long(reduced)) continue;
          const auto taps = ConstantExtent(*iters[static_cast<size_t>(reduced)]);
          const std::optional<arith::LinearForm> form = arith::DetectLinear(index, {var_of(iter), var_of(reduced)});
          if (!form || !taps) continue;
          const auto stride = AsConstInt(form->coefficients[0]), dilation = AsConstInt(form->coefficients[1]);
          if (!stride || !dilation || *stride == 0 || *dilation == 0) continue;
          if (std::abs(*stride) <= (*taps - 1) * std::abs(*dilation)) axes.push_back({iter, reduced});
        }
      }
    }
  }
  return axes;
}

std::optional<int64_t> ConstantExtent(const IterVarNode& iter) {
  const auto extent = AsConstInt(iter.domain.extent);
  return extent ? std::optional<int64_t>(*extent) : std::nullopt;
}

int64_t CostOfInstance(const BlockSite& site) {
  const LoadLister lister = ListBody(site);
  if (site.block().init) return std::max<int64_t>(lister.operations / 2, 1);  // a multiply-add is one
  return lister.operations + static_cast<int64_t>(lister.loads.size()) + 1;
}

int64_t KnownInstances(const BlockSite& site) {
  int64_t instances = 1;
  for (const IterVar& iter : site.block().iter_vars) {
    const int64_t extent = ConstantExtent(*iter).value_or(1);
    if (__builtin_mul_overflow(instances, extent, &instances)) return INT64_MAX;
  }
  return instances;
}

namespace {

// One iteration of a loop: how often the statement that runs most often runs for each time that constants say, and
// whether a block writes what others read.
class LoopsInside : public ir::StmtVisitor {
 public:
  explicit LoopsInside(const ScheduleState& state) : state_(state) {}
  int64_t likely = 1;
  bool keeps_results = false;

 protected:
  using ir::StmtVisitor::Visit;
  void Visit(const ir::ForNode& loop) override {
    const int64_t outside = factor_;
    if (!AsConstInt(loop.extent)) factor_ = std::min(factor_ * kLikelyExtent, kMinParallelCost);
    likely = std::max(likely, factor_);
    ir::StmtVisitor::Visit(loop);
    factor_ = outside;
  }
  void Visit(const ir::BlockNode& block) override {
    for (const BufferRegion& write : block.writes) keeps_results |= state_.IsAllocated(write.buffer);
    ir::StmtVisitor::Visit(block);
  }

 private:
  const ScheduleState& state_;
  int64_t factor_ = 1;
};

}  // namespace

void ParallelizeByCost(Schedule& schedule, LoopRV loop, int64_t cost_of_iteration) {
  if (schedule.IsVoid(loop)) return;
  LoopsInside inside(schedule.state());
  inside.VisitStmt(schedule.Loop(loop).loop->body);
  if (inside.likely > 1 && !inside.keeps_results) return schedule.Parallel(loop);
  int64_t cost = std::max<int64_t>(cost_of_iteration, 1);
  if (__builtin_mul_overflow(cost, inside.likely, &cost)) cost = kMinParallelCost;
  ParallelizeByLikelyCost(schedule, loop, cost);
}

void ParallelizeByLikelyCost(Schedule& schedule, LoopRV loop, int64_t cost_of_iteration) {
  if (schedule.IsVoid(loop)) return;
  const int64_t cost = std::max<int64_t>(cost_of_iteration, 1);
  int64_t chunk = (kMinTaskCost + cost - 1) / cost;
  const auto extent = AsConstInt(schedule.Loop(loop).loop->extent);
  if (extent && (*extent < 2 || cost < kMinParallelCost / *extent || chunk * 2 > *extent)) return;
  if (extent) {
    // Smaller and larger tasks; one for all iterations is none.
    std::vector<int64_t> chunks{*extent};
    for (const int64_t other : {chunk / 4, chunk / 2, chunk * 2, chunk * 4}) {
      if (other >= 1 && other * 2 <= *extent) chunks.push_back(other);
    }
    chunk = schedule.Choose("parallel.chunk", chunk, std::move(chunks));
    if (chunk == *extent) return;
  }
  // A shorter last chunk has a predicate, which the pass partition_loops turns into the extent of the chunk's loop.
  schedule.Parallel(chunk == 1 ? loop : schedule.Split(loop, {kRest, chunk})[0]);
}

int64_t SquareSide(int bits, const Target& target) {
  const int64_t lanes = target.vector_lanes(bits);
  return bits >= 32 ? lanes : std::min<int64_t>(lanes, 128 / bits);
}

void VectorizeTile(Schedule& schedule, LoopRV loop, int64_t lanes) {
  if (schedule.IsVoid(loop)) return;
  const auto extent = AsConstInt(schedule.Loop(loop).loop->extent);
  if (!extent || *extent < 2) return;
  if (*extent > lanes && *extent % lanes == 0) {
    const LoopRVs parts = schedule.Split(loop, {kRest, lanes});
    schedule.Unroll(parts[0]);
    schedule.Vectorize(parts[1]);
  } else if (*extent <= 2 * lanes) {
    schedule.Vectorize(loop);
  }
}

void VectorizeLong(Schedule& schedule, LoopRV loop, int64_t lanes) {
  if (schedule.IsVoid(loop)) return;
  const auto extent = AsConstInt(schedule.Loop(loop).loop->extent);
  if (extent && *extent <= 2 * lanes) return VectorizeTile(schedule, loop, lanes);
  const Schedule::Parts parts = schedule.LoopPartition(loop, lanes);
  schedule.Vectorize(schedule.Split(parts.main, {kRest, lanes})[1]);
  VectorizeTile(schedule, parts.tail, lanes);
}

int SharedDimensions(const std::vector<BlockSite>& sites) {
  arith::Analyzer analyzer;
  const BufferStoreNode& last = StoreOf(sites.back());
  int shared = static_cast<int>(last.indices.size());
  for (const BlockSite& site : sites) {
    const BufferStoreNode& store = StoreOf(site);
    int d = 0;
    while (d < shared && d < static_cast<int>(store.indices.size()) && IterOfDimension(site, d) >= 0 &&
           analyzer.ProveEqual(store.buffer->shape[d], last.buffer->shape[d])) {
      ++d;
    }
    shared = d;
  }
  return shared;
}

HandleList<InnerLoop> InnerLoops(Schedule& schedule, BlockRV block, LoopRV outer) {
  const LoopRVs loops = schedule.GetLoops(block);
  const BlockSite site = schedule.Block(block);
  const LoopVar outer_var = schedule.IsVoid(outer) ? nullptr : schedule.Loop(outer).loop->var;
  HandleList<InnerLoop> inner;
  bool inside = outer_var == nullptr;
  for (size_t l = 0; l < loops.size(); ++l) {
    if (inside) {
      InnerLoop entry{loops[l], -1};
      for (size_t i = 0; i < site.realize->iter_values.size(); ++i) {
        if (UsesVar(site.realize->iter_values[i], site.loops[l]->var)) entry.iter = static_cast<int>(i);
      }
      inner.push_back(entry);
    }
    inside |= site.loops[l]->var.same_as(outer_var);
  }
  return inner;
}

bool Reduces(const BlockSite& site, const InnerLoop& loop) {
  return loop.iter >= 0 && site.block().iter_vars[loop.iter]->type == IterType::kReduce;
}

LoopsBelow FindLoopsBelow(Schedule& schedule, BlockRV block, LoopRV outer) {
  LoopsBelow loops;
  const BlockSite site = schedule.Block(block);
  for (const InnerLoop& inner : InnerLoops(schedule, block, outer)) {
    (Reduces(site, inner) ? loops.reducing : loops.spatial).push_back(inner.loop);
  }
  return loops;
}

LoopRV FuseReducing(Schedule& schedule, BlockRV block) {
  const LoopRVs loops = schedule.GetLoops(block);
  if (!schedule.status().ok()) return {};
  const BlockSite site = schedule.Block(block);
  std::vector<LoopRV> spatial, reducing;
  for (size_t i = 0; i < site.loops.size(); ++i) {
    (IsSpatialLoop(site, site.loops[i]) ? spatial : reducing).push_back(loops[i]);
  }
  std::vector<LoopRV> order = spatial;
  order.insert(order.end(), reducing.begin(), reducing.end());
  if (order.size() > 1) schedule.Reorder(order);
  return reducing.size() > 1 ? schedule.Fuse(reducing) : reducing[0];
}

LoopVar LoopOfEmptyReduction(const BlockSite& site) {
  const BlockNode& block = site.block();
  if (!block.init) return nullptr;
  arith::Analyzer analyzer;
  const bool may_be_empty = std::ranges::any_of(block.iter_vars, [&](const IterVar& iter) {
    return iter->type == IterType::kReduce && !analyzer.ProveLess(Int64(0), iter->domain.extent);
  });
  if (!may_be_empty) return nullptr;
  for (const For& loop : site.loops) {
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      if (block.iter_vars[i]->type != IterType::kReduce) continue;
      const std::vector<PrimVar> used = FreePrimVars(site.realize->iter_values[i]);
      if (std::ranges::any_of(used, [&](const PrimVar& var) { return var.same_as(loop->var); })) return loop->var;
    }
  }
  return nullptr;
}

}  // namespace ingot::schedule
