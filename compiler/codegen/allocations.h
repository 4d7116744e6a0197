// Allocations: the memory of buffers that a kernel allocates. Local ones lie on the stack, as allocas of
// the entry block (SROA turns constant-indexed ones into registers); global ones follow each other in the workspace
// that the caller brings. It owns how much of both has been handed out. Private to code generation.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/codegen/expr_emitter.h"
#include "compiler/codegen/function_builder.h"
#include "compiler/codegen/kernel_runtime.h"
#include "compiler/codegen/kernel_status.h"
#include "compiler/codegen/memory_access.h"
#include "compiler/target/target.h"
#include "runtime/dim_code.h"
#include "runtime/status.h"

namespace ingot::codegen {

// Of workspaces and of the buffers in them.
inline constexpr int64_t kBufferAlignment = 64;

class Allocations {
 public:
  Allocations(FunctionBuilder& function, KernelStatus& status, MemoryAccess& memory, ExprEmitter& exprs,
              KernelRuntime& runtime, const Target& target);

  // Null after a failure. in_task: the function that is being emitted is a parallel loop's, not the kernel itself.
  std::optional<Storage> Allocate(const ir::Buffer& buffer, bool in_task);
  // The size in bytes of all that lies in the workspace, over the kernel's integer arguments. A formula that is too long
  // is reported.
  Result<DimCode> WorkspaceSize(const std::vector<ir::PrimVar>& ints);

 private:
  llvm::Value* AllocateLocal(const ir::Buffer& buffer);
  llvm::Value* AllocateInWorkspace(const ir::Buffer& buffer);

  FunctionBuilder& function_;
  KernelStatus& status_;
  MemoryAccess& memory_;
  ExprEmitter& exprs_;
  KernelRuntime& runtime_;
  llvm::IRBuilderBase& b_;
  const int64_t max_local_bytes_;
  std::unordered_map<const llvm::Function*, int64_t> local_bytes_;
  std::vector<ir::Buffer> workspaces_;
  ir::PrimExpr workspace_bytes_;  // with each of them rounded up
};

}  // namespace ingot::codegen
