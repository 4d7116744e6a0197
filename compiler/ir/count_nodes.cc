#include "compiler/ir/count_nodes.h"

namespace ingot::ir {

int CountNodes(const PrimExpr& expr, int limit) {
  if (limit <= 0) return 1;
  int count = 1;
  const auto add = [&](const PrimExpr& part) { count += CountNodes(part, limit - count); };
  if (const auto* binary = As<BinaryNode>(expr)) {
    add(binary->a);
    add(binary->b);
  } else if (const auto* select = As<SelectNode>(expr)) {
    add(select->condition);
    add(select->true_value);
    add(select->false_value);
  } else if (const auto* negated = As<NotNode>(expr)) {
    add(negated->a);
  } else if (const auto* cast = As<CastNode>(expr)) {
    add(cast->value);
  }
  return count;
}

}  // namespace ingot::ir
