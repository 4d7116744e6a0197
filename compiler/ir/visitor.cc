// Dispatch and the default methods of the visitors of both levels, which visit the children in order of execution. The
// mutators are in mutator.cc.
#include "compiler/ir/visitor.h"

namespace ingot::ir {

// ---- Tensor level.

void PrimVisitor::VisitPrim(const PrimExpr& expr) {
  switch (expr->kind) {
    case PrimKind::kIntImm:
      return Visit(static_cast<const IntImmNode&>(*expr));
    case PrimKind::kFloatImm:
      return Visit(static_cast<const FloatImmNode&>(*expr));
    case PrimKind::kStringImm:
      return Visit(static_cast<const StringImmNode&>(*expr));
    case PrimKind::kPrimVar:
      return Visit(static_cast<const PrimVarNode&>(*expr));
    case PrimKind::kBinary:
      return Visit(static_cast<const BinaryNode&>(*expr));
    case PrimKind::kNot:
      return Visit(static_cast<const NotNode&>(*expr));
    case PrimKind::kSelect:
      return Visit(static_cast<const SelectNode&>(*expr));
    case PrimKind::kCast:
      return Visit(static_cast<const CastNode&>(*expr));
    case PrimKind::kBufferLoad:
      return Visit(static_cast<const BufferLoadNode&>(*expr));
    case PrimKind::kRamp:
      return Visit(static_cast<const RampNode&>(*expr));
    case PrimKind::kBroadcast:
      return Visit(static_cast<const BroadcastNode&>(*expr));
    case PrimKind::kShuffle:
      return Visit(static_cast<const ShuffleNode&>(*expr));
    case PrimKind::kLet:
      return Visit(static_cast<const LetNode&>(*expr));
    case PrimKind::kPrimCall:
      return Visit(static_cast<const PrimCallNode&>(*expr));
    case PrimKind::kReduce:
      return Visit(static_cast<const ReduceNode&>(*expr));
    case PrimKind::kProducerLoad:
      return Visit(static_cast<const ProducerLoadNode&>(*expr));
  }
  INGOT_UNREACHABLE("PrimKind");
}

void PrimVisitor::Visit(const BinaryNode& node) {
  VisitPrim(node.a);
  VisitPrim(node.b);
}
void PrimVisitor::Visit(const NotNode& node) { VisitPrim(node.a); }
void PrimVisitor::Visit(const SelectNode& node) {
  VisitPrim(node.condition);
  VisitPrim(node.true_value);
  VisitPrim(node.false_value);
}
void PrimVisitor::Visit(const CastNode& node) { VisitPrim(node.value); }
void PrimVisitor::Visit(const BufferLoadNode& node) {
  for (const PrimExpr& index : node.indices) VisitPrim(index);
}
void PrimVisitor::Visit(const RampNode& node) {
  VisitPrim(node.base);
  VisitPrim(node.stride);
}
void PrimVisitor::Visit(const BroadcastNode& node) { VisitPrim(node.value); }
void PrimVisitor::Visit(const ShuffleNode& node) {
  for (const PrimExpr& vector : node.vectors) VisitPrim(vector);
}
void PrimVisitor::Visit(const LetNode& node) {
  VisitPrim(node.value);
  VisitPrim(node.body);
}
void PrimVisitor::Visit(const PrimCallNode& node) {
  for (const PrimExpr& arg : node.args) VisitPrim(arg);
}
void PrimVisitor::Visit(const ReduceNode& node) {
  for (const IterVar& axis : node.axes) {
    VisitPrim(axis->domain.min);
    VisitPrim(axis->domain.extent);
  }
  for (const PrimExpr& init : node.init) VisitPrim(init);
  VisitPrim(node.condition);
  for (const PrimExpr& source : node.source) VisitPrim(source);
}
void PrimVisitor::Visit(const ProducerLoadNode& node) {
  for (const PrimExpr& index : node.indices) VisitPrim(index);
}

void StmtVisitor::VisitStmt(const Stmt& stmt) {
  switch (stmt->kind) {
    case StmtKind::kBufferStore:
      return Visit(static_cast<const BufferStoreNode&>(*stmt));
    case StmtKind::kEvaluate:
      return Visit(static_cast<const EvaluateNode&>(*stmt));
    case StmtKind::kSeq:
      return Visit(static_cast<const SeqNode&>(*stmt));
    case StmtKind::kIf:
      return Visit(static_cast<const IfStmtNode&>(*stmt));
    case StmtKind::kFor:
      return Visit(static_cast<const ForNode&>(*stmt));
    case StmtKind::kWhile:
      return Visit(static_cast<const WhileNode&>(*stmt));
    case StmtKind::kLet:
      return Visit(static_cast<const LetStmtNode&>(*stmt));
    case StmtKind::kAssert:
      return Visit(static_cast<const AssertStmtNode&>(*stmt));
    case StmtKind::kAllocate:
      return Visit(static_cast<const AllocateNode&>(*stmt));
    case StmtKind::kAttr:
      return Visit(static_cast<const AttrStmtNode&>(*stmt));
    case StmtKind::kBlock:
      return Visit(static_cast<const BlockNode&>(*stmt));
    case StmtKind::kBlockRealize:
      return Visit(static_cast<const BlockRealizeNode&>(*stmt));
  }
  INGOT_UNREACHABLE("StmtKind");
}

void StmtVisitor::Visit(const BufferStoreNode& node) {
  VisitPrim(node.value);
  for (const PrimExpr& index : node.indices) VisitPrim(index);
}
void StmtVisitor::Visit(const EvaluateNode& node) { VisitPrim(node.value); }
void StmtVisitor::Visit(const SeqNode& node) {
  for (const Stmt& stmt : node.stmts) VisitStmt(stmt);
}
void StmtVisitor::Visit(const IfStmtNode& node) {
  VisitPrim(node.condition);
  VisitStmt(node.then_case);
  if (node.else_case) VisitStmt(node.else_case);
}
void StmtVisitor::Visit(const ForNode& node) {
  VisitPrim(node.min);
  VisitPrim(node.extent);
  VisitStmt(node.body);
}
void StmtVisitor::Visit(const WhileNode& node) {
  VisitPrim(node.condition);
  VisitStmt(node.body);
}
void StmtVisitor::Visit(const LetStmtNode& node) {
  VisitPrim(node.value);
  VisitStmt(node.body);
}
void StmtVisitor::Visit(const AssertStmtNode& node) {
  VisitPrim(node.condition);
  VisitStmt(node.body);
}
void StmtVisitor::Visit(const AllocateNode& node) { VisitStmt(node.body); }
void StmtVisitor::Visit(const AttrStmtNode& node) {
  if (const auto* value = node.value.get<PrimExpr>()) VisitPrim(*value);
  VisitStmt(node.body);
}
void StmtVisitor::Visit(const BlockNode& node) {
  const auto visit_region = [this](const BufferRegion& region) {
    for (const Range& range : region.region) {
      VisitPrim(range.min);
      VisitPrim(range.extent);
    }
  };
  for (const IterVar& iter : node.iter_vars) {
    VisitPrim(iter->domain.min);
    VisitPrim(iter->domain.extent);
  }
  for (const BufferRegion& region : node.reads) visit_region(region);
  for (const BufferRegion& region : node.writes) visit_region(region);
  for (const MatchBufferRegion& match : node.match_buffers) visit_region(match.source);
  if (node.init) VisitStmt(node.init);
  VisitStmt(node.body);
}
void StmtVisitor::Visit(const BlockRealizeNode& node) {
  for (const PrimExpr& value : node.iter_values) VisitPrim(value);
  VisitPrim(node.predicate);
  VisitStmt(node.block);
}

// ---- Graph level.

void ExprVisitor::VisitExpr(const Expr& expr) {
  switch (expr->kind) {
    case ExprKind::kVar:
      return Visit(static_cast<const VarNode&>(*expr));
    case ExprKind::kConstant:
      return Visit(static_cast<const ConstantNode&>(*expr));
    case ExprKind::kCall:
      return Visit(static_cast<const CallNode&>(*expr));
    case ExprKind::kTuple:
      return Visit(static_cast<const TupleNode&>(*expr));
    case ExprKind::kTupleGetItem:
      return Visit(static_cast<const TupleGetItemNode&>(*expr));
    case ExprKind::kIf:
      return Visit(static_cast<const IfNode&>(*expr));
    case ExprKind::kShapeExpr:
      return Visit(static_cast<const ShapeExprNode&>(*expr));
    case ExprKind::kPrimValue:
      return Visit(static_cast<const PrimValueNode&>(*expr));
    case ExprKind::kStringValue:
      return Visit(static_cast<const StringValueNode&>(*expr));
    case ExprKind::kDataTypeValue:
      return Visit(static_cast<const DataTypeValueNode&>(*expr));
    case ExprKind::kOp:
      return Visit(static_cast<const OpNode&>(*expr));
    case ExprKind::kGlobalVar:
      return Visit(static_cast<const GlobalVarNode&>(*expr));
    case ExprKind::kExternFunc:
      return Visit(static_cast<const ExternFuncNode&>(*expr));
    case ExprKind::kSeqExpr:
      return Visit(static_cast<const SeqExprNode&>(*expr));
    case ExprKind::kFunction:
      return Visit(static_cast<const FunctionNode&>(*expr));
    case ExprKind::kPrimFunc:
      return Visit(static_cast<const PrimFuncNode&>(*expr));
  }
  INGOT_UNREACHABLE("ExprKind");
}

void ExprVisitor::VisitBinding(const Binding& binding) { VisitExpr(binding.value); }
void ExprVisitor::VisitBlock(const BindingBlock& block) {
  for (const Binding& binding : block.bindings) VisitBinding(binding);
}
void ExprVisitor::Visit(const CallNode& node) {
  VisitExpr(node.callee);
  for (const Expr& arg : node.args) VisitExpr(arg);
}
void ExprVisitor::Visit(const TupleNode& node) {
  for (const Expr& field : node.fields) VisitExpr(field);
}
void ExprVisitor::Visit(const TupleGetItemNode& node) { VisitExpr(node.tuple); }
void ExprVisitor::Visit(const IfNode& node) {
  VisitExpr(node.condition);
  VisitExpr(node.then_branch);
  VisitExpr(node.else_branch);
}
void ExprVisitor::Visit(const SeqExprNode& node) {
  for (const BindingBlock& block : node.blocks) VisitBlock(block);
  VisitExpr(node.body);
}
void ExprVisitor::Visit(const FunctionNode& node) { VisitExpr(node.body); }

}  // namespace ingot::ir
