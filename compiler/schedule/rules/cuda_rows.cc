// Reductions along rows on CUDA: softmax, layer normalisation, sums over the last axes. All stages of the function run in
// one launch, row by row; after TVM DLight's GeneralReduction and RMSNorm.
//
//   for row (or a few rows):                                  blockIdx.x
//     for thread:  its part of the row from memory            threadIdx.x, as in the loops below
//     for thread:  what its part gives to a reduction         its partial result in a register
//     the threads of a row reduce these                       cross_threads: by exchange within warps, then through
//     for thread:  its part of the next stage ...             shared memory
//
// A thread has every T-th vector of a row, so that a warp reads memory from one place on. Where a row of known length has
// whole vectors for all threads, each keeps its elements of the inputs that several stages read, and of stages in between,
// in registers (place_buffers finds that they are its own), and memory is read once. Other rows lie in shared memory
// between stages, or where they are too long or of symbolic length, stages in between are computed again by each reader.
// A few long rows are reduced in two launches: segments of them, then what these gave.
#include <algorithm>
#include <optional>
#include <set>

#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/contiguity.h"
#include "compiler/schedule/rules/cuda_columns.h"
#include "compiler/schedule/rules/epilogue.h"
#include "compiler/schedule/rules/rules.h"
#include "compiler/target/cuda.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// The reductions of shorter rows are left to a thread for each element.
constexpr int64_t kShortestRow = 4;
// The threads of a row of unknown length; the threads that a block of several rows has; the bytes of a row that a thread
// has, where there may be enough threads, and where a block's threads still keep a row in their registers.
constexpr int64_t kUsualThreads = 256, kThreadsOfRows = 256, kBytesOfThread = 64, kMostBytesOfThread = 160;
// The longest access of a thread, the least bytes of a vector, and the bytes of a stage in between that a block keeps.
constexpr int64_t kLongestAccess = 16, kShortestVector = 4, kMostKeptBytes = 24 << 10;
// Rounds of a thread that are unrolled: all of them up to the first number, else as many as the second one at a time.
constexpr int64_t kMostUnrolled = 16, kUnrolledOfMany = 4;

int64_t BytesOf(DataType dtype) { return std::max<int64_t>((dtype.bits + 7) / 8, 1); }

// The iterations of the block's loops that reduce; nothing where they are not known.
std::optional<int64_t> LengthOf(const BlockSite& site, const std::vector<int>& iters) {
  int64_t length = 1;
  for (const int iter : iters) {
    const std::optional<int64_t> extent = ConstantExtent(*site.block().iter_vars[static_cast<size_t>(iter)]);
    if (!extent || __builtin_mul_overflow(length, *extent, &length)) return {};
  }
  return length;
}

// Whether neighbours along the reduction are neighbours in memory, or one element.
bool ReadsAlongRows(const BlockSite& site) {
  Contiguity contiguity(site);
  const std::vector<int> reduce = ReduceIters(site);
  const int k = contiguity.Innermost(contiguity.Runs(reduce).back());
  return std::ranges::all_of(contiguity.accesses(), [&](const LinearAccess& access) {
    const std::optional<int64_t> step = contiguity.Step(access, k);
    return step && (*step == 0 || *step == 1);
  });
}

// Of a few long rows that nothing but the reduction itself reads, each is reduced in parts by as many blocks of threads
// as this (1: in one piece), whose results are then a row of their own.
int64_t SegmentsOf(const ScheduleState& state, const BlockSite& first) {
  constexpr int64_t kMostRows = 64, kLongRow = 64 << 10, kBlocks = 1024, kLeastSegment = 8 << 10;
  if (!IsReduction(state, first)) return 1;
  for (const BufferRegion& read : first.block().reads) {
    for (const BlockSite& reader : state.Readers(read.buffer)) {
      if (!reader.realize.same_as(first.realize)) return 1;
    }
  }
  const int64_t length = LengthOf(first, ReduceIters(first)).value_or(0);
  const int64_t rows = LengthOf(first, SpatialIters(first)).value_or(kMostRows + 1);
  if (length < kLongRow || rows > kMostRows) return 1;
  int64_t segments = 1;
  while (segments * 2 * rows <= kBlocks && length / (segments * 2) >= kLeastSegment) segments *= 2;
  return segments;
}

