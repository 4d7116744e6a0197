// reindex and cache_index: a block reads, or writes, a buffer over its own iteration variables, and a block of its own
// goes between it and the buffer at computed places; or it looks places up that another block has computed.
#include <algorithm>

#include "compiler/arith/block_util.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/primitives.h"
#include "compiler/schedule/region.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

using Indices = std::vector<PrimExpr>;

bool AreEqual(const Indices& a, const Indices& b) {
  return std::ranges::equal(a, b, [](const PrimExpr& x, const PrimExpr& y) { return StructuralEqual(x, y); });
}

// The iteration variables of a block that expressions use, in the block's order.
std::vector<IterVar> UsedIn(const BlockNode& block, const Indices& exprs) {
  std::vector<IterVar> used;
  for (const IterVar& iter : block.iter_vars) {
    if (std::ranges::any_of(exprs, [&](const PrimExpr& expr) { return UsesVar(expr, iter->var); })) {
      used.push_back(iter);
    }
  }
  return used;
}

Indices VarsOf(const std::vector<IterVar>& iters) {
  Indices vars;
  for (const IterVar& iter : iters) vars.push_back(iter->var);
  return vars;
}

Buffer BufferOver(const ScheduleState& state, const std::vector<IterVar>& iters, const std::string& name,
                  DataType dtype, const std::string& scope) {
  Indices shape;
  for (const IterVar& iter : iters) shape.push_back(iter->domain.extent);
  return MakeBuffer(state.FreshBufferName(name), dtype, std::move(shape), scope);
}

std::vector<Range> Points(const Indices& indices) {
  std::vector<Range> points;
  for (const PrimExpr& index : indices) points.push_back({index, IntImm(index->dtype, 1)});
  return points;
}

// A nest over the iterations around a block that stores `value` into `to` at `at`.
Stmt StoreNest(const std::string& block_name, const std::vector<IterVar>& iters, const PrimExpr& value,
               std::vector<BufferRegion> reads, const Buffer& to, const Indices& at) {
  PrimVarMap map;
  std::vector<LoopVar> loops;
  std::vector<IterVar> fresh;
  std::vector<PrimExpr> values, extents;
  for (const IterVar& iter : iters) {
    const PrimVar var = MakePrimVar(iter->var->name, iter->var->dtype);
    map.emplace(iter->var, var);
    fresh.push_back(Make<IterVarNode>(iter->domain, var, IterType::kSpatial));
    loops.push_back(MakePrimVar("ax" + std::to_string(loops.size()), iter->var->dtype));
    values.push_back(loops.back());
    extents.push_back(iter->domain.extent);
  }
  const auto placed = [&](const Indices& indices) {
    Indices result;
    for (const PrimExpr& index : indices) result.push_back(Substitute(index, map));
    return result;
  };
  for (BufferRegion& region : reads) {
    for (Range& range : region.region) range = {Substitute(range.min, map), Substitute(range.extent, map)};
  }
  Stmt store = Make<BufferStoreNode>(to, Substitute(value, map), placed(at));
  Block block = Make<BlockNode>(block_name, fresh, std::move(reads),
                                std::vector<BufferRegion>{{to, Points(placed(at))}}, std::move(store));
  return Nest(loops, extents, Make<BlockRealizeNode>(std::move(values), BoolImm(true), std::move(block)));
}

// Where a block accesses a buffer.
class AccessFinder : public StmtVisitor {
 public:
  explicit AccessFinder(const Buffer& buffer) : buffer_(buffer) {}
  std::vector<Indices> loads, stores;

 protected:
  using StmtVisitor::Visit;
  void Visit(const BufferLoadNode& load) override {
    if (load.buffer.same_as(buffer_)) loads.push_back(load.indices);
    StmtVisitor::Visit(load);
  }
  void Visit(const BufferStoreNode& store) override {
    if (store.buffer.same_as(buffer_)) stores.push_back(store.indices);
    StmtVisitor::Visit(store);
  }

