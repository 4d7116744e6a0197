#include "compiler/op/heap_sink.h"

namespace ingot::op {

Stmt HeapSink::Run(const PrimExpr& from, const PrimExpr& size, const HeapOrder& order) const {
  const PrimExpr zero = ir::Int64(0), one = ir::Int64(1);
  const Stmt step = Let("left", hole_.value() * 2 + 1, [&](const PrimExpr& left) {
    const Stmt move = Let("child", order.upper(left), [&](const PrimExpr& child) {
      return If(order.rises(child), ir::MakeSeq({order.lift(hole_.value(), child), hole_.Set(child), sinks_.Set(one)}));
    });
    return ir::MakeSeq({sinks_.Set(zero), If(left < size, move)});
  });
  return ir::MakeSeq(
      {hole_.Set(from), sinks_.Set(one), While(ir::Equal(sinks_.value(), one), step), order.fill(hole_.value())});
}

}  // namespace ingot::op
