// Several reductions of the same columns on CUDA and what depends on them: softmax and normalisations over an axis that is
// not the last one. All stages run in one launch. A block of threads has a strip: all rows of a tile of columns, which it
// reads for each reduction and once more for the result; a strip is so narrow that those in work stay in the GPU's cache.
//
//   for strip:                                              blockIdx.x
//     for each reduction:  as in cuda_columns, its results in shared memory
//     for thread:  every R-th row of the result
#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/ir/structural.h"
#include "compiler/schedule/rules/contiguity.h"
#include "compiler/schedule/rules/cuda_columns.h"
#include "compiler/schedule/rules/rules.h"
#include "compiler/target/cuda.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// Threads of a strip, of one with few rows or with so many as are not known (whose places take registers); the bytes of a row of it, of one with many rows; what all strips in work may
// have; how many of them are there at least, and at most at once.
constexpr int64_t kThreadsOfStrip = 1024, kThreadsOfShort = 256, kShortRows = 256, kThreadsOfUnknown = 512;
constexpr int64_t kRowBytes = 128, kLeastRowBytes = 64, kCacheBytes = 40 << 20;
constexpr int64_t kLeastStrips = 128, kStripsAtOnce = 264;
constexpr int64_t kUnknownStripRows = 1 << 10, kUnknownStripColumns = 1 << 10, kUnknownStripsAround = 1 << 10;
constexpr int64_t kStripRowsAtOnce = 4, kUnknownRowsAtOnce = 2;

// The last stage's axes, by its iteration variables, and the reductions.
struct Strips {
  std::vector<int> around, rows, columns;
  std::vector<BlockName> reductions;
  CudaColumns tile;
};

// The axes of the last stage at which it reads the result of a reduction, by the result's dimensions (-1: one place).
std::optional<std::vector<int>> AxesOf(const BlockSite& last, const Buffer& result) {
  std::optional<std::vector<int>> axes;
  for (const LoadUse& use : LoadsOf(last)) {
    if (!use.load->buffer.same_as(result)) continue;
    std::vector<int> own;
    for (const PrimExpr& index : use.load->indices) {
      int axis = -1;
      for (size_t i = 0; i < last.block().iter_vars.size(); ++i) {
        if (index.get() == last.block().iter_vars[i]->var.get()) axis = static_cast<int>(i);
      }
      if (axis < 0 && !IsConstInt(index, 0)) return std::nullopt;
      own.push_back(axis);
    }
    if (axes && *axes != own) return std::nullopt;
    axes = own;
  }
  return axes;
}

// Stages in between go into their readers.
void InlineStages(Schedule& s) {
  for (bool found = true; found && s.status().ok();) {
    found = false;
    for (const BlockSite& site : s.state().Blocks()) {
      if (!IsInjective(s.state(), site) || WritesOutput(s.state(), site)) continue;
      s.ComputeInline(s.GetBlock(site.block().name));
      found = true;
      break;
    }
  }
}

