// The rule for long reductions of few elements on CUDA, after TVM DLight's Reduction and GEMV: a block of threads for each
// element. Every thread reduces its share in order, into an element of shared memory; then sqrt(threads) threads reduce
// as many of these each; then one thread the rest, which lowering (transform/tensor/bind_threads) makes the first one.
// Behind each of the three all threads wait for each other.
#include <algorithm>
#include <utility>

#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/rules.h"
#include "compiler/target/cuda.h"

namespace ingot::schedule {
namespace {

// Reductions of fewer elements are left to a thread each, and so are so many results that they alone fill a GPU.
constexpr int64_t kLeastLength = 4 * kCudaWarpThreads;
constexpr int64_t kMostResults = 16 << 10;
// A symbol counts as these: a reduction that may be long is taken for a long one.
constexpr int64_t kUnknownResults = 56, kUnknownLength = 1024;

// The iterations of the block's loops that reduce, or of the others.
int64_t CountIterations(const BlockSite& site, bool reducing) {
  const int64_t unknown = reducing ? kUnknownLength : kUnknownResults;
  int64_t count = 1;
  for (const For& loop : site.loops) {
    if (IsSpatialLoop(site, loop) == reducing) continue;
    if (__builtin_mul_overflow(count, ir::AsConstInt(loop->extent).value_or(unknown), &count)) return INT64_MAX;
  }
  return count;
}

// Spreads a loop of at most `threads` iterations over the threads of a block.
void BindThreads(Schedule& s, LoopRV loop, int64_t threads) {
  if (ir::AsConstInt(s.Loop(loop).loop->extent) == threads) return s.Bind(loop, "threadIdx.x");
  s.Bind(s.Split(loop, {{}, threads})[1], "threadIdx.x");
}

// A block that computes, inside of the loop `outer`, reductions for the values of its innermost spatial loop: these
// become threads, of which each reduces in order.
void BindPartial(Schedule& s, BlockRV block, LoopRV outer, int64_t threads) {
  const auto [spatial, reducing] = FindLoopsBelow(s, block, outer);
  if (spatial.empty()) return;  // a primitive was refused
  std::vector<LoopRV> order = spatial;
  order.insert(order.end(), reducing.begin(), reducing.end());
  if (order.size() > 1) s.Reorder(order);
  if (!reducing.empty()) s.DecomposeReduction(block, reducing.front());
  BindThreads(s, spatial.size() > 1 ? s.Fuse(spatial) : spatial[0], threads);
}

}  // namespace

Match<> MatchesCudaReduction(const ScheduleState& state, const BlockSite& site, const Target&) {
  const Match<> reduction = AsReduction(state, site);
  if (!reduction) return reduction;
  if (IsBoundToThreads(site)) return Declined{"it is bound to threads"};
  if (!state.IsRegular(site.block().name)) return Declined{"its bindings are not simple"};
  if (!MatchReduction(site.block())) return Declined{"it is no reduction by +, *, min or max"};
  if (CountIterations(site, true) < kLeastLength) return Declined{"it reduces a few elements"};
  if (CountIterations(site, false) > kMostResults) return Declined{"its results alone are enough threads"};
  return Taken{};
}

std::vector<BlockName> ApplyCudaReduction(Schedule& s, const BlockSite& site, const Target&) {
  const BlockName& name = site.block().name;
  const BlockRV block = s.GetBlock(name);
  const LoopRV reduced = FuseReducing(s, block);
  // 64 threads for short ones, else 256.
  const int64_t root = CountIterations(site, true) < 1024 ? 8 : 16;
  const int64_t threads = root * root;
  const BlockRV shares = s.RFactor(s.Split(reduced, {{}, threads})[1]);
  const LoopRV last = s.GetLoops(block).back();
  const BlockRV roots = s.RFactor(s.Split(last, {root, root})[1]);
  // One block of threads for each element of the result, with all three inside.
  const LoopRVs around = s.GetLoops(block);
  std::vector<LoopRV> elements;
  for (size_t i = 0; i + 1 < around.size(); ++i) elements.push_back(around[i]);
  LoopRV element;
  if (elements.empty()) {
    element = s.AddUnitLoop(block);
    s.Reorder({element, around.back()});
  } else {
    element = elements.size() > 1 ? s.Fuse(elements) : elements[0];
  }
  s.ComputeAt(roots, element);
  s.ComputeAt(shares, element);
  s.SetScope(shares, 0, "shared");
  s.SetScope(roots, 0, "shared");
  BindPartial(s, shares, element, threads);
  BindPartial(s, roots, element, threads);
  s.DecomposeReduction(block, s.GetLoops(block).back());
  s.Bind(element, "blockIdx.x");
  return {name};
}

}  // namespace ingot::schedule
