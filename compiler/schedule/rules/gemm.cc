// Matrix products: out[.., m, n] = sum over k of a[.., m, k] * b[.., k, n], one or a batch of them, b as a weight in
// panels[n / 16, k, n % 16], as rows [k, n] or as columns [n, k]; m and n may be symbolic, as may k.
//
// The result is cut into tiles of some rows times one or more panels of 16 columns, whose accumulators stay in
// registers while k runs (tile.cc explains the tile). Around them
//
//   for task = (batch, block of rows, panel group):     parallel
//     [pack: the panels of b, where b is no weight and there are rows enough to pay for it]
//     [for batch, where the weight is large]
//     for rows of the block in tiles:  for k:  tile;   write-back with the element-wise consumers
//
// so that the panels of one task (k x 16 elements each) come from the second-level cache for all tiles but the first; a
// is read again by every task, and cut into blocks of rows where it would leave the last cache. Rows that do
// not fill a tile go to smaller tiles: the rest of a constant number of rows is one or two tiles, the rest of a
// symbolic number is one tile of as many rows, or a few tiles; likewise the columns. Where k is so long that the panels
// of one task would fill the cache, it is cut into blocks: the tiles of each block add to the task's results in memory,
// which the write-back reads at the end. Without rows (matrix x vector) a task reads several panels side by side, each
// once and in order.
#include <algorithm>

#include "compiler/op/packing.h"
#include "compiler/schedule/device_loops.h"
#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/epilogue.h"
#include "compiler/schedule/rules/rules.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

constexpr int64_t kPanel = op::kPanelColumns;

enum class Right { kPanels, kRows, kColumns };  // how b lies in memory

// A matrix product that a block computes: m, n and k are positions in its iter_vars.
struct Product {
  int m = -1;  // -1: no rows
  int n, k;
  int m_dimension = -1;  // of the result; n is the last one
  Right right;
  Buffer a, b;
  int k_dimension, n_dimension;  // of b, unless in panels
  bool is_of_bytes = false;      // its terms are dot products of bytes
};

bool IsVar(const PrimExpr& expr, const PrimVar& var) { return expr.get() == var.get(); }

// Whether expr is floordiv(var, 16) or floormod(var, 16), as op says.
bool IsPanelIndex(const PrimExpr& expr, BinaryOp op, const PrimVar& var) {
  const auto* binary = As<BinaryNode>(expr);
  return binary != nullptr && binary->op == op && IsVar(binary->a, var) && IsConstInt(binary->b, kPanel);
}

// The two factors of a sum of products, casts aside, or of dot products of bytes.
struct TwoFactors {
  const BufferLoadNode *a, *b;
  bool are_bytes;
};
std::optional<TwoFactors> Factors(const BufferStoreNode& store) {
  const auto* sum = As<BinaryNode>(store.value);
  if (sum == nullptr || sum->op != BinaryOp::kAdd) return std::nullopt;
  const auto is_result = [&](const PrimExpr& expr) {
    const auto* load = As<BufferLoadNode>(expr);
    return load != nullptr && load->buffer.same_as(store.buffer);
  };
  const PrimExpr& term = is_result(sum->a) ? sum->b : sum->a;
  if (is_result(term)) return std::nullopt;
  const auto* product = As<BinaryNode>(term);
  const auto* dot = As<PrimCallNode>(term);
  const bool is_product = product != nullptr && product->op == BinaryOp::kMul;
  const bool is_dot = dot != nullptr && dot->op == Intrinsic::kDotBytes;
  if (!is_product && !is_dot) return std::nullopt;
  const auto load_of = [](PrimExpr expr) {
    while (const auto* cast = As<CastNode>(expr)) expr = cast->value;
    return As<BufferLoadNode>(expr);
  };
  const BufferLoadNode* a = load_of(is_dot ? dot->args[0] : product->a);
  const BufferLoadNode* b = load_of(is_dot ? dot->args[1] : product->b);
  if (a == nullptr || b == nullptr || a->buffer.same_as(store.buffer) || b->buffer.same_as(store.buffer)) {
    return std::nullopt;
  }
  return TwoFactors{a, b, is_dot};
}

// The dimension of the load whose index is the variable; -1: it is in no index, -2: it is inside of an expression, or
// in two indices.
int DimensionOf(const BufferLoadNode& load, const PrimVar& var) {
  int found = -1;
  for (size_t d = 0; d < load.indices.size(); ++d) {
    if (!UsesVar(load.indices[d], var)) continue;
    if (found != -1 || !IsVar(load.indices[d], var)) return -2;
    found = static_cast<int>(d);
  }
  return found;
}

