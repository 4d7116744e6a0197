// Large matrix products of float16 or bfloat16 with sums in float32 by the matrix instructions of compute capability 9.0
// that four warps run together and that read both factors from shared memory (wgmma): those products of cuda_mma whose
// sizes are known, whose rows are aligned, and that take less time so (cuda_mma_forms). They look as cuda_mma makes them,
// with other tiles:
//
//   for block = (batch, rows, columns):                    blockIdx.x
//     for thread:  its sums = 0
//     for k_outer:
//       for thread:  its 16 bytes, some times, of the tile of a go into shared memory
//       for thread:  those of the tile of b
//       for thread:  its sums += a * b                      by two groups of four warps, each with half of the rows
//     for thread:  its sums go out, through the element-wise consumers
//
// In shared memory both tiles have rows of 64 elements, along k or, where the factor's own side is its last axis, along
// that one, in panels of 64.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "compiler/schedule/device_loops.h"
#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/cuda_mma.h"
#include "compiler/schedule/rules/cuda_product.h"
#include "compiler/schedule/rules/epilogue.h"
#include "compiler/schedule/rules/rules.h"
#include "compiler/target/cuda.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// Elements of 16 bytes, and of a row of a tile in shared memory, which is also the summands of a tile.
constexpr int64_t kWgmmaChunk = 8, kWgmmaTileRow = 64;
// Four warps have 64 rows of an instruction: each warp 16, a thread two of them that lie 8 apart, of each 8 columns two
// neighbours.
constexpr int64_t kWgmmaRows = 64, kWgmmaWarps = 4, kWgmmaHalves = 2, kWgmmaMatrix = 8;
constexpr int64_t kWgmmaThreadsOfRow = 4, kWgmmaNeighbours = 2;
constexpr int64_t kWgmmaGroups = 2;  // of four warps, of a block
constexpr int64_t kWgmmaThreads = kWgmmaGroups * kWgmmaWarps * kCudaWarpThreads;
constexpr int64_t kWgmmaMostStages = 6;

class CudaWgmmaBuilder {
 public:
  CudaWgmmaBuilder(Schedule& schedule, const BlockSite& site, const MmaForm& usual)
      : s_(schedule),
        reduction_(s_.GetBlock(site.block().name)),
        handled_{site.block().name},
        product_(*FindMmaProduct(site)) {
    SetExtents(site);
    rows_ = s_.Choose("cuda_wgmma.rows", usual.rows, {128, 256});
    // Four stages of more rows and columns together do not fit.
    const std::vector<int64_t> columns = rows_ == 256 ? std::vector<int64_t>{128} : std::vector<int64_t>{128, 192, 256};
    columns_ = s_.Choose("cuda_wgmma.columns", std::min(usual.columns, columns.back()), columns);
    const int64_t most_stages = rows_ + columns_ > 256 ? 4 : kWgmmaMostStages;
    stages_ = s_.Choose("cuda_wgmma.stages", std::min(usual.stages, most_stages), {3, 4, kWgmmaMostStages});
    stages_ = std::min(stages_, most_stages);
    std::vector<int64_t> candidates;
    for (int64_t i = 1; i <= usual.parts; i *= 2) candidates.push_back(i);
    parts_ = s_.Choose("cuda_wgmma.parts", usual.parts, std::move(candidates));
    groups_of_columns_ = rows_ == kWgmmaRows ? kWgmmaGroups : 1;
  }

  // Of a product of matrices that fuse_einsum made, in tiles of this form.
  CudaWgmmaBuilder(Schedule& schedule, BlockRV product, const MmaForm& form)
      : s_(schedule),
        reduction_(product),
        rows_(form.rows),
        columns_(form.columns),
        stages_(form.stages),
        parts_(form.parts),
        panel_(form.panel) {
    if (!s_.status().ok()) return;
    const BlockSite site = s_.Block(product);
    handled_ = {site.block().name};
    product_ = *FindMmaProduct(site);
    SetExtents(site);
    has_copies_ = true;
    groups_of_columns_ = rows_ == kWgmmaRows ? kWgmmaGroups : 1;
  }
  // Loops around those of rows and columns stay as they are; those of parts of the sum are bound.
  std::vector<BlockName> BuildTiles(BlockRV out) {
    if (parts_ > 1) out = SplitSum(out);
    const LoopRVs all = s_.GetLoops(out);
    if (!s_.status().ok()) return handled_;
    MmaLoops loops{{}, all[all.size() - 2], all.back(), {}};
    if (parts_ > 1) loops.batch = {all.begin(), all.end() - 2};
    BuildTiles(loops);
    return handled_;
  }

