// Matrix products on CUDA, after TVM DLight's Matmul: out[.., m, n] = sum over k of a[.., m, k] * b[.., k, n], one or a
// batch of them, with the axes of a and b in any order; any of the extents may be symbolic.
//
//   for block = (batch, rows, columns):                    blockIdx.x
//     for thread:  its sums = 0                             threadIdx.x, as in the loops below
//     for k_outer:
//       for thread:  its share of the tile of a goes into shared memory
//       for thread:  its share of the tile of b
//       for thread:  for k_inner:  its sums += a * b        sums in registers
//     for thread:  its sums go out, through the element-wise consumers
//
// Rows, columns and k are padded to whole tiles first (pad_einsum): the copies into shared memory have zeros there, so
// that the sums need no conditions, and the write-back leaves out what is beyond the result. In shared memory both tiles
// have k as their first axis: a thread reads its rows and columns next to each other. Lowering (transform/tensor/
// place_buffers) finds that each thread has sums of its own, which it keeps from loop to loop.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/epilogue.h"
#include "compiler/schedule/rules/rules.h"
#include "compiler/target/cuda.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// The threads of a block are a square of these sides.
constexpr int64_t kSide = 16;
constexpr int64_t kSquare = kSide * kSide;
constexpr int64_t kTileDepth = 16;
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

// The positions of the iteration variables of rows (of the first factor), columns (of the second one) and the sum, and
// the factors' positions among the block's reads.
struct CudaProduct {
  int m = -1, n = -1, k = -1;
  int64_t a_read = -1, b_read = -1;
};

// The loads that a sum of products multiplies, casts aside.
std::optional<std::pair<const BufferLoadNode*, const BufferLoadNode*>> FactorsOf(const BlockSite& site) {
  const std::optional<Reduction> reduction = MatchReduction(site.block());
  if (!reduction || reduction->op != BinaryOp::kAdd) return {};
  const auto load_of = [](PrimExpr expr) {
    while (const auto* cast = As<CastNode>(expr)) expr = cast->value;
    return As<BufferLoadNode>(expr);
  };
  PrimExpr source = reduction->source;
  while (const auto* cast = As<CastNode>(source)) source = cast->value;
  const auto* product = As<BinaryNode>(source);
  if (product == nullptr || product->op != BinaryOp::kMul) return {};
  const BufferLoadNode* a = load_of(product->a);
  const BufferLoadNode* b = load_of(product->b);
  if (a == nullptr || b == nullptr) return {};
  return std::pair{a, b};
}

// The width of the panels of which the index is the quotient or the remainder of the variable; 0: it is none.
int64_t PanelWidth(const PrimExpr& index, BinaryOp op, const PrimVar& var) {
  const auto* binary = As<BinaryNode>(index);
  if (binary == nullptr || binary->op != op || binary->a.get() != var.get()) return 0;
  const int64_t width = AsConstInt(binary->b).value_or(0);
  return width > 0 && kMiddle % width == 0 ? width : 0;
}

// How often the variable says where the load is, by itself or as number of a panel and place in it.
int64_t CountUses(const BufferLoadNode& load, const PrimVar& var) {
  return std::ranges::count_if(load.indices, [&](const PrimExpr& index) {
    return index.get() == var.get() || PanelWidth(index, BinaryOp::kFloorDiv, var) != 0;
  });
}
bool IsAnIndex(const BufferLoadNode& load, const PrimVar& var) { return CountUses(load, var) > 0; }