Match<Product> FindProduct(const BlockSite& site) {
  const BufferStoreNode& store = StoreOf(site);
  const auto factors = Factors(store);
  const std::vector<int> reduce = ReduceIters(site);
  if (!factors) return Declined{"it is no sum of products of two loads"};
  if (reduce.size() != 1) return Declined{"it sums over several axes"};
  if (store.indices.empty()) return Declined{"its result is a single number"};
  const auto& iters = site.block().iter_vars;
  Product p;
  p.k = reduce[0];
  p.n = IterOfDimension(site, store.indices.size() - 1);
  if (p.n < 0 || ConstantExtent(*iters[p.n]) == 1) return Declined{"its result has one column"};
  const PrimVar n = iters[p.n]->var, k = iters[p.k]->var;
  const auto uses = [](const BufferLoadNode& load, const PrimVar& var) { return DimensionOf(load, var) != -1; };
  const BufferLoadNode *a = factors->a, *b = factors->b;
  if (uses(*a, n)) std::swap(a, b);
  p.is_of_bytes = factors->are_bytes && a == factors->a;
  if (uses(*a, n) || !uses(*b, n)) return Declined{"not one of its factors follows the last axis of the result"};
  if (DimensionOf(*a, k) < 0) return Declined{"its first factor is read at computed places along the sum"};
  p.a = a->buffer;
  p.b = b->buffer;
  p.k_dimension = DimensionOf(*b, k);
  if (p.k_dimension < 0) return Declined{"its second factor is read at computed places along the sum"};
  const size_t rank = b->indices.size();
  if (rank >= 3 && IsPanelIndex(b->indices[rank - 3], BinaryOp::kFloorDiv, n) && IsVar(b->indices[rank - 2], k) &&
      IsPanelIndex(b->indices[rank - 1], BinaryOp::kFloorMod, n)) {
    p.right = Right::kPanels;
    p.n_dimension = static_cast<int>(rank) - 1;
  } else {
    p.n_dimension = DimensionOf(*b, n);
    if (p.n_dimension < 0) return Declined{"its second factor is read at computed places along the result's last axis"};
    if (p.n_dimension == static_cast<int>(rank) - 1) {
      p.right = Right::kRows;
    } else if (p.k_dimension == static_cast<int>(rank) - 1) {
      p.right = Right::kColumns;
    } else {
      return Declined{"its second factor is contiguous neither along the sum nor along the result"};
    }
  }
  for (int d = static_cast<int>(store.indices.size()) - 2; d >= 0 && p.m < 0; --d) {  // the nearest one
    const int iter = IterOfDimension(site, d);
    if (iter < 0 || ConstantExtent(*iters[iter]) == 1) continue;
    if (!uses(*a, iters[iter]->var) || uses(*b, iters[iter]->var)) continue;
    p.m = iter;
    p.m_dimension = d;
  }
  return p;
}

// Symbolic numbers of rows and of batches count as this many where costs are compared.
constexpr int64_t kLikelyRows = 32, kLikelyBatches = 4;
// From this many rows on, packing b pays.
constexpr int64_t kRowsWorthPacking = 16;

// Fewer tasks than these may leave threads without work.
constexpr int64_t kFewTasks = 8;

// Steps of k in one iteration of a tile's loop, which makes the loop's end easier to predict.
constexpr int64_t kUnrolledSteps = 4;

// One nest of tiles in the write-back block, and the loops at which its parts are placed.
struct GemmTile {
  BlockRV block;
  LoopRV attach, y, x;
  size_t group;  // tiles of one group read the same panels
};

class GemmBuilder {
 public:
  GemmBuilder(Schedule& schedule, const BlockName& name, const Target& target)
      : s_(schedule), reduction_(s_.GetBlock(name)), target_(target), handled_{name} {}

  std::vector<BlockName> Build(const BlockSite& site) {
    product_ = *FindProduct(site);
    const auto& iters = site.block().iter_vars;
    rows_ = product_.m < 0 ? std::optional<int64_t>(1) : ConstantExtent(*iters[product_.m]);
    columns_ = ConstantExtent(*iters[product_.n]);
    for (int iter : SpatialIters(site)) {
      if (iter == product_.m || iter == product_.n) continue;
      batches_ *= std::max<int64_t>(ConstantExtent(*iters[iter]).value_or(kLikelyBatches), 1);
    }
    constant_depth_ = ConstantExtent(*iters[product_.k]);
    depth_ = constant_depth_.value_or(kLikelyRows);
    lanes_ = target_.vector_lanes(StoreOf(site).buffer->dtype.bits);
    element_bytes_ = (product_.a->dtype.bits + 7) / 8;
    is_amx_ = CanUseAmx();
    ChooseTile();
    CutDepth();
    const BlockRV out = WriteBack(s_, reduction_, handled_);
    CutRowBlocks(out);
    if (s_.IsVoid(depth_partial_)) {
      PlaceReductions();
    } else {
      PlaceDepthBlocks();
    }
    const int64_t rows = block_rows_.value_or(rows_.value_or(kLikelyRows)) * (batch_inside_ ? batches_ : 1);
    for (const Group& group : groups_) ParallelizeByLikelyCost(s_, group.task, rows * depth_ * kPanel * panels_);
    return handled_;
  }

