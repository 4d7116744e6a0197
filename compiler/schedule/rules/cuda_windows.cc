// The rule for short reductions of many elements on CUDA, as depthwise convolution and pooling: a thread for each element
// of the last consumer, which reduces in order into a register and writes the consumers' value. What is read through
// padding or another stage that only moves elements is read where it lies; the window's taps are unrolled where they are
// few, so that their weights and conditions are read and computed at once. Threads lie along the result's last axis:
// neighbours read neighbours, and caches hold what windows share.
#include <algorithm>

#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/cuda_product.h"
#include "compiler/schedule/rules/epilogue.h"
#include "compiler/schedule/rules/rules.h"
#include "compiler/target/cuda.h"

namespace ingot::schedule {
namespace {

constexpr int64_t kThreadsOfWindows = 8 * kCudaWarpThreads;
constexpr int64_t kMostTapsAtOnce = 32;

}  // namespace

Match<> MatchesCudaWindows(const ScheduleState& state, const BlockSite& site, const Target&) {
  const Match<> reduction = AsReduction(state, site);
  if (!reduction) return reduction;
  if (IsBoundToThreads(site)) return Declined{"it is bound to threads"};
  if (!state.IsRegular(site.block().name)) return Declined{"its bindings are not simple"};
  if (SpatialIters(site).empty()) return Declined{"it has one result"};
  return Taken{};
}

std::vector<BlockName> ApplyCudaWindows(Schedule& s, const BlockSite& site, const Target&) {
  std::vector<BlockName> handled{site.block().name};
  const BlockRV reduction = s.GetBlock(site.block().name);
  InlineMoves(s, reduction);
  const BlockRV out = WriteBack(s, reduction, handled);
  const LoopRVs loops = s.GetLoops(out);
  const LoopRV fused = loops.size() > 1 ? s.Fuse(loops) : loops.front();
  if (!s.status().ok()) return handled;
  const auto extent = ir::AsConstInt(s.Loop(fused).loop->extent);
  const int64_t threads = extent ? std::clamp<int64_t>(*extent, 1, kThreadsOfWindows) : kThreadsOfWindows;
  const LoopRVs parts = s.Split(fused, {kRest, threads});
  s.ComputeAt(reduction, parts[1]);
  std::vector<LoopRV> spatial, reducing;
  int64_t taps = 1;  // 0: not known, or many
  if (!s.status().ok()) return handled;
  const BlockSite below = s.Block(reduction);
  for (const InnerLoop& inner : InnerLoops(s, reduction, parts[1])) {
    (Reduces(below, inner) ? reducing : spatial).push_back(inner.loop);
    if (!Reduces(below, inner) || !s.status().ok()) continue;
    const auto count = ir::AsConstInt(s.Loop(inner.loop).loop->extent);
    taps = count && taps <= kMostTapsAtOnce && *count <= kMostTapsAtOnce ? taps * *count : kMostTapsAtOnce + 1;
  }
  if (!reducing.empty()) {
    std::vector<LoopRV> order = spatial;
    order.insert(order.end(), reducing.begin(), reducing.end());
    if (order.size() > 1) s.Reorder(order);
    s.DecomposeReduction(reduction, reducing.front());
    if (taps <= kMostTapsAtOnce) {
      for (const LoopRV loop : reducing) s.Unroll(loop);
    }
  }
  s.Bind(parts[0], "blockIdx.x");
  s.Bind(parts[1], "threadIdx.x");
  return handled;
}

}  // namespace ingot::schedule
