// What vm-compile shows of kernels: schedules, tensor functions and code for one record of the target.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "compiler/ir/module.h"
#include "compiler/kernels/kernel_sources.h"
#include "compiler/target/target.h"
#include "runtime/status.h"

namespace ingot::kernels {

// The module with its PrimFuncs scheduled for one variant.
Result<ir::IRModule> ScheduleModule(const ir::IRModule& module, const Target& target);

// Returns the module with only the named PrimFuncs, in the module's order, and without graph functions. An unknown name
// is an error with a suggestion.
Result<ir::IRModule> SelectKernels(const ir::IRModule& module, std::span<const std::string> names);

// Shows how each PrimFunc is scheduled for one variant: the rules that were applied, and the trace as code.
Result<std::string> EmitSchedules(const ir::IRModule& module, const Target& target);

// The kernels of one variant as text: LLVM IR or assembly (PTX for CUDA), one after the other.
enum class AssemblyKind : uint8_t { kLlvm, kAssembly };
Result<std::string> EmitAssembly(const ir::IRModule& module, const Target& target, AssemblyKind kind,
                                 const KernelOptions& options);

}  // namespace ingot::kernels
