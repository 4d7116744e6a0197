// Counts this thread's calls of operator new, and the bytes that it has: tests that promise "no allocation" compare the
// count before and after, tests of caps the bytes. It can make an allocation fail, too.
#pragma once

#include <cstdint>

namespace ingot::test {
int64_t NumAllocations();
// What this thread has allocated less what it has freed, and the most that this was since the last call.
int64_t LiveBytes();
int64_t TakePeakBytes();
// The k-th allocation from now on (1: the next) fails, on this thread, and with `for_ever` all after it, too; 0: none
// does.
void FailAllocation(int64_t k, bool for_ever = false);
// True when the requested failure has happened, or none is requested.
bool AllocationHasFailed();
// The same for the allocations of all threads together.
void FailAllocationOfAnyThread(int64_t k);
bool AllocationOfAnyThreadHasFailed();
}  // namespace ingot::test
