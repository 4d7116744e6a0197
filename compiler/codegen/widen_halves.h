// WidenHalves: arithmetic of float16 is that of float32, rounded, where the CPU converts float16 only. Private to code
// generation.
#pragma once

#include "compiler/target/target.h"

namespace llvm {
class Module;
}  // namespace llvm

namespace ingot::codegen {

// Kernels compute in float32; LLVM's optimiser turns what is rounded behind a step, and was float16 before it, into a
// step of float16. Instruction selection takes some of these back one lane at a time (comparisons among them), which
// costs sixteen times as much. Here each of them becomes a step of float32 with the same result: float32 has more than
// twice the bits, so that a sum, product, quotient or root that is rounded twice is the one that is rounded once. Behind
// the optimiser, which would undo it.
void WidenHalves(llvm::Module& module, const Target& target);

}  // namespace ingot::codegen
