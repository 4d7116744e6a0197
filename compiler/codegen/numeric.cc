// Conversions as short sequences of LLVM instructions. Small floats are computed in float32, and every path to a
// narrower format rounds once in effect.
#include "compiler/codegen/numeric.h"

#include <cmath>

#include "compiler/codegen/float8.h"
#include "runtime/check.h"

namespace ingot::codegen {

llvm::Type* WithLanesOf(llvm::Type* scalar, const llvm::Value* like) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like->getType());
  return vector == nullptr ? scalar : llvm::FixedVectorType::get(scalar, vector->getNumElements());
}

int LanesOf(const llvm::Value* value) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return vector == nullptr ? 1 : static_cast<int>(vector->getNumElements());
}

llvm::Value* AnyLane(llvm::IRBuilderBase& builder, llvm::Value* condition) {
  return condition->getType()->isVectorTy() ? builder.CreateOrReduce(condition) : condition;
}

bool Numeric::IsSupported(DataType dtype) {
  switch (dtype.code) {
    case TypeCode::kInt:
    case TypeCode::kUInt:
      return dtype.bits == 8 || dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64;
    case TypeCode::kFloat:
      return dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64;
    case TypeCode::kBfloat:
      return dtype.bits == 16;
    case TypeCode::kBool:
      return true;
    case TypeCode::kHandle:
      return dtype.lanes == 1;
    case TypeCode::kFloat8E3M4:
    case TypeCode::kFloat8E4M3:
    case TypeCode::kFloat8E4M3B11FNUZ:
    case TypeCode::kFloat8E4M3FN:
    case TypeCode::kFloat8E4M3FNUZ:
    case TypeCode::kFloat8E5M2:
    case TypeCode::kFloat8E5M2FNUZ:
    case TypeCode::kFloat8E8M0FNU:
      return true;
    case TypeCode::kComplex:
      return false;
  }
  return false;
}

llvm::Type* Numeric::RegisterType(DataType dtype) const {
  llvm::Type* type = nullptr;
  if (dtype.is_bool()) {
    type = b_.getInt1Ty();
  } else if (dtype.is_handle()) {
    type = b_.getPtrTy();
  } else if (dtype.code == TypeCode::kFloat) {
    type = dtype.bits == 16 ? b_.getHalfTy() : dtype.bits == 32 ? b_.getFloatTy() : b_.getDoubleTy();
  } else {
    type = b_.getIntNTy(dtype.bits);
  }
  return dtype.lanes == 1 ? type : llvm::FixedVectorType::get(type, dtype.lanes);
}

llvm::Type* Numeric::MemoryType(DataType dtype) const {
  if (!dtype.is_bool()) return RegisterType(dtype);
  return dtype.lanes == 1 ? static_cast<llvm::Type*>(b_.getInt8Ty())
                          : llvm::FixedVectorType::get(b_.getInt8Ty(), dtype.lanes);
}

llvm::Value* Numeric::FromMemory(llvm::Value* value, DataType dtype) const {
  return dtype.is_bool() ? b_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType())) : value;
}

llvm::Value* Numeric::ToMemory(llvm::Value* value, DataType dtype) const {
  return dtype.is_bool() ? b_.CreateZExt(value, MemoryType(dtype)) : value;
}

llvm::Value* Numeric::Constant(DataType dtype, int64_t value) const {
  return llvm::ConstantInt::get(RegisterType(dtype), static_cast<uint64_t>(value), dtype.is_int());
}

llvm::Value* Numeric::FloatConstant(DataType dtype, double value) const {
  if (dtype.code == TypeCode::kFloat && dtype.bits == 64) return llvm::ConstantFP::get(RegisterType(dtype), value);
  llvm::Type* wide = RegisterType(WidenedType(dtype));
  if (dtype.code == TypeCode::kFloat && dtype.bits == 32) return llvm::ConstantFP::get(wide, value);
  // Rounds to odd first, so that the second rounding sees what the first one cut off. It folds to a constant.
  return Convert(llvm::ConstantFP::get(RegisterType(DataType::Float(64, dtype.lanes)), value),
                 DataType::Float(64, dtype.lanes), dtype);
}

