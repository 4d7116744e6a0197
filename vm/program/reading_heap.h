// Within which heap a file is read: 64 bytes per byte of it and 1 MiB, for everything that decoding, verifying and
// linking allocate at a time. Constants in memory of their own, kernel images and the file itself do not count.
#pragma once

#include <algorithm>
#include <new>
#include <string>

#include "runtime/heap_budget.h"
#include "vm/program/checks.h"
#include "vm/program/limits.h"

namespace ingot::vm {

inline int64_t ReadingHeapBytes(size_t file_bytes) {
  return kFreeBytes +
         kBytesPerByte * static_cast<int64_t>(std::min<uint64_t>(file_bytes, kMaxReadingHeap / kBytesPerByte));
}

Status AsksForTooMuchHeap(const CheckSet& checks, const std::string& name, size_t file_bytes);

// Calls read(), which gives a Result or a Status, within the heap for a file of this size. Where that is not enough, the
// failure says so, behind the file's name if that is not empty.
template <typename Read>
auto WithinReadingHeap(const CheckSet& checks, const std::string& name, size_t file_bytes, Read read)
    -> decltype(read()) {
  const HeapBudget budget(checks.Has(Check::kHeapCap) ? ReadingHeapBytes(file_bytes) : INT64_MAX / 2);
  try {
    decltype(read()) result = read();
    if (!budget.is_exhausted() || result.ok()) return result;
  } catch (const std::bad_alloc&) {
    if (!budget.is_exhausted()) throw;
  }
  return AsksForTooMuchHeap(checks, name, file_bytes);
}

}  // namespace ingot::vm
