// Products of matrices on CUDA, after TVM DLight's Matmul: out[.., m, n] = sum over k of a[.., m, k] * b[.., k, n], where
// each of m, n, k and the batch may be several axes (cuda_product.h): convolutions are such products, too. Any of the
// extents may be symbolic.
//
//   for block = (batch, rows, columns):                    blockIdx.x
//     for thread:  its sums = 0                             threadIdx.x, as in the loops below
//     for k_outer:
//       for thread:  its share of the tile of a goes into shared memory
//       for thread:  its share of the tile of b
//       for thread:  for k_inner:  its sums += a * b        sums in registers
//     for thread:  its sums go out, through the element-wise consumers
//
// Rows, columns and k become one axis each first, of whole tiles (fuse_einsum): the copies into shared memory find the
// places of a convolution's window, and have zeros beyond the tensors and in the padding, so that the sums need no
// conditions; the write-back leaves out what is beyond the result. In shared memory both tiles have k as their first
// axis: a thread reads its rows and columns next to each other. Lowering (transform/tensor/place_buffers) finds that each
// thread has sums of its own, which it keeps from loop to loop.
//
// Where the tiles are too few to fill a GPU, k is split among several blocks: they write partial sums, and a second launch
// adds these up in front of the consumers.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/cuda_product.h"
#include "compiler/schedule/rules/epilogue.h"
#include "compiler/schedule/rules/rules.h"
#include "compiler/target/cuda.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// The threads of a block are a square of these sides.
constexpr int64_t kSide = 16;
constexpr int64_t kSquare = kSide * kSide;
constexpr int64_t kUsualDepth = 16;
// The rows or columns of tiles.
constexpr int64_t kFew = 2 * kSide, kMiddle = 4 * kSide, kLarge = 8 * kSide;
// The columns of a thread that lie next to each other.
constexpr int64_t kColumns = 4;
// Sums that one iteration of the innermost loop adds to.
constexpr int64_t kUnrolledSums = 64;
// Fewer rows, columns or summands than these are no work for tiles.
constexpr int64_t kLeastSide = 8;
// The longest access of a thread, and what the banks of shared memory give at once.
constexpr int64_t kAccessBytes = 16, kBanksBytes = 128;
// Blocks that fill a GPU: two for each of the 132 multiprocessors of an H100.
constexpr int64_t kManyTiles = 128, kManyBlocks = 264;
// Steps of a tile's depth that a block has at least when the sum is split, and the most parts.
constexpr int64_t kLeastSteps = 8, kMostParts = 32;

class CudaMatmulBuilder {
 public:
  CudaMatmulBuilder(Schedule& schedule, const BlockSite& site)
      : s_(schedule),
        product_(s_.GetBlock(site.block().name)),
        handled_{site.block().name},
        axes_(*FindCudaProduct(site)) {
    rows_ = CountValues(site, axes_.rows);
    columns_ = CountValues(site, axes_.columns);
    depth_ = CountValues(site, axes_.sum);
    batch_ = CountValues(site, axes_.batch);
    const BufferStoreNode& store = StoreOf(site);
    sum_bytes_ = (store.buffer->dtype.bits + 7) / 8;
  }

  std::vector<BlockName> Build() {
    ChooseTile();
    BlockRV out = InlineEpilogue(s_, product_, handled_);
    out = FuseAxes(out);
    if (!s_.status().ok()) return handled_;
    if (parts_ > 1) {
      out = SplitSum(out);
    } else {
      s_.SetScope(product_, 0, "local");
      FuseResult(s_, out, axes_);
    }
    // The result in tiles.
    const LoopRVs loops = s_.GetLoops(out);  // a part of the sum, the batch, rows and columns
    if (!s_.status().ok()) return handled_;
    const LoopRV m = loops[loops.size() - 2], n = loops.back();
    std::vector<LoopRV> batch(loops.begin(), loops.end() - 2);
    const LoopRVs rows = s_.Split(m, {kRest, tile_rows_}), columns = s_.Split(n, {kRest, tile_columns_});
    std::vector<LoopRV> order = batch;
    order.insert(order.end(), {rows[0], columns[0], rows[1], columns[1]});
    s_.Reorder(order);
    s_.ComputeAt(product_, columns[0]);
    BuildSums(columns[0]);
    // A thread's part of the result.
    SpreadTile(rows[1], columns[1], {}, /*vectorizes=*/parts_ > 1 || columns_.value_or(1) % tile_columns_ == 0);
    BindTiles(s_, batch, rows[0], columns[0]);
    return handled_;
  }

