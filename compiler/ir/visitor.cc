// Dispatch and the default methods of the visitors of both levels, made of the list of kinds (nodes.def) and of the
// nodes' lists of fields. The mutators are in mutator.cc.
#include "compiler/ir/visitor.h"

#include "compiler/ir/field_walk.h"

namespace ingot::ir {

void PrimVisitor::VisitPrim(const PrimExpr& expr) {
  Dispatch(*expr, [this](const auto& node) { Visit(node); });
}
#define INGOT_PRIM_NODE(enumerator, Node) \
  void PrimVisitor::Visit(const Node& node) { VisitFields(*this, node); }
#include "compiler/ir/nodes.def"

void StmtVisitor::VisitStmt(const Stmt& stmt) {
  Dispatch(*stmt, [this](const auto& node) { Visit(node); });
}
#define INGOT_STMT_NODE(enumerator, Node) \
  void StmtVisitor::Visit(const Node& node) { VisitFields(*this, node); }
#include "compiler/ir/nodes.def"

void ExprVisitor::VisitExpr(const Expr& expr) {
  Dispatch(*expr, [this](const auto& node) { Visit(node); });
}
void ExprVisitor::VisitBinding(const Binding& binding) { VisitExpr(binding.value); }
void ExprVisitor::VisitBlock(const BindingBlock& block) {
  for (const Binding& binding : block.bindings) VisitBinding(binding);
}
#define INGOT_EXPR_NODE(enumerator, Node) \
  void ExprVisitor::Visit(const Node& node) { VisitFields(*this, node); }
#include "compiler/ir/nodes.def"

}  // namespace ingot::ir
