// Register tiles: reductions whose result is contiguous along an axis that some input follows too: direct convolutions
// over NCHW, pooling, matrix x vector, and products that are none of gemm.cc's.
//
//   out[..., y, ..., x] = reduce over k of f(a[.. y .. k ..], b[.. k .. x ..])
//
// A tile is `rows` values of y (of which b does not depend) times `vectors` vectors of x; it stays in registers while
// the reduction runs, so that each vector of b is used `rows` times and each element of a `vectors` times. The
// element-wise consumers of the result run in the tile's write-back. The loops over tiles are cut so that every tile is
// full: loop_partition leaves the rest of x to a shorter tile, the rest of a constant y to a tile of fewer rows, the
// rest of a symbolic y to single rows (each with as many vectors as a matrix x vector product has). The rest of a
// symbolic x goes to tiles of ever fewer vectors (where loads have conditions, of one) and to one masked vector.
//
// Where b changes with every so many values of y (the output channels of a group), the rows of a tile are of one group.
#include <algorithm>

#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/epilogue.h"
#include "compiler/schedule/rules/rules.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// Positions in the reduction's iter_vars, and dimensions of its result.
struct TileAxes {
  int x = -1, x_dimension = -1;
  int y = -1, y_dimension = -1;  // -1: no input depends on y and not on x
  int64_t group = 0;             // inputs that follow x change with every so many of y; 0: they do not depend on y
};

// Which quotients of a variable an expression uses: the divisor where it uses nothing else of the variable.
class QuotientFinder : public PrimVisitor {
 public:
  explicit QuotientFinder(const PrimVarNode* var) : var_(var) {}
  std::optional<int64_t> divisor;
  bool is_only_use = true;

 protected:
  using PrimVisitor::Visit;
  void Visit(const BinaryNode& node) override {
    const auto by = node.op == BinaryOp::kFloorDiv && node.a.get() == var_ ? AsConstInt(node.b) : std::nullopt;
    if (!by) return PrimVisitor::Visit(node);
    is_only_use &= !divisor || *divisor == *by;
    divisor = *by;
  }
  void Visit(const PrimVarNode& node) override { is_only_use &= &node != var_; }

 private:
  const PrimVarNode* var_;
};

// The number of values of the iteration variable, a divisor of its extent, for which the load stays at the same place.
std::optional<int64_t> GroupOf(const BufferLoadNode& load, const IterVarNode& iter) {
  QuotientFinder finder(iter.var.get());
  for (const PrimExpr& index : load.indices) finder.VisitPrim(index);
  const std::optional<int64_t> extent = ConstantExtent(iter);
  if (!finder.is_only_use || !finder.divisor || !extent) return std::nullopt;
  return *finder.divisor > 1 && *extent % *finder.divisor == 0 ? finder.divisor : std::nullopt;
}

Match<TileAxes> FindAxes(const BlockSite& site) {
  TileAxes axes;
  const int rank = static_cast<int>(StoreOf(site).indices.size());
  if (rank == 0) return Declined{"its result is a single number"};
  axes.x_dimension = rank - 1;
  axes.x = IterOfDimension(site, rank - 1);
  if (axes.x < 0 || ConstantExtent(*site.block().iter_vars[axes.x]) == 1) {
    return Declined{"its result has one column"};
  }
  const std::vector<LoadUse> loads = LoadsOf(site);
  bool follows_x = false;
  for (const LoadUse& load : loads) {
    if (load.outside_last[axes.x]) return Declined{"an input lies across the last axis of its result"};
    if (!load.last_coefficient[axes.x]) {
      return Declined{"an input is read at computed places along its result's last axis"};
    }
    follows_x |= load.uses[axes.x];
  }
  if (!follows_x) return Declined{"no input lies along the last axis of its result"};
  for (int d = rank - 2; d >= 0 && axes.y < 0; --d) {  // the nearest one
    const int iter = IterOfDimension(site, d);
    if (iter < 0 || ConstantExtent(*site.block().iter_vars[iter]) == 1) continue;
    bool reuses_vectors = false, clashes = false;
    int64_t group = 0;
    for (const LoadUse& load : loads) {
      reuses_vectors |= load.uses[iter] && !load.uses[axes.x];
      if (!load.uses[iter] || !load.uses[axes.x]) continue;
      const std::optional<int64_t> same = GroupOf(*load.load, *site.block().iter_vars[iter]);
      clashes |= !same || (group != 0 && group != *same);
      group = same.value_or(0);
    }
    if (reuses_vectors && !clashes) {
      axes.y = iter;
      axes.y_dimension = d;
      axes.group = group;
    }
  }
  return axes;
}

