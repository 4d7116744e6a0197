// compute_inline and reverse_compute_inline: an element-wise stage is substituted into its consumers, or its expression
// into its producer's store, and its block and buffer are removed.
#include <algorithm>
#include <unordered_set>

#include "compiler/arith/block_util.h"
#include "compiler/ir/structural.h"
#include "compiler/schedule/primitives.h"
#include "compiler/schedule/region.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// Replaces loads of one buffer by an expression of their indices.
class LoadReplacer : public StmtMutator {
 public:
  LoadReplacer(Buffer buffer, std::vector<PrimVar> index_vars, PrimExpr value)
      : buffer_(std::move(buffer)), index_vars_(std::move(index_vars)), value_(std::move(value)) {}

 protected:
  using StmtMutator::Mutate;
  PrimExpr Mutate(const Ref<BufferLoadNode>& load) override {
    PrimExpr result = StmtMutator::Mutate(load);
    const auto* mutated = As<BufferLoadNode>(result);
    if (!mutated->buffer.same_as(buffer_)) return result;
    PrimVarMap map;
    for (size_t i = 0; i < index_vars_.size(); ++i) {
      if (index_vars_[i]) map.emplace(index_vars_[i], mutated->indices[i]);
    }
    return Substitute(value_, map);
  }

 private:
  Buffer buffer_;
  std::vector<PrimVar> index_vars_;  // null where the index is constant
  PrimExpr value_;
};

class LoadCollector : public StmtVisitor {
 public:
  explicit LoadCollector(Buffer buffer) : buffer_(std::move(buffer)) {}
  std::vector<const BufferLoadNode*> loads;

 protected:
  using StmtVisitor::Visit;
  void Visit(const BufferLoadNode& load) override {
    if (load.buffer.same_as(buffer_)) loads.push_back(&load);
    StmtVisitor::Visit(load);
  }

 private:
  Buffer buffer_;
};

// The store of a block that consists of one store, over spatial variables only and without a predicate; refused
// otherwise.
Result<const BufferStoreNode*> OnlyStore(const ScheduleState& state, const char* primitive, const BlockSite& site) {
  const auto* store = As<BufferStoreNode>(site.block().body);
  if (store == nullptr || site.block().init) {
    return Refuse(primitive, Describe(site), "its body is not one plain store");
  }
  if (!state.IsRegular(site.block().name) || !IsTrue(site.realize->predicate)) {
    return Refuse(primitive, Describe(site), "its bindings are not simple");
  }
  for (const IterVar& iter : site.block().iter_vars) {
    if (iter->type != IterType::kSpatial) {
      return Refuse(primitive, Describe(site), "iteration " + iter->var->name + " is not spatial");
    }
  }
  return store;
}

// The iteration variables that the indices consist of, each at most once; null where a dimension of extent 1 has the
// index 0. Nothing when an index has another form.
std::optional<std::vector<PrimVar>> PlainIndices(const BlockNode& block, const Buffer& buffer,
                                                 const std::vector<PrimExpr>& indices) {
  std::vector<PrimVar> vars;
  std::unordered_set<const PrimVarNode*> seen;
  for (size_t i = 0; i < indices.size(); ++i) {
    const PrimVar var = AsRef<PrimVarNode>(indices[i]);
    const bool is_iter = var && std::any_of(block.iter_vars.begin(), block.iter_vars.end(),
                                            [&](const IterVar& iter) { return iter->var.same_as(var); });
    if (is_iter && seen.insert(var.get()).second) {
      vars.push_back(var);
    } else if (IsConstInt(indices[i], 0) && IsConstInt(buffer->shape[i], 1)) {
      vars.push_back(nullptr);
    } else {
      return std::nullopt;
    }
  }
  return vars;
}

BlockRealize WithBody(const BlockSite& site, Stmt body, Stmt init) {
  BlockNode block = site.block();
  block.body = std::move(body);
  block.init = std::move(init);
  arith::ReadWriteRegions regions = arith::GetBlockReadWriteRegions(block.body, block.init);
  block.reads = std::move(regions.reads);
  block.writes = std::move(regions.writes);
  BlockRealizeNode realize = *site.realize;
  realize.block = Make<BlockNode>(std::move(block));
  return Make<BlockRealizeNode>(std::move(realize));
}

}  // namespace

