// KernelRuntime: what a kernel asks of the runtime that called it, in whatever way the target's kernels reach it. The
// emitters that all targets share see this interface alone. Private to code generation.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include <cstddef>
#include <cstdint>

namespace llvm {
class Value;
}  // namespace llvm

namespace ingot::codegen {

class KernelRuntime {
 public:
  virtual ~KernelRuntime() = default;
  // Ends the kernel with a failure code of runtime/kernel_abi.h if the condition (i1) holds; a and b (i64) are what the
  // code says of them.
  virtual void FailIf(llvm::Value* condition, int32_t code, llvm::Value* a, llvm::Value* b) = 0;
  // Calls the external function of this index in KernelDescription::externals with data pointers and words (i64); ends
  // the kernel if the function fails.
  virtual void CallExternal(size_t index, llvm::ArrayRef<llvm::Value*> buffers, llvm::ArrayRef<llvm::Value*> ints) = 0;
  // The memory that the caller brings for buffers of the kernel.
  virtual llvm::Value* LoadWorkspace() = 0;
};

}  // namespace ingot::codegen
