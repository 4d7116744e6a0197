// CpuKernelEmitter: one lowered PrimFunc (compiler/transform/tensor/lowered.h) becomes one LLVM function with the
// kernel ABI (runtime/kernel_abi.h), plus one task function per parallel loop: unoptimised IR in the given module. It
// owns the kernel's function, its integer arguments and the emitters that work on it. Private to code generation.
//
// A buffer parameter's pointer is loaded once. Parameters, workspaces and stack buffers are disjoint, except for an
// output and the input whose memory it may take.
#pragma once

#include <llvm/IR/Module.h>

#include <optional>
#include <string>
#include <vector>

#include "compiler/codegen/allocations.h"
#include "compiler/codegen/amx_products.h"
#include "compiler/codegen/codegen.h"
#include "compiler/codegen/cpu_kernel_context.h"
#include "compiler/codegen/cpu_parallel_loops.h"
#include "compiler/codegen/expr_emitter.h"
#include "compiler/codegen/function_builder.h"
#include "compiler/codegen/kernel_status.h"
#include "compiler/codegen/memory_access.h"
#include "compiler/codegen/stmt_emitter.h"

namespace ingot::codegen {

class CpuKernelEmitter final : private TargetStatements {
 public:
  // `symbol` is what the function is called; it outlives the emitter.
  CpuKernelEmitter(llvm::Module& module, const KernelSource& source, const std::string& symbol, const Target& target);

  // Returns the workspace in bytes, over the kernel's integer arguments. To be called once.
  Result<DimCode> Emit();

 private:
  void EmitIndependentLoop(const ir::ForNode& loop) override;
  void EmitDeviceLoop(const ir::ForNode& loop) override;
  std::optional<Storage> Allocate(const ir::Buffer& buffer) override;

  llvm::Function* AddKernel();
  void BindArguments(llvm::Value* buffers, llvm::Value* ints);

  const KernelSource& source_;
  const std::string& symbol_;
  const std::vector<ir::PrimVar> ints_;
  FunctionBuilder function_;
  KernelStatus status_;
  CpuKernelContext context_;
  MemoryAccess memory_;
  ExprEmitter exprs_;
  StmtEmitter stmts_;
  Allocations allocations_;
  CpuParallelLoops loops_;
  const bool has_amx_products_;
  AmxProducts amx_products_;
};

}  // namespace ingot::codegen
