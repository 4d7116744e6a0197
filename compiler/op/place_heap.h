// The first k places of a row in the order of sorting, as statements: a binary heap in local buffers, whose root is the
// place that comes last of those found so far. Each further place is compared with the root alone, and replaces it only
// where it comes before it, so a row of n takes n comparisons and some k log k log(n/k) steps where its elements lie in
// no order, n log k at worst.
#pragma once

#include "compiler/op/statements.h"

namespace ingot::op {

class PlaceHeap {
 public:
  // Of k >= 1 places, whose elements have this dtype.
  PlaceHeap(int64_t k, DataType dtype, bool descending);
  // The bytes that a heap takes of local buffers.
  static int64_t LocalBytes(int64_t k, DataType dtype);

  std::vector<Buffer> local() const { return {elements_, places_, state_}; }
  // Finds the places of a row of n >= k elements; of equal elements the one at the lower place comes first.
  Stmt Select(const PrimExpr& n, const std::function<PrimExpr(const PrimExpr& place)>& element) const;
  // Takes them out: write(i, place, element) once for each i below k, in descending order of i.
  Stmt Drain(const std::function<Stmt(const PrimExpr& i, const PrimExpr& place, const PrimExpr& element)>& write) const;

 private:
  struct Entry {
    PrimExpr element, place;
  };
  enum State : int64_t { kHole, kChild, kSinks, kStates };
  PrimExpr Get(State state) const { return Load(state_, {ir::Int64(state)}); }
  Stmt Set(State state, PrimExpr value) const { return Store(state_, std::move(value), {ir::Int64(state)}); }
  Entry At(const PrimExpr& i) const { return {Load(elements_, {i}), Load(places_, {i})}; }
  Stmt Put(const PrimExpr& i, const Entry& entry) const;
  PrimExpr ComesBefore(const PrimExpr& a, const PrimExpr& b) const;
  PrimExpr ComesBefore(const Entry& a, const Entry& b) const;
  Stmt Sink(const PrimExpr& from, const PrimExpr& size, const Entry& entry) const;

  int64_t k_;
  bool descending_;
  Buffer elements_, places_, state_;
};

}  // namespace ingot::op
