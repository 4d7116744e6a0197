// StmtEmitter: statements of lowered functions (compiler/transform/tensor/lowered.h) as LLVM instructions. It owns
// nothing: values are ExprEmitter's, accesses and their mask MemoryAccess's. Loops that a target runs its own way, and
// the memory of allocated buffers, it asks of the target. Private to code generation.
#pragma once

#include <optional>
#include <span>

#include "compiler/codegen/expr_emitter.h"
#include "compiler/codegen/function_builder.h"
#include "compiler/codegen/kernel_runtime.h"
#include "compiler/codegen/kernel_status.h"
#include "compiler/codegen/memory_access.h"
#include "compiler/ir/expr.h"
#include "compiler/ir/stmt.h"
#include "compiler/transform/tensor/lowered.h"

namespace ingot::codegen {

// The statements of a kernel that mean something else on each target.
class TargetStatements {
 public:
  virtual ~TargetStatements() = default;
  // A loop whose iterations are independent of each other: parallel, or bound to the threads of a device.
  virtual void EmitIndependentLoop(const ir::ForNode& loop) = 0;
  // A serial loop with an annotation, which the target gives instructions of its own (schedule/device_loops.h).
  virtual void EmitDeviceLoop(const ir::ForNode& loop) = 0;
  // The memory of a buffer that the kernel allocates; null after a failure.
  virtual std::optional<Storage> Allocate(const ir::Buffer& buffer) = 0;
  // What the values that a group of lanes has give together; null on targets without warps.
  virtual llvm::Value* ReduceInWarp(const transform::WarpReduce&, DataType, llvm::Value*) { return nullptr; }
};

class StmtEmitter {
 public:
  StmtEmitter(FunctionBuilder& function, KernelStatus& status, MemoryAccess& memory, ExprEmitter& exprs,
              KernelRuntime& runtime, TargetStatements& target, const KernelDescription& description);

  void Emit(const ir::Stmt& stmt);
  void EmitSerialFor(const ir::ForNode& loop);  // whatever its annotations

 private:
  void EmitSeq(const ir::SeqNode& seq);
  static size_t InterleavedStores(std::span<const ir::Stmt> stmts);
  void EmitInterleaved(std::span<const ir::Stmt> stores);
  void EmitStore(const ir::BufferStoreNode& store);
  void StoreValue(const ir::BufferStoreNode& store, llvm::Value* value);
  void EmitIf(const ir::IfStmtNode& node);
  // On a GPU, registers under a condition get what it chooses, their new values or the old ones, without a branch: so the
  // loads of what many of them add up are on their way at once.
  bool StoresRegisters(const ir::Stmt& stmt);
  void EmitChosen(llvm::Value* condition, const ir::Stmt& stmt);
  void EmitFor(const ir::ForNode& loop);
  void EmitWhile(const ir::WhileNode& loop);
  void EmitAllocate(const ir::AllocateNode& allocate);
  void BeginUnwritten(const ir::AllocateNode& allocate, const Storage& storage);
  void EmitAssert(const ir::AssertStmtNode& node);
  void EmitAttribute(const ir::AttrStmtNode& attribute);

  FunctionBuilder& function_;
  KernelStatus& status_;
  MemoryAccess& memory_;
  ExprEmitter& exprs_;
  KernelRuntime& runtime_;
  TargetStatements& target_;
  const KernelDescription& description_;
  llvm::IRBuilderBase& b_;
  Numeric numeric_;
};

}  // namespace ingot::codegen