  std::vector<BlockName> Build() {
    Pad();
    const BlockRV out = WriteBack(s_, reduction_, handled_);
    if (parts_ > 1) return BuildTiles(out);
    if (!s_.status().ok()) return handled_;
    const BlockSite out_site = s_.Block(out);
    BuildTiles(MmaLoopsOf(s_, out, LoopRV{}, IterOfDimension(out_site, m_dimension_),
                          IterOfDimension(out_site, n_dimension_)));
    return handled_;
  }

 private:
  // Gives parts of the sum to different blocks, and returns the block that writes the parts.
  BlockRV SplitSum(BlockRV out) {
    const BlockRV copy = SplitMmaSum(s_, reduction_, product_, parts_, out, handled_);
    ++m_dimension_, ++n_dimension_;
    return copy;
  }
  void SetExtents(const BlockSite& site) {
    const auto& iters = site.block().iter_vars;
    for (const int iter : {product_.m, product_.n, product_.k}) {
      extents_.push_back(ConstantExtent(*iters[static_cast<size_t>(iter)]));
    }
    const BufferStoreNode& store = StoreOf(site);
    for (size_t d = 0; d < store.indices.size(); ++d) {
      if (IterOfDimension(site, d) == product_.m) m_dimension_ = d;
      if (IterOfDimension(site, d) == product_.n) n_dimension_ = d;
    }
  }

  // By the loops around the block that writes the result.
  void BuildTiles(const MmaLoops& loops) {
    const MmaTiles tiles = CutMmaTiles(s_, reduction_, loops, rows_, columns_);
    BuildSums(tiles.columns);
    const bool is_whole = parts_ > 1 || *extents_[1] % columns_ == 0;
    UnrollOwnLoops(s_, Spread(tiles.own_rows, tiles.own_columns, {}), is_whole && n_dimension_ > m_dimension_);
    BindTiles(s_, loops.batch, tiles.rows, tiles.columns);
  }

  // Pads rows, columns and k to whole tiles, where they are not.
  void Pad() {
    const std::array<int64_t, 3> tiles = {rows_, columns_, kWgmmaTileRow * parts_};
    bool is_padded = false;
    for (size_t i = 0; i < 3; ++i) is_padded |= !extents_[i] || *extents_[i] % tiles[i] != 0;
    if (is_padded) pads_ = PadMmaProduct(s_, reduction_, product_, tiles);
  }

  // Below the loop over tiles: the start of the sums, the tiles of both factors, and the sums.
  void BuildSums(LoopRV tile) {
    const auto [batch, m, n, k] = MmaLoopsOf(s_, reduction_, tile, product_.m, product_.n, product_.k);
    const LoopRVs depth = s_.Split(k, {kRest, kWgmmaTileRow});
    std::vector<LoopRV> order = batch;
    order.insert(order.end(), {depth[0], depth[1], m, n});
    s_.Reorder(order);
    Stage(product_.a_read, product_.m, rows_, depth[0]);
    Stage(product_.b_read, product_.n, columns_, depth[0]);
    SpreadSums();
    const BlockRV start = s_.DecomposeReduction(reduction_, depth[0]);
    handled_.push_back(s_.Block(start).block().name);
    const HandleList<InnerLoop> around = InnerLoops(s_, start, tile);  // batches, then its own rows and columns
    UnrollOwnLoops(s_, Spread(around[batch.size()].loop, around[batch.size() + 1].loop, {}), true);
    Spread(m, n, {depth[1]});
    s_.Annotate(depth[1], kGroupProduct, int64_t{1});
    s_.Annotate(depth[0], kPipelineStages, stages_);
  }

