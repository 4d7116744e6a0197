// Before: parallel loops may be nested. After: no parallel loop is inside of another one: perfectly nested ones are
// fused to one loop over the product of their extents (one fork-join, even tasks), any other inner one runs serially.
// It comes before buffers are placed, since that gives each task buffers of its own.
#include "compiler/arith/analyzer.h"
#include "compiler/ir/visitor.h"
#include "compiler/transform/tensor/passes.h"

namespace ingot::transform {

using namespace ir;  // NOLINT

namespace {

class ParallelFuser : public StmtMutator {
 protected:
  using StmtMutator::Mutate;
  Stmt Mutate(const Ref<ForNode>& loop) override {
    if (loop->for_kind != ForKind::kParallel) return StmtMutator::Mutate(loop);
    ForNode copy = *loop;
    if (inside_parallel_) {
      copy.for_kind = ForKind::kSerial;
      copy.body = MutateStmt(loop->body);
      return Make<ForNode>(std::move(copy));
    }
    const auto* inner = As<ForNode>(loop->body);
    const bool fusible =
        inner != nullptr && inner->for_kind == ForKind::kParallel && !DependsOn(inner->extent, loop->var);
    if (fusible) {
      copy.var = MakePrimVar(loop->var->name + "_" + inner->var->name, loop->var->dtype);
      // Two extents below 0 are no iterations, though their product is above it.
      arith::Analyzer analyzer;
      const bool is_sure =
          analyzer.ProveLessEqual(Int64(0), loop->extent) || analyzer.ProveLessEqual(Int64(0), inner->extent);
      copy.extent = (is_sure ? loop->extent : Max(loop->extent, IntImm(loop->extent->dtype, 0))) * inner->extent;
      copy.body = Substitute(inner->body, {{loop->var, FloorDiv(copy.var, inner->extent)},
                                           {inner->var, FloorMod(copy.var, inner->extent)}});
      return MutateStmt(Make<ForNode>(std::move(copy)));
    }
    inside_parallel_ = true;
    copy.body = MutateStmt(loop->body);
    inside_parallel_ = false;
    return Make<ForNode>(std::move(copy));
  }

 private:
  static bool DependsOn(const PrimExpr& expr, const PrimVar& var) {
    for (const PrimVar& used : FreePrimVars(expr)) {
      if (used.same_as(var)) return true;
    }
    return false;
  }
  bool inside_parallel_ = false;
};

}  // namespace

Result<PrimFunc> FuseParallelLoops(const PrimFunc& function, const Target&) {
  return WithBody(function, ParallelFuser().MutateStmt(function->body));
}

}  // namespace ingot::transform