struct TileShape {
  int64_t rows = 1, lanes = 1, vectors = 1;
};

// Registers hold rows x vectors accumulators, one row of b's vectors and one broadcast element of a.
TileShape ChooseShape(const BlockSite& site, const TileAxes& axes, const Target& target) {
  TileShape shape;
  shape.lanes = target.vector_lanes(StoreOf(site).buffer->dtype.bits);
  constexpr int64_t kVectors = 2;
  const int64_t most_rows = (target.num_vector_registers - kVectors - 1) / kVectors;
  const std::optional<int64_t> y = axes.y < 0       ? std::optional<int64_t>(1)
                                   : axes.group > 0 ? std::optional<int64_t>(axes.group)
                                                    : ConstantExtent(*site.block().iter_vars[axes.y]);
  shape.rows = std::min(y.value_or(most_rows), most_rows);
  if (y && *y % shape.rows != 0) {  // a height that divides y, unless it is half as high or less
    for (int64_t rows = shape.rows; rows * 2 > shape.rows; --rows) {
      if (*y % rows != 0) continue;
      shape.rows = rows;
      break;
    }
  }
  // Enough accumulators in flight to hide the latency of a multiply-add, at any number of rows.
  shape.vectors = shape.rows >= 5 ? kVectors : shape.rows >= 3 ? 3 : shape.rows == 2 ? 4 : 8;
  // One register is spare: without it, an accumulator is stored and loaded in each step.
  while (shape.rows > 1 && shape.vectors > kVectors &&
         (shape.rows + 1) * shape.vectors + 1 >= target.num_vector_registers) {
    --shape.vectors;
  }
  return shape;
}

// What tuning may do about the tile: any that the registers hold.
TileShape TunedShape(Schedule& s, TileShape shape, const TileAxes& axes, const Target& target) {
  const int64_t registers = target.num_vector_registers;
  const auto fits = [&](int64_t rows, int64_t vectors) { return (rows + 1) * vectors + 1 <= registers; };
  std::vector<int64_t> vectors, rows;
  for (int64_t count = 1; count <= 8; ++count) {
    if (fits(1, count)) vectors.push_back(count);
  }
  const int64_t usual = shape.vectors;
  shape.vectors = s.Choose("tile.vectors", usual, vectors);
  if (axes.y < 0) return shape;
  while (shape.vectors != usual && shape.rows > 1 && !fits(shape.rows, shape.vectors)) --shape.rows;
  for (int64_t count = 1; fits(count, shape.vectors) && count <= (axes.group > 0 ? axes.group : count); ++count) {
    rows.push_back(count);
  }
  shape.rows = s.Choose("tile.rows", shape.rows, rows);
  return shape;
}

// One nest of tiles in the write-back block: the loop at which the reduction is placed, and the loops of the tile
// (void: one iteration). A strip is a tile of one row that is too wide for registers.
struct NestTile {
  BlockRV block;
  LoopRV attach, y, x;
  bool is_strip = false;
};

class TileBuilder {
 public:
  TileBuilder(Schedule& schedule, TileShape shape, bool by_vectors)
      : s_(schedule), shape_(shape), by_vectors_(by_vectors) {}

  std::vector<NestTile> tiles;

