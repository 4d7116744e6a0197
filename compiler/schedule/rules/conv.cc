// Windows over channels in blocks: direct convolution over NCHW16c (dense, grouped, depthwise, 1x1, few channels) and
// pooling.
//
//   out[n, o, y, x, v] = reduce over k of f(data[n, .., y.., x.., ..], weight[o, k, v])
//
// A register tile is T columns of x times B blocks of o times the vectors of v. It stays in registers while the
// reduction runs; each vector of weights is used T times and each element of data, broadcast, for B blocks.
// Element-wise consumers run in the tile's write-back. Where every load follows v (depthwise, pooling) there is nothing
// to broadcast and B is 1.
//
// Rows (columns, where there is but one row: 1x1 convolutions over flattened images) come in strips. A strip's input
// stays in the second-level cache while all blocks of o pass over it; padding is a stage that is computed strip by
// strip, so that it costs a copy within the cache and no pass over memory. Tasks are strips of one image and group,
// with a part of the blocks of o each where strips are few.
//
// A row of x is cut into tiles of nearly equal width: 14 columns become 5 + 5 + 4 rather than 6 + 6 + 2, which has too
// few multiply-adds in flight to hide their latency.
#include <algorithm>

#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/epilogue.h"
#include "compiler/schedule/rules/rules.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// Dimensions of the result.
enum Dimension : int { kN, kO, kY, kX, kV, kRank };

int64_t ExtentOf(const BlockSite& site, int dimension) {
  return ConstantExtent(*site.block().iter_vars[IterOfDimension(site, dimension)]).value_or(1);
}

// What AnalyzeWindow finds about the loads of the reduction.
struct Window {
  bool broadcasts = false;   // an input that moves with x is the same for all of v, and for all of o in a group
  int64_t groups = 1;        // of o
  int64_t input_bytes = 0;   // of the inputs that move with x, per image and group; per block of o where they follow v
  int64_t weight_bytes = 0;  // of the inputs that do not move with x, per group
};

Window AnalyzeWindow(const BlockSite& site) {
  Window window;
  const int x = IterOfDimension(site, kX), o = IterOfDimension(site, kO), v = IterOfDimension(site, kV);
  for (const LoadUse& load : LoadsOf(site)) {
    int64_t bytes = load.load->dtype.bits / 8;
    for (const PrimExpr& extent : load.load->buffer->shape) {
      const auto value = AsConstInt(extent);
      bytes *= value ? *value : 1;
    }
    if (!load.uses[x]) {
      window.weight_bytes += bytes;
      continue;
    }
    window.broadcasts |= !load.uses[v];
    if (!load.uses[v] && load.uses[o]) {  // dimension 1 holds every group's channels (blocks)
      const auto channels = AsConstInt(load.load->buffer->shape[1]);
      const int64_t own = ConstantExtent(*site.block().iter_vars[ReduceIters(site)[0]]).value_or(0);
      if (channels && own > 0 && *channels % own == 0) window.groups = *channels / own;
    }
    const int64_t images = std::max<int64_t>(ExtentOf(site, kN), 1);
    window.input_bytes += bytes / images / (load.uses[v] ? std::max<int64_t>(ExtentOf(site, kO), 1) : 1);
  }
  if (ExtentOf(site, kO) % window.groups != 0) window.groups = 1;
  window.input_bytes /= window.groups;
  window.weight_bytes /= window.groups;
  return window;
}

// ---- Register tiles
struct TileChoice {
  int64_t columns = 1, blocks = 1;
};

// Cycles of one row of `width` columns per block of o and step of the reduction.
double CyclesOfRow(int64_t width, const TileChoice& tile, int64_t vectors, int fma_ports) {
  constexpr double kLoadsPerCycle = 2, kLatency = 4;
  const int64_t tiles = (width + tile.columns - 1) / tile.columns;
  double cycles = 0;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t columns = width / tiles + (i < width % tiles ? 1 : 0);
    const auto accumulators = static_cast<double>(columns * tile.blocks * vectors);
    const auto loads = static_cast<double>(columns + tile.blocks * vectors);
    // Weights come from beyond the first-level cache and are loaded once per tile.
    const double weights = static_cast<double>(tile.blocks * vectors) / 4;
    cycles += std::max({accumulators / fma_ports, loads / kLoadsPerCycle, kLatency}) + weights;
  }
  return cycles / static_cast<double>(tile.blocks);
}

