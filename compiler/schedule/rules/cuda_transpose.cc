// The rule for element-wise stages on CUDA that read along another axis than they write: transpositions, changes of
// layout, also with arithmetic. The axes fall into runs through which every access moves by constant steps; x is the run
// along which the stage stores, y the one along which it loads. A block of threads has a tile of both:
//
//   for tile:                                               blockIdx.x
//     for thread:  the inputs' part of the tile             neighbours along y, into shared memory
//     for thread:  the stage                                neighbours along x
//
// Rows of the part in shared memory lie so far apart that a warp that reads along a column, or along a few short pieces of
// them, meets all banks. Accesses are of four bytes at least where the runs have whole ones. Where a run is short, the
// tile is longer along the other one.
#include <algorithm>

#include "compiler/schedule/rules/contiguity.h"
#include "compiler/schedule/rules/rules.h"
#include "compiler/target/cuda.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

constexpr int64_t kThreadsOfMove = 8 * kCudaWarpThreads;
constexpr int64_t kBytesOfMove = 4;
// The side of a tile, of one of bytes, and of one where few of the larger ones would leave a GPU idle; what tiles of longer
// elements and several inputs have together at most.
constexpr int64_t kSideOfMove = 64, kSideOfBytes = 128, kSmallSideOfMove = 32, kMovesThatFill = 256;
constexpr int64_t kMostTileBytes = 20 << 10, kMostBytesOfMove = 44 << 10;
// Shorter runs are left to a thread for each element, unless they lie beside the other one in memory; and so is what is
// too little for a block of threads.
constexpr int64_t kLeastRun = 8, kLeastOfBoth = 4 * kThreadsOfMove;
constexpr int64_t kUnknownRun = 1 << 20;

struct MoveTiles {
  std::vector<std::vector<int>> runs;  // x is the last one
  size_t y = 0;
  std::vector<Buffer> inputs;  // that are read along y
  int64_t of_y = 1, of_x = 1, lanes = 1;
};

// A symbol counts as many.
int64_t LengthOfRun(const BlockSite& site, const std::vector<int>& run) {
  int64_t length = 1;
  for (const int iter : run) {
    const int64_t extent = ConstantExtent(*site.block().iter_vars[static_cast<size_t>(iter)]).value_or(kUnknownRun);
    if (__builtin_mul_overflow(length, extent, &length)) return INT64_MAX / 2;
  }
  return length;
}
// Whether the run is known to consist of whole pieces of this length, a power of two.
bool HasWholePieces(const BlockSite& site, const std::vector<int>& run, int64_t piece) {
  for (const int iter : run) {
    int64_t extent = ConstantExtent(*site.block().iter_vars[static_cast<size_t>(iter)]).value_or(1);
    for (; piece > 1 && extent % 2 == 0; extent /= 2) piece /= 2;
  }
  return piece == 1;
}

int RunOf(const MoveTiles& tiles, int iter) {
  for (size_t r = 0; r < tiles.runs.size(); ++r) {
    if (std::ranges::find(tiles.runs[r], iter) != tiles.runs[r].end()) return static_cast<int>(r);
  }
  return -1;
}

// For each dimension of the load, the runs that its index depends on.
std::vector<std::vector<int>> RunsOfDimensions(const BlockSite& site, const MoveTiles& tiles,
                                               const BufferLoadNode& load) {
  std::vector<std::vector<int>> result;
  for (const PrimExpr& index : load.indices) {
    std::vector<int>& runs = result.emplace_back();
    for (size_t i = 0; i < site.block().iter_vars.size(); ++i) {
      const int run = RunOf(tiles, static_cast<int>(i));
      const bool uses =
          ConstantExtent(*site.block().iter_vars[i]) != 1 && UsesVar(index, site.block().iter_vars[i]->var);
      if (uses && std::ranges::find(runs, run) == runs.end()) runs.push_back(run);
    }
  }
  return result;
}

// The dimensions of the load that become one each, so that a tile is a box: those that move with one run alone.
std::vector<std::vector<int64_t>> GroupsOfDimensions(const std::vector<std::vector<int>>& runs) {
  std::vector<std::vector<int64_t>> groups;
  for (size_t d = 0; d < runs.size(); ++d) {
    const bool joins = d > 0 && runs[d].size() == 1 && runs[d - 1] == runs[d];
    if (!joins) groups.emplace_back();
    groups.back().push_back(static_cast<int64_t>(d));
  }
  return groups;
}