Status ComputeInline(ScheduleState& state, const BlockName& name) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(name));
  INGOT_ASSIGN_OR_RETURN(const BufferStoreNode* store, OnlyStore(state, "compute_inline", site));
  const Buffer buffer = store->buffer;
  if (!state.IsAllocated(buffer)) return Refuse("compute_inline", Describe(site), "it writes a parameter");
  if (!state.OnlyWriter(buffer)) return Refuse("compute_inline", Describe(site), "other blocks write the same buffer");
  const std::optional<std::vector<PrimVar>> vars = PlainIndices(site.block(), buffer, store->indices);
  if (!vars) return Refuse("compute_inline", Describe(site), "its indices are not iteration variables, each once");
  if (ReadsFrom(site.block(), buffer)) return Refuse("compute_inline", Describe(site), "it reads its own result");
  for (const BlockSite& reader : state.Readers(buffer)) {
    if (!HoldsLoops(reader.block())) continue;
    return Refuse("compute_inline", Describe(site),
                  "its reader \"" + reader.block().name + "\" holds loops of its own");
  }
  PrimVarMap units;  // iteration variables that no index uses, with their only value
  for (const IterVar& iter : site.block().iter_vars) {
    const bool indexed =
        std::any_of(vars->begin(), vars->end(), [&](const PrimVar& v) { return v.same_as(iter->var); });
    if (indexed) continue;
    if (!IsConstInt(iter->domain.extent, 1)) {
      return Refuse("compute_inline", Describe(site), "iteration " + iter->var->name + " is not among its indices");
    }
    units.emplace(iter->var, iter->domain.min);
  }
  const PrimExpr value = Substitute(store->value, units);
  for (const BlockSite& reader : state.Readers(buffer)) {
    LoadReplacer replacer(buffer, *vars, value);
    Stmt body = replacer.MutateStmt(reader.block().body);
    Stmt init = reader.block().init ? replacer.MutateStmt(reader.block().init) : nullptr;
    state.Replace(reader.realize, WithBody(reader, std::move(body), std::move(init)));
  }
  INGOT_ASSIGN_OR_RETURN(const BlockSite self, state.FindBlock(name));
  state.Replace(self.realize, nullptr);
  state.RemoveBuffer(buffer);
  return Status();
}

Status ReverseComputeInline(ScheduleState& state, const BlockName& name) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(name));
  INGOT_RETURN_IF_ERROR(OnlyStore(state, "reverse_compute_inline", site).status());
  // Finds the intermediate that only this block reads, at all of its own iteration variables.
  for (const BufferRegion& read : site.block().reads) {
    const Buffer& buffer = read.buffer;
    const std::optional<BlockSite> producer = state.OnlyWriter(buffer);
    if (!producer || !state.IsAllocated(buffer) || state.Readers(buffer).size() != 1) continue;
    const Result<const BufferStoreNode*> made = OnlyStore(state, "reverse_compute_inline", *producer);
    if (!made.ok()) continue;
    LoadCollector loads(buffer);
    loads.VisitStmt(site.block().body);
    std::optional<std::vector<PrimVar>> vars = PlainIndices(site.block(), buffer, loads.loads.front()->indices);
    if (!vars) continue;
    const bool same_place = std::all_of(loads.loads.begin(), loads.loads.end(), [&](const BufferLoadNode* load) {
      for (size_t i = 0; i < load->indices.size(); ++i) {
        if (!StructuralEqual(load->indices[i], loads.loads.front()->indices[i])) return false;
      }
      return true;
    });
    PrimVarMap map;
    for (size_t i = 0; i < vars->size(); ++i) {
      if ((*vars)[i]) map.emplace((*vars)[i], (*made)->indices[i]);
    }
    const bool covers =
        std::all_of(site.block().iter_vars.begin(), site.block().iter_vars.end(), [&](const IterVar& iter) {
          if (map.count(iter->var) != 0) return true;
          if (!IsConstInt(iter->domain.extent, 1)) return false;
          map.emplace(iter->var, iter->domain.min);
          return true;
        });
    // The consumer must run for exactly the elements that the producer makes (padding runs for more).
    arith::Analyzer analyzer;
    const bool same_domain =
        std::all_of(site.block().iter_vars.begin(), site.block().iter_vars.end(), [&](const IterVar& iter) {
          for (size_t i = 0; i < vars->size(); ++i) {
            if (iter->var.same_as((*vars)[i])) return analyzer.ProveEqual(iter->domain.extent, buffer->shape[i]);
          }
          return true;
        });
    if (!same_place || !covers || !same_domain) continue;
    // The map replaces the consumer's variables first; then the load is replaced by the producer's value, whose
    // variables the map must not touch.
    const Stmt inlined = LoadReplacer(buffer, std::vector<PrimVar>(vars->size()), (*made)->value)
                             .MutateStmt(Substitute(site.block().body, map));
    state.Replace(site.realize, nullptr);
    INGOT_ASSIGN_OR_RETURN(const BlockSite target, state.FindBlock(producer->block().name));
    state.Replace(target.realize, WithBody(target, inlined, nullptr));
    state.RemoveBuffer(buffer);
    return Status();
  }
  return Refuse("reverse_compute_inline", Describe(site),
                "no input is made by one plain store, read by this block alone, at all its iteration variables");
}

}  // namespace ingot::schedule