  // Cuts the loops over y and x, nested directly in either order, into tiles. Returns the outer loops over full tiles.
  // `others` (void: none) is a loop between a constant y and x; it becomes a part of these outer loops.
  std::vector<LoopRV> Two(BlockRV block, LoopRV outer, LoopRV inner, bool x_is_outer, LoopRV others = {}) {
    std::vector<LoopRV> tile_loops;
    const int64_t tile = x_is_outer ? TileOfX(outer) : TileOfY(outer);
    const Schedule::Parts parts = s_.LoopPartition(outer, tile);
    if (!s_.IsVoid(parts.main)) tile_loops.push_back(TwoTile(block, parts.main, inner, x_is_outer, others));
    if (!s_.IsVoid(parts.tail)) {
      const BlockRV tail_block = s_.GetChildBlocks(parts.tail)[0];
      const HandleList<InnerLoop> tail_loops = InnerLoops(s_, tail_block, parts.tail);
      const LoopRV tail_others = s_.IsVoid(others) ? LoopRV{} : tail_loops[0].loop;
      const LoopRV tail_inner = tail_loops[s_.IsVoid(others) ? 0 : 1].loop;
      if (IsConstant(parts.tail)) {
        for (LoopRV loop : Two(tail_block, parts.tail, tail_inner, x_is_outer, tail_others)) tile_loops.push_back(loop);
      } else if (x_is_outer) {
        const int64_t columns = tile / 2 / shape_.lanes * shape_.lanes;
        for (LoopRV loop : RestAroundY(tail_block, parts.tail, tail_inner, tail_others, columns)) {
          tile_loops.push_back(loop);
        }
      } else {
        OneX(tail_block, tail_inner, 1, LoopRV{});  // single rows
      }
    }
    return tile_loops;
  }

  // Cuts a loop over x into strips of so many elements and a shorter one, and what is left into tiles; returns the loops
  // over strips.
  std::vector<LoopRV> Strips(BlockRV block, LoopRV x, int64_t length) {
    const Schedule::Parts parts = s_.LoopPartition(x, length);
    const LoopRVs loops = s_.Split(parts.main, {kRest, length});
    tiles.push_back({block, loops[0], LoopRV{}, loops[1], true});
    std::vector<LoopRV> strips{loops[0]};
    if (s_.IsVoid(parts.tail)) return strips;
    const BlockRV rest = s_.GetChildBlocks(parts.tail)[0];
    const int64_t left = *AsConstInt(s_.Loop(parts.tail).loop->extent) / shape_.lanes * shape_.lanes;
    const bool is_long = left > TileOfX(parts.tail, 1);
    for (LoopRV loop : is_long ? Strips(rest, parts.tail, left) : OneX(rest, parts.tail, 1, LoopRV{})) {
      strips.push_back(loop);
    }
    return strips;
  }

  // Cuts a loop over x into tiles; returns the loops over full tiles.
  std::vector<LoopRV> OneX(BlockRV block, LoopRV x, int64_t rows, LoopRV y) {
    std::vector<LoopRV> tile_loops;
    const int64_t tile = TileOfX(x, rows);
    const Schedule::Parts parts = s_.LoopPartition(x, tile);
    if (!s_.IsVoid(parts.main)) {
      const LoopRVs loops = s_.Split(parts.main, {kRest, TileOfX(parts.main, rows)});
      if (!s_.IsVoid(y)) s_.Reorder({y, loops[1]});
      tiles.push_back({block, loops[0], y, loops[1]});
      tile_loops.push_back(loops[0]);
    }
    if (!s_.IsVoid(parts.tail)) {
      const BlockRV tail_block = s_.GetChildBlocks(parts.tail)[0];
      const LoopRV tail_y = InnerLoops(s_, tail_block, parts.tail)[0].loop;
      if (IsConstant(parts.tail)) {
        for (LoopRV loop : OneX(tail_block, parts.tail, rows, tail_y)) tile_loops.push_back(loop);
      } else {
        RestOfX(tail_block, parts.tail, tail_y, by_vectors_ ? 1 : tile / shape_.lanes / 2);
      }
    }
    return tile_loops;
  }

 private:
  bool IsConstant(LoopRV loop) const { return AsConstInt(s_.Loop(loop).loop->extent).has_value(); }

