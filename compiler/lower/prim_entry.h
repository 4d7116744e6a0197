// Entry points that are PrimFuncs: an exported PrimFunc becomes a VM function that takes inputs and outputs and calls
// its kernel.
#pragma once

#include <string>

#include "compiler/ir/expr.h"
#include "vm/program/program.h"

namespace ingot::lower {

vm::Signature SignatureOfPrimEntry(const vm::Kernel& kernel, const ir::PrimFunc& prim);
vm::Function LowerPrimEntry(const std::string& name, vm::KernelId kernel, vm::Signature signature,
                            const ir::PrimFunc& prim);

}  // namespace ingot::lower
