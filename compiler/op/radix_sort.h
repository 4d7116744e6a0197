// A stable sort of a row's elements by their digits, as statements: places 0 ... n-1 in the order of sorting, NaN as the
// greatest element. It takes a pass over the row for each byte of an element, so many steps whatever the data are; a
// byte that is the same in all elements takes none.
//
// What moves is a word that holds an element's order (element_order.h) above its place; of elements of 64 bits, and
// uint32, the two are words of their own. The least significant byte is sorted first.
#pragma once

#include <functional>
#include <vector>

#include "compiler/op/statements.h"

namespace ingot::op {

class RadixSort {
 public:
  using Elements = std::function<PrimExpr(const PrimExpr& place)>;

  // Of n elements, n in 1 ... 2^31-1.
  RadixSort(PrimExpr n, DataType dtype, bool descending);
  static constexpr int64_t kMaxElements = INT32_MAX;

  // Local to one iteration of the block that sorts; the words are workspace where n is a symbol or large.
  std::vector<Buffer> local() const;
  // int64[2, n] of them.
  const Buffer& words() const { return words_; }
  Stmt Sort(const Elements& element) const;
  // The place that comes i-th.
  PrimExpr Sorted(const PrimExpr& i) const;

 private:
  PrimExpr Get(const Buffer& variable) const { return Load(variable, {ir::Int64(0)}); }
  Stmt Set(const Buffer& variable, PrimExpr value) const { return Store(variable, std::move(value), {ir::Int64(0)}); }
  PrimExpr Count(const PrimExpr& digit, const PrimExpr& value) const { return Load(counts_, {digit, value}); }
  // Of the word that holds an element's order, as it is sorted: the element with the least one goes first.
  PrimExpr Digit(const PrimExpr& word, const PrimExpr& digit) const;
  PrimExpr Word(const PrimExpr& order, const PrimExpr& place) const;
  Stmt CountDigits(const Elements& element) const;
  Stmt StartPlaces(const PrimExpr& digit) const;
  Stmt Move(const PrimExpr& digit) const;

  PrimExpr n_;
  DataType dtype_;
  bool descending_, is_packed_;
  int64_t num_digits_;
  Buffer words_;   // two halves of n
  Buffer places_;  // likewise, where places are words of their own
  Buffer counts_;  // by digit and its value: how many elements have it, then where the next one of them goes
  Buffer half_, total_;
};

}  // namespace ingot::op
