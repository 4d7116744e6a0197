// Element-wise stages: each element is computed from elements at computable places. Stages that cost nothing, or that
// only element-wise stages read, are inlined, so that a fused group is one pass over memory, but for tables of values
// that many elements need. The other stages run in vectors along the last axes through which every access moves by
// constant steps, fused into one loop: all axes where tensors have one shape, the pixels of a channel where an operand
// is given per channel. Where elements come from different places (padding, concatenation), the loops are cut there
// first, so that each part is a plain copy of runs.
#include <algorithm>

#include "compiler/schedule/rules/contiguity.h"
#include "compiler/schedule/rules/rules.h"
#include "compiler/te/annotations.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// Counts the nodes of a block's expression, and the loads of one buffer in it.
struct ExpressionSize : PrimVisitor {
  const BufferNode* buffer = nullptr;
  int64_t nodes = 0, loads = 0;
  void VisitPrim(const PrimExpr& expr) override {
    ++nodes;
    PrimVisitor::VisitPrim(expr);
  }
  using PrimVisitor::Visit;
  void Visit(const BufferLoadNode& load) override {
    loads += load.buffer.get() == buffer ? 1 : 0;
    PrimVisitor::Visit(load);
  }
  void Visit(const PrimCallNode& call) override {
    // What branches (to reduce a large argument, to divide in steps) is computed anew in each copy: no later pass joins
    // them.
    constexpr int64_t kNodesOfBranches = 512;
    const bool branches = call.op == Intrinsic::kSin || call.op == Intrinsic::kCos || call.op == Intrinsic::kTan ||
                          call.op == Intrinsic::kFmod;
    nodes += branches ? kNodesOfBranches : 0;
    PrimVisitor::Visit(call);
  }
};

// A stage that is read several times, by one reader or by several, is copied to each place: without a limit the
// expression would double at every stage of a chain. A stage that is read once is only moved.
bool FitsInto(const BlockSite& producer, const std::vector<BlockSite>& readers) {
  constexpr int64_t kMaxNodes = 4096;       // of a single reader that loads it several times
  constexpr int64_t kMaxSharedNodes = 512;  // of each of several readers, which may be joined in one expression later
  const BufferStoreNode& store = StoreOf(producer);
  ExpressionSize own;
  own.VisitPrim(store.value);
  return std::all_of(readers.begin(), readers.end(), [&](const BlockSite& reader) {
    ExpressionSize of_reader;
    of_reader.buffer = store.buffer.get();
    const auto* reading = As<BufferStoreNode>(reader.block().body);
    if (reading == nullptr) return true;
    of_reader.VisitPrim(reading->value);
    const int64_t nodes = of_reader.nodes + own.nodes * of_reader.loads;
    if (readers.size() > 1) return IsPlainMove(producer) || nodes <= kMaxSharedNodes;
    return of_reader.loads <= 1 || nodes <= kMaxNodes;
  });
}

// Whether the stage reads at quotients or rests of its places.
bool HasQuotients(const BlockSite& site) {
  struct Finder : PrimVisitor {
    bool found = false;
    using PrimVisitor::Visit;
    void Visit(const BinaryNode& node) override {
      found |= node.op == BinaryOp::kFloorDiv || node.op == BinaryOp::kFloorMod;
      PrimVisitor::Visit(node);
    }
  } finder;
  for (const LoadUse& use : LoadsOf(site)) {
    for (const PrimExpr& index : use.load->indices) finder.VisitPrim(index);
  }
  return finder.found;
}

// Whether the stage computes in float64.
bool HasDoubles(const BlockSite& site) {
  struct Finder : PrimVisitor {
    bool found = false;
    void VisitPrim(const PrimExpr& expr) override {
      found |= expr->dtype.is_floating() && expr->dtype.bits > 32;
      PrimVisitor::VisitPrim(expr);
    }
  } finder;
  finder.VisitPrim(StoreOf(site).value);
  return finder.found;
}

