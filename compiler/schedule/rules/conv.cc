// Windows over channels in blocks: direct convolution over NCHW16c (dense, grouped, depthwise, 1x1, few channels) and
// pooling; and over volumes, NDCHW16c, of which each plane of the result is an image.
//
//   out[n, o, y, x, v] or out[n, d, o, y, x, v] = reduce over k of f(data[n, .., y.., x.., ..], weight[o, k, v])
//
// A register tile is T columns of x times B blocks of o times the vectors of v. It stays in registers while the
// reduction runs; each vector of weights is used T times and each element of data, broadcast, for B blocks. Where rows
// are short, a tile has several of them.
// Element-wise consumers run in the tile's write-back. Where every load follows v (depthwise, pooling) there is nothing
// to broadcast and B is 1.
//
// Rows (columns, where there is but one row: 1x1 convolutions over flattened images) come in strips. A strip's input
// stays in the second-level cache while all blocks of o pass over it; padding is a stage that is computed strip by
// strip, so that it costs a copy within the cache and no pass over memory. Tasks are strips of one image and group,
// with a part of the blocks of o each where strips are few. A strip of a volume is rows of one plane, or several whole
// planes: then weights that leave the second-level cache are read for all of them at once.
//
// A row of x is cut into tiles of nearly equal width: 14 columns become 5 + 5 + 4 rather than 6 + 6 + 2, which has too
// few multiply-adds in flight to hide their latency.
//
// Heights and widths may be symbolic. Rows then come in strips of a few, the last of which is shorter; a row is cut
// into full tiles and into ever narrower ones for the rest, which take more blocks of o at once; the columns of a
// flattened image come in strips of whole tiles, and the rest of them is a task of its own.
#include <algorithm>
#include <functional>

#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/conv_choice.h"
#include "compiler/schedule/rules/conv_window.h"
#include "compiler/schedule/rules/epilogue.h"
#include "compiler/schedule/rules/rules.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

constexpr int64_t kMostTunedExtent = 1 << 14;  // of longer rows tuning does not choose strips
constexpr int64_t kMostWindowSteps = 32;       // of a window

// Splits the loop where its extent is greater than the factor: {outer or void, inner}.
std::pair<LoopRV, LoopRV> SplitBy(Schedule& s, LoopRV loop, int64_t extent, int64_t factor) {
  if (factor >= extent) return {LoopRV{}, loop};
  const LoopRVs parts = s.Split(loop, {kRest, factor});
  return {parts[0], parts[1]};
}

struct ConvTile {
  BlockRV out;
  LoopRV attach;                    // one iteration per tile
  LoopRV columns, rows, blocks, v;  // of the write-back; rows and blocks may be void
};

// Cuts x, around loops of the task, some blocks of o (no loop where it has one) and v, into tiles of `most` columns and
// then of ever narrower ones, each of as many of these blocks as `blocks_of` says. The tiles of one width and some blocks
// are computed one after the other, in all rows: their weights stay in the first-level cache.
std::vector<ConvTile> CutSymbolicRow(Schedule& s, BlockRV out, LoopRV x, int64_t most, int64_t blocks_at_hand,
                                     const std::function<int64_t(int64_t columns)>& blocks_of) {
  std::vector<ConvTile> result;
  for (int64_t columns = most; columns > 0; columns = NarrowerTile(columns)) {
    const Schedule::Parts parts = s.LoopPartition(x, columns);
    if (!s.IsVoid(parts.main)) {
      const LoopRVs loops = s.Split(parts.main, {kRest, columns});
      // Loops of the task, then blocks where there are several, and v.
      const HandleList<InnerLoop> inner = InnerLoops(s, out, loops[1]);
      const size_t own = blocks_at_hand > 1 ? 2 : 1;
      if (inner.size() < own) return result;  // a primitive was refused
      ConvTile tile{out, loops[0], loops[1], {}, {}, inner.back().loop};
      std::vector<LoopRV> order;
      if (blocks_at_hand > 1) {
        const auto [turns, blocks] = SplitBy(s, inner[inner.size() - own].loop, blocks_at_hand, blocks_of(columns));
        if (turns.id >= 0) order.push_back(turns);
        tile.blocks = blocks;
      }
      for (size_t i = 0; i + own < inner.size(); ++i) order.push_back(inner[i].loop);
      order.insert(order.end(), {loops[0], loops[1]});
      if (tile.blocks.id >= 0) order.push_back(tile.blocks);
      order.push_back(tile.v);
      s.Reorder(order);
      result.push_back(tile);
    }
    if (s.IsVoid(parts.tail)) break;
    out = s.GetChildBlocks(parts.tail)[0];
    x = parts.tail;
  }
  return result;
}