  // Spreads the rows and columns of a tile over the threads, each with the loops `inside` around its own, which it
  // returns.
  std::vector<LoopRV> Spread(LoopRV m, LoopRV n, std::vector<LoopRV> inside) {
    const int64_t of_rows = kWgmmaGroups / groups_of_columns_;
    const LoopRVs rows =
        s_.Split(m, {of_rows, rows_ / (of_rows * kWgmmaRows), kWgmmaWarps, kWgmmaHalves, kWgmmaMatrix});
    const LoopRVs columns = s_.Split(n, {groups_of_columns_, columns_ / (groups_of_columns_ * kWgmmaTileRow),
                                         kWgmmaTileRow / kWgmmaMatrix, kWgmmaThreadsOfRow, kWgmmaNeighbours});
    const std::vector<LoopRV> of_thread = {rows[0], columns[0], rows[2], rows[4], columns[3]};
    const std::vector<LoopRV> own = {rows[1], rows[3], columns[1], columns[2], columns[4]};
    std::vector<LoopRV> order = of_thread;
    order.insert(order.end(), inside.begin(), inside.end());
    order.insert(order.end(), own.begin(), own.end());
    s_.Reorder(order);
    s_.Bind(s_.Fuse(of_thread), "threadIdx.x");
    return own;
  }
  // Puts what a thread has into dimensions of its own of the sums, so that it is a box of them.
  void SpreadSums() {
    if (!s_.status().ok()) return;
    const auto rank = static_cast<int64_t>(StoreOf(s_.Block(reduction_)).indices.size());
    constexpr int64_t kWarpRows = kWgmmaHalves * kWgmmaMatrix;
    s_.TransformLayout(reduction_, 0, MakeIndexMap(rank, [&](std::vector<PrimExpr> i) {
                         const PrimExpr row = i[m_dimension_], column = i[n_dimension_];
                         i[m_dimension_] =
                             FloorMod(FloorDiv(row, Int64(kWarpRows)), Int64(kWgmmaWarps)) * Int64(kWgmmaMatrix) +
                             FloorMod(row, Int64(kWgmmaMatrix));
                         i[n_dimension_] = FloorDiv(column, Int64(kWgmmaMatrix));
                         i.insert(i.begin(), {FloorDiv(row, Int64(kWgmmaRows)),
                                              FloorMod(FloorDiv(row, Int64(kWgmmaMatrix)), Int64(kWgmmaHalves))});
                         i.push_back(FloorMod(column, Int64(kWgmmaMatrix)));
                         return i;
                       }));
  }

  // The tile of a factor in shared memory, copied by all threads in each iteration of the loop; padding becomes a
  // condition of the copy. `iter` is the factor's other iteration variable than k, of which the tile has `side` values.
  void Stage(int64_t read, int iter, int64_t side, LoopRV loop) {
    if (!s_.status().ok()) return;
    const BlockSite site = s_.Block(reduction_);
    const BufferRegion& source = site.block().reads[static_cast<size_t>(read)];
    const PrimVar& var = site.block().iter_vars[static_cast<size_t>(iter)]->var;
    const auto [dimension, width] = MmaPanelsOf(source, var);
    const bool has_side_last = source.region.back().min.get() == var.get();
    const BlockRV staged = s_.CacheRead(reduction_, read, "shared");
    const std::optional<BlockSite> padding = s_.state().OnlyWriter(source.buffer);
    if (padding && (has_copies_ || pads_.contains(padding->block().name))) {
      s_.ComputeInline(s_.GetBlock(padding->block().name));
    }
    s_.ComputeAt(staged, loop);
    handled_.push_back(s_.Block(staged).block().name);
    if (has_side_last) {  // panels one behind the other
      const auto rank = static_cast<int64_t>(source.buffer->shape.size());
      s_.TransformLayout(staged, 0, MakeIndexMap(rank, [&](std::vector<PrimExpr> i) {
                           const PrimExpr place = i.back();
                           i.back() = FloorMod(place, Int64(kWgmmaTileRow));
                           i.insert(i.begin(), FloorDiv(place, Int64(kWgmmaTileRow)));
                           return i;
                         }));
    }
    if (width != 0) {  // narrower ones side by side in those
      const auto rank = static_cast<int64_t>(source.buffer->shape.size());
      s_.TransformLayout(staged, 0, MakeIndexMap(rank, [panels = dimension, of = width](std::vector<PrimExpr> i) {
                           const PrimExpr number = i[panels];
                           i.back() = FloorMod(number, Int64(kWgmmaTileRow / of)) * Int64(of) + i.back();
                           i.erase(i.begin() + static_cast<std::ptrdiff_t>(panels));
                           i.insert(i.begin(), FloorDiv(number, Int64(kWgmmaTileRow / of)));
                           return i;
                         }));
    }
    std::vector<LoopRV> all;
    for (const InnerLoop& entry : InnerLoops(s_, staged, loop)) all.push_back(entry.loop);
    if (!s_.status().ok()) return;
    if (panel_ != 0 && iter == product_.n) {
      all = InPanels(s_, all, panel_);
    } else if (has_side_last) {
      const LoopRVs panels = s_.Split(all.back(), {kRest, kWgmmaTileRow});
      all.back() = panels[1];
      all.insert(all.begin(), panels[0]);
      s_.Reorder(all);
    }
    const LoopRVs parts =
        s_.Split(s_.Fuse(all), {kWgmmaTileRow * side / (kWgmmaThreads * kWgmmaChunk), kWgmmaThreads, kWgmmaChunk});
    s_.Reorder({parts[1], parts[0], parts[2]});
    s_.Bind(parts[1], "threadIdx.x");
    s_.Unroll(parts[0]);
    s_.Annotate(parts[2], kChunkCopy, int64_t{1});
  }

