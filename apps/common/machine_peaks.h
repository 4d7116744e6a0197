// What this machine does at best, measured when it is asked for: multiply-adds of float32 from registers, and reading
// memory, for working sets of several sizes. vm-bench --roofline sets the rates of kernels against it.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/status.h"

namespace ingot::apps {

struct MachinePeaks {
  struct Read {
    int64_t bytes;        // of all threads together, read again and again
    double gbytes_per_s;
  };
  int threads = 1;
  int vector_bits = 128;  // of the multiply-adds
  double gflops = 0;      // a multiply-add is two
  std::vector<Read> reads;  // by rising size

  // The rate for a working set: that of the smallest size measured that holds it, or of the largest one.
  double GbytesPerSecond(double bytes) const;
};

// Takes about a third of a second.
Result<MachinePeaks> MeasurePeaks(int threads);

}  // namespace ingot::apps
