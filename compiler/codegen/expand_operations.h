// ExpandOperations: operations that LLVM would turn into calls of a library, since the target has no instruction for
// them, as arithmetic that it has. x86-64 below level 3 lacks the fused multiply-add and the conversions of float16.
// Results are those of the instructions, so that kernels of all levels agree. In and out: one kernel's module, before
// it is optimised. Private to code generation.
#pragma once

#include "compiler/target/target.h"

namespace llvm {
class Module;
}  // namespace llvm

namespace ingot::codegen {

void ExpandOperations(llvm::Module& module, const Target& target);

}  // namespace ingot::codegen
