// What a call's row takes for granted about the dims of its operands: type inference refuses what is proved to be
// otherwise, and kernels read by it. This is the one list of it. In: a checked call. Out: equal pairs of dims, and
// everything as pairs of a dim and what it has to be; normalising compares at run time those that nothing proves.
// tests/compiler/op/assumed_dims_test.cc changes every dim of every row's cases to see that nothing is missing.
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

// The dim `actual` is `expected`, a formula over the operands' dims: another dim, a number, a dim's least or greatest
// value, what broadcasts.
struct AssumedDim {
  ir::PrimExpr actual, expected;
};

// What a call reads: its arguments, or the fields of the tuple that is its only one.
std::vector<ir::Expr> OperandsOf(const std::vector<ir::Expr>& args);

// Dims that are equal whatever they are: whoever makes calls (the importer) may use one name for both. Those of
// broadcasting are not among them: there a dim may be 1 instead. Empty where the dims of an operand are unknown.
std::vector<AssumedEqual> AssumedEqualDims(const ir::Call& call);

// Everything that is assumed and not proved; constants that contradict each other are among it.
std::vector<AssumedDim> UnprovedDims(const ir::Call& call);

}  // namespace ingot::op
