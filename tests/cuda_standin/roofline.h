// A roofline of what a launch counted: the clocks that each part of a GPU is busy with it, of which the largest bounds the
// launch. It ranks schedules of one function; it knows nothing of latencies, and is no time.
#pragma once

#include <cstdint>

#include "tests/cuda_standin/executor.h"

namespace ingot::ptx {

struct Roofline {
  double memory = 0;  // tensors, once
  double cache = 0;   // sectors that warps asked for
  double shared = 0;  // passes over the banks of shared memory
  double matrix = 0;  // matrix instructions
  double instructions = 0;
  double Bound() const;
};

// Of a launch of so many blocks that all do the same; `bytes`: what of global memory is read and written at least.
// Multiprocessors that have no block wait for the others.
Roofline EstimateClocks(const LaunchCounts& counts, int64_t blocks, int64_t bytes, int sm);

}  // namespace ingot::ptx
