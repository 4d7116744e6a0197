// The rule for products of a matrix with one vector or a few on CUDA, after TVM DLight's GEMV and LowBatchGEMV, where the
// matrix lies in rows along the columns of the result: out[m, n] = sum over k of x[m, k] * w[k, n]. They read the matrix
// once, so that all is about its memory. A block of threads has the sums of a few columns; a thread reads four columns of
// every 64th (or 128th) row at once and adds up in registers. Then the threads' sums go into shared memory, where groups
// of eight of them are added up, then the groups, in front of the consumers.
#include <algorithm>

#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/cuda_product.h"
#include "compiler/schedule/rules/epilogue.h"
#include "compiler/schedule/rules/rules.h"
#include "compiler/target/cuda.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

constexpr int64_t kMostVectors = 7;
constexpr int64_t kThreadsOfVectors = 8 * kCudaWarpThreads;
constexpr int64_t kColumnsOfThread = 4, kGroupOfSums = 8;
// Columns of a block: many where these are enough blocks to fill a GPU, or it is not known.
constexpr int64_t kFewColumns = 8, kManyColumns = 16, kBlocksThatFill = 132;
constexpr int64_t kLeastSummands = 64;
// Rows of the matrix that a thread reads at once.
constexpr int64_t kRowsAtOnce = 4;

// Spreads a loop over the threads of a block, in rounds.
void BindRounds(Schedule& s, LoopRV loop, int64_t threads) {
  s.Bind(s.Split(loop, {kRest, threads})[1], "threadIdx.x");
}

}  // namespace

Match<> MatchesCudaVectorProduct(const ScheduleState& state, const BlockSite& site, const Target&) {
  const Match<> reduction = AsReduction(state, site);
  if (!reduction) return reduction;
  if (IsBoundToThreads(site)) return Declined{"it is bound to threads"};
  if (!state.IsRegular(site.block().name)) return Declined{"its bindings are not simple"};
  const Match<CudaProduct> product = FindCudaProduct(site);
  if (!product) return product.declined();
  if (CountValues(site, product->rows).value_or(kMostVectors + 1) > kMostVectors) return Declined{"it has many rows"};
  if (CountValues(site, product->sum).value_or(kLeastSummands) < kLeastSummands ||
      CountValues(site, product->columns).value_or(kFewColumns) < kFewColumns) {
    return Declined{"it has few columns or summands"};
  }
  const auto loads = FactorsOfProduct(MatchReduction(site.block())->source);
  const PrimExpr& last = (*loads)[static_cast<size_t>(product->column_factor)]->indices.back();
  const auto uses = [&](const ProductAxis& axis) {
    return UsesVar(last, site.block().iter_vars[static_cast<size_t>(axis.iter)]->var);
  };
  if (!uses(product->columns.back()) || std::ranges::any_of(product->sum, uses)) {
    return Declined{"its matrix does not lie along the columns"};
  }
  return Taken{};
}