 private:
  // Registers hold rows x vectors accumulators, a row of b's vectors (unless it is used once) and an element of a.
  bool Fits(int64_t rows, int64_t vectors) const {
    return rows * vectors + (rows > 1 ? vectors : 0) + 1 <= target_.num_vector_registers;
  }
  int64_t VectorsOf(int64_t panels) const { return std::max<int64_t>(panels * kPanel / lanes_, 1); }

  bool FitsColumns(int64_t panels) const { return !columns_ || *columns_ >= panels * kPanel; }
  // The highest tile of so many panels. The rows of a lie at equal distances, often multiples of 4096 bytes: then they
  // share a set of the first-level cache, which keeps eight of them.
  int64_t MostRows(int64_t vectors) const {
    constexpr int64_t kMostRows = 8;
    return std::clamp<int64_t>((target_.num_vector_registers - vectors - 1) / vectors, 1, kMostRows);
  }

  // Whether tile instructions multiply most rows: bytes of a weight in panels, which are the second tile as they lie.
  // Below some rows, the sums wait for each other, and vectors are quicker.
  bool CanUseAmx() {
    constexpr int64_t kLeastRows = 8;
    const bool fits = target_.has_amx() && product_.is_of_bytes && product_.right == Right::kPanels &&
                      product_.m >= 0 && rows_.value_or(kLeastRows) >= kLeastRows && columns_ &&
                      constant_depth_.value_or(0) >= kAmxWords &&
                      2 * *constant_depth_ * kPanel * element_bytes_ <= target_.l2_bytes / 2;
    return fits && s_.Choose("gemm.amx", 1, {0, 1}) != 0;
  }

  // As many sums as there are tiles for: of 32 rows and two panels, or of up to 16 rows and four.
  void ChooseAmxTile() {
    const bool are_few = rows_ && *rows_ <= kAmxRows;
    tile_rows_ = are_few ? *rows_ : 2 * kAmxRows;
    panels_ = are_few ? kAmxSums : kAmxSums / 2;
    while (panels_ > 1 && !FitsColumns(panels_)) panels_ /= 2;
    unrolled_steps_ = 1;
  }

  // Rows that fit one tile are one, as wide as it takes to have enough multiply-adds in flight. Of more rows, a tile has
  // the panels with which it loads least for each multiply-add, and the rows that the registers allow, made even over
  // all tiles.
  void ChooseTile() {
    if (is_amx_) return ChooseAmxTile();
    constexpr int64_t kLeastVectors = 2, kInFlight = 10, kMostPanels = 8;
    panels_ = 1;
    const int64_t most = MostRows(std::max(kLeastVectors, VectorsOf(1)));
    if (rows_ && *rows_ <= most) {
      tile_rows_ = std::max<int64_t>(*rows_, 1);
      const auto is_narrow = [&] {
        const int64_t vectors = VectorsOf(panels_);
        return tile_rows_ * vectors < kInFlight || (vectors < kLeastVectors && tile_rows_ > 1);
      };
      while (panels_ < kMostPanels && is_narrow() && Fits(tile_rows_, VectorsOf(panels_ * 2)) &&
             FitsColumns(panels_ * 2)) {
        panels_ *= 2;
      }
    } else {
      const auto loads = [&](int64_t panels) {  // for each multiply-add
        const auto vectors = static_cast<double>(VectorsOf(panels));
        const auto rows = static_cast<double>(MostRows(VectorsOf(panels)));
        return (rows + vectors) / (rows * vectors);
      };
      for (int64_t panels = 2; panels <= kMostPanels; panels *= 2) {
        if (Fits(1, VectorsOf(panels)) && FitsColumns(panels) && loads(panels) < loads(panels_)) panels_ = panels;
      }
      tile_rows_ = MostRows(VectorsOf(panels_));
      if (rows_) {
        const int64_t count = (*rows_ + tile_rows_ - 1) / tile_rows_;
        tile_rows_ = (*rows_ + count - 1) / count;
      }
    }
    Choose();
    packs_ = product_.right != Right::kPanels && !product_.a.same_as(product_.b) && PackingPays();
    if (product_.right == Right::kRows && !product_.a.same_as(product_.b)) {
      packs_ = s_.Choose("gemm.packs", packs_ ? 1 : 0, {0, 1}) != 0;
    }
    // A weight that does not stay in the second-level cache is read once for all batches, not once for each.
    const int64_t columns = columns_.value_or(0);
    batch_inside_ = product_.right == Right::kPanels && batches_ > 1 && columns >= kFewTasks * kPanel * panels_ &&
                    columns * depth_ * element_bytes_ > target_.l2_bytes / 2;
  }

