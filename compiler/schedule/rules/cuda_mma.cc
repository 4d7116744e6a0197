// Matrix products of float16 or bfloat16 with sums in float32 by the matrix instructions of CUDA: out[.., m, n] = sum
// over k of a[.., m, k] * b[.., k, n], one or a batch of them, with the axes of a and b in any order as long as k or
// their own side is the last one, perhaps in panels; any of the extents may be symbolic. Those of float32 where it is
// permitted that the instructions round factors to tf32 (kTf32Attr).
//
//   for block = (batch, rows, columns):                    blockIdx.x
//     for thread:  its sums = 0                             threadIdx.x, as in the loops below
//     for k_outer:                                          tiles are copied some iterations ahead
//       for thread:  its 16 bytes, some times, of the tile of a go into shared memory
//       for thread:  those of the tile of b
//       for thread:  its sums += a * b                      by all threads of a warp together
//     for thread:  its sums go out, through the element-wise consumers
//
// Which sums a thread has is what the matrix instructions leave to it: of each 16 rows of its warp's part two that lie 8
// apart, of each 8 columns two neighbours. The loops say all of it, so the trace means the same without the annotations,
// which ask code generation for instructions (schedule/device_loops.h).
//
// Rows, columns and k are padded to whole tiles first (pad_einsum): the copies have zeros there. The axis along which a
// factor lies in memory is that of its tile, too, whose rows code generation spreads over the banks (codegen/cuda_tiles.h).
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "compiler/schedule/device_loops.h"
#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/cuda_channels.h"
#include "compiler/schedule/rules/cuda_mma.h"
#include "compiler/schedule/rules/cuda_product.h"
#include "compiler/schedule/rules/epilogue.h"
#include "compiler/schedule/rules/rules.h"
#include "compiler/target/cuda.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

constexpr int64_t kMmaChunkBytes = 16;
// Panels have whole chunks of any dtype.
constexpr int64_t kMmaPanel = 8;
// The rows of one matrix that is loaded, and the threads that share a row of sums, with the neighbours that each has.
constexpr int64_t kMmaMatrixRows = 8, kMmaThreadsOfRow = 4, kMmaNeighbours = 2;
constexpr int64_t kMmaFewest = 16, kMmaFew = 32, kMmaMiddle = 64, kMmaLarge = 128, kMmaHuge = 256;
// Fewer rows, columns or summands than these are no work for tiles: no more rows or columns than a matrix has.
constexpr int64_t kMmaLeastSide = 9, kMmaLeastDepth = 8;

// The load of a factor that is float32, or cast to it; null: it is something else.
const BufferLoadNode* FactorLoad(const PrimExpr& expr) {
  if (const auto* load = As<BufferLoadNode>(expr)) return load;
  const auto* cast = As<CastNode>(expr);
  if (cast == nullptr || cast->dtype != DataType::Float(32)) return nullptr;
  return As<BufferLoadNode>(cast->value);
}

// The width of the panels of which the index is the quotient or the remainder of the variable: whole chunks, of which
// whole ones make a tile. 0: it is none.
int64_t MmaPanelWidth(const PrimExpr& index, BinaryOp op, const PrimVar& var) {
  const auto* binary = As<BinaryNode>(index);
  if (binary == nullptr || binary->op != op || binary->a.get() != var.get()) return 0;
  const int64_t width = AsConstInt(binary->b).value_or(0);
  return width > 0 && width % kMmaPanel == 0 && kMmaFew % width == 0 ? width : 0;
}

}  // namespace

MmaPanels MmaPanelsOf(const BufferRegion& factor, const PrimVar& side) {
  MmaPanels panels;
  for (size_t d = 0; d < factor.region.size(); ++d) {
    const int64_t width = MmaPanelWidth(factor.region[d].min, BinaryOp::kFloorDiv, side);
    if (width != 0) panels = {d, width};
  }
  return panels;
}

