// Reductions along rows on CUDA: softmax, layer normalisation, sums over the last axes. All stages of the function run in
// one launch, row by row; after TVM DLight's GeneralReduction and RMSNorm.
//
//   for row (or a few rows):                                  blockIdx.x
//     for thread:  its part of the row from memory            threadIdx.x, as in the loops below
//     for thread:  what its part gives to a reduction         its partial result in a register
//     the threads of a row reduce these                       cross_threads: by exchange within warps, then through
//     for thread:  its part of the next stage ...             shared memory
//
// A thread has every T-th vector of a row, so that a warp reads memory from one place on. Where a row's length is known and
// its threads' registers hold it, each keeps its elements of the inputs that several stages read, and of stages in between
// (place_buffers finds that they are its own), and memory is read once. A short row has two threads or more, of which a
// block has many rows; what a row gives is kept by each of its threads, so that no thread waits for others than its warp's
// where a row is in one. Rows that are too long lie in shared memory between stages, or stages in between are computed
// again by each reader. A few long rows are reduced in two launches: segments of them, then what these gave.
//
// Rows are also columns, or the places of groups of channels: axes that do not come first (row_axes.h). Then each stage is
// fused into one axis of rows and one of places, and of columns neighbouring threads have neighbouring ones.
#include <algorithm>
#include <optional>
#include <set>

#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/contiguity.h"
#include "compiler/schedule/rules/epilogue.h"
#include "compiler/schedule/rules/row_axes.h"
#include "compiler/schedule/rules/rules.h"
#include "compiler/target/cuda.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// The reductions of shorter rows are left to a thread for each element.
constexpr int64_t kShortestRow = 4;
// The threads of a row of unknown length; the threads that a block of several rows has; the bytes of a row that a thread
// has, where there may be enough threads.
constexpr int64_t kUsualThreads = 256, kThreadsOfRows = 256, kBytesOfThread = 64;
// The same where a block's threads still keep a row in their registers: alone, and beside other inputs (scales).
constexpr int64_t kMostBytesOfThread = 200, kMostBytesBesideInputs = 128;
// The same of short rows, where few threads have one, and of columns.
constexpr int64_t kFewThreads = 8, kFewBytesOfThread = 32, kMostBytesOfColumns = 128;
// The threads of a block of columns, unless these are long, and how many columns it has; how many bytes of columns lie side
// by side at least, and in the longest ones; how many blocks are worth more than wide ones.
constexpr int64_t kUsualThreadsOfColumns = 512, kColumnsOfBlock = 32;
constexpr int64_t kUsualBytesOfColumns = 64, kBytesOfUnalignedColumns = 128, kLeastBytesOfColumns = 32;
constexpr int64_t kBlocksOfRows = 264, kSectorBytes = 32;
// The longest access of a thread, the least bytes of a vector, and the bytes of a stage in between that a block keeps.
constexpr int64_t kLongestAccess = 16, kShortestVector = 4, kMostKeptBytes = 24 << 10;
// Rounds of a thread that are unrolled: all of them up to the first number, else as many as the second one at a time.
constexpr int64_t kMostUnrolled = 16, kUnrolledOfMany = 4;

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

// The threads of each column, and the columns of a block, whose threads keep them in registers; nothing where they cannot.
struct CudaColumnThreads {
  int64_t threads, columns;
};
std::optional<CudaColumnThreads> ThreadsOfColumns(std::optional<int64_t> length, int64_t widest,
                                                  std::optional<int64_t> columns, bool is_aligned) {
  if (!length) return {};
  // Smaller blocks, of wider rows, are better where threads then still keep all.
  struct Try {
    int64_t bytes_of_thread, most_threads, least_bytes_of_columns;
  };
  const int64_t usual_bytes = is_aligned ? kUsualBytesOfColumns : kBytesOfUnalignedColumns;
  for (const Try& attempt : {Try{kBytesOfThread, kUsualThreadsOfColumns, usual_bytes},
                             Try{kMostBytesOfColumns, kUsualThreadsOfColumns, usual_bytes},
                             Try{kMostBytesOfColumns, kCudaMaxBlockThreads, usual_bytes},
                             Try{kMostBytesOfColumns, kCudaMaxBlockThreads, kLeastBytesOfColumns}}) {
    CudaColumnThreads chosen{1, kThreadsOfRows};
    while (chosen.threads * attempt.bytes_of_thread < *length * widest) chosen.threads *= 2;
    if (chosen.threads > 1) chosen.columns = std::max(kColumnsOfBlock, kThreadsOfRows / chosen.threads);
    const auto fits = [&] { return chosen.threads * chosen.columns <= attempt.most_threads; };
    const auto is_wide = [&] { return chosen.columns * widest > attempt.least_bytes_of_columns; };
    while (!fits() && is_wide()) chosen.columns /= 2;
    // A few columns leave no block's place free.
    while (columns && is_wide() && *columns < chosen.columns * kBlocksOfRows &&
           chosen.columns * chosen.threads > kCudaWarpThreads) {
      chosen.columns /= 2;
    }
    while (columns && chosen.columns > *columns) chosen.columns /= 2;
    chosen.threads = std::max(chosen.threads, kCudaWarpThreads / chosen.columns);
    if (fits()) return chosen;
  }
  return {};
}