  // What tuning may do about the tile: any that the registers hold.
  void Choose() {
    std::vector<int64_t> panels, rows;
    for (int64_t count = 1; Fits(1, VectorsOf(count)) && count <= 8; count *= 2) {
      if (!columns_ || *columns_ >= count * kPanel) panels.push_back(count);
    }
    const int64_t usual_panels = panels_;
    panels_ = s_.Choose("gemm.panels", usual_panels, panels);
    while (panels_ != usual_panels && tile_rows_ > 1 && !Fits(tile_rows_, VectorsOf(panels_))) --tile_rows_;
    for (int64_t count = 1; Fits(count, VectorsOf(panels_)) && count <= rows_.value_or(count); ++count) {
      rows.push_back(count);
    }
    tile_rows_ = s_.Choose("gemm.rows", tile_rows_, rows);
    const int64_t depth = constant_depth_.value_or(0);
    std::vector<int64_t> steps{1};
    for (int64_t count = 2; count <= 16; count *= 2) {
      if (depth > count && depth % count == 0) steps.push_back(count);
    }
    const bool unrolls = depth % kUnrolledSteps == 0 && depth > kUnrolledSteps;
    unrolled_steps_ = s_.Choose("gemm.unrolled_steps", unrolls ? kUnrolledSteps : 1, steps);
  }

  // Columns must be packed: vectors are read along rows. Rows of a single panel need no packing, and for a few rows of
  // a the copy does not pay.
  bool PackingPays() const {
    if (product_.right == Right::kColumns) return true;
    return (!columns_ || *columns_ > kPanel) && (!rows_ || *rows_ >= kRowsWorthPacking);
  }

  // The number of rows in a block; nothing: all rows are one block. Blocks of few rows make more tasks where panels and
  // batches are few. Rows that do not fit the last-level cache are cut into blocks that fit half of the second-level
  // one, unless b would have to be packed for each block.
  std::optional<int64_t> RowsOfBlock() const {
    if (product_.m < 0) return std::nullopt;
    constexpr int64_t kLeastTiles = 8;
    const int64_t width = kPanel * panels_;
    const int64_t batch_tasks = batch_inside_ ? 1 : batches_;
    const bool few_tasks = columns_ && (*columns_ + width - 1) / width * batch_tasks < kFewTasks;
    const bool fits = rows_.value_or(0) * depth_ * element_bytes_ <= target_.l3_bytes;
    if (!few_tasks && (fits || packs_)) return std::nullopt;
    const int64_t cached = target_.l2_bytes / 2 / std::max<int64_t>(depth_ * element_bytes_, 1) / tile_rows_;
    const int64_t rows = tile_rows_ * (few_tasks ? kLeastTiles : std::max(cached, kLeastTiles));
    return !rows_ || *rows_ >= 2 * rows ? std::optional<int64_t>(rows) : std::nullopt;
  }

  // The same, or as many tiles as tuning says; 0 is one block of all rows.
  void ChooseRowsOfBlock() {
    block_rows_ = RowsOfBlock();
    if (product_.m < 0 || tile_rows_ < 1) return;
    std::vector<int64_t> tiles{0};
    for (int64_t count = 1; count <= 64; count *= 2) {
      if (!rows_ || *rows_ >= 2 * count * tile_rows_) tiles.push_back(count);
    }
    const int64_t chosen = s_.Choose("gemm.block_tiles", block_rows_.value_or(0) / tile_rows_, tiles);
    block_rows_ = chosen > 0 ? std::optional<int64_t>(chosen * tile_rows_) : std::nullopt;
  }

  // Into how many blocks k is cut by default. A block's panels take an eighth of the second-level cache; k stays whole
  // unless a task's panels take more than half of it.
  int64_t DepthBlocks() const {
    const int64_t depth = *constant_depth_, row_bytes = kPanel * panels_ * element_bytes_;
    if (depth * row_bytes <= target_.l2_bytes / 2) return 1;
    const int64_t most = std::max<int64_t>(target_.l2_bytes / 8 / row_bytes, 1);
    int64_t block = most;
    while (block > most / 2 && depth % block != 0) --block;
    return depth % block == 0 ? depth / block : 1;
  }

  // Cuts k into blocks, with the sums of each block as an intermediate.
  void CutDepth() {
    if (product_.right != Right::kPanels || product_.m < 0 || !constant_depth_ || is_amx_) return;
    constexpr int64_t kLeastDepth = 64, kMostBlocks = 16;
    const int64_t depth = *constant_depth_;
    std::vector<int64_t> counts{1};
    for (int64_t count = 2; count <= kMostBlocks && depth / count >= kLeastDepth; ++count) {
      if (depth % count == 0) counts.push_back(count);
    }
    const int64_t blocks = s_.Choose("gemm.depth_blocks", DepthBlocks(), counts);
    if (blocks == 1) return;
    const int64_t block = depth / blocks;
    LoopRV k;
    for (const InnerLoop& entry : InnerLoops(s_, reduction_, LoopRV{})) {
      if (entry.iter == product_.k) k = entry.loop;
    }
    depth_partial_ = s_.RFactor(s_.Split(k, {kRest, block})[0]);
    handled_.push_back(s_.Block(depth_partial_).block().name);
    const BlockSite partial = s_.Block(depth_partial_);
    product_.k = static_cast<int>(partial.block().iter_vars.size()) - 1;
    // The new axis becomes the outermost one, so that columns stay contiguous for vectors.
    std::vector<int64_t> axes{static_cast<int64_t>(StoreOf(partial).indices.size()) - 1};
    for (int64_t axis = 0; axis < axes[0]; ++axis) axes.push_back(axis);
    s_.TransformLayout(depth_partial_, 0, PermutingMap(axes));
    s_.SetScope(depth_partial_, 0, "local");
    constant_depth_ = block;
  }

