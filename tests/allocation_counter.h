// Counts this thread's calls of operator new: tests that promise "no allocation" compare the count before and after.
#pragma once

#include <cstdint>

namespace ingot::test {
int64_t NumAllocations();
}  // namespace ingot::test
