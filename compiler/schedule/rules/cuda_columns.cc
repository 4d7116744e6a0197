// Reductions on CUDA over other axes than the last one: sums of columns, means over places of images whose channels lie
// last. What is reduced lies apart in memory, and neighbours along the result's last axes lie side by side. A block of
// threads has a tile of such columns:
//
//   for tile:                                               blockIdx.x
//     for thread:  16 bytes of every R-th row               R rows of threads; several rows' loads at once
//                  what they give, into shared memory
//     for thread:  a column's R values; its result, and what follows element by element
//
// Where the tiles are few, the rows are cut into segments, whose results are rows that a second launch reduces.
#include "compiler/schedule/rules/cuda_columns.h"

#include <algorithm>
#include <optional>

#include "compiler/schedule/rules/contiguity.h"
#include "compiler/schedule/rules/epilogue.h"
#include "compiler/schedule/rules/rules.h"
#include "compiler/target/cuda.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

constexpr int64_t kThreadsOfColumns = 8 * kCudaWarpThreads;
constexpr int64_t kBytesOfColumns = 16, kMostLanes = 8;
// Rows of threads whose values one thread joins.
constexpr int64_t kGroupOfRows = 8;
// Fewer rows are left to a thread for each column.
constexpr int64_t kLeastColumnRows = 32;
// Segments: until so many tiles are there, of so many rows of each thread at least.
constexpr int64_t kColumnTilesThatFill = 1024, kLeastRowsOfThread = 8, kMostSegments = 256;
// What symbols count as.
constexpr int64_t kUnknownColumnRows = 4 << 10, kUnknownColumnCount = 1 << 10;

bool AreKnownIters(const BlockSite& site, const std::vector<int>& iters) {
  return std::ranges::all_of(
      iters, [&](int iter) { return ConstantExtent(*site.block().iter_vars[static_cast<size_t>(iter)]).has_value(); });
}

// The new axis of partial results, their last one, becomes the first one.
void PutLastFirst(Schedule& s, BlockRV block) {
  if (!s.status().ok()) return;
  const auto rank = static_cast<int64_t>(StoreOf(s.Block(block)).indices.size());
  std::vector<int64_t> order{rank - 1};
  for (int64_t d = 0; d + 1 < rank; ++d) order.push_back(d);
  s.TransformLayout(block, 0, PermutingMap(order));
}

}  // namespace

int64_t CountOfIters(const BlockSite& site, const std::vector<int>& iters, int64_t unknown) {
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t length = 1;
  for (const int iter : iters) {
    const int64_t extent = ConstantExtent(*site.block().iter_vars[static_cast<size_t>(iter)]).value_or(unknown);
    length = std::min(length, kMost / std::max<int64_t>(extent, 1)) * extent;
  }
  return length;
}

// Windows of so few taps share what they read, which threads of their own have in registers.
constexpr int64_t kMostWindowTaps = 256;

