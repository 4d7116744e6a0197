// Kernels of a module: every PrimFunc is described, scheduled and lowered per CPU feature set, and compiled into one
// image per feature set. Descriptors, layouts and plans are shared by all variants. The result does not depend on the
// number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/ir/module.h"
#include "compiler/target/target.h"
#include "runtime/status.h"
#include "vm/program/program.h"

namespace ingot::kernels {

struct KernelOptions {
  int opt_level = 2;
  int num_threads = 1;
  std::function<void(std::string_view step, int64_t done, int64_t total)> progress;  // may be null
};

struct KernelSet {
  std::vector<codegen::KernelDescription> kernels;  // in the order of the module's PrimFuncs, variants best first
  std::vector<vm::KernelImage> images;
};
Result<KernelSet> CompileKernelSet(const ir::IRModule& module, const TargetFamily& family,
                                   const KernelOptions& options);

// The module with its PrimFuncs scheduled for one variant.
Result<ir::IRModule> ScheduleModule(const ir::IRModule& module, const Target& target);

// Returns the module with only the named PrimFuncs, in the module's order, and without graph functions. An unknown name
// is an error with a suggestion.
Result<ir::IRModule> SelectKernels(const ir::IRModule& module, std::span<const std::string> names);

// Shows how each PrimFunc is scheduled for one variant: the rules that were applied, and the trace as code.
Result<std::string> EmitSchedules(const ir::IRModule& module, const Target& target);

// The kernels of one variant as text: LLVM IR or assembly, one after the other.
enum class AssemblyKind : uint8_t { kLlvm, kAssembly };
Result<std::string> EmitAssembly(const ir::IRModule& module, const Target& target, AssemblyKind kind,
                                 const KernelOptions& options);

}  // namespace ingot::kernels
