// Splits a condition by walking down its And nodes, left operand first.
#include "compiler/ir/condition.h"

#include <algorithm>

#include "compiler/ir/visitor.h"

namespace ingot::ir {
namespace {

void Append(const PrimExpr& condition, std::vector<PrimExpr>& parts) {
  const auto* binary = As<BinaryNode>(condition);
  if (binary == nullptr || binary->op != BinaryOp::kAnd) {
    parts.push_back(condition);
    return;
  }
  Append(binary->a, parts);
  Append(binary->b, parts);
}

}  // namespace

std::vector<PrimExpr> ConjunctsOf(const PrimExpr& condition) {
  std::vector<PrimExpr> parts;
  Append(condition, parts);
  return parts;
}

bool MentionsAny(const PrimExpr& expr, const std::unordered_set<const PrimVarNode*>& vars) {
  if (vars.empty()) return false;
  return std::ranges::any_of(FreePrimVars(expr), [&](const PrimVar& var) { return vars.contains(var.get()); });
}

}  // namespace ingot::ir
