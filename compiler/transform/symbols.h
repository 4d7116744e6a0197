// The symbolic variables of graph functions: where they occur, and copies of functions that have others.
#pragma once

#include <functional>
#include <vector>

#include "compiler/ir/visitor.h"

namespace ingot::transform {

// Calls visit(symbol, whether it gets its value there) for every type and every symbolic expression of a function (not
// of nested ones), in order.
class SymbolVisitor : public ir::ExprVisitor {
 public:
  explicit SymbolVisitor(std::function<void(const ir::PrimVar&, bool binds)> visit) : visit_(std::move(visit)) {}

  void VisitParam(const ir::Var& param) { VisitBinder(param->type); }
  void VisitBinding(const ir::Binding& binding) override;

 protected:
  using ir::ExprVisitor::Visit;
  void Visit(const ir::CallNode& call) override;
  void Visit(const ir::ShapeExprNode& shape) override;
  void Visit(const ir::PrimValueNode& value) override { VisitPrim(value.value); }

 private:
  void VisitPrim(const ir::PrimExpr& expr);
  void VisitType(const ir::Type& type);
  // Dims and scalars that are single variables get their values here.
  void VisitBinder(const ir::Type& type);

  std::function<void(const ir::PrimVar&, bool)> visit_;
};

// Returns the function with new variables, and with the map's symbols in place of its own.
ir::Function RenameSymbols(const ir::Function& function, ir::PrimVarMap map);
// Returns a copy in which everything that is bound is new.
ir::Function CopyFresh(const ir::Function& function);
// Returns the body with these variables in place of the parameters, whose types theirs equal but for the symbols; null
// where they do not.
ir::SeqExpr BodyFor(const ir::Function& function, const std::vector<ir::Var>& args);

}  // namespace ingot::transform