  int64_t TileOfY(LoopRV loop) const {
    const auto extent = AsConstInt(s_.Loop(loop).loop->extent);
    return extent ? std::min(*extent, shape_.rows) : shape_.rows;
  }
  int64_t TileOfX(LoopRV loop) const { return TileOfX(loop, shape_.rows); }
  int64_t TileOfX(LoopRV loop, int64_t rows) const {
    const int64_t vectors = rows == 1 ? std::max<int64_t>(shape_.vectors, 8) : shape_.vectors;
    const int64_t whole = vectors * shape_.lanes;
    const auto extent = AsConstInt(s_.Loop(loop).loop->extent);
    if (!extent || *extent >= whole) return whole;
    if (*extent <= 2 * shape_.lanes) return *extent;  // one odd vector
    return *extent / shape_.lanes * shape_.lanes;
  }

  // A symbolic rest of x: tiles of ever fewer vectors, then one vector of which the last lanes are masked.
  void RestOfX(BlockRV block, LoopRV x, LoopRV y, int64_t vectors) {
    const auto add = [&](LoopRV loop, int64_t columns) {
      const LoopRVs loops = s_.Split(loop, {kRest, columns});
      if (!s_.IsVoid(y)) s_.Reorder({y, loops[1]});
      tiles.push_back({block, loops[0], y, loops[1]});
    };
    for (; vectors >= 1; vectors /= 2) {
      const Schedule::Parts parts = s_.LoopPartition(x, vectors * shape_.lanes);
      if (!s_.IsVoid(parts.main)) add(parts.main, vectors * shape_.lanes);
      if (s_.IsVoid(parts.tail)) return;
      block = s_.GetChildBlocks(parts.tail)[0];
      x = parts.tail;
      y = InnerLoops(s_, block, x)[0].loop;
    }
    add(x, shape_.lanes);
  }

  // A symbolic rest of x around all of y: tiles of ever fewer columns, then one vector of which the last lanes are masked.
  std::vector<LoopRV> RestAroundY(BlockRV block, LoopRV x, LoopRV y, LoopRV others, int64_t columns) {
    std::vector<LoopRV> tasks;
    for (; columns >= shape_.lanes; columns = columns / 2 / shape_.lanes * shape_.lanes) {
      const Schedule::Parts parts = s_.LoopPartition(x, columns);
      if (!s_.IsVoid(parts.main)) tasks.push_back(TilesOf(block, parts.main, columns, y, true, others));
      if (s_.IsVoid(parts.tail)) return tasks;
      block = s_.GetChildBlocks(parts.tail)[0];
      x = parts.tail;
      const HandleList<InnerLoop> inner = InnerLoops(s_, block, x);
      others = s_.IsVoid(others) ? LoopRV{} : inner[0].loop;
      y = inner[s_.IsVoid(others) ? 0 : 1].loop;
    }
    tasks.push_back(TilesOf(block, x, shape_.lanes, y, true, others));
    return tasks;
  }

  // Full tiles of the outer loop, cut along the inner one.
  LoopRV TwoTile(BlockRV block, LoopRV outer, LoopRV inner, bool x_is_outer, LoopRV others) {
    return TilesOf(block, outer, x_is_outer ? TileOfX(outer) : TileOfY(outer), inner, x_is_outer, others);
  }
  LoopRV TilesOf(BlockRV block, LoopRV outer, int64_t tile, LoopRV inner, bool x_is_outer, LoopRV others) {
    const LoopRVs loops = s_.Split(outer, {kRest, tile});
    LoopRV tasks = loops[0];
    if (s_.IsVoid(others)) {
      s_.Reorder({inner, loops[1]});
    } else {
      s_.Reorder({others, tasks, inner, loops[1]});
      tasks = s_.Fuse({others, tasks});
    }
    if (x_is_outer) {
      OneY(block, inner, loops[1]);
    } else {
      OneX(block, inner, tile, loops[1]);
    }
    return tasks;
  }
  // Cuts a loop over y inside of a given tile of x.
  void OneY(BlockRV block, LoopRV y, LoopRV x) {
    const Schedule::Parts parts = s_.LoopPartition(y, TileOfY(y));
    if (!s_.IsVoid(parts.main)) {
      const LoopRVs loops = s_.Split(parts.main, {kRest, TileOfY(parts.main)});
      tiles.push_back({block, loops[0], loops[1], x});
    }
    if (s_.IsVoid(parts.tail)) return;
    const BlockRV tail_block = s_.GetChildBlocks(parts.tail)[0];
    const LoopRV tail_x = InnerLoops(s_, tail_block, parts.tail)[0].loop;
    if (IsConstant(parts.tail)) {
      OneY(tail_block, parts.tail, tail_x);
    } else {
      tiles.push_back({tail_block, parts.tail, LoopRV{}, tail_x});
    }
  }