// Whether a tile is a box: each run moves one of the groups, and x and y move different ones.
bool IsOfBoxes(const std::vector<std::vector<int>>& runs, size_t num_runs, size_t y) {
  std::vector<int> groups(num_runs, 0);
  for (const std::vector<int64_t>& group : GroupsOfDimensions(runs)) {
    int tiled = 0;
    for (const int run : runs[static_cast<size_t>(group.front())]) {
      if (run < 0 || ++groups[static_cast<size_t>(run)] > 1) return false;
      tiled += static_cast<size_t>(run) == y || static_cast<size_t>(run) + 1 == num_runs ? 1 : 0;
    }
    if (tiled > 1) return false;
  }
  return true;
}

// The least power of two that is not below the length, or `most`, which is one.
int64_t PowerNotBelow(int64_t length, int64_t most) {
  int64_t power = 1;
  while (power < length && power < most) power *= 2;
  return power;
}

// The sizes of tiles, powers of two: what a thread has of one is then found by shifts, and it can be proved that the
// threads together have all of it.
void ChooseTiles(const BlockSite& site, MoveTiles& tiles) {
  const std::vector<int>&x = tiles.runs.back(), &y = tiles.runs[tiles.y];
  int64_t widest = std::max<int64_t>(StoreOf(site).buffer->dtype.bits / 8, 1), sum = 0;
  for (const Buffer& input : tiles.inputs) {
    const int64_t of_input = std::max<int64_t>(input->dtype.bits / 8, 1);
    widest = std::max(widest, of_input);
    sum += of_input;
  }
  int64_t others = 1;
  for (size_t r = 0; r + 1 < tiles.runs.size(); ++r) {
    if (r != tiles.y) others *= std::min<int64_t>(LengthOfRun(site, tiles.runs[r]), kUnknownRun);
    others = std::min(others, kUnknownRun);
  }
  const int64_t length_x = LengthOfRun(site, x), length_y = LengthOfRun(site, y);
  int64_t side = widest == 1 ? kSideOfBytes : kSideOfMove, elements = side * side;
  const auto num_tiles = [&] { return others * ((length_x + side - 1) / side) * ((length_y + side - 1) / side); };
  if (std::min(length_x, length_y) > kSmallSideOfMove && num_tiles() < kMovesThatFill) side = kSmallSideOfMove;
  elements = side * side;
  while (elements * sum > kMostTileBytes && elements > kSmallSideOfMove * kSmallSideOfMove) {
    elements /= 2;
    side = kSmallSideOfMove;
  }
  const auto side_beside = [&](int64_t other, int64_t length) {
    int64_t longest = side;
    while (longest * 2 * other <= elements) longest *= 2;
    return PowerNotBelow(length, longest);
  };
  tiles.of_x = PowerNotBelow(length_x, side);
  tiles.of_y = side_beside(tiles.of_x, length_y);
  if (tiles.of_y < side) tiles.of_x = side_beside(tiles.of_y, length_x);
  tiles.lanes = std::max<int64_t>(kBytesOfMove / widest, 1);
  const auto fits = [&](int64_t lanes) {
    return HasWholePieces(site, x, lanes) && HasWholePieces(site, y, lanes) && tiles.of_x % lanes == 0 &&
           tiles.of_y % lanes == 0;
  };
  while (tiles.lanes > 1 && !fits(tiles.lanes)) tiles.lanes /= 2;
}

