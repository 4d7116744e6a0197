// CpuParallelLoops: a parallel loop's body becomes a task, a function of its own that the runtime calls for each
// iteration (IngotTaskFn in runtime/kernel_abi.h). What the body uses from outside travels in a struct on the caller's
// stack. It owns the number of tasks and whether one is being emitted. Private to code generation.
#pragma once

#include <string>
#include <vector>

#include "compiler/codegen/cpu_kernel_context.h"
#include "compiler/codegen/function_builder.h"
#include "compiler/codegen/kernel_status.h"
#include "compiler/codegen/memory_access.h"
#include "compiler/codegen/stmt_emitter.h"

namespace ingot::codegen {

class CpuParallelLoops {
 public:
  CpuParallelLoops(FunctionBuilder& function, KernelStatus& status, MemoryAccess& memory, ExprEmitter& exprs,
                   StmtEmitter& stmts, CpuKernelContext& context, std::string kernel);

  void Emit(const ir::ForNode& loop);
  bool in_task() const { return in_task_; }

 private:
  // What a body uses from outside: the loop's first index, then variables, then buffers.
  struct Closure {
    std::vector<const ir::PrimVarNode*> variables, buffers;  // buffers: their data variables
    llvm::StructType* type = nullptr;
    llvm::Value* values = nullptr;  // on the caller's stack
  };
  Closure StoreClosure(const ir::ForNode& loop, llvm::Value* begin);
  llvm::Function* AddTask();
  void EmitTask(llvm::Function* task, const ir::ForNode& loop, const Closure& closure);
  void BindClosure(llvm::Function* task, const ir::ForNode& loop, const Closure& closure,
                   const MemoryAccess::StorageMap& outer_storage);

  FunctionBuilder& function_;
  KernelStatus& status_;
  MemoryAccess& memory_;
  ExprEmitter& exprs_;
  StmtEmitter& stmts_;
  CpuKernelContext& context_;
  llvm::IRBuilderBase& b_;
  const std::string kernel_;
  int num_tasks_ = 0;
  bool in_task_ = false;
};

}  // namespace ingot::codegen