// How the rows of a function lie: their axes come first everywhere, or are any axes, along whose places rows lie, or along
// whose rows.
enum class RowsForm : uint8_t { kLeading, kAnyAxes, kColumns };
struct CudaRowsFound {
  RowsForm form = RowsForm::kLeading;
  CudaColumnThreads columns{1, 1};
};

// Stages in between that read no result of a reduction go into their readers.
void InlineFormulas(Schedule& s) {
  for (bool found = true; found && s.status().ok();) {
    found = false;
    for (const BlockSite& site : s.state().Blocks()) {
      if (!IsInjective(s.state(), site) || WritesOutput(s.state(), site)) continue;
      const bool reads_stages = std::ranges::any_of(
          site.block().reads, [&](const BufferRegion& read) { return s.state().IsAllocated(read.buffer); });
      if (reads_stages) continue;
      s.ComputeInline(s.GetBlock(site.block().name));
      found = true;
      break;
    }
  }
}

class CudaRowsBuilder {
 public:
  // Of all blocks but the given ones.
  explicit CudaRowsBuilder(Schedule& schedule, CudaRowsFound found = {}, std::set<BlockName> others = {})
      : s_(schedule), form_(found.form), columns_(found.columns), others_(std::move(others)) {}

  std::vector<BlockName> Build() {
    ListStages();
    if (!s_.status().ok()) return handled_;
    ChooseThreads();
    DropStages();
    if (joins_) {
      JoinRows();
    } else {
      KeepInputs();
    }
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
    for (const BlockSite& site : sites) handled_.push_back(site.block().name);
    if (IsReduction(s_.state(), sites.back())) WriteBack(s_, s_.GetBlock(sites.back().block().name), handled_);
    if (form_ != RowsForm::kLeading) InlineFormulas(s_);
    if (!s_.status().ok()) return;
    sites = Stages();
    for (const BlockSite& site : sites) {
      if (IsReduction(s_.state(), site)) reductions_.push_back(site.block().name);
    }
    last_ = sites.back().block().name;
    shared_ = SharedDimensions(sites);
  }

