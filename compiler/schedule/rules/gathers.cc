// Element-wise stages that read a row of another stage at places from a table (resizing by weighted taps):
//
//   row[..., y] = f(x[..., y])
//   out[..., x] = sum over taps of row[..., place[tap, x]] * weight[tap, x]
//
// Were the row's stage inlined, each tap would compute its elements anew and gather all of its operands. So it is
// computed at the loop over rows, in vectors along the row, and the taps gather from the row alone.
#include "compiler/schedule/rules/contiguity.h"
#include "compiler/schedule/rules/rules.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// Whether the load takes its place along the last axis from a table, and all others from the reader's own.
bool ReadsRowByTable(const BlockSite& reader, const BufferLoadNode& load) {
  const std::vector<PrimExpr>& own = StoreOf(reader).indices;
  if (own.empty() || load.indices.size() != own.size()) return false;
  for (size_t d = 0; d + 1 < own.size(); ++d) {
    if (!load.indices[d].same_as(own[d])) return false;
  }
  return ReadsMemory(load.indices.back());
}

// The stage whose rows the block reads by tables.
Match<BlockSite> RowSourceOf(const ScheduleState& state, const BlockSite& reader) {
  const Match<> injective = AsInjective(state, reader);
  if (!injective) return injective.declined();
  if (StoreOf(reader).indices.size() < 2) return Declined{"it has no rows"};
  for (const LoadUse& use : LoadsOf(reader)) {
    if (!ReadsRowByTable(reader, *use.load)) continue;
    std::optional<BlockSite> source = state.OnlyWriter(use.load->buffer);
    if (source && IsRowSource(state, *source)) return *std::move(source);
  }
  return Declined{"it reads no row of another stage at places from a table"};
}

}  // namespace

bool IsRowSource(const ScheduleState& state, const BlockSite& site) {
  if (!IsInjective(state, site) || WritesOutput(state, site) || IsPlainMove(site)) return false;
  const Buffer& buffer = StoreOf(site).buffer;
  const std::vector<BlockSite> readers = state.Readers(buffer);
  if (readers.size() != 1 || !IsInjective(state, readers[0])) return false;
  int64_t num_loads = 0;
  for (const LoadUse& use : LoadsOf(readers[0])) {
    if (use.load->buffer.get() != buffer.get()) continue;
    if (!ReadsRowByTable(readers[0], *use.load)) return false;
    ++num_loads;
  }
  if (num_loads <= 1) return false;
  // A row of which the reader takes few elements is cheaper computed where it is read.
  constexpr int64_t kLikelyLength = 224;
  const int64_t length = AsConstInt(buffer->shape.back()).value_or(kLikelyLength);
  const int64_t num_places = AsConstInt(StoreOf(readers[0]).buffer->shape.back()).value_or(kLikelyLength);
  return num_loads * num_places >= length;
}

Match<> MatchesGathers(const ScheduleState& state, const BlockSite& site, const Target&) {
  return RowSourceOf(state, site).As(Taken{});
}

std::vector<BlockName> ApplyGathers(Schedule& s, const BlockSite& site, const Target& target) {
  const BlockSite source = *RowSourceOf(s.state(), site);
  const HandleList<InnerLoop> loops = InnerLoops(s, s.GetBlock(site.block().name), LoopRV{});
  LoopRVs outer;
  for (size_t i = 0; i + 1 < loops.size(); ++i) outer.push_back(loops[i].loop);
  const LoopRV row = outer.size() > 1 ? s.Fuse(outer) : outer.front();
  s.ComputeAt(s.GetBlock(source.block().name), row);
  int64_t row_cost = 0;
  for (const BlockSite* stage : {&source, &site}) {
    const HandleList<InnerLoop> inner = InnerLoops(s, s.GetBlock(stage->block().name), row);
    if (inner.empty()) continue;  // a row of one element
    constexpr int64_t kUsualExtent = 64;
    const LoopRV along = inner.back().loop;
    row_cost += CostOfInstance(*stage) * AsConstInt(s.Loop(along).loop->extent).value_or(kUsualExtent);
    VectorizeRun(s, along, {target.vector_lanes(StoreOf(*stage).buffer->dtype.bits), 1});
  }
  ParallelizeByLikelyCost(s, row, row_cost);
  return {site.block().name, source.block().name};
}

}  // namespace ingot::schedule
