// CudaKernelEmitter: one launch of a lowered function (cuda_launches.h) becomes one LLVM function that runs as a thread
// of the grid. It owns the function, its arguments and the emitters that work on it. Private to code generation.
//
// The function's parameters are the kernel interface on CUDA, one word of 8 bytes each: a pointer to global memory per
// buffer parameter of the function, in their order; the integer arguments (KernelIntArguments), each in the low bytes
// of its word; the workspace; the failure, a record in global memory of int32 code, padding to 8 bytes, int64 a and
// int64 b, which the caller sets to 0. Of several failing threads one stores what it has to say; the others end.
#pragma once

#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <optional>
#include <string>
#include <vector>

#include "compiler/codegen/allocations.h"
#include "compiler/codegen/codegen.h"
#include "compiler/codegen/cuda_launches.h"
#include "compiler/codegen/expr_emitter.h"
#include "compiler/codegen/function_builder.h"
#include "compiler/codegen/kernel_status.h"
#include "compiler/codegen/memory_access.h"
#include "compiler/codegen/stmt_emitter.h"

namespace ingot::codegen {

class CudaKernelEmitter final : private TargetStatements, private KernelRuntime {
 public:
  // `symbol` is what the function is called; it outlives the emitter.
  CudaKernelEmitter(llvm::Module& module, const KernelSource& source, const CudaLaunch& launch,
                    const std::string& symbol, const Target& target);

  // Returns the workspace in bytes, over the kernel's integer arguments. To be called once.
  Result<DimCode> Emit();

 private:
  void EmitIndependentLoop(const ir::ForNode& loop) override;
  std::optional<Storage> Allocate(const ir::Buffer& buffer) override;
  void FailIf(llvm::Value* condition, int32_t code, llvm::Value* a, llvm::Value* b) override;
  void CallExternal(size_t index, llvm::ArrayRef<llvm::Value*> buffers, llvm::ArrayRef<llvm::Value*> ints) override;
  llvm::Value* LoadWorkspace() override;

  llvm::Function* AddKernel();
  void LimitThreads(llvm::Function* kernel);
  void BindArguments(llvm::Function* kernel);
  void EmitBarrier();
  void SimplifyBarriers();
  llvm::Value* HasFailed();

  const KernelSource& source_;
  const CudaLaunch& launch_;
  const std::string& symbol_;
  const std::vector<ir::PrimVar> ints_;
  FunctionBuilder function_;
  KernelStatus status_;
  MemoryAccess memory_;
  ExprEmitter exprs_;
  StmtEmitter stmts_;
  Allocations allocations_;
  int thread_depth_ = 0;  // of thread-bound loops around what is being emitted
  // Of a launch with barriers: where the loop over the block's threads that is being emitted ends (null: outside of
  // one), the barriers so far with the branches on what they found, and whether a thread may fail between them.
  struct Barrier {
    llvm::CallInst* any;
    llvm::BranchInst* branch;
  };
  llvm::BasicBlock* waiting_ = nullptr;
  std::vector<Barrier> barriers_;
  llvm::AllocaInst* has_failed_ = nullptr;
  bool can_fail_ = false;
};

}  // namespace ingot::codegen
