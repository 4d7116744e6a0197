// Splits a condition by walking down its And nodes, left operand first.
#include "compiler/ir/condition.h"

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

}  // namespace ingot::ir
