// Runs tensor functions as PTX on the GPU that is not there (tests/cuda_standin), through the default schedule for CUDA
// and lowering, and asks ptxas about PTX, where one is found.
#pragma once

#include <string>
#include <vector>

#include "compiler/codegen/ptx.h"
#include "tests/compiler/op/run_implementations.h"
#include "tests/cuda_standin/machine.h"

namespace ingot::codegen::testing {

Target Sm(const char* name);  // "sm_80"
// The function, scheduled and lowered, as the kernel "kernel".
Result<KernelSource> SourceOf(const ir::PrimFunc& function, const Target& target);
// Launches the image's kernel and puts the results into the arguments; what its launches count, together.
Result<ptx::LaunchCounts> RunImage(const KernelSource& source, const PtxImage& image, op::KernelArguments& arguments,
                                   const ptx::MachineOptions& options = {
                                       .orders = {ptx::WarpOrder::kLowestFirst, ptx::WarpOrder::kRandom}});

bool HasPtxas();
struct Assembled {
  bool is_ok = false;
  std::string errors;
  int launches = 0, most_registers = 0, most_spilled = 0;  // of a thread; in bytes
};
Assembled Assemble(const std::string& ptx, const std::string& sm);
// ptxas takes the kernels for sm_80 and sm_90, and finds registers for nearly all that a thread has.
void CheckPtxasTakes(std::vector<KernelSource> sources);

}  // namespace ingot::codegen::testing