class CudaRowsBuilder {
 public:
  // Of all blocks but the given ones.
  explicit CudaRowsBuilder(Schedule& schedule, std::set<BlockName> others = {})
      : s_(schedule), others_(std::move(others)) {}

  std::vector<BlockName> Build() {
    ListStages();
    ChooseThreads();
    DropStages();
    KeepInputs();
    JoinRows();
    MakePartials();
    LayOutKept();
    PlaceStages();
    if (!s_.status().ok()) return handled_;
    std::vector<BlockName> names;
    for (const BlockSite& stage : Stages()) names.push_back(stage.block().name);
    for (const BlockName& name : names) BindStage(name);
    s_.Bind(block_, "blockIdx.x");
    return handled_;
  }

 private:
  std::vector<BlockSite> Stages() const {
    std::vector<BlockSite> stages;
    for (BlockSite& site : s_.state().Blocks()) {
      if (!others_.contains(site.block().name)) stages.push_back(std::move(site));
    }
    return stages;
  }

  void ListStages() {
    std::vector<BlockSite> sites = Stages();
    shared_ = SharedDimensions(sites);
    for (const BlockSite& site : sites) handled_.push_back(site.block().name);
    if (IsReduction(s_.state(), sites.back())) WriteBack(s_, s_.GetBlock(sites.back().block().name), handled_);
    sites = Stages();
    for (const BlockSite& site : sites) {
      if (IsReduction(s_.state(), site)) reductions_.push_back(site.block().name);
    }
    last_ = sites.back().block().name;
  }

  // Threads, neighbours and rows by the longest row and the widest element.
  void ChooseThreads() {
    length_ = 1;
    int64_t widest = 1, narrowest = kLongestAccess;
    const auto count = [&](const Buffer& buffer) {
      widest = std::max(widest, BytesOf(buffer->dtype));
      narrowest = std::min(narrowest, BytesOf(buffer->dtype));
    };
    for (const BlockSite& site : Stages()) {
      count(StoreOf(site).buffer);
      for (const LoadUse& use : LoadsOf(site)) count(use.load->buffer);
      if (!IsReduction(s_.state(), site)) continue;
      const std::optional<int64_t> length = LengthOf(site, ReduceIters(site));
      length_ = length && length_ ? std::optional(std::max(*length, *length_)) : std::nullopt;
    }
    threads_ = length_ ? 1 : kUsualThreads;
    while (length_ && threads_ * kBytesOfThread < *length_ * widest && threads_ < kCudaMaxBlockThreads) threads_ *= 2;
    const BlockSite last = s_.state().FindBlock(last_).value();
    const std::vector<int> axes = RowIters(last);
    const std::optional<int64_t> rows = LengthOf(last, axes);
    rows_ = std::max<int64_t>(kThreadsOfRows / threads_, 1);
    while (rows_ > 1 && rows && *rows < rows_) rows_ /= 2;
    threads_ = std::max(threads_, kCudaWarpThreads / rows_);
    lanes_ = length_ ? std::clamp<int64_t>(kLongestAccess / widest, 1, 8) : 1;
    while (lanes_ > 1 && (*length_ % lanes_ != 0 || *length_ < threads_ * lanes_)) lanes_ /= 2;
    if (lanes_ * narrowest < kShortestVector) lanes_ = 1;
    const int64_t round = threads_ * lanes_;
    keeps_ = length_ && (*length_ + round - 1) / round * lanes_ * widest <= kMostBytesOfThread;
    const std::optional<int64_t> innermost =
        axes.empty() ? 1 : ConstantExtent(*last.block().iter_vars[static_cast<size_t>(axes.back())]);
    joins_ = rows_ > 1 && axes.size() > 1 && (!innermost || *innermost % rows_ != 0);
  }

