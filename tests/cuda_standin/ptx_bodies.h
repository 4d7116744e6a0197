// Small kernels for tests: a body of PTX in a frame that has registers, shared memory and the thread's places in an
// input and an output.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/cuda_standin/instruction_table.h"
#include "tests/cuda_standin/machine.h"

namespace ingot::ptx {

// Rows of the instruction table that some test has run.
std::set<const Row*>& CoveredRows();

// The bits that a value of the type has, and the values at which instructions are tried first: ends of ranges, zeros of
// both signs, denormals, infinities, NaN.
uint64_t MaskOf(Type type);
std::vector<uint64_t> Corners(Type type);

// The words that a thread finds at [%in] and leaves at [%out].
constexpr int kWordsPerThread = 16;

struct BodyOptions {
  int threads = 32, blocks = 1;
  int64_t dynamic_shared = 0;
  int sm = 90;
  std::string functions;  // before the kernel
  MachineOptions machine = {.instruction_limit = 100000};
};

// Registers: %r0..%r39 (b32), %h0..%h9 (b16), %d0..%d19 (b64), %f0..%f19 (f32), %p0..%p9. Before the body %in and %out
// (64 bits) are the thread's, %x and %y where they begin, %t its number in the block, %g in the launch. Shared memory:
// smem, 4096 bytes; local memory: depot, 64 bytes. `input` has kWordsPerThread words per thread, so does the result,
// which is zero where nothing was stored.
Result<std::vector<uint32_t>> RunBody(const std::string& body, std::vector<uint32_t> input,
                                      const BodyOptions& options = {});

}  // namespace ingot::ptx