// Of a function without stages in between.
Match<Strips> FindStrips(const ScheduleState& state) {
  Strips strips;
  const std::vector<BlockSite> sites = state.Blocks();
  if (sites.size() < 3) return Declined{"it has one reduction"};
  const BlockSite& last = sites.back();
  if (!IsInjective(state, last) || ReadsUnderCondition(last)) return Declined{"its last stage is not element-wise"};
  for (size_t i = 0; i + 1 < sites.size(); ++i) {
    const BlockSite& site = sites[i];
    if (!IsReduction(state, site) || WritesOutput(state, site)) return Declined{"a stage in between stays"};
    const Match<CudaColumns> found = FindCudaColumns(site);
    if (!found) return found.declined();
    strips.reductions.push_back(site.block().name);
    const Buffer& result = StoreOf(site).buffer;
    const std::optional<std::vector<int>> axes = AxesOf(last, result);
    if (!axes || axes->size() != StoreOf(site).indices.size()) {
      return Declined{"its last stage does not read all reductions at its own place"};
    }
    // The same axes as the first reduction's, with the same extents.
    std::vector<int> around, columns;
    for (size_t r = 0; r < found->kept.size(); ++r) {
      for (const int iter : found->kept[r]) {
        for (size_t d = 0; d < axes->size(); ++d) {
          if (IterOfDimension(site, d) != iter) continue;
          const int axis = (*axes)[d];
          const PrimExpr& extent = site.block().iter_vars[static_cast<size_t>(iter)]->domain.extent;
          if (axis < 0 && IsConstInt(extent, 1)) continue;
          if (axis < 0 || !StructuralEqual(extent, last.block().iter_vars[static_cast<size_t>(axis)]->domain.extent)) {
            return Declined{"its reductions differ in their columns"};
          }
          (r + 1 == found->kept.size() ? columns : around).push_back(axis);
        }
      }
    }
    if (i == 0) {
      strips.around = around;
      strips.columns = columns;
      strips.tile = *found;
    } else if (around != strips.around || columns != strips.columns) {
      return Declined{"its reductions differ in their columns"};
    }
  }
  for (size_t d = 0; d < StoreOf(last).indices.size(); ++d) {
    const int axis = IterOfDimension(last, d);
    if (axis < 0) return Declined{"its last stage has an axis of one place"};
    const auto has = [&](const std::vector<int>& axes) { return std::ranges::find(axes, axis) != axes.end(); };
    if (!has(strips.around) && !has(strips.columns)) strips.rows.push_back(axis);
  }
  const size_t num_axes = strips.around.size() + strips.rows.size() + strips.columns.size();
  if (strips.rows.empty() || strips.columns.empty() || num_axes != last.block().iter_vars.size()) {
    return Declined{"its result has no rows"};
  }
  // The result's columns lie side by side, too.
  Contiguity contiguity(last);
  const int column = strips.columns.back();
  for (const LinearAccess& access : contiguity.accesses()) {
    const std::optional<int64_t> step = contiguity.Step(access, column);
    if (!step || (*step != 1 && (*step != 0 || access.load == nullptr))) {
      return Declined{"its columns do not lie side by side"};
    }
  }
  const int64_t rows = CountOfIters(last, strips.rows, kUnknownStripRows);
  const int64_t length = CountOfIters(last, strips.columns, kUnknownStripColumns);
  const int64_t around = CountOfIters(last, strips.around, kUnknownStripsAround);
  const int64_t bytes = std::max<int64_t>(StoreOf(last).buffer->dtype.bits / 8, 1);
  int64_t row_bytes = kRowBytes;
  while (row_bytes > kLeastRowBytes && rows * row_bytes * kStripsAtOnce > kCacheBytes) row_bytes /= 2;
  CudaColumns& tile = strips.tile;
  tile.across = 1;
  while (tile.tile() * bytes < row_bytes && tile.tile() < length) tile.across *= 2;
  const bool is_known = std::ranges::all_of(strips.rows, [&](int iter) {
    return ConstantExtent(*last.block().iter_vars[static_cast<size_t>(iter)]).has_value();
  });
  const int64_t threads = !is_known ? kThreadsOfUnknown : rows >= kShortRows ? kThreadsOfStrip : kThreadsOfShort;
  tile.rows_of_threads = threads / tile.across;
  if (!is_known) tile.unknown_at_once = kUnknownRowsAtOnce;
  while (tile.rows_of_threads > 1 && tile.rows_of_threads * 2 > rows) tile.rows_of_threads /= 2;
  if (around * ((length + tile.tile() - 1) / tile.tile()) < kLeastStrips) return Declined{"it has few strips"};
  return strips;
}

}  // namespace

Match<> MatchesCudaStrips(const ScheduleState& state, const BlockSite& site, const Target&) {
  const Match<> reduction = AsReduction(state, site);
  if (!reduction) return reduction;
  for (const BlockSite& stage : state.Blocks()) {
    if (IsBoundToThreads(stage)) return Declined{"it is bound to threads"};
    if (!state.IsRegular(stage.block().name)) return Declined{"its bindings are not simple"};
    if (!IsInjective(state, stage) && !IsReduction(state, stage)) {
      return Declined{"another stage is neither element-wise nor a reduction"};
    }
    if (IsReduction(state, stage) && !MatchReduction(stage.block())) {
      return Declined{"it is no reduction by +, *, min or max"};
    }
  }
  Result<Schedule> attempt = Schedule::Create(state.function());
  if (!attempt.ok()) return Declined{"its function cannot be scheduled"};
  InlineStages(*attempt);
  if (!attempt->status().ok()) return Declined{"a stage in between stays"};
  return FindStrips(attempt->state()).As(Taken{});
}

