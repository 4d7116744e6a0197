// The heap as loops and branches over its local buffers: the child that comes last stands above. Behind the last entry
// lies one that comes before all others, so that each entry that has a child has two.
#include "compiler/op/place_heap.h"

#include <utility>

#include "compiler/op/element_order.h"

namespace ingot::op {
namespace {

constexpr int64_t kAskedAtOnce = 16;  // elements that are compared with the root's at once

// Whether entry a comes before entry b: a total order, whatever the order is in which the heap met the places.
template <typename Entry>
PrimExpr ComesBefore(const Entry& a, const Entry& b) {
  return ir::Or(b.rank < a.rank, ir::And(ir::Equal(a.rank, b.rank), a.place < b.place));
}

}  // namespace

PlaceHeap::PlaceHeap(int64_t k, DataType dtype, bool descending)
    : k_(k),
      descending_(descending),
      ranks_(ir::MakeBuffer("ranks", OrderDataType(dtype), {ir::Int64(k + 1)}, "local")),
      places_(ir::MakeBuffer("places", DataType::Int(64), {ir::Int64(k + 1)}, "local")),
      bound_(ir::MakeBuffer("bound", dtype, {ir::Int64(1)}, "local")),
      enters_("enters") {}

std::vector<Buffer> PlaceHeap::local() const {
  std::vector<Buffer> buffers = {ranks_, places_, bound_, enters_.buffer()};
  for (const Buffer& buffer : sink_.local()) buffers.push_back(buffer);
  return buffers;
}

int64_t PlaceHeap::LocalBytes(int64_t k, DataType dtype) {
  return (k + 1) * (OrderDataType(dtype).bits / 8 + 8) + (dtype.bits + 7) / 8 + HeapSink::kLocalBytes + 8;
}

PrimExpr PlaceHeap::RankOf(const PrimExpr& element) const {
  const PrimExpr order = OrderOf(element);
  return descending_ ? order : ir::CallIntrinsic(ir::Intrinsic::kBitwiseXor, {order, ir::MakeConst(order->dtype, -1)});
}

// Whether an element at a later place may come before the bound: by one comparison, which holds for NaN, too.
PrimExpr PlaceHeap::MayComeBefore(const PrimExpr& element, const PrimExpr& bound) const {
  const PrimExpr x = ComparableOf(element), y = ComparableOf(bound);
  return ir::Not(descending_ ? x <= y : y <= x);
}

Stmt PlaceHeap::SetBound(const Elements& element) const {
  const PrimExpr root = ir::Int64(0);
  return Store(bound_, element(Load(places_, {root})), {root});
}

Stmt PlaceHeap::Put(const PrimExpr& i, const Entry& entry) const {
  return ir::MakeSeq({Store(ranks_, entry.rank, {i}), Store(places_, entry.place, {i})});
}

// Ends the heap of the first `size` entries.
Stmt PlaceHeap::End(const PrimExpr& size) const { return Put(size, {ir::MaxValue(ranks_->dtype), ir::Int64(-1)}); }

// Puts an entry into the heap of the first `size` entries, of which the one at `from` is free.
Stmt PlaceHeap::Sink(const PrimExpr& from, const PrimExpr& size, const Entry& entry) const {
  const auto upper = [&](const PrimExpr& left) {
    return left + ir::Select(ComesBefore(At(left), At(left + 1)), ir::Int64(1), ir::Int64(0));
  };
  const auto rises = [&](const PrimExpr& child) { return ComesBefore(entry, At(child)); };
  const auto lift = [&](const PrimExpr& hole, const PrimExpr& child) { return Put(hole, At(child)); };
  const auto fill = [&](const PrimExpr& hole) { return Put(hole, entry); };
  return sink_.Run(from, size, {upper, rises, lift, fill});
}

Stmt PlaceHeap::Select(const PrimExpr& n, const Elements& element) const {
  const PrimExpr root = ir::Int64(0), k = ir::Int64(k_);
  const auto named = [](const Entry& entry, const std::function<Stmt(const Entry&)>& body) {
    return Let("rank", entry.rank, [&](const PrimExpr& rank) {
      return Let("place", entry.place, [&](const PrimExpr& place) { return body({rank, place}); });
    });
  };
  const Stmt fill = Loop(k, [&](const PrimExpr& i) { return Put(i, {RankOf(element(i)), i}); });
  // Entries without children are heaps; the others sink, from the last one to the root.
  const Stmt order = Loop(ir::Int64(k_ / 2), [&](const PrimExpr& i) {
    return Let("at", ir::Int64(k_ / 2 - 1) - i, [&](const PrimExpr& at) {
      return named(At(at), [&](const Entry& entry) { return Sink(at, k, entry); });
    });
  });
  // A further place is greater than all before it: of equal elements it is the last one, and stays outside. Most blocks
  // of elements hold none that enters, which is asked of all at once.
  const auto enter = [&](const PrimExpr& place) {
    return Let("element", element(place), [&](const PrimExpr& value) {
      const Stmt sink = named({RankOf(value), place}, [&](const Entry& entry) {
        return If(Load(ranks_, {root}) < entry.rank, ir::MakeSeq({Sink(root, k, entry), SetBound(element)}));
      });
      return If(MayComeBefore(value, Load(bound_, {root})), sink);
    });
  };
  const PrimExpr size = ir::Int64(kAskedAtOnce);
  const Stmt scan = Loop(ir::FloorDiv(n - k + (kAskedAtOnce - 1), size), [&](const PrimExpr& block) {
    return Let("first", k + block * size, [&](const PrimExpr& first) {
      PrimExpr any = ir::BoolImm(false);
      for (int64_t i = 0; i < kAskedAtOnce; ++i)
        any = ir::Or(any, MayComeBefore(element(first + i), Load(bound_, {root})));
      const Stmt ask = If(first + size <= n, enters_.Set(ir::Cast(DataType::Int(64), any)));
      const Stmt all = Loop(ir::Min(size, n - first), [&](const PrimExpr& i) { return enter(first + i); });
      return ir::MakeSeq({enters_.Set(ir::Int64(1)), ask, If(ir::Equal(enters_.value(), ir::Int64(1)), all)});
    });
  });
  return ir::MakeSeq({fill, End(k), order, SetBound(element), scan});
}

Stmt PlaceHeap::Drain(const std::function<Stmt(const PrimExpr& i, const PrimExpr& place)>& write) const {
  const PrimExpr root = ir::Int64(0);
  return Loop(ir::Int64(k_), [&](const PrimExpr& step) {
    return Let("last", ir::Int64(k_ - 1) - step, [&](const PrimExpr& last) {
      const Stmt close = Let("rank", At(last).rank, [&](const PrimExpr& rank) {
        return Let("place", At(last).place, [&](const PrimExpr& place) {
          return ir::MakeSeq({End(last), Sink(root, last, {rank, place})});
        });
      });
      return ir::MakeSeq({write(last, At(root).place), close});
    });
  });
}

}  // namespace ingot::op
