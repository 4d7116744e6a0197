// One walk over a PrimFunc's body with the variables and buffers that are in scope.
#include "compiler/ir/verify_prim_func.h"

#include <string>
#include <unordered_set>

#include "compiler/ir/float_format.h"
#include "compiler/ir/visitor.h"

namespace ingot::ir {
namespace {

// Statements nest as lets, asserts and attributes do, whose body is the rest of a function. What walks them is recursive.
constexpr int kMaxStmtNesting = 8000;
// The arithmetic on indices takes time that grows with the loops around it.
constexpr int kMaxLoopNesting = 64;

bool IsIndex(DataType dtype) { return dtype.is_integral() && dtype.bits >= 32; }

// Walks the body with the variables and buffers that are in scope; keeps the first complaint.
class PrimFuncVerifier : public StmtVisitor {
 public:
  Status Run(const PrimFuncNode& function) {
    where_ = "the signature";
    for (const PrimFuncParam& param : function.params) {
      if (!param.buffer) {
        Define(param.var);
      } else if (!param.var->dtype.is_handle()) {
        Fail("parameter " + param.var->name + " has a buffer but is no handle");
      }
    }
    for (const PrimFuncParam& param : function.params) {
      if (!param.buffer) continue;
      // A parameter's shape, strides and offset bind the symbols in them that were not bound before.
      DefineSymbols(param.buffer->shape);
      DefineLayout(param.buffer);
      if (!vars_.contains(param.var)) Define(param.var);
      Define(param.buffer);
    }
    where_ = "the body";
    VisitStmt(function.body);
    return status_;
  }

  void VisitPrim(const PrimExpr& expr) override {
    if (!status_.ok()) return;
    if (++depth_ > kMaxNesting) return Fail("expressions nest deeper than " + std::to_string(kMaxNesting));
    StmtVisitor::VisitPrim(expr);
    --depth_;
  }
  void VisitStmt(const Stmt& stmt) override {
    if (!status_.ok()) return;
    if (!stmt) return Fail("a missing statement");
    if (++stmt_depth_ > kMaxStmtNesting) return Fail("statements nest deeper than " + std::to_string(kMaxStmtNesting));
    StmtVisitor::VisitStmt(stmt);
    --stmt_depth_;
  }

 protected:
  using StmtVisitor::Visit;
  void Visit(const IntImmNode& node) override {
    if (WrapInt(node.dtype, node.value) != node.value) {
      Fail("the constant " + std::to_string(node.value) + " does not fit " + node.dtype.ToString());
    }
  }
  void Visit(const PrimVarNode& node) override {
    if (!vars_.contains(PrimVar(&node))) Fail("variable " + node.name + " is not in scope");
  }
  void Visit(const BinaryNode& node) override {
    Expect(node.a->dtype == node.b->dtype, "operands of one dtype", node.b->dtype, node.a->dtype);
    const bool logical = node.op == BinaryOp::kAnd || node.op == BinaryOp::kOr;
    if (logical) Expect(node.a->dtype.is_bool(), "bool operands of a logical operator", node.a->dtype);
    StmtVisitor::Visit(node);
  }
  void Visit(const NotNode& node) override {
    Expect(node.a->dtype.is_bool(), "a bool operand of not", node.a->dtype);
    StmtVisitor::Visit(node);
  }
  void Visit(const SelectNode& node) override {
    Expect(node.condition->dtype.is_bool(), "a bool condition", node.condition->dtype);
    Expect(node.true_value->dtype == node.false_value->dtype, "values of one dtype", node.false_value->dtype,
           node.true_value->dtype);
    StmtVisitor::Visit(node);
  }
  void Visit(const CastNode& node) override {
    Expect(node.value->dtype.lanes == node.dtype.lanes, "a cast that keeps lanes", node.value->dtype, node.dtype);
    StmtVisitor::Visit(node);
  }
  void Visit(const BufferLoadNode& node) override {
    Access(node.buffer, node.indices);
    StmtVisitor::Visit(node);
  }
  void Visit(const LetNode& node) override {
    VisitPrim(node.value);
    Expect(node.value->dtype == node.var->dtype, "a value of the variable's dtype", node.value->dtype, node.var->dtype);
    Define(node.var);
    VisitPrim(node.body);
    vars_.erase(node.var);
  }
  void Visit(const PrimCallNode& node) override {
    const IntrinsicRow& row = GetIntrinsicRow(node.op);
    if (row.arity >= 0 && static_cast<size_t>(row.arity) != node.args.size()) {
      return Fail(std::string("T.") + row.name + " takes " + std::to_string(row.arity) + " arguments, got " +
                  std::to_string(node.args.size()));
    }
    if (node.op == Intrinsic::kIfThenElse) {
      Expect(node.args[0]->dtype.is_bool(), "a bool condition", node.args[0]->dtype);
      Expect(node.args[1]->dtype == node.args[2]->dtype, "values of one dtype", node.args[2]->dtype,
             node.args[1]->dtype);
    }
    StmtVisitor::Visit(node);
  }
  void Visit(const ReduceNode&) override { Fail("a reduction expression outside tensor expressions"); }
  void Visit(const ProducerLoadNode&) override { Fail("a tensor's element outside tensor expressions"); }

