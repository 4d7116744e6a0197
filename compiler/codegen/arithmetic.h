// Arithmetic: the binary operators of kernels over values in registers. It owns nothing but the rules: floats of less
// than 32 bits are computed in float32, integers wrap unless the caller knows better, and a division by zero ends the
// kernel. Private to code generation.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/arith/interval.h"
#include "compiler/codegen/function_builder.h"
#include "compiler/codegen/kernel_runtime.h"
#include "compiler/codegen/numeric.h"
#include "compiler/ir/prim_expr.h"

namespace ingot::codegen {

// What is known of an integer division's divisor.
struct Divisor {
  arith::Interval bounds;
  std::optional<int64_t> constant;
};

class Arithmetic {
 public:
  Arithmetic(FunctionBuilder& function, KernelRuntime& runtime);

  // True for the operators that Divide computes for integers.
  static bool IsDivision(ir::BinaryOp op);
  // Every operator on floats, every one but divisions on integers. no_wrap: integers of the dtype do not overflow.
  llvm::Value* Binary(ir::BinaryOp op, DataType operands, llvm::Value* a, llvm::Value* b, bool no_wrap) const;
  // Rounds towards zero (kDiv, kTruncMod) or down (kFloorDiv, kFloorMod); the smallest integer divided by -1 wraps.
  llvm::Value* Divide(ir::BinaryOp op, DataType operands, llvm::Value* a, llvm::Value* b, const Divisor& divisor) const;
  // kAdd, kMin or kMax of values as Numeric::Widen gives them.
  llvm::Value* Combine(ir::BinaryOp op, DataType dtype, llvm::Value* a, llvm::Value* b) const;

 private:
  llvm::Value* OfFloats(ir::BinaryOp op, DataType operands, llvm::Value* a, llvm::Value* b) const;
  llvm::Value* OfIntegers(ir::BinaryOp op, DataType operands, llvm::Value* a, llvm::Value* b, bool no_wrap) const;
  llvm::Value* FloorModOfFloats(llvm::Value* a, llvm::Value* b) const;
  llvm::Value* MinMaxOfFloats(bool is_max, llvm::Value* a, llvm::Value* b) const;
  llvm::Value* PropagatingMinMax(bool is_max, llvm::Value* a, llvm::Value* b) const;
  void FailIfZero(DataType operands, llvm::Value* a, llvm::Value* b) const;

  llvm::IRBuilderBase& b_;
  Numeric numeric_;
  KernelRuntime& runtime_;
};

}  // namespace ingot::codegen
