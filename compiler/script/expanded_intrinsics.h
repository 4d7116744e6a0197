// T functions that are no intrinsic of ours and are read as what they are made of: T.log10(x) is T.log(x) times a
// number, and so it prints. In: a function's name and its operands. Out: the expression.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "compiler/ir/prim_expr.h"

namespace ingot::script {

struct ExpandedIntrinsic {
  std::string_view name;  // after "T."
  size_t arity;
  bool of_integers;  // else of floats
  // Operands are of one scalar dtype.
  ir::PrimExpr (*expand)(const std::vector<ir::PrimExpr>& operands);
};
std::span<const ExpandedIntrinsic> ExpandedIntrinsics();

}  // namespace ingot::script