// Whether the reader needs each element of the stage at many of its places: along its last axis it reads one after the
// other, and does so again for every value of another axis.
bool ReadsRepeatedly(const BlockSite& reader, const Buffer& buffer) {
  const std::vector<IterVar>& iters = reader.block().iter_vars;
  const auto is_long = [&](size_t iter) { return ConstantExtent(*iters[iter]) != 1; };
  size_t last = iters.size();
  while (last > 0 && !is_long(last - 1)) --last;
  const std::vector<LoadUse> loads = LoadsOf(reader);
  return last > 0 && std::ranges::all_of(loads, [&](const LoadUse& use) {
           if (use.load->buffer.get() != buffer.get()) return true;
           bool repeats = false;
           for (size_t iter = 0; iter < last; ++iter) repeats |= is_long(iter) && !use.uses[iter];
           return repeats && use.uses[last - 1];
         });
}

// Whether the stage is a table: values that take arithmetic to compute, each of which every reader needs at many of its
// own places. Values that the places alone tell are cheaper to store than those of other tensors, which a fused group
// would otherwise read once.
// On a GPU, whose threads wait for memory meanwhile, more arithmetic costs less than a launch for a table, but for that of
// float64, which most GPUs are slow at.
bool IsTable(const BlockSite& site, const std::vector<BlockSite>& readers, bool is_gpu) {
  constexpr int64_t kLeastCost = 6, kLeastCostOnGpu = 24, kLeastCostOfData = 20;
  const bool has_data = !LoadsOf(site).empty();
  const bool waits = is_gpu && !HasDoubles(site);
  if (CostOfInstance(site) < (has_data ? kLeastCostOfData : waits ? kLeastCostOnGpu : kLeastCost)) return false;
  const size_t rank = site.block().iter_vars.size();
  return std::ranges::all_of(readers, [&](const BlockSite& reader) {
    return has_data ? ReadsRepeatedly(reader, StoreOf(site).buffer) : reader.block().iter_vars.size() > rank;
  });
}

// Whether the stage's only reader is a reduction of its elements alone, each of which it reads once.
bool IsReducedOnce(const ScheduleState& state, const BlockSite& site, const std::vector<BlockSite>& readers) {
  if (readers.size() != 1 || !IsReduction(state, readers[0])) return false;
  const BlockSite& reader = readers[0];
  const ir::BufferLoadNode* read = nullptr;
  for (const LoadUse& use : LoadsOf(reader)) {
    if (use.load->buffer.same_as(StoreOf(reader).buffer)) continue;
    if (read != nullptr || !use.load->buffer.same_as(StoreOf(site).buffer)) return false;
    read = use.load;
  }
  return read != nullptr && std::ranges::all_of(reader.block().iter_vars, [&](const ir::IterVar& iter) {
           return ConstantExtent(*iter) == 1 || std::ranges::count_if(read->indices, [&](const ir::PrimExpr& index) {
                                                  return index.get() == iter->var.get();
                                                }) == 1;
         });
}

}  // namespace

Match<> MatchesInline(const ScheduleState& state, const BlockSite& site, const Target& target) {
  const Match<> injective = AsInjective(state, site);
  if (!injective) return injective;
  if (WritesOutput(state, site)) return Declined{"it writes a result of the kernel"};
  const std::vector<BlockSite> readers = state.Readers(StoreOf(site).buffer);
  if (readers.empty()) return Declined{"nothing reads it"};
  const bool is_gpu = target.kind == Target::Kind::kCuda;
  if (site.block().annotations.Find(te::kIsKept) != nullptr) {
    if (is_gpu) return Taken{};  // its tiles hold elements as they are
    return Declined{"it is computed once for a reduction that reads it many times"};
  }
  if (!FitsInto(site, readers)) return Declined{"its readers' formulas would get too long"};
  if (IsTable(site, readers, is_gpu)) return Declined{"it is a table: values that its readers need many times"};
  // Threads of a GPU compute an element where it is read: what neighbours share is in their caches.
  if (!is_gpu && IsRowSource(state, site)) return Declined{"its reader takes rows of it at places from a table"};
  const bool only_injective =
      std::all_of(readers.begin(), readers.end(), [&](const BlockSite& reader) { return IsInjective(state, reader); });
  // A reader whose formula has cases reads each element several times.
  const bool repeats = std::any_of(readers.begin(), readers.end(), [&](const BlockSite& reader) {
    return ReadsUnderCondition(site) && HasPhases(state, reader);
  });
  // A reduction reads each element many times, at places that move by steps.
  const bool is_cheap = IsPlainMove(site) && !ReadsUnderCondition(site) && !HasQuotients(site);
  if (repeats) return Declined{"a reader has cases and would read under its conditions in each"};
  // Threads compute what they reduce: memory costs more than arithmetic.
  if (target.kind == Target::Kind::kCuda && IsReducedOnce(state, site, readers)) return Taken{};
  if (!only_injective && !is_cheap) return Declined{"a reduction reads it, and would compute it many times"};
  return Taken{};
}