// Cuts x, around `rows` and `blocks` of the tile (void where it has one) and v, into tiles of nearly equal width.
std::vector<ConvTile> CutRow(Schedule& s, BlockRV out, LoopRV x, int64_t width, TileChoice choice) {
  const int64_t most = choice.columns;
  std::vector<ConvTile> result;
  const auto add = [&](BlockRV block, LoopRV row, int64_t columns) {
    const LoopRVs loops = s.Split(row, {kRest, columns});
    ConvTile tile{block, loops[0], loops[1], {}, {}, {}};
    const HandleList<InnerLoop> inner = InnerLoops(s, block, loops[1]);
    tile.v = inner.back().loop;
    if (choice.rows > 1) tile.rows = inner.front().loop;
    if (choice.blocks > 1) tile.blocks = inner[inner.size() - 2].loop;
    result.push_back(tile);
  };
  const int64_t tiles = (width + most - 1) / most;
  const int64_t narrow = width / tiles, wide_tiles = width % tiles;
  std::vector<std::pair<int64_t, int64_t>> groups;  // tiles, columns of each
  if (wide_tiles > 0) groups.push_back({wide_tiles, narrow + 1});
  groups.push_back({tiles - wide_tiles, narrow});
  // The longer part comes first, since loop_partition makes a main part of more than half.
  if (groups.size() == 2 && groups[0].first * groups[0].second < groups[1].first * groups[1].second) {
    std::swap(groups[0], groups[1]);
  }
  if (groups.size() == 1) {
    add(out, x, groups[0].second);
    return result;
  }
  const Schedule::Parts parts = s.LoopPartition(x, groups[0].first * groups[0].second);
  const BlockRV tail = s.GetChildBlocks(parts.tail)[0];
  add(out, parts.main, groups[0].second);
  add(tail, parts.tail, groups[1].second);
  return result;
}

// How the reduction runs under a tile.
struct ReductionOrder {
  int64_t unrolled_steps = 4;   // over the channels of a block
  bool window_outside = false;  // the window around the blocks of channels
  int64_t unrolled_loops = 0;   // all of the innermost ones
};

