// Looks through the broadcast of a vectorized exponent.
#include "compiler/ir/power.h"

namespace ingot::ir {

std::optional<double> ProductExponent(const PrimCallNode& call) {
  if (call.op != Intrinsic::kPow || !call.dtype.is_floating()) return std::nullopt;
  PrimExpr exponent = call.args[1];
  if (const auto* broadcast = As<BroadcastNode>(exponent)) exponent = broadcast->value;
  const auto* number = As<FloatImmNode>(exponent);
  if (number == nullptr) return std::nullopt;
  const double y = number->value;
  return y == 1 || y == 2 || y == 3 || y == -1 ? std::optional(y) : std::nullopt;
}

}  // namespace ingot::ir