Match<CudaColumns> FindCudaColumns(const BlockSite& site) {
  Contiguity contiguity(site);
  CudaColumns columns;
  std::vector<int> kept;
  for (size_t d = 0; d < StoreOf(site).indices.size(); ++d) {
    const int iter = IterOfDimension(site, d);
    if (iter >= 0 && std::ranges::find(kept, iter) == kept.end()) kept.push_back(iter);
  }
  if (kept.empty()) return Declined{"it has one result"};
  for (const int iter : SpatialIters(site)) {
    if (std::ranges::find(kept, iter) != kept.end()) continue;
    if (ConstantExtent(*site.block().iter_vars[static_cast<size_t>(iter)]) != 1) {
      return Declined{"an axis is none of its result's"};
    }
    kept.insert(kept.begin(), iter);
  }
  columns.kept = contiguity.Runs(kept);
  columns.reduced = ReduceIters(site);
  const int64_t rows = CountOfIters(site, columns.reduced, kUnknownColumnRows);
  if (rows < kLeastColumnRows) return Declined{"it reduces a few rows"};
  if (rows <= kMostWindowTaps && !WindowAxes(site).empty()) return Declined{"its columns are short windows"};
  const std::vector<int>& run = columns.kept.back();
  const int column = contiguity.Innermost(run), row = contiguity.Innermost(contiguity.Runs(columns.reduced).back());
  if (contiguity.Gathers(column) || contiguity.Gathers(row)) return Declined{"it reads at places from a table"};
  int64_t bytes = 1;
  bool is_along = false;
  for (const LinearAccess& access : contiguity.accesses()) {
    if (access.load != nullptr && access.load->buffer.same_as(StoreOf(site).buffer)) continue;
    const std::optional<int64_t> step = contiguity.Step(access, column), step_of_rows = contiguity.Step(access, row);
    if (!step || (*step != 1 && (*step != 0 || access.load == nullptr))) {
      return Declined{"its columns do not lie side by side"};
    }
    if (access.load == nullptr) continue;
    bytes = std::max<int64_t>(bytes, (access.load->buffer->dtype.bits + 7) / 8);
    is_along |= *step == 1 && step_of_rows != 0;
  }
  if (!is_along) return Declined{"it reads no columns"};
  const int64_t length = CountOfIters(site, run, kUnknownColumnCount);
  if (length < 2) return Declined{"it has one column"};
  columns.lanes = std::clamp<int64_t>(kBytesOfColumns / bytes, 1, kMostLanes);
  while (columns.lanes > 1 && (!AreKnownIters(site, run) || length % columns.lanes != 0)) columns.lanes /= 2;
  while (columns.across < kCudaWarpThreads && columns.across * columns.lanes < length) columns.across *= 2;
  columns.rows_of_threads = kThreadsOfColumns / columns.across;
  int64_t tiles = (length + columns.tile() - 1) / columns.tile();
  for (size_t r = 0; r + 1 < columns.kept.size(); ++r) {
    tiles *= std::min(CountOfIters(site, columns.kept[r], kUnknownColumnCount), kColumnTilesThatFill);
    tiles = std::min(tiles, kColumnTilesThatFill);
  }
  while (columns.segments < kMostSegments && tiles * columns.segments * 2 <= kColumnTilesThatFill &&
         rows / (columns.rows_of_threads * columns.segments * 2) >= kLeastRowsOfThread) {
    columns.segments *= 2;
  }
  return columns;
}

void BindInRounds(Schedule& s, LoopRV loop, int64_t threads) {
  s.Bind(s.Split(loop, {kRest, threads})[1], "threadIdx.x");
}

void IterGroups::Add(const std::vector<int>& group) {
  iters.insert(iters.end(), group.begin(), group.end());
  sizes.push_back(static_cast<int64_t>(group.size()));
}
void IterGroups::Fuse(Schedule& s, BlockRV block) const {
  s.FuseIters(block, iters, std::vector<int64_t>(iters.size(), 0), sizes);
}

void JoinDimensions(Schedule& s, BlockRV block, const std::vector<std::vector<int64_t>>& groups) {
  if (!s.status().ok()) return;
  const Buffer buffer = StoreOf(s.Block(block)).buffer;
  const size_t rank = buffer->shape.size();
  if (rank <= groups.size()) return;
  s.TransformLayout(block, 0, MakeIndexMap(static_cast<int64_t>(rank), [&](const std::vector<PrimExpr>& i) {
                      std::vector<PrimExpr> places;
                      for (const std::vector<int64_t>& group : groups) {
                        PrimExpr place = Int64(0);
                        for (const int64_t d : group) {
                          const auto dim = static_cast<size_t>(d);
                          place = place * Cast(DataType::Int(64), buffer->shape[dim]) + i[dim];
                        }
                        places.push_back(place);
                      }
                      return places;
                    }));
}

ColumnShares MakeShares(Schedule& s, BlockRV total, const CudaColumns& columns, std::vector<BlockName>& handled) {
  ColumnShares shares;
  shares.total = total;
  const LoopRVs loops = s.GetLoops(total);
  if (!s.status().ok()) return shares;
  shares.share = s.RFactor(s.Split(loops.back(), {kRest, columns.rows_of_threads})[1]);
  PutLastFirst(s, shares.share);
  shares.has_groups = columns.rows_of_threads > kGroupOfRows;
  if (shares.has_groups) {
    shares.group = s.RFactor(s.Split(s.GetLoops(total).back(), {kRest, kGroupOfRows})[1]);
    PutLastFirst(s, shares.group);
    s.SetScope(shares.group, 0, "shared");
    if (s.status().ok()) handled.push_back(s.Block(shares.group).block().name);
  }
  shares.shared = s.CacheWrite(shares.share, 0, "local");
  s.SetScope(shares.shared, 0, "shared");
  if (!s.status().ok()) return shares;
  for (const BlockRV block : {shares.share, shares.shared}) handled.push_back(s.Block(block).block().name);
  return shares;
}