TileChoice ChooseTile(int64_t width, int64_t blocks_of_o, int64_t vectors, const Window& window, const Target& target) {
  TileChoice best;
  double best_cycles = 0;
  for (int64_t blocks = 1; blocks <= blocks_of_o && blocks * vectors + 2 <= target.num_vector_registers; ++blocks) {
    if (blocks_of_o % blocks != 0 || (blocks > 1 && !window.broadcasts)) continue;
    const int64_t most = (target.num_vector_registers - blocks * vectors - 1) / (blocks * vectors);
    const TileChoice tile{std::clamp<int64_t>(most, 1, std::max<int64_t>(width, 1)), blocks};
    if (most < 1) continue;
    const double cycles = CyclesOfRow(width, tile, vectors, target.fma_ports);
    if (blocks > 1 && cycles >= best_cycles) continue;
    best = tile;
    best_cycles = cycles;
  }
  return best;
}

// ---- Strips
std::vector<int64_t> Divisors(int64_t n) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= n; ++d) {
    if (n % d == 0) divisors.push_back(d);
  }
  return divisors;
}

// How many of `rows` rows (of columns, where there is one row) make a strip, so that the least traffic passes through
// the caches.
int64_t ChooseStrip(int64_t rows, int64_t blocks, const Window& window, const Target& target) {
  constexpr int64_t kMostRows = 1 << 16;  // with more rows no divisors are searched
  if (rows > kMostRows || rows < 1) return std::max<int64_t>(rows, 1);
  int64_t best = 1;
  double best_traffic = 0;
  for (int64_t strip : Divisors(rows)) {
    const int64_t strips = rows / strip;
    const bool weights_stay = window.weight_bytes <= target.l2_bytes / 4;
    const bool input_stays = window.input_bytes / strips <= target.l2_bytes / 2;
    const double traffic = static_cast<double>(window.weight_bytes) * static_cast<double>(weights_stay ? 1 : strips) +
                           static_cast<double>(window.input_bytes) * static_cast<double>(input_stays ? 1 : blocks);
    if (strip > 1 && traffic > best_traffic) continue;
    best = strip;
    best_traffic = traffic;
  }
  return best;
}
// The same where blocks of o share nothing: a strip of one block fits the first-level cache.
int64_t ChooseShortStrip(int64_t rows, const Window& window, const Target& target) {
  constexpr int64_t kMostRows = 1 << 16;
  if (rows > kMostRows || rows < 1) return std::max<int64_t>(rows, 1);
  int64_t best = 1;
  for (int64_t strip : Divisors(rows)) {
    if (window.input_bytes / (rows / strip) <= target.l1_bytes / 2) best = strip;
  }
  return best;
}

// The number of parts into which the blocks of o are divided, so that there are enough tasks.
int64_t ChooseParts(int64_t blocks, int64_t tasks, int64_t cost) {
  constexpr int64_t kEnoughTasks = 16;
  const int64_t wanted = std::min(kEnoughTasks, cost / kMinTaskCost);
  if (cost < kMinParallelCost || tasks >= wanted) return 1;
  for (int64_t parts : Divisors(blocks)) {
    if (parts * tasks >= wanted) return parts;
  }
  return blocks;
}

// ---- The nest
// Splits the loop where its extent is greater than the factor: {outer or void, inner}.
std::pair<LoopRV, LoopRV> SplitBy(Schedule& s, LoopRV loop, int64_t extent, int64_t factor) {
  if (factor >= extent) return {LoopRV{}, loop};
  const LoopRVs parts = s.Split(loop, {kRest, factor});
  return {parts[0], parts[1]};
}

struct ConvTile {
  BlockRV out;
  LoopRV attach;              // one iteration per tile
  LoopRV columns, blocks, v;  // of the write-back; blocks may be void
};

