// Before and after: the same language. Brings index arithmetic and conditions to the analyzer's canonical form under
// the ranges of the loops and the conditions around them; removes loops of one iteration that are no threads, Ifs that
// are always or never taken, stores to buffers that are never read, and empty statements; makes indices int64. It runs
// after each pass that leaves such things, and once more as the last pass.
#include <algorithm>
#include <unordered_set>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/visitor.h"
#include "compiler/transform/tensor/passes.h"
#include "compiler/transform/tensor/range_mutator.h"

namespace ingot::transform {

using namespace ir;  // NOLINT

namespace {

class TensorSimplifier : public RangeMutator {
 public:
  PrimExpr MutatePrim(const PrimExpr& expr) override {
    const bool integer = expr->dtype.is_integral() || expr->dtype.is_bool();
    if (integer && expr->dtype.is_scalar() && IsArithmetic(expr) && !analyzer_.IsOfElements(expr)) {
      return analyzer_.Simplify(expr);
    }
    return StmtMutator::MutatePrim(expr);
  }

 protected:
  using RangeMutator::Mutate;

  PrimExpr Mutate(const Ref<BufferLoadNode>& load) override {
    return Make<BufferLoadNode>(load->buffer, Indices(load->indices));
  }
  Stmt Mutate(const Ref<BufferStoreNode>& store) override {
    return Make<BufferStoreNode>(store->buffer, MutatePrim(store->value), Indices(store->indices));
  }
  PrimExpr Mutate(const Ref<PrimCallNode>& call) override {
    if (call->op != Intrinsic::kIfThenElse || !call->args[0]->dtype.is_scalar()) return StmtMutator::Mutate(call);
    PrimExpr condition = MutatePrim(call->args[0]);
    if (const auto value = AsConstInt(condition)) return MutatePrim(call->args[*value != 0 ? 1 : 2]);
    PrimExpr yes = Under(condition, [&] { return MutatePrim(call->args[1]); });
    PrimExpr no = Under(Not(condition), [&] { return MutatePrim(call->args[2]); });
    return Make<PrimCallNode>(call->dtype, call->op, std::vector<PrimExpr>{condition, yes, no});
  }
  Stmt Mutate(const Ref<ForNode>& loop) override {
    ForNode copy = *loop;
    copy.extent = Index(loop->extent);
    if (IsConstInt(copy.extent, 0)) return MakeSeq({});
    if (IsConstInt(copy.extent, 1)) {
      const Stmt once = Substitute(loop->body, {{loop->var, copy.min}});
      if (copy.for_kind != ForKind::kThreadBinding) return MutateStmt(once);
      copy.body = MutateStmt(once);
      return IsEmptyStmt(copy.body) ? copy.body : Make<ForNode>(std::move(copy));
    }
    analyzer_.Bind(loop->var, Range{copy.min, copy.extent});
    copy.body = MutateStmt(loop->body);
    if (IsEmptyStmt(copy.body)) return copy.body;
    return Make<ForNode>(std::move(copy));
  }
  Stmt Mutate(const Ref<IfStmtNode>& node) override {
    PrimExpr condition = MutatePrim(node->condition);
    if (const auto value = AsConstInt(condition)) {
      if (*value != 0) return MutateStmt(node->then_case);
      return node->else_case ? MutateStmt(node->else_case) : MakeSeq({});
    }
    Stmt then_case = Under(condition, [&] { return MutateStmt(node->then_case); });
    Stmt else_case = node->else_case ? Under(Not(condition), [&] { return MutateStmt(node->else_case); }) : nullptr;
    if (else_case && IsEmptyStmt(else_case)) else_case = nullptr;
    if (!else_case && IsEmptyStmt(then_case)) return then_case;
    return Make<IfStmtNode>(std::move(condition), std::move(then_case), std::move(else_case));
  }
  Stmt Mutate(const Ref<SeqNode>& seq) override {
    std::vector<Stmt> stmts;
    for (const Stmt& stmt : seq->stmts) {
      Stmt mutated = MutateStmt(stmt);
      if (!IsEmptyStmt(mutated)) stmts.push_back(std::move(mutated));
    }
    return MakeSeq(std::move(stmts));
  }
  Stmt Mutate(const Ref<AllocateNode>& allocate) override {
    Stmt body = MutateStmt(allocate->body);
    if (IsEmptyStmt(body)) return body;
    return Make<AllocateNode>(allocate->buffer, std::move(body), allocate->annotations);
  }
  Stmt Mutate(const Ref<EvaluateNode>& node) override {
    return HasEffect(node->value) ? StmtMutator::Mutate(node) : MakeSeq({});
  }

