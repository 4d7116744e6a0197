// Sorts, the first k elements, and sums so far, for the many threads of a GPU: as ordering.cc computes them, with the same
// results for elements that compare as equal, but in steps whose parts do not wait for each other.
//
//   sort   ranks among 32 elements first, then merges of runs in pairs, in launches that repeat: each element finds by a
//          binary search in the other run how many of its elements come before it, which is its place;
//   top k  the first k of each of several parts of a row by a heap, then the first k of these, until there is one part;
//   sums   of parts of a row first, then of these sums, then along each part from what is before it.
#pragma once

#include <functional>
#include <vector>

#include "compiler/op/build.h"
#include "compiler/op/registry.h"

namespace ingot::op {

// Which results of a sort there are, and whether the greatest element goes first.
struct SortKind {
  bool values, indices, descending;
};
SortKind SortKindOf(const ir::Call& call);
// The axis of the call's first argument.
size_t ArgAxisOf(const TeArgs& args);
// The dims without the axis, and the place of element i of a row along it.
Dims Others(const Dims& dims, size_t axis);
std::vector<ir::PrimExpr> At(std::vector<ir::PrimExpr> row, size_t axis, const ir::PrimExpr& i);
// Whether a row has so many elements.
ir::PrimExpr HasElements(const ir::PrimExpr& count, const ir::PrimExpr& extent);

// A thread for each element of these dims.
ir::Stmt OverElements(const Dims& dims, const std::function<ir::Stmt(const std::vector<ir::PrimExpr>&)>& body);

// The elements of a vector in ascending order, of equal ones the first one first, and their places.
struct SortedVector {
  std::vector<ir::Stmt> nests;
  Buffers workspace;
  std::function<ir::PrimExpr(const ir::PrimExpr&i)> element, place;
};
SortedVector SortOnCuda(const ir::Buffer& vector);

Implementation CudaSort();
Implementation CudaTopk();
Implementation CudaSums();

}  // namespace ingot::op