// Cuts x, around `blocks` and v, into tiles of nearly equal width.
std::vector<ConvTile> CutRow(Schedule& s, BlockRV out, LoopRV x, int64_t width, int64_t most) {
  const int64_t tiles = (width + most - 1) / most;
  const int64_t narrow = width / tiles, wide_tiles = width % tiles;
  std::vector<std::pair<int64_t, int64_t>> groups;  // tiles, columns of each
  if (wide_tiles > 0) groups.push_back({wide_tiles, narrow + 1});
  groups.push_back({tiles - wide_tiles, narrow});
  // The longer part comes first, since loop_partition makes a main part of more than half.
  if (groups.size() == 2 && groups[0].first * groups[0].second < groups[1].first * groups[1].second) {
    std::swap(groups[0], groups[1]);
  }
  std::vector<ConvTile> result;
  const auto add = [&](BlockRV block, LoopRV row, int64_t columns) {
    const LoopRVs loops = s.Split(row, {kRest, columns});
    ConvTile tile{block, loops[0], loops[1], {}, {}};
    const HandleList<InnerLoop> inner = InnerLoops(s, block, loops[1]);
    tile.v = inner.back().loop;
    if (inner.size() > 1) tile.blocks = inner.front().loop;
    result.push_back(tile);
  };
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

// The reduction under a tile: its reduction loops around the unrolled tile.
void PlaceReduction(Schedule& s, BlockRV partial, const ConvTile& tile, int64_t lanes) {
  constexpr int64_t kUnrolledSteps = 4;
  s.ComputeAt(partial, tile.attach);
  const BlockSite site = s.Block(partial);
  const int x = IterOfDimension(site, kX), o = IterOfDimension(site, kO), v = IterOfDimension(site, kV);
  LoopRVs units, reduce;
  LoopRV columns, blocks, vector;
  for (const InnerLoop& entry : InnerLoops(s, partial, tile.attach)) {
    if (entry.iter == x) {
      columns = entry.loop;
    } else if (entry.iter == o) {
      blocks = entry.loop;
    } else if (entry.iter == v) {
      vector = entry.loop;
    } else {
      (Reduces(site, entry) ? reduce : units).push_back(entry.loop);
    }
  }
  std::vector<LoopRV> order(units.begin(), units.end());
  order.insert(order.end(), reduce.begin(), reduce.end());
  for (LoopRV loop : {columns, blocks, vector}) {
    if (loop.id >= 0) order.push_back(loop);
  }
  s.Reorder(order);
  const LoopRV first = reduce[0];
  // The innermost steps go over the channels of a block, whose elements lie side by side.
  const auto steps = AsConstInt(s.Loop(reduce.back()).loop->extent);
  if (reduce.size() > 1 && steps && *steps > kUnrolledSteps && *steps % kUnrolledSteps == 0) {
    s.Unroll(s.Split(reduce.back(), {kRest, kUnrolledSteps})[1]);
  }
  VectorizeTile(s, vector, lanes);
  if (blocks.id >= 0) s.Unroll(blocks);
  if (columns.id >= 0) s.Unroll(columns);
  s.DecomposeReduction(partial, first);
}

}  // namespace

bool MatchesConv(const ScheduleState& state, const BlockSite& site, const Target& target) {
  if (!IsReduction(state, site) || StoreOf(site).indices.size() != kRank) return false;
  if (ReduceIters(site).size() < 2) return false;  // a batched product, which has no window
  for (int d = 0; d < kRank; ++d) {
    if (IterOfDimension(site, d) < 0) return false;
  }
  const int x = IterOfDimension(site, kX), v = IterOfDimension(site, kV);
  const std::optional<int64_t> lanes = ConstantExtent(*site.block().iter_vars[v]);
  const int64_t vector = target.vector_lanes(StoreOf(site).buffer->dtype.bits);
  constexpr int64_t kMostVectors = 4;
  if (!lanes || *lanes % vector != 0 || *lanes > kMostVectors * vector) return false;
  if (!ConstantExtent(*site.block().iter_vars[x]) ||
      !ConstantExtent(*site.block().iter_vars[IterOfDimension(site, kO)])) {
    return false;
  }
  bool follows_x = false;
  for (const LoadUse& load : LoadsOf(site)) {
    const int64_t coefficient = load.last_coefficient[v].value_or(-1);
    if (load.outside_last[v] || coefficient < 0 || coefficient > 1) return false;
    follows_x |= load.uses[x];
  }
  return follows_x;
}