 private:
  const Buffer& buffer_;
};

// All accesses of a buffer, at whatever place, become accesses of another one at one place.
class AccessMover : public StmtMutator {
 public:
  AccessMover(const Buffer& from, const Buffer& to, const Indices& at) : from_(from), to_(to), at_(at) {}

 protected:
  using StmtMutator::Mutate;
  PrimExpr Mutate(const Ref<BufferLoadNode>& load) override {
    return load->buffer.same_as(from_) ? Make<BufferLoadNode>(to_, at_) : StmtMutator::Mutate(load);
  }
  Stmt Mutate(const Ref<BufferStoreNode>& store) override {
    const Stmt mutated = StmtMutator::Mutate(store);
    const auto* node = As<BufferStoreNode>(mutated);
    return node->buffer.same_as(from_) ? Make<BufferStoreNode>(to_, node->value, at_) : mutated;
  }

 private:
  const Buffer &from_, &to_;
  const Indices& at_;
};

// The block under the schedule with another body.
void ReplaceBlock(ScheduleState& state, const BlockSite& site, BlockNode block) {
  BlockRealizeNode realize = *site.realize;
  realize.block = Make<BlockNode>(std::move(block));
  state.Replace(site.realize, Make<BlockRealizeNode>(std::move(realize)));
}

bool DomainsStartAtZero(const std::vector<IterVar>& iters) {
  return std::ranges::all_of(iters, [](const IterVar& iter) { return IsConstInt(iter->domain.min, 0); });
}

// Whether an iteration stores to the buffer before it reads it, whatever else it does.
bool StoresFirst(const BlockNode& block, const Buffer& buffer) {
  const auto* store = As<BufferStoreNode>(block.init ? block.init : block.body);
  return store != nullptr && store->buffer.same_as(buffer) && (block.init || !ReadsFrom(block, buffer));
}

// What keeps the place of the buffer that is read out of a block of its own; empty: nothing.
std::string KeepsReadIn(const BlockSite& site, const Buffer& buffer, const Indices& at,
                        const std::vector<IterVar>& iters) {
  for (const BlockSite& other : ScheduleState::BlocksIn(OutermostStatement(site))) {
    if (WritesTo(other.block(), buffer)) return buffer->name + " is written under the same loops";
  }
  arith::Analyzer analyzer;
  for (const IterVar& iter : iters) analyzer.Bind(iter->var, iter->domain);
  for (size_t d = 0; d < at.size(); ++d) {
    const bool is_inside =
        analyzer.ProveLessEqual(IntImm(at[d]->dtype, 0), at[d]) && analyzer.ProveLess(at[d], buffer->shape[d]);
    if (!is_inside) return "dimension " + std::to_string(d) + " is not proved to be inside of " + buffer->name;
  }
  return "";
}

// The same for what is written: all of it, by this block alone, at a place of its own for each iteration.
std::string KeepsWriteIn(const ScheduleState& state, const BlockSite& site, const Buffer& buffer, const Indices& at) {
  if (!state.OnlyWriter(buffer) || state.IsRecomputed(site.block().name))
    return "it does not write " + buffer->name + " alone";
  for (const BlockSite& other : ScheduleState::BlocksIn(OutermostStatement(site))) {
    if (!other.realize.same_as(site.realize) && ReadsFrom(other.block(), buffer)) {
      return buffer->name + " is read under the same loops";
    }
  }
  for (size_t d = 0; d < at.size(); ++d) {
    if (AsConstInt(at[d])) continue;
    const bool is_var = As<PrimVarNode>(at[d]) != nullptr;
    const bool is_new = std::none_of(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(d),
                                     [&](const PrimExpr& other) { return other.same_as(at[d]); });
    if (!is_var || !is_new)
      return "dimension " + std::to_string(d) + " of " + buffer->name + " is not written at a variable";
  }
  return "";
}

