// The first k places of a row in the order of sorting, as statements: a binary heap in local buffers, whose root is the
// place that comes last of those found so far. Each further element is compared with the root's alone, and its place
// replaces it only where it comes before it, so a row of n takes n comparisons and some k log k log(n/k) steps where its
// elements lie in no order, n log k at worst.
//
// The heap holds ranks in place of elements: integers whose order is that of sorting, the greater the earlier, equal for
// 0 and -0, and one for all NaN. Two entries are compared without a branch.
#pragma once

#include <vector>

#include "compiler/op/heap_sink.h"
#include "compiler/op/statements.h"

namespace ingot::op {

class PlaceHeap {
 public:
  using Elements = std::function<PrimExpr(const PrimExpr& place)>;

  // Of k >= 1 places, whose elements have this dtype.
  PlaceHeap(int64_t k, DataType dtype, bool descending);
  // The bytes that a heap takes of local buffers.
  static int64_t LocalBytes(int64_t k, DataType dtype);

  std::vector<Buffer> local() const;
  // Finds the places of a row of n >= k elements; of equal elements the one at the lower place comes first.
  Stmt Select(const PrimExpr& n, const Elements& element) const;
  // Takes them out: write(i, place) once for each i below k, in descending order of i.
  Stmt Drain(const std::function<Stmt(const PrimExpr& i, const PrimExpr& place)>& write) const;

 private:
  struct Entry {
    PrimExpr rank, place;
  };
  PrimExpr RankOf(const PrimExpr& element) const;
  PrimExpr MayComeBefore(const PrimExpr& element, const PrimExpr& bound) const;
  Stmt SetBound(const Elements& element) const;
  Entry At(const PrimExpr& i) const { return {Load(ranks_, {i}), Load(places_, {i})}; }
  Stmt Put(const PrimExpr& i, const Entry& entry) const;
  Stmt End(const PrimExpr& size) const;
  Stmt Sink(const PrimExpr& from, const PrimExpr& size, const Entry& entry) const;

  int64_t k_;
  bool descending_;
  Buffer ranks_, places_;  // k entries, and one behind the last
  Buffer bound_;           // the root's element
  HeapSink sink_;
  Counter enters_;
};

}  // namespace ingot::op
