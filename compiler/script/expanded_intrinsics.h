// T functions that are no intrinsics of this compiler and are expanded when they are read: T.log10(x) becomes T.log(x)
// times a number, and prints so. In: a function's name and its operands. Out: the expression.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "compiler/ir/prim_expr.h"

namespace ingot::script {

struct ExpandedIntrinsic {
  std::string_view name;  // after "T."
  size_t arity;
  bool of_integers;  // whether operands are integers; otherwise floats
  // All operands have the same scalar dtype.
  ir::PrimExpr (*expand)(const std::vector<ir::PrimExpr>& operands);
};
std::span<const ExpandedIntrinsic> ExpandedIntrinsics();

}  // namespace ingot::script