  // The iteration variables of the stage's shared dimensions.
  std::vector<int> RowIters(const BlockSite& site) const {
    if (is_joined_) return shared_ == 0 ? std::vector<int>() : std::vector<int>{0};
    std::vector<int> rows;
    for (int d = 0; d < shared_; ++d) rows.push_back(IterOfDimension(site, static_cast<size_t>(d)));
    return rows;
  }
  bool IsRowIter(const BlockSite& site, int iter) const {
    const std::vector<int> rows = RowIters(site);
    return std::ranges::find(rows, iter) != rows.end();
  }

  // The iteration variables of the stage's own dimensions.
  std::vector<int> OwnIters(const BlockSite& site) const {
    std::vector<int> own;
    for (const int iter : SpatialIters(site)) {
      if (!IsRowIter(site, iter)) own.push_back(iter);
    }
    return own;
  }

  // Stages in between whose rows would lie in the workspace are computed by each reader.
  void DropStages() {
    for (const BlockSite& site : Stages()) {
      const BlockName& name = site.block().name;
      if (name == last_ || !IsInjective(s_.state(), site)) continue;
      const std::optional<int64_t> length = LengthOf(site, OwnIters(site));
      if (length != 1 && keeps_ && length == length_) {
        kept_.push_back(name);
        continue;
      }
      if (length && *length > 1 && *length * rows_ * BytesOf(StoreOf(site).buffer->dtype) <= kMostKeptBytes) continue;
      Schedule attempt = s_;
      attempt.ComputeInline(attempt.GetBlock(name));
      if (attempt.status().ok()) s_ = std::move(attempt);
    }
  }

  // Whether the stage reads the buffer at its own place: its shared dimensions, then the variables of its row in order.
  bool ReadsInPlace(const BlockSite& site, const Buffer& buffer) const {
    std::vector<int> iters = RowIters(site);
    const bool is_reduction = IsReduction(s_.state(), site);
    const std::vector<int> own = is_reduction ? ReduceIters(site) : OwnIters(site);
    iters.insert(iters.end(), own.begin(), own.end());
    if (iters.size() != buffer->shape.size() || LengthOf(site, own) != length_) return false;
    return std::ranges::all_of(LoadsOf(site), [&](const LoadUse& use) {
      if (!use.load->buffer.same_as(buffer)) return true;
      for (size_t d = 0; d < iters.size(); ++d) {
        if (use.load->indices[d].get() != site.block().iter_vars[static_cast<size_t>(iters[d])]->var.get())
          return false;
      }
      return true;
    });
  }

  // Copies of the inputs that several stages read.
  void KeepInputs() {
    if (!keeps_) return;
    std::vector<Buffer> inputs;
    for (const BlockSite& site : Stages()) {
      for (const BufferRegion& read : site.block().reads) {
        const bool is_known =
            std::ranges::any_of(inputs, [&](const Buffer& known) { return known.same_as(read.buffer); });
        if (!is_known && !s_.state().OnlyWriter(read.buffer) && !s_.state().IsAllocated(read.buffer)) {
          inputs.push_back(read.buffer);
        }
      }
    }
    for (const Buffer& input : inputs) {
      const std::vector<BlockSite> readers = s_.state().Readers(input);
      const bool in_place =
          std::ranges::all_of(readers, [&](const BlockSite& reader) { return ReadsInPlace(reader, input); });
      if (readers.size() < 2 || !in_place) continue;
      std::vector<BlockRV> others;
      for (size_t i = 1; i < readers.size(); ++i) others.push_back(s_.GetBlock(readers[i].block().name));
      const auto& reads = readers[0].block().reads;
      const auto position =
          std::ranges::find_if(reads, [&](const BufferRegion& read) { return read.buffer.same_as(input); }) -
          reads.begin();
      const BlockRV copy = s_.CacheRead(s_.GetBlock(readers[0].block().name), position, "local", others);
      if (!s_.status().ok()) return;
      handled_.push_back(s_.Block(copy).block().name);
      kept_.push_back(handled_.back());
    }
  }