std::vector<BlockName> ApplyInline(Schedule& s, const BlockSite& site, const Target&) {
  s.ComputeInline(s.GetBlock(site.block().name));
  return {site.block().name};
}

Match<> MatchesElementwise(const ScheduleState& state, const BlockSite& site, const Target&) {
  const Match<> injective = AsInjective(state, site);
  if (injective && site.loops.empty()) return Declined{"it has no loops"};
  return injective;
}

namespace {

// All loops around the block, with the iteration variables that they bind.
HandleList<InnerLoop> LoopsAround(Schedule& s, BlockRV block) { return InnerLoops(s, block, LoopRV{}); }

int64_t KnownExtent(const Schedule& s, LoopRV loop) {
  const auto extent = AsConstInt(s.Loop(loop).loop->extent);
  return extent ? *extent : 1;
}

LoopRV FuseAll(Schedule& s, const HandleList<InnerLoop>& loops, size_t begin, size_t end) {
  std::vector<LoopRV> fused;
  for (size_t i = begin; i < end; ++i) fused.push_back(loops[i].loop);
  return fused.empty() ? LoopRV{} : fused.size() > 1 ? s.Fuse(fused) : fused[0];
}

bool HasConstantExtents(const BlockSite& site, const std::vector<int>& run) {
  return std::ranges::all_of(run, [&](int iter) { return ConstantExtent(*site.block().iter_vars[iter]).has_value(); });
}

// Whether a run has so few elements that finding its place by divisions would take longer than computing them.
bool IsShortRun(const BlockSite& site, const std::vector<int>& run) {
  constexpr int64_t kShort = 256;
  int64_t elements = 1;
  for (int iter : run) elements *= std::min(ConstantExtent(*site.block().iter_vars[iter]).value_or(kShort), kShort);
  return elements < kShort;
}

// Schedules one nest, from its loop at position `first` inwards: the last loops run in vectors. The loops around them
// are fused, but for those of the next run where their extents are symbols: the places in a fused loop are quotients,
// whose divisors are then not constant. `registers`: of an iteration; 0: as many as the formula suggests. `parallel`: no
// loop outside is parallel, so the nest's own may be.
void ScheduleNest(Schedule& s, BlockRV block, size_t first, int64_t registers, bool parallel, const Target& target) {
  const HandleList<InnerLoop> loops = LoopsAround(s, block);
  if (loops.size() <= first) return;
  const BlockSite site = s.Block(block);
  const int64_t element_cost = CostOfInstance(site);
  std::vector<int> iters;
  for (size_t i = first; i < loops.size(); ++i) {
    if (loops[i].iter < 0) return;  // a loop that is no axis of the block
    iters.push_back(loops[i].iter);
  }
  const std::vector<std::vector<int>> runs = Contiguity(site).Runs(iters);
  const size_t inner_begin = loops.size() - runs.back().size();
  VectorShape shape = ChooseVectors(site, target);
  if (ReadsUnderCondition(site)) shape.registers = 1;
  if (registers > 0) shape.registers = registers;
  const bool is_split =
      runs.size() > 1 && IsShortRun(site, runs.back()) && !HasConstantExtents(site, *(runs.end() - 2));
  const size_t rows_end = inner_begin - (is_split ? (runs.end() - 2)->size() : 0);
  LoopRV rows = FuseAll(s, loops, first, rows_end);
  const LoopRV middle = FuseAll(s, loops, rows_end, inner_begin);
  const LoopRV inner = FuseAll(s, loops, inner_begin, loops.size());
  int64_t row_cost = element_cost * KnownExtent(s, inner);
  if (is_split && parallel) {
    const int64_t chunk = kMinTaskCost / std::clamp<int64_t>(row_cost, 1, kMinTaskCost);
    const LoopRV chunks = s.Split(middle, {kRest, chunk})[0];
    rows = s.IsVoid(rows) ? chunks : s.Fuse({rows, chunks});
    row_cost *= chunk;
  }
  const bool has_rows = !s.IsVoid(rows) && !IsConstInt(s.Loop(rows).loop->extent, 1);
  const LoopRV tiles = VectorizeRun(s, inner, shape);
  if (!parallel) return;
  if (has_rows) {
    ParallelizeByCost(s, rows, row_cost);
  } else {
    ParallelizeByCost(s, tiles, element_cost * shape.lanes * shape.registers);
  }
}

}  // namespace