  void Visit(const BufferStoreNode& node) override {
    where_ = "the store to " + node.buffer->name;
    Access(node.buffer, node.indices);
    DataType dtype = node.buffer->dtype;
    if (!node.indices.empty()) dtype = dtype.with_lanes(dtype.lanes * node.indices.back()->dtype.lanes);
    Expect(node.value->dtype == dtype, "a value of the buffer's dtype", node.value->dtype, dtype);
    StmtVisitor::Visit(node);
  }
  void Visit(const IfStmtNode& node) override {
    Expect(node.condition->dtype.is_bool(), "a bool condition", node.condition->dtype);
    StmtVisitor::Visit(node);
  }
  void Visit(const ForNode& node) override {
    where_ = "loop " + node.var->name;
    if (++num_loops_ > kMaxLoopNesting) return Fail("loops nest deeper than " + std::to_string(kMaxLoopNesting));
    Expect(IsIndex(node.var->dtype), "an integer loop variable", node.var->dtype);
    Expect(node.min->dtype == node.var->dtype, "a first value of the variable's dtype", node.min->dtype,
           node.var->dtype);
    Expect(node.extent->dtype == node.var->dtype, "an extent of the variable's dtype", node.extent->dtype,
           node.var->dtype);
    if ((node.for_kind == ForKind::kThreadBinding) == node.thread_tag.empty()) {
      Fail("a thread tag belongs to thread-bound loops, and to these alone");
    }
    VisitPrim(node.min);
    VisitPrim(node.extent);
    Define(node.var);
    VisitStmt(node.body);
    vars_.erase(node.var);
    --num_loops_;
  }
  void Visit(const WhileNode& node) override {
    Expect(node.condition->dtype == DataType::Bool(), "a bool condition", node.condition->dtype);
    StmtVisitor::Visit(node);
  }
  void Visit(const LetStmtNode& node) override {
    where_ = "let " + node.var->name;
    VisitPrim(node.value);
    Expect(node.value->dtype == node.var->dtype, "a value of the variable's dtype", node.value->dtype, node.var->dtype);
    Define(node.var);
    VisitStmt(node.body);
    vars_.erase(node.var);
  }
  void Visit(const AssertStmtNode& node) override {
    Expect(node.condition->dtype == DataType::Bool(), "a bool condition", node.condition->dtype);
    StmtVisitor::Visit(node);
  }
  void Visit(const AllocateNode& node) override {
    where_ = "the allocation of " + node.buffer->name;
    Define(node.buffer);
    VisitStmt(node.body);
    Undefine(node.buffer);
  }
  void Visit(const AttrStmtNode& node) override {
    where_ = "attribute " + node.key;
    const auto* iter = dynamic_cast<const IterVarNode*>(node.node.get());
    if (iter != nullptr) Define(iter->var);
    StmtVisitor::Visit(node);
    if (iter != nullptr) vars_.erase(iter->var);
  }
  void Visit(const BlockRealizeNode& node) override {
    where_ = "block " + node.block->name;
    if (node.iter_values.size() != node.block->iter_vars.size()) {
      return Fail("has " + std::to_string(node.block->iter_vars.size()) + " iteration variables and " +
                  std::to_string(node.iter_values.size()) + " bindings");
    }
    for (size_t i = 0; i < node.iter_values.size(); ++i) {
      const DataType dtype = node.block->iter_vars[i]->var->dtype;
      Expect(node.iter_values[i]->dtype == dtype, "a binding of the iteration variable's dtype",
             node.iter_values[i]->dtype, dtype);
    }
    Expect(node.predicate->dtype == DataType::Bool(), "a bool predicate", node.predicate->dtype);
    for (const PrimExpr& value : node.iter_values) VisitPrim(value);
    VisitPrim(node.predicate);
    in_realize_ = true;
    VisitStmt(node.block);
  }
  void Visit(const BlockNode& node) override {
    if (!std::exchange(in_realize_, false)) return Fail("block " + node.name + " has no bindings of its variables");
    for (const IterVar& iter : node.iter_vars) {
      VisitPrim(iter->domain.min);
      VisitPrim(iter->domain.extent);
      Define(iter->var);
    }
    for (const Buffer& buffer : node.alloc_buffers) Define(buffer);
    for (const MatchBufferRegion& match : node.match_buffers) {
      Region(match.source);
      DefineLayout(match.buffer);
      Define(match.buffer);
    }
    for (const BufferRegion& region : node.reads) Region(region);
    for (const BufferRegion& region : node.writes) Region(region);
    if (node.init) VisitStmt(node.init);
    where_ = "block " + node.name;
    VisitStmt(node.body);
    for (const MatchBufferRegion& match : node.match_buffers) Undefine(match.buffer);
    for (const Buffer& buffer : node.alloc_buffers) Undefine(buffer);
    for (const IterVar& iter : node.iter_vars) vars_.erase(iter->var);
  }

