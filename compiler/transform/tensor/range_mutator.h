// What a mutator of lowered functions derives from to ask its analyzer: the analyzer is told of each loop's range and of
// each let's value before the mutator comes to their bodies. A variable that nobody told it of counts as a dimension,
// which is at least 0.
#pragma once

#include "compiler/arith/analyzer.h"
#include "compiler/ir/visitor.h"

namespace ingot::transform {

class RangeMutator : public ir::StmtMutator {
 protected:
  using ir::StmtMutator::Mutate;
  ir::Stmt Mutate(const ir::Ref<ir::ForNode>& loop) override {
    analyzer_.Bind(loop->var, ir::Range{loop->min, loop->extent});
    return StmtMutator::Mutate(loop);
  }
  ir::Stmt Mutate(const ir::Ref<ir::LetStmtNode>& let) override {
    analyzer_.BindLet(let->var, let->value);
    return StmtMutator::Mutate(let);
  }
  ir::PrimExpr Mutate(const ir::Ref<ir::LetNode>& let) override {
    analyzer_.BindLet(let->var, let->value);
    return StmtMutator::Mutate(let);
  }

  arith::Analyzer analyzer_;
};

}  // namespace ingot::transform