Match<CudaProduct> FindCudaProduct(const BlockSite& site) {
  const auto factors = FactorsOf(site);
  if (!factors) return Declined{"it is no sum of products of two loads"};
  auto [a, b] = *factors;
  if (a->buffer.same_as(b->buffer)) return Declined{"its factors are one tensor"};
  const std::vector<int> reduce = ReduceIters(site);
  if (reduce.size() != 1) return Declined{"it sums over several axes"};
  const auto& iters = site.block().iter_vars;
  for (const BufferLoadNode* load : {a, b}) {
    for (const PrimExpr& index : load->indices) {
      const bool is_plain = AsConstInt(index) || std::ranges::any_of(iters, [&](const IterVar& iter) {
                              return index.get() == iter->var.get() ||
                                     PanelWidth(index, BinaryOp::kFloorDiv, iter->var) != 0 ||
                                     PanelWidth(index, BinaryOp::kFloorMod, iter->var) != 0;
                            });
      if (!is_plain) return Declined{"one of its factors is read at computed places"};
    }
    for (const IterVar& iter : iters) {
      if (CountUses(*load, iter->var) > 1) return Declined{"one of its factors is read along a diagonal"};
    }
  }
  CudaProduct p;
  p.k = reduce[0];
  if (!IsAnIndex(*a, iters[p.k]->var) || !IsAnIndex(*b, iters[p.k]->var))
    return Declined{"one of its factors is the same for all summands"};
  // Columns are the last axis of the result along which one factor alone moves, rows the last one of the other factor.
  const BufferStoreNode& store = StoreOf(site);
  for (size_t d = store.indices.size(); d-- > 0;) {
    const int iter = IterOfDimension(site, d);
    if (iter < 0 || ConstantExtent(*iters[iter]) == 1) continue;
    const bool of_a = IsAnIndex(*a, iters[iter]->var), of_b = IsAnIndex(*b, iters[iter]->var);
    if (of_a == of_b) continue;
    if (p.n < 0) {
      if (of_a) std::swap(a, b);
      p.n = iter;
    } else if (p.m < 0 && of_a) {
      p.m = iter;
    }
  }
  if (p.n < 0 || p.m < 0) return Declined{"it has no rows and columns"};
  const auto& reads = site.block().reads;
  const auto position = [&](const BufferLoadNode& load) {
    return std::ranges::find_if(reads, [&](const auto& r) { return r.buffer.same_as(load.buffer); }) - reads.begin();
  };
  p.a_read = position(*a);
  p.b_read = position(*b);
  return p;
}

class CudaMatmulBuilder {
 public:
  CudaMatmulBuilder(Schedule& schedule, const BlockSite& site)
      : s_(schedule), reduction_(s_.GetBlock(site.block().name)), handled_{site.block().name} {
    product_ = *FindCudaProduct(site);
    const auto& iters = site.block().iter_vars;
    num_iters_ = iters.size();
    for (const int iter : {product_.m, product_.n, product_.k}) extents_.push_back(ConstantExtent(*iters[iter]));
    const BufferStoreNode& store = StoreOf(site);
    sum_bytes_ = (store.buffer->dtype.bits + 7) / 8;
    for (size_t d = 0; d < store.indices.size(); ++d) {
      if (IterOfDimension(site, d) == product_.m) m_dimension_ = d;
      if (IterOfDimension(site, d) == product_.n) n_dimension_ = d;
    }
  }

  std::vector<BlockName> Build() {
    ChooseTile();
    Pad();
    const BlockRV out = WriteBack(s_, reduction_, handled_);
    // The result in tiles.
    std::vector<LoopRV> batch;
    LoopRV m, n;
    const BlockSite out_site = s_.Block(out);
    if (!s_.status().ok()) return handled_;
    for (const InnerLoop& entry : InnerLoops(s_, out, LoopRV{})) {
      if (entry.iter == IterOfDimension(out_site, m_dimension_)) {
        m = entry.loop;
      } else if (entry.iter == IterOfDimension(out_site, n_dimension_)) {
        n = entry.loop;
      } else {
        batch.push_back(entry.loop);
      }
    }
    const LoopRVs rows = s_.Split(m, {kRest, tile_rows_}), columns = s_.Split(n, {kRest, tile_columns_});
    std::vector<LoopRV> order = batch;
    order.insert(order.end(), {rows[0], columns[0], rows[1], columns[1]});
    s_.Reorder(order);
    s_.ComputeAt(reduction_, columns[0]);
    BuildSums(columns[0]);
    // A thread's part of the result.
    SpreadTile(rows[1], columns[1], {}, /*vectorizes=*/extents_[1].value_or(1) % tile_columns_ == 0);
    BindBlocks(std::move(batch), rows[0], columns[0]);
    return handled_;
  }

 private:
  // Blocks are numbered along one axis where that takes constant divisors alone. Else rows, columns and the batch have
  // an axis each: blockIdx.x is of the first whose extent is not known to be at most 65535, which the others have at
  // most.
  void BindBlocks(std::vector<LoopRV> batch, LoopRV rows, LoopRV columns) {
    constexpr int64_t kMostOfOtherAxes = 65535;
    std::vector<LoopRV> all = batch;
    all.insert(all.end(), {rows, columns});
    const auto extent_of = [&](LoopRV loop) {
      return s_.status().ok() ? AsConstInt(s_.Loop(loop).loop->extent) : std::optional<int64_t>();
    };
    const bool is_constant =
        std::all_of(all.begin() + 1, all.end(), [&](LoopRV loop) { return extent_of(loop).has_value(); });
    if (is_constant) return s_.Bind(s_.Fuse(all), "blockIdx.x");
    all = {rows, columns};
    if (!batch.empty()) all.push_back(batch.size() > 1 ? s_.Fuse(batch) : batch[0]);
    const auto first = std::find_if(all.begin(), all.end(), [&](LoopRV loop) {
      return extent_of(loop).value_or(kMostOfOtherAxes + 1) > kMostOfOtherAxes;
    });
    if (first != all.end()) std::rotate(all.begin(), first, first + 1);
    const char* axes[] = {"blockIdx.x", "blockIdx.y", "blockIdx.z"};
    for (size_t i = 0; i < all.size(); ++i) s_.Bind(all[i], axes[i]);
  }