  // Rows over several axes become rows over one, where a block's rows would not be a box of them.
  void JoinRows() {
    if (!joins_ || !s_.status().ok()) return;
    std::vector<std::vector<int64_t>> rows{{}};
    for (int d = 0; d < shared_; ++d) rows[0].push_back(d);
    for (const BlockSite& site : Stages()) {
      IterGroups groups;
      groups.Add(RowIters(site));
      for (const std::vector<int>& iters : {OwnIters(site), ReduceIters(site)}) {
        if (!iters.empty()) groups.Add(iters);
      }
      std::vector<std::vector<int64_t>> dimensions = rows;
      for (int64_t d = shared_; d < static_cast<int64_t>(StoreOf(site).indices.size()); ++d) {
        if (dimensions.size() == 1) dimensions.emplace_back();
        dimensions.back().push_back(d);
      }
      const BlockRV block = s_.GetBlock(site.block().name);
      if (!WritesOutput(s_.state(), site)) JoinDimensions(s_, block, dimensions);
      groups.Fuse(s_, block);
      if (!s_.status().ok()) return;
    }
    is_joined_ = true;
    shared_ = 1;
  }

  // Partial results of each thread.
  void MakePartials() {
    for (const BlockName& name : reductions_) {
      if (!s_.status().ok()) return;
      const BlockRV block = s_.GetBlock(name);
      const LoopRV reduced = FuseReducing(s_, block);
      if (threads_ == 1) s_.SetScope(block, 0, "local");
      if (threads_ == 1 || !s_.status().ok()) continue;
      const BlockRV partial = s_.RFactor(SplitRow(reduced).thread);
      s_.SetScope(partial, 0, "local");
      if (!s_.status().ok()) return;
      partials_.insert(s_.Block(partial).block().name);
      handled_.push_back(s_.Block(partial).block().name);
    }
  }
  // A row as rounds, a thread's places in one, and neighbours. A condition of the last round is one for all neighbours.
  struct Row {
    std::vector<LoopRV> rounds;
    LoopRV thread;
    std::vector<LoopRV> lanes;  // one or none
  };
  Row SplitRow(LoopRV loop) {
    Row row;
    if (!s_.status().ok()) return row;
    const auto extent = AsConstInt(s_.Loop(loop).loop->extent);
    if (extent && lanes_ > 1 && *extent % lanes_ == 0) {
      const LoopRVs parts = s_.Split(loop, {kRest, lanes_});
      loop = parts[0];
      row.lanes = {parts[1]};
    }
    const LoopRVs parts = s_.Split(loop, {kRest, threads_});
    row.thread = parts[1];
    row.rounds = {parts[0]};
    const int64_t rounds = extent ? *extent / (threads_ * (row.lanes.empty() ? 1 : lanes_)) : 0;
    if (rounds > kMostUnrolled) {
      const LoopRVs many = s_.Split(parts[0], {kRest, kUnrolledOfMany});
      row.rounds = {many[0], many[1]};
    }
    return row;
  }