std::vector<BlockName> ApplyCudaStrips(Schedule& s, const BlockSite&, const Target&) {
  std::vector<BlockName> handled;
  for (const BlockSite& site : s.state().Blocks()) handled.push_back(site.block().name);
  InlineStages(s);
  if (!s.status().ok()) return handled;
  const Strips strips = *FindStrips(s.state());
  const CudaColumns& tile = strips.tile;
  // One axis each: what is around, the rows, the columns.
  std::vector<ColumnShares> shares;
  for (const BlockName& name : strips.reductions) {
    const BlockRV total = s.GetBlock(name);
    if (!s.status().ok()) return handled;
    const BlockSite site = s.Block(total);
    const CudaColumns own = *FindCudaColumns(site);
    const std::vector<int>& of_columns = own.kept.back();
    IterGroups groups;
    std::vector<std::vector<int64_t>> dimensions;
    std::vector<int> around;
    for (size_t r = 0; r + 1 < own.kept.size(); ++r)
      around.insert(around.end(), own.kept[r].begin(), own.kept[r].end());
    for (const std::vector<int>* group : {&std::as_const(around), &of_columns}) {
      if (group->empty()) continue;
      groups.Add(*group);
      dimensions.emplace_back();
      for (size_t d = 0; d < StoreOf(site).indices.size(); ++d) {
        const int iter = IterOfDimension(site, d);
        if (std::ranges::find(*group, iter) != group->end()) dimensions.back().push_back(static_cast<int64_t>(d));
      }
    }
    groups.Add(own.reduced);
    JoinDimensions(s, total, dimensions);
    groups.Fuse(s, total);
    s.SetScope(total, 0, "shared");
  }
  if (!s.status().ok()) return handled;
  const BlockName last_name = s.state().Blocks().back().block().name;
  const BlockRV last = s.GetBlock(last_name);
  IterGroups of_last;
  for (const std::vector<int>* group : {&strips.around, &strips.rows, &strips.columns}) {
    if (!group->empty()) of_last.Add(*group);
  }
  of_last.Fuse(s, last);
  for (const BlockName& name : strips.reductions) shares.push_back(MakeShares(s, s.GetBlock(name), tile, handled));
  const LoopRVs loops = s.GetLoops(last);
  if (!s.status().ok()) return handled;
  const LoopRVs columns = s.Split(loops.back(), {kRest, tile.across, tile.lanes});
  const LoopRVs rows = s.Split(loops[strips.around.empty() ? 0 : 1], {kRest, tile.rows_of_threads});
  std::vector<LoopRV> order;
  if (!strips.around.empty()) order.push_back(loops[0]);
  for (const LoopRV loop : {columns[0], rows[1], columns[1], rows[0], columns[2]}) order.push_back(loop);
  s.Reorder(order);
  const LoopRV block = strips.around.empty() ? columns[0] : s.Fuse({loops[0], columns[0]});
  for (size_t i = shares.size(); i-- > 0;) {
    s.ComputeAt(shares[i].total, block);
    PlaceShares(s, shares[i], block);
    s.ComputeAt(shares[i].share, block);
  }
  const LoopRV thread = s.Fuse({rows[1], columns[1]});
  s.Bind(thread, "threadIdx.x");
  if (!s.status().ok()) return handled;
  const auto count = AsConstInt(s.Loop(rows[0]).loop->extent);
  if (count && *count % kStripRowsAtOnce == 0) s.Unroll(s.Split(rows[0], {kRest, kStripRowsAtOnce})[1]);
  if (tile.lanes > 1) s.Vectorize(columns[2]);
  for (const ColumnShares& of : shares) BindShares(s, of, block, LoopRV{}, tile, handled);
  s.Bind(block, "blockIdx.x");
  return handled;
}

}  // namespace ingot::schedule
