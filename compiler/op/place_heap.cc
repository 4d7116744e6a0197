// The heap as loops and branches over its local buffers. An entry sinks from a hole: while a child comes after it, the
// child that comes last moves up into the hole.
#include "compiler/op/place_heap.h"

#include <utility>

namespace ingot::op {

PlaceHeap::PlaceHeap(int64_t k, DataType dtype, bool descending)
    : k_(k),
      descending_(descending),
      elements_(ir::MakeBuffer("elements", dtype, {ir::Int64(k)}, "local")),
      places_(ir::MakeBuffer("places", DataType::Int(64), {ir::Int64(k)}, "local")),
      state_(ir::MakeBuffer("state", DataType::Int(64), {ir::Int64(kStates)}, "local")) {}

int64_t PlaceHeap::LocalBytes(int64_t k, DataType dtype) { return k * ((dtype.bits + 7) / 8 + 8) + kStates * 8; }

Stmt PlaceHeap::Put(const PrimExpr& i, const Entry& entry) const {
  return ir::MakeSeq({Store(elements_, entry.element, {i}), Store(places_, entry.place, {i})});
}

PrimExpr PlaceHeap::ComesBefore(const PrimExpr& a, const PrimExpr& b) const {
  return descending_ ? IsLess(b, a) : IsLess(a, b);
}

// A total order, whatever the order is in which the heap met the places.
PrimExpr PlaceHeap::ComesBefore(const Entry& a, const Entry& b) const {
  return ir::Or(ComesBefore(a.element, b.element),
                ir::And(ir::Not(ComesBefore(b.element, a.element)), a.place < b.place));
}

// Puts an entry into the heap of the first `size` entries, of which the one at `from` is free.
Stmt PlaceHeap::Sink(const PrimExpr& from, const PrimExpr& size, const Entry& entry) const {
  const PrimExpr zero = ir::Int64(0), one = ir::Int64(1);
  const Stmt step = Let("left", Get(kHole) * 2 + 1, [&](const PrimExpr& left) {
    const Stmt choose = ir::MakeSeq(
        {Set(kChild, left), If(left + 1 < size, If(ComesBefore(At(left), At(left + 1)), Set(kChild, left + 1)))});
    const Stmt move = Let("child", Get(kChild), [&](const PrimExpr& child) {
      const Stmt up = ir::MakeSeq({Put(Get(kHole), At(child)), Set(kHole, child), Set(kSinks, one)});
      return If(ComesBefore(entry, At(child)), up);
    });
    return ir::MakeSeq({Set(kSinks, zero), If(left < size, ir::MakeSeq({choose, move}))});
  });
  return ir::MakeSeq(
      {Set(kHole, from), Set(kSinks, one), While(ir::Equal(Get(kSinks), one), step), Put(Get(kHole), entry)});
}

Stmt PlaceHeap::Select(const PrimExpr& n, const std::function<PrimExpr(const PrimExpr& place)>& element) const {
  const PrimExpr k = ir::Int64(k_);
  const auto named = [](const Entry& entry, const std::function<Stmt(const Entry&)>& body) {
    return Let("element", entry.element, [&](const PrimExpr& value) {
      return Let("place", entry.place, [&](const PrimExpr& place) { return body({value, place}); });
    });
  };
  const Stmt fill = Loop(k, [&](const PrimExpr& i) { return Put(i, {element(i), i}); });
  // Entries without children are heaps; the others sink, from the last one to the root.
  const Stmt order = Loop(ir::Int64(k_ / 2), [&](const PrimExpr& i) {
    return Let("root", ir::Int64(k_ / 2 - 1) - i, [&](const PrimExpr& root) {
      return named(At(root), [&](const Entry& entry) { return Sink(root, k, entry); });
    });
  });
  // A further place is greater than all before it: of equal elements it is the last one, and stays outside.
  const Stmt scan = Loop(n - k, [&](const PrimExpr& i) {
    return named({element(i + k), i + k}, [&](const Entry& entry) {
      return If(ComesBefore(entry.element, At(ir::Int64(0)).element), Sink(ir::Int64(0), k, entry));
    });
  });
  return ir::MakeSeq({fill, order, scan});
}

Stmt PlaceHeap::Drain(
    const std::function<Stmt(const PrimExpr& i, const PrimExpr& place, const PrimExpr& element)>& write) const {
  return Loop(ir::Int64(k_), [&](const PrimExpr& step) {
    return Let("last", ir::Int64(k_ - 1) - step, [&](const PrimExpr& last) {
      const Entry root = At(ir::Int64(0));
      const Stmt take = write(last, root.place, root.element);
      const Stmt close = Let("element", At(last).element, [&](const PrimExpr& element) {
        return Let("place", At(last).place, [&](const PrimExpr& place) {
          return Sink(ir::Int64(0), last, {element, place});
        });
      });
      return ir::MakeSeq({take, close});
    });
  });
}

}  // namespace ingot::op
