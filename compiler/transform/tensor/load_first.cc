// Before: on CUDA, an unrolled loop around a store loads from memory what it stores, perhaps under a condition. After: the
// values of all iterations are bound to variables first, and then stored, so that all loads are on their way at once. The
// compilers behind cannot change the order: what is stored might be what is loaded next. A value under a condition is one
// that is chosen by it (codegen loads such a one by predicate). It comes before unrolling, which would leave a load, its
// store, and so on. The loop's iterations were independent before: what they load, none of them stores.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/fresh_copy.h"
#include "compiler/ir/visitor.h"
#include "compiler/transform/tensor/passes.h"

namespace ingot::transform {

using namespace ir;  // NOLINT

namespace {

constexpr int64_t kMostValues = 64, kMostWords = 32;  // at once, and the registers that they take

// A store, and the conditions around it.
struct GuardedStore {
  Ref<BufferStoreNode> store;
  PrimExpr condition;  // null: none
};
std::optional<GuardedStore> StoreIn(const Stmt& body) {
  GuardedStore found;
  Stmt stmt = body;
  while (const auto* guard = As<IfStmtNode>(stmt)) {
    if (guard->else_case || !guard->condition->dtype.is_scalar()) return std::nullopt;
    found.condition = found.condition ? And(found.condition, guard->condition) : guard->condition;
    stmt = guard->then_case;
  }
  found.store = AsRef<BufferStoreNode>(stmt);
  return found.store ? std::optional(found) : std::nullopt;
}

struct LoadFinder : PrimVisitor {
  const PrimVarNode* stored = nullptr;
  bool loads_memory = false, loads_stored = false, loads_vectors = false;
  using PrimVisitor::Visit;
  void Visit(const BufferLoadNode& load) override {
    const std::string& scope = load.buffer->scope;
    loads_memory |= scope != "local" && scope != "thread" && scope != "warp";
    loads_stored |= load.buffer->data.get() == stored;
    loads_vectors |= !load.dtype.is_scalar();
    PrimVisitor::Visit(load);
  }
};

PrimExpr Zero(DataType dtype) {
  const PrimExpr zero = MakeConst(dtype.element_of(), 0);
  return dtype.is_scalar() ? zero : PrimExpr(Make<BroadcastNode>(zero, dtype.lanes));
}

// Unrolled loops around each other.
struct UnrolledNest {
  std::vector<PrimVarMap> iterations;
  Stmt body;
};
UnrolledNest NestOf(const Ref<ForNode>& loop) {
  UnrolledNest nest{{PrimVarMap()}, loop};
  for (const auto* node = As<ForNode>(nest.body); node != nullptr; node = As<ForNode>(nest.body)) {
    const auto extent = AsConstInt(node->extent);
    if (node->for_kind != ForKind::kUnrolled || !node->annotations.empty() || !extent || *extent < 1) break;
    if (*extent * std::ssize(nest.iterations) > kMostValues) break;
    std::vector<PrimVarMap> all;
    for (const PrimVarMap& outer : nest.iterations) {
      for (int64_t i = 0; i < *extent; ++i) {
        all.push_back(outer);
        all.back().emplace(node->var, IntImm(node->var->dtype, i));
      }
    }
    nest = {std::move(all), node->body};
  }
  return nest;
}

class LoadFirstMutator : public StmtMutator {
 protected:
  using StmtMutator::Mutate;
  Stmt Mutate(const Ref<ForNode>& loop) override {
    const UnrolledNest nest = NestOf(loop);
    const std::optional<GuardedStore> found = StoreIn(nest.body);
    if (nest.iterations.size() < 2 || !found || !LoadsOthers(*found)) return StmtMutator::Mutate(loop);
    const DataType dtype = found->store->value->dtype;
    const int64_t words = (static_cast<int64_t>(dtype.bits) * dtype.lanes + 31) / 32;
    if (words * std::ssize(nest.iterations) > kMostWords) return StmtMutator::Mutate(loop);
    std::vector<std::pair<PrimVar, PrimExpr>> values;
    std::vector<Stmt> stores;
    for (const PrimVarMap& at : nest.iterations) {
      const auto here = [&](const PrimExpr& expr) { return CopyFresh(Substitute(expr, at)); };
      PrimExpr value = here(found->store->value);
      if (found->condition) {
        value = Make<PrimCallNode>(dtype, Intrinsic::kIfThenElse,
                                   std::vector<PrimExpr>{here(found->condition), std::move(value), Zero(dtype)});
      }
      values.emplace_back(MakePrimVar("value" + std::to_string(values.size()), dtype), std::move(value));
      BufferStoreNode store = *found->store;
      store.value = values.back().first;
      for (PrimExpr& index : store.indices) index = here(index);
      Stmt stmt = Make<BufferStoreNode>(std::move(store));
      if (found->condition) stmt = Make<IfStmtNode>(here(found->condition), std::move(stmt), nullptr);
      stores.push_back(std::move(stmt));
    }
    Stmt body = MakeSeq(std::move(stores));
    for (size_t i = values.size(); i-- > 0;) {
      body = Make<LetStmtNode>(values[i].first, values[i].second, std::move(body));
    }
    return body;
  }

 private:
  // Whether it loads from memory that it does not store to. What loads vectors under a condition stays as it is.
  static bool LoadsOthers(const GuardedStore& found) {
    LoadFinder loads;
    loads.stored = found.store->buffer->data.get();
    loads.VisitPrim(found.store->value);
    const bool loads_memory = loads.loads_memory, loads_vectors = loads.loads_vectors;
    for (const PrimExpr& index : found.store->indices) loads.VisitPrim(index);
    if (found.condition) loads.VisitPrim(found.condition);
    return loads_memory && !loads.loads_stored && (!found.condition || !loads_vectors);
  }
};

}  // namespace

Result<PrimFunc> LoadFirst(const PrimFunc& function, const Target& target) {
  if (target.kind != Target::Kind::kCuda) return function;
  return WithBody(function, LoadFirstMutator().MutateStmt(function->body));
}

}  // namespace ingot::transform
