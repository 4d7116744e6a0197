// ExpandOperations: operations that LLVM would turn into calls of a library, since the target has no instruction for
// them, as arithmetic that it has. x86-64 below level 3 lacks the fused multiply-add and the conversions of float16.
// Results are those of the instructions, so that kernels of all levels agree. Dot products of bytes, for which LLVM's IR
// has no operation of all targets, are emitted as calls of a marker and become the target's instructions here. In and
// out: one kernel's module, before it is optimised. Private to code generation.
#pragma once

#include "compiler/target/target.h"

namespace llvm {
class Function;
class Module;
class Type;
}  // namespace llvm

namespace ingot::codegen {

// The function (a, b) -> T.dot_bytes(a, b) of int32 or a vector of it, which ExpandOperations replaces.
llvm::Function* DotBytesMarker(llvm::Module& module, llvm::Type* type);

void ExpandOperations(llvm::Module& module, const Target& target);

}  // namespace ingot::codegen
