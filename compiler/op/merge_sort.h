// A stable merge sort as statements: places 0 ... n-1 in the order that a comparison of two places gives. The
// caller gives the comparison and reads the result by Sorted.
//
// Bottom-up: runs of 1, 2, 4, ... places are merged from one half of the workspace to the other, left run first when
// elements are equal, so it takes n log n steps whatever the data are.
#pragma once

#include "compiler/op/statements.h"

namespace ingot::op {

class MergeSort {
 public:
  explicit MergeSort(PrimExpr n);
  // In a workspace of int64[2, n], which another sort may have in other cases.
  MergeSort(PrimExpr n, Buffer order);

  // Local to one iteration of the block that sorts; order() is workspace where n is a symbol or large.
  const Buffer& order() const { return order_; }
  const Buffer& state() const { return state_; }

  struct Comparison {
    // Whether place b has to come before place a, which comes first at present.
    std::function<PrimExpr(const PrimExpr& a, const PrimExpr& b)> is_before;
    // Statements to run before is_before is evaluated; null: none.
    std::function<Stmt(const PrimExpr& a, const PrimExpr& b)> prepare = nullptr;
  };
  Stmt Sort(const Comparison& comparison) const;
  // The place that comes i-th.
  PrimExpr Sorted(const PrimExpr& i) const;

 private:
  enum State : int64_t { kHalf, kRun, kBegin, kLeft, kRight, kStates };
  PrimExpr Get(State state) const { return Load(state_, {ir::Int64(state)}); }
  Stmt Set(State state, PrimExpr value) const { return Store(state_, std::move(value), {ir::Int64(state)}); }
  Stmt MergeNext(const Comparison& comparison) const;
  Stmt Step(const Comparison& comparison, const PrimExpr& to, const PrimExpr& middle, const PrimExpr& end) const;

  PrimExpr n_;
  Buffer order_, state_;
};

}  // namespace ingot::op
