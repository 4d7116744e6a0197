// The thread's budget, and the allocation functions that charge it. Blocks are charged as they are freed, by the size
// that was asked for; what is freed without its size is not given back.
#include "runtime/heap_budget.h"

#include <algorithm>
#include <cstddef>
#include <new>

namespace ingot {
namespace {

// The one thing here that is reached without being passed: an allocation function has no other argument than a size.
// Eight bytes are few enough for the static model, which needs no call to find them, in a library that is loaded later.
[[gnu::tls_model("initial-exec")]] thread_local HeapBudget* in_force = nullptr;

}  // namespace

HeapBudget::HeapBudget(int64_t bytes)
    : outer_(in_force), bytes_(outer_ == nullptr ? bytes : std::min(bytes, outer_->left_)), left_(bytes_) {
  in_force = this;
}

HeapBudget::~HeapBudget() {
  in_force = outer_;
  if (outer_ != nullptr) outer_->left_ -= bytes_ - left_;
}

bool HeapCharge::Take(uint64_t bytes) {
  HeapBudget* const budget = in_force;
  if (budget == nullptr) return true;
  if (budget->left_ < 0 || bytes > static_cast<uint64_t>(budget->left_)) {
    budget->is_exhausted_ = true;
    return false;
  }
  budget->left_ -= static_cast<int64_t>(bytes);
  return true;
}

void HeapCharge::Give(uint64_t bytes) {
  if (in_force != nullptr) in_force->left_ += static_cast<int64_t>(bytes);
}

HeapCharge::HeapCharge(uint64_t bytes) : bytes_(bytes) {
  if (!Take(bytes)) throw std::bad_alloc();
}

HeapCharge::~HeapCharge() { Give(bytes_); }

namespace {

// What malloc may take for a block of this size: its own words, a remainder that is too small for another block, pages.
uint64_t BlockBytes(size_t size) { return size + size / 32 + 40; }

}  // namespace
}  // namespace ingot

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names for operator new(size_t), operator new(size_t,
// nothrow) and operator delete(void*, size_t), and for what stands instead of each
extern "C" {
void* __real__Znwm(std::size_t size);
void* __real__ZnwmRKSt9nothrow_t(std::size_t size, const std::nothrow_t& nothrow) noexcept;
void __real__ZdlPvm(void* memory, std::size_t size) noexcept;

void* __wrap__Znwm(std::size_t size) {
  if (!ingot::HeapCharge::Take(ingot::BlockBytes(size))) throw std::bad_alloc();
  return __real__Znwm(size);
}
void* __wrap__ZnwmRKSt9nothrow_t(std::size_t size, const std::nothrow_t& nothrow) noexcept {
  return ingot::HeapCharge::Take(ingot::BlockBytes(size)) ? __real__ZnwmRKSt9nothrow_t(size, nothrow) : nullptr;
}
void __wrap__ZdlPvm(void* memory, std::size_t size) noexcept {
  if (memory != nullptr) ingot::HeapCharge::Give(ingot::BlockBytes(size));
  __real__ZdlPvm(memory, size);
}
}
// NOLINTEND(bugprone-reserved-identifier)