  struct Loops {
    LoopRV m, n;
    std::vector<LoopRV> batch;
  };
  // The loops of a write-back block before any is split.
  Loops LoopsOf(BlockRV block) {
    Loops loops;
    const HandleList<InnerLoop> inner = InnerLoops(s_, block, LoopRV{});
    const BlockSite site = s_.Block(block);
    const int n = IterOfDimension(site, StoreOf(site).indices.size() - 1);
    const int m = product_.m < 0 ? -1 : IterOfDimension(site, product_.m_dimension);
    for (const InnerLoop& entry : inner) {
      if (entry.iter >= 0 && entry.iter == n) {
        loops.n = entry.loop;
      } else if (entry.iter >= 0 && entry.iter == m) {
        loops.m = entry.loop;
      } else {
        loops.batch.push_back(entry.loop);
      }
    }
    return loops;
  }

  void Order(std::vector<LoopRV> first, const std::vector<LoopRV>& rest) {
    for (LoopRV loop : rest) {
      if (loop.id >= 0) first.push_back(loop);
    }
    if (first.size() > 1) s_.Reorder(first);
  }

  void CutRowBlocks(BlockRV out) {
    const Loops loops = LoopsOf(out);
    ChooseRowsOfBlock();
    const std::optional<int64_t> block_rows = block_rows_;
    if (!block_rows) return CutColumns(out, loops, LoopRV{}, LoopRV{});
    std::vector<LoopRV> inside = loops.batch;
    inside.push_back(loops.n);
    Order({loops.m}, inside);
    const Schedule::Parts parts = s_.LoopPartition(loops.m, *block_rows);
    if (!s_.IsVoid(parts.tail)) {
      const BlockRV tail = s_.GetChildBlocks(parts.tail)[0];
      CutColumns(tail, LoopsOf(tail), LoopRV{}, LoopRV{});
    }
    if (s_.IsVoid(parts.main)) return;
    const LoopRVs split = s_.Split(parts.main, {kRest, *block_rows});
    CutColumns(out, loops, split[0], split[1]);
  }

  // m_block is the loop around blocks of rows, or void; m is the loop over a block's rows (void: loops.m).
  void CutColumns(BlockRV block, const Loops& loops, LoopRV m_block, LoopRV m) {
    if (m.id < 0) m = loops.m;
    std::vector<LoopRV> rest = loops.batch;
    rest.push_back(m_block);
    rest.push_back(m);
    Order({loops.n}, rest);
    CutColumnsBy(block, loops.n, loops.batch, m_block, m, ColumnTiles());
  }

  // The widths of tiles in columns, widest first: groups of panels, one panel, and for a symbolic number of columns a
  // vector, which is masked at last.
  std::vector<int64_t> ColumnTiles() const {
    std::vector<int64_t> widths;
    for (int64_t panels = panels_; panels >= 1; panels /= 2) widths.push_back(panels * kPanel);
    if (!columns_ && lanes_ > 1 && lanes_ < kPanel) widths.push_back(lanes_);
    return widths;
  }

  void CutColumnsBy(BlockRV block, LoopRV n, std::vector<LoopRV> batch, LoopRV m_block, LoopRV m,
                    std::vector<int64_t> widths) {
    const auto extent = AsConstInt(s_.Loop(n).loop->extent);
    const bool is_rest = extent && *extent < kPanel;  // the last columns, as one odd vector
    const bool is_masked = widths.empty();            // the last columns of a symbolic number
    const int64_t width = is_rest     ? std::max<int64_t>(*extent, 1)
                          : is_masked ? std::min(lanes_, kPanel)
                                      : widths.front();
    if (!is_rest && !is_masked) widths.erase(widths.begin());
    const Schedule::Parts parts = is_masked ? Schedule::Parts{n, LoopRV{}} : s_.LoopPartition(n, width);
    if (!s_.IsVoid(parts.tail)) {
      if (s_.IsVoid(parts.main)) return CutColumnsBy(block, n, batch, m_block, m, widths);
      const BlockRV tail = s_.GetChildBlocks(parts.tail)[0];
      // The copies of the loops around the rows, in their order: batch, block, rows.
      const HandleList<InnerLoop> inner = InnerLoops(s_, tail, parts.tail);
      size_t next = 0;
      std::vector<LoopRV> tail_batch;
      while (next < batch.size()) tail_batch.push_back(inner[next++].loop);
      const LoopRV tail_block = m_block.id >= 0 ? inner[next++].loop : LoopRV{};
      const LoopRV tail_m = m.id >= 0 ? inner[next].loop : LoopRV{};
      CutColumnsBy(tail, parts.tail, tail_batch, tail_block, tail_m, widths);
    }
    const LoopRVs split = s_.Split(parts.main, {kRest, width});
    std::vector<LoopRV> around, inside;
    (batch_inside_ ? inside : around) = batch;
    if (m_block.id >= 0) around.push_back(m_block);
    around.push_back(split[0]);
    inside.insert(inside.end(), {m, split[1]});
    Order(around, inside);
    const LoopRV task = around.size() > 1 ? s_.Fuse(around) : around[0];
    // The last columns are packed where they are not read in vectors, unless the size of the copy were a long formula.
    const bool is_last = is_masked || (width < kPanel && !columns_);
    const bool packs = !is_last || (product_.right == Right::kColumns && constant_depth_);
    groups_.push_back({block, task, m, split[1], width, packs});
    if (s_.IsVoid(depth_partial_)) CutRows(block, task, m, split[1], groups_.size() - 1);
  }