std::vector<BlockName> ApplyConv(Schedule& s, const BlockSite& site, const Target& target) {
  std::vector<BlockName> handled{site.block().name};
  const BlockRV reduction = s.GetBlock(site.block().name);
  const Window window = AnalyzeWindow(site);
  const BlockRVs producers = s.GetProducers(reduction);
  const BlockRV out = WriteBack(s, reduction, handled);

  LoopRV loops[kRank];
  const BlockSite out_site = s.Block(out);
  for (const InnerLoop& entry : InnerLoops(s, out, LoopRV{})) {
    for (int d = 0; d < kRank; ++d) {
      if (entry.iter >= 0 && entry.iter == IterOfDimension(out_site, d)) loops[d] = entry.loop;
    }
  }
  const int64_t lanes = target.vector_lanes(StoreOf(site).buffer->dtype.bits);
  const int64_t blocks = ExtentOf(site, kO) / window.groups, height = ExtentOf(site, kY);
  const std::optional<int64_t> rows = ConstantExtent(*site.block().iter_vars[IterOfDimension(site, kY)]);
  int64_t width = ExtentOf(site, kX);
  const int64_t cost = KnownInstances(site) * CostOfInstance(site);

  // Strips and tasks. Groups are the outermost loop of a task.
  LoopRV groups;
  if (window.groups > 1) {
    const LoopRVs split = s.Split(loops[kO], {kRest, blocks});
    groups = split[0];
    loops[kO] = split[1];
  }
  const bool by_columns = rows == 1;
  const int64_t along = by_columns ? width : height;
  const int64_t strip = !rows               ? 1
                        : window.broadcasts ? ChooseStrip(along, blocks, window, target)
                                            : ChooseShortStrip(along, window, target);
  LoopRV strips;
  if (by_columns) {
    std::tie(strips, loops[kX]) = SplitBy(s, loops[kX], width, strip);
    width = strip;
  } else if (rows) {
    std::tie(strips, loops[kY]) = SplitBy(s, loops[kY], height, strip);
  } else {
    const LoopRVs parts = s.Split(loops[kY], {kRest, 1});
    strips = parts[0];
    loops[kY] = parts[1];
  }
  const TileChoice tile = ChooseTile(width, blocks, ExtentOf(site, kV) / lanes, window, target);
  const int64_t strips_in_all = ExtentOf(site, kN) * window.groups * (along / strip);
  const int64_t parts = window.broadcasts ? ChooseParts(blocks / tile.blocks, strips_in_all, cost) : blocks;
  LoopRV o = loops[kO], tile_blocks, task_blocks;
  if (tile.blocks > 1) {
    const LoopRVs split = s.Split(o, {kRest, tile.blocks});
    o = split[0];
    tile_blocks = split[1];
  }
  LoopRVs order, tasks;
  if (window.broadcasts) {
    if (parts > 1) {
      const LoopRVs split = s.Split(o, {parts, kRest});
      task_blocks = split[0];
      o = split[1];
    }
    tasks = {loops[kN], groups, strips, task_blocks};
    order = {loops[kN], groups, strips, task_blocks, o, loops[kY], loops[kX], tile_blocks, loops[kV]};
  } else {
    tasks = {loops[kN], o, strips};
    order = {loops[kN], o, strips, loops[kY], loops[kX], loops[kV]};
  }
  const auto is_void = [](LoopRV loop) { return loop.id < 0; };
  erase_if(order, is_void);
  erase_if(tasks, is_void);
  s.Reorder(order);
  const LoopRV task = tasks.size() > 1 ? s.Fuse(tasks) : tasks[0];
  const std::vector<ConvTile> tiles = CutRow(s, out, loops[kX], width, tile.columns);

  // Each tile nest gets its own copy of the reduction. The first one gets the original, after all others were copied.
  for (size_t i = tiles.size(); i-- > 0;) {
    const BlockRV partial = i == 0 ? reduction : s.RecomputeFor(reduction, tiles[i].out);
    PlaceReduction(s, partial, tiles[i], lanes);
    handled.push_back(s.Block(partial).block().name);
    handled.push_back(s.Block(tiles[i].out).block().name);
    VectorizeTile(s, tiles[i].v, lanes);
    if (tiles[i].blocks.id >= 0) s.Unroll(tiles[i].blocks);
    s.Unroll(tiles[i].columns);
  }
  // Padding is computed strip by strip, under the task's loop.
  for (BlockRV producer : producers) {
    const BlockSite producer_site = s.Block(producer);
    if (!IsInjective(s.state(), producer_site)) continue;
    handled.push_back(producer_site.block().name);
    s.ComputeAt(producer, task);
    const HandleList<InnerLoop> inner = InnerLoops(s, producer, task);
    const auto extent = AsConstInt(s.Loop(inner.back().loop).loop->extent);
    if (extent && *extent == ExtentOf(site, kV)) VectorizeTile(s, inner.back().loop, lanes);
  }
  int64_t num_tasks = strips_in_all * (window.broadcasts ? parts : blocks);
  ParallelizeByCost(s, task, cost / std::max<int64_t>(num_tasks, 1));
  return handled;
}

}  // namespace ingot::schedule
