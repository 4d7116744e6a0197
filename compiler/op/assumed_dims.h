// Which dims of a call's operands its row takes to be equal: type inference refuses those that are proved to differ,
// and kernels read by them. In: a checked call. Out: pairs of dims; whoever makes calls of models whose dims are
// symbols (the importer) checks at run time those that nothing proves. Operators of broadcasting are not among them:
// there a dim may be 1 instead.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/expr.h"

namespace ingot::op {

struct OperandDim {
  size_t operand;  // in OperandsOf
  size_t axis;
};

struct AssumedEqual {
  OperandDim a, b;
  int64_t factor = 1;  // dim of a = dim of b * factor
};

// The tensors that a call reads: its arguments, or the fields of the tuple that is its only one.
std::vector<ir::Expr> OperandsOf(const std::vector<ir::Expr>& args);

// Empty where the dims of an operand are unknown.
std::vector<AssumedEqual> AssumedEqualDims(const ir::Call& call);

}  // namespace ingot::op