 private:
  // Tiles of many rows and columns where there are enough of them to fill a GPU, of few rows where there are no more;
  // where there are not enough, the sum in parts.
  void ChooseTile() {
    const int64_t rows = rows_.value_or(kMiddle), columns = columns_.value_or(kMiddle);
    const bool fills = rows >= kLarge && columns >= kLarge && rows / kLarge * (columns / kLarge) >= kManyTiles;
    const int64_t usual_rows = fills && sum_bytes_ <= 4 ? kLarge : rows <= kFew ? kFew : kMiddle;
    const int64_t usual_columns = fills && sum_bytes_ <= 4 ? kLarge : kMiddle;
    tile_rows_ = s_.Choose("cuda_matmul.rows", usual_rows, {kFew, kMiddle, kLarge});
    tile_columns_ = s_.Choose("cuda_matmul.columns", usual_columns, {kMiddle, kLarge});
    tile_depth_ = s_.Choose("cuda_matmul.depth", kUsualDepth, {kUsualDepth, 2 * kUsualDepth});
    int64_t parts = 1;
    if (rows_ && columns_ && depth_ && batch_) {
      const auto tiles_of = [](int64_t count, int64_t tile) { return (count + tile - 1) / tile; };
      const int64_t blocks =
          std::max<int64_t>(*batch_ * tiles_of(*rows_, tile_rows_) * tiles_of(*columns_, tile_columns_), 1);
      const int64_t steps = tiles_of(*depth_, tile_depth_);
      parts = std::clamp<int64_t>(std::min(kManyBlocks / blocks, steps / kLeastSteps), 1, kMostParts);
    }
    std::vector<int64_t> candidates;
    for (int64_t i = 1; i <= kMostParts; i *= 2) candidates.push_back(i);
    parts_ = s_.Choose("cuda_matmul.parts", parts, std::move(candidates));
  }

  // Makes one axis each of the batch, the sum, the rows and the columns. Returns the block that writes the result out of
  // the sums: the last consumer, if there is one.
  BlockRV FuseAxes(BlockRV last) {
    last = FuseProduct(s_, product_, axes_, {tile_depth_ * parts_, tile_rows_, tile_columns_}, last);
    if (!s_.status().ok()) return last;
    const auto loads = FactorsOfProduct(MatchReduction(s_.Block(product_).block())->source);
    for (const int factor : {axes_.row_factor, axes_.column_factor}) {
      factors_.push_back((*loads)[static_cast<size_t>(factor)]->buffer);
    }
    return last;
  }

  // Gives parts of the sum to different blocks. Schedules the sum of the parts with the consumers, a thread for each
  // element, and returns the block that writes the parts.
  BlockRV SplitSum(BlockRV out) {
    const LoopRVs loops = s_.GetLoops(product_);
    const LoopRV part = s_.Split(loops[axes_.batch.empty() ? 0 : 1], {parts_, kRest})[0];
    const BlockRV copy = SplitProductSum(s_, product_, part, out, kSquare);
    if (!s_.status().ok()) return copy;
    for (const BlockRV block : {product_, copy}) handled_.push_back(s_.Block(block).block().name);
    return copy;
  }

  // Below the loop over tiles: the start of the sums, the tiles of both factors, and the sums.
  void BuildSums(LoopRV tile) {
    if (!s_.status().ok()) return;
    // The block has the batch, if there is one, rows and columns, and the part of the sum.
    const BlockSite site = s_.Block(product_);
    std::vector<LoopRV> batch;
    LoopRV k;
    std::vector<InnerLoop> spatial;
    for (const InnerLoop& entry : InnerLoops(s_, product_, tile)) {
      if (Reduces(site, entry)) {
        k = entry.loop;
      } else {
        spatial.push_back(entry);
      }
    }
    if (!s_.status().ok()) return;
    std::ranges::stable_sort(spatial, {}, &InnerLoop::iter);
    const size_t first = spatial.size() - (parts_ > 1 ? 3 : 2);
    const LoopRV m = spatial[first].loop, n = spatial[first + 1].loop;
    for (size_t i = 0; i < spatial.size(); ++i) {
      if (i != first && i != first + 1) batch.push_back(spatial[i].loop);
    }
    const int64_t sums = tile_rows_ * tile_columns_ / kSquare;
    const int64_t steps = std::clamp<int64_t>(kUnrolledSums / sums, 1, tile_depth_);
    const LoopRVs depth = s_.Split(k, {kRest, tile_depth_ / steps, steps});
    std::vector<LoopRV> order = batch;
    order.insert(order.end(), {depth[0], depth[1], depth[2], m, n});
    s_.Reorder(order);
    Stage(0, tile_rows_, depth[0]);
    Stage(1, tile_columns_, depth[0]);
    SpreadColumns();
    const BlockRV start = s_.DecomposeReduction(product_, depth[0]);
    handled_.push_back(s_.Block(start).block().name);
    const HandleList<InnerLoop> around = InnerLoops(s_, start, tile);  // batches, then its own rows and columns
    SpreadTile(around[batch.size()].loop, around[batch.size() + 1].loop, {}, true);
    SpreadTile(m, n, {depth[1], depth[2]}, true);
    s_.Unroll(depth[2]);
  }