Match<MoveTiles> FindMoveTiles(const BlockSite& site) {
  Contiguity contiguity(site);
  std::vector<int> iters;
  for (size_t d = 0; d < StoreOf(site).indices.size(); ++d) {
    const int iter = IterOfDimension(site, d);
    if (iter >= 0) iters.push_back(iter);
  }
  if (iters.size() != site.block().iter_vars.size()) return Declined{"an axis is none of its result's"};
  MoveTiles tiles{contiguity.Runs(iters)};
  if (tiles.runs.size() < 2) return Declined{"every access moves through all of its axes by constant steps"};
  for (const int iter : iters) {
    if (contiguity.IsUsedAlone(iter)) return Declined{"something else than places depends on its axes"};
  }
  const int x = contiguity.Innermost(tiles.runs.back());
  size_t y = tiles.runs.size();
  for (const LinearAccess& access : contiguity.accesses()) {
    const std::optional<int64_t> step = contiguity.Step(access, x);
    if (access.load == nullptr) {
      if (step != 1) return Declined{"it does not store side by side"};
      continue;
    }
    if (step && (*step == 0 || *step == 1)) continue;  // a single element, or contiguous along x as the store is
    size_t along = tiles.runs.size();
    for (size_t r = 0; r + 1 < tiles.runs.size(); ++r) {
      if (contiguity.Step(access, contiguity.Innermost(tiles.runs[r])) == 1) along = r;
    }
    if (along == tiles.runs.size()) return Declined{"an input is contiguous along none of its axes"};
    if (y != tiles.runs.size() && y != along) return Declined{"its inputs are contiguous along different axes"};
    y = along;
    const Buffer& input = access.load->buffer;
    const bool is_known = std::ranges::any_of(tiles.inputs, [&](const Buffer& b) { return b.same_as(input); });
    if (is_known) return Declined{"it reads an input at two places"};
    if (!IsOfBoxes(RunsOfDimensions(site, tiles, *access.load), tiles.runs.size(), y)) {
      return Declined{"a part of its result takes several parts of an input"};
    }
    tiles.inputs.push_back(input);
  }
  if (tiles.inputs.empty()) return Declined{"its inputs lie along the axis along which it stores"};
  for (const LinearAccess& access : contiguity.accesses()) {
    if (access.load == nullptr) continue;
    const std::optional<int64_t> step = contiguity.Step(access, x);
    const bool is_along_x = step && (*step == 0 || *step == 1);
    for (const Buffer& input : tiles.inputs) {
      if (is_along_x && access.load->buffer.same_as(input)) return Declined{"it reads an input at two places"};
    }
  }
  tiles.y = y;
  const int64_t length_x = LengthOfRun(site, tiles.runs.back()), length_y = LengthOfRun(site, tiles.runs[y]);
  if (length_x < kLeastRun && y + 2 != tiles.runs.size()) return Declined{"its rows are short, and lie apart"};
  if (length_x < 2 || length_y < 2 || length_x * std::min(length_y, kUnknownRun) < kLeastOfBoth) {
    return Declined{"it moves too few elements from one axis to another"};
  }
  ChooseTiles(site, tiles);
  int64_t shared = 0;
  for (const Buffer& input : tiles.inputs) {
    shared += (std::max(tiles.of_x, tiles.of_y) + 2 * kBytesOfMove) * std::min(tiles.of_x, tiles.of_y) *
              std::max<int64_t>(input->dtype.bits / 8, 1);
  }
  if (shared > kMostBytesOfMove) return Declined{"tiles of its inputs would not fit into shared memory"};
  return tiles;
}

// Spreads the loops over the threads of a block, neighbours along the last one.
void BindTile(Schedule& s, std::vector<LoopRV> loops, int64_t lanes) {
  if (!s.status().ok()) return;
  LoopRV vector;
  if (lanes > 1) {
    const LoopRVs parts = s.Split(loops.back(), {kRest, lanes});
    loops.back() = parts[0];
    vector = parts[1];
  }
  const LoopRVs rounds = s.Split(loops.size() > 1 ? s.Fuse(loops) : loops[0], {kRest, kThreadsOfMove});
  std::vector<LoopRV> order{rounds[1], rounds[0]};
  if (lanes > 1) order.push_back(vector);
  s.Reorder(order);
  s.Unroll(rounds[0]);
  s.Bind(rounds[1], "threadIdx.x");
  if (lanes > 1) s.Vectorize(vector);
}

// The same for the stage, in squares of so many lanes that are transposed in registers: what is read along y, and what is
// written along x, are whole words.
void BindSquares(Schedule& s, LoopRV y, LoopRV x, int64_t lanes) {
  if (lanes == 1) return BindTile(s, {y, x}, 1);
  const LoopRVs of_y = s.Split(y, {kRest, lanes}), of_x = s.Split(x, {kRest, lanes});
  s.Reorder({of_y[0], of_x[0], of_y[1], of_x[1]});
  const LoopRVs rounds = s.Split(s.Fuse({of_y[0], of_x[0]}), {kRest, kThreadsOfMove});
  s.Reorder({rounds[1], rounds[0]});
  s.Unroll(rounds[0]);
  s.Bind(rounds[1], "threadIdx.x");
  s.Vectorize(of_x[1]);
  s.Vectorize(of_y[1]);
}