  // Threads, neighbours and rows by the longest row and the widest element.
  void ChooseThreads() {
    length_ = 1;
    int64_t widest = 1, narrowest = kLongestAccess, widest_in_memory = 1;
    bool has_places_over_axes = false;
    std::set<const PrimVarNode*> parameters;
    const auto count = [&](const Buffer& buffer) {
      widest = std::max(widest, BytesOf(buffer->dtype));
      narrowest = std::min(narrowest, BytesOf(buffer->dtype));
      if (!s_.state().IsAllocated(buffer)) parameters.insert(buffer->data.get());
      if (!s_.state().IsAllocated(buffer)) widest_in_memory = std::max(widest_in_memory, BytesOf(buffer->dtype));
    };
    for (const BlockSite& site : Stages()) {
      const bool is_reduction = IsReduction(s_.state(), site);
      if (!is_reduction) count(StoreOf(site).buffer);
      for (const LoadUse& use : LoadsOf(site)) {
        if (!is_reduction || !use.load->buffer.same_as(StoreOf(site).buffer)) count(use.load->buffer);
      }
      if (!is_reduction) continue;
      has_places_over_axes |= ReduceIters(site).size() > 1;
      const std::optional<int64_t> length = LengthOf(site, ReduceIters(site));
      length_ = length && length_ ? std::optional(std::max(*length, *length_)) : std::nullopt;
    }
    const BlockSite last = s_.state().FindBlock(last_).value();
    if (form_ != RowsForm::kLeading) axes_ = FindRowAxes(s_.state(), Stages()).value_or(StageAxes());
    const std::vector<int> axes = RowIters(last);
    const std::optional<int64_t> rows = axes_.empty() ? LengthOf(last, axes) : LengthOfParts(last, axes_[last_].rows);
    if (form_ == RowsForm::kColumns) {
      threads_ = columns_.threads;
      rows_ = columns_.columns;
      keeps_ = joins_ = true;
      return;
    }
    threads_ = length_ ? 1 : kUsualThreads;
    const auto bytes_of_thread = [&] { return threads_ < kFewThreads ? kFewBytesOfThread : kBytesOfThread; };
    while (length_ && threads_ * bytes_of_thread() < *length_ * widest && threads_ < kCudaMaxBlockThreads) {
      threads_ *= 2;
    }
    rows_ = std::max<int64_t>(kThreadsOfRows / threads_, 1);
    while (rows_ > 1 && rows && *rows < rows_) rows_ /= 2;
    threads_ = std::max(threads_, kCudaWarpThreads / rows_);
    lanes_ = length_ ? std::clamp<int64_t>(kLongestAccess / widest_in_memory, 1, 8) : 1;
    while (lanes_ > 1 && (*length_ % lanes_ != 0 || *length_ < threads_ * lanes_)) lanes_ /= 2;
    if (lanes_ * narrowest < kShortestVector) lanes_ = 1;
    const int64_t round = threads_ * lanes_;
    const int64_t most_bytes =
        parameters.size() > 2 ? kMostBytesBesideInputs : kMostBytesOfThread;  // one is the result
    keeps_ = length_ && (*length_ + round - 1) / round * lanes_ * widest <= most_bytes;
    const std::optional<int64_t> innermost =
        axes.empty() ? 1 : ConstantExtent(*last.block().iter_vars[static_cast<size_t>(axes.back())]);
    // A block's rows, and a thread's places, are boxes: of several axes only where they divide the innermost one.
    const bool joins_rows = rows_ > 1 && axes.size() > 1 && (!innermost || *innermost % rows_ != 0);
    const bool joins_places = keeps_ && *length_ % round != 0 && has_places_over_axes;
    joins_ = form_ != RowsForm::kLeading || joins_rows || joins_places;
    if (!joins_ || form_ != RowsForm::kLeading) return;
    Schedule attempt = s_;
    InlineFormulas(attempt);
    std::optional<StageAxes> found;
    if (attempt.status().ok()) found = FindRowAxes(attempt.state(), attempt.state().Blocks());
    if (found && others_.empty()) {
      s_ = std::move(attempt);
      axes_ = *std::move(found);
    } else {
      joins_ = false;
      rows_ = 1;
      threads_ = std::max(threads_, kCudaWarpThreads);
      keeps_ &= !joins_places;
    }
  }