void PlaceShares(Schedule& s, const ColumnShares& shares, LoopRV block) {
  if (shares.has_groups) s.ComputeAt(shares.group, block);
  s.ComputeAt(shares.shared, block);
}

void BindShares(Schedule& s, const ColumnShares& shares, LoopRV block, LoopRV element, const CudaColumns& columns,
                std::vector<BlockName>& handled) {
  // A thread's part of the rows.
  LoopsBelow below = FindLoopsBelow(s, shares.shared, block);
  if (!s.status().ok()) return;
  const std::vector<LoopRV> spatial = below.spatial;  // row of threads, around, columns
  const LoopRVs vector = s.Split(spatial.back(), {kRest, columns.across, columns.lanes});
  std::vector<LoopRV> nest{vector[0], spatial[0], vector[1]};
  nest.insert(nest.end(), spatial.begin() + 1, spatial.end() - 1);
  nest.push_back(vector[2]);
  s.Reorder(nest);
  const LoopRV thread = s.Fuse({spatial[0], vector[1]});
  s.ComputeAt(shares.share, thread);
  s.Bind(thread, "threadIdx.x");
  if (!s.status().ok()) return;
  if (columns.lanes > 1 && StoreOf(s.Block(shares.shared)).buffer->dtype.bits >= 32) {
    s.Vectorize(vector[2]);
  } else {
    s.Unroll(vector[2]);
  }
  below = FindLoopsBelow(s, shares.share, thread);
  if (!s.status().ok()) return;
  const auto rows = AsConstInt(s.Loop(below.reducing.front()).loop->extent);
  int64_t at_once = rows ? kColumnRowsAtOnce : columns.unknown_at_once;
  while (rows && at_once < 2 * kColumnRowsAtOnce && *rows % at_once != 0) ++at_once;
  if (rows && *rows % at_once != 0) at_once = kColumnRowsAtOnce;
  const LoopRVs parts = s.Split(below.reducing.front(), {kRest, at_once});
  nest = {parts[0], parts[1]};
  nest.insert(nest.end(), below.spatial.begin(), below.spatial.end());
  s.Reorder(nest);
  const BlockRV start = s.DecomposeReduction(shares.share, parts[0]);
  if (!s.status().ok()) return;
  handled.push_back(s.Block(start).block().name);
  s.Unroll(parts[1]);
  for (const LoopRV loop : below.spatial) s.Unroll(loop);
  for (const InnerLoop& loop : InnerLoops(s, start, thread)) s.Unroll(loop.loop);
  // The values of the rows of threads.
  if (shares.has_groups) {
    below = FindLoopsBelow(s, shares.group, block);
    if (!s.status().ok()) return;
    std::vector<LoopRV> of_group{below.spatial.back()};  // neighbours are columns
    of_group.insert(of_group.end(), below.spatial.begin(), below.spatial.end() - 1);
    nest = of_group;
    nest.insert(nest.end(), below.reducing.begin(), below.reducing.end());
    s.Reorder(nest);
    BindInRounds(s, s.Fuse(of_group), columns.threads());
    s.DecomposeReduction(shares.group, below.reducing.front());
  }
  below = FindLoopsBelow(s, shares.total, s.IsVoid(element) ? block : element);
  if (!s.status().ok()) return;
  if (s.IsVoid(element)) {
    nest = below.spatial;
    nest.insert(nest.end(), below.reducing.begin(), below.reducing.end());
    if (nest.size() > 1) s.Reorder(nest);
    element = below.spatial.size() > 1 ? s.Fuse(below.spatial) : below.spatial.front();
  }
  if (!below.reducing.empty()) {
    s.DecomposeReduction(shares.total, below.reducing.front());
    s.Unroll(below.reducing.front());
  }
  BindInRounds(s, element, columns.threads());
}

