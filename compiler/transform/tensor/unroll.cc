// Before: loops of kind unrolled have a constant extent. After: there are none; their bodies are repeated per iteration
// with the variable replaced by a constant, so that every index of an accumulator tile is constant. It comes after
// vectorisation, which then handles each body once. A loop whose copies would be more statements than code of any use
// has stays a loop.
#include <algorithm>

#include "compiler/ir/fresh_copy.h"
#include "compiler/ir/visitor.h"
#include "compiler/transform/tensor/passes.h"

namespace ingot::transform {

using namespace ir;  // NOLINT

namespace {

// Statements that the copies of one function's loops may have.
constexpr int64_t kMaxCopied = 8192;

class StmtCounter : public StmtVisitor {
 public:
  void VisitStmt(const Stmt& stmt) override {
    ++count;
    StmtVisitor::VisitStmt(stmt);
  }
  void VisitPrim(const PrimExpr&) override {}
  int64_t count = 0;
};

class Unroller : public StmtMutator {
 public:
  Status status;

 protected:
  using StmtMutator::Mutate;
  Stmt Mutate(const Ref<ForNode>& loop) override {
    Stmt mutated = StmtMutator::Mutate(loop);
    if (loop->for_kind != ForKind::kUnrolled) return mutated;
    const auto* node = As<ForNode>(mutated);
    const auto extent = AsConstInt(node->extent);
    if (!extent) {
      status = Status(StatusCode::kInvalidArgument, "unroll: loop " + node->var->name + " has no constant extent");
      return mutated;
    }
    StmtCounter body;
    body.VisitStmt(node->body);
    if (*extent > (kMaxCopied - copied_) / body.count) {
      ForNode serial = *node;
      serial.for_kind = ForKind::kSerial;
      return Make<ForNode>(std::move(serial));
    }
    copied_ += std::max(*extent, int64_t{0}) * body.count;
    std::vector<Stmt> copies;
    for (int64_t i = 0; i < *extent; ++i) {
      copies.push_back(CopyFresh(Substitute(node->body, {{node->var, IntImm(node->var->dtype, i)}})));
    }
    return MakeSeq(std::move(copies));
  }

 private:
  int64_t copied_ = 0;
};

}  // namespace

Result<PrimFunc> UnrollLoops(const PrimFunc& function, const Target&) {
  Unroller unroller;
  Stmt body = unroller.MutateStmt(function->body);
  INGOT_RETURN_IF_ERROR(unroller.status);
  return WithBody(function, std::move(body));
}

}  // namespace ingot::transform