std::set<BlockName> PadMmaProduct(Schedule& schedule, BlockRV product, const MmaProduct& axes,
                                  const std::array<int64_t, 3>& multiples) {
  std::set<BlockName> pads;
  if (!schedule.status().ok()) return pads;
  std::vector<int64_t> of_iters(schedule.Block(product).block().iter_vars.size(), 1);
  of_iters[static_cast<size_t>(axes.m)] = multiples[0];
  of_iters[static_cast<size_t>(axes.n)] = multiples[1];
  of_iters[static_cast<size_t>(axes.k)] = multiples[2];
  std::set<BlockName> before;
  for (const BlockSite& block : schedule.state().Blocks()) before.insert(block.block().name);
  schedule.PadEinsum(product, of_iters);
  for (const BlockSite& block : schedule.state().Blocks()) {
    if (!before.contains(block.block().name)) pads.insert(block.block().name);
  }
  return pads;
}

MmaLoops MmaLoopsOf(Schedule& schedule, BlockRV block, LoopRV around, int m, int n, int k) {
  MmaLoops loops;
  for (const InnerLoop& entry : InnerLoops(schedule, block, around)) {
    if (entry.iter >= 0 && entry.iter == m) {
      loops.m = entry.loop;
    } else if (entry.iter >= 0 && entry.iter == n) {
      loops.n = entry.loop;
    } else if (entry.iter >= 0 && entry.iter == k) {
      loops.k = entry.loop;
    } else {
      loops.batch.push_back(entry.loop);
    }
  }
  return loops;
}

void UnrollOwnLoops(Schedule& schedule, const std::vector<LoopRV>& own, bool vectorizes) {
  for (size_t i = 0; i + 1 < own.size(); ++i) schedule.Unroll(own[i]);
  if (vectorizes) {
    schedule.Vectorize(own.back());
  } else {
    schedule.Unroll(own.back());
  }
}

BlockRV SplitMmaSum(Schedule& s, BlockRV& reduction, MmaProduct& product, int64_t parts, BlockRV out,
                    std::vector<BlockName>& handled) {
  if (!s.status().ok()) return out;
  constexpr int64_t kThreadsOfTotal = 256;
  const BlockSite total = s.Block(reduction);
  const auto dimension_of = [](const BlockSite& site, int iter) {
    size_t d = 0;
    while (d < StoreOf(site).indices.size() && IterOfDimension(site, d) != iter) ++d;
    return d;
  };
  const size_t m = dimension_of(total, product.m), n = dimension_of(total, product.n);
  const auto& factors = total.block().reads;
  const Buffer a = factors[static_cast<size_t>(product.a_read)].buffer,
               b = factors[static_cast<size_t>(product.b_read)].buffer;
  LoopRV k;
  for (const InnerLoop& entry : InnerLoops(s, reduction, LoopRV{})) {
    if (entry.iter == product.k) k = entry.loop;
  }
  const BlockRV copy = SplitProductSum(s, reduction, s.Split(k, {parts, kRest})[0], out, kThreadsOfTotal);
  if (!s.status().ok()) return copy;
  for (const BlockRV block : {reduction, copy}) handled.push_back(s.Block(block).block().name);
  const BlockSite site = s.Block(reduction);
  const auto position = [&](const Buffer& factor) {
    const auto& all = site.block().reads;
    return std::ranges::find_if(all, [&](const auto& r) { return r.buffer.same_as(factor); }) - all.begin();
  };
  product = {IterOfDimension(site, m + 1),
             IterOfDimension(site, n + 1),
             ReduceIters(site)[0],
             position(a),
             position(b),
             product.dtype};
  return copy;
}

MmaTiles CutMmaTiles(Schedule& schedule, BlockRV product, const MmaLoops& loops, int64_t rows, int64_t columns) {
  const LoopRVs of_rows = schedule.Split(loops.m, {kRest, rows}),
                of_columns = schedule.Split(loops.n, {kRest, columns});
  std::vector<LoopRV> order = loops.batch;
  order.insert(order.end(), {of_rows[0], of_columns[0], of_rows[1], of_columns[1]});
  schedule.Reorder(order);
  schedule.ComputeAt(product, of_columns[0]);
  return {of_rows[0], of_columns[0], of_rows[1], of_columns[1]};
}

