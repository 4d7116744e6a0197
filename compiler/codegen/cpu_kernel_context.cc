// Loads of the context's fields, which stay the same while a kernel runs, and calls of its functions.
#include "compiler/codegen/cpu_kernel_context.h"

#include <algorithm>

#include "runtime/kernel_abi.h"

namespace ingot::codegen {

llvm::Value* CpuKernelContext::LoadPointer(size_t offset, const char* name) {
  llvm::Value* address = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), context(), offset);
  return function_.LoadInvariant(b_.getPtrTy(), address, name);
}

llvm::Value* CpuKernelContext::LoadWorkspace() {
  return LoadPointer(offsetof(IngotKernelContext, workspace), "workspace");
}

void CpuKernelContext::FailIf(llvm::Value* condition, int32_t code, llvm::Value* a, llvm::Value* b) {
  llvm::BasicBlock* next = function_.EnterUnlikely(condition, "fail", "checked");
  llvm::Value* callee = LoadPointer(offsetof(IngotKernelContext, fail), "fail.fn");
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(),
                                       {b_.getPtrTy(), b_.getInt32Ty(), b_.getInt64Ty(), b_.getInt64Ty()}, false);
  b_.CreateRet(b_.CreateCall(type, callee, {context(), b_.getInt32(static_cast<uint32_t>(code)), a, b}));
  b_.SetInsertPoint(next);
}

void CpuKernelContext::ReturnIfNonZero(llvm::Value* code) {
  llvm::BasicBlock* next = function_.EnterUnlikely(b_.CreateICmpNE(code, b_.getInt32(0)), "failed", "continued");
  b_.CreateRet(code);
  b_.SetInsertPoint(next);
}

void CpuKernelContext::FailIfCancelled() {
  llvm::Value* cancel = LoadPointer(offsetof(IngotKernelContext, cancel), "cancel");
  llvm::LoadInst* cancelled = b_.CreateLoad(b_.getInt32Ty(), cancel, /*isVolatile=*/true);
  FailIf(b_.CreateICmpNE(cancelled, b_.getInt32(0)), INGOT_KERNEL_CANCELLED, b_.getInt64(0), b_.getInt64(0));
}

llvm::Value* CpuKernelContext::RunTasks(llvm::Function* task, llvm::Value* closure, llvm::Value* num_tasks) {
  auto* type =
      llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy(), b_.getInt64Ty()}, false);
  llvm::Value* callee = LoadPointer(offsetof(IngotKernelContext, parallel_for), "parallel_for.fn");
  return b_.CreateCall(type, callee, {context(), task, closure, num_tasks}, "code");
}

llvm::Value* CpuKernelContext::StoreArray(llvm::ArrayRef<llvm::Value*> values, llvm::Type* type, const char* name) {
  auto* array_type = llvm::ArrayType::get(type, std::max<size_t>(values.size(), 1));
  llvm::Value* array = function_.EntryAlloca(array_type, 8, name);
  for (size_t i = 0; i < values.size(); ++i) b_.CreateStore(values[i], b_.CreateConstInBoundsGEP1_64(type, array, i));
  return array;
}

void CpuKernelContext::CallExternal(size_t index, llvm::ArrayRef<llvm::Value*> buffers,
                                    llvm::ArrayRef<llvm::Value*> ints) {
  llvm::Value* buffer_array = StoreArray(buffers, b_.getPtrTy(), "extern.buffers");
  llvm::Value* int_array = StoreArray(ints, b_.getInt64Ty(), "extern.ints");
  llvm::Value* callee = LoadPointer(offsetof(IngotKernelContext, call_external), "external.fn");
  auto* type =
      llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getInt32Ty(), b_.getPtrTy(), b_.getPtrTy()}, false);
  llvm::Value* number = b_.getInt32(static_cast<uint32_t>(index));
  ReturnIfNonZero(b_.CreateCall(type, callee, {context(), number, buffer_array, int_array}));
}

}  // namespace ingot::codegen