// The reduction under a tile: its reduction loops around the unrolled tile.
void PlaceReduction(Schedule& s, BlockRV partial, const ConvTile& tile, int64_t lanes, const ReductionOrder& how) {
  s.ComputeAt(partial, tile.attach);
  const BlockSite site = s.Block(partial);
  const int x = IterAlong(site, kX), o = IterAlong(site, kO), v = IterAlong(site, kV);
  const int y = tile.rows.id >= 0 ? IterAlong(site, kY) : -1;
  LoopRVs units, reduce;
  LoopRV columns, rows, blocks, vector;
  for (const InnerLoop& entry : InnerLoops(s, partial, tile.attach)) {
    if (entry.iter == x) {
      columns = entry.loop;
    } else if (entry.iter >= 0 && entry.iter == y) {
      rows = entry.loop;
    } else if (entry.iter == o) {
      blocks = entry.loop;
    } else if (entry.iter == v) {
      vector = entry.loop;
    } else {
      (Reduces(site, entry) ? reduce : units).push_back(entry.loop);
    }
  }
  if (how.window_outside && reduce.size() > 2) {  // the first loop comes last but one
    LoopRVs turned;
    for (size_t i = 1; i + 1 < reduce.size(); ++i) turned.push_back(reduce[i]);
    turned.push_back(reduce[0]);
    turned.push_back(reduce.back());
    reduce = turned;
  }
  std::vector<LoopRV> order(units.begin(), units.end());
  order.insert(order.end(), reduce.begin(), reduce.end());
  for (LoopRV loop : {columns, rows, blocks, vector}) {
    if (loop.id >= 0) order.push_back(loop);
  }
  s.Reorder(order);
  const LoopRV first = reduce[0];
  // The innermost steps go over the channels of a block, whose elements lie side by side. Integers are multiplied and
  // added by two instructions: with the products of several steps at hand, LLVM computes more of them at once than
  // there are registers.
  const auto steps = AsConstInt(s.Loop(reduce.back()).loop->extent);
  const bool is_float = StoreOf(site).buffer->dtype.is_floating();
  const int64_t at_once = how.unrolled_steps;
  const bool is_split = is_float && reduce.size() > 1 && steps && at_once > 1 && *steps > at_once;
  if (how.unrolled_loops > 0) {
    for (size_t i = reduce.size(); i-- > reduce.size() - static_cast<size_t>(how.unrolled_loops);) s.Unroll(reduce[i]);
  } else if (is_split && *steps % at_once == 0) {
    s.Unroll(s.Split(reduce.back(), {kRest, at_once})[1]);
  }
  VectorizeTile(s, vector, lanes);
  for (LoopRV loop : {blocks, rows, columns}) {
    if (loop.id >= 0) s.Unroll(loop);
  }
  s.DecomposeReduction(partial, first);
}

// The loops around a write-back; groups, strips and planes are void where there is one of them.
struct ConvPart {
  BlockRV out;
  LoopRV loops[kConvRank];
  LoopRV groups, strips, planes;  // planes: what is taken together is loops[kD]
  std::optional<int64_t> width;   // columns of a strip
};

class ConvNest {
 public:
  ConvNest(Schedule& s, const BlockSite& site, const Target& target)
      : s_(s),
        site_(site),
        target_(target),
        window_(AnalyzeWindow(site)),
        lanes_(target.vector_lanes(StoreOf(site).buffer->dtype.bits)),
        blocks_(ExtentOf(site, kO) / window_.groups),
        cost_(KnownInstances(site) * CostOfInstance(site)) {
    for (const int dimension : {kY, kX, kD}) {
      if (!ConstantOf(site, dimension)) cost_ *= LikelyExtent(site, dimension);
    }
  }

  std::vector<BlockName> Apply() {
    handled_ = {site_.block().name};
    reduction_ = s_.GetBlock(site_.block().name);
    for (BlockRV producer : s_.GetProducers(reduction_)) {
      if (IsInjective(s_.state(), s_.Block(producer))) stages_.push_back(producer);
    }
    for (const ConvPart& part : CutStrips(WholeResult())) PlaceTasks(part);
    const ReductionOrder how = TunedOrder();
    // Each tile nest gets its own copy of the reduction. The first one gets the original, after all others were copied.
    for (size_t i = tiles_.size(); i-- > 0;) {
      const BlockRV partial = i == 0 ? reduction_ : s_.RecomputeFor(reduction_, tiles_[i].out);
      PlaceReduction(s_, partial, tiles_[i], lanes_, how);
      handled_.push_back(s_.Block(partial).block().name);
      handled_.push_back(s_.Block(tiles_[i].out).block().name);
      VectorizeTile(s_, tiles_[i].v, lanes_);
      for (LoopRV loop : {tiles_[i].blocks, tiles_[i].rows, tiles_[i].columns}) {
        if (loop.id >= 0) s_.Unroll(loop);
      }
    }
    for (BlockRV stage : stages_) PlaceStage(stage);
    for (LoopRV task : tasks_) ParallelizeByLikelyCost(s_, task, cost_ / std::max<int64_t>(num_tasks_, 1));
    return std::move(handled_);
  }

 private:
  ConvPart WholeResult() {
    ConvPart whole;
    whole.out = WriteBack(s_, reduction_, handled_);
    FindLoops(whole, LoopRV{});
    // Groups are the outermost loop of a task.
    if (window_.groups > 1) {
      const LoopRVs split = s_.Split(whole.loops[kO], {kRest, blocks_});
      whole.groups = split[0];
      whole.loops[kO] = split[1];
    }
    return whole;
  }