std::vector<BlockName> ApplyElementwise(Schedule& s, const BlockSite& site, const Target& target) {
  std::vector<BlockName> handled{site.block().name};
  struct Part {
    BlockRV block;
    size_t first = 0;  // loops from here on belong to this part alone
  };
  std::vector<Part> parts{{s.GetBlock(site.block().name)}};
  const int64_t registers = s.Choose("elementwise.registers", 0, {0, 1, 2, 4, 8});
  const HandleList<InnerLoop> loops = LoopsAround(s, parts[0].block);
  // Cuts the loops where conditions change, from the outside in. Loops outside of the first cut stay common to all
  // parts.
  size_t common = loops.size();
  if (ReadsUnderCondition(site)) {
    const Contiguity contiguity(site);
    for (size_t i = 0; i < loops.size(); ++i) {
      if (loops[i].iter < 0 || !contiguity.IsUsedAlone(loops[i].iter)) continue;
      std::vector<Part> next;
      for (const Part& part : parts) {
        const LoopRVs of_part = s.GetLoops(part.block);
        Schedule attempt = s;
        const LoopRVs cut = attempt.PartitionByConditions(of_part[i]);
        if (!attempt.status().ok()) {  // for example at an unknown bound: it stays a condition
          next.push_back(part);
          continue;
        }
        s = std::move(attempt);
        const auto num_parts = std::count_if(cut.begin(), cut.end(), [&](LoopRV loop) { return !s.IsVoid(loop); });
        if (num_parts > 1) common = std::min(common, i);
        for (LoopRV loop : cut) {
          if (!s.IsVoid(loop)) next.push_back({s.GetChildBlocks(loop)[0], num_parts > 1 ? i : part.first});
        }
      }
      parts = std::move(next);
    }
  }
  if (common == loops.size()) {
    ScheduleNest(s, parts[0].block, 0, registers, true, target);
    return handled;
  }
  int64_t outer_extent = 1, cost = CostOfInstance(site) * KnownInstances(site);
  bool is_constant = true;
  std::vector<LoopRV> outer;
  for (size_t i = 0; i < common; ++i) {
    outer.push_back(loops[i].loop);
    outer_extent *= KnownExtent(s, loops[i].loop);
    is_constant &= ConstantExtent(*site.block().iter_vars[loops[i].iter]).has_value();
  }
  const bool outer_is_one = is_constant && outer_extent == 1;
  for (const Part& part : parts) {
    handled.push_back(s.Block(part.block).block().name);
    ScheduleNest(s, part.block, part.first, registers, outer_is_one && part.first == common, target);
  }
  if (outer_is_one) return handled;
  ParallelizeByCost(s, outer.size() > 1 ? s.Fuse(outer) : outer[0], cost / std::max<int64_t>(outer_extent, 1));
  return handled;
}

}  // namespace ingot::schedule
