// Counts this thread's calls of operator new: tests that promise "no allocation" compare the count before and after. It
// can make one of them fail, too.
#pragma once

#include <cstdint>

namespace ingot::test {
int64_t NumAllocations();
// The k-th allocation from now on (1: the next) fails, on this thread; 0: none does.
void FailAllocation(int64_t k);
// True when the requested failure has happened, or none is requested.
bool AllocationHasFailed();
}  // namespace ingot::test