  void FindLoops(ConvPart& part, LoopRV outer) {
    const BlockSite out_site = s_.Block(part.out);
    for (const InnerLoop& entry : InnerLoops(s_, part.out, outer)) {
      for (int d = 0; d < kConvRank; ++d) {
        if (entry.iter >= 0 && entry.iter == IterAlong(out_site, d)) part.loops[d] = entry.loop;
      }
    }
  }

  // Cuts rows, or the columns of one row, into strips.
  std::vector<ConvPart> CutStrips(ConvPart whole) {
    const std::optional<int64_t> rows = ConstantOf(site_, kY), columns = ConstantOf(site_, kX);
    const bool by_columns = rows == 1;
    whole.width = columns;
    if (by_columns && !columns) return CutColumns(whole);
    const int64_t along = by_columns ? *columns : LikelyExtent(site_, kY);
    const std::optional<int64_t> depth = ConstantOf(site_, kD);
    Strip strip{RowsOfSymbolicStrip(), PlanesAtOnce()};
    if (rows && !window_.broadcasts) {
      strip = {ChooseShortStrip(along, window_, target_), 1};
    } else if (rows) {
      strip = ChooseStrip(along, depth.value_or(1), blocks_, window_, target_);
      if (!depth) strip.planes = PlanesAtOnce();
    }
    if (rows && along <= kMostTunedExtent) strip.rows = s_.Choose("conv.strip", strip.rows, Divisors(along));
    num_strips_ = along / std::clamp<int64_t>(strip.rows, 1, std::max<int64_t>(along, 1));
    LoopRV& loop = whole.loops[by_columns ? kX : kY];
    if (rows) {
      std::tie(whole.strips, loop) = SplitBy(s_, loop, along, strip.rows);
    } else {
      const LoopRVs parts = s_.Split(loop, {kRest, strip.rows});
      whole.strips = parts[0];
      loop = parts[1];
    }
    if (by_columns) whole.width = strip.rows;
    CutPlanes(whole, strip.planes);
    return {whole};
  }

  // `at_once` planes of a volume belong to a task, all of them where it is 0.
  void CutPlanes(ConvPart& part, int64_t at_once) {
    LoopRV& planes = part.loops[kD];
    if (planes.id < 0 || at_once == 0) return;
    const std::optional<int64_t> depth = ConstantOf(site_, kD);
    if (at_once == 1) {
      std::swap(part.planes, planes);
      num_planes_ = LikelyExtent(site_, kD);
    } else if (depth) {
      std::tie(part.planes, planes) = SplitBy(s_, planes, *depth, at_once);
      num_planes_ = *depth / at_once;
    }
  }
  // Of a symbolic number: all where weights leave the second-level cache.
  int64_t PlanesAtOnce() const { return window_.broadcasts && window_.weight_bytes > target_.l2_bytes ? 0 : 1; }

  // A symbolic number of columns in one row: strips of whole tiles, and the rest. Where a stage pads the row, it is
  // one strip, since the stage is computed in one place.
  std::vector<ConvPart> CutColumns(ConvPart whole) {
    if (!stages_.empty()) return {whole};
    const int64_t strip = ColumnsOfStrip();
    num_strips_ = LikelyExtent(site_, kX) / strip;
    Reorder({whole.loops[kX], whole.loops[kN], whole.loops[kD], whole.groups, whole.loops[kO], whole.loops[kY],
             whole.loops[kV]});
    const Schedule::Parts parts = s_.LoopPartition(whole.loops[kX], strip);
    std::vector<ConvPart> result;
    if (!s_.IsVoid(parts.main)) {
      ConvPart main = whole;
      const LoopRVs split = s_.Split(parts.main, {kRest, strip});
      main.strips = split[0];
      main.loops[kX] = split[1];
      main.width = strip;
      CutPlanes(main, PlanesAtOnce());
      result.push_back(main);
    }
    if (!s_.IsVoid(parts.tail)) {
      ConvPart tail;
      tail.out = s_.GetChildBlocks(parts.tail)[0];
      const HandleList<InnerLoop> inner = InnerLoops(s_, tail.out, parts.tail);
      size_t next = 0;
      tail.loops[kX] = parts.tail;
      for (const int d : {kN, kD, kO, kY, kV}) {
        if (d == kO && whole.groups.id >= 0) tail.groups = inner[next++].loop;
        if (whole.loops[d].id >= 0) tail.loops[d] = inner[next++].loop;
      }
      CutPlanes(tail, PlanesAtOnce());
      result.push_back(tail);
    }
    return result;
  }