  Schedule& s_;
  TileShape shape_;
  bool by_vectors_;  // a symbolic rest of x: where loads have conditions, each width takes much code
};

constexpr int64_t kMostUnrolledTaps = 16;
constexpr int64_t kMostUnrolledSteps = 128;  // of all vectors of a tile

// The iterations of the reduction of one element.
int64_t KnownTaps(const BlockSite& site) {
  int64_t taps = 1;
  for (int iter : ReduceIters(site)) {
    taps *= ConstantExtent(*site.block().iter_vars[iter]).value_or(kMostUnrolledTaps + 1);
  }
  return taps;
}

// How many steps of the innermost loop of the reduction one iteration makes: one, unless tuning says otherwise.
int64_t TunedSteps(Schedule& s, const BlockSite& site) {
  std::vector<int64_t> steps{1};
  const int64_t extent = ConstantExtent(*site.block().iter_vars[ReduceIters(site).back()]).value_or(1);
  for (int64_t count = 2; count <= 8; count *= 2) {
    if (extent > count && extent % count == 0) steps.push_back(count);
  }
  return steps.size() > 1 ? s.Choose("tile.unrolled_steps", 1, steps) : 1;
}

// Whether the vectors of b that one tile reads are few, and each is picked out of several vectors in memory.
bool PicksFewVectors(const BlockSite& site, const TileAxes& axes) {
  if (ReadsUnderCondition(site) || KnownTaps(site) > kMostUnrolledTaps) return false;
  return std::ranges::any_of(LoadsOf(site), [&](const LoadUse& load) {
    return load.uses[axes.x] && load.last_coefficient[axes.x].value_or(0) > 1;
  });
}

// Where one row of results takes more than the second-level cache holds, in rows of many vectors, tiles of a few vectors
// would read a little of every row, which memory is slow at. Strips of the result stay in the first-level cache instead,
// and each is read and written for this many rows that are added at once. 1: no strips.
constexpr int64_t kStrip = 1024;
int64_t RowsAddedAtOnce(const BlockSite& site, const TileAxes& axes, const Target& target) {
  const int64_t columns = ConstantExtent(*site.block().iter_vars[axes.x]).value_or(0);
  const int64_t bytes = (StoreOf(site).buffer->dtype.bits + 7) / 8;
  if (axes.y >= 0 || columns < 2 * kStrip || ReadsUnderCondition(site)) return 1;
  int64_t steps = 1;
  for (int iter : ReduceIters(site)) steps *= ConstantExtent(*site.block().iter_vars[iter]).value_or(1);
  if (steps * columns * bytes <= target.l2_bytes) return 1;
  const bool in_order = std::ranges::all_of(
      LoadsOf(site), [&](const LoadUse& load) { return !load.uses[axes.x] || load.last_coefficient[axes.x] == 1; });
  const int64_t innermost = ConstantExtent(*site.block().iter_vars[ReduceIters(site).back()]).value_or(1);
  for (int64_t rows : {4, 5, 3, 6, 2}) {
    if (in_order && innermost % rows == 0) return rows;
  }
  return 1;
}

// The cost of one iteration of the loops over these iteration variables.
int64_t CostWithin(const BlockSite& reduction, const std::vector<int>& outside) {
  int64_t instances = KnownInstances(reduction);
  for (int iter : outside)
    instances /= std::max<int64_t>(ConstantExtent(*reduction.block().iter_vars[iter]).value_or(1), 1);
  return instances * CostOfInstance(reduction);
}

}  // namespace

Match<> MatchesTile(const ScheduleState& state, const BlockSite& site, const Target&) {
  const Match<> reduction = AsReduction(state, site);
  return reduction ? FindAxes(site).As(Taken{}) : reduction;
}

