// The time that this process has had of the processors, all its threads together: what tests measure where they bound
// work, since the time of a clock on the wall is also other processes'.
#pragma once

#include <ctime>

namespace ingot::test {

inline double ProcessorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace ingot::test