  // Weights that leave the second-level cache are read by each strip again: then strips are taller.
  int64_t RowsOfSymbolicStrip() const {
    constexpr int64_t kRows = 4, kRowsOfLargeWeights = 16;
    return window_.weight_bytes > target_.l2_bytes / 4 ? kRowsOfLargeWeights : kRows;
  }

  // Whole tiles whose input stays in half of the second-level cache.
  int64_t ColumnsOfStrip() const {
    constexpr int64_t kMostTiles = 16;
    const int64_t tile = TileOf(std::nullopt, std::nullopt).columns;
    const int64_t bytes = std::max<int64_t>(window_.input_bytes * tile / LikelyExtent(site_, kX), 1);
    return tile * std::clamp<int64_t>(target_.l2_bytes / 2 / bytes, 1, kMostTiles);
  }

  TileChoice TileOf(std::optional<int64_t> width, std::optional<int64_t> rows) const {
    if (!width) rows = std::nullopt;
    if (!width && (!IsVolume(site_) || ConstantOf(site_, kY) == 1)) width = LikelyExtent(site_, kX);
    return ChooseTile(width, rows, blocks_, ExtentOf(site_, kV) / lanes_, window_, target_);
  }

  // Of a symbolic width, the blocks of o that lie around a row's tiles: a multiple of those of its full tile.
  int64_t BlocksAtHand(const TileChoice& tile) const {
    constexpr int64_t kMost = 8;
    int64_t best = tile.blocks;
    if (!window_.broadcasts) return best;
    for (const int64_t blocks : Divisors(blocks_)) {
      if (blocks % tile.blocks == 0 && blocks <= kMost) best = std::max(best, blocks);
    }
    return best;
  }

  // With one block, a few columns have too few multiply-adds to hide their latency.
  int64_t BlocksOfNarrowTile(int64_t columns, int64_t at_hand) const {
    constexpr double kFromSecondLevel = 0.25;
    const int64_t vectors = ExtentOf(site_, kV) / lanes_;
    int64_t best = 1;
    double best_cycles = 0;
    for (const int64_t blocks : Divisors(at_hand)) {
      if (blocks > 1 && (columns + 1) * blocks * vectors + 1 > target_.num_vector_registers) break;
      const double cycles =
          CyclesOfTile(columns, {columns, blocks}, vectors, kFromSecondLevel, target_) / static_cast<double>(blocks);
      if (blocks > 1 && cycles >= best_cycles) continue;
      best = blocks;
      best_cycles = cycles;
    }
    return best;
  }

  // What tuning may do about the tile: any that the registers hold.
  TileChoice TunedTile(TileChoice tile, int64_t width) {
    const int64_t vectors = ExtentOf(site_, kV) / lanes_, registers = target_.num_vector_registers;
    const auto most_columns = [&](int64_t blocks) { return (registers - blocks * vectors - 1) / (blocks * vectors); };
    std::vector<int64_t> blocks, columns;
    for (const int64_t count : Divisors(blocks_)) {
      if (count == 1 || (window_.broadcasts && most_columns(count) >= 1)) blocks.push_back(count);
    }
    tile.blocks = s_.Choose("conv.blocks", tile.blocks, blocks);
    const int64_t most = std::clamp<int64_t>(most_columns(tile.blocks), 1, std::max<int64_t>(width, 1));
    for (int64_t count = 1; count <= most; ++count) columns.push_back(count);
    tile.columns = s_.Choose("conv.columns", std::min(tile.columns, most), columns);
    if (tile.columns < width || tile.rows * width > most_columns(tile.blocks)) tile.rows = 1;
    return tile;
  }