std::vector<BlockName> ApplyTile(Schedule& s, const BlockSite& site, const Target& target) {
  std::vector<BlockName> handled{site.block().name};
  const BlockRV reduction = s.GetBlock(site.block().name);
  const TileAxes axes = *FindAxes(site);
  const TileShape shape = TunedShape(s, ChooseShape(site, axes, target), axes, target);
  const BlockRV out = WriteBack(s, reduction, handled);
  // The write-back's loops by dimension of the result: the others outside, then y and x.
  const HandleList<InnerLoop> loops = InnerLoops(s, out, LoopRV{});
  const BlockSite out_site = s.Block(out);
  LoopRV x, y;
  std::vector<LoopRV> others;
  // is_single: the other loops have one iteration together, as over the one row of one image; is_known_single: those of
  // constant extent have.
  bool is_single = axes.group == 0, is_known_single = is_single;
  for (const InnerLoop& entry : loops) {
    if (entry.iter == IterOfDimension(out_site, axes.x_dimension)) {
      x = entry.loop;
    } else if (axes.y_dimension >= 0 && entry.iter == IterOfDimension(out_site, axes.y_dimension)) {
      y = entry.loop;
    } else {
      others.push_back(entry.loop);
      const auto extent =
          entry.iter >= 0 ? ConstantExtent(*out_site.block().iter_vars[entry.iter]) : std::optional<int64_t>();
      is_single &= extent == 1;
      is_known_single &= extent.value_or(1) == 1;
    }
  }
  std::vector<int> outside;
  for (int iter : SpatialIters(site)) {
    if (iter != axes.x && iter != axes.y) outside.push_back(iter);
  }
  if (axes.group > 0) {  // rows of a tile are of one group
    const LoopRVs split = s.Split(y, {kRest, axes.group});
    others.push_back(split[0]);
    y = split[1];
  }
  // The outer one of the two tile loops: x when both extents are constant and no other loop is outside (a panel of b
  // stays in the cache while all of a is read), or where b's vectors are picked out of others, so that they stay in
  // registers for all rows; else y, so that a symbolic number of rows is divided among tasks.
  const bool y_constant = axes.y >= 0 && ConstantExtent(*site.block().iter_vars[axes.y]).has_value();
  const std::optional<int64_t> x_extent = ConstantExtent(*site.block().iter_vars[axes.x]);
  const bool keeps_vectors = !s.IsVoid(y) && y_constant && axes.group == 0 && !x_extent && PicksFewVectors(site, axes);
  bool x_is_outer = keeps_vectors || (!s.IsVoid(y) && is_single && y_constant && x_extent &&
                                      *x_extent >= 4 * shape.vectors * shape.lanes);
  if (!keeps_vectors && !s.IsVoid(y) && is_single && y_constant && x_extent) {
    x_is_outer = s.Choose("tile.x_outside", x_is_outer ? 1 : 0, {0, 1}) != 0;
  }
  std::vector<LoopRV> order = others;
  if (!s.IsVoid(y)) order.push_back(y);
  order.push_back(x);
  if (x_is_outer) std::swap(order[order.size() - 2], order[order.size() - 1]);
  if (order.size() > 1) s.Reorder(order);
  LoopRV around;
  if (!is_single) around = others.size() > 1 ? s.Fuse(others) : others[0];

  TileBuilder builder(s, shape, ReadsUnderCondition(site));
  std::vector<LoopRV> tile_loops;
  // Where the number of images or rows is symbolic, and may be 1, tiles are tasks as well.
  const bool joins_tasks = !is_single && (keeps_vectors || (is_known_single && y_constant));
  const int64_t rows_at_once = s.IsVoid(y) ? RowsAddedAtOnce(site, axes, target) : 1;
  if (rows_at_once > 1) {
    tile_loops = builder.Strips(out, x, kStrip);
  } else if (s.IsVoid(y)) {
    tile_loops = builder.OneX(out, x, 1, LoopRV{});
  } else if (joins_tasks) {
    const LoopRV outer = x_is_outer ? x : y, inner = x_is_outer ? y : x;
    s.Reorder({outer, around});
    tile_loops = builder.Two(out, outer, inner, x_is_outer, around);
  } else {
    tile_loops = x_is_outer ? builder.Two(out, x, y, true) : builder.Two(out, y, x, false);
  }

  // Loops over few taps cost as much as the taps where a row is short, and conditions on taps are decided when the kernel
  // is compiled, or become constant masks.
  const bool has_few_steps = KnownTaps(site) * shape.rows * shape.vectors <= kMostUnrolledSteps;
  bool unrolls_taps =
      KnownTaps(site) <= kMostUnrolledTaps && (has_few_steps || keeps_vectors || ReadsUnderCondition(site));
  if (KnownTaps(site) > 1 && KnownTaps(site) <= kMostUnrolledTaps) {
    unrolls_taps = s.Choose("tile.unrolls_taps", unrolls_taps ? 1 : 0, {0, 1}) != 0;
  }
  const int64_t unrolled_steps = unrolls_taps ? 1 : TunedSteps(s, site);
  // Each tile nest gets its own copy of the reduction. The first one, of full tiles, gets the original after all others
  // were copied.
  for (size_t i = builder.tiles.size(); i-- > 0;) {
    const NestTile& tile = builder.tiles[i];
    const BlockRV partial = i == 0 ? reduction : s.RecomputeFor(reduction, tile.block);
    s.ComputeAt(partial, tile.attach);
    handled.push_back(s.Block(partial).block().name);
    handled.push_back(s.Block(tile.block).block().name);
    // In the reduction, its own loops are outside, then rows, then vectors.
    std::vector<LoopRV> reduce, sequence;
    LoopRV tile_y, tile_x;
    for (const InnerLoop& entry : InnerLoops(s, partial, tile.attach)) {
      if (entry.iter == axes.x) {
        tile_x = entry.loop;
      } else if (entry.iter == axes.y) {
        tile_y = entry.loop;
      } else {
        reduce.push_back(entry.loop);
      }
    }
    if (tile.is_strip) {
      const LoopRVs rows = s.Split(reduce.back(), {kRest, rows_at_once}),
                    columns = s.Split(tile_x, {kRest, shape.lanes});
      reduce.back() = rows[0];
      sequence = reduce;
      sequence.insert(sequence.end(), {columns[0], rows[1], columns[1]});
      s.Reorder(sequence);
      s.Unroll(rows[1]);
      s.Vectorize(columns[1]);
      s.DecomposeReduction(partial, reduce[0]);
      VectorizeLong(s, tile.x, shape.lanes);
      continue;
    }
    sequence = reduce;
    if (tile_y.id >= 0) sequence.push_back(tile_y);
    if (tile_x.id >= 0) sequence.push_back(tile_x);
    if (sequence.size() > 1) s.Reorder(sequence);
    if (unrolled_steps > 1 && !reduce.empty()) {
      const LoopRVs steps = s.Split(reduce.back(), {kRest, unrolled_steps});
      reduce.back() = steps[0];
      s.Unroll(steps[1]);
    }
    VectorizeTile(s, tile_x, shape.lanes);
    if (tile_y.id >= 0) s.Unroll(tile_y);
    if (!reduce.empty()) s.DecomposeReduction(partial, reduce[0]);
    if (unrolls_taps) {
      for (LoopRV loop : reduce) s.Unroll(loop);
    }
    if (tile.y.id >= 0) s.Unroll(tile.y);
    VectorizeTile(s, tile.x, shape.lanes);
  }
  if (!s.IsVoid(around) && !joins_tasks) {
    const int64_t groups = axes.group > 0 ? *ConstantExtent(*site.block().iter_vars[axes.y]) / axes.group : 1;
    ParallelizeByCost(s, around, CostWithin(site, outside) / groups);
    return handled;
  }
  const bool loops_over_x = x_is_outer || s.IsVoid(y);
  const int64_t columns = rows_at_once > 1 ? kStrip : shape.lanes * shape.vectors;
  const int64_t per_tile =
      loops_over_x ? CostWithin(site, {axes.x}) * columns : CostWithin(site, {axes.y}) * shape.rows;
  for (LoopRV loop : tile_loops) ParallelizeByCost(s, loop, per_tile);
  return handled;
}

}  // namespace ingot::schedule
