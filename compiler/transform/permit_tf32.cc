// permit_tf32
//   Before: tensor functions are not scheduled.
//   After:  for CUDA, and where the options permit the group tf32, functions that add up products of two elements of
//           float32 have the attribute "ingot.tf32" (schedule/device_loops.h), and are logged; nothing else changes.
//   The last pass: functions of before would lose the attribute where they are fused or replaced.
#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "compiler/ir/visitor.h"
#include "compiler/schedule/device_loops.h"
#include "compiler/schedule/primitives.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"

namespace ingot::transform {

namespace {

struct Products : ir::StmtVisitor {
  bool any = false;
  using ir::StmtVisitor::Visit;
  void Visit(const ir::BlockNode& block) override {
    any |= IsProduct(block);
    ir::StmtVisitor::Visit(block);
  }

 private:
  static bool IsProduct(const ir::BlockNode& block) {
    const std::optional<schedule::Reduction> reduction = schedule::MatchReduction(block);
    if (!reduction || reduction->op != ir::BinaryOp::kAdd) return false;
    const auto factors = schedule::FactorsOfProduct(reduction->source);
    return factors && factors->size() == 2 && std::ranges::all_of(*factors, [](const ir::BufferLoadNode* factor) {
             return factor->buffer->dtype == DataType::Float(32);
           });
  }
};

// Where each tensor function is first called from.
struct CallSites : ir::ExprVisitor {
  std::map<std::string, ir::Span> spans;
  using ir::ExprVisitor::Visit;
  void VisitBinding(const ir::Binding& binding) override {
    if (const std::optional<CallTir> call = AsCallTir(binding.value)) {
      spans.emplace(call->callee->name, binding.value->span);
    }
    ir::ExprVisitor::VisitBinding(binding);
  }
};

}  // namespace

Result<ir::IRModule> PermitTf32(ir::IRModule module, PassContext& context) {
  if (context.options.target.kind != Target::Kind::kCuda) return module;
  const std::vector<ir::IRModule::Entry> entries = module.functions();
  CallSites sites;
  for (const ir::IRModule::Entry& entry : entries) {
    if (const ir::Function function = ir::AsRef<ir::FunctionNode>(entry.function)) sites.VisitExpr(function);
  }
  for (const ir::IRModule::Entry& entry : entries) {
    const ir::PrimFunc function = ir::AsRef<ir::PrimFuncNode>(entry.function);
    if (function == nullptr) continue;
    Products products;
    products.VisitStmt(function->body);
    if (!products.any || !context.Apply(RewriteId::kTf32Products, entry.var->name, sites.spans[entry.var->name]))
      continue;
    ir::PrimFuncNode copy = *function;
    copy.attrs = copy.attrs.With(schedule::kTf32Attr, true);
    module.Set(entry.var, ir::Make<ir::PrimFuncNode>(std::move(copy)));
  }
  return module;
}

}  // namespace ingot::transform