// The copy of an input's part of a tile in shared memory.
void CopyInput(Schedule& s, BlockRV block, const Buffer& input, const MoveTiles& tiles,
               const std::vector<std::vector<int64_t>>& groups, LoopRV tile, std::vector<BlockName>& handled) {
  if (!s.status().ok()) return;
  const auto& reads = s.Block(block).block().reads;
  const auto position = std::ranges::find_if(reads, [&](const BufferRegion& r) { return r.buffer.same_as(input); });
  const BlockRV copy = s.CacheRead(block, position - reads.begin(), "shared", {});
  if (!s.status().ok()) return;
  handled.push_back(s.Block(copy).block().name);
  const auto rank = static_cast<int64_t>(input->shape.size());
  if (static_cast<int64_t>(groups.size()) < rank) {
    s.TransformLayout(copy, 0, MakeIndexMap(rank, [&](const std::vector<PrimExpr>& i) {
                        std::vector<PrimExpr> places;
                        for (const std::vector<int64_t>& group : groups) {
                          PrimExpr place = i[static_cast<size_t>(group[0])];
                          for (size_t d = 1; d < group.size(); ++d) {
                            const auto dim = static_cast<size_t>(group[d]);
                            place = place * Cast(DataType::Int(64), input->shape[dim]) + i[dim];
                          }
                          places.push_back(place);
                        }
                        return places;
                      }));
    std::vector<int64_t> all, sizes;
    for (const std::vector<int64_t>& group : groups) {
      all.insert(all.end(), group.begin(), group.end());
      sizes.push_back(static_cast<int64_t>(group.size()));
    }
    s.FuseIters(copy, all, std::vector<int64_t>(all.size(), 0), sizes);
  }
  if (groups.size() > 1) {
    const int64_t rows_of_warp = std::min(tiles.of_x / tiles.lanes, kCudaWarpThreads);
    const int64_t apart = kCudaWarpThreads / rows_of_warp * tiles.lanes;
    s.StorageAlign(copy, 0, static_cast<int64_t>(groups.size()) - 2, 2 * apart, apart);
  }
  s.ComputeAt(copy, tile);
  if (!s.status().ok()) return;
  std::vector<LoopRV> order, loops;
  for (const InnerLoop& inner : InnerLoops(s, copy, tile)) {
    const auto extent = AsConstInt(s.Loop(inner.loop).loop->extent);
    const int64_t padded = PowerNotBelow(extent.value_or(1), kUnknownRun);
    if (!extent || padded == *extent) {
      loops.push_back(inner.loop);
      continue;
    }
    const LoopRVs parts = s.Split(inner.loop, {kRest, padded});
    order.push_back(parts[0]);
    loops.push_back(parts[1]);
  }
  if (!order.empty()) {
    order.insert(order.end(), loops.begin(), loops.end());
    s.Reorder(order);
  }
  BindTile(s, loops, tiles.lanes);
}

}  // namespace

Match<> MatchesCudaTranspose(const ScheduleState& state, const BlockSite& site, const Target&) {
  const Match<> injective = AsInjective(state, site);
  if (!injective) return injective;
  if (IsBoundToThreads(site)) return Declined{"it is bound to threads"};
  if (!state.IsRegular(site.block().name)) return Declined{"its bindings are not simple"};
  if (ReadsUnderCondition(site)) return Declined{"it reads under conditions"};
  return FindMoveTiles(site).As(Taken{});
}

std::vector<BlockName> ApplyCudaTranspose(Schedule& s, const BlockSite& site, const Target&) {
  const MoveTiles tiles = *FindMoveTiles(site);
  std::vector<std::vector<std::vector<int64_t>>> groups;
  for (const Buffer& input : tiles.inputs) {
    for (const LoadUse& use : LoadsOf(site)) {
      if (!use.load->buffer.same_as(input)) continue;
      groups.push_back(GroupsOfDimensions(RunsOfDimensions(site, tiles, *use.load)));
    }
  }
  std::vector<BlockName> handled{site.block().name};
  const BlockRV block = s.GetBlock(site.block().name);
  std::vector<int64_t> all, sizes;
  for (const std::vector<int>& run : tiles.runs) {
    all.insert(all.end(), run.begin(), run.end());
    sizes.push_back(static_cast<int64_t>(run.size()));
  }
  s.FuseIters(block, all, std::vector<int64_t>(all.size(), 0), sizes);
  const LoopRVs loops = s.GetLoops(block);
  if (!s.status().ok()) return handled;
  const LoopRVs y = s.Split(loops[tiles.y], {kRest, tiles.of_y});
  const LoopRVs x = s.Split(loops[tiles.runs.size() - 1], {kRest, tiles.of_x});
  std::vector<LoopRV> outer;
  for (size_t r = 0; r + 1 < tiles.runs.size(); ++r) {
    if (r != tiles.y) outer.push_back(loops[r]);
  }
  outer.push_back(y[0]);
  outer.push_back(x[0]);
  std::vector<LoopRV> order = outer;
  order.push_back(y[1]);
  order.push_back(x[1]);
  s.Reorder(order);
  const LoopRV tile = s.Fuse(outer);
  for (size_t i = 0; i < tiles.inputs.size(); ++i) {
    CopyInput(s, block, tiles.inputs[i], tiles, groups[i], tile, handled);
  }
  BindSquares(s, y[1], x[1], tiles.lanes);
  s.Bind(tile, "blockIdx.x");
  return handled;
}

}  // namespace ingot::schedule