  // What tuning may do about the reduction. Where nothing is broadcast it goes over a window alone, whose loops may be
  // unrolled, the innermost ones first.
  ReductionOrder TunedOrder() {
    ReductionOrder how;
    std::vector<int64_t> extents;
    for (const int iter : ReduceIters(site_)) {
      extents.push_back(ConstantExtent(*site_.block().iter_vars[iter]).value_or(kMostWindowSteps + 1));
    }
    if (!window_.broadcasts) {
      std::vector<int64_t> loops{0};
      int64_t steps = 1;
      for (size_t i = extents.size(); i-- > 0 && extents[i] <= kMostWindowSteps / steps; steps *= extents[i]) {
        loops.push_back(static_cast<int64_t>(loops.size()));
      }
      how.unrolled_loops = s_.Choose("conv.unrolled_loops", 0, loops);
    }
    how.unrolled_steps = s_.Choose("conv.unrolled_steps", how.unrolled_steps, {1, 2, 4, 8});
    const bool has_window =
        std::any_of(extents.begin() + 1, extents.end() - 1, [](int64_t extent) { return extent > 1; });
    if (window_.broadcasts && has_window && extents[0] > 1) {
      how.window_outside = s_.Choose("conv.window_outside", 0, {0, 1}) != 0;
    }
    return how;
  }

  // Makes the tasks of a part, and cuts its rows into tiles.
  void PlaceTasks(const ConvPart& part) {
    TileChoice tile = TileOf(part.width, AsConstInt(s_.Loop(part.loops[kY]).loop->extent));
    if (part.width && ConstantOf(site_, kX)) tile = TunedTile(tile, *part.width);
    const int64_t strips_in_all = ExtentOf(site_, kN) * window_.groups * num_strips_ * num_planes_;
    // A symbolic row has tiles of several widths, each with its own number of the blocks that are at hand.
    const int64_t at_hand = part.width ? tile.blocks : BlocksAtHand(tile);
    int64_t parts = window_.broadcasts ? ChooseParts(blocks_ / at_hand, strips_in_all, cost_) : blocks_;
    if (window_.broadcasts && ConstantOf(site_, kX)) {
      parts = s_.Choose("conv.parts", parts, Divisors(blocks_ / at_hand));
    }
    num_tasks_ = strips_in_all * parts;
    LoopRV o = part.loops[kO], tile_blocks, tile_rows, task_blocks;
    if (at_hand > 1) {
      const LoopRVs split = s_.Split(o, {kRest, at_hand});
      o = split[0];
      tile_blocks = split[1];
    }
    const LoopRV n = part.loops[kN], d = part.loops[kD], x = part.loops[kX], v = part.loops[kV];
    LoopRV y = part.loops[kY];
    LoopRVs order, tasks;
    if (window_.broadcasts) {
      if (parts > 1) {
        const LoopRVs split = s_.Split(o, {parts, kRest});
        task_blocks = split[0];
        o = split[1];
      }
      tasks = {n, part.planes, part.groups, part.strips, task_blocks};
      const auto rows = AsConstInt(s_.Loop(y).loop->extent), others = AsConstInt(s_.Loop(o).loop->extent);
      if (tile.rows > 1) {
        const LoopRVs split = s_.Split(y, {kRest, tile.rows});
        y = split[0];
        tile_rows = split[1];
      }
      const bool has_both = rows && *rows > 1 && others && *others > 1;
      const bool rows_outside = has_both && part.width && s_.Choose("conv.rows_outside", 0, {0, 1}) != 0;
      order = {n, part.planes, part.groups, part.strips, task_blocks, o, d, y, x, tile_rows, tile_blocks, v};
      if (!part.width) order = {n, part.planes, part.groups, part.strips, task_blocks, o, x, d, y, tile_blocks, v};
      if (rows_outside) {
        order = {n, part.planes, part.groups, part.strips, task_blocks, d, y, o, x, tile_rows, tile_blocks, v};
      }
    } else {
      tasks = {n, part.planes, o, part.strips};
      order = {n, part.planes, o, part.strips, d, y, x, v};
    }
    Reorder(order);
    erase_if(tasks, IsVoidLoop);
    tasks_.push_back(tasks.size() > 1 ? s_.Fuse(tasks) : tasks[0]);
    const auto blocks_of = [&](int64_t columns) {
      return columns == tile.columns ? tile.blocks : BlocksOfNarrowTile(columns, at_hand);
    };
    for (const ConvTile& cut : part.width ? CutRow(s_, part.out, x, *part.width, tile)
                                          : CutSymbolicRow(s_, part.out, x, tile.columns, at_hand, blocks_of)) {
      tiles_.push_back(cut);
    }
  }