  void CutRows(BlockRV block, LoopRV task, LoopRV m, LoopRV x, size_t group) {
    if (m.id < 0) {  // one row
      tiles_.push_back({block, task, LoopRV{}, x, group});
      return;
    }
    const Schedule::Parts parts = s_.LoopPartition(m, RowsInFullTiles(m));
    if (!s_.IsVoid(parts.main)) AddTile(block, parts.main, tile_rows_, x, group);
    LoopRV tail = parts.tail;
    int64_t rows = NextFewer(tile_rows_);
    BlockRV tail_block = block;
    if (!s_.IsVoid(tail) && !s_.IsVoid(parts.main)) tail_block = s_.GetChildBlocks(tail)[0];
    while (!s_.IsVoid(tail)) {
      const LoopRV tail_x = InnerLoops(s_, tail_block, tail)[0].loop;
      if (const auto extent = AsConstInt(s_.Loop(tail).loop->extent)) {
        const int64_t left = *extent;
        if (left <= tile_rows_) return AddTile(tail_block, tail, left, tail_x, group);
        const int64_t height = (left + 1) / 2;
        const Schedule::Parts halves = s_.LoopPartition(tail, height);
        const BlockRV rest = s_.IsVoid(halves.tail) ? BlockRV{} : s_.GetChildBlocks(halves.tail)[0];
        AddTile(tail_block, halves.main, height, tail_x, group);
        if (s_.IsVoid(halves.tail)) return;
        return AddTile(rest, halves.tail, left - height, InnerLoops(s_, rest, halves.tail)[0].loop, group);
      }
      if (is_amx_ && rows < kAmxRows) {
        const LoopRVs split = s_.Split(tail, {1, kRest});
        tiles_.push_back({tail_block, split[0], split[1], tail_x, group});
        return;
      }
      const Schedule::Parts halves = s_.LoopPartition(tail, rows);
      const BlockRV rest = s_.IsVoid(halves.tail) ? BlockRV{} : s_.GetChildBlocks(halves.tail)[0];
      if (!s_.IsVoid(halves.main)) AddTile(tail_block, halves.main, rows, tail_x, group);
      tail = halves.tail;
      tail_block = rest;
      rows = NextFewer(rows);
    }
  }

  // The multiple at which CutRows partitions the rows: the height of a tile, or, where the rest would be too low a
  // tile, all full tiles but one, so that two tiles of nearly equal height share what is left.
  int64_t RowsInFullTiles(LoopRV m) const {
    constexpr int64_t kLeast = 4;  // below, the accumulators of two vectors wait for each other
    const auto extent = AsConstInt(s_.Loop(m).loop->extent);
    if (!extent || *extent % tile_rows_ == 0 || *extent % tile_rows_ >= kLeast || *extent < 2 * tile_rows_) {
      return tile_rows_;
    }
    return (*extent / tile_rows_ - 1) * tile_rows_;
  }

  // The height of the next smaller tile for the rest of a symbolic number of rows. Low tiles shrink by one row, so that
  // every rest is a single tile; high tiles shrink faster, and a rest takes two or three of them.
  int64_t NextFewer(int64_t rows) const {
    if (is_amx_) return rows > kAmxRows ? kAmxRows : 1;  // then all that are left
    constexpr int64_t kLow = 6;
    return std::max<int64_t>(rows <= kLow ? rows - 1 : rows * 5 / 7, 1);
  }

  // Adds the tiles of a loop over a multiple of `rows` rows, with x inside.
  void AddTile(BlockRV block, LoopRV m, int64_t rows, LoopRV x, size_t group) {
    const LoopRVs split = s_.Split(m, {kRest, rows});
    tiles_.push_back({block, split[0], split[1], x, group});
  }

