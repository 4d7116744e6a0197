// The sort as a state machine of loops: which half of the workspace is read, the length of runs, where the present pair
// of runs begins, and the next place of each of the two.
#include "compiler/op/merge_sort.h"

#include <utility>

namespace ingot::op {

MergeSort::MergeSort(PrimExpr n) : MergeSort(n, ir::MakeBuffer("order", DataType::Int(64), {ir::Int64(2), n})) {}

MergeSort::MergeSort(PrimExpr n, Buffer order)
    : n_(std::move(n)),
      order_(std::move(order)),
      state_(ir::MakeBuffer("state", DataType::Int(64), {ir::Int64(kStates)}, "local")) {}

PrimExpr MergeSort::Sorted(const PrimExpr& i) const { return Load(order_, {Get(kHalf), i}); }

Stmt MergeSort::Sort(const Comparison& comparison) const {
  const Stmt start = Loop(n_, [&](const PrimExpr& i) { return Store(order_, i, {ir::Int64(0), i}); });
  const Stmt merge = ir::MakeSeq({MergeNext(comparison), Set(kBegin, Get(kBegin) + Get(kRun) * 2)});
  const Stmt pass = ir::MakeSeq({Set(kBegin, ir::Int64(0)), While(Get(kBegin) < n_, merge),
                                 Set(kHalf, ir::Int64(1) - Get(kHalf)), Set(kRun, Get(kRun) * 2)});
  return ir::MakeSeq({start, Set(kHalf, ir::Int64(0)), Set(kRun, ir::Int64(1)), While(Get(kRun) < n_, pass)});
}

// Merges the runs [begin, middle) and [middle, end) of one half into the other.
Stmt MergeSort::MergeNext(const Comparison& comparison) const {
  return Let("begin", Get(kBegin), [&](const PrimExpr& begin) {
    return Let("middle", ir::Min(begin + Get(kRun), n_), [&](const PrimExpr& middle) {
      return Let("end", ir::Min(middle + Get(kRun), n_), [&](const PrimExpr& end) {
        const Stmt steps =
            Loop(end - begin, [&](const PrimExpr& i) { return Step(comparison, begin + i, middle, end); });
        return ir::MakeSeq({Set(kLeft, begin), Set(kRight, middle), steps});
      });
    });
  });
}

Stmt MergeSort::Step(const Comparison& comparison, const PrimExpr& to, const PrimExpr& middle,
                     const PrimExpr& end) const {
  return Let("left", Get(kLeft), [&](const PrimExpr& left) {
    return Let("right", Get(kRight), [&](const PrimExpr& right) {
      // Where a run is used up, the read is kept inside of the workspace and its value does not count (takes_left).
      const PrimExpr last = n_ - 1;
      return Let("a", Load(order_, {Get(kHalf), ir::Min(left, last)}), [&](const PrimExpr& a) {
        return Let("b", Load(order_, {Get(kHalf), ir::Min(right, last)}), [&](const PrimExpr& b) {
          const PrimExpr right_first = comparison.is_before(a, b);
          const PrimExpr takes_left = ir::And(left < middle, ir::Or(end <= right, ir::Not(right_first)));
          const Stmt step = Let("takes_left", ir::Cast(DataType::Int(64), takes_left), [&](const PrimExpr& taken) {
            const PrimExpr is_left = ir::Equal(taken, ir::Int64(1));
            return ir::MakeSeq({Store(order_, ir::Select(is_left, a, b), {ir::Int64(1) - Get(kHalf), to}),
                                Set(kLeft, left + taken), Set(kRight, right + (ir::Int64(1) - taken))});
          });
          return comparison.prepare ? ir::MakeSeq({comparison.prepare(a, b), step}) : step;
        });
      });
    });
  });
}

}  // namespace ingot::op