  // Rounds, threads and neighbours become dimensions of what threads keep, so that each has a box of elements.
  void LayOutKept() {
    const int64_t shared = shared_;
    for (const BlockName& name : kept_) {
      const BlockRV block = s_.GetBlock(name);
      s_.SetScope(block, 0, "local");
      if (!s_.status().ok()) return;
      const Buffer kept = StoreOf(s_.Block(block)).buffer;
      const auto rank = static_cast<int64_t>(kept->shape.size());
      if (rank > shared + 1) {
        s_.TransformLayout(block, 0, MakeIndexMap(rank, [&](std::vector<PrimExpr> i) {
                             PrimExpr place = i[static_cast<size_t>(shared)];
                             for (size_t d = static_cast<size_t>(shared) + 1; d < i.size(); ++d) {
                               place = place * kept->shape[d] + i[d];
                             }
                             i.resize(static_cast<size_t>(shared));
                             i.push_back(place);
                             return i;
                           }));
      }
      s_.TransformLayout(block, 0, MakeIndexMap(shared + 1, [&](std::vector<PrimExpr> i) {
                           const PrimExpr place = i.back();
                           i.back() = FloorDiv(place, Int64(threads_ * lanes_));
                           i.push_back(FloorMod(FloorDiv(place, Int64(lanes_)), Int64(threads_)));
                           i.push_back(FloorMod(place, Int64(lanes_)));
                           return i;
                         }));
    }
  }

  // All stages at the loop over blocks of rows.
  void PlaceStages() {
    if (!s_.status().ok()) return;
    const BlockRV last = s_.GetBlock(last_);
    std::vector<LoopRV> outer, own;
    const BlockSite site = s_.Block(last);
    for (const InnerLoop& entry : InnerLoops(s_, last, LoopRV{})) {
      (IsOfRows(site, entry) ? outer : own).push_back(entry.loop);
    }
    if (outer.empty()) outer.push_back(s_.AddUnitLoop(last));  // the whole is one row
    std::vector<LoopRV> order = outer;
    order.insert(order.end(), own.begin(), own.end());
    if (order.size() > 1) s_.Reorder(order);
    const LoopRVs rows = s_.Split(outer.size() > 1 ? s_.Fuse(outer) : outer[0], {kRest, rows_});
    block_ = rows[0];
    const std::vector<BlockSite> stages = Stages();
    for (size_t i = stages.size(); i-- > 0;) {
      const BlockName& name = stages[i].block().name;
      if (name != last_) s_.ComputeAt(s_.GetBlock(name), block_);
    }
  }
  // Whether the loop is over rows, or of the one iteration that a kept axis has.
  bool IsOfRows(const BlockSite& site, const InnerLoop& loop) const {
    return loop.iter < 0 || IsRowIter(site, loop.iter);
  }

  void BindStage(const BlockName& name) {
    if (!s_.status().ok()) return;
    const BlockRV block = s_.GetBlock(name);
    const BlockSite site = s_.Block(block);
    const HandleList<InnerLoop> loops = InnerLoops(s_, block, block_);
    if (!s_.status().ok()) return;  // the block is none then
    std::vector<LoopRV> rows, own, reducing;
    LoopRV thread;
    const int thread_iter = partials_.contains(name) ? IterOfDimension(site, StoreOf(site).indices.size() - 1) : -1;
    for (const InnerLoop& entry : loops) {
      if (Reduces(site, entry)) {
        reducing.push_back(entry.loop);
      } else if (thread_iter >= 0 && entry.iter == thread_iter) {
        thread = entry.loop;
      } else {
        (IsOfRows(site, entry) ? rows : own).push_back(entry.loop);
      }
    }
    if (thread_iter >= 0) {
      rows.insert(rows.end(), own.begin(), own.end());
      std::vector<LoopRV> order = rows;
      order.push_back(thread);
      order.insert(order.end(), reducing.begin(), reducing.end());
      s_.Reorder(order);
      if (!reducing.empty()) s_.DecomposeReduction(block, reducing[0]);
      BindThreads(rows, thread);
      for (const LoopRV loop : reducing) UnrollShort(loop);
    } else if (!reducing.empty() && threads_ == 1) {
      rows.insert(rows.end(), own.begin(), own.end());
      std::vector<LoopRV> order = rows;
      order.insert(order.end(), reducing.begin(), reducing.end());
      s_.Reorder(order);
      s_.DecomposeReduction(block, reducing[0]);
      for (const LoopRV loop : reducing) s_.Unroll(loop);
      const LoopRV thread = rows.back();
      rows.pop_back();
      BindThreads(rows, thread);
    } else if (!reducing.empty()) {
      s_.Annotate(reducing.back(), kCudaCrossThreads, int64_t{1});
    } else if (rows_ > 1 || LengthOf(site, OwnIters(site)) != 1) {
      if (own.empty()) own.push_back(s_.AddUnitLoop(block));
      const LoopRV row = own.size() > 1 ? s_.Fuse(own) : own[0];
      const Row parts = SplitRow(row);
      std::vector<LoopRV> order = rows;
      order.push_back(parts.thread);
      order.insert(order.end(), parts.rounds.begin(), parts.rounds.end());
      order.insert(order.end(), parts.lanes.begin(), parts.lanes.end());
      s_.Reorder(order);
      BindThreads(rows, parts.thread);
      for (const LoopRV round : parts.rounds) UnrollShort(round);
      for (const LoopRV lanes : parts.lanes) s_.Vectorize(lanes);
    }
  }
  void BindThreads(std::vector<LoopRV> rows, LoopRV thread) {
    rows.push_back(thread);
    s_.Bind(rows.size() > 1 ? s_.Fuse(rows) : thread, "threadIdx.x");
  }
  void UnrollShort(LoopRV loop) {
    if (!s_.status().ok()) return;
    const auto extent = AsConstInt(s_.Loop(loop).loop->extent);
    if (extent && *extent <= kMostUnrolled) s_.Unroll(loop);
  }

