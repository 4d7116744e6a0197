// The rule for everything on CUDA: the block's independent iterations become the threads of one grid, 256 to a block;
// what it reduces over, or does one after the other, stays with the thread. Any block whose loops are its own has such
// a schedule: ranks and sizes do not matter, a grid's last block is cut off by a predicate. Of element-wise blocks that
// have work for many threads, each thread takes 16 bytes of neighbours; the last ones may be cut off. Where every access
// moves with them by one or not at all, and rows consist of them, they are vectors; else they are loaded one by one, all
// of them before they are stored at once, so that as much is on its way. Where the places are loaded, too, a thread takes
// twice as many. Those of a block that is more
// than a store are made parallel: which threads run what is in it is decided where it is lowered
// (transform/tensor/bind_threads).
#include <algorithm>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/count_nodes.h"
#include "compiler/schedule/rules/contiguity.h"
#include "compiler/schedule/rules/rules.h"
#include "compiler/target/cuda.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

constexpr int64_t kThreadsOfBlock = 8 * kCudaWarpThreads;
// The longest access of a thread, and the threads that are worth more than longer accesses.
constexpr int64_t kBytesStored = 16, kEnoughThreads = 32 << 10;
// Lanes that are loaded one by one: of bytes, and the terms that they may have together.
constexpr int64_t kMostSingleLanes = 8, kMostSingleTerms = 512;

// What a thread of an element-wise block takes: neighbours, and how often so many, a block's threads apart.
struct ThreadShare {
  int64_t lanes = 1, vectors = 1;
};

// Whether the loops, one around the other, go through what the block stores place by place.
bool StoresInOrder(const BlockSite& site, const std::vector<int>& iters) {
  const BufferStoreNode& store = StoreOf(site);
  if (!store.buffer->strides.empty()) return false;
  std::vector<int> of_dims;
  for (size_t d = 0; d < store.indices.size(); ++d) {
    const int iter = IterOfDimension(site, d);
    if (iter >= 0) {
      of_dims.push_back(iter);
    } else if (!IsConstInt(store.buffer->shape[d], 1)) {
      return false;
    }
  }
  const auto is_unit = [&](int iter) {
    return ConstantExtent(*site.block().iter_vars[static_cast<size_t>(iter)]) == 1;
  };
  std::vector<int> of_loops = iters;
  std::erase_if(of_loops, is_unit);
  std::erase_if(of_dims, is_unit);
  return of_loops == of_dims;
}

ThreadShare ShareOf(const ScheduleState& state, const BlockSite& site) {
  if (!IsInjective(state, site) || site.loops.empty()) return {};
  std::vector<int> iters;
  for (const For& loop : site.loops) {
    const auto& values = site.realize->iter_values;
    const auto own =
        std::ranges::find_if(values, [&](const PrimExpr& value) { return value.get() == loop->var.get(); });
    if (own == values.end()) return {};
    iters.push_back(static_cast<int>(own - values.begin()));
  }
  const auto extent_of = [&](int iter) { return ConstantExtent(*site.block().iter_vars[static_cast<size_t>(iter)]); };
  const auto elements = [&](const std::vector<int>& of) -> std::optional<int64_t> {
    int64_t count = 1;
    for (const int iter : of) {
      const std::optional<int64_t> extent = extent_of(iter);
      if (!extent || __builtin_mul_overflow(count, *extent, &count)) return {};
    }
    return count;
  };
  Contiguity contiguity(site);
  const std::vector<std::vector<int>> runs = contiguity.Runs(iters);
  const int last = contiguity.Innermost(runs.back());
  const std::optional<int64_t> all = elements(iters), row = elements(runs.back());
  // Whether every access moves with neighbours by one or not at all, as long as they are in one row.
  bool is_of_vectors = !ReadsUnderCondition(site) && !contiguity.Gathers(last);
  for (const LinearAccess& access : contiguity.accesses()) {
    const std::optional<int64_t> step = contiguity.Step(access, last);
    if (access.load == nullptr && step != 1) return {};
    is_of_vectors &= step && (*step == 1 || *step == 0);
  }
  // What is read once for each element decides, beside what is stored.
  int64_t bytes = BytesOf(StoreOf(site).buffer->dtype);
  bool gathers = false;
  for (const LoadUse& use : LoadsOf(site)) {
    bool is_everywhere = true;
    for (const int iter : iters) is_everywhere &= use.uses[static_cast<size_t>(iter)] || extent_of(iter) == 1;
    if (is_everywhere) bytes = std::max(bytes, BytesOf(use.load->buffer->dtype));
    for (const PrimExpr& index : use.load->indices) gathers |= ReadsMemory(index);
  }
  ThreadShare share{std::max<int64_t>(kBytesStored / bytes, 1)};
  const auto are_vectors = [&] { return is_of_vectors && (runs.size() == 1 || (row && *row % share.lanes == 0)); };
  while (share.lanes > 1 && all && *all / share.lanes < kEnoughThreads) share.lanes /= 2;
  int64_t vectors = share.lanes;
  while (share.lanes > 1 && !are_vectors()) share.lanes /= 2;
  std::swap(vectors, share.lanes);
  if (vectors >= std::min(share.lanes, kMostSingleLanes)) return {vectors};
  if (!StoresInOrder(site, iters)) return {vectors};
  share.lanes = std::min(share.lanes, kMostSingleLanes);
  const int64_t terms = CountNodes(StoreOf(site).value);
  while (share.lanes > vectors && terms * share.lanes > kMostSingleTerms) share.lanes /= 2;
  // What places are read from memory, too, waits twice.
  if (gathers && all && *all % share.lanes == 0 && *all / share.lanes >= 2 * kEnoughThreads) share.vectors = 2;
  return share;
}

}  // namespace

