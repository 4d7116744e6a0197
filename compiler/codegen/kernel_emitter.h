// KernelEmitter: one lowered PrimFunc becomes one LLVM function with the kernel ABI, plus one task function per
// parallel loop. What goes in is described in compiler/transform/tensor/lowered.h; what comes out is unoptimised IR in
// the given module. Private to code generation.
//
//   - A buffer parameter's pointer is loaded once. Its accesses carry alias scopes: parameters, workspaces and stack
//     buffers are disjoint, except for an output and the input whose memory it may take.
//   - Local buffers are allocas of the entry block; SROA turns constant-indexed ones into registers.
//   - A parallel loop's body is outlined: what it uses from outside travels in a struct on the caller's stack.
//   - Index arithmetic is marked as not overflowing; arithmetic on data wraps.
//   - a + b * c in float32 and float64 is one fused multiply-add.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/codegen/codegen.h"
#include "compiler/codegen/numeric.h"
#include "compiler/ir/expr.h"
#include "runtime/dim_code.h"

namespace ingot::codegen {

class KernelEmitter {
 public:
  KernelEmitter(llvm::Module& module, const KernelSource& source, const Target& target);

  Status Emit();
  const DimCode& workspace() const { return workspace_; }
  llvm::Function* kernel() const { return kernel_; }

 private:
  // Where a buffer is, within the function that is being emitted.
  struct Storage {
    llvm::Value* base = nullptr;
    int alias_index = -1;  // into alias_scopes_
    int64_t alignment = 1;
  };
  using ValueMap = std::unordered_map<const ir::PrimVarNode*, llvm::Value*>;
  using StorageMap = std::unordered_map<const ir::PrimVarNode*, Storage>;  // by the buffer's data variable

  // ---- The function and its statements (kernel_emitter.cc).
  Status BindArguments();
  void StartFunction(llvm::Function* function, llvm::Argument* context);
  void EmitStmt(const ir::Stmt& stmt);
  void EmitStore(const ir::BufferStoreNode& store);
  void EmitIf(const ir::IfStmtNode& node);
  void EmitSerialFor(const ir::ForNode& loop);
  void EmitParallelFor(const ir::ForNode& loop);
  void EmitWhile(const ir::WhileNode& loop);
  void EmitAllocate(const ir::AllocateNode& allocate);
  void EmitAssert(const ir::AssertStmtNode& node);
  llvm::BasicBlock* NewBlock(const char* name);
  llvm::AllocaInst* EntryAlloca(llvm::Type* type, int64_t alignment, const char* name);
  llvm::Value* LoadContextField(size_t offset, llvm::Type* type, const char* name);
  // Returns from the function with the result of fail() when the condition (i1) holds.
  void FailIf(llvm::Value* condition, int32_t code, llvm::Value* a, llvm::Value* b);
  void ReturnIfNonZero(llvm::Value* code);
  void Unsupported(std::string message);  // keeps the first
  bool failed() const { return !status_.ok(); }

  // ---- Memory (emit_memory.cc).
  int AddAliasScope(const std::string& name);
  const Storage* FindStorage(const ir::Buffer& buffer);
  template <typename Instruction>
  Instruction* Annotate(Instruction* access, const Storage& storage);
  // The place of one access, in elements.
  struct Address {
    llvm::Value* offset = nullptr;  // i64; for strided accesses of the first lane; for gathered ones a vector
    llvm::Value* stride = nullptr;  // i64, between lanes; null: gathered
    bool contiguous = false;
    int lanes = 1;
  };
  Address EmitAddress(const ir::Buffer& buffer, const std::vector<ir::PrimExpr>& indices);
  llvm::Value* ElementPointer(const Storage& storage, DataType dtype, llvm::Value* offset);
  llvm::Value* LaneOffset(const Address& address, int lane);
  llvm::Value* EmitLoad(const ir::BufferLoadNode& load);
  llvm::Value* LanePointers(const Storage& storage, DataType dtype, const Address& address);
  llvm::Value* CountOfFirstLanes(const ir::PrimExpr& condition);  // null: the condition has another form
  llvm::Value* FirstLanes(llvm::Value* count, int lanes);
  void StoreFirstLanes(const Storage& storage, llvm::Value* value, llvm::Value* offset, DataType dtype);
  bool IsMasked(int lanes) const;  // whether accesses of so many lanes are masked

