// cache_read, cache_write, read_at, write_at, set_scope and storage_align: copies of buffers in another scope, of parts of
// them under a loop, a buffer's scope, and the distance of its rows.
#include <algorithm>

#include "compiler/arith/block_util.h"
#include "compiler/schedule/primitives.h"
#include "compiler/schedule/region.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// to[v] = from[v] over the whole shape.
Stmt CopyNest(const std::string& block_name, const Buffer& from, const Buffer& to) {
  std::vector<LoopVar> loops;
  std::vector<IterVar> iters;
  std::vector<PrimExpr> values, indices;
  std::vector<Range> points;
  for (size_t d = 0; d < from->shape.size(); ++d) {
    loops.push_back(MakePrimVar("ax" + std::to_string(d)));
    const PrimVar var = MakePrimVar("v" + std::to_string(d));
    iters.push_back(Make<IterVarNode>(Range{Int64(0), from->shape[d]}, var, IterType::kSpatial));
    values.push_back(loops.back());
    indices.push_back(var);
    points.push_back({var, Int64(1)});
  }
  Stmt store = Make<BufferStoreNode>(to, Make<BufferLoadNode>(from, indices), indices);
  Block block = Make<BlockNode>(block_name, iters, std::vector<BufferRegion>{{from, points}},
                                std::vector<BufferRegion>{{to, points}}, std::move(store));
  return Nest(loops, from->shape, Make<BlockRealizeNode>(std::move(values), BoolImm(true), std::move(block)));
}

Buffer CopyOf(const ScheduleState& state, const Buffer& buffer, const std::string& scope) {
  return MakeBuffer(state.FreshBufferName(buffer->name + "_" + scope), buffer->dtype, buffer->shape, scope);
}

// The block with one buffer replaced by another in its accesses and regions.
BlockRealize WithBuffer(const BlockSite& site, const Buffer& old, const Buffer& fresh) {
  BlockNode block = site.block();
  const BufferMap map{{old, fresh}};
  block.body = Substitute(block.body, {}, map);
  if (block.init) block.init = Substitute(block.init, {}, map);
  for (std::vector<BufferRegion>* regions : {&block.reads, &block.writes}) {
    for (BufferRegion& region : *regions) {
      if (region.buffer.same_as(old)) region.buffer = fresh;
    }
  }
  BlockRealizeNode realize = *site.realize;
  realize.block = Make<BlockNode>(std::move(block));
  return Make<BlockRealizeNode>(std::move(realize));
}

// Whether a store to the buffer depends on a condition, so that elements may keep what they had.
bool StoresUnderCondition(const BlockNode& block, const Buffer& buffer) {
  struct Finder : StmtVisitor {
    using StmtVisitor::Visit;
    void Visit(const IfStmtNode& node) override {
      ++depth;
      StmtVisitor::Visit(node);
      --depth;
    }
    void Visit(const BufferStoreNode& store) override {
      found = found || (depth > 0 && store.buffer.same_as(buffer));
      StmtVisitor::Visit(store);
    }
    explicit Finder(const Buffer& buffer) : buffer(buffer) {}
    const Buffer& buffer;
    int depth = 0;
    bool found = false;
  } finder(buffer);
  finder.VisitStmt(block.body);
  return finder.found;
}

}  // namespace

Stmt OutermostStatement(const BlockSite& site) {
  return site.loops.empty() ? Stmt(site.realize) : Stmt(site.loops.front());
}

Status CheckScope(const char* primitive, const BlockSite& site, const std::string& scope) {
  if (scope == "global" || scope == "shared" || scope == "local") return Status();
  return Refuse(primitive, Describe(site), "unknown scope \"" + scope + "\"; expected global, shared or local");
}

