// Kernels of data/kernels.cu with inputs and what has to come out; run as they are (machine_test.cc) and with mistakes
// put into them (mutants_test.cc).
#pragma once

#include <string>
#include <vector>

#include "tests/cuda_standin/machine.h"

namespace ingot::ptx {

struct KernelCase {
  const char* kernel;
  // Ok when the launch succeeds and the results are right.
  Status (*run)(Machine& machine, ModuleId module);
  int64_t dead_blocks = 0;  // basic blocks that no input can reach
};
const std::vector<KernelCase>& KernelCases();

// A file of data/; empty without it.
std::string ReadData(const std::string& name);

}  // namespace ingot::ptx
