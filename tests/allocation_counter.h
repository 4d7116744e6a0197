// Counts this thread's calls of operator new: tests that promise "no allocation" compare the count before and after. It
// can make one of them fail, too.
#pragma once

#include <cstdint>

namespace ingot::test {
int64_t NumAllocations();
// The k-th allocation from now on (1: the next) fails, on this thread; 0: none does.
void FailAllocation(int64_t k);
// The failure that was asked for has happened, or will not any more.
bool AllocationHasFailed();
}  // namespace ingot::test