Result<BlockName> CacheRead(ScheduleState& state, const BlockName& name, int64_t read_index, const std::string& scope,
                            const std::vector<BlockName>& consumers) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(name));
  INGOT_RETURN_IF_ERROR(CheckScope("cache_read", site, scope));
  if (read_index < 0 || read_index >= static_cast<int64_t>(site.block().reads.size())) {
    return Refuse("cache_read", Describe(site), "it has no input " + std::to_string(read_index));
  }
  const Buffer buffer = site.block().reads[read_index].buffer;
  std::vector<BlockSite> readers{site};
  for (const BlockName& consumer : consumers) {
    INGOT_ASSIGN_OR_RETURN(BlockSite reader, state.FindBlock(consumer));
    const bool known = std::any_of(readers.begin(), readers.end(),
                                   [&](const BlockSite& other) { return other.realize.same_as(reader.realize); });
    if (!known) readers.push_back(std::move(reader));
  }
  for (const BlockSite& reader : readers) {
    const BlockNode& block = reader.block();
    if (!ReadsFrom(block, buffer)) return Refuse("cache_read", Describe(reader), "it does not read " + buffer->name);
    if (WritesTo(block, buffer)) return Refuse("cache_read", Describe(reader), "it also writes " + buffer->name);
    if (!state.IsRegular(block.name)) return Refuse("cache_read", Describe(reader), "its bindings are not simple");
  }
  // The copy is made before the first reader's statement, so nothing from there to the last reader may write the
  // buffer.
  const std::vector<BlockSite> blocks = state.Blocks();
  std::optional<size_t> first;
  size_t last = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Stmt outermost = OutermostStatement(blocks[i]);
    const bool holds_reader = std::any_of(readers.begin(), readers.end(), [&](const BlockSite& reader) {
      return OutermostStatement(reader).same_as(outermost);
    });
    if (!holds_reader) continue;
    if (!first) first = i;
    last = i;
  }
  for (size_t i = *first; i <= last; ++i) {
    if (!WritesTo(blocks[i].block(), buffer)) continue;
    return Refuse("cache_read", Describe(site),
                  buffer->name + " is written " +
                      (readers.size() == 1 ? "under the same loops" : "between the first reader and the last"));
  }
  const Buffer copy = CopyOf(state, buffer, scope);
  const std::string copy_name = state.FreshBlockName(copy->name);
  const Stmt place = OutermostStatement(blocks[*first]);
  state.Replace(place, MakeSeq({CopyNest(copy_name, buffer, copy), place}));
  for (const BlockSite& reader : readers) state.Replace(reader.realize, WithBuffer(reader, buffer, copy));
  state.AddBuffer(copy);
  return copy_name;
}

Result<BlockName> CacheWrite(ScheduleState& state, const BlockName& name, int64_t write_index,
                             const std::string& scope) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(name));
  INGOT_RETURN_IF_ERROR(CheckScope("cache_write", site, scope));
  if (write_index < 0 || write_index >= static_cast<int64_t>(site.block().writes.size())) {
    return Refuse("cache_write", Describe(site), "it has no output " + std::to_string(write_index));
  }
  const BufferRegion& write = site.block().writes[write_index];
  const Buffer buffer = write.buffer;
  if (!state.OnlyWriter(buffer) || !state.IsRegular(name) || state.IsRecomputed(name)) {
    return Refuse("cache_write", Describe(site), "it does not write all of " + buffer->name + " alone");
  }
  const bool is_update = ReadsFrom(site.block(), buffer) && !site.block().init;
  if (is_update || StoresUnderCondition(site.block(), buffer)) {
    return Refuse("cache_write", Describe(site), "it does not store all of " + buffer->name);
  }
  arith::Analyzer analyzer;
  for (size_t d = 0; d < write.region.size(); ++d) {
    bool whole = IsConstInt(buffer->shape[d], 1);
    for (const IterVar& iter : site.block().iter_vars) {
      whole |= iter->var.get() == write.region[d].min.get() && IsConstInt(iter->domain.min, 0) &&
               analyzer.ProveEqual(iter->domain.extent, buffer->shape[d]);
    }
    if (!whole) return Refuse("cache_write", Describe(site), "it does not write all of " + buffer->name);
  }
  const Stmt outermost = OutermostStatement(site);
  for (const BlockSite& other : ScheduleState::BlocksIn(outermost)) {
    if (!other.realize.same_as(site.realize) && ReadsFrom(other.block(), buffer)) {
      return Refuse("cache_write", Describe(site), buffer->name + " is read under the same loops");
    }
  }
  const Buffer copy = CopyOf(state, buffer, scope);
  const std::string copy_name = state.FreshBlockName(copy->name);
  state.Replace(outermost, MakeSeq({outermost, CopyNest(copy_name, copy, buffer)}));
  state.Replace(site.realize, WithBuffer(site, buffer, copy));
  state.AddBuffer(copy);
  return copy_name;
}