std::vector<LoopRV> InPanels(Schedule& schedule, std::vector<LoopRV> loops, int64_t width) {
  if (loops.empty()) return loops;  // a primitive was refused
  const LoopRVs columns = schedule.Split(loops.back(), {kRest, width});
  loops.back() = columns[1];
  loops.insert(loops.begin(), columns[0]);
  schedule.Reorder(loops);
  return loops;
}

bool IsMmaDtype(const DataType& dtype) {
  return dtype == DataType::Float(16) || dtype == DataType::Bfloat16() || dtype == DataType::Float(32);
}

Match<MmaProduct> FindMmaProduct(const BlockSite& site) {
  const std::optional<Reduction> reduction = MatchReduction(site.block());
  const auto* product = reduction && reduction->op == BinaryOp::kAdd ? As<BinaryNode>(reduction->source) : nullptr;
  if (product == nullptr || product->op != BinaryOp::kMul) return Declined{"it is no sum of products"};
  const BufferLoadNode *a = FactorLoad(product->a), *b = FactorLoad(product->b);
  const BufferStoreNode& store = StoreOf(site);
  const bool takes_dtypes = a != nullptr && b != nullptr && a->dtype == b->dtype && IsMmaDtype(a->dtype) &&
                            store.buffer->dtype == DataType::Float(32);
  if (!takes_dtypes) return Declined{"it is no float32 sum of products of float32 or of 16-bit floats"};
  if (a->buffer.same_as(b->buffer)) return Declined{"its factors are one tensor"};
  const auto& iters = site.block().iter_vars;
  const auto var_of = [&](int iter) -> const PrimVar& { return iters[static_cast<size_t>(iter)]->var; };
  // How often the variable says where the load is, by itself or as number of a panel and place in it.
  const auto uses = [&](const BufferLoadNode& load, int iter) {
    return std::ranges::count_if(load.indices, [&](const PrimExpr& index) {
      return index.get() == var_of(iter).get() || MmaPanelWidth(index, BinaryOp::kFloorDiv, var_of(iter)) != 0;
    });
  };
  for (const BufferLoadNode* load : {a, b}) {
    for (const PrimExpr& index : load->indices) {
      const bool is_plain = As<PrimVarNode>(index) != nullptr || AsConstInt(index) ||
                            std::ranges::any_of(iters, [&](const IterVar& iter) {
                              return MmaPanelWidth(index, BinaryOp::kFloorDiv, iter->var) != 0 ||
                                     MmaPanelWidth(index, BinaryOp::kFloorMod, iter->var) != 0;
                            });
      if (!is_plain) return Declined{"one of its factors is read at computed places"};
    }
    for (int iter = 0; iter < static_cast<int>(iters.size()); ++iter) {
      if (uses(*load, iter) > 1) return Declined{"one of its factors is read along a diagonal"};
    }
  }
  const std::vector<int> reduce = ReduceIters(site);
  if (reduce.size() != 1) return Declined{"it sums over several axes"};
  MmaProduct p;
  p.dtype = a->dtype;
  p.k = reduce[0];
  if (uses(*a, p.k) == 0 || uses(*b, p.k) == 0) return Declined{"one of its factors is the same for all summands"};
  // Columns are the last axis of the result along which one factor alone moves, rows the last one of the other factor.
  for (size_t d = store.indices.size(); d-- > 0;) {
    const int iter = IterOfDimension(site, d);
    if (iter < 0 || ConstantExtent(*iters[static_cast<size_t>(iter)]) == 1) continue;
    const bool of_a = uses(*a, iter) > 0, of_b = uses(*b, iter) > 0;
    if (of_a == of_b) continue;
    if (p.n < 0) {
      if (of_a) std::swap(a, b);
      p.n = iter;
    } else if (p.m < 0 && of_a) {
      p.m = iter;
    }
  }
  if (p.n < 0 || p.m < 0) return Declined{"it has no rows and columns"};
  for (const auto& [load, side] : {std::pair{a, p.m}, std::pair{b, p.n}}) {
    const PrimExpr& last = load->indices.back();
    if (last.get() != var_of(side).get() && last.get() != var_of(p.k).get() &&
        MmaPanelWidth(last, BinaryOp::kFloorMod, var_of(side)) == 0) {
      return Declined{"one of its factors has another last axis than its own side or the summands"};
    }
  }
  const auto& reads = site.block().reads;
  const auto position = [&](const BufferLoadNode& load) {
    return std::ranges::find_if(reads, [&](const auto& r) { return r.buffer.same_as(load.buffer); }) - reads.begin();
  };
  p.a_read = position(*a);
  p.b_read = position(*b);
  return p;
}

