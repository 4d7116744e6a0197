// The rule for everything on CUDA: the block's independent iterations become the threads of one grid, 256 to a block;
// what it reduces over, or does one after the other, stays with the thread. Any block whose loops are its own has such
// a schedule: ranks and sizes do not matter, a grid's last block is cut off by a predicate. Of element-wise blocks that
// have work for many threads, each thread takes 16 bytes of neighbours, where every access moves with them by one or not
// at all: vectors, which whole rows or the whole result consist of; the last one's may be cut off. Those of a block that is more
// than a store are made parallel: which threads run what is in it is decided where it is lowered
// (transform/tensor/bind_threads).
#include <algorithm>

#include "compiler/arith/analyzer.h"
#include "compiler/schedule/rules/contiguity.h"
#include "compiler/schedule/rules/rules.h"
#include "compiler/target/cuda.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

constexpr int64_t kThreadsOfBlock = 8 * kCudaWarpThreads;
// The longest access of a thread, and the threads that are worth more than longer accesses.
constexpr int64_t kBytesOfThread = 16, kEnoughThreads = 32 << 10;

// How many neighbours a thread of an element-wise block takes.
int64_t LanesOf(const ScheduleState& state, const BlockSite& site) {
  if (!IsInjective(state, site) || ReadsUnderCondition(site) || site.loops.empty()) return 1;
  std::vector<int> iters;
  for (const For& loop : site.loops) {
    const auto& values = site.realize->iter_values;
    const auto own =
        std::ranges::find_if(values, [&](const PrimExpr& value) { return value.get() == loop->var.get(); });
    if (own == values.end()) return 1;
    iters.push_back(static_cast<int>(own - values.begin()));
  }
  Contiguity contiguity(site);
  const std::vector<std::vector<int>> runs = contiguity.Runs(iters);
  const int last = contiguity.Innermost(runs.back());
  if (contiguity.Gathers(last)) return 1;
  int64_t bytes = 1;
  for (const LinearAccess& access : contiguity.accesses()) {
    const DataType dtype = access.load != nullptr ? access.load->buffer->dtype : StoreOf(site).buffer->dtype;
    bytes = std::max<int64_t>(bytes, (dtype.bits + 7) / 8);
    const std::optional<int64_t> step = contiguity.Step(access, last);
    if (!step || (*step != 1 && (*step != 0 || access.load == nullptr))) return 1;
  }
  const auto elements = [&](const std::vector<int>& of) -> std::optional<int64_t> {
    int64_t count = 1;
    for (const int iter : of) {
      const std::optional<int64_t> extent = ConstantExtent(*site.block().iter_vars[static_cast<size_t>(iter)]);
      if (!extent || __builtin_mul_overflow(count, *extent, &count)) return {};
    }
    return count;
  };
  const std::optional<int64_t> all = elements(iters), row = elements(runs.back());
  if (runs.size() > 1 && !row) return 1;
  int64_t lanes = kBytesOfThread / bytes;
  while (lanes > 1 && ((all && *all / lanes < kEnoughThreads) || (runs.size() > 1 && *row % lanes != 0))) lanes /= 2;
  return lanes;
}

}  // namespace

Match<> MatchesCudaThreads(const ScheduleState& state, const BlockSite& site, const Target&) {
  if (IsBoundToThreads(site)) return Declined{"it is bound to threads"};
  if (!state.IsRegular(site.block().name)) return Declined{"its bindings are not simple"};
  return Taken{};
}

std::vector<BlockName> ApplyCudaThreads(Schedule& schedule, const BlockSite& site, const Target&) {
  const int64_t lanes = LanesOf(schedule.state(), site);
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
  LoopRVs parts =
      divides ? schedule.Split(vectors[0], {kRest, threads}) : schedule.Split(fused, {kRest, threads, lanes});
  schedule.Bind(parts[0], "blockIdx.x");
  schedule.Bind(parts[1], "threadIdx.x");
  schedule.Vectorize(divides ? vectors[1] : parts[2]);
  return {name};
}

}  // namespace ingot::schedule
