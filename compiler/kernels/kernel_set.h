// Kernels of a module: every tensor function is described, scheduled and compiled for each record of the target, into
// one image per record. Descriptors, layouts and plans are shared by all variants.
#pragma once

#include <vector>

#include "compiler/codegen/kernel_descriptor.h"
#include "compiler/ir/module.h"
#include "compiler/kernels/kernel_sources.h"
#include "compiler/target/target.h"
#include "runtime/status.h"
#include "vm/program/program.h"

namespace ingot::kernels {

struct KernelSet {
  std::vector<codegen::KernelDescription> kernels;  // in the order of the module's PrimFuncs, variants best first
  std::vector<vm::KernelImage> images;
};
Result<KernelSet> CompileKernelSet(const ir::IRModule& module, const TargetFamily& family,
                                   const KernelOptions& options);

}  // namespace ingot::kernels