// An index that is worth a look-up: computed from iteration variables alone, by what never fails.
bool IsComputed(const PrimExpr& expr, const std::vector<IterVar>& iters) {
  if (AsConstInt(expr)) return true;
  if (As<PrimVarNode>(expr) != nullptr) {
    return std::ranges::any_of(iters, [&](const IterVar& iter) { return iter->var.get() == expr.get(); });
  }
  const auto* binary = As<BinaryNode>(expr);
  if (binary == nullptr || !IsComputed(binary->a, iters) || !IsComputed(binary->b, iters)) return false;
  switch (binary->op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMul:
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      return true;
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
      return AsConstInt(binary->b).value_or(0) > 0;
    default:
      return false;
  }
}

class IndexFinder : public StmtVisitor {
 public:
  explicit IndexFinder(const std::vector<IterVar>& iters) : iters_(iters) {}
  std::vector<std::pair<PrimExpr, int64_t>> found;  // and how often

 protected:
  using StmtVisitor::Visit;
  void Visit(const BufferLoadNode& load) override {
    for (const PrimExpr& index : load.indices) {
      if (As<BinaryNode>(index) == nullptr || !IsComputed(index, iters_)) continue;
      const auto known =
          std::ranges::find_if(found, [&](const auto& entry) { return StructuralEqual(entry.first, index); });
      if (known == found.end()) {
        found.emplace_back(index, 1);
      } else {
        ++known->second;
      }
    }
    StmtVisitor::Visit(load);
  }

 private:
  const std::vector<IterVar>& iters_;
};

// Indices of loads that are equal to one become loads of what was computed.
class IndexReplacer : public StmtMutator {
 public:
  IndexReplacer(const PrimExpr& index, const PrimExpr& looked_up) : index_(index), looked_up_(looked_up) {}

 protected:
  using StmtMutator::Mutate;
  PrimExpr Mutate(const Ref<BufferLoadNode>& load) override {
    BufferLoadNode copy = *Downcast<BufferLoadNode>(StmtMutator::Mutate(load));
    for (PrimExpr& index : copy.indices) {
      if (StructuralEqual(index, index_)) index = looked_up_;
    }
    return Make<BufferLoadNode>(std::move(copy));
  }

 private:
  const PrimExpr &index_, &looked_up_;
};

}  // namespace

