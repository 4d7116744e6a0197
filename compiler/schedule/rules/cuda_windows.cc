// The rule for short reductions of many elements on CUDA, as depthwise convolution and pooling: a thread for each element
// of the last consumer, which reduces in order into a register and writes the consumers' value. What is read through
// padding or another stage that only moves elements is read where it lies; the window's taps are unrolled where they are
// few, so that their weights and conditions are read and computed at once. Threads lie along the result's last axis:
// neighbours read neighbours, and caches hold what windows share. A thread has several elements along another axis with
// which windows move, so that it reads once what they share.
#include <algorithm>

#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/cuda_product.h"
#include "compiler/schedule/rules/epilogue.h"
#include "compiler/schedule/rules/rules.h"
#include "compiler/target/cuda.h"

namespace ingot::schedule {
namespace {

constexpr int64_t kThreadsOfWindows = 8 * kCudaWarpThreads;
// Taps that are unrolled: of windows along every axis, and others.
constexpr int64_t kMostTapsAtOnce = 64, kMostOtherTapsAtOnce = 32;
// Words of the taps of a thread.
constexpr int64_t kMostWordsOfTaps = 400;
// Elements of a thread, of long windows too, and the threads that are worth more than that.
constexpr int64_t kRowsOfThread = 4, kRowsOfLongWindows = 8, kLongWindow = 16, kThreadsThatFill = 32 << 10;

int64_t MostTaps(const BlockSite& site) {
  const std::vector<WindowAxis> axes = WindowAxes(site);
  const bool is_window = std::ranges::all_of(ReduceIters(site), [&](int iter) {
    return ConstantExtent(*site.block().iter_vars[static_cast<size_t>(iter)]) == 1 ||
           std::ranges::any_of(axes, [&](const WindowAxis& axis) { return axis.reduced == iter; });
  });
  return is_window ? kMostTapsAtOnce : kMostOtherTapsAtOnce;
}

// The dimension along which a thread has several elements, and how many.
struct ThreadRows {
  size_t dimension = 0;
  int64_t count = 1;
};
ThreadRows ChooseRows(const BlockSite& site) {
  const auto& iters = site.block().iter_vars;
  const auto extent_of = [&](int iter) { return ConstantExtent(*iters[static_cast<size_t>(iter)]); };
  ThreadRows rows;
  int64_t taps = 1, results = 1;
  for (const int iter : ReduceIters(site)) {
    const std::optional<int64_t> extent = extent_of(iter);
    if (!extent || __builtin_mul_overflow(taps, *extent, &taps) || taps > MostTaps(site)) return {};
  }
  for (const int iter : SpatialIters(site)) {
    if (__builtin_mul_overflow(results, extent_of(iter).value_or(kThreadsThatFill), &results)) return {};
  }
  const size_t rank = StoreOf(site).indices.size();
  for (const WindowAxis& axis : WindowAxes(site)) {
    for (size_t d = 0; d + 1 < rank; ++d) {
      if (IterOfDimension(site, d) != axis.iter) continue;
      rows = {d, taps >= kLongWindow ? kRowsOfLongWindows : kRowsOfThread};
      while (rows.count > 1 && rows.count > extent_of(axis.iter).value_or(rows.count)) rows.count /= 2;
    }
  }
  const int64_t words = (StoreOf(site).buffer->dtype.bits + 31) / 32;
  while (rows.count > 1 && (results / rows.count < kThreadsThatFill || taps * rows.count * words > kMostWordsOfTaps)) {
    rows.count /= 2;
  }
  return rows;
}

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
  const int64_t most_taps = MostTaps(site);
  const ThreadRows rows = ChooseRows(site);
  const LoopRVs of_out = s.GetLoops(out);
  if (!s.status().ok()) return handled;
  std::vector<LoopRV> around(of_out.begin(), of_out.end());
  LoopRV of_thread;
  if (rows.count > 1 && rows.dimension < around.size()) {
    const LoopRVs parts = s.Split(around[rows.dimension], {kRest, rows.count});
    around[rows.dimension] = parts[0];
    of_thread = parts[1];
    std::vector<LoopRV> order = around;
    order.push_back(of_thread);
    s.Reorder(order);
  }
  const LoopRV fused = around.size() > 1 ? s.Fuse(around) : around.front();
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
    taps = count && taps <= most_taps && *count <= most_taps ? taps * *count : most_taps + 1;
  }
  if (!reducing.empty()) {
    std::vector<LoopRV> order = reducing;
    order.insert(order.end(), spatial.begin(), spatial.end());
    if (order.size() > 1) s.Reorder(order);
    const BlockRV start = s.DecomposeReduction(reduction, reducing.front());
    if (taps <= most_taps) {
      for (const LoopRV loop : reducing) s.Unroll(loop);
    }
    if (!s.IsVoid(of_thread)) {
      for (const LoopRV loop : spatial) s.Unroll(loop);
      for (const InnerLoop& inner : InnerLoops(s, start, parts[1])) s.Unroll(inner.loop);
    }
  }
  if (!s.IsVoid(of_thread)) s.Unroll(of_thread);
  s.Bind(parts[0], "blockIdx.x");
  s.Bind(parts[1], "threadIdx.x");
  return handled;
}

}  // namespace ingot::schedule
