// Symbols are renamed in every type that an expression carries, since types are not inferred again.
#include "compiler/transform/symbols.h"

#include <utility>
#include <vector>

#include "compiler/ir/structural.h"

namespace ingot::transform {

using ir::As;
using ir::AsRef;
using ir::Expr;
using ir::PrimVar;
using ir::Type;
using ir::Var;

namespace {

// Replaces a function's symbols by others.
class SymbolRenamer : public ir::ExprMutator {
 public:
  explicit SymbolRenamer(ir::PrimVarMap map) : map_(std::move(map)) {}

  ir::SeqExpr Body(const ir::Function& function, const std::vector<Var>& args) {
    for (size_t i = 0; i < args.size(); ++i) var_map_[function->params[i]] = args[i];
    return ir::Downcast<ir::SeqExprNode>(MutateExpr(function->body));
  }

  ir::Function Run(const ir::Function& function) {
    ir::FunctionNode copy = *function;
    for (Var& param : copy.params) param = Rename(param);
    copy.result_type = ir::Substitute(copy.result_type, map_);
    copy.body = ir::Downcast<ir::SeqExprNode>(MutateExpr(copy.body));
    return ir::Make<ir::FunctionNode>(std::move(copy));
  }

 protected:
  using ir::ExprMutator::Mutate;
  void MutateBinding(const ir::Binding& binding) override {
    const Expr value = MutateExpr(binding.value);
    Emit({Rename(binding.var), value, ir::Substitute(binding.match_cast, map_), binding.span});
  }
  Expr Mutate(const ir::Call& call) override {
    ir::CallNode copy = *ir::Downcast<ir::CallNode>(ir::ExprMutator::Mutate(call));
    for (Type& type : copy.type_args) type = ir::Substitute(type, map_);
    return Typed(std::move(copy));
  }
  Expr Mutate(const ir::Ref<ir::TupleNode>& node) override {
    return Typed(*ir::Downcast<ir::TupleNode>(ir::ExprMutator::Mutate(node)));
  }
  Expr Mutate(const ir::Ref<ir::TupleGetItemNode>& node) override {
    return Typed(*ir::Downcast<ir::TupleGetItemNode>(ir::ExprMutator::Mutate(node)));
  }
  Expr Mutate(const ir::Ref<ir::IfNode>& node) override {
    return Typed(*ir::Downcast<ir::IfNode>(ir::ExprMutator::Mutate(node)));
  }
  Expr Mutate(const ir::SeqExpr& node) override {
    return Typed(*ir::Downcast<ir::SeqExprNode>(ir::ExprMutator::Mutate(node)));
  }
  Expr Mutate(const ir::Ref<ir::ShapeExprNode>& node) override {
    std::vector<ir::PrimExpr> dims;
    for (const ir::PrimExpr& dim : node->dims) dims.push_back(ir::Substitute(dim, map_));
    return ir::Make<ir::ShapeExprNode>(std::move(dims));
  }
  Expr Mutate(const ir::Ref<ir::PrimValueNode>& node) override {
    return ir::Make<ir::PrimValueNode>(ir::Substitute(node->value, map_));
  }

 private:
  template <typename Node>
  Expr Typed(Node node) {
    node.type = ir::Substitute(node.type, map_);
    return ir::Make<Node>(std::move(node));
  }
  Var Rename(const Var& var) {
    ir::VarNode copy = *var;
    copy.type = ir::Substitute(copy.type, map_);
    const Var renamed = ir::Make<ir::VarNode>(std::move(copy));
    var_map_[var] = renamed;
    return renamed;
  }

  const ir::PrimVarMap map_;
};

}  // namespace

void SymbolVisitor::VisitBinding(const ir::Binding& binding) {
  VisitExpr(binding.value);
  if (binding.is_match_cast()) {
    VisitBinder(binding.match_cast);
  } else {
    VisitType(binding.var->type);
  }
}

void SymbolVisitor::Visit(const ir::CallNode& call) {
  for (const Type& type : call.type_args) VisitType(type);
  ir::ExprVisitor::Visit(call);
}

void SymbolVisitor::Visit(const ir::ShapeExprNode& shape) {
  for (const ir::PrimExpr& dim : shape.dims) VisitPrim(dim);
}

void SymbolVisitor::VisitPrim(const ir::PrimExpr& expr) {
  for (const PrimVar& var : ir::FreePrimVars(expr)) visit_(var, false);
}

void SymbolVisitor::VisitType(const Type& type) {
  for (const PrimVar& var : ir::FreePrimVars(type)) visit_(var, false);
}

void SymbolVisitor::VisitBinder(const Type& type) {
  const auto bind = [&](const ir::PrimExpr& expr) {
    if (const PrimVar var = AsRef<ir::PrimVarNode>(expr)) visit_(var, true);
  };
  if (const auto* tensor = As<ir::TensorTypeNode>(type); tensor != nullptr && tensor->dims) {
    for (const ir::PrimExpr& dim : *tensor->dims) bind(dim);
  } else if (const auto* shape = As<ir::ShapeTypeNode>(type); shape != nullptr && shape->dims) {
    for (const ir::PrimExpr& dim : *shape->dims) bind(dim);
  } else if (const auto* prim = As<ir::PrimTypeNode>(type); prim != nullptr && prim->value) {
    bind(prim->value);
  } else if (const auto* tuple = As<ir::TupleTypeNode>(type)) {
    for (const Type& field : tuple->fields) VisitBinder(field);
  }
  VisitType(type);
}

ir::Function RenameSymbols(const ir::Function& function, ir::PrimVarMap map) {
  return SymbolRenamer(std::move(map)).Run(function);
}

ir::Function CopyFresh(const ir::Function& function) {
  ir::PrimVarMap fresh;
  SymbolVisitor visitor([&](const PrimVar& var, bool) {
    if (!fresh.contains(var)) fresh.emplace(var, ir::MakePrimVar(var->name, var->dtype));
  });
  for (const Var& param : function->params) visitor.VisitParam(param);
  visitor.VisitExpr(function->body);
  return RenameSymbols(function, std::move(fresh));
}

ir::SeqExpr BodyFor(const ir::Function& function, const std::vector<Var>& args) {
  const auto symbols_of = [](const std::vector<Var>& params) {
    std::vector<PrimVar> symbols;
    SymbolVisitor visitor([&](const PrimVar& var, bool) { symbols.push_back(var); });
    for (const Var& param : params) visitor.VisitParam(param);
    return symbols;
  };
  const ir::Function fresh = CopyFresh(function);
  const std::vector<PrimVar> own = symbols_of(fresh->params), given = symbols_of(args);
  if (args.size() != fresh->params.size() || own.size() != given.size()) return nullptr;
  ir::PrimVarMap map;
  for (size_t i = 0; i < own.size(); ++i) map.emplace(own[i], given[i]);
  for (size_t i = 0; i < args.size(); ++i) {
    if (!ir::StructuralEqual(ir::Substitute(fresh->params[i]->type, map), args[i]->type)) return nullptr;
  }
  return SymbolRenamer(std::move(map)).Body(fresh, args);
}

}  // namespace ingot::transform
