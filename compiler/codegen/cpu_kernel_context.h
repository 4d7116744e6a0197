// CpuKernelContext: the context of the kernel ABI (runtime/kernel_abi.h), which kernels and tasks get as their first
// argument: its fields, and the calls through it. It owns nothing; the context is that of the function that is being
// emitted. Private to code generation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compiler/codegen/function_builder.h"
#include "compiler/codegen/kernel_runtime.h"

namespace ingot::codegen {

class CpuKernelContext final : public KernelRuntime {
 public:
  explicit CpuKernelContext(FunctionBuilder& function) : function_(function), b_(function.instructions()) {}

  void FailIf(llvm::Value* condition, int32_t code, llvm::Value* a, llvm::Value* b) override;
  void CallExternal(size_t index, llvm::ArrayRef<llvm::Value*> buffers, llvm::ArrayRef<llvm::Value*> ints) override;
  llvm::Value* LoadWorkspace() override;

  // Ends the function with INGOT_KERNEL_CANCELLED if the caller wants it to stop.
  void FailIfCancelled();
  // Calls the function for each of num_tasks (i64) numbers and returns its code (i32).
  llvm::Value* RunTasks(llvm::Function* task, llvm::Value* closure, llvm::Value* num_tasks);
  // Returns from the function with the code (i32) if it is a failure.
  void ReturnIfNonZero(llvm::Value* code);

 private:
  llvm::Value* context() const { return function_.function()->getArg(0); }
  llvm::Value* LoadPointer(size_t offset, const char* name);
  // An array in the frame with these values of the type.
  llvm::Value* StoreArray(llvm::ArrayRef<llvm::Value*> values, llvm::Type* type, const char* name);

  FunctionBuilder& function_;
  llvm::IRBuilderBase& b_;
};

}  // namespace ingot::codegen
