// What an operator assumes about the dims of its operands, such as equal extents: type inference refuses a call for
// which the opposite is proved, and kernels rely on it. This is the only list of these assumptions. In: a checked call.
// Out: pairs of equal dims, and all assumptions as pairs of a dim and its expected value; normalising compares those at
// run time that nothing proves. tests/compiler/op/assumed_dims_test.cc changes every dim of every operator's test cases
// to see that nothing is missing.
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

// The dim `actual` has to equal `expected`, a formula over the operands' dims: another dim, a number, the minimum or
// maximum of the dim and a limit, or the extent that the dim broadcasts to.
struct AssumedDim {
  ir::PrimExpr actual, expected;
};

// A call's operands: its arguments, or the fields of its only argument where that is a tuple.
std::vector<ir::Expr> OperandsOf(const std::vector<ir::Expr>& args);

// Pairs of dims that are equal in every valid call, so that a caller such as the importer may use one symbol for both.
// Pairs that broadcast are not among them, since there one dim may be 1. Empty where the dims of an operand are
// unknown.
std::vector<AssumedEqual> AssumedEqualDims(const ir::Call& call);

// All assumptions about the call's dims that are not proved, those that its constants contradict included.
std::vector<AssumedDim> UnprovedDims(const ir::Call& call);

}  // namespace ingot::op
