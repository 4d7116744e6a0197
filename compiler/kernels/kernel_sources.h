// The tensor functions of a module, on their way to the kernels of one target record: each is described, scheduled, and
// brought into the form that compiler/codegen takes. Up to there they are independent of each other and spread over
// threads; the result does not depend on the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/ir/module.h"
#include "compiler/schedule/choices.h"
#include "compiler/target/target.h"
#include "runtime/status.h"

namespace ingot::kernels {

class KernelCache;

struct KernelOptions {
  int opt_level = 2;
  int num_threads = 1;
  std::function<void(std::string_view step, int64_t done, int64_t total)> progress;  // may be null
  KernelCache* cache = nullptr;  // borrowed; CompileKernelSet takes objects from it, and puts others in
  // What tuning chose for a function with its buffers named by their places (WithParamsByPlace); null: nothing. Called
  // on several threads; its failure is the compilation's.
  std::function<Result<schedule::Chosen>(const ir::PrimFunc& function, const Target& target)> chosen = nullptr;
  std::string ptxas = {};  // NVIDIA's assembler, which makes cubins beside PTX (codegen/cubin.h); empty: none are made
};

codegen::CodegenOptions CodegenOptionsOf(const KernelOptions& options);

struct NamedPrimFunc {
  std::string name;
  ir::PrimFunc function;
};
// In the order of the module.
std::vector<NamedPrimFunc> PrimFuncsOf(const ir::IRModule& module);

// The function with its buffers named by their places, so that models share kernels whatever their tensors are called.
ir::PrimFunc WithParamsByPlace(const ir::PrimFunc& function);

// Describes, schedules and lowers one function. Errors name the function and the target.
Result<codegen::KernelSource> MakeSource(const NamedPrimFunc& function, const Target& target,
                                         const schedule::Chosen& chosen = {});

// Runs body(i) for every i < count on up to num_threads threads. If several fail, the failure of the lowest i is
// returned.
Status ForEachOnThreads(size_t count, int num_threads, const std::function<Status(size_t)>& body);

Result<std::vector<codegen::KernelSource>> MakeSources(const std::vector<NamedPrimFunc>& functions,
                                                       const Target& target, const KernelOptions& options);

}  // namespace ingot::kernels
