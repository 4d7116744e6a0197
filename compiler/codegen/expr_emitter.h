// ExprEmitter: expressions of lowered functions (compiler/transform/tensor/lowered.h) as LLVM values. It owns the
// values of variables in the function that is being emitted, their bounds, and whether index arithmetic is being
// emitted, which is marked as not overflowing. It assumes nothing of how the kernel was called: arguments are bound to
// variables by the target's emitter, buffers lie where MemoryAccess says, failures and calls go through KernelRuntime.
// Private to code generation.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/function_builder.h"
#include "compiler/codegen/intrinsic_emitter.h"
#include "compiler/codegen/kernel_descriptor.h"
#include "compiler/codegen/kernel_runtime.h"
#include "compiler/codegen/kernel_status.h"
#include "compiler/codegen/memory_access.h"
#include "compiler/codegen/numeric.h"
#include "compiler/ir/expr.h"

namespace ingot::codegen {

class ExprEmitter {
 public:
  using VariableMap = std::unordered_map<const ir::PrimVarNode*, llvm::Value*>;

  ExprEmitter(FunctionBuilder& function, KernelStatus& status, MemoryAccess& memory, KernelRuntime& runtime,
              const KernelDescription& description);

  // After a failure, a placeholder of the dtype.
  llvm::Value* Emit(const ir::PrimExpr& expr);
  // Emit for an expression whose integer arithmetic does not overflow.
  llvm::Value* EmitWithoutOverflow(const ir::PrimExpr& expr);
  llvm::Value* EmitIndex(const ir::PrimExpr& expr);  // the same as i64 (or a vector of it)
  // Null after a failure.
  std::optional<Address> EmitAddress(const ir::Buffer& buffer, const std::vector<ir::PrimExpr>& indices);
  // If the condition is a ramp of step 1 below a bound, it holds for the first lanes alone; returns how many (i32).
  // Null: the condition has another form.
  llvm::Value* EmitCountOfFirstLanes(const ir::PrimExpr& condition);

  void Bind(const ir::PrimVarNode* variable, llvm::Value* value) { variables_[variable] = value; }
  void BindLet(const ir::PrimVar& variable, const ir::PrimExpr& value);
  // Binds a scalar parameter to the value in the low bytes of an i64.
  void BindWord(const ir::PrimVarNode& variable, llvm::Value* word);
  void SetRange(const ir::PrimVar& variable, const ir::Range& range) { analyzer_.Bind(variable, range); }
  // Vectors are accessed with the alignment that is found for them, not with that of an element.
  void ProveAlignment() { proves_alignment_ = true; }
  arith::Analyzer& analyzer() { return analyzer_; }          // which knows the ranges
  llvm::Value* Find(const ir::PrimVarNode* variable) const;  // null: not bound
  // On a GPU, whether conditional values are computed without branches, with loads by predicate, so that the loads of
  // many are on their way at once; otherwise only those of lanes that are computed one by one are.
  void set_prefers_predicates(bool value) { prefers_predicates_ = value; }
  // Whether Emit may be asked for the value where the program does not compute it, while its condition is the predicate of
  // loads: if predicates are preferred, the loads are few, and nothing fails or takes long. Of memory that a thread has for
  // itself known places alone are read, which are registers.
  bool CanPredicate(const ir::PrimExpr& value);
  // For a function inside of another one, which sees none of the other's values.
  VariableMap ExchangeVariables(VariableMap variables);

 private:
  llvm::Value* EmitVariable(const ir::PrimVarNode& variable);
  llvm::Value* EmitBinary(const ir::BinaryNode& node);
  llvm::Value* TryFusedMultiplyAdd(const ir::BinaryNode& node);
  Divisor DescribeDivisor(const ir::BinaryNode& node);
  llvm::Value* EmitSelect(const ir::SelectNode& node);
  llvm::Value* EmitRamp(const ir::RampNode& node);
  llvm::Value* EmitShuffle(const ir::ShuffleNode& node);
  llvm::Value* EmitLoad(const ir::BufferLoadNode& load);
  llvm::Value* EmitCall(const ir::PrimCallNode& call);
  llvm::Value* EmitByPredicate(const ir::PrimCallNode& call, llvm::Value* condition);
  llvm::Value* EmitIfThenElse(const ir::PrimCallNode& call);
  llvm::Value* EmitMaskedValue(const ir::PrimCallNode& call);
  llvm::Value* EmitExternal(const ir::PrimCallNode& call);
  // Reports the message and returns a placeholder.
  llvm::Value* Unsupported(DataType dtype, const std::string& message);
  int64_t AlignmentOf(const ir::Buffer& buffer, const std::vector<ir::PrimExpr>& indices);

  FunctionBuilder& function_;
  KernelStatus& status_;
  MemoryAccess& memory_;
  KernelRuntime& runtime_;
  const KernelDescription& description_;
  llvm::IRBuilderBase& b_;
  Numeric numeric_;
  Arithmetic arithmetic_;
  IntrinsicEmitter intrinsics_;
  arith::Analyzer analyzer_;
  bool proves_alignment_ = false;
  VariableMap variables_;
  int no_overflow_depth_ = 0;  // nesting depth of EmitWithoutOverflow
  int lane_depth_ = 0;         // of vectors whose lanes are computed one by one
  bool prefers_predicates_ = false;
};

}  // namespace ingot::codegen