namespace {

class CudaMmaBuilder {
 public:
  CudaMmaBuilder(Schedule& schedule, const BlockSite& site)
      : s_(schedule), reduction_(s_.GetBlock(site.block().name)), handled_{site.block().name} {
    if (const Match<MmaProduct> product = FindMmaProduct(site)) {
      SetProduct(site, *product);
      for (const int iter : {product_.m, product_.n, product_.k}) {
        extents_.push_back(ConstantExtent(*site.block().iter_vars[static_cast<size_t>(iter)]));
      }
      for (const int iter : SpatialIters(site)) {
        const auto extent = ConstantExtent(*site.block().iter_vars[static_cast<size_t>(iter)]);
        if (iter != product_.m && iter != product_.n)
          batch_ = batch_ && extent ? std::optional(*batch_ * *extent) : std::nullopt;
      }
      element_bytes_ = product_.dtype.bits / 8;
    } else {
      channels_ = *FindCudaChannels(site);
      element_bytes_ = channels_->dtype.bits / 8;
      extents_ = {channels_->rows, channels_->columns, channels_->sum};
      batch_ = channels_->batch;
    }
  }

  // Of a product of matrices that fuse_einsum made, in tiles of this form.
  CudaMmaBuilder(Schedule& schedule, BlockRV product, const MmaForm& form)
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
    SetProduct(site, *FindMmaProduct(site));
    for (const int iter : {product_.m, product_.n, product_.k}) {
      extents_.push_back(ConstantExtent(*site.block().iter_vars[static_cast<size_t>(iter)]));
    }
    element_bytes_ = product_.dtype.bits / 8;
    depth_ = form.depth / element_bytes_;
    has_copies_ = true;
    ChooseWarps();
  }

  // Loops around those of rows and columns are of a batch, or stay as they are.
  std::vector<BlockName> BuildTiles(BlockRV out, bool has_batch) {
    if (parts_ > 1) {
      out = SplitSum(out);
      has_batch = true;
    }
    const LoopRVs all = s_.GetLoops(out);
    if (!s_.status().ok()) return handled_;
    MmaLoops loops{{}, all[all.size() - 2], all.back(), {}};
    if (has_batch) loops.batch = {all.begin(), all.end() - 2};
    BuildTiles(loops);
    return handled_;
  }