Result<BlockName> Reindex(ScheduleState& state, const BlockName& name, int64_t buffer_index,
                          const std::string& buffer_index_type) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(name));
  const auto no = [&](const std::string& what) { return Refuse("reindex", Describe(site), what); };
  BlockNode block = site.block();
  const bool reads = buffer_index_type == "read";
  if (!reads && buffer_index_type != "write") return no("needs \"read\" or \"write\"");
  std::vector<BufferRegion>& regions = reads ? block.reads : block.writes;
  if (buffer_index < 0 || buffer_index >= std::ssize(regions)) {
    return no(std::string("it has no ") + (reads ? "input " : "output ") + std::to_string(buffer_index));
  }
  if (!state.IsRegular(name) || HoldsLoops(block)) return no("its bindings are not simple");
  const Buffer buffer = regions[static_cast<size_t>(buffer_index)].buffer;
  AccessFinder finder(buffer);
  finder.VisitStmt(block.body);
  if (block.init) finder.VisitStmt(block.init);
  if (reads && !finder.stores.empty()) return no("it also writes " + buffer->name);
  std::vector<Indices> accesses = finder.loads;
  accesses.insert(accesses.end(), finder.stores.begin(), finder.stores.end());
  if (accesses.empty()) return no("it does not access " + buffer->name);
  const Indices at = accesses.front();
  if (!std::ranges::all_of(accesses, [&](const Indices& other) { return AreEqual(at, other); })) {
    return no("it accesses several places of " + buffer->name);
  }
  const std::vector<IterVar> iters = UsedIn(block, at);
  if (iters.empty() || !DomainsStartAtZero(iters))
    return no("no iteration from 0 on chooses the place in " + buffer->name);
  // What the block loads or binds to choose the place is not there yet where the copy stands.
  const auto is_computed = [&](const PrimExpr& index) { return IsComputed(index, block.iter_vars); };
  if (!std::ranges::all_of(at, is_computed))
    return no("its iterations alone do not choose the place in " + buffer->name);
  if (!reads && !StoresFirst(block, buffer)) return no("it does not store all of " + buffer->name);
  const std::string reason = reads ? KeepsReadIn(site, buffer, at, iters) : KeepsWriteIn(state, site, buffer, at);
  if (!reason.empty()) return no(reason);

  const Indices own = VarsOf(iters);
  const Buffer fresh = BufferOver(state, iters, buffer->name + "_reindex", buffer->dtype, "global");
  const BlockName made = state.FreshBlockName(fresh->name);
  AccessMover mover(buffer, fresh, own);
  block.body = mover.MutateStmt(block.body);
  if (block.init) block.init = mover.MutateStmt(block.init);
  for (std::vector<BufferRegion>* each : {&block.reads, &block.writes}) {
    for (BufferRegion& region : *each) {
      if (region.buffer.same_as(buffer)) region = {fresh, Points(own)};
    }
  }
  const Buffer &from = reads ? buffer : fresh, &to = reads ? fresh : buffer;
  const Indices &from_at = reads ? at : own, &to_at = reads ? own : at;
  Stmt nest = StoreNest(made, iters, Make<BufferLoadNode>(from, from_at), {{from, Points(from_at)}}, to, to_at);
  ReplaceBlock(state, site, std::move(block));
  const Result<BlockSite> moved = state.FindBlock(name);
  INGOT_CHECK(moved.ok(), "the block vanished");
  const Stmt place = OutermostStatement(*moved);
  state.Replace(place, reads ? MakeSeq({std::move(nest), place}) : MakeSeq({place, std::move(nest)}));
  state.AddBuffer(fresh);
  return made;
}

Result<std::vector<BlockName>> CacheIndex(ScheduleState& state, const BlockName& name, const std::string& storage_scope,
                                          int64_t cse_thresh) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(name));
  const auto no = [&](const std::string& what) { return Refuse("cache_index", Describe(site), what); };
  INGOT_RETURN_IF_ERROR(CheckScope("cache_index", site, storage_scope));
  if (cse_thresh < 0) return no("needs a threshold >= 0");
  if (!state.IsRegular(name) || HoldsLoops(site.block())) return no("its bindings are not simple");
  BlockNode block = site.block();
  if (!DomainsStartAtZero(block.iter_vars)) return no("its iterations do not start at 0");
  IndexFinder finder(block.iter_vars);
  finder.VisitStmt(block.body);
  std::vector<BlockName> made;
  std::vector<Stmt> nests;
  ScheduleState next = state;
  for (const auto& [index, times] : finder.found) {
    const std::vector<IterVar> iters = UsedIn(block, {index});
    if (times < cse_thresh || iters.empty()) continue;
    const Buffer places = BufferOver(next, iters, name + "_index", index->dtype, storage_scope);
    next.AddBuffer(places);
    const Indices own = VarsOf(iters);
    const PrimExpr looked_up = Make<BufferLoadNode>(places, own);
    block.body = IndexReplacer(index, looked_up).MutateStmt(block.body);
    block.reads.push_back({places, Points(own)});
    made.push_back(next.FreshBlockName(places->name));
    nests.push_back(StoreNest(made.back(), iters, index, {}, places, own));
  }
  if (made.empty()) return made;
  ReplaceBlock(next, site, std::move(block));
  const Result<BlockSite> moved = next.FindBlock(name);
  INGOT_CHECK(moved.ok(), "the block vanished");
  nests.push_back(OutermostStatement(*moved));
  next.Replace(nests.back(), MakeSeq(nests));
  state = std::move(next);
  return made;
}

}  // namespace ingot::schedule