 private:
  void Fail(const std::string& message) {
    if (status_.ok()) status_ = Status(StatusCode::kBadInput, where_ + ": " + message);
  }
  void Expect(bool condition, const char* what, DataType got, std::optional<DataType> expected = std::nullopt) {
    if (condition) return;
    const std::string where = expected.has_value() ? " (" + expected->ToString() + ")" : "";
    Fail(std::string("expected ") + what + where + ", got " + got.ToString());
  }
  void Define(const PrimVar& var) {
    if (!vars_.insert(var).second) Fail("variable " + var->name + " is bound twice");
  }
  void Define(const Buffer& buffer) {
    for (const PrimExpr& dim : buffer->shape) {
      Expect(IsIndex(dim->dtype), "integer dimensions", dim->dtype);
      VisitPrim(dim);
    }
    for (const PrimExpr& stride : buffer->strides) VisitPrim(stride);
    if (!buffers_.insert(buffer).second) Fail("buffer " + buffer->name + " is defined twice");
    vars_.insert(buffer->data);
  }
  void DefineSymbols(const std::vector<PrimExpr>& exprs) {
    for (const PrimExpr& expr : exprs) {
      for (const PrimVar& var : FreePrimVars(expr)) vars_.insert(var);
    }
  }
  void DefineLayout(const Buffer& buffer) {
    DefineSymbols(buffer->strides);
    if (buffer->elem_offset) DefineSymbols({buffer->elem_offset});
  }
  void Undefine(const Buffer& buffer) {
    buffers_.erase(buffer);
    vars_.erase(buffer->data);
  }
  void Access(const Buffer& buffer, const std::vector<PrimExpr>& indices) {
    // A view of a buffer in scope has that buffer's data variable and one dimension.
    const bool is_view = buffer->shape.size() == 1 && vars_.contains(buffer->data);
    if (!buffers_.contains(buffer) && !is_view) return Fail("buffer " + buffer->name + " is not in scope");
    if (indices.size() != buffer->shape.size()) {
      return Fail("buffer " + buffer->name + " has " + std::to_string(buffer->shape.size()) + " dimensions, got " +
                  std::to_string(indices.size()) + " indices");
    }
    for (size_t i = 0; i < indices.size(); ++i) {
      Expect(IsIndex(indices[i]->dtype), "integer indices", indices[i]->dtype);
      if (i + 1 < indices.size())
        Expect(indices[i]->dtype.is_scalar(), "lanes in the last index alone", indices[i]->dtype);
    }
  }
  void Region(const BufferRegion& region) {
    if (!buffers_.contains(region.buffer)) {
      const bool is_view = vars_.contains(region.buffer->data);
      return Fail("buffer " + region.buffer->name +
                  (is_view ? " is a view of another one's memory, which no block accesses: use the buffer itself"
                           : " is not in scope"));
    }
    if (region.region.size() != region.buffer->shape.size()) {
      return Fail("a region of buffer " + region.buffer->name + " has " + std::to_string(region.region.size()) +
                  " dimensions");
    }
    for (const Range& range : region.region) {
      VisitPrim(range.min);
      VisitPrim(range.extent);
    }
  }

  Status status_;
  std::string where_;
  int depth_ = 0, stmt_depth_ = 0, num_loops_ = 0;
  bool in_realize_ = false;
  std::unordered_set<PrimVar, RefHash, RefSame> vars_;
  std::unordered_set<Buffer, RefHash, RefSame> buffers_;
};

}  // namespace

Status VerifyPrimFunc(const PrimFunc& function) { return PrimFuncVerifier().Run(*function); }

}  // namespace ingot::ir
