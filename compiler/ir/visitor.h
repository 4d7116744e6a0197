// Visitors and mutators, one of each per level, with a method per kind of node (nodes.def). Override the methods of the
// kinds you care about; the default visits (or rebuilds) the children in the order of the node's list of fields. A
// mutator returns the very same node when nothing below changed.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/type.h"

namespace ingot::ir {

// ---- Tensor level: scalar expressions and statements.
class PrimVisitor {
 public:
  virtual ~PrimVisitor() = default;
  virtual void VisitPrim(const PrimExpr& expr);    // dispatches; override to see every expression
  virtual void VisitDefinition(const PrimVar&) {}  // a variable that a node defines, before those who see it

 protected:
#define INGOT_PRIM_NODE(enumerator, Node) virtual void Visit(const Node& node);
#include "compiler/ir/nodes.def"
};
class StmtVisitor : public PrimVisitor {
 public:
  virtual void VisitStmt(const Stmt& stmt);

 protected:
  using PrimVisitor::Visit;
#define INGOT_STMT_NODE(enumerator, Node) virtual void Visit(const Node& node);
#include "compiler/ir/nodes.def"
};
class PrimMutator {
 public:
  virtual ~PrimMutator() = default;
  virtual PrimExpr MutatePrim(const PrimExpr& expr);
  // Uses of a buffer (loads, stores, regions); override to replace buffers. Default: the same.
  virtual Buffer MutateBuffer(const Buffer& buffer) { return buffer; }
  // What a node defines, before the fields that see it; override to define something else there.
  virtual PrimVar DefineVar(const PrimVar& var) { return var; }
  virtual Buffer DefineBuffer(const Buffer& buffer) { return MutateBuffer(buffer); }

 protected:
#define INGOT_PRIM_NODE(enumerator, Node) virtual PrimExpr Mutate(const Ref<Node>& node);
#include "compiler/ir/nodes.def"
};
class StmtMutator : public PrimMutator {
 public:
  virtual Stmt MutateStmt(const Stmt& stmt);

 protected:
  using PrimMutator::Mutate;
#define INGOT_STMT_NODE(enumerator, Node) virtual Stmt Mutate(const Ref<Node>& node);
#include "compiler/ir/nodes.def"
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
// Whether one of the variables is free in the expression.
bool MentionsAny(const PrimExpr& expr, const std::unordered_set<const PrimVarNode*>& vars);
// Whether the expression loads elements of buffers.
bool ReadsMemory(const PrimExpr& expr);

// ---- Graph level. Iterates over bindings; recursion follows nested scopes alone (If, nested functions).
class ExprVisitor {
 public:
  virtual ~ExprVisitor() = default;
  virtual void VisitExpr(const Expr& expr);
  virtual void VisitBinding(const Binding& binding);
  virtual void VisitBlock(const BindingBlock& block);

 protected:
#define INGOT_EXPR_NODE(enumerator, Node) virtual void Visit(const Node& node);
#include "compiler/ir/nodes.def"
};
// Rebuilds functions binding by binding. MutateBinding may emit any number of bindings with Emit; a variable whose type
// changed is replaced by a new one, and uses follow (var_map_).
class ExprMutator {
 public:
  virtual ~ExprMutator() = default;
  virtual Expr MutateExpr(const Expr& expr);
  Function MutateFunction(const Function& function);

 protected:
  virtual void MutateBinding(const Binding& binding);  // default: Emit with the mutated value
  // Default of a variable: var_map_, else the same.
#define INGOT_EXPR_NODE(enumerator, Node) virtual Expr Mutate(const Ref<Node>& node);
#include "compiler/ir/nodes.def"

  void Emit(Binding binding) { current_block_->bindings.push_back(std::move(binding)); }
  // Binds value to a new variable of its type, named after the hint (dataflow as the current block).
  Var EmitValue(Expr value, const std::string& hint);
  std::unordered_map<Var, Expr, RefHash, RefSame> var_map_;
  BindingBlock* current_block_ = nullptr;

 private:
  template <typename T>
  Expr MutateDefault(const Ref<T>& node);  // in mutator.cc
};

}  // namespace ingot::ir