std::vector<BlockName> ApplyCudaVectorProduct(Schedule& s, const BlockSite& site, const Target&) {
  const CudaProduct axes = *FindCudaProduct(site);
  std::vector<BlockName> handled{site.block().name};
  const BlockRV total = s.GetBlock(site.block().name);
  const auto columns = CountValues(site, axes.columns);
  const auto batch = CountValues(site, axes.batch);
  const bool has_few = columns && batch && *batch * (*columns / kManyColumns) < kBlocksThatFill;
  const int64_t of_block = has_few ? kFewColumns : kManyColumns;
  int64_t shares = kThreadsOfVectors * kColumnsOfThread / of_block;
  while (CountValues(site, axes.sum).value_or(2 * shares) < 2 * shares) shares /= 2;
  const int64_t threads = shares * of_block / kColumnsOfThread;
  const BlockRV last = InlineEpilogue(s, total, handled);
  const BlockRV out = FuseProduct(s, total, axes, {shares, 1, of_block}, last);
  if (!s.status().ok()) return handled;
  // The factors are read where they are.
  std::vector<BlockRV> copies;
  const auto loads = FactorsOfProduct(MatchReduction(s.Block(total).block())->source);
  for (const BufferLoadNode* load : *loads) {
    copies.push_back(s.GetBlock(s.state().OnlyWriter(load->buffer)->block().name));
  }
  for (const BlockRV copy : copies) s.ComputeInline(copy);
  InlineMoves(s, total);
  FuseResult(s, out, axes);
  // Shares of the sum, then groups of shares.
  const LoopRVs around = s.GetLoops(total);
  const BlockRV share = s.RFactor(s.Split(around[axes.batch.empty() ? 0 : 1], {kRest, shares})[1]);
  const BlockRV group = s.RFactor(s.Split(s.GetLoops(total).back(), {kRest, kGroupOfSums})[1]);
  if (!s.status().ok()) return handled;
  const auto rank = static_cast<int64_t>(StoreOf(s.Block(share)).indices.size());
  std::vector<int64_t> order{rank - 1};
  for (int64_t d = 0; d + 1 < rank; ++d) order.push_back(d);
  s.TransformLayout(share, 0, PermutingMap(order));
  s.TransformLayout(group, 0, PermutingMap(order));
  const BlockRV shared = s.CacheWrite(share, 0, "local");
  s.SetScope(shared, 0, "shared");
  s.SetScope(group, 0, "shared");
  s.SetScope(total, 0, "local");
  for (const BlockRV block : {share, group, shared}) handled.push_back(s.Block(block).block().name);
  // The result, by blocks of threads.
  const LoopRVs loops = s.GetLoops(out);
  if (!s.status().ok()) return handled;
  const LoopRVs tiles = s.Split(loops.back(), {kRest, of_block});
  std::vector<LoopRV> blocks, inner;
  if (!axes.batch.empty()) blocks.push_back(loops[0]);
  if (!axes.rows.empty()) inner.push_back(loops[loops.size() - 2]);
  blocks.push_back(tiles[0]);
  inner.push_back(tiles[1]);
  std::vector<LoopRV> all = blocks;
  all.insert(all.end(), inner.begin(), inner.end());
  s.Reorder(all);
  const LoopRV block = blocks.size() > 1 ? s.Fuse(blocks) : blocks[0];
  const LoopRV element = inner.size() > 1 ? s.Fuse(inner) : inner[0];
  s.ComputeAt(total, element);
  s.ComputeAt(group, block);
  s.ComputeAt(shared, block);
  // A thread's rows of the matrix.
  LoopsBelow below = FindLoopsBelow(s, shared, block);
  if (!s.status().ok()) return handled;
  std::vector<LoopRV> spatial = below.spatial;  // share, batch, rows, columns
  const LoopRVs lanes = s.Split(spatial.back(), {kRest, kColumnsOfThread});
  std::vector<LoopRV> nest{spatial[0], lanes[0]};
  nest.insert(nest.end(), spatial.begin() + 1, spatial.end() - 1);
  nest.push_back(lanes[1]);
  s.Reorder(nest);
  const LoopRV thread = s.Fuse({spatial[0], lanes[0]});
  s.ComputeAt(share, thread);
  s.Bind(thread, "threadIdx.x");
  for (size_t i = 1; i + 1 < spatial.size(); ++i) s.Unroll(spatial[i]);
  // Pairs of sixteen-bit sums would be put together half by half.
  if (StoreOf(site).buffer->dtype.bits >= 32) {
    s.Vectorize(lanes[1]);
  } else {
    s.Unroll(lanes[1]);
  }
  below = FindLoopsBelow(s, share, thread);
  if (!s.status().ok()) return handled;
  const LoopRVs rows = s.Split(below.reducing.front(), {kRest, kRowsAtOnce});
  nest = {rows[0], rows[1]};
  nest.insert(nest.end(), below.spatial.begin(), below.spatial.end());
  s.Reorder(nest);
  const BlockRV start = s.DecomposeReduction(share, rows[0]);
  handled.push_back(s.Block(start).block().name);
  s.Unroll(rows[1]);
  for (const LoopRV loop : below.spatial) s.Unroll(loop);
  for (const InnerLoop& loop : InnerLoops(s, start, thread)) s.Unroll(loop.loop);
  // The groups, and the result.
  below = FindLoopsBelow(s, group, block);
  if (!s.status().ok()) return handled;
  nest = below.spatial;
  nest.insert(nest.end(), below.reducing.begin(), below.reducing.end());
  s.Reorder(nest);
  BindRounds(s, s.Fuse(below.spatial), threads);
  s.DecomposeReduction(group, below.reducing.front());
  below = FindLoopsBelow(s, total, element);
  if (!s.status().ok()) return handled;
  s.DecomposeReduction(total, below.reducing.front());
  s.Unroll(below.reducing.front());
  BindRounds(s, element, threads);
  s.Bind(block, "blockIdx.x");
  return handled;
}

}  // namespace ingot::schedule