  Schedule& s_;
  BlockRV reduction_;
  std::vector<BlockName> handled_;
  MmaProduct product_;
  std::vector<std::optional<int64_t>> extents_;  // of rows, columns, k
  size_t m_dimension_ = 0, n_dimension_ = 0;     // of the result
  int64_t rows_ = 1, columns_ = 1, stages_ = 2, parts_ = 1;
  int64_t groups_of_columns_ = 1;
  int64_t panel_ = 0;  // where it has copies: the width of those that its columns come from; 0: none
  std::set<BlockName> pads_;
  bool has_copies_ = false;  // of its factors, in any case
};

// Those of the block's product, where its form is one that this rule takes.
Match<MmaSizes> FindWgmmaSizes(const BlockSite& site) {
  const Match<MmaProduct> product = FindMmaProduct(site);
  if (!product) return product.declined();
  if (product->dtype.bits != 16) return Declined{"it is no float32 sum of products of 16-bit floats"};
  const auto& iters = site.block().iter_vars;
  int64_t batch = 1;
  std::vector<int64_t> extents;
  for (int iter = 0; iter < static_cast<int>(iters.size()); ++iter) {
    const std::optional<int64_t> extent = ConstantExtent(*iters[static_cast<size_t>(iter)]);
    if (!extent) return Declined{"one of its sizes is not known"};
    if (iter != product->m && iter != product->n && iter != product->k) batch *= *extent;
    extents.push_back(*extent);
  }
  const auto extent_of = [&](int iter) { return extents[static_cast<size_t>(iter)]; };
  for (const int64_t read : {product->a_read, product->b_read}) {
    const BufferRegion& factor = site.block().reads[static_cast<size_t>(read)];
    if (AsConstInt(factor.buffer->shape.back()).value_or(1) % kWgmmaChunk != 0) {
      return Declined{"rows of one of its factors are not aligned"};
    }
  }
  if (extent_of(product->k) <= kWgmmaTileRow)
    return Declined{"its summands are one tile, so that nothing is copied ahead"};
  if (extent_of(product->m) <= kWgmmaRows) return Declined{"its rows are those of half a tile, at most"};
  return MmaSizes{.batch = batch,
                  .rows = extent_of(product->m),
                  .columns = extent_of(product->n),
                  .summands = extent_of(product->k),
                  .allows_groups = true};
}

}  // namespace

Match<> MatchesAnyCudaWgmma(const ScheduleState& state, const BlockSite& site, const Target& target) {
  const CudaArch* arch = FindCudaArch(target);
  if (arch == nullptr || !arch->is_exact) return Declined{"the target has no matrix instructions of four warps"};
  const Match<> reduction = AsReduction(state, site);
  if (!reduction) return reduction;
  if (IsBoundToThreads(site)) return Declined{"it is bound to threads"};
  const Match<MmaSizes> sizes = FindWgmmaSizes(site);
  if (!sizes) return sizes.declined();
  return Taken{};
}

Match<> MatchesCudaWgmma(const ScheduleState& state, const BlockSite& site, const Target& target) {
  const Match<> any = MatchesAnyCudaWgmma(state, site, target);
  if (!any || ChooseMmaForm(*FindWgmmaSizes(site)).by_groups) return any;
  return Declined{"tiles of single warps are likely to be as fast"};
}

void BuildWgmmaTiles(Schedule& s, BlockRV product, BlockRV out, const MmaForm& form, std::vector<BlockName>& handled) {
  const std::vector<BlockName> blocks = CudaWgmmaBuilder(s, product, form).BuildTiles(out);
  handled.insert(handled.end(), blocks.begin(), blocks.end());
}

std::vector<BlockName> ApplyCudaWgmma(Schedule& s, const BlockSite& site, const Target&) {
  const MmaForm usual = ChooseMmaForm(*FindWgmmaSizes(site));
  // Another one where the rule is asked for whatever the sizes are.
  return CudaWgmmaBuilder(s, site, usual.by_groups ? usual : MmaForm{true, 256, 128, 128, 4}).Build();
}

}  // namespace ingot::schedule
