// LLVM's pass pipelines. Vectors and register tiles are explicit in what comes in, so LLVM's loop and SLP vectorisers
// stay off. Private to code generation.
#pragma once

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace ingot::codegen {

// level: 0 to 3 as in CodegenOptions.
void OptimizeModule(llvm::Module& module, llvm::TargetMachine& machine, int level);
// The same over the module of one kernel for a CPU, at level 3 with those passes alone that do something to it.
void OptimizeKernel(llvm::Module& module, llvm::TargetMachine& machine, int level);

}  // namespace ingot::codegen
