// HeapBudget: the most memory that a thread may take from the heap while it reads something that is not trusted.
//
// Whatever the code of these libraries allocates comes from the allocation functions of heap_budget.cc, which the linker
// puts before operator new and operator delete (--wrap, an option that every target that links runtime/ inherits; a
// program without it does not link). They charge the budget in force on the thread, and throw std::bad_alloc when
// nothing is left of it. So a container that grows by what a file says needs no check of its own, and none can be
// forgotten. Over-aligned memory, which is that of tensors and of decompressed sections, is not counted: it has caps of
// its own, or is charged by a HeapCharge.
#pragma once

#include <cstdint>

namespace ingot {

class HeapBudget {
 public:
  // In force on this thread from now until it is destroyed. What is taken in an inner budget counts for the outer one.
  explicit HeapBudget(int64_t bytes);
  ~HeapBudget();
  HeapBudget(const HeapBudget&) = delete;
  HeapBudget& operator=(const HeapBudget&) = delete;

  // Whether an allocation was refused.
  bool is_exhausted() const { return is_exhausted_; }

 private:
  friend class HeapCharge;
  HeapBudget* const outer_;
  const int64_t bytes_;
  int64_t left_;
  bool is_exhausted_ = false;
};

// Bytes of other memory that count against the thread's budget, where there is one, until this is destroyed. Throws
// std::bad_alloc when they are more than what is left.
class HeapCharge {
 public:
  explicit HeapCharge(uint64_t bytes);
  ~HeapCharge();
  HeapCharge(const HeapCharge&) = delete;
  HeapCharge& operator=(const HeapCharge&) = delete;

  // What allocating and freeing does; false when the budget does not hold the bytes.
  static bool Take(uint64_t bytes);
  static void Give(uint64_t bytes);

 private:
  const uint64_t bytes_;
};

}  // namespace ingot