  // Padding is computed strip by strip, under the task's loop.
  void PlaceStage(BlockRV stage) {
    handled_.push_back(s_.Block(stage).block().name);
    s_.ComputeAt(stage, tasks_[0]);
    const HandleList<InnerLoop> inner = InnerLoops(s_, stage, tasks_[0]);
    const auto extent = AsConstInt(s_.Loop(inner.back().loop).loop->extent);
    if (extent && *extent <= ExtentOf(site_, kV)) VectorizeTile(s_, inner.back().loop, lanes_);
  }

  static bool IsVoidLoop(LoopRV loop) { return loop.id < 0; }
  void Reorder(LoopRVs order) {
    erase_if(order, IsVoidLoop);
    s_.Reorder(order);
  }

  Schedule& s_;
  const BlockSite& site_;
  const Target& target_;
  const ConvWindow window_;
  const int64_t lanes_, blocks_;
  int64_t cost_;
  std::vector<BlockName> handled_;
  BlockRV reduction_;
  BlockRVs stages_;  // what pads the data
  std::vector<ConvTile> tiles_;
  LoopRVs tasks_;
  int64_t num_strips_ = 1, num_planes_ = 1, num_tasks_ = 1;
};

}  // namespace

Match<> MatchesConv(const ScheduleState& state, const BlockSite& site, const Target& target) {
  const Match<> reduction = AsReduction(state, site);
  if (!reduction) return reduction;
  const size_t rank = StoreOf(site).indices.size();
  if (rank != kImageRank && rank != kVolumeRank) {
    return Declined{"its result is no image with channels in blocks"};
  }
  if (ReduceIters(site).size() < 2) return Declined{"it is a batched product, which has no window"};
  for (int d = 0; d < kConvRank; ++d) {
    if (IterAlong(site, d) < 0 && (d != kD || rank == kVolumeRank)) {
      return Declined{"a dimension of its result has no loop"};
    }
  }
  const int x = IterAlong(site, kX), v = IterAlong(site, kV);
  const std::optional<int64_t> lanes = ConstantExtent(*site.block().iter_vars[v]);
  const int64_t vector = target.vector_lanes(StoreOf(site).buffer->dtype.bits);
  constexpr int64_t kMostVectors = 4;
  if (!lanes || *lanes % vector != 0 || *lanes > kMostVectors * vector) {
    return Declined{"its last axis is no block of channels: one to four vectors"};
  }
  if (!ConstantExtent(*site.block().iter_vars[IterAlong(site, kO)])) {
    return Declined{"the number of its channels is a symbol"};
  }
  bool follows_x = false;
  for (const LoadUse& load : LoadsOf(site)) {
    const int64_t coefficient = load.last_coefficient[v].value_or(-1);
    if (load.outside_last[v] || coefficient < 0 || coefficient > 1) {
      return Declined{"an input does not lie along the last axis, nor is it the same for all of it"};
    }
    // Weights of blocked channels have an element for each of v; where they have one, v is no block: NCDHW.
    if (!load.uses[x] && coefficient != 1) return Declined{"its weights have no element for each of the last axis"};
    follows_x |= load.uses[x];
  }
  if (!follows_x) return Declined{"no input moves with the columns of its result"};
  return Taken{"channels in blocks"};
}

std::vector<BlockName> ApplyConv(Schedule& s, const BlockSite& site, const Target& target) {
  return ConvNest(s, site, target).Apply();
}

}  // namespace ingot::schedule