 private:
  // Whether the analyzer simplifies the expression: arithmetic over variables and constants. In loads, calls and lets
  // only the operands are simplified.
  static bool IsArithmetic(const PrimExpr& expr) {
    struct Checker : PrimVisitor {
      bool plain = true;
      using PrimVisitor::Visit;
      void Visit(const BufferLoadNode&) override { plain = false; }
      void Visit(const PrimCallNode&) override { plain = false; }
      void Visit(const LetNode&) override { plain = false; }
      void Visit(const FloatImmNode&) override { plain = false; }
      void Visit(const BroadcastNode&) override { plain = false; }
      void Visit(const ShuffleNode&) override { plain = false; }
      void Visit(const RampNode&) override { plain = false; }
    } checker;
    checker.VisitPrim(expr);
    return checker.plain;
  }
  static bool HasEffect(const PrimExpr& expr) {
    struct Checker : PrimVisitor {
      bool effect = false;
      using PrimVisitor::Visit;
      void Visit(const PrimCallNode& call) override {
        effect |= GetIntrinsicRow(call.op).traits == IntrinsicRow::kEffect;
        PrimVisitor::Visit(call);
      }
    } checker;
    checker.VisitPrim(expr);
    return checker.effect;
  }
  // Runs f with the fact as known. A copy of the analyzer keeps the fact local.
  template <typename F>
  auto Under(const PrimExpr& fact, F&& f) -> decltype(f()) {
    arith::Analyzer saved = analyzer_;
    analyzer_.Assume(fact);
    auto result = f();
    analyzer_ = std::move(saved);
    return result;
  }
  PrimExpr Index(const PrimExpr& index) {
    PrimExpr result = MutatePrim(index);
    const DataType wide = DataType::Int(64, result->dtype.lanes);
    return result->dtype == wide ? result : MutatePrim(Cast(wide, result));
  }
  std::vector<PrimExpr> Indices(const std::vector<PrimExpr>& indices) {
    std::vector<PrimExpr> result;
    for (const PrimExpr& index : indices) result.push_back(Index(index));
    return result;
  }
};

// Stores to local or workspace buffers that are never loaded have no effect.
class LoadedBuffers : public StmtVisitor {
 public:
  std::unordered_set<const PrimVarNode*> loaded;  // data variables: views share them

 protected:
  using StmtVisitor::Visit;
  void Visit(const BufferLoadNode& load) override {
    loaded.insert(load.buffer->data.get());
    StmtVisitor::Visit(load);
  }
};
class DeadStoreRemover : public StmtMutator {
 public:
  explicit DeadStoreRemover(const std::unordered_set<const PrimVarNode*>& loaded) : loaded_(loaded) {}

 protected:
  using StmtMutator::Mutate;
  Stmt Mutate(const Ref<AllocateNode>& allocate) override {
    if (loaded_.count(allocate->buffer->data.get()) != 0) return StmtMutator::Mutate(allocate);
    dead_.insert(allocate->buffer->data.get());
    return MutateStmt(allocate->body);
  }
  Stmt Mutate(const Ref<BufferStoreNode>& store) override {
    return dead_.count(store->buffer->data.get()) != 0 ? MakeSeq({}) : Stmt(store);
  }

 private:
  const std::unordered_set<const PrimVarNode*>& loaded_;
  std::unordered_set<const PrimVarNode*> dead_;
};

}  // namespace

Result<PrimFunc> SimplifyTensor(const PrimFunc& function, const Target&) {
  LoadedBuffers loads;
  loads.VisitStmt(function->body);
  Stmt body = DeadStoreRemover(loads.loaded).MutateStmt(function->body);
  return WithBody(function, TensorSimplifier().MutateStmt(body));
}

}  // namespace ingot::transform
