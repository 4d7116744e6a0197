// The way down a binary heap, as statements: an entry sinks from a hole. While a child of the hole comes before the
// entry, the child that is to stand above the other one moves up into the hole.
#pragma once

#include <functional>
#include <vector>

#include "compiler/op/counter.h"

namespace ingot::op {

// What entries are, and how they are compared, is the heap's own; places are numbers from the root, 0, on.
struct HeapOrder {
  // Of the children at `left` and behind it, of which the one at `left` is in the heap: the one to stand above the other.
  std::function<PrimExpr(const PrimExpr& left)> upper;
  // Whether the child is to stand above what sinks.
  std::function<PrimExpr(const PrimExpr& child)> rises;
  std::function<Stmt(const PrimExpr& hole, const PrimExpr& child)> lift;  // the child's entry moves into the hole
  std::function<Stmt(const PrimExpr& hole)> fill;                         // what sinks is put there
};

class HeapSink {
 public:
  static constexpr int64_t kLocalBytes = 2 * sizeof(int64_t);

  std::vector<Buffer> local() const { return {hole_.buffer(), sinks_.buffer()}; }
  // Sinks from `from` among the first `size` places.
  Stmt Run(const PrimExpr& from, const PrimExpr& size, const HeapOrder& order) const;

 private:
  Counter hole_{"hole"}, sinks_{"sinks"};
};

}  // namespace ingot::op