// As one step: a refusal leaves the function as it was.
Result<BlockName> ReadAt(ScheduleState& state, const LoopVar& loop, const BlockName& name, int64_t read_index,
                         const std::string& scope) {
  INGOT_ASSIGN_OR_RETURN(const LoopSite target, state.FindLoop(loop));
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(name));
  const std::vector<BlockSite> below = ScheduleState::BlocksIn(target.loop);
  const auto is_site = [&](const BlockSite& other) { return other.realize.same_as(site.realize); };
  if (std::ranges::none_of(below, is_site))
    return Refuse("read_at", Describe(site), "loop " + loop->name + " is not around it");
  std::vector<BlockName> readers;
  if (read_index >= 0 && read_index < std::ssize(site.block().reads)) {
    for (const BlockSite& other : below) {
      if (ReadsFrom(other.block(), site.block().reads[static_cast<size_t>(read_index)].buffer)) {
        readers.push_back(other.block().name);
      }
    }
  }
  ScheduleState next = state;
  Result<BlockName> copy = CacheRead(next, name, read_index, scope, readers);
  const Status moved = copy.ok() ? ComputeAt(next, *copy, loop) : copy.status();
  if (!moved.ok()) return Refuse("read_at", Describe(site), std::string(moved.message()));
  state = std::move(next);
  return copy;
}

Result<BlockName> WriteAt(ScheduleState& state, const LoopVar& loop, const BlockName& name, int64_t write_index,
                          const std::string& scope) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(name));
  ScheduleState next = state;
  Result<BlockName> copy = CacheWrite(next, name, write_index, scope);
  const Status moved = copy.ok() ? ReverseComputeAt(next, *copy, loop) : copy.status();
  if (!moved.ok()) return Refuse("write_at", Describe(site), std::string(moved.message()));
  state = std::move(next);
  return copy;
}

Status SetScope(ScheduleState& state, const BlockName& name, int64_t write_index, const std::string& scope) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(name));
  INGOT_RETURN_IF_ERROR(CheckScope("set_scope", site, scope));
  if (write_index < 0 || write_index >= static_cast<int64_t>(site.block().writes.size())) {
    return Refuse("set_scope", Describe(site), "it has no output " + std::to_string(write_index));
  }
  const Buffer buffer = site.block().writes[write_index].buffer;
  if (!state.IsAllocated(buffer)) return Refuse("set_scope", Describe(site), buffer->name + " is a parameter");
  BufferNode copy = *buffer;
  copy.scope = scope;
  copy.data = MakePrimVar(buffer->data->name, DataType::Handle());
  state.ReplaceBuffer(buffer, Make<BufferNode>(std::move(copy)));
  return Status();
}

Status StorageAlign(ScheduleState& state, const BlockName& name, int64_t write_index, int64_t axis, int64_t factor,
                    int64_t offset) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(name));
  const auto no = [&](const std::string& what) { return Refuse("storage_align", Describe(site), what); };
  if (write_index < 0 || write_index >= static_cast<int64_t>(site.block().writes.size())) {
    return no("it has no output " + std::to_string(write_index));
  }
  const Buffer& buffer = site.block().writes[write_index].buffer;
  if (!state.IsAllocated(buffer)) return no(buffer->name + " is a parameter");
  if (factor < 1 || offset < 0 || offset >= factor) return no("needs a factor >= 1 and an offset below it");
  const auto rank = static_cast<int64_t>(buffer->shape.size());
  if (axis < 0) axis += rank;
  if (rank < 2 || axis != rank - 2) {
    return no("only rows can be spread: the axis of " + buffer->name + " must be the last but one");
  }
  // The entries of other outputs are kept; this output's is replaced.
  AttrList aligns;
  const AttrValue* old = site.block().annotations.Find(kBufferDimAlign);
  const auto* entries = old != nullptr ? old->get<AttrList>() : nullptr;
  for (size_t i = 0; entries != nullptr && i < entries->size(); ++i) {
    const auto* numbers = (*entries)[i].get<AttrList>();
    const int64_t* output = numbers != nullptr && !numbers->empty() ? numbers->front().get<int64_t>() : nullptr;
    if (output == nullptr || *output != write_index) aligns.push_back((*entries)[i]);
  }
  aligns.push_back(AttrValue::Ints({write_index, axis, factor, offset}));
  return Annotate(state, name, kBufferDimAlign, AttrValue(std::move(aligns)));
}

}  // namespace ingot::schedule
