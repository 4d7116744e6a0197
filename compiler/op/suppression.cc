// The heap of candidates and the kept boxes of a suppression of boxes.
#include "compiler/op/suppression.h"

#include <utility>

namespace ingot::op {
namespace {

enum Side : int64_t { kLowY, kHighY, kLowX, kHighX, kArea, kNumbers };

// body(names of the values), each computed once.
Stmt LetSides(const Places& values, size_t from, const std::function<Stmt(const Places& names)>& body) {
  if (from == values.size()) return body(values);
  return Let("side", values[from], [&](const PrimExpr& name) {
    Places names = values;
    names[from] = name;
    return LetSides(names, from + 1, body);
  });
}

}  // namespace

// ---- CandidateHeap

CandidateHeap::CandidateHeap(PrimExpr n)
    : n_(std::move(n)), heap_(ir::MakeBuffer("heap", DataType::Int(64), {n_})), size_("size") {}

std::vector<Buffer> CandidateHeap::buffers() const {
  std::vector<Buffer> buffers = {heap_, size_.buffer()};
  for (const Buffer& buffer : sink_.local()) buffers.push_back(buffer);
  return buffers;
}

// The place that stands at i; the last one for an i beyond, which conditions ask for though they do not need it.
PrimExpr CandidateHeap::At(const PrimExpr& i) const { return Load(heap_, {ir::Min(i, n_ - ir::Int64(1))}); }

// Puts an item where it belongs on the way down from a free place.
Stmt CandidateHeap::Sink(const PrimExpr& from, const PrimExpr& item, const Order& is_before) const {
  const auto upper = [&](const PrimExpr& left) {
    const PrimExpr other = left + ir::Int64(1);
    const PrimExpr is_other = ir::And(other < size_.value(), is_before(At(other), At(left)));
    return ir::Select(is_other, other, left);
  };
  const auto rises = [&](const PrimExpr& child) { return is_before(At(child), item); };
  const auto lift = [&](const PrimExpr& hole, const PrimExpr& child) { return Store(heap_, At(child), {hole}); };
  const auto fill = [&](const PrimExpr& hole) { return Store(heap_, item, {hole}); };
  return sink_.Run(from, size_.value(), {upper, rises, lift, fill});
}

Stmt CandidateHeap::Fill(const std::function<PrimExpr(const PrimExpr& place)>& is_candidate,
                         const Order& is_before) const {
  const PrimExpr zero = ir::Int64(0), one = ir::Int64(1);
  const Stmt clear = Loop(n_, [&](const PrimExpr& i) { return Store(heap_, zero, {i}); });
  const Stmt collect = Loop(n_, [&](const PrimExpr& place) {
    return If(is_candidate(place), ir::MakeSeq({Store(heap_, place, {size_.value()}), size_.Add(one)}));
  });
  const Stmt order = Loop(ir::FloorDiv(size_.value(), ir::Int64(2)), [&](const PrimExpr& i) {
    return Let("start", ir::FloorDiv(size_.value(), ir::Int64(2)) - one - i, [&](const PrimExpr& start) {
      return Let("item", Load(heap_, {start}), [&](const PrimExpr& item) { return Sink(start, item, is_before); });
    });
  });
  return ir::MakeSeq({clear, size_.Set(zero), collect, order});
}

Stmt CandidateHeap::Take(const Order& is_before, const std::function<Stmt(const PrimExpr& place)>& body) const {
  const PrimExpr zero = ir::Int64(0);
  return Let("place", Load(heap_, {zero}), [&](const PrimExpr& place) {
    const Stmt refill =
        Let("item", Load(heap_, {size_.value()}), [&](const PrimExpr& item) { return Sink(zero, item, is_before); });
    return ir::MakeSeq({size_.Add(ir::Int64(-1)), If(zero < size_.value(), refill), body(place)});
  });
}

// ---- KeptBoxes

KeptBoxes::KeptBoxes(const PrimExpr& n, DataType dtype)
    : sides_(ir::MakeBuffer("sides", dtype, {ir::Int64(kNumbers), n + ir::Int64(kAtOnce)})),
      hits_(ir::MakeBuffer("hits", DataType::Int(32), {ir::Int64(kAtOnce)}, "local")) {}

Stmt KeptBoxes::Clear() const {
  return Loops(sides_->shape, [&](const Places& i) { return Store(sides_, ir::MakeConst(sides_->dtype, 0), i); });
}

Stmt KeptBoxes::NumbersOf(const Buffer& boxes, const PrimExpr& batch, const PrimExpr& box,
                          const std::function<Stmt(const Places& numbers)>& body) const {
  const auto corner = [&](int64_t at) { return ir::Cast(sides_->dtype, Load(boxes, {batch, box, ir::Int64(at)})); };
  Places sides;
  for (int64_t axis : {0, 1}) {
    sides.push_back(ir::Min(corner(axis), corner(axis + 2)));
    sides.push_back(ir::Max(corner(axis), corner(axis + 2)));
  }
  return LetSides(sides, 0, [&](const Places& names) {
    Places numbers = names;
    numbers.push_back((names[kHighY] - names[kLowY]) * (names[kHighX] - names[kLowX]));
    return LetSides(numbers, kArea, body);
  });
}

Stmt KeptBoxes::Keep(const Places& numbers, const PrimExpr& at) const {
  std::vector<Stmt> stmts;
  for (int64_t i = 0; i < kNumbers; ++i) {
    stmts.push_back(Store(sides_, numbers[static_cast<size_t>(i)], {ir::Int64(i), at}));
  }
  return ir::MakeSeq(std::move(stmts));
}

Stmt KeptBoxes::Compare(const Places& box, const PrimExpr& first, const PrimExpr& count,
                        const PrimExpr& threshold) const {
  const auto set = [&](int64_t lanes, const std::function<PrimExpr(const PrimExpr& lane)>& value) {
    const ir::PrimVar lane = ir::MakePrimVar("lane");
    const ir::ForKind kind = lanes > 1 ? ir::ForKind::kVectorized : ir::ForKind::kSerial;
    return Stmt(ir::Make<ir::ForNode>(lane, ir::Int64(0), ir::Int64(lanes), kind, Store(hits_, value(lane), {lane})));
  };
  std::vector<Stmt> stmts = {set(kAtOnce, [&](const PrimExpr& lane) {
    const PrimExpr is_hit = ir::And(first + lane < count, Overlaps(box, first + lane, threshold));
    return ir::Select(is_hit, ir::MakeConst(hits_->dtype, 1), ir::MakeConst(hits_->dtype, 0));
  })};
  for (int64_t half = kAtOnce / 2; half >= 1; half /= 2) {
    stmts.push_back(
        set(half, [&](const PrimExpr& lane) { return ir::Max(Load(hits_, {lane}), Load(hits_, {lane + half})); }));
  }
  return ir::MakeSeq(std::move(stmts));
}

PrimExpr KeptBoxes::Overlaps(const Places& a, const PrimExpr& rival, const PrimExpr& threshold) const {
  const auto b = [&](Side number) { return Load(sides_, {ir::Int64(number), rival}); };
  const PrimExpr low_y = ir::Max(a[kLowY], b(kLowY)), high_y = ir::Min(a[kHighY], b(kHighY));
  const PrimExpr low_x = ir::Max(a[kLowX], b(kLowX)), high_x = ir::Min(a[kHighX], b(kHighX));
  const PrimExpr zero = ir::MakeConst(sides_->dtype, 0);
  const PrimExpr common = (high_y - low_y) * (high_x - low_x);
  const PrimExpr both = a[kArea] + b(kArea) - common;
  const PrimExpr has_area = ir::And(ir::And(zero < a[kArea], zero < b(kArea)), zero < both);
  return ir::And(ir::And(ir::And(low_y < high_y, low_x < high_x), has_area), threshold < common / both);
}

}  // namespace ingot::op
