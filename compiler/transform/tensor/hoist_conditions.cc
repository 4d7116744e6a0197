// Before: an If in a loop may not depend on the loop. After: for every serial loop whose body is only such an If, the
// If is around the loop, which then has no branch. It comes after simplification, which turns predicates of tiles into
// conditions of the outer loops.
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
    const auto* guard = As<IfStmtNode>(node->body);
    if (guard == nullptr || guard->else_case || !guard->condition->dtype.is_scalar()) return mutated;
    if (!IsInvariant(guard->condition, node->var)) return mutated;
    ForNode copy = *node;
    copy.body = guard->then_case;
    return Make<IfStmtNode>(guard->condition, Make<ForNode>(std::move(copy)), nullptr);
  }

 private:
  static bool IsInvariant(const PrimExpr& condition, const PrimVar& var) {
    return !ReadsMemory(condition) && !MentionsAny(condition, {var.get()});
  }
};

}  // namespace

Result<PrimFunc> HoistConditions(const PrimFunc& function, const Target&) {
  return WithBody(function, ConditionHoister().MutateStmt(function->body));
}

}  // namespace ingot::transform