  // Spreads the rows and columns of a tile over the threads, each with the loops `inside` around its own. A thread has
  // columns of several places, a vector at each: threads that follow each other access vectors that do.
  void SpreadTile(LoopRV m, LoopRV n, std::vector<LoopRV> inside, bool vectorizes) {
    const LoopRVs rows = s_.Split(m, {kSide, tile_rows_ / kSide});
    const LoopRVs columns = s_.Split(n, {tile_columns_ / (kSide * kColumns), kSide, kColumns});
    std::vector<LoopRV> order = {rows[0], columns[1]};
    order.insert(order.end(), inside.begin(), inside.end());
    order.insert(order.end(), {rows[1], columns[0], columns[2]});
    s_.Reorder(order);
    s_.Bind(s_.Fuse({rows[0], columns[1]}), "threadIdx.x");
    s_.Unroll(rows[1]);
    s_.Unroll(columns[0]);
    if (vectorizes) {
      s_.Vectorize(columns[2]);
    } else {
      s_.Unroll(columns[2]);
    }
  }

  // Puts the places of columns that a thread has into a dimension of their own of the sums, so that what a thread has is
  // a box of them.
  void SpreadColumns() {
    if (tile_columns_ == kSide * kColumns || !s_.status().ok()) return;
    const auto rank = static_cast<int64_t>(StoreOf(s_.Block(product_)).indices.size());
    s_.TransformLayout(product_, 0, MakeIndexMap(rank, [&](std::vector<PrimExpr> i) {
                         const size_t n = i.size() - 1;
                         const PrimExpr column = i[n];
                         i[n] = FloorMod(column, Int64(kSide * kColumns));
                         i.insert(i.begin(), FloorDiv(column, Int64(kSide * kColumns)));
                         return i;
                       }));
  }

  // The tile of a factor in shared memory, copied by all threads in each iteration of the loop; what is beyond the factor
  // becomes a condition of the copy, and so does the padding of what it is read from. `side` is of its rows or columns.
  void Stage(size_t factor, int64_t side, LoopRV loop) {
    if (!s_.status().ok()) return;
    const Buffer matrix = factors_[factor];
    const auto& reads = s_.Block(product_).block().reads;
    const auto read = std::ranges::find_if(reads, [&](const auto& r) { return r.buffer.same_as(matrix); });
    const BlockRV staged = s_.CacheRead(product_, read - reads.begin(), "shared");
    s_.ComputeInline(s_.GetBlock(s_.state().OnlyWriter(matrix)->block().name));
    InlineMoves(s_, staged);
    if (!s_.status().ok()) return;
    const Copy copy = CopyOf(s_.Block(staged));
    s_.ComputeAt(staged, loop);
    handled_.push_back(s_.Block(staged).block().name);
    const auto rank = static_cast<int64_t>(matrix->shape.size());
    const int64_t bytes = (matrix->dtype.bits + 7) / 8;
    // Threads that follow each other store along k: their rows begin in other banks.
    if (copy.is_turned && bytes <= kAccessBytes) {
      s_.StorageAlign(staged, 0, rank - 2, kBanksBytes / bytes, kAccessBytes / bytes);
    }
    std::vector<LoopRV> all;
    for (const InnerLoop& entry : InnerLoops(s_, staged, loop)) all.push_back(entry.loop);
    if (copy.is_turned && all.size() > 1) {
      std::swap(all[all.size() - 2], all.back());
      s_.Reorder(all);
    }
    const int64_t elements = tile_depth_ * side;
    const int64_t lanes = std::min(copy.lanes, elements / kSquare);
    const LoopRVs parts = s_.Split(s_.Fuse(all), {elements / kSquare / lanes, kSquare, lanes});
    s_.Reorder({parts[1], parts[0], parts[2]});
    s_.Bind(parts[1], "threadIdx.x");
    s_.Unroll(parts[0]);
    // A condition of the padding is one for all of them when they are simplified one by one, of a vector it is one for each.
    if (lanes > 1 && !copy.is_turned && copy.is_whole) {
      s_.Vectorize(parts[2]);
    } else {
      s_.Unroll(parts[2]);
    }
  }

