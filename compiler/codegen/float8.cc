// Decoding and encoding by integer operations and one float operation each, with selects instead of branches, so that
// vectors of any number of lanes take the same code.
#include "compiler/codegen/float8.h"

#include <bit>
#include <cmath>
#include <limits>

#include "compiler/codegen/numeric.h"
#include "compiler/ir/float_format.h"

namespace ingot::codegen {
namespace {

using Special = ir::FloatFormat::Special;

constexpr int kMantissaBits = 23, kBias = 127;  // of float32

// Constants with the lanes of a value, and the casts between bits and floats of these lanes.
class Bits {
 public:
  Bits(llvm::IRBuilderBase& builder, llvm::Value* like)
      : b_(builder), int_(WithLanesOf(builder.getInt32Ty(), like)), float_(WithLanesOf(builder.getFloatTy(), like)) {}
  llvm::Value* Int(uint64_t value) const { return llvm::ConstantInt::get(int_, value); }
  llvm::Value* Float(double value) const { return llvm::ConstantFP::get(float_, value); }
  llvm::Value* AsInt(llvm::Value* x) const { return b_.CreateBitCast(x, int_); }
  llvm::Value* AsFloat(llvm::Value* x) const { return b_.CreateBitCast(x, float_); }
  llvm::Type* int_type() const { return int_; }