  // Each tile nest gets its own copy of the reduction, and each group of tiles that packs gets its own copy of the
  // panels.
  void PlaceReductions() {
    if (tiles_.empty()) return;  // a primitive was refused
    std::vector<BlockRV> partial(tiles_.size());
    const auto packs = [&](size_t group) { return packs_ && groups_[group].packs; };
    // The original reduction goes to the first tile that packs, since copies made after packing read the packed panels.
    size_t first = 0;
    while (packs_ && first + 1 < tiles_.size() && !packs(tiles_[first].group)) ++first;
    for (size_t i = tiles_.size(); i-- > 0;) {
      if (i != first && !packs(tiles_[i].group)) partial[i] = s_.RecomputeFor(reduction_, tiles_[i].block);
    }
    partial[first] = reduction_;
    std::vector<BlockRV> panels(groups_.size());
    if (packs(tiles_[first].group)) {
      const BlockRV packed = CacheRight();
      for (size_t i = tiles_.size(); i-- > 0;) {
        if (i != first && packs(tiles_[i].group)) partial[i] = s_.RecomputeFor(reduction_, tiles_[i].block);
      }
      for (size_t g = groups_.size(); g-- > 0;) {
        std::vector<BlockRV> readers;
        for (size_t i = 0; i < tiles_.size(); ++i) {
          if (tiles_[i].group == g) readers.push_back(partial[i]);
        }
        if (packs(g)) panels[g] = g == tiles_[first].group ? packed : s_.RecomputeFor(packed, readers);
      }
    }
    for (size_t i = tiles_.size(); i-- > 0;) PlaceTile(tiles_[i], partial[i]);
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (panels[g].id >= 0) PlacePanels(panels[g], groups_[g].task);
    }
  }

  // Each task sets its results to zero, adds the tiles of each block of k to them, and writes them back.
  void PlaceDepthBlocks() {
    std::vector<BlockRV> sums(groups_.size());
    for (size_t g = groups_.size(); g-- > 0;) {
      sums[g] = g == 0 ? reduction_ : s_.RecomputeFor(reduction_, groups_[g].block);
    }
    for (size_t g = 0; g < groups_.size(); ++g) {
      const Group& group = groups_[g];
      s_.ComputeAt(sums[g], group.task);
      const BlockSite site = s_.Block(sums[g]);
      std::vector<LoopRV> order;
      LoopRV k, m, x;
      for (const InnerLoop& entry : InnerLoops(s_, sums[g], group.task)) {
        const bool reduces = Reduces(site, entry);
        if (reduces) k = entry.loop;
        if (entry.iter == product_.m) m = entry.loop;
        if (entry.iter == product_.n) x = entry.loop;
        if (!reduces && entry.iter != product_.m && entry.iter != product_.n) order.push_back(entry.loop);
      }
      order.insert(order.end(), {k, m});
      Order(order, {x});
      s_.DecomposeReduction(sums[g], k);
      CutRows(sums[g], LoopRV{}, m, x, g);
      Vectors(group.x);
    }
    for (size_t i = tiles_.size(); i-- > 0;) {
      PlaceTile(tiles_[i], i == 0 ? depth_partial_ : s_.RecomputeFor(depth_partial_, tiles_[i].block));
    }
  }

  // The copy of b that tiles read, with its columns innermost.
  BlockRV CacheRight() {
    const BlockSite site = s_.Block(reduction_);
    const auto& reads = site.block().reads;
    const auto read = std::ranges::find_if(reads, [&](const auto& r) { return r.buffer.same_as(product_.b); });
    const BlockRV packed = s_.CacheRead(reduction_, read - reads.begin(), "global");
    if (product_.right == Right::kColumns) {
      std::vector<int64_t> axes;
      for (size_t d = 0; d < product_.b->shape.size(); ++d) axes.push_back(static_cast<int64_t>(d));
      std::swap(axes[product_.k_dimension], axes[product_.n_dimension]);
      s_.TransformLayout(packed, 0, PermutingMap(axes));
    }
    return packed;
  }

  void PlaceTile(const GemmTile& tile, BlockRV partial) {
    s_.ComputeAt(partial, tile.attach);
    handled_.push_back(s_.Block(partial).block().name);
    handled_.push_back(s_.Block(tile.block).block().name);
    std::vector<LoopRV> batch;
    LoopRV k, y, x;
    for (const InnerLoop& entry : InnerLoops(s_, partial, tile.attach)) {
      LoopRV& place = entry.iter == product_.k ? k : entry.iter == product_.m ? y : x;
      if (entry.iter == product_.k || entry.iter == product_.n || entry.iter == product_.m) {
        place = entry.loop;
      } else {
        batch.push_back(entry.loop);
      }
    }
    constexpr int64_t kLeastAmxRows = 4;
    const auto height = y.id >= 0 ? AsConstInt(s_.Loop(y).loop->extent) : std::optional<int64_t>(1);
    if (is_amx_ && height.value_or(kLeastAmxRows) >= kLeastAmxRows) {
      PlaceAmxTile(batch, y, x, k);
      return Vectors(tile.x);
    }
    LoopRVs steps{k};
    if (constant_depth_ && unrolled_steps_ > 1 && *constant_depth_ % unrolled_steps_ == 0 &&
        *constant_depth_ > unrolled_steps_) {
      steps = s_.Split(k, {kRest, unrolled_steps_});
    }
    k = steps[0];
    batch.insert(batch.end(), steps.begin(), steps.end());
    Order(batch, {y, x});
    if (steps.size() > 1) s_.Unroll(steps[1]);
    Vectors(x);
    if (y.id >= 0) s_.Unroll(y);
    s_.DecomposeReduction(partial, k);
    if (tile.y.id >= 0) s_.Unroll(tile.y);
    Vectors(tile.x);
  }

  // Each sum begins inside of the nest, as a tile of zeros.
  void PlaceAmxTile(std::vector<LoopRV> around, LoopRV y, LoopRV x, LoopRV k) {
    around.push_back(y);
    if (AsConstInt(s_.Loop(x).loop->extent).value_or(0) > kPanel) {
      const LoopRVs columns = s_.Split(x, {kRest, kPanel});
      Order(around, {columns[0], columns[1], k});
    } else {
      Order(around, {x, k});
    }
    s_.Annotate(y, kAmxProduct, int64_t{1});
  }

  // Vectorizes x: whole panels by panel and vector, anything narrower as VectorizeTile does.
  void Vectors(LoopRV x) {
    if (s_.IsVoid(x)) return;
    const auto extent = AsConstInt(s_.Loop(x).loop->extent);
    if (!extent || *extent < 2) return;
    if (*extent % kPanel != 0 || lanes_ > kPanel || kPanel % lanes_ != 0) return VectorizeTile(s_, x, lanes_);
    const LoopRVs parts = s_.Split(x, {kRest, kPanel / lanes_, lanes_});
    s_.Unroll(parts[0]);
    s_.Unroll(parts[1]);
    s_.Vectorize(parts[2]);
  }

  void PlacePanels(BlockRV packed, LoopRV task) {
    s_.ComputeAt(packed, task);
    handled_.push_back(s_.Block(packed).block().name);
    std::vector<LoopRV> order;
    LoopRV k, x;
    for (const InnerLoop& entry : InnerLoops(s_, packed, task)) {
      LoopRV& place = entry.iter == product_.k_dimension ? k : x;
      if (entry.iter == product_.k_dimension || entry.iter == product_.n_dimension) {
        place = entry.loop;
      } else {
        order.push_back(entry.loop);
      }
    }
    Order(order, {k, x});
    if (product_.right == Right::kRows) return VectorizeTile(s_, x, lanes_);
    const auto width = s_.IsVoid(x) ? std::nullopt : AsConstInt(s_.Loop(x).loop->extent);
    if (!width) return;
    const int64_t side = SquareSide(product_.b->dtype.bits, target_);
    if (*width % side != 0) return s_.Unroll(x);
    // Squares of b are transposed in registers; the last steps are stored element by element.
    const Schedule::Parts steps = s_.LoopPartition(k, side);
    if (!s_.IsVoid(steps.tail)) {
      const LoopRV rest =
          s_.IsVoid(steps.main) ? x : InnerLoops(s_, s_.GetChildBlocks(steps.tail)[0], steps.tail)[0].loop;
      if (*width <= kPanel) s_.Unroll(rest);
    }
    if (s_.IsVoid(steps.main)) return;
    const LoopRVs rows = s_.Split(steps.main, {kRest, side}), columns = s_.Split(x, {kRest, side});
    s_.Reorder({columns[0], rows[0], rows[1], columns[1]});
    s_.Vectorize(columns[1]);
    s_.Vectorize(rows[1]);
  }

  struct Group {
    BlockRV block;  // of the write-back
    LoopRV task, m, x;
    int64_t width;  // of its tiles
    bool packs;     // if the product packs
  };

  Schedule& s_;
  BlockRV reduction_;
  BlockRV depth_partial_;  // sums over a block of k; void: k is not cut
  const Target& target_;
  std::vector<BlockName> handled_;
  Product product_;
  std::optional<int64_t> rows_, columns_, constant_depth_;
  int64_t batches_ = 1, depth_ = 1, lanes_ = 1, element_bytes_ = 4;
  int64_t tile_rows_ = 1, panels_ = 1, unrolled_steps_ = 1;
  std::optional<int64_t> block_rows_;
  bool packs_ = false;
  bool is_amx_ = false;
  bool batch_inside_ = false;  // the loops over batches are inside of a task
  std::vector<GemmTile> tiles_;
  std::vector<Group> groups_;
};

}  // namespace

Match<> MatchesGemm(const ScheduleState& state, const BlockSite& site, const Target&) {
  const Match<> reduction = AsReduction(state, site);
  if (!reduction) return reduction;
  const Match<Product> product = FindProduct(site);
  if (product && product->right != Right::kPanels && product->m < 0) {
    return Declined{"it is a vector times a matrix that is not in panels"};
  }
  if (!product) return product.declined();
  switch (product->right) {
    case Right::kPanels:
      return Taken{"second factor in panels of columns"};
    case Right::kRows:
      return Taken{"second factor in rows"};
    case Right::kColumns:
      return Taken{"second factor in columns"};
  }
  INGOT_UNREACHABLE("Right");
}

std::vector<BlockName> ApplyGemm(Schedule& s, const BlockSite& site, const Target& target) {
  return GemmBuilder(s, site.block().name, target).Build(site);
}

}  // namespace ingot::schedule