  // How the copy of a factor reads it.
  struct Copy {
    bool is_turned = false;  // neighbours along k lie next to each other
    bool is_whole = false;   // every element is there, so that none is read under a condition
    int64_t lanes = 1;       // neighbours that are certain to lie at a multiple of their size
  };
  Copy CopyOf(const BlockSite& site) const {
    Copy copy;
    const std::vector<LoadUse> loads = LoadsOf(site);
    if (loads.size() != 1) return copy;
    const BufferLoadNode& load = *loads[0].load;
    const auto& iters = site.block().iter_vars;
    const PrimExpr& last = load.indices.back();
    copy.is_whole = StoreOf(site).value.get() == &load;
    copy.is_turned = !UsesVar(last, iters.back()->var) && UsesVar(last, iters[iters.size() - 2]->var);
    const PrimVar var = (copy.is_turned ? iters[iters.size() - 2] : iters.back())->var;
    const int64_t bits = load.buffer->dtype.bits;
    const auto row = AsConstInt(load.buffer->shape.back());
    if (!row || !load.buffer->strides.empty() || bits % 8 != 0) return copy;
    for (int64_t lanes = kAccessBytes * 8 / bits; lanes > 1; lanes /= 2) {
      if (*row % lanes == 0 && AreNeighbours(load, iters, var, lanes)) {
        copy.lanes = lanes;
        break;
      }
    }
    return copy;
  }
  // Whether values of the variable from a multiple of `lanes` on read elements next to each other, from such a multiple on.
  static bool AreNeighbours(const BufferLoadNode& load, const std::vector<IterVar>& iters, const PrimVar& var,
                            int64_t lanes) {
    arith::Analyzer analyzer;
    for (const IterVar& iter : iters) analyzer.Bind(iter->var, iter->domain);
    const PrimVar group = MakePrimVar("q"), lane = MakePrimVar("l");
    analyzer.Bind(lane, Range{Int64(0), Int64(lanes)});
    for (size_t d = 0; d < load.indices.size(); ++d) {
      const PrimExpr first = Substitute(load.indices[d], {{var, PrimExpr(group) * lanes}});
      const PrimExpr any = Substitute(load.indices[d], {{var, PrimExpr(group) * lanes + PrimExpr(lane)}});
      const bool is_last = d + 1 == load.indices.size();
      if (!analyzer.ProveEqual(any, is_last ? first + PrimExpr(lane) : first)) return false;
      if (is_last && !analyzer.ProveDivisible(analyzer.Simplify(first), lanes)) return false;
    }
    return true;
  }

  Schedule& s_;
  BlockRV product_;  // of a part of the sum, where it is split
  std::vector<BlockName> handled_;
  CudaProduct axes_;
  std::optional<int64_t> batch_, rows_, columns_, depth_;
  int64_t sum_bytes_ = 4;
  int64_t tile_rows_ = 1, tile_columns_ = 1, tile_depth_ = 1, parts_ = 1;
  std::vector<Buffer> factors_;  // of rows and of columns, over the axes
};

}  // namespace

Match<> MatchesCudaMatmul(const ScheduleState& state, const BlockSite& site, const Target&) {
  const Match<> reduction = AsReduction(state, site);
  if (!reduction) return reduction;
  if (IsBoundToThreads(site)) return Declined{"it is bound to threads"};
  const Match<CudaProduct> product = FindCudaProduct(site);
  if (!product) return product.declined();
  if (product->rows.empty()) return Declined{"it has no rows"};
  for (const auto* axes : {&product->rows, &product->columns, &product->sum}) {
    if (CountValues(site, *axes).value_or(kLeastSide) < kLeastSide)
      return Declined{"it has few rows, columns or summands"};
  }
  return Taken{};
}

std::vector<BlockName> ApplyCudaMatmul(Schedule& s, const BlockSite& site, const Target&) {
  return CudaMatmulBuilder(s, site).Build();
}

}  // namespace ingot::schedule
