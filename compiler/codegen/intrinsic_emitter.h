// IntrinsicEmitter: the intrinsics of compiler/ir/intrinsics.def that are functions of their arguments' values. It owns
// nothing. Those that choose which arguments are computed, or that call outside, are ExprEmitter's. Private to code
// generation.
#pragma once

#include "compiler/codegen/arithmetic.h"
#include "compiler/codegen/function_builder.h"
#include "compiler/codegen/kernel_status.h"
#include "compiler/codegen/numeric.h"
#include "compiler/ir/prim_expr.h"

namespace ingot::codegen {

class IntrinsicEmitter {
 public:
  using Values = llvm::ArrayRef<llvm::Value*>;

  IntrinsicEmitter(FunctionBuilder& function, KernelStatus& status, const Arithmetic& arithmetic);

  // arguments: the values of the call's arguments.
  llvm::Value* Emit(const ir::PrimCallNode& call, Values arguments);

 private:
  llvm::Value* EmitUnaryFloat(const ir::PrimCallNode& call, llvm::Intrinsic::ID id, llvm::Value* x);
  llvm::Value* EmitRsqrt(const ir::PrimCallNode& call, llvm::Value* x);
  llvm::Value* EmitRound(const ir::PrimCallNode& call, llvm::Value* x);
  llvm::Value* EmitFma(const ir::PrimCallNode& call, Values arguments);
  llvm::Value* EmitDotBytes(const ir::PrimCallNode& call, Values arguments);
  llvm::Value* EmitClassTest(const ir::PrimCallNode& call, llvm::Value* x);
  llvm::Value* EmitMath(const ir::PrimCallNode& call, Values arguments);
  bool IsForCuda() const;
  llvm::Value* EmitCudaExp2(llvm::Value* x);
  llvm::Value* EmitPowByConstant(const ir::PrimCallNode& call, llvm::Value* x);
  llvm::Value* EmitShift(const ir::PrimCallNode& call, llvm::Value* x, llvm::Value* amount);
  llvm::Value* EmitReinterpret(const ir::PrimCallNode& call, llvm::Value* x);
  llvm::Value* EmitVectorReduce(const ir::PrimCallNode& call, llvm::Value* x);
  // Reports that the intrinsic does not take the call's dtype.
  llvm::Value* Unsupported(const ir::PrimCallNode& call);

  KernelStatus& status_;
  const Arithmetic& arithmetic_;
  llvm::IRBuilderBase& b_;
  Numeric numeric_;
};

}  // namespace ingot::codegen