  // ---- Expressions (emit_expr.cc).
  llvm::Value* EmitExpr(const ir::PrimExpr& expr);
  llvm::Value* EmitIndex(const ir::PrimExpr& expr);  // as i64 (or a vector of it)
  llvm::Value* EmitBinary(const ir::BinaryNode& node);
  llvm::Value* EmitFloatBinary(const ir::BinaryNode& node);
  llvm::Value* TryFusedMultiplyAdd(const ir::BinaryNode& node);
  llvm::Value* EmitMinMax(const ir::BinaryNode& node, llvm::Value* a, llvm::Value* b);
  llvm::Value* EmitIntegerDivision(const ir::BinaryNode& node, llvm::Value* a, llvm::Value* b);
  llvm::Value* EmitShuffle(const ir::ShuffleNode& node);
  llvm::Value* EmitRamp(const ir::RampNode& node);
  llvm::Value* Error(DataType dtype);  // a placeholder value of the type, after Unsupported

  // ---- Intrinsics (emit_intrinsic.cc).
  llvm::Value* EmitCall(const ir::PrimCallNode& call);
  llvm::Value* EmitUnaryFloat(const ir::PrimCallNode& call, llvm::Intrinsic::ID id);
  llvm::Value* EmitRound(const ir::PrimCallNode& call);
  llvm::Value* EmitMath(const ir::PrimCallNode& call);
  llvm::Value* EmitPowByConstant(const ir::PrimCallNode& call);
  llvm::Value* EmitIfThenElse(const ir::PrimCallNode& call);
  llvm::Value* EmitMaskedValue(const ir::PrimCallNode& call);
  llvm::Value* EmitShift(const ir::PrimCallNode& call);
  llvm::Value* EmitReinterpret(const ir::PrimCallNode& call);
  llvm::Value* EmitVectorReduce(const ir::PrimCallNode& call);
  llvm::Value* EmitExternal(const ir::PrimCallNode& call);
  llvm::Value* PropagatingMinMax(bool is_max, llvm::Value* a, llvm::Value* b);
  llvm::Value* Combine(ir::BinaryOp op, DataType dtype, llvm::Value* a, llvm::Value* b);

  llvm::Module& module_;
  const KernelSource& source_;
  const Target& target_;
  llvm::IRBuilder<> b_;
  Numeric numeric_;
  llvm::MDBuilder metadata_;
  arith::Analyzer analyzer_;
  Status status_;

  llvm::Function* kernel_ = nullptr;
  std::vector<ir::PrimVar> ints_;
  DimCode workspace_;
  ir::PrimExpr workspace_bytes_;  // handed out so far
  int num_tasks_functions_ = 0;

  llvm::MDNode* alias_domain_ = nullptr;
  std::vector<llvm::MDNode*> alias_scopes_;
  std::vector<std::vector<int>> may_alias_;  // by scope: the scopes that may share its memory

  // State of the function that is being emitted.
  llvm::Function* function_ = nullptr;
  llvm::Value* context_ = nullptr;
  ValueMap values_;
  StorageMap storage_;
  int64_t local_bytes_ = 0;
  bool in_task_ = false;
  llvm::Value* mask_ = nullptr;        // lanes that take part in vector accesses; null: all lanes
  llvm::Value* mask_count_ = nullptr;  // how many lanes (i32), if they are the first ones
  int index_depth_ = 0;                // nesting depth of index arithmetic
};

}  // namespace ingot::codegen
