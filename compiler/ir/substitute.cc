// Substitute, FreePrimVars and other questions of visitor.h: replaces variables and buffers, lists the variables that are
// free in an expression or a type, or that a PrimFunc's shapes bind, and finds loads.
#include <algorithm>
#include <unordered_set>

#include "compiler/ir/field_walk.h"
#include "compiler/ir/visitor.h"

namespace ingot::ir {
namespace {

class Substituter : public StmtMutator {
 public:
  Substituter(const PrimVarMap& vars, const BufferMap& buffers) : vars_(vars), buffers_(buffers) {}

  Type MutateType(const Type& type) {
    return Dispatch(*type, [&]<typename T>(const T& node) -> Type {
      std::optional<T> changed = MutateFields(*this, node);
      if (!changed) return type;
      if constexpr (std::is_same_v<T, PrimTypeNode>) changed->dtype = changed->value->dtype;
      return Make<T>(std::move(*changed));
    });
  }

 protected:
  using StmtMutator::Mutate;
  PrimExpr Mutate(const Ref<PrimVarNode>& var) override {
    const auto it = vars_.find(var);
    return it == vars_.end() ? PrimExpr(var) : it->second;
  }
  Buffer MutateBuffer(const Buffer& buffer) override {
    const auto it = buffers_.find(buffer);
    return it == buffers_.end() ? buffer : it->second;
  }
  // A buffer that is defined inside follows the substitution in its shape; its uses below find it in the map.
  Buffer DefineBuffer(const Buffer& buffer) override {
    if (!buffers_.contains(buffer)) {
      std::optional<BufferNode> changed = MutateFields(*this, *buffer);
      if (changed) buffers_[buffer] = Make<BufferNode>(std::move(*changed));
    }
    return MutateBuffer(buffer);
  }
  // An attribute may be about a buffer.
  Stmt Mutate(const Ref<AttrStmtNode>& attr) override {
    Stmt mutated = StmtMutator::Mutate(attr);
    const auto* about = dynamic_cast<const BufferNode*>(attr->node.get());
    if (about == nullptr) return mutated;
    const Buffer buffer = MutateBuffer(Buffer(about));
    if (buffer.get() == about) return mutated;
    AttrStmtNode changed = *As<AttrStmtNode>(mutated);
    changed.node = buffer;
    return Make<AttrStmtNode>(std::move(changed));
  }

 private:
  const PrimVarMap& vars_;
  BufferMap buffers_;
};

std::optional<Type> MutateChild(Substituter& substituter, const Type& type) {
  return type ? IfChanged(type, substituter.MutateType(type)) : std::nullopt;
}

// Free variables by first occurrence. A variable is bound where a node defines it (a Let, an axis of a Reduce), or by
// the parameters of a function type.
class FreeVars : public PrimVisitor {
 public:
  std::vector<PrimVar> vars;

  void VisitType(const Type& type);
  void VisitPrim(const PrimExpr& expr) override {
    if (const auto var = AsRef<PrimVarNode>(expr)) {
      if (bound_.insert(var).second) vars.push_back(var);
      return;
    }
    PrimVisitor::VisitPrim(expr);
  }
  void VisitDefinition(const PrimVar& var) override { bound_.insert(var); }

 private:
  void VisitCallable(const CallableTypeNode& callable) {
    FreeVars inner;
    if (callable.params) {
      for (const Type& param : *callable.params) inner.VisitType(param);
    }
    const size_t num_bound = inner.vars.size();
    inner.VisitType(callable.result);
    for (size_t i = num_bound; i < inner.vars.size(); ++i) VisitPrim(inner.vars[i]);
  }

  std::unordered_set<PrimVar, RefHash, RefSame> bound_;  // seen, or defined inside
};

void VisitChild(FreeVars& free, const Type& type) { free.VisitType(type); }

void FreeVars::VisitType(const Type& type) {
  if (!type) return;
  if (const auto* callable = As<CallableTypeNode>(type)) return VisitCallable(*callable);
  Dispatch(*type, [this](const auto& node) { VisitFields(*this, node); });
}

}  // namespace

PrimExpr Substitute(const PrimExpr& expr, const PrimVarMap& map) {
  return map.empty() ? expr : Substituter(map, {}).MutatePrim(expr);
}

Stmt Substitute(const Stmt& stmt, const PrimVarMap& map, const BufferMap& buffers) {
  return map.empty() && buffers.empty() ? stmt : Substituter(map, buffers).MutateStmt(stmt);
}

Type Substitute(const Type& type, const PrimVarMap& map) {
  return !type || map.empty() ? type : Substituter(map, {}).MutateType(type);
}

std::vector<PrimVar> FreePrimVars(const PrimExpr& expr) {
  FreeVars free;
  free.VisitPrim(expr);
  return std::move(free.vars);
}

bool MentionsAny(const PrimExpr& expr, const std::unordered_set<const PrimVarNode*>& vars) {
  if (vars.empty()) return false;
  return std::ranges::any_of(FreePrimVars(expr), [&](const PrimVar& var) { return vars.contains(var.get()); });
}

bool ReadsMemory(const PrimExpr& expr) {
  struct LoadFinder : PrimVisitor {
    bool found = false;
    void VisitPrim(const PrimExpr& part) override {
      found = found || As<BufferLoadNode>(part) != nullptr;
      if (!found) PrimVisitor::VisitPrim(part);
    }
  } finder;
  finder.VisitPrim(expr);
  return finder.found;
}

std::vector<PrimVar> FreePrimVars(const Type& type) {
  FreeVars free;
  free.VisitType(type);
  return std::move(free.vars);
}

std::vector<PrimVar> FreePrimVars(const PrimFunc& function) {
  FreeVars free;
  for (const PrimFuncParam& param : function->params) {
    if (!param.buffer) free.VisitDefinition(param.var);
  }
  for (const PrimFuncParam& param : function->params) {
    if (param.buffer) VisitFields(free, *param.buffer);
  }
  return std::move(free.vars);
}

}  // namespace ingot::ir