  Schedule& s_;
  const std::set<BlockName> others_;
  std::vector<BlockName> handled_, reductions_;
  BlockName last_;
  std::set<BlockName> partials_;
  std::vector<BlockName> kept_;  // of stages
  LoopRV block_;
  int shared_ = 0;
  std::optional<int64_t> length_;  // of the longest row
  int64_t threads_ = 1, lanes_ = 1, rows_ = 1;
  bool keeps_ = false;  // each thread keeps its elements of a row
  bool joins_ = false, is_joined_ = false;  // the shared dimensions are to be one, or are
};

}  // namespace

Match<> MatchesCudaRows(const ScheduleState& state, const BlockSite& site, const Target& target) {
  const Match<> rows = MatchesRows(state, site, target);
  if (!rows) return rows;
  for (const BlockSite& stage : state.Blocks()) {
    if (IsBoundToThreads(stage)) return Declined{"it is bound to threads"};
    if (!state.IsRegular(stage.block().name)) return Declined{"its bindings are not simple"};
    if (!IsReduction(state, stage)) continue;
    if (!MatchReduction(stage.block())) return Declined{"it is no reduction by +, *, min or max"};
    if (LengthOf(stage, ReduceIters(stage)).value_or(kShortestRow) < kShortestRow)
      return Declined{"its rows have a few elements"};
    if (!ReadsAlongRows(stage)) return Declined{"its rows do not lie in one piece"};
  }
  return Taken{};
}

std::vector<BlockName> ApplyCudaRows(Schedule& s, const BlockSite&, const Target&) {
  const std::vector<BlockSite> sites = s.state().Blocks();
  const int64_t segments = SegmentsOf(s.state(), sites.front());
  if (segments == 1) return CudaRowsBuilder(s).Build();
  const BlockRV segment =
      s.RFactor(s.Split(FuseReducing(s, s.GetBlock(sites.front().block().name)), {segments, kRest})[0]);
  if (!s.status().ok()) return {};
  const BlockName name = s.Block(segment).block().name;
  std::vector<BlockName> handled = CudaRowsBuilder(s, {name}).Build();
  std::set<BlockName> others;
  for (const BlockSite& site : s.state().Blocks()) others.insert(site.block().name);
  others.erase(name);
  if (!s.status().ok()) return handled;
  for (BlockName& made : CudaRowsBuilder(s, others).Build()) handled.push_back(std::move(made));
  return handled;
}

}  // namespace ingot::schedule