Match<> MatchesCudaThreads(const ScheduleState& state, const BlockSite& site, const Target&) {
  if (IsBoundToThreads(site)) return Declined{"it is bound to threads"};
  if (!state.IsRegular(site.block().name)) return Declined{"its bindings are not simple"};
  return Taken{};
}

std::vector<BlockName> ApplyCudaThreads(Schedule& schedule, const BlockSite& site, const Target&) {
  const auto [lanes, vectors_of_thread] = ShareOf(schedule.state(), site);
  const BlockName& name = site.block().name;
  const BlockRV block = schedule.GetBlock(name);
  const LoopRVs loops = schedule.GetLoops(block);
  std::vector<LoopRV> spatial, others;
  for (size_t i = 0; i < site.loops.size(); ++i)
    (IsSpatialLoop(site, site.loops[i]) ? spatial : others).push_back(loops[i]);
  if (spatial.empty()) spatial.push_back(schedule.AddUnitLoop(block));
  std::vector<LoopRV> order = spatial;
  order.insert(order.end(), others.begin(), others.end());
  if (order.size() > 1) schedule.Reorder(order);
  const LoopRV fused = spatial.size() > 1 ? schedule.Fuse(spatial) : spatial[0];
  // Within an iteration that holds loops of its own others may be independent, too.
  if (ir::As<ir::BufferStoreNode>(site.block().body) == nullptr) {
    schedule.Parallel(fused);
    return {name};
  }
  const auto extent = ir::AsConstInt(schedule.Loop(fused).loop->extent);
  const int64_t threads = extent ? std::clamp<int64_t>(*extent, 1, kThreadsOfBlock) : kThreadsOfBlock;
  // A sum starts in front of its loops, not in their first iteration.
  if (site.block().init && !others.empty()) schedule.DecomposeReduction(block, others.front());
  if (lanes == 1) {
    const LoopRVs parts = schedule.Split(fused, {{}, threads});
    schedule.Bind(parts[0], "blockIdx.x");
    schedule.Bind(parts[1], "threadIdx.x");
    return {name};
  }
  // A condition that ends the grid is one for all lanes where they divide the result.
  const bool divides = arith::Analyzer().ProveDivisible(schedule.Loop(fused).loop->extent, lanes);
  const LoopRVs vectors = divides ? schedule.Split(fused, {kRest, lanes}) : LoopRVs();
  if (vectors_of_thread > 1) {
    const LoopRVs parts = schedule.Split(vectors[0], {kRest, vectors_of_thread, threads});
    schedule.Reorder({parts[2], parts[1]});
    schedule.Bind(parts[0], "blockIdx.x");
    schedule.Bind(parts[2], "threadIdx.x");
    schedule.Unroll(parts[1]);
    schedule.Vectorize(vectors[1]);
    return {name};
  }
  LoopRVs parts =
      divides ? schedule.Split(vectors[0], {kRest, threads}) : schedule.Split(fused, {kRest, threads, lanes});
  schedule.Bind(parts[0], "blockIdx.x");
  schedule.Bind(parts[1], "threadIdx.x");
  schedule.Vectorize(divides ? vectors[1] : parts[2]);
  return {name};
}

}  // namespace ingot::schedule