  // Tiles of many rows and columns where there are enough of them to fill a GPU, of few rows where there are no more.
  void ChooseTile() {
    constexpr int64_t kManyTiles = 128;
    const int64_t rows = extents_[0].value_or(kMiddle), columns = extents_[1].value_or(kMiddle);
    const bool fills = rows >= kLarge && columns >= kLarge && rows / kLarge * (columns / kLarge) >= kManyTiles;
    const int64_t usual_rows = fills && sum_bytes_ <= 4 ? kLarge : rows <= kFew ? kFew : kMiddle;
    const int64_t usual_columns = fills && sum_bytes_ <= 4 ? kLarge : kMiddle;
    tile_rows_ = s_.Choose("cuda_matmul.rows", usual_rows, {kFew, kMiddle, kLarge});
    tile_columns_ = s_.Choose("cuda_matmul.columns", usual_columns, {kMiddle, kLarge});
  }

  // Pads rows, columns and k to whole tiles, where they are not.
  void Pad() {
    std::vector<int64_t> multiples(num_iters_, 1);
    const int iters[] = {product_.m, product_.n, product_.k};
    const int64_t tiles[] = {tile_rows_, tile_columns_, kTileDepth};
    bool is_padded = false;
    for (size_t i = 0; i < 3; ++i) {
      multiples[static_cast<size_t>(iters[i])] = tiles[i];
      is_padded |= !extents_[i] || *extents_[i] % tiles[i] != 0;
    }
    if (!is_padded) return;
    std::set<BlockName> before;
    for (const BlockSite& block : s_.state().Blocks()) before.insert(block.block().name);
    s_.PadEinsum(reduction_, multiples);
    for (const BlockSite& block : s_.state().Blocks()) {
      if (!before.contains(block.block().name)) pads_.insert(block.block().name);
    }
  }

  // Below the loop over tiles: the start of the sums, the tiles of both factors, and the sums.
  void BuildSums(LoopRV tile) {
    std::vector<LoopRV> batch;
    LoopRV m, n, k;
    for (const InnerLoop& entry : InnerLoops(s_, reduction_, tile)) {
      LoopRV& place = entry.iter == product_.m ? m : entry.iter == product_.n ? n : k;
      if (entry.iter == product_.m || entry.iter == product_.n || entry.iter == product_.k) {
        place = entry.loop;
      } else {
        batch.push_back(entry.loop);
      }
    }
    const int64_t sums = tile_rows_ * tile_columns_ / kSquare;
    const int64_t steps = std::clamp<int64_t>(kUnrolledSums / sums, 1, kTileDepth);
    const LoopRVs depth = s_.Split(k, {kRest, kTileDepth / steps, steps});
    std::vector<LoopRV> order = batch;
    order.insert(order.end(), {depth[0], depth[1], depth[2], m, n});
    s_.Reorder(order);
    Stage(product_.a_read, product_.m, depth[0]);
    Stage(product_.b_read, product_.n, depth[0]);
    SpreadColumns();
    const BlockRV start = s_.DecomposeReduction(reduction_, depth[0]);
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
    const auto rank = static_cast<int64_t>(StoreOf(s_.Block(reduction_)).indices.size());
    s_.TransformLayout(reduction_, 0, MakeIndexMap(rank, [&](std::vector<PrimExpr> i) {
                         const PrimExpr column = i[n_dimension_];
                         i[n_dimension_] = FloorMod(column, Int64(kSide * kColumns));
                         i.insert(i.begin(), FloorDiv(column, Int64(kSide * kColumns)));
                         return i;
                       }));
  }

