// read_caches_in_place
//   Before: a view of a cache (R.kv_cache.view) is a tensor function of its own that copies the first elements, and
//           others read the copy.
//   After:  tensor functions read the cache itself: their parameter has the cache's dims, and since the elements have
//           the same indices, nothing else changes. A dimension that only the copy's dims bound is one more scalar
//           parameter. Copies with other readers (a result, a view of other dims) stay.
//   After fusion, which decides which function reads what; before dead code elimination, which drops the copies.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/names.h"
#include "compiler/op/registry.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"
#include "compiler/transform/states.h"

namespace ingot::transform {

using ir::As;
using ir::AsRef;
using ir::Expr;
using ir::PrimExpr;
using ir::Var;

namespace {

// Visits every store of a function, with the stored value.
class StoreVisitor : public ir::StmtVisitor {
 public:
  std::vector<const ir::BufferStoreNode*> stores;

 protected:
  using StmtVisitor::Visit;
  void Visit(const ir::BufferStoreNode& store) override { stores.push_back(&store); }
};

// Whether the function is out[i] := in[i] for all of out, and nothing else.
bool CopiesFirstElements(const ir::PrimFunc& function) {
  if (function->params.size() < 2 || !function->params[0].buffer || !function->params[1].buffer) return false;
  StoreVisitor visitor;
  visitor.VisitStmt(function->body);
  if (visitor.stores.size() != 1) return false;
  const ir::BufferStoreNode& store = *visitor.stores[0];
  const auto* load = As<ir::BufferLoadNode>(store.value);
  return load != nullptr && load->buffer.same_as(function->params[0].buffer) &&
         store.buffer.same_as(function->params[1].buffer) &&
         std::equal(store.indices.begin(), store.indices.end(), load->indices.begin(), load->indices.end(),
                    [](const PrimExpr& a, const PrimExpr& b) { return ir::StructuralEqual(a, b); });
}

class Reader : public ir::ExprMutator {
 public:
  Reader(ir::IRModule& module, const ir::Function& function, const std::vector<StateParam>& states)
      : module_(module), shared_(module) {
    for (const StateParam& state : states) {
      if (state.growth) caches_.insert(function->params[state.param].get());
    }
  }

 protected:
  using ExprMutator::Mutate;

  void MutateBinding(const ir::Binding& binding) override {
    const auto call = AsRef<ir::CallNode>(binding.value);
    if (call && op::IsCallOf(call, op::names::kAppendToCache)) caches_.insert(binding.var.get());
    if (const auto tir = AsCallTir(binding.value); tir && tir->args.size() == 1 && tir->results.size() == 1) {
      const auto* source = As<ir::VarNode>(tir->args[0]);
      const ir::PrimFunc function = module_.FindPrimFunc(tir->callee->name);
      if (source != nullptr && caches_.contains(source) && function && CopiesFirstElements(function)) {
        views_.emplace(binding.var.get(), Var(source));
      }
    }
    ExprMutator::MutateBinding(binding);
  }

  Expr Mutate(const ir::Call& call) override {
    const std::optional<CallTir> tir = AsCallTir(call);
    if (!tir) return ExprMutator::Mutate(call);
    std::vector<size_t> read;
    for (size_t i = 0; i < tir->args.size(); ++i) {
      const auto* var = As<ir::VarNode>(tir->args[i]);
      if (var != nullptr && views_.contains(var)) read.push_back(i);
    }
    const ir::PrimFunc function = module_.FindPrimFunc(tir->callee->name);
    if (read.empty() || !function) return ExprMutator::Mutate(call);
    return ReadInPlace(*tir, function, read, call->span);
  }

 private:
  Expr ReadInPlace(const CallTir& tir, const ir::PrimFunc& function, const std::vector<size_t>& read,
                   const ir::Span& span) {
    ir::PrimFuncNode wide = *function;
    ir::BufferMap buffers;
    std::vector<Expr> args = tir.args;
    for (size_t i : read) {
      const Var& cache = views_.at(As<ir::VarNode>(tir.args[i]));
      args[i] = cache;
      ir::BufferNode buffer = *function->params[i].buffer;
      buffer.shape = *ir::Downcast<ir::TensorTypeNode>(cache->type)->dims;
      wide.params[i].buffer = ir::Make<ir::BufferNode>(std::move(buffer));
      buffers.emplace(function->params[i].buffer, wide.params[i].buffer);
    }
    wide.body = ir::Substitute(function->body, {}, buffers);
    // The call's own scalars, then the dimensions that no buffer binds any more.
    std::vector<PrimExpr> scalars;
    if (tir.tir_vars) scalars = As<ir::ShapeExprNode>(tir.tir_vars)->dims;
    for (size_t i : read) {
      const std::vector<PrimExpr>& shape = function->params[i].buffer->shape;
      const std::vector<PrimExpr>& dims = *ir::Downcast<ir::TensorTypeNode>(tir.args[i]->type)->dims;
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        const auto var = AsRef<ir::PrimVarNode>(shape[axis]);
        if (!var || IsBound(wide, var)) continue;
        wide.params.push_back({var, nullptr});
        scalars.push_back(dims[axis]);
      }
    }
    ir::CallNode result = *op::MakeCallTIR(shared_.Add(ir::Make<ir::PrimFuncNode>(std::move(wide)), tir.callee->name),
                                           std::move(args), tir.results, std::move(scalars));
    result.span = span;
    return ir::Make<ir::CallNode>(std::move(result));
  }

  static bool IsBound(const ir::PrimFuncNode& function, const ir::PrimVar& var) {
    return std::any_of(function.params.begin(), function.params.end(), [&](const ir::PrimFuncParam& param) {
      if (!param.buffer) return param.var.same_as(var);
      return std::any_of(param.buffer->shape.begin(), param.buffer->shape.end(),
                         [&](const PrimExpr& dim) { return dim.get() == var.get(); });
    });
  }

  ir::IRModule& module_;
  std::unordered_set<const ir::VarNode*> caches_;
  std::unordered_map<const ir::VarNode*, Var> views_;  // a copy of a cache's first elements -> the cache
  SharedFunctions shared_;
};

}  // namespace

Result<ir::IRModule> ReadCachesInPlace(ir::IRModule module, PassContext&) {
  const std::vector<ir::IRModule::Entry> entries = module.functions();
  for (const ir::IRModule::Entry& entry : entries) {
    const ir::Function function = AsRef<ir::FunctionNode>(entry.function);
    if (!function) continue;
    INGOT_ASSIGN_OR_RETURN(const std::vector<StateParam> states, StateParamsOf(function));
    if (states.empty()) continue;
    Reader reader(module, function, states);
    module.Set(entry.var, reader.MutateFunction(function));
  }
  return module;
}

}  // namespace ingot::transform
