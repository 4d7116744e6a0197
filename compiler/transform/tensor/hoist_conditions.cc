// Before: an If in a loop may not depend on the loop. After: for every serial loop whose body is only such an If, the
// If is around the loop, which then has no branch; and what a serial loop does first, in its first iteration alone (the
// start of a sum), stands in front of the loop. It comes after simplification, which turns predicates of tiles into
// conditions of the outer loops.
#include <algorithm>

#include "compiler/ir/condition.h"
#include "compiler/ir/visitor.h"
#include "compiler/transform/tensor/passes.h"

namespace ingot::transform {

using namespace ir;  // NOLINT

namespace {

class ConditionHoister : public StmtMutator {
 protected:
  using StmtMutator::Mutate;
  Stmt Mutate(const Ref<ForNode>& loop) override {
    const Stmt mutated = StmtMutator::Mutate(loop);
    const auto* node = As<ForNode>(mutated);
    if (node->for_kind != ForKind::kSerial) return mutated;
    if (const auto* seq = As<SeqNode>(node->body)) return WithStartInFront(mutated, *node, *seq);
    const auto* guard = As<IfStmtNode>(node->body);
    if (guard == nullptr || guard->else_case || !guard->condition->dtype.is_scalar()) return mutated;
    if (!IsInvariant(guard->condition, node->var)) return mutated;
    ForNode copy = *node;
    copy.body = guard->then_case;
    Stmt inside = Make<ForNode>(copy);
    if (const auto* seq = As<SeqNode>(copy.body)) inside = WithStartInFront(inside, copy, *seq);
    return Make<IfStmtNode>(guard->condition, std::move(inside), nullptr);
  }

 private:
  static bool StoresAlone(const Stmt& stmt) {
    const auto* seq = As<SeqNode>(stmt);
    return As<BufferStoreNode>(stmt) != nullptr || (seq != nullptr && std::ranges::all_of(seq->stmts, StoresAlone));
  }
  // Where the first statement is an If of "the variable is 0" around stores; it may say more that the loop does not
  // change.
  static Stmt WithStartInFront(const Stmt& loop, const ForNode& node, const SeqNode& body) {
    const auto* guard = As<IfStmtNode>(body.stmts.front());
    if (guard == nullptr || guard->else_case || !StoresAlone(guard->then_case)) return loop;
    if (!guard->condition->dtype.is_scalar() || !IsConstInt(node.min, 0)) return loop;
    bool is_first = false;
    PrimExpr rest;
    for (const PrimExpr& part : ConjunctsOf(guard->condition)) {
      const auto* equal = As<BinaryNode>(part);
      if (equal != nullptr && equal->op == BinaryOp::kEQ && equal->a.get() == node.var.get() &&
          IsConstInt(equal->b, 0)) {
        is_first = true;
      } else if (IsInvariant(part, node.var)) {
        rest = rest ? And(rest, part) : part;
      } else {
        return loop;
      }
    }
    if (!is_first) return loop;
    const auto extent = AsConstInt(node.extent);
    if (!extent) {
      const PrimExpr runs = Int64(0) < node.extent;
      rest = rest ? And(runs, rest) : runs;
    } else if (*extent < 1) {
      return loop;
    }
    Stmt start = Substitute(guard->then_case, {{node.var, node.min}});
    if (rest) start = Make<IfStmtNode>(rest, std::move(start), nullptr);
    ForNode copy = node;
    copy.body = MakeSeq({body.stmts.begin() + 1, body.stmts.end()});
    return MakeSeq({std::move(start), Make<ForNode>(std::move(copy))});
  }
  static bool IsInvariant(const PrimExpr& condition, const PrimVar& var) {
    return !ReadsMemory(condition) && !MentionsAny(condition, {var.get()});
  }
};

}  // namespace

Result<PrimFunc> HoistConditions(const PrimFunc& function, const Target&) {
  return WithBody(function, ConditionHoister().MutateStmt(function->body));
}

}  // namespace ingot::transform