  // The tile of a factor in shared memory, copied by all threads in each iteration of the loop; padding becomes a
  // condition of the copy. `side` is the factor's other iteration variable than k.
  void Stage(int64_t read, int side, LoopRV loop) {
    if (!s_.status().ok()) return;
    const BlockSite site = s_.Block(reduction_);
    const Buffer buffer = site.block().reads[static_cast<size_t>(read)].buffer;
    const auto rank = static_cast<int64_t>(buffer->shape.size());
    const auto& region = site.block().reads[static_cast<size_t>(read)].region;
    const auto var_of = [&](int iter) { return site.block().iter_vars[static_cast<size_t>(iter)]->var; };
    int64_t k = 0, x = 0, panels = -1;  // dimensions; of a factor in panels, x is the place in one
    for (int64_t d = 0; d < rank; ++d) {
      const PrimExpr& index = region[static_cast<size_t>(d)].min;
      if (index.get() == var_of(product_.k).get()) k = d;
      if (index.get() == var_of(side).get() || PanelWidth(index, BinaryOp::kFloorMod, var_of(side)) != 0) x = d;
      if (PanelWidth(index, BinaryOp::kFloorDiv, var_of(side)) != 0) panels = d;
    }
    const int64_t bytes = (buffer->dtype.bits + 7) / 8;
    const BlockRV staged = s_.CacheRead(reduction_, read, "shared");
    const std::optional<BlockSite> padding = s_.state().OnlyWriter(buffer);
    const bool is_padded = padding && pads_.contains(padding->block().name);
    Buffer source = buffer;
    if (is_padded) {
      source = padding->block().reads[0].buffer;
      s_.ComputeInline(s_.GetBlock(padding->block().name));
    }
    s_.ComputeAt(staged, loop);
    handled_.push_back(s_.Block(staged).block().name);
    const bool is_turned = k > x;
    if (is_turned) {
      std::vector<int64_t> axes;
      for (int64_t d = 0; d < rank; ++d) axes.push_back(d == k ? x : d == x ? k : d);
      s_.TransformLayout(staged, 0, PermutingMap(axes));
      // Threads that follow each other store along k: their rows begin in other banks.
      if (k == rank - 1 && x == rank - 2 && bytes <= kAccessBytes) {
        s_.StorageAlign(staged, 0, rank - 2, kBanksBytes / bytes, kAccessBytes / bytes);
      }
    }
    if (panels >= 0 && panels < k && !is_turned) {  // panels side by side
      std::vector<int64_t> axes;
      for (int64_t d = 0; d < rank; ++d) axes.push_back(d == k ? panels : d == panels ? k : d);
      s_.TransformLayout(staged, 0, PermutingMap(axes));
    }
    std::vector<LoopRV> all;
    for (const InnerLoop& entry : InnerLoops(s_, staged, loop)) all.push_back(entry.loop);
    const int64_t elements = kTileDepth * (side == product_.m ? tile_rows_ : tile_columns_);
    // A thread takes neighbours where they are certain to lie at a multiple of their size, all of them in padding or none.
    const auto row = AsConstInt(source->shape.back());
    const bool is_aligned =
        (k == rank - 1 || x == rank - 1) && row && source->strides.empty() && bytes * 8 == buffer->dtype.bits;
    int64_t lanes = is_aligned ? std::min(kAccessBytes / bytes, elements / kSquare) : 1;
    while (lanes > 1 && *row % lanes != 0) lanes /= 2;
    const LoopRVs parts = s_.Split(s_.Fuse(all), {elements / kSquare / lanes, kSquare, lanes});
    s_.Reorder({parts[1], parts[0], parts[2]});
    s_.Bind(parts[1], "threadIdx.x");
    s_.Unroll(parts[0]);
    // A condition of the padding is one for all of them when they are simplified one by one, of a vector it is one for each.
    if (lanes > 1 && !is_turned && panels < 0 && *row % (elements / kTileDepth) == 0) {
      s_.Vectorize(parts[2]);
    } else {
      s_.Unroll(parts[2]);
    }
  }

  Schedule& s_;
  BlockRV reduction_;
  std::vector<BlockName> handled_;
  CudaProduct product_;
  std::vector<std::optional<int64_t>> extents_;  // of rows, columns, k
  size_t num_iters_ = 0;
  int64_t sum_bytes_ = 4;
  size_t m_dimension_ = 0, n_dimension_ = 0;  // of the result
  int64_t tile_rows_ = 1, tile_columns_ = 1;
  std::set<BlockName> pads_;
};

}  // namespace

Match<> MatchesCudaMatmul(const ScheduleState& state, const BlockSite& site, const Target&) {
  const Match<> reduction = AsReduction(state, site);
  if (!reduction) return reduction;
  if (IsBoundToThreads(site)) return Declined{"it is bound to threads"};
  const Match<CudaProduct> product = FindCudaProduct(site);
  if (!product) return product.declined();
  const auto& iters = site.block().iter_vars;
  for (const int iter : {product->m, product->n, product->k}) {
    if (ConstantExtent(*iters[iter]).value_or(kLeastSide) < kLeastSide)
      return Declined{"it has few rows, columns or summands"};
  }
  return Taken{};
}

std::vector<BlockName> ApplyCudaMatmul(Schedule& s, const BlockSite& site, const Target&) {
  return CudaMatmulBuilder(s, site).Build();
}

}  // namespace ingot::schedule