namespace {

// One launch for the reduction and what follows it.
void BuildColumns(Schedule& s, const BlockName& name, std::vector<BlockName>& handled) {
  const BlockRV total = s.GetBlock(name);
  if (!s.status().ok()) return;
  const BlockSite site = s.Block(total);
  const Match<CudaColumns> found = FindCudaColumns(site);
  CudaColumns columns;
  if (found) {
    columns = *found;
  } else {  // the results of segments: they are few
    columns.kept = {SpatialIters(site)};
    columns.reduced = ReduceIters(site);
    columns.across = kCudaWarpThreads;
    columns.rows_of_threads = kThreadsOfColumns / columns.across;
  }
  const int64_t rows = CountOfIters(site, columns.reduced, kUnknownColumnRows);
  while (columns.rows_of_threads > 1 && columns.rows_of_threads * 2 > rows) columns.rows_of_threads /= 2;
  const BlockRV out = WriteBack(s, total, handled);
  if (!s.status().ok()) return;
  // One axis each: what is around, the columns, the rows.
  const BlockSite of_out = s.Block(out), of_total = s.Block(total);
  const size_t rank = StoreOf(of_total).indices.size();
  std::vector<int> around;
  for (size_t r = 0; r + 1 < columns.kept.size(); ++r) {
    around.insert(around.end(), columns.kept[r].begin(), columns.kept[r].end());
  }
  IterGroups of_sum, of_result;
  std::vector<std::vector<int64_t>> dimensions;
  std::vector<int> left;  // axes of one place that only the result has
  for (size_t i = 0; i < of_out.block().iter_vars.size(); ++i) left.push_back(static_cast<int>(i));
  for (const std::vector<int>* group : {&around, &columns.kept.back()}) {
    if (group->empty()) continue;
    of_sum.Add(*group);
    std::vector<int> same;
    dimensions.emplace_back();
    for (const int iter : *group) {
      size_t d = 0;
      while (d < rank && IterOfDimension(of_total, d) != iter) ++d;
      if (d == rank) continue;  // an axis of one place
      dimensions.back().push_back(static_cast<int64_t>(d));
      const int of_same = IterOfDimension(of_out, d);
      if (of_same < 0) continue;
      same.push_back(of_same);
      std::erase(left, of_same);
    }
    if (!same.empty()) of_result.Add(same);
  }
  of_sum.Add(columns.reduced);
  if (of_result.sizes.empty()) of_result.sizes.push_back(0);
  of_result.iters.insert(of_result.iters.end(), left.begin(), left.end());
  of_result.sizes.back() += static_cast<int64_t>(left.size());
  JoinDimensions(s, total, dimensions);
  of_sum.Fuse(s, total);
  of_result.Fuse(s, out);
  const ColumnShares shares = MakeShares(s, total, columns, handled);
  const LoopRVs loops = s.GetLoops(out);
  if (!s.status().ok()) return;
  const LoopRVs tiles = s.Split(loops.back(), {kRest, columns.tile()});
  const LoopRV block = loops.size() > 1 ? s.Fuse({loops[0], tiles[0]}) : tiles[0];
  s.ComputeAt(total, tiles[1]);
  PlaceShares(s, shares, block);
  BindShares(s, shares, block, tiles[1], columns, handled);
  s.Bind(block, "blockIdx.x");
}

}  // namespace

Match<> MatchesCudaColumns(const ScheduleState& state, const BlockSite& site, const Target&) {
  const Match<> reduction = AsReduction(state, site);
  if (!reduction) return reduction;
  if (IsBoundToThreads(site)) return Declined{"it is bound to threads"};
  if (!state.IsRegular(site.block().name)) return Declined{"its bindings are not simple"};
  if (!MatchReduction(site.block())) return Declined{"it is no reduction by +, *, min or max"};
  return FindCudaColumns(site).As(Taken{});
}

std::vector<BlockName> ApplyCudaColumns(Schedule& s, const BlockSite& site, const Target&) {
  const CudaColumns columns = *FindCudaColumns(site);
  const BlockName& name = site.block().name;
  std::vector<BlockName> handled{name};
  if (columns.segments > 1) {
    const BlockRV block = s.GetBlock(name);
    IterGroups of_sum;
    for (const int iter : SpatialIters(site)) of_sum.Add({iter});
    of_sum.Add(columns.reduced);
    of_sum.Fuse(s, block);
    const LoopRVs loops = s.GetLoops(block);
    if (!s.status().ok()) return handled;
    const BlockRV segment = s.RFactor(s.Split(loops.back(), {columns.segments, kRest})[0]);
    PutLastFirst(s, segment);
    if (!s.status().ok()) return handled;
    const BlockName of_segment = s.Block(segment).block().name;
    handled.push_back(of_segment);
    BuildColumns(s, of_segment, handled);
  }
  BuildColumns(s, name, handled);
  return handled;
}

}  // namespace ingot::schedule
