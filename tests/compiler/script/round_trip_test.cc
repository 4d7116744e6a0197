// 1,000 modules at random read back as they were printed.
#include <doctest/doctest.h>

#include <set>

#include "compiler/ir/visitor.h"
#include "compiler/op/verifier.h"
#include "tests/compiler/round_trip.h"
#include "tests/compiler/script/random_modules.h"

namespace ingot::script {
namespace {

// Which kinds of statements and scalar expressions stand in tensor functions.
class KindCollector : public ir::StmtVisitor {
 public:
  std::set<ir::StmtKind> stmts;
  std::set<ir::PrimKind> prims;

  void VisitStmt(const ir::Stmt& stmt) override {
    stmts.insert(stmt->kind);
    ir::StmtVisitor::VisitStmt(stmt);
  }
  void VisitPrim(const ir::PrimExpr& expr) override {
    prims.insert(expr->kind);
    ir::StmtVisitor::VisitPrim(expr);
  }
};

void CollectKinds(const ir::SeqExpr& seq, std::set<ir::ExprKind>& kinds) {
  for (const ir::BindingBlock& block : seq->blocks) {
    for (const ir::Binding& binding : block.bindings) {
      kinds.insert(binding.value->kind);
      if (const auto* branch = ir::As<ir::IfNode>(binding.value)) {
        CollectKinds(branch->then_branch, kinds);
        CollectKinds(branch->else_branch, kinds);
      }
      if (const auto* function = ir::As<ir::FunctionNode>(binding.value)) CollectKinds(function->body, kinds);
      if (const auto* call = ir::As<ir::CallNode>(binding.value)) kinds.insert(call->callee->kind);
    }
  }
}

TEST_CASE("1,000 modules at random read back structurally equal") {
  KindCollector tensor_level;
  std::set<ir::ExprKind> graph_level;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    const ir::IRModule module = testing::RandomModule(seed);
    const Status valid = op::VerifyModule(module);
    REQUIRE_MESSAGE(valid.ok(), valid.message() << "\n" << PrintModule(module));
    const std::string difference = testing::ReadBackDifference(module);
    REQUIRE_MESSAGE(difference.empty(), difference);
    for (const ir::IRModule::Entry& entry : module.functions()) {
      if (const auto* prim_func = ir::As<ir::PrimFuncNode>(entry.function)) tensor_level.VisitStmt(prim_func->body);
      if (const auto* function = ir::As<ir::FunctionNode>(entry.function)) CollectKinds(function->body, graph_level);
    }
  }
  // Every kind was there: all statements, all expressions but those of tensor expressions, all values and callees.
  CHECK(tensor_level.stmts.size() == static_cast<size_t>(ir::StmtKind::kBlockRealize) + 1);
  for (int kind = 0; kind <= static_cast<int>(ir::PrimKind::kPrimCall); ++kind) {
    const auto prim = static_cast<ir::PrimKind>(kind);
    if (prim == ir::PrimKind::kReduce || prim == ir::PrimKind::kProducerLoad) continue;
    CAPTURE(kind);
    CHECK(tensor_level.prims.contains(prim));
  }
  for (const ir::ExprKind kind :
       {ir::ExprKind::kVar, ir::ExprKind::kConstant, ir::ExprKind::kCall, ir::ExprKind::kTuple,
        ir::ExprKind::kTupleGetItem, ir::ExprKind::kIf, ir::ExprKind::kShapeExpr, ir::ExprKind::kPrimValue,
        ir::ExprKind::kStringValue, ir::ExprKind::kDataTypeValue, ir::ExprKind::kOp, ir::ExprKind::kGlobalVar,
        ir::ExprKind::kExternFunc, ir::ExprKind::kFunction}) {
    CHECK(graph_level.contains(kind));
  }
}

}  // namespace
}  // namespace ingot::script