llvm::Value* Numeric::Placeholder(DataType dtype) const {
  return llvm::PoisonValue::get(IsSupported(dtype) ? RegisterType(dtype) : b_.getInt32Ty());
}

llvm::Value* Numeric::Broadcast(llvm::Value* scalar, int lanes) const {
  return lanes == 1 ? scalar : b_.CreateVectorSplat(static_cast<unsigned>(lanes), scalar);
}

DataType Numeric::WidenedType(DataType dtype) { return dtype.bits == 64 ? dtype : DataType::Float(32, dtype.lanes); }

llvm::Value* Numeric::ToFloat32(llvm::Value* bfloat16) const {
  llvm::Type* wide = WithLanesOf(b_.getInt32Ty(), bfloat16);
  return b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(bfloat16, wide), 16), WithLanesOf(b_.getFloatTy(), bfloat16));
}

llvm::Value* Numeric::ToBfloat16(llvm::Value* float32) const {
  llvm::Type* wide = WithLanesOf(b_.getInt32Ty(), float32);
  llvm::Value* bits = b_.CreateBitCast(float32, wide);
  // Adding 0x7FFF and the bit that becomes the lowest rounds to nearest even; overflow becomes infinity.
  llvm::Value* lowest = b_.CreateAnd(b_.CreateLShr(bits, 16), llvm::ConstantInt::get(wide, 1));
  llvm::Value* rounded = b_.CreateAdd(bits, b_.CreateAdd(lowest, llvm::ConstantInt::get(wide, 0x7FFF)));
  llvm::Value* quiet_nan = b_.CreateOr(bits, llvm::ConstantInt::get(wide, 0x400000));
  llvm::Value* chosen = b_.CreateSelect(b_.CreateFCmpUNO(float32, float32), quiet_nan, rounded);
  return b_.CreateTrunc(b_.CreateLShr(chosen, 16), WithLanesOf(b_.getInt16Ty(), float32));
}

// Rounds float64 to float32 such that a second rounding, to at most 22 bits, gives what one rounding would: truncates
// towards zero and sets the lowest bit if anything was cut off (Boldo and Melquiond, "Emulation of FMA and correctly
// rounded sums").
llvm::Value* Numeric::RoundToOdd(llvm::Value* float64) const {
  llvm::Type* narrow = WithLanesOf(b_.getFloatTy(), float64);
  llvm::Type* bits_type = WithLanesOf(b_.getInt32Ty(), float64);
  llvm::Value* nearest = b_.CreateFPTrunc(float64, narrow);
  llvm::Value* back = b_.CreateFPExt(nearest, float64->getType());
  llvm::Value* bits = b_.CreateBitCast(nearest, bits_type);
  const auto magnitude = [&](llvm::Value* v) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v); };
  llvm::Value* too_large = b_.CreateFCmpOGT(magnitude(back), magnitude(float64));
  llvm::Value* truncated = b_.CreateSub(bits, b_.CreateZExt(too_large, bits_type));
  llvm::Value* inexact = b_.CreateFCmpONE(back, float64);
  return b_.CreateBitCast(b_.CreateOr(truncated, b_.CreateZExt(inexact, bits_type)), narrow);
}

llvm::Value* Numeric::Widen(llvm::Value* value, DataType dtype) const {
  if (IsFloat8(dtype)) return DecodeFloat8(b_, value, dtype);
  if (dtype.bits != 16 || !dtype.is_floating()) return value;
  return dtype.code == TypeCode::kBfloat ? ToFloat32(value)
                                         : b_.CreateFPExt(value, WithLanesOf(b_.getFloatTy(), value));
}

llvm::Value* Numeric::Narrow(llvm::Value* value, DataType dtype) const {
  if (IsFloat8(dtype)) return EncodeFloat8(b_, value, dtype);
  if (dtype.bits != 16 || !dtype.is_floating()) return value;
  return dtype.code == TypeCode::kBfloat ? ToBfloat16(value)
                                         : b_.CreateFPTrunc(value, WithLanesOf(b_.getHalfTy(), value));
}