  // The iteration variables of the stage's shared dimensions.
  std::vector<int> RowIters(const BlockSite& site) const {
    if (is_joined_) return {0};
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
      const auto axes = axes_.find(name);
      const std::optional<int64_t> length =
          axes != axes_.end() ? LengthOfParts(site, axes->second.own) : LengthOf(site, OwnIters(site));
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

  // What several stages read and none writes.
  std::vector<Buffer> InputsOfSeveral() const {
    std::vector<Buffer> inputs;
    for (const BlockSite& site : Stages()) {
      for (const BufferRegion& read : site.block().reads) {
        const bool is_known =
            std::ranges::any_of(inputs, [&](const Buffer& known) { return known.same_as(read.buffer); });
        if (is_known || s_.state().OnlyWriter(read.buffer) || s_.state().IsAllocated(read.buffer)) continue;
        if (s_.state().Readers(read.buffer).size() > 1) inputs.push_back(read.buffer);
      }
    }
    return inputs;
  }
  // A copy of the input for all its readers.
  BlockRV Keep(const Buffer& input) {
    const std::vector<BlockSite> readers = s_.state().Readers(input);
    std::vector<BlockRV> others;
    for (size_t i = 1; i < readers.size(); ++i) others.push_back(s_.GetBlock(readers[i].block().name));
    const auto& reads = readers[0].block().reads;
    const auto position =
        std::ranges::find_if(reads, [&](const BufferRegion& read) { return read.buffer.same_as(input); }) -
        reads.begin();
    const BlockRV copy = s_.CacheRead(s_.GetBlock(readers[0].block().name), position, "local", others);
    if (!s_.status().ok()) return copy;
    handled_.push_back(s_.Block(copy).block().name);
    kept_.push_back(handled_.back());
    return copy;
  }
  void KeepInputs() {
    if (!keeps_) return;
    for (const Buffer& input : InputsOfSeveral()) {
      const std::vector<BlockSite> readers = s_.state().Readers(input);
      if (std::ranges::all_of(readers, [&](const BlockSite& reader) { return ReadsInPlace(reader, input); })) {
        Keep(input);
      }
      if (!s_.status().ok()) return;
    }
  }

  // Makes the schedule fail, as where a primitive is refused: it has no such block.
  void Refuse() { s_.GetBlock("rows over one axis"); }

  // Rows over several axes become rows over one, and so do the places within a row.
  void JoinRows() {
    if (!s_.status().ok()) return;
    const std::optional<StageAxes> axes = FindRowAxes(s_.state(), Stages());  // of the stages that are left
    if (!axes) return Refuse();
    // The dimensions of inputs, by a stage that reads one at its variables.
    std::vector<std::pair<Buffer, RowAxes>> inputs;
    for (const Buffer& input : InputsOfSeveral()) {
      for (const BlockSite& reader : s_.state().Readers(input)) {
        const RowAxes& of = axes->at(reader.block().name);
        std::optional<RowAxes> dimensions;
        for (const LoadUse& use : LoadsOf(reader)) {
          if (use.load->buffer.same_as(input)) dimensions = DimensionsOf(reader, of, use.load->indices);
        }
        if (!dimensions || LengthOfParts(reader, of.own) != length_) continue;
        inputs.emplace_back(input, *std::move(dimensions));
        break;
      }
    }
    for (const BlockSite& site : Stages()) {
      const RowAxes& of = axes->at(site.block().name);
      const BlockRV block = s_.GetBlock(site.block().name);
      if (!WritesOutput(s_.state(), site)) {
        RowAxes own = of;
        if (IsReduction(s_.state(), site)) own.own.clear();
        const std::optional<RowAxes> dimensions = DimensionsOf(site, own, StoreOf(site).indices);
        if (!dimensions) return Refuse();
        IndexMap map = MapToRows(*dimensions, StoreOf(site).buffer->shape);
        if (own.own.empty()) map.to.pop_back();
        s_.TransformLayout(block, 0, map);
      }
      FuseRows(s_, block, of);
      if (!s_.status().ok()) return;
    }
    is_joined_ = true;
    shared_ = 1;
    if (!keeps_) return;
    for (const auto& [input, dimensions] : inputs) {
      const IndexMap map = MapToRows(dimensions, input->shape);
      const std::vector<BlockSite> readers = s_.state().Readers(input);
      if (!std::ranges::all_of(readers, [&](const BlockSite& reader) { return ReadsAt(reader, input, map); })) continue;
      const BlockRV copy = Keep(input);
      s_.TransformLayout(copy, 0, map);
      FuseRows(s_, copy, dimensions);
      if (!s_.status().ok()) return;
    }
  }
  // Whether the joined stage reads the input at its own row and place.
  bool ReadsAt(const BlockSite& site, const Buffer& input, const IndexMap& map) const {
    arith::Analyzer analyzer;
    for (const IterVar& iter : site.block().iter_vars) analyzer.Bind(iter->var, iter->domain);
    return std::ranges::all_of(LoadsOf(site), [&](const LoadUse& use) {
      if (!use.load->buffer.same_as(input)) return true;
      const std::vector<PrimExpr> at = MapIndices(map, use.load->indices, analyzer);
      return site.block().iter_vars.size() == 2 && at[0].get() == site.block().iter_vars[0]->var.get() &&
             at[1].get() == site.block().iter_vars[1]->var.get();
    });
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
    if (rounds > kMostUnrolled && !keeps_) {
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
      std::vector<LoopRV> order = Threads(rows, thread);
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
      s_.Annotate(reducing.back(), kCudaCrossThreads,
                  form_ == RowsForm::kColumns ? kCudaNeighbouringElements : kCudaNeighbouringValues);
    } else if (rows_ > 1 || LengthOf(site, OwnIters(site)) != 1) {
      if (own.empty()) own.push_back(s_.AddUnitLoop(block));
      const LoopRV row = own.size() > 1 ? s_.Fuse(own) : own[0];
      const Row parts = SplitRow(row);
      std::vector<LoopRV> order = Threads(rows, parts.thread);
      order.insert(order.end(), parts.rounds.begin(), parts.rounds.end());
      order.insert(order.end(), parts.lanes.begin(), parts.lanes.end());
      s_.Reorder(order);
      BindThreads(rows, parts.thread);
      for (const LoopRV round : parts.rounds) UnrollShort(round);
      for (const LoopRV lanes : parts.lanes) s_.Vectorize(lanes);
    }
  }
  // The loops over a block's rows and a row's threads: neighbouring threads are those of a row, or neighbouring columns.
  std::vector<LoopRV> Threads(std::vector<LoopRV> rows, LoopRV thread) const {
    rows.insert(form_ == RowsForm::kColumns ? rows.begin() : rows.end(), thread);
    return rows;
  }
  void BindThreads(const std::vector<LoopRV>& rows, LoopRV thread) {
    const std::vector<LoopRV> threads = Threads(rows, thread);
    s_.Bind(threads.size() > 1 ? s_.Fuse(threads) : thread, "threadIdx.x");
  }
  void UnrollShort(LoopRV loop) {
    if (!s_.status().ok()) return;
    const auto extent = AsConstInt(s_.Loop(loop).loop->extent);
    if (extent && (keeps_ || *extent <= kMostUnrolled)) s_.Unroll(loop);
  }

  Schedule& s_;
  const RowsForm form_;
  const CudaColumnThreads columns_;
  const std::set<BlockName> others_;
  StageAxes axes_;  // of rows over any axes, and of those that are to be joined
  std::vector<BlockName> handled_, reductions_;
  BlockName last_;
  std::set<BlockName> partials_;
  std::vector<BlockName> kept_;  // of stages
  LoopRV block_;
  int shared_ = 0;
  std::optional<int64_t> length_;  // of the longest row
  int64_t threads_ = 1, lanes_ = 1, rows_ = 1;
  bool keeps_ = false;                      // each thread keeps its elements of a row
  bool joins_ = false, is_joined_ = false;  // the shared dimensions are to be one, or are
};

Match<> IsOfRows(const ScheduleState& state) {
  for (const BlockSite& stage : state.Blocks()) {
    if (IsBoundToThreads(stage)) return Declined{"it is bound to threads"};
    if (!state.IsRegular(stage.block().name)) return Declined{"its bindings are not simple"};
    if (!IsReduction(state, stage)) continue;
    if (!MatchReduction(stage.block())) return Declined{"it is no reduction by +, *, min or max"};
    if (LengthOf(stage, ReduceIters(stage)).value_or(kShortestRow) < kShortestRow)
      return Declined{"its rows have a few elements"};
    if (!WindowAxes(stage).empty()) return Declined{"its rows are windows that overlap"};
  }
  return Taken{};
}

// Rows over any axes: several stages, of which all but the last one's results stay within the launch.
Match<CudaRowsFound> FindForm(const ScheduleState& state, const BlockSite& site) {
  const Match<> reduction = AsReduction(state, site);
  if (!reduction) return reduction.declined();
  const std::vector<BlockSite> all = state.Blocks();
  for (size_t i = 0; i < all.size(); ++i) {
    if (WritesOutput(state, all[i]) != (i + 1 == all.size())) {
      return Declined{"another stage than the last one writes a result"};
    }
    if (!IsInjective(state, all[i]) && !IsReduction(state, all[i])) {
      return Declined{"another stage is neither element-wise nor a reduction"};
    }
  }
  Result<Schedule> attempt = Schedule::Create(state.function());
  if (!attempt.ok()) return Declined{"its function cannot be scheduled"};
  InlineFormulas(*attempt);
  if (!attempt->status().ok()) return Declined{"a stage in between stays"};
  const ScheduleState& inlined = attempt->state();
  const std::vector<BlockSite> sites = inlined.Blocks();
  const std::optional<StageAxes> axes = FindRowAxes(inlined, sites);
  if (!axes) return Declined{"its stages have no rows in common"};
  int64_t passes = 0, widest = 1;
  std::optional<int64_t> length, rows;
  std::optional<RowsForm> form;
  bool is_aligned = true;  // rows of columns begin where memory's sectors do
  for (const BlockSite& stage : sites) {
    const RowAxes& of = axes->at(stage.block().name);
    if (of.rows.empty()) return Declined{"it has one row"};
    if (of.own.empty()) continue;
    if (!IsReduction(inlined, stage)) widest = std::max(widest, BytesOf(StoreOf(stage).buffer->dtype));
    for (const LoadUse& use : LoadsOf(stage)) {
      const bool is_own = IsReduction(inlined, stage) && use.load->buffer.same_as(StoreOf(stage).buffer);
      if (!is_own) widest = std::max(widest, BytesOf(use.load->buffer->dtype));
    }
    ++passes;
    // Neighbours in memory are places of a row, or rows.
    Contiguity contiguity(stage);
    const auto step = [&](const std::vector<AxisPart>& parts, bool is_of_rows) {
      const auto longer = std::find_if(parts.rbegin(), parts.rend(), [&](const AxisPart& part) {
        return ConstantExtent(*stage.block().iter_vars[static_cast<size_t>(part.axis)]) != 1;
      });
      if (longer == parts.rend() || (is_of_rows && longer->part != 0)) return false;
      return std::ranges::all_of(contiguity.accesses(), [&](const LinearAccess& access) {
        const std::optional<int64_t> own = contiguity.Step(access, longer->axis);
        return own && (*own == 0 || *own == 1);
      });
    };
    const bool is_reduction = IsReduction(inlined, stage);
    std::optional<RowsForm> own;
    if (step(of.own, false)) {
      own = RowsForm::kAnyAxes;
    } else if (step(of.rows, true)) {
      own = RowsForm::kColumns;
    }
    if (!own || (form && *form != *own)) return Declined{"neighbours in memory are neither of a row nor rows"};
    form = own;
    for (const LinearAccess& access : contiguity.accesses()) {
      if (access.load == nullptr) continue;
      for (const AxisPart& part : of.own) {
        const int64_t step = contiguity.Step(access, part.axis).value_or(1);
        is_aligned &= step == 0 || step * BytesOf(access.load->buffer->dtype) % kSectorBytes == 0;
      }
    }
    if (!is_reduction) continue;
    length = LengthOfParts(stage, of.own);
    rows = LengthOfParts(stage, of.rows);
  }
  if (passes < 2) return Declined{"it has one reduction"};
  if (form != RowsForm::kColumns) return CudaRowsFound{*form};
  const std::optional<CudaColumnThreads> threads = ThreadsOfColumns(length, widest, rows, is_aligned);
  if (!threads) return Declined{"its columns are too long for registers"};
  return CudaRowsFound{*form, *threads};
}

// Whether rows lie one after the other: their axes come first in all stages.
Match<> IsLeading(const ScheduleState& state, const BlockSite& site, const Target& target) {
  const Match<> rows = MatchesRows(state, site, target);
  if (!rows) return rows;
  for (const BlockSite& stage : state.Blocks()) {
    if (IsReduction(state, stage) && !ReadsAlongRows(stage)) return Declined{"its rows do not lie in one piece"};
  }
  return Taken{};
}

}  // namespace

