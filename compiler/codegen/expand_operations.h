// ExpandOperations: operations that LLVM has no form of, or would turn into calls of a library since the target has no
// instruction for them, as what the target has. x86-64 below level 3 lacks the fused multiply-add and the conversions of
// float16; AVX-512 has an instruction that scales by powers of two. Results are those of the instructions, so that
// kernels of all levels agree. In and out: one kernel's module, before it is optimised. Private to code generation.
#pragma once

#include "compiler/target/target.h"

namespace llvm {
class Function;
class Module;
class Type;
}  // namespace llvm

namespace ingot::codegen {

// The function (x, n, s) -> x 2^n, rounded once, of float or double or a vector of one of them. n is a whole number, and s
// holds it in its low bits; x 2^(n / 2) is a normal number. Expanded by ExpandOperations.
llvm::Function* ScaleMarker(llvm::Module& module, llvm::Type* type);

void ExpandOperations(llvm::Module& module, const Target& target);

}  // namespace ingot::codegen
