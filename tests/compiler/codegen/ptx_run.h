// Runs tensor functions as PTX on the GPU that is not there (tests/cuda_standin), through the default schedule for CUDA
// and lowering, and asks ptxas about PTX, where one is found.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/codegen/ptx.h"
#include "tests/compiler/op/run_implementations.h"
#include "tests/cuda_standin/machine.h"

namespace ingot::codegen::testing {

Target Sm(const char* name);  // "sm_80"
// The function, scheduled and lowered, as the kernel "kernel".
Result<KernelSource> SourceOf(const ir::PrimFunc& function, const Target& target);
// Launches the image's kernel and puts the results into the arguments; what its launches count, together. A block gets
// the shared memory that it may have on every architecture, on 9.0 alone what it may have there.
Result<ptx::LaunchCounts> RunImage(const KernelSource& source, const PtxImage& image, op::KernelArguments& arguments,
                                   const ptx::MachineOptions& options = {
                                       .orders = {ptx::WarpOrder::kLowestFirst, ptx::WarpOrder::kRandom}});

// A function with the dimensions and dtypes that its buffers have in a test; the last one is the result.
struct SizedFunction {
  ir::PrimFunc function;
  std::vector<std::vector<int64_t>> dims;
  std::vector<DataType> dtypes;
};
// Small integers, so that sums are exact in any order; the result holds what shows if it is not written.
op::KernelArguments SmallIntegers(const SizedFunction& sized, uint64_t seed);
// The result of the function as it is, by the interpreter.
Result<op::Bytes> InterpretedResult(const SizedFunction& sized, op::KernelArguments arguments);
// What keeps the rule away from the block; empty: nothing.
std::string KeepsAway(const ir::PrimFunc& function, const std::string& rule, const std::string& block);
// What is wrong with the function on the GPU that is not there; empty: nothing. The kernel is added to `sources`.
std::string Wrong(const SizedFunction& sized, op::KernelArguments arguments, const op::Bytes& expected,
                  std::vector<KernelSource>& sources);
// The same on small integers, with what the interpreter says expected.
std::string WrongBesideInterpreter(const SizedFunction& sized, uint64_t seed, std::vector<KernelSource>& sources);
// How many basic blocks no launch runs of the code of the first function, on the sizes of so many functions that differ in
// nothing else; once these are `most` or fewer, no others are run. Divisions whose numbers need more than 32 bits, beside
// which LLVM puts faster ones for all others, do not count.
int64_t BlocksLeftOut(const std::function<SizedFunction(size_t)>& sized, size_t count, int64_t most = 0);
// What the launches count, scheduled without some of the default rules.
Result<ptx::LaunchCounts> CountAccesses(const SizedFunction& sized, const std::vector<std::string>& without);

std::string PtxasPath();  // empty: there is none
bool HasPtxas();
struct Assembled {
  bool is_ok = false;
  std::string errors;
  int launches = 0, most_registers = 0, most_spilled = 0;  // of a thread; in bytes
  std::string remarks;                                     // what it says about speed
};
Assembled Assemble(const std::string& ptx, const std::string& sm);
// Kernels that were compiled for sm_80 are for sm_90, too, where ptxas is asked about them (ptx_audit.h).
void CompileForLater(std::vector<KernelSource> sources);

}  // namespace ingot::codegen::testing