 private:
  llvm::IRBuilderBase& b_;
  llvm::Type *int_, *float_;
};

constexpr uint64_t kE8M0Nan = 255;

// The code is the exponent of a float32; the smallest one is that of a subnormal number.
llvm::Value* DecodeE8M0(llvm::IRBuilderBase& b, llvm::Value* codes) {
  const Bits bits(b, codes);
  llvm::Value* wide = b.CreateZExt(codes, bits.int_type());
  llvm::Value* placed = b.CreateShl(wide, kMantissaBits);
  placed = b.CreateSelect(b.CreateICmpEQ(wide, bits.Int(0)), bits.Int(uint64_t{1} << (kMantissaBits - 1)), placed);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return b.CreateSelect(b.CreateICmpEQ(wide, bits.Int(kE8M0Nan)), bits.Float(nan), bits.AsFloat(placed));
}

// Rounds at 1.5 times a power of two, a tie up. Numbers below zero have no code.
llvm::Value* EncodeE8M0(llvm::IRBuilderBase& b, llvm::Value* float32) {
  const Bits bits(b, float32);
  llvm::Value* all = bits.AsInt(float32);
  llvm::Value* magnitude = b.CreateAnd(all, bits.Int(0x7FFFFFFF));
  constexpr uint64_t kHalf = uint64_t{1} << (kMantissaBits - 1);
  llvm::Value* code = b.CreateLShr(b.CreateAdd(magnitude, bits.Int(kHalf)), kMantissaBits);
  llvm::Value* subnormal = b.CreateZExt(b.CreateICmpUGE(magnitude, bits.Int(kHalf + kHalf / 2)), bits.int_type());
  code = b.CreateSelect(b.CreateICmpULT(magnitude, bits.Int(2 * kHalf)), subnormal, code);
  llvm::Value* is_negative = b.CreateICmpUGT(all, bits.Int(0x80000000));
  llvm::Value* is_beyond = b.CreateOr(is_negative, b.CreateICmpUGT(code, bits.Int(kE8M0Nan)));
  code = b.CreateSelect(is_beyond, bits.Int(kE8M0Nan), code);
  return b.CreateTrunc(code, WithLanesOf(b.getInt8Ty(), float32));
}

}  // namespace

bool IsFloat8(DataType dtype) {
  return dtype.code >= TypeCode::kFloat8E3M4 && dtype.code <= TypeCode::kFloat8E8M0FNU;
}

// Exponent and mantissa are moved to their places in a float32. The result is the value times a power of two (the
// difference of the biases), which one multiplication corrects, for subnormal numbers too.
llvm::Value* DecodeFloat8(llvm::IRBuilderBase& b, llvm::Value* codes, DataType dtype) {
  const ir::FloatFormat& format = ir::FloatFormatOf(dtype.element_of());
  if (format.special == Special::kE8M0) return DecodeE8M0(b, codes);
  const Bits bits(b, codes);
  llvm::Value* wide = b.CreateZExt(codes, bits.int_type());
  llvm::Value* magnitude = b.CreateAnd(wide, bits.Int(0x7F));
  llvm::Value* sign = b.CreateShl(b.CreateAnd(wide, bits.Int(0x80)), 24);
  llvm::Value* placed = b.CreateShl(magnitude, static_cast<uint64_t>(kMantissaBits - format.mantissa_bits));
  llvm::Value* value = b.CreateFMul(bits.AsFloat(placed), bits.Float(std::ldexp(1.0, kBias - format.bias)));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (format.special == Special::kFnuz) {
    llvm::Value* result = bits.AsFloat(b.CreateOr(bits.AsInt(value), sign));
    return b.CreateSelect(b.CreateICmpEQ(wide, bits.Int(ir::NanBits(format))), bits.Float(nan), result);
  }
  const uint64_t largest = ir::LargestFiniteBits(format);
  llvm::Value* beyond = bits.Float(nan);
  if (format.special == Special::kIeee) {
    llvm::Value* is_infinity = b.CreateICmpEQ(magnitude, bits.Int(largest + 1));
    beyond = b.CreateSelect(is_infinity, bits.Float(std::numeric_limits<double>::infinity()), beyond);
  }
  value = b.CreateSelect(b.CreateICmpUGT(magnitude, bits.Int(largest)), beyond, value);
  return bits.AsFloat(b.CreateOr(bits.AsInt(value), sign));
}

// Normal numbers: half of the part that is cut off is added to the bits (less one if the lowest bit that stays is 0, so
// that ties go to even); a carry increments the exponent. Subnormal numbers: adding a number whose last bit counts as
// much as the format's smallest step rounds to that step.
llvm::Value* EncodeFloat8(llvm::IRBuilderBase& b, llvm::Value* float32, DataType dtype) {
  const ir::FloatFormat& format = ir::FloatFormatOf(dtype.element_of());
  if (format.special == Special::kE8M0) return EncodeE8M0(b, float32);
  const Bits bits(b, float32);
  llvm::Value* all = bits.AsInt(float32);
  llvm::Value* sign = b.CreateAnd(b.CreateLShr(all, 24), bits.Int(0x80));
  llvm::Value* magnitude = b.CreateAnd(all, bits.Int(0x7FFFFFFF));
  const int cut = kMantissaBits - format.mantissa_bits;
  llvm::Value* lowest = b.CreateAnd(b.CreateLShr(magnitude, static_cast<uint64_t>(cut)), bits.Int(1));
  llvm::Value* rounded = b.CreateAdd(b.CreateAdd(magnitude, bits.Int((uint64_t{1} << (cut - 1)) - 1)), lowest);
  const auto bias = static_cast<uint64_t>(kBias - format.bias) << format.mantissa_bits;
  llvm::Value* normal = b.CreateSub(b.CreateLShr(rounded, static_cast<uint64_t>(cut)), bits.Int(bias));
  const auto step = static_cast<float>(std::ldexp(1.0, 1 - format.bias - format.mantissa_bits + kMantissaBits));
  llvm::Value* stepped = b.CreateFAdd(bits.AsFloat(magnitude), bits.Float(step));
  llvm::Value* subnormal = b.CreateSub(bits.AsInt(stepped), bits.Int(std::bit_cast<uint32_t>(step)));
  const auto least_normal = static_cast<float>(std::ldexp(1.0, 1 - format.bias));
  llvm::Value* is_subnormal = b.CreateICmpULT(magnitude, bits.Int(std::bit_cast<uint32_t>(least_normal)));
  llvm::Value* code = b.CreateSelect(is_subnormal, subnormal, normal);
  const uint64_t largest = ir::LargestFiniteBits(format), nan = ir::NanBits(format);
  const uint64_t overflow = format.special == Special::kIeee ? largest + 1 : nan;
  code = b.CreateSelect(b.CreateICmpUGT(code, bits.Int(largest)), bits.Int(overflow), code);
  constexpr uint64_t kInfinity = 0x7F800000;
  code = b.CreateSelect(b.CreateICmpUGT(magnitude, bits.Int(kInfinity)), bits.Int(nan), code);
  if (format.special == Special::kFnuz) {  // neither zero nor NaN has a sign
    llvm::Value* has_sign = b.CreateICmpULT(b.CreateSub(code, bits.Int(1)), bits.Int(largest));
    sign = b.CreateSelect(has_sign, sign, bits.Int(0));
  }
  return b.CreateTrunc(b.CreateOr(code, sign), WithLanesOf(b.getInt8Ty(), float32));
}

}  // namespace ingot::codegen
