// Numeric: typed values over LLVM IR: how a DataType lies in memory and in registers, and every conversion between
// two of them. Private to code generation.
//
//   dtype      memory   register   arithmetic
//   bool       i8       i1         i1
//   int, uint  iN       iN         wraps
//   float16    half     half       in float32, rounded after each operation
//   bfloat16   i16      i16        in float32, rounded after each operation (to nearest even, NaN stays NaN)
//   float32,64 the same
// Lanes make fixed vectors of these. Float to integer saturates and turns NaN to 0.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "runtime/data_type.h"

namespace ingot::codegen {

class Numeric {
 public:
  explicit Numeric(llvm::IRBuilderBase& builder) : b_(builder) {}

  static bool IsSupported(DataType dtype);
  llvm::Type* RegisterType(DataType dtype) const;
  llvm::Type* MemoryType(DataType dtype) const;
  llvm::Value* FromMemory(llvm::Value* value, DataType dtype) const;
  llvm::Value* ToMemory(llvm::Value* value, DataType dtype) const;

  llvm::Value* Constant(DataType dtype, int64_t value) const;
  llvm::Value* FloatConstant(DataType dtype, double value) const;
  llvm::Value* Broadcast(llvm::Value* scalar, int lanes) const;
  // A value of the dtype that is never used: the kernel is known not to compile. Takes every dtype.
  llvm::Value* Placeholder(DataType dtype) const;

  // Converts between any two supported dtypes of equal lanes, rounding as the target dtype does.
  llvm::Value* Convert(llvm::Value* value, DataType from, DataType to) const;
  // Returns floats of less than 32 bits as float32, and values of every other dtype as they are.
  llvm::Value* Widen(llvm::Value* value, DataType dtype) const;
  llvm::Value* Narrow(llvm::Value* value, DataType dtype) const;
  static DataType WidenedType(DataType dtype);

 private:
  llvm::Value* ToFloat32(llvm::Value* bfloat16) const;
  llvm::Value* ToBfloat16(llvm::Value* float32) const;
  llvm::Value* RoundToOdd(llvm::Value* float64) const;
  llvm::Value* ToIntegers(llvm::Value* x, DataType to, llvm::Type* type) const;

  llvm::IRBuilderBase& b_;
};

// Returns the type with as many lanes as `like`.
llvm::Type* WithLanesOf(llvm::Type* scalar, const llvm::Value* like);
int LanesOf(const llvm::Value* value);
// Returns an i1 that is true when any lane of the condition is.
llvm::Value* AnyLane(llvm::IRBuilderBase& builder, llvm::Value* condition);

}  // namespace ingot::codegen