llvm::Value* Numeric::Convert(llvm::Value* value, DataType from, DataType to) const {
  if (from == to) return value;
  INGOT_CHECK(from.lanes == to.lanes && !from.is_handle() && !to.is_handle(), "a cast changes lanes or a handle");
  llvm::Type* type = RegisterType(to);
  if (to.is_bool()) {
    return from.is_floating()
               ? b_.CreateFCmpUNE(Widen(value, from), llvm::Constant::getNullValue(RegisterType(WidenedType(from))))
               : b_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
  }
  if (from.is_bool()) {
    if (!to.is_floating()) return b_.CreateZExt(value, type);
    return Narrow(b_.CreateUIToFP(value, RegisterType(WidenedType(to))), to);
  }
  if (!from.is_floating()) {
    if (!to.is_floating()) return from.is_int() ? b_.CreateSExtOrTrunc(value, type) : b_.CreateZExtOrTrunc(value, type);
    // To small floats: integers of up to 24 bits are exact in float32; wider ones go through float64.
    const bool through_float64 = to.bits < 32 && from.bits > 16;
    llvm::Type* first = through_float64 ? WithLanesOf(b_.getDoubleTy(), value) : RegisterType(WidenedType(to));
    llvm::Value* result = from.is_int() ? b_.CreateSIToFP(value, first) : b_.CreateUIToFP(value, first);
    return Narrow(through_float64 ? RoundToOdd(result) : result, to);
  }
  llvm::Value* wide = Widen(value, from);
  if (!to.is_floating()) {
    if (wide->getType()->isVectorTy()) return ToIntegers(wide, to, type);
    return b_.CreateIntrinsic(to.is_int() ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
                              {type, wide->getType()}, {wide});
  }
  if (from.bits == 64) return to.bits < 32 ? Narrow(RoundToOdd(wide), to) : b_.CreateFPTrunc(wide, type);
  if (to.bits == 64) return b_.CreateFPExt(wide, type);
  return Narrow(wide, to);
}

// LLVM's saturating conversions of vectors become one conversion per lane. So the number is clamped as a float, which
// is exact where the float holds the limits; where it does not hold the upper one, the clamped number is the greatest
// float below, and what lies beyond is chosen afterwards. NaN gives 0.
llvm::Value* Numeric::ToIntegers(llvm::Value* x, DataType to, llvm::Type* type) const {
  const auto number = [&](double value) { return llvm::ConstantFP::get(x->getType(), value); };
  const bool is_float32 = x->getType()->getScalarType()->isFloatTy();
  const int value_bits = to.is_int() ? to.bits - 1 : to.bits, digits = is_float32 ? 24 : 53;
  const double end = std::ldexp(1.0, value_bits), low = to.is_int() ? -end : 0;
  const bool holds_limit = value_bits <= digits;
  const double high = holds_limit ? end - 1 : end - std::ldexp(1.0, value_bits - digits);
  llvm::Value* clamped = b_.CreateSelect(b_.CreateFCmpOGT(x, number(low)), x, number(low));
  clamped = b_.CreateSelect(b_.CreateFCmpOLT(clamped, number(high)), clamped, number(high));
  llvm::Value* result = nullptr;
  if (value_bits < 32) {  // the conversion that every vector unit has
    result = b_.CreateFPToSI(clamped, WithLanesOf(b_.getInt32Ty(), x));
    result = b_.CreateTrunc(result, type);
  } else {
    result = to.is_int() ? b_.CreateFPToSI(clamped, type) : b_.CreateFPToUI(clamped, type);
  }
  if (!holds_limit) {
    const uint64_t greatest = ~uint64_t{0} >> (64 - value_bits);
    result = b_.CreateSelect(b_.CreateFCmpOGE(x, number(end)), llvm::ConstantInt::get(type, greatest), result);
  }
  if (low == 0) return result;
  return b_.CreateSelect(b_.CreateFCmpUNO(x, x), llvm::Constant::getNullValue(type), result);
}

}  // namespace ingot::codegen
