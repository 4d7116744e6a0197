// Substitute and FreePrimVars of visitor.h: replaces variables and buffers, and lists the variables that are free in an
// expression or a type, or that a PrimFunc's shapes bind.
#include <unordered_set>

#include "compiler/ir/visitor.h"

namespace ingot::ir {
namespace {

class Substituter : public StmtMutator {
 public:
  Substituter(const PrimVarMap& vars, const BufferMap& buffers) : vars_(vars), buffers_(buffers) {}

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
  Stmt Mutate(const Ref<BlockNode>& block) override {
    for (const Buffer& buffer : block->alloc_buffers) Redefine(buffer);
    for (const MatchBufferRegion& match : block->match_buffers) Redefine(match.buffer);
    return StmtMutator::Mutate(block);
  }
  Stmt Mutate(const Ref<AllocateNode>& node) override {
    Redefine(node->buffer);
    return StmtMutator::Mutate(node);
  }

 private:
  void Redefine(const Buffer& buffer) {
    if (buffers_.contains(buffer)) return;
    BufferNode copy(*buffer);
    bool changed = false;
    const auto mutate = [&](PrimExpr& expr) {
      PrimExpr result = MutatePrim(expr);
      changed |= !result.same_as(expr);
      expr = std::move(result);
    };
    for (PrimExpr& dim : copy.shape) mutate(dim);
    for (PrimExpr& stride : copy.strides) mutate(stride);
    if (copy.elem_offset) mutate(copy.elem_offset);
    if (changed) buffers_[buffer] = Make<BufferNode>(std::move(copy));
  }

  const PrimVarMap& vars_;
  BufferMap buffers_;
};

// Free variables by first occurrence. A variable is bound inside its Let, by an axis of a Reduce, or by the parameters
// of a function type.
class FreeVars : public PrimVisitor {
 public:
  std::vector<PrimVar> vars;

  void VisitAll(const std::vector<PrimExpr>& exprs) {
    for (const PrimExpr& expr : exprs) VisitPrim(expr);
  }
  void VisitType(const Type& type) {
    if (!type) return;
    switch (type->kind) {
      case TypeKind::kObject:
        return;
      case TypeKind::kPrim:
        if (const auto& value = static_cast<const PrimTypeNode&>(*type).value) VisitPrim(value);
        return;
      case TypeKind::kShape:
        if (const auto& dims = static_cast<const ShapeTypeNode&>(*type).dims) VisitAll(*dims);
        return;
      case TypeKind::kTensor:
        if (const auto& dims = static_cast<const TensorTypeNode&>(*type).dims) VisitAll(*dims);
        return;
      case TypeKind::kTuple:
        for (const Type& field : static_cast<const TupleTypeNode&>(*type).fields) VisitType(field);
        return;
      case TypeKind::kCallable: {
        const auto& callable = static_cast<const CallableTypeNode&>(*type);
        FreeVars inner;
        if (callable.params) {
          for (const Type& param : *callable.params) inner.VisitType(param);
        }
        const size_t num_bound = inner.vars.size();
        inner.VisitType(callable.result);
        for (size_t i = num_bound; i < inner.vars.size(); ++i) VisitPrim(inner.vars[i]);
        return;
      }
    }
  }
  void VisitPrim(const PrimExpr& expr) override {
    if (const auto var = AsRef<PrimVarNode>(expr)) {
      if (bound_.insert(var).second) vars.push_back(var);
      return;
    }
    PrimVisitor::VisitPrim(expr);
  }
  void Exclude(const PrimVar& var) { bound_.insert(var); }

 protected:
  void Visit(const LetNode& node) override {
    VisitPrim(node.value);
    Exclude(node.var);
    VisitPrim(node.body);
  }
  void Visit(const ReduceNode& node) override {
    for (const IterVar& axis : node.axes) Exclude(axis->var);
    PrimVisitor::Visit(node);
  }

 private:
  std::unordered_set<PrimVar, RefHash, RefSame> bound_;  // seen, or defined inside
};

}  // namespace

PrimExpr Substitute(const PrimExpr& expr, const PrimVarMap& map) {
  return map.empty() ? expr : Substituter(map, {}).MutatePrim(expr);
}

Stmt Substitute(const Stmt& stmt, const PrimVarMap& map, const BufferMap& buffers) {
  return map.empty() && buffers.empty() ? stmt : Substituter(map, buffers).MutateStmt(stmt);
}

Type Substitute(const Type& type, const PrimVarMap& map) {
  if (!type || map.empty()) return type;
  const auto substitute_dims = [&](const std::vector<PrimExpr>& dims) {
    std::vector<PrimExpr> result;
    for (const PrimExpr& dim : dims) result.push_back(Substitute(dim, map));
    return result;
  };
  const auto substitute_types = [&](const std::vector<Type>& types) {
    std::vector<Type> result;
    for (const Type& inner : types) result.push_back(Substitute(inner, map));
    return result;
  };
  switch (type->kind) {
    case TypeKind::kObject:
      return type;
    case TypeKind::kPrim: {
      const auto& prim = static_cast<const PrimTypeNode&>(*type);
      return prim.value ? Type(Make<PrimTypeNode>(Substitute(prim.value, map))) : type;
    }
    case TypeKind::kShape: {
      const auto& shape = static_cast<const ShapeTypeNode&>(*type);
      return shape.dims ? Type(Make<ShapeTypeNode>(substitute_dims(*shape.dims))) : type;
    }
    case TypeKind::kTensor: {
      const auto& tensor = static_cast<const TensorTypeNode&>(*type);
      if (!tensor.dims) return type;
      return Make<TensorTypeNode>(substitute_dims(*tensor.dims), tensor.dtype, tensor.virtual_device);
    }
    case TypeKind::kTuple:
      return Make<TupleTypeNode>(substitute_types(static_cast<const TupleTypeNode&>(*type).fields));
    case TypeKind::kCallable: {
      CallableTypeNode copy(static_cast<const CallableTypeNode&>(*type));
      if (copy.params) copy.params = substitute_types(*copy.params);
      copy.result = Substitute(copy.result, map);
      return Make<CallableTypeNode>(std::move(copy));
    }
  }
  INGOT_UNREACHABLE("TypeKind");
}

std::vector<PrimVar> FreePrimVars(const PrimExpr& expr) {
  FreeVars free;
  free.VisitPrim(expr);
  return std::move(free.vars);
}

std::vector<PrimVar> FreePrimVars(const Type& type) {
  FreeVars free;
  free.VisitType(type);
  return std::move(free.vars);
}

std::vector<PrimVar> FreePrimVars(const PrimFunc& function) {
  FreeVars free;
  for (const PrimFuncParam& param : function->params) {
    if (!param.buffer) free.Exclude(param.var);
  }
  for (const PrimFuncParam& param : function->params) {
    if (!param.buffer) continue;
    free.VisitAll(param.buffer->shape);
    free.VisitAll(param.buffer->strides);
    if (param.buffer->elem_offset) free.VisitPrim(param.buffer->elem_offset);
  }
  return std::move(free.vars);
}

}  // namespace ingot::ir
