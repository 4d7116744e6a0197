// Visitors and mutators, one of each per level. Override the methods of the kinds you care about; the default visits
// (or rebuilds) the children in order of execution. A mutator returns the very same node when nothing below changed.
// Dispatch is one exhaustive switch per class (visitor.cc, mutator.cc).
#pragma once

#include <unordered_map>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/type.h"

namespace ingot::ir {

// ---- Tensor level: scalar expressions and statements.
class PrimVisitor {
 public:
  virtual ~PrimVisitor() = default;
  virtual void VisitPrim(const PrimExpr& expr);  // dispatches; override to see every expression

 protected:
  virtual void Visit(const IntImmNode&) {}
  virtual void Visit(const FloatImmNode&) {}
  virtual void Visit(const StringImmNode&) {}
  virtual void Visit(const PrimVarNode&) {}
  virtual void Visit(const BinaryNode&);
  virtual void Visit(const NotNode&);
  virtual void Visit(const SelectNode&);
  virtual void Visit(const CastNode&);
  virtual void Visit(const BufferLoadNode&);
  virtual void Visit(const RampNode&);
  virtual void Visit(const BroadcastNode&);
  virtual void Visit(const ShuffleNode&);
  virtual void Visit(const LetNode&);
  virtual void Visit(const PrimCallNode&);
  virtual void Visit(const ReduceNode&);
  virtual void Visit(const ProducerLoadNode&);
};
class StmtVisitor : public PrimVisitor {
 public:
  virtual void VisitStmt(const Stmt& stmt);

 protected:
  using PrimVisitor::Visit;
  virtual void Visit(const BufferStoreNode&);
  virtual void Visit(const EvaluateNode&);
  virtual void Visit(const SeqNode&);
  virtual void Visit(const IfStmtNode&);
  virtual void Visit(const ForNode&);
  virtual void Visit(const WhileNode&);
  virtual void Visit(const LetStmtNode&);
  virtual void Visit(const AssertStmtNode&);
  virtual void Visit(const AllocateNode&);
  virtual void Visit(const AttrStmtNode&);
  virtual void Visit(const BlockNode&);
  virtual void Visit(const BlockRealizeNode&);
};
class PrimMutator {
 public:
  virtual ~PrimMutator() = default;
  virtual PrimExpr MutatePrim(const PrimExpr& expr);

 protected:
  // Uses of a buffer (loads, stores, regions); override to replace buffers. Default: the same.
  virtual Buffer MutateBuffer(const Buffer& buffer) { return buffer; }
  virtual PrimExpr Mutate(const Ref<IntImmNode>&);
  virtual PrimExpr Mutate(const Ref<FloatImmNode>&);
  virtual PrimExpr Mutate(const Ref<StringImmNode>&);
  virtual PrimExpr Mutate(const Ref<PrimVarNode>&);
  virtual PrimExpr Mutate(const Ref<BinaryNode>&);
  virtual PrimExpr Mutate(const Ref<NotNode>&);
  virtual PrimExpr Mutate(const Ref<SelectNode>&);
  virtual PrimExpr Mutate(const Ref<CastNode>&);
  virtual PrimExpr Mutate(const Ref<BufferLoadNode>&);
  virtual PrimExpr Mutate(const Ref<RampNode>&);
  virtual PrimExpr Mutate(const Ref<BroadcastNode>&);
  virtual PrimExpr Mutate(const Ref<ShuffleNode>&);
  virtual PrimExpr Mutate(const Ref<LetNode>&);
  virtual PrimExpr Mutate(const Ref<PrimCallNode>&);
  virtual PrimExpr Mutate(const Ref<ReduceNode>&);
  virtual PrimExpr Mutate(const Ref<ProducerLoadNode>&);
};
class StmtMutator : public PrimMutator {
 public:
  virtual Stmt MutateStmt(const Stmt& stmt);