  std::vector<BlockName> Build() {
    ChooseTile();
    BlockRV out;
    if (channels_) {
      out = MakeChannelMatrices(s_, reduction_, *channels_, {depth_ * parts_, rows_, columns_}, parts_ == 1, handled_);
      if (!s_.status().ok()) return handled_;
      const BlockSite site = s_.Block(reduction_);
      SetProduct(site, *FindMmaProduct(site));
      has_copies_ = true;
    } else {
      Pad();
      out = WriteBack(s_, reduction_, handled_);
    }
    if (channels_ || parts_ > 1) return BuildTiles(out, /*has_batch=*/true);
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
  // By the loops around the block that writes the result.
  void BuildTiles(const MmaLoops& loops) {
    const MmaTiles tiles = CutMmaTiles(s_, reduction_, loops, rows_, columns_);
    BuildSums(tiles.columns);
    const bool is_whole = parts_ > 1 || extents_[1].value_or(1) % columns_ == 0;
    UnrollOwnLoops(s_, Spread(tiles.own_rows, tiles.own_columns, {}), is_whole && n_dimension_ > m_dimension_);
    BindTiles(s_, loops.batch, tiles.rows, tiles.columns);
  }

  void SetProduct(const BlockSite& site, const MmaProduct& product) {
    product_ = product;
    const BufferStoreNode& store = StoreOf(site);
    for (size_t d = 0; d < store.indices.size(); ++d) {
      if (IterOfDimension(site, d) == product_.m) m_dimension_ = d;
      if (IterOfDimension(site, d) == product_.n) n_dimension_ = d;
    }
  }

  // The form that takes the least time, where all sizes are known.
  void ChooseTile() {
    constexpr int64_t kManySummands = 512, kUsualStages = 4;
    const int64_t whole = kMmaDepthBytes / element_bytes_, half = whole / 2;
    MmaForm usual = UsualForm();
    const int64_t summands = extents_[2].value_or(whole);
    const bool is_half = summands % whole > 0 && summands % whole <= half && summands < kManySummands;
    if (is_half) usual.rows = std::max(usual.rows, kMmaFew), usual.parts = 1;
    rows_ = s_.Choose("cuda_mma.rows", usual.rows, {kMmaFewest, kMmaFew, kMmaMiddle, kMmaLarge, kMmaHuge});
    std::vector<int64_t> columns_of_rows = {kMmaFew, kMmaMiddle, kMmaLarge};
    if (rows_ < kMmaHuge) columns_of_rows.push_back(kMmaHuge);  // registers suffice for 128 x 256 sums
    columns_ = s_.Choose("cuda_mma.columns", usual.columns, std::move(columns_of_rows));
    const bool is_usual = rows_ == usual.rows && columns_ == usual.columns;
    depth_ = s_.Choose("cuda_mma.depth", is_half ? half : whole, {half, whole});
    stages_ = s_.Choose("cuda_mma.stages", is_usual ? usual.stages : kUsualStages, {2, 3, kUsualStages, 5, 8});
    ChooseWarps();
    // Each thread has something to copy.
    if (std::min(rows_, columns_) * depth_ < Threads() * Chunk()) depth_ = whole;
    stages_ = std::min(stages_, kCudaMostSharedBytes / ((rows_ + columns_) * depth_ * element_bytes_));
    std::vector<int64_t> candidates;
    const int64_t most_parts = std::max(usual.parts, summands / depth_);
    for (int64_t i = 1; i <= most_parts; i *= 2) candidates.push_back(i);
    if (std::ranges::find(candidates, usual.parts) == candidates.end()) candidates.push_back(usual.parts);
    std::ranges::sort(candidates);
    parts_ = s_.Choose("cuda_mma.parts", usual.parts, std::move(candidates));
  }
  // Of a convolution, or where a size is not known: large tiles where there are enough of them to fill a GPU, since they
  // read each factor less often, and where nothing is known of both sides: few tiles of a small product cost less than slow
  // ones of a large product. Few rows where there are no more. Two blocks of large tiles are in a multiprocessor at once,
  // whose copies and products overlap: tiles of 256 are slower.
  MmaForm UsualForm() const {
    constexpr int64_t kManyTiles = 128;
    const auto [rows, columns] = std::pair{extents_[0], extents_[1]};
    if (!channels_ && rows && columns && extents_[2] && batch_) {
      return ChooseMmaForm({.batch = std::max<int64_t>(*batch_, 1),
                            .rows = std::max<int64_t>(*rows, 1),
                            .columns = std::max<int64_t>(*columns, 1),
                            .summands = std::max<int64_t>(*extents_[2], 1),
                            .element_bytes = element_bytes_});
    }
    MmaForm form;
    form.rows = rows.value_or(kMmaMiddle) <= kMmaFew ? kMmaFew : kMmaMiddle;
    if (!rows && columns.value_or(kMmaLarge) >= kMmaLarge) form.columns = kMmaLarge;
    if (!columns && rows.value_or(kMmaLarge) >= kMmaLarge) form.rows = kMmaLarge;
    for (const auto& [r, c] : {std::pair{kMmaMiddle, kMmaLarge}, {kMmaLarge, kMmaMiddle}, {kMmaLarge, kMmaLarge}}) {
      if (rows && columns && *rows / r * (*columns / c) >= kManyTiles) form.rows = r, form.columns = c;
    }
    form.parts = UsualParts(form);
    return form;
  }
  // They have parts of at most 64 rows and columns; four of them, or eight of the largest tiles.
  void ChooseWarps() {
    constexpr int64_t kWarps = 4;
    warps_of_rows_ = rows_ == kMmaHuge ? kWarps : rows_ > kMmaFew ? 2 : 1;
    warps_of_columns_ = columns_ == kMmaHuge ? kWarps : std::max(kWarps / warps_of_rows_, columns_ / kMmaMiddle);
  }
  // How many blocks share the sum of each tile: where there are tiles for a quarter of a GPU at most, as many as fill it and
  // have some steps each. Their sums are added by a launch of its own, with the consumers, which costs more than it is worth
  // where there are more tiles.
  int64_t UsualParts(const MmaForm& form) const {
    constexpr int64_t kMultiprocessors = 132, kLeastSteps = 4, kMostParts = 32;
    if (!extents_[0] || !extents_[1] || !extents_[2] || !batch_) return 1;
    const auto tiles_of = [](int64_t count, int64_t tile) { return (count + tile - 1) / tile; };
    const int64_t blocks =
        std::max<int64_t>(*batch_ * tiles_of(*extents_[0], form.rows) * tiles_of(*extents_[1], form.columns), 1);
    if (blocks > kMultiprocessors / 4) return 1;
    const int64_t steps = tiles_of(*extents_[2] * element_bytes_, form.depth);
    return std::clamp<int64_t>(std::min(kMultiprocessors / blocks, steps / kLeastSteps), 1, kMostParts);
  }
  // Elements of 16 bytes.
  int64_t Chunk() const { return kMmaChunkBytes / element_bytes_; }
  int64_t Threads() const { return warps_of_rows_ * warps_of_columns_ * kCudaWarpThreads; }

  // Pads rows, columns and k to whole tiles, where they are not.
  void Pad() {
    const std::array<int64_t, 3> tiles = {rows_, columns_, depth_ * parts_};
    bool is_padded = false;
    for (size_t i = 0; i < 3; ++i) is_padded |= !extents_[i] || *extents_[i] % tiles[i] != 0;
    if (is_padded) pads_ = PadMmaProduct(s_, reduction_, product_, tiles);
  }

  // Below the loop over tiles: the start of the sums, the tiles of both factors, and the sums.
  void BuildSums(LoopRV tile) {
    const auto [batch, m, n, k] = MmaLoopsOf(s_, reduction_, tile, product_.m, product_.n, product_.k);
    const LoopRVs depth = s_.Split(k, {kRest, depth_});
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
    s_.Annotate(depth[1], kWarpProduct, int64_t{1});
    s_.Annotate(depth[0], kPipelineStages, stages_);
  }

  // Spreads the rows and columns of a tile over the threads, each with the loops `inside` around its own, which it
  // returns.
  std::vector<LoopRV> Spread(LoopRV m, LoopRV n, std::vector<LoopRV> inside) {
    const int64_t warp_rows = rows_ / warps_of_rows_, warp_columns = columns_ / warps_of_columns_;
    const LoopRVs rows = s_.Split(m, {warps_of_rows_, warp_rows / kMmaMatrixRows, kMmaMatrixRows});
    const LoopRVs columns = s_.Split(
        n, {warps_of_columns_, warp_columns / (kMmaThreadsOfRow * kMmaNeighbours), kMmaThreadsOfRow, kMmaNeighbours});
    std::vector<LoopRV> order = {rows[0], columns[0], rows[2], columns[2]};
    const std::vector<LoopRV> own = {rows[1], columns[1], columns[3]};
    order.insert(order.end(), inside.begin(), inside.end());
    order.insert(order.end(), own.begin(), own.end());
    s_.Reorder(order);
    s_.Bind(s_.Fuse({rows[0], columns[0], rows[2], columns[2]}), "threadIdx.x");
    return own;
  }
  // Puts what a thread has into dimensions of its own of the sums, so that it is a box of them.
  void SpreadSums() {
    if (!s_.status().ok()) return;
    const auto rank = static_cast<int64_t>(StoreOf(s_.Block(reduction_)).indices.size());
    constexpr int64_t kMatrixColumns = kMmaThreadsOfRow * kMmaNeighbours;
    s_.TransformLayout(reduction_, 0, MakeIndexMap(rank, [&](std::vector<PrimExpr> i) {
                         const PrimExpr row = i[m_dimension_], column = i[n_dimension_];
                         i[m_dimension_] = FloorMod(row, Int64(kMmaMatrixRows));
                         i[n_dimension_] = FloorDiv(column, Int64(kMatrixColumns));
                         i.insert(i.begin(), FloorDiv(row, Int64(kMmaMatrixRows)));
                         i.push_back(FloorMod(column, Int64(kMatrixColumns)));
                         return i;
                       }));
  }

  // Whether a factor is padded in memory before the product, by a launch of its own: its rows have no whole chunks, so that
  // each copy to a tile would be of single elements, and many tiles read each of them.
  bool IsPaddedFirst(const BlockSite& padding, int iter) const {
    constexpr int64_t kManyReaders = 8;
    const std::vector<LoadUse> loads = LoadsOf(padding);
    if (loads.size() != 1) return false;
    const auto row = AsConstInt(loads[0].load->buffer->shape.back());
    const bool is_row = iter == product_.m;
    const std::optional<int64_t> others = extents_[is_row ? 1 : 0];
    return row && *row % Chunk() != 0 && others && *others / (is_row ? columns_ : rows_) >= kManyReaders;
  }

  // The tile of a factor in shared memory, copied by all threads in each iteration of the loop; padding becomes a
  // condition of the copy. `iter` is the factor's other iteration variable than k, of which the tile has `side` values.
  void Stage(int64_t read, int iter, int64_t side, LoopRV loop) {
    if (!s_.status().ok()) return;
    const BlockSite site = s_.Block(reduction_);
    const BufferRegion& source = site.block().reads[static_cast<size_t>(read)];
    const Buffer buffer = source.buffer;
    const auto [panels, width] = MmaPanelsOf(source, site.block().iter_vars[static_cast<size_t>(iter)]->var);
    const BlockRV staged = s_.CacheRead(reduction_, read, "shared");
    const std::optional<BlockSite> padding = s_.state().OnlyWriter(buffer);
    if (has_copies_) {
      s_.ComputeInline(s_.GetBlock(padding->block().name));
    } else if (padding && pads_.contains(padding->block().name) && !IsPaddedFirst(*padding, iter)) {
      s_.ComputeInline(s_.GetBlock(padding->block().name));
    }
    s_.ComputeAt(staged, loop);
    handled_.push_back(s_.Block(staged).block().name);
    if (width != 0) {  // panels side by side
      const auto rank = static_cast<int64_t>(buffer->shape.size());
      s_.TransformLayout(staged, 0, MakeIndexMap(rank, [dimension = panels, width = width](std::vector<PrimExpr> i) {
                           i.back() = i[dimension] * Int64(width) + i.back();
                           i.erase(i.begin() + static_cast<std::ptrdiff_t>(dimension));
                           return i;
                         }));
    }
    std::vector<LoopRV> all;
    for (const InnerLoop& entry : InnerLoops(s_, staged, loop)) all.push_back(entry.loop);
    const bool is_of_panels = width != 0 || (panel_ != 0 && iter == product_.n);
    if (is_of_panels && width == 0) all = InPanels(s_, all, panel_);
    const LoopRVs parts = s_.Split(s_.Fuse(all), {depth_ * side / (Threads() * Chunk()), Threads(), Chunk()});
    s_.Reorder({parts[1], parts[0], parts[2]});
    s_.Bind(parts[1], "threadIdx.x");
    s_.Unroll(parts[0]);
    s_.Annotate(parts[2], kChunkCopy, is_of_panels ? kIsOfPanel : int64_t{1});
  }

  Schedule& s_;
  BlockRV reduction_;
  std::vector<BlockName> handled_;
  MmaProduct product_;
  std::optional<CudaChannels> channels_;         // nothing: it is a product of matrices as it is
  bool has_copies_ = false;                      // of its factors, in any case
  std::vector<std::optional<int64_t>> extents_;  // of rows, columns, k
  std::optional<int64_t> batch_ = 1;
  size_t m_dimension_ = 0, n_dimension_ = 0;  // of the result
  int64_t element_bytes_ = 2;
  int64_t rows_ = 1, columns_ = 1, depth_ = 1, stages_ = 2, parts_ = 1;
  int64_t panel_ = 0;  // where it has copies: the width of those that its columns come from; 0: none
  int64_t warps_of_rows_ = 1, warps_of_columns_ = 1;
  std::set<BlockName> pads_;
};

}  // namespace

