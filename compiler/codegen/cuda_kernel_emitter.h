// CudaKernelEmitter: one launch of a lowered function (cuda_launches.h) becomes one LLVM function that runs as a thread
// of the grid. It owns the function, its arguments and the emitters that work on it. Private to code generation.
//
// The function's parameters are the kernel interface on CUDA, one word of 8 bytes each: a pointer to global memory per
// buffer parameter of the function, in their order; the integer arguments (KernelIntArguments), each in the low bytes
// of its word; the workspace; the failure, a record in global memory of int32 code, padding to 8 bytes, int64 a and
// int64 b, which the caller sets to 0; the round's number, of a launch that runs in rounds. Of several failing threads one stores what it has to say; the others end.
#pragma once

#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <optional>
#include <string>
#include <vector>

#include "compiler/codegen/allocations.h"
#include "compiler/codegen/codegen.h"
#include "compiler/codegen/cuda_launches.h"
#include "compiler/codegen/cuda_pipeline.h"
#include "compiler/codegen/cuda_tiles.h"
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
  // What a block has to be given of shared memory when it is launched, besides its variables there.
  int64_t shared_bytes() const { return shared_bytes_; }

 private:
  void EmitIndependentLoop(const ir::ForNode& loop) override;
  void EmitDeviceLoop(const ir::ForNode& loop) override;
  std::optional<Storage> Allocate(const ir::Buffer& buffer) override;
  llvm::Value* ReduceInWarp(const transform::WarpReduce& reduce, DataType dtype, llvm::Value* value) override;
  void FailIf(llvm::Value* condition, int32_t code, llvm::Value* a, llvm::Value* b) override;
  void CallExternal(size_t index, llvm::ArrayRef<llvm::Value*> buffers, llvm::ArrayRef<llvm::Value*> ints) override;
  llvm::Value* LoadWorkspace() override;

  llvm::Function* AddKernel();
  void LimitThreads(llvm::Function* kernel);
  void BindArguments(llvm::Function* kernel);
  void BindDims();
  // From the end, 1: the failure.
  llvm::Argument* LastArgument(unsigned place);
  void BindThread(const ir::ForNode& loop);
  void EmitBarrier();
  // cuda_pipeline.cc
  void EmitPipeline(const ir::ForNode& loop, int64_t stages);
  llvm::Value* DynamicShared(int64_t bytes, int64_t alignment, int64_t* first);
  // cuda_wgmma.cc
  void EmitGroupPipeline(const ir::ForNode& loop, int64_t stages, const PipelinedIteration& iteration);
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
  CudaTiles tiles_;
  const Target& target_;
  int thread_depth_ = 0;                  // of thread-bound loops around what is being emitted
  const ir::ForNode* threads_ = nullptr;  // the loop over threadIdx.x around it
  bool in_pipeline_ = false;
  // What follows from a thread's number is computed where it is needed, since loops have no registers to keep it.
  bool recomputes_of_thread_ = false;
  int64_t static_shared_bytes_ = 0, shared_bytes_ = 0;
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