 protected:
  using PrimMutator::Mutate;
  virtual Stmt Mutate(const Ref<BufferStoreNode>&);
  virtual Stmt Mutate(const Ref<EvaluateNode>&);
  virtual Stmt Mutate(const Ref<SeqNode>&);
  virtual Stmt Mutate(const Ref<IfStmtNode>&);
  virtual Stmt Mutate(const Ref<ForNode>&);
  virtual Stmt Mutate(const Ref<WhileNode>&);
  virtual Stmt Mutate(const Ref<LetStmtNode>&);
  virtual Stmt Mutate(const Ref<AssertStmtNode>&);
  virtual Stmt Mutate(const Ref<AllocateNode>&);
  virtual Stmt Mutate(const Ref<AttrStmtNode>&);
  virtual Stmt Mutate(const Ref<BlockNode>&);
  virtual Stmt Mutate(const Ref<BlockRealizeNode>&);
  BufferRegion MutateRegion(const BufferRegion& region);
};
using PrimVarMap = std::unordered_map<PrimVar, PrimExpr, RefHash, RefSame>;
using BufferMap = std::unordered_map<Buffer, Buffer, RefHash, RefSame>;
PrimExpr Substitute(const PrimExpr& expr, const PrimVarMap& map);
// Also replaces buffers where map says so (their shapes are taken as they are in the new buffer).
Stmt Substitute(const Stmt& stmt, const PrimVarMap& map, const BufferMap& buffers = {});
Type Substitute(const Type& type, const PrimVarMap& map);
// Free symbolic variables by first occurrence, each once.
std::vector<PrimVar> FreePrimVars(const PrimExpr& expr);
std::vector<PrimVar> FreePrimVars(const Type& type);
std::vector<PrimVar> FreePrimVars(const PrimFunc& function);  // those that its buffers' shapes bind, in parameter order

// ---- Graph level. Iterates over bindings; recursion follows nested scopes alone (If, nested functions).
class ExprVisitor {
 public:
  virtual ~ExprVisitor() = default;
  virtual void VisitExpr(const Expr& expr);
  virtual void VisitBinding(const Binding& binding);
  virtual void VisitBlock(const BindingBlock& block);

 protected:
  virtual void Visit(const VarNode&) {}
  virtual void Visit(const ConstantNode&) {}
  virtual void Visit(const CallNode&);
  virtual void Visit(const TupleNode&);
  virtual void Visit(const TupleGetItemNode&);
  virtual void Visit(const IfNode&);
  virtual void Visit(const ShapeExprNode&) {}
  virtual void Visit(const PrimValueNode&) {}
  virtual void Visit(const StringValueNode&) {}
  virtual void Visit(const DataTypeValueNode&) {}
  virtual void Visit(const OpNode&) {}
  virtual void Visit(const GlobalVarNode&) {}
  virtual void Visit(const ExternFuncNode&) {}
  virtual void Visit(const SeqExprNode&);
  virtual void Visit(const FunctionNode&);
  virtual void Visit(const PrimFuncNode&) {}
};
// Rebuilds functions binding by binding. VisitBinding may emit any number of bindings with Emit; a variable whose type
// changed is replaced by a new one, and uses follow (var_map_).
class ExprMutator {
 public:
  virtual ~ExprMutator() = default;
  virtual Expr MutateExpr(const Expr& expr);
  Function MutateFunction(const Function& function);

 protected:
  virtual void MutateBinding(const Binding& binding);  // default: Emit with the mutated value
  virtual Expr Mutate(const Ref<VarNode>&);            // default: var_map_, else the same
  virtual Expr Mutate(const Ref<ConstantNode>&);
  virtual Expr Mutate(const Ref<CallNode>&);
  virtual Expr Mutate(const Ref<TupleNode>&);
  virtual Expr Mutate(const Ref<TupleGetItemNode>&);
  virtual Expr Mutate(const Ref<IfNode>&);
  virtual Expr Mutate(const Ref<ShapeExprNode>&);
  virtual Expr Mutate(const Ref<PrimValueNode>&);
  virtual Expr Mutate(const Ref<StringValueNode>&);
  virtual Expr Mutate(const Ref<DataTypeValueNode>&);
  virtual Expr Mutate(const Ref<OpNode>&);
  virtual Expr Mutate(const Ref<GlobalVarNode>&);
  virtual Expr Mutate(const Ref<ExternFuncNode>&);
  virtual Expr Mutate(const Ref<SeqExprNode>&);
  virtual Expr Mutate(const Ref<FunctionNode>&);
  virtual Expr Mutate(const Ref<PrimFuncNode>&);

  void Emit(Binding binding) { current_block_->bindings.push_back(std::move(binding)); }
  // Binds value to a new variable of its type, named after the hint (dataflow as the current block).
  Var EmitValue(Expr value, const std::string& hint);
  std::unordered_map<Var, Expr, RefHash, RefSame> var_map_;
  BindingBlock* current_block_ = nullptr;
};

}  // namespace ingot::ir