Match<> MatchesCudaMma(const ScheduleState& state, const BlockSite& site, const Target&) {
  const Match<> reduction = AsReduction(state, site);
  if (!reduction) return reduction;
  if (IsBoundToThreads(site)) return Declined{"it is bound to threads"};
  const Match<MmaProduct> product = FindMmaProduct(site);
  const bool rounds = state.function()->attrs.Find(kTf32Attr) != nullptr;
  constexpr const char* kIsNotPermitted = "it is of float32, whose factors may not be rounded (--fast-math=tf32)";
  if (!product) {
    const Match<CudaChannels> channels = FindCudaChannels(site);
    if (!channels) return product.declined();
    if (channels->dtype == DataType::Float(32) && !rounds) return Declined{kIsNotPermitted};
    const bool are_few = channels->rows.value_or(kMmaLeastSide) < kMmaLeastSide ||
                         channels->columns.value_or(kMmaLeastSide) < kMmaLeastSide;
    return are_few ? Match<>(Declined{"it has few rows, columns or summands"}) : Match<>(Taken{});
  }
  if (product->dtype == DataType::Float(32) && !rounds) return Declined{kIsNotPermitted};
  const auto& iters = site.block().iter_vars;
  for (const auto& [iter, least] : {std::pair{product->m, kMmaLeastSide}, std::pair{product->n, kMmaLeastSide},
                                    std::pair{product->k, kMmaLeastDepth}}) {
    if (ConstantExtent(*iters[static_cast<size_t>(iter)]).value_or(least) < least) {
      return Declined{"it has few rows, columns or summands"};
    }
  }
  return Taken{};
}

void BuildMmaTiles(Schedule& s, BlockRV product, BlockRV out, const MmaForm& form, std::vector<BlockName>& handled) {
  const std::vector<BlockName> blocks = CudaMmaBuilder(s, product, form).BuildTiles(out, /*has_batch=*/false);
  handled.insert(handled.end(), blocks.begin(), blocks.end());
}

std::vector<BlockName> ApplyCudaMma(Schedule& s, const BlockSite& site, const Target&) {
  return CudaMmaBuilder(s, site).Build();
}

}  // namespace ingot::schedule