Match<> MatchesCudaRows(const ScheduleState& state, const BlockSite& site, const Target& target) {
  const Match<> known = IsOfRows(state);
  if (!known) return known;
  const Match<> leading = IsLeading(state, site, target);
  return leading ? leading : FindForm(state, site).As(Taken{});
}

std::vector<BlockName> ApplyCudaRows(Schedule& s, const BlockSite& site, const Target& target) {
  const std::vector<BlockSite> sites = s.state().Blocks();
  const bool is_leading = static_cast<bool>(IsLeading(s.state(), site, target));
  if (!is_leading) return CudaRowsBuilder(s, *FindForm(s.state(), site)).Build();
  const int64_t segments = SegmentsOf(s.state(), sites.front());
  if (segments == 1) return CudaRowsBuilder(s).Build();
  const BlockRV segment =
      s.RFactor(s.Split(FuseReducing(s, s.GetBlock(sites.front().block().name)), {segments, kRest})[0]);
  if (!s.status().ok()) return {};
  const BlockName name = s.Block(segment).block().name;
  std::vector<BlockName> handled = CudaRowsBuilder(s, {}, {name}).Build();
  std::set<BlockName> others;
  for (const BlockSite& other : s.state().Blocks()) others.insert(other.block().name);
  others.erase(name);
  if (!s.status().ok()) return handled;
  for (BlockName& made : CudaRowsBuilder(s, {}, others).Build()) handled.push_back(std::move(made));
  return handled;
}

}  // namespace ingot::schedule
