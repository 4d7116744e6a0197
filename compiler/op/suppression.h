// What the suppression of boxes consists of, as statements: candidates in a heap, of which one at a time is taken, and the
// boxes that were kept, with which a candidate is compared.
#pragma once

#include <functional>
#include <vector>

#include "compiler/op/counter.h"
#include "compiler/op/heap_sink.h"

namespace ingot::op {

// Places of which the best is taken, until there is none: a heap takes a step per level for each place that is taken,
// and those that nobody asks for are never put in order.
class CandidateHeap {
 public:
  // Whether place a comes before place b: a strict order of all places.
  using Order = std::function<PrimExpr(const PrimExpr& a, const PrimExpr& b)>;

  explicit CandidateHeap(PrimExpr n);
  // Local to one iteration of a block.
  std::vector<Buffer> buffers() const;
  PrimExpr size() const { return size_.value(); }

  // The candidates are the places below n of which is_candidate holds.
  Stmt Fill(const std::function<PrimExpr(const PrimExpr& place)>& is_candidate, const Order& is_before) const;
  // body(the best place), which is a candidate no longer. There must be one.
  Stmt Take(const Order& is_before, const std::function<Stmt(const PrimExpr& place)>& body) const;

 private:
  PrimExpr At(const PrimExpr& i) const;
  Stmt Sink(const PrimExpr& from, const PrimExpr& item, const Order& is_before) const;

  PrimExpr n_;
  Buffer heap_;
  Counter size_;
  HeapSink sink_;
};

// Kept boxes as their sides, so that a box is compared with several of them at a time.
class KeptBoxes {
 public:
  KeptBoxes(const PrimExpr& n, DataType dtype);
  std::vector<Buffer> buffers() const { return {sides_, hits_}; }

  // What is read beyond the last kept box has to be something.
  Stmt Clear() const;
  // body(numbers of a box, which is given by two opposite corners)
  Stmt NumbersOf(const Buffer& boxes, const PrimExpr& batch, const PrimExpr& box,
                 const std::function<Stmt(const Places& numbers)>& body) const;
  Stmt Keep(const Places& numbers, const PrimExpr& at) const;
  // Compares a box with the kept ones from `first` on, kAtOnce of those before `count`; then hit() says whether its
  // overlap with one of them is more than this part of their union.
  Stmt Compare(const Places& box, const PrimExpr& first, const PrimExpr& count, const PrimExpr& threshold) const;
  PrimExpr hit() const { return Load(hits_, {ir::Int64(0)}); }

  static constexpr int64_t kAtOnce = 16;

 private:
  PrimExpr Overlaps(const Places& a, const PrimExpr& rival, const PrimExpr& threshold) const;

  Buffer sides_, hits_;
};

}  // namespace ingot::op
