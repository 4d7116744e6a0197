// How the operations are computed:
//
//   fma, float32   The product is exact in float64. The sum is rounded to float64 by an addition, and again to float32:
//                  to round as if once, the first rounding is to odd (Boldo and Melquiond, "Emulation of FMA and
//                  correctly rounded sums: proved algorithms using rounding to odd", IEEE Transactions on Computers
//                  2008).
//   fma, float64   The product as a sum of two (Dekker), the three numbers added to a sum and two errors, and the
//                  errors rounded to odd before they join the sum (the same paper, section 4). Products below 2^-960,
//                  whose error no float64 holds, may be off by a unit in the last place.
//   float16        Integer arithmetic on the bits; denormal ones through an addition whose result has their unit in the
//                  last place. A NaN stays a NaN and becomes quiet. No step makes a denormal float32, so no mode of the
//                  processor matters.
//   scale          By an instruction of AVX-512 for whole vectors. Elsewhere by two products with powers of two, of which
//                  the first one is exact.
#include "compiler/codegen/expand_operations.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "compiler/codegen/numeric.h"
#include "runtime/check.h"
#include "runtime/cpu_features.h"

namespace ingot::codegen {
namespace {

using llvm::Value;

constexpr const char* kScale = "ingot.scale.";

class Expander {
 public:
  explicit Expander(llvm::IRBuilderBase& builder) : b_(builder) {}

  Value* Fma(Value* x, Value* y, Value* z) {
    return x->getType()->getScalarType()->isFloatTy() ? FmaOfFloat32(x, y, z) : FmaOfFloat64(x, y, z);
  }

  // x 2^n in two halves, with n in the low bits of shifted.
  Value* ScaleTwice(Value* x, Value* shifted) {
    const bool is_float32 = x->getType()->getScalarType()->isFloatTy();
    const uint64_t mantissa_bits = is_float32 ? 23 : 52, bias = is_float32 ? 127 : 1023;
    llvm::Type* type = WithLanesOf(is_float32 ? b_.getInt32Ty() : b_.getInt64Ty(), x);
    const auto integer = [&](uint64_t value) { return llvm::ConstantInt::get(type, value); };
    const auto power = [&](Value* bits) { return b_.CreateBitCast(bits, x->getType()); };
    Value* exponent = b_.CreateShl(b_.CreateBitCast(shifted, type), mantissa_bits);
    Value* one = integer(bias << mantissa_bits);
    Value* half = b_.CreateAnd(b_.CreateAShr(exponent, 1), integer(~uint64_t{0} << mantissa_bits));
    Value* rest = b_.CreateSub(b_.CreateAdd(exponent, one), half);
    return b_.CreateFMul(b_.CreateFMul(x, power(b_.CreateAdd(half, one))), power(rest));
  }

  // x 2^n by AVX-512's instruction, in vectors of its lengths; null where x is no such vector.
  Value* ScaleByInstruction(Value* x, Value* n) {
    auto* type = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
    if (type == nullptr) return nullptr;
    const bool is_float32 = type->getElementType()->isFloatTy();
    const unsigned lanes = type->getNumElements();
    for (const unsigned bits : {512u, 256u, 128u}) {
      const unsigned length = bits / (is_float32 ? 32 : 64);
      if (lanes % length != 0) continue;
      auto* part = llvm::FixedVectorType::get(type->getElementType(), length);
      Value* result = llvm::PoisonValue::get(type);
      for (unsigned at = 0; at < lanes; at += length) {
        Value* index = b_.getInt64(at);
        Value* scaled = ScalePart(b_.CreateExtractVector(part, x, index), b_.CreateExtractVector(part, n, index), bits);
        result = b_.CreateInsertVector(type, result, scaled, index);
      }
      return result;
    }
    return nullptr;
  }

  Value* Float16ToFloat32(Value* half) {
    llvm::Type* type = WithLanesOf(b_.getInt32Ty(), half);
    const auto bits_of = [&](uint32_t bits) { return llvm::ConstantInt::get(type, bits); };
    Value* bits = b_.CreateZExt(b_.CreateBitCast(half, WithLanesOf(b_.getInt16Ty(), half)), type);
    Value* magnitude = b_.CreateShl(b_.CreateAnd(bits, bits_of(0x7FFF)), bits_of(13));
    Value* normal = b_.CreateAdd(magnitude, bits_of(112u << 23));
    Value* special = b_.CreateAdd(magnitude, bits_of(224u << 23));
    special = b_.CreateSelect(b_.CreateICmpUGT(magnitude, bits_of(31u << 23)), b_.CreateOr(special, bits_of(0x400000)),
                              special);
    llvm::Type* float_type = WithLanesOf(b_.getFloatTy(), half);
    Value* shifted = b_.CreateBitCast(b_.CreateAdd(magnitude, bits_of(113u << 23)), float_type);
    Value* denormal = b_.CreateBitCast(b_.CreateFSub(shifted, llvm::ConstantFP::get(float_type, 0x1p-14)), type);
    Value* result = b_.CreateSelect(b_.CreateICmpULT(magnitude, bits_of(1u << 23)), denormal, normal);
    result = b_.CreateSelect(b_.CreateICmpUGE(magnitude, bits_of(31u << 23)), special, result);
    Value* sign = b_.CreateShl(b_.CreateAnd(bits, bits_of(0x8000)), bits_of(16));
    return b_.CreateBitCast(b_.CreateOr(result, sign), float_type);
  }

  // Rounds to nearest even.
  Value* Float32ToFloat16(Value* wide) {
    llvm::Type* type = WithLanesOf(b_.getInt32Ty(), wide);
    const auto bits_of = [&](uint32_t bits) { return llvm::ConstantInt::get(type, bits); };
    Value* bits = b_.CreateBitCast(wide, type);
    Value* magnitude = b_.CreateAnd(bits, bits_of(0x7FFFFFFF));
    // Adds half a unit in the last place, less one bit, and the bit that becomes the lowest; overflow becomes infinity.
    Value* lowest = b_.CreateAnd(b_.CreateLShr(magnitude, bits_of(13)), bits_of(1));
    Value* normal = b_.CreateAdd(b_.CreateAdd(magnitude, bits_of(0xFFFu - (112u << 23))), lowest);
    normal = b_.CreateLShr(normal, bits_of(13));
    // Adding 0.5, whose last bit counts as much as that of a denormal float16, rounds a denormal result.
    Value* half = llvm::ConstantFP::get(wide->getType(), 0.5);
    Value* small = b_.CreateFAdd(b_.CreateBitCast(magnitude, wide->getType()), half);
    Value* denormal = b_.CreateSub(b_.CreateBitCast(small, type), bits_of(126u << 23));
    Value* nan = b_.CreateOr(b_.CreateAnd(b_.CreateLShr(magnitude, bits_of(13)), bits_of(0x3FF)), bits_of(0x7E00));
    Value* special = b_.CreateSelect(b_.CreateICmpUGT(magnitude, bits_of(255u << 23)), nan, bits_of(0x7C00));
    Value* result = b_.CreateSelect(b_.CreateICmpULT(magnitude, bits_of(113u << 23)), denormal, normal);
    result = b_.CreateSelect(b_.CreateICmpUGE(magnitude, bits_of(143u << 23)), special, result);
    Value* sign = b_.CreateAnd(b_.CreateLShr(bits, bits_of(16)), bits_of(0x8000));
    Value* narrow = b_.CreateTrunc(b_.CreateOr(result, sign), WithLanesOf(b_.getInt16Ty(), wide));
    return b_.CreateBitCast(narrow, WithLanesOf(b_.getHalfTy(), wide));
  }

 private:
  struct Sum {
    Value *rounded, *error;
  };

  Value* FmaOfFloat32(Value* x, Value* y, Value* z) {
    llvm::Type* wide = WithLanesOf(b_.getDoubleTy(), x);
    Value* product = b_.CreateFMul(b_.CreateFPExt(x, wide), b_.CreateFPExt(y, wide));
    const Sum sum = TwoSum(product, b_.CreateFPExt(z, wide));
    return b_.CreateFPTrunc(ToOdd(sum), x->getType());
  }

  Value* FmaOfFloat64(Value* x, Value* y, Value* z) {
    const auto number = [&](double value) { return llvm::ConstantFP::get(x->getType(), value); };
    // Large products are computed scaled down: they may overflow although the sum with z is finite.
    const auto magnitude = [&](Value* v) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v); };
    const auto is_finite = [&](Value* v) {
      return b_.CreateFCmpOLT(magnitude(v), number(std::numeric_limits<double>::infinity()));
    };
    Value* is_huge = b_.CreateFCmpOGE(magnitude(b_.CreateFMul(x, y)), number(0x1p1000));
    Value* has_product = b_.CreateAnd(is_finite(x), is_finite(y));
    Value* is_infinite = b_.CreateAnd(has_product, b_.CreateNot(is_finite(z)));
    Value* infinite = z;
    is_huge = b_.CreateAnd(is_huge, has_product);
    Value* root = b_.CreateSelect(is_huge, number(0x1p-64), number(1));
    x = b_.CreateFMul(x, root);
    y = b_.CreateFMul(y, root);
    z = b_.CreateFMul(z, b_.CreateFMul(root, root));
    Value* product = b_.CreateFMul(x, y);
    const Sum low = TwoSum(z, ErrorOfProduct(x, y, product));
    const Sum high = TwoSum(product, low.rounded);
    Value* exact = b_.CreateFAdd(high.rounded, ToOdd(TwoSum(high.error, low.error)));
    Value* is_ordinary = b_.CreateFCmpONE(exact, number(0));
    Value* result = b_.CreateSelect(is_ordinary, exact, b_.CreateFAdd(product, z));
    result = b_.CreateFMul(result, b_.CreateSelect(is_huge, number(0x1p128), number(1)));
    return b_.CreateSelect(is_infinite, infinite, result);
  }

  Sum TwoSum(Value* x, Value* y) {  // Knuth
    Value* sum = b_.CreateFAdd(x, y);
    Value* of_y = b_.CreateFSub(sum, x);
    Value* of_x = b_.CreateFSub(sum, of_y);
    return {sum, b_.CreateFAdd(b_.CreateFSub(x, of_x), b_.CreateFSub(y, of_y))};
  }

  // Splits a float64 into its first 26 digits, rounded, and the rest, which has as many digits. The first part is
  // rounded down where rounding to nearest would make it infinite.
  std::pair<Value*, Value*> Split(Value* x) {
    llvm::Type* type = WithLanesOf(b_.getInt64Ty(), x);
    const auto bits_of = [&](uint64_t bits) { return llvm::ConstantInt::get(type, bits); };
    constexpr uint64_t kFirstDigits = ~((uint64_t{1} << 27) - 1), kExponent = uint64_t{0x7FF} << 52;
    Value* bits = b_.CreateBitCast(x, type);
    Value* rounded = b_.CreateAnd(b_.CreateAdd(bits, bits_of(1u << 26)), bits_of(kFirstDigits));
    Value* is_infinite = b_.CreateICmpEQ(b_.CreateAnd(rounded, bits_of(kExponent)), bits_of(kExponent));
    Value* high = b_.CreateSelect(is_infinite, b_.CreateAnd(bits, bits_of(kFirstDigits)), rounded);
    high = b_.CreateBitCast(high, x->getType());
    return {high, b_.CreateFSub(x, high)};
  }

  Value* ErrorOfProduct(Value* x, Value* y, Value* product) {  // Dekker
    const auto [x_high, x_low] = Split(x);
    const auto [y_high, y_low] = Split(y);
    Value* error = b_.CreateFSub(b_.CreateFMul(x_high, y_high), product);
    error = b_.CreateFAdd(error, b_.CreateFMul(x_high, y_low));
    error = b_.CreateFAdd(error, b_.CreateFMul(x_low, y_high));
    return b_.CreateFAdd(error, b_.CreateFMul(x_low, y_low));
  }

  // Of the two float64 numbers around an inexact sum, returns the one whose last bit is set; an exact sum is returned
  // as it is.
  Value* ToOdd(const Sum& sum) {
    llvm::Type* type = WithLanesOf(b_.getInt64Ty(), sum.rounded);
    Value* zero = llvm::ConstantFP::get(sum.rounded->getType(), 0);
    Value* one = llvm::ConstantInt::get(type, 1);
    Value* bits = b_.CreateBitCast(sum.rounded, type);
    // The neighbour in the direction of the error: away from zero when the error has the sum's sign. If the error is
    // NaN, the sum stays.
    Value* same_sign =
        b_.CreateICmpSGE(b_.CreateXor(bits, b_.CreateBitCast(sum.error, type)), llvm::ConstantInt::get(type, 0));
    Value* next = b_.CreateSelect(same_sign, b_.CreateAdd(bits, one), b_.CreateSub(bits, one));
    Value* is_odd = b_.CreateICmpNE(b_.CreateAnd(bits, one), llvm::ConstantInt::get(type, 0));
    Value* stays = b_.CreateOr(is_odd, b_.CreateNot(b_.CreateFCmpONE(sum.error, zero)));
    return b_.CreateBitCast(b_.CreateSelect(stays, bits, next), sum.rounded->getType());
  }

  Value* ScalePart(Value* x, Value* n, unsigned bits) {
    constexpr int kCurrentRounding = 4;
    const bool is_float32 = x->getType()->getScalarType()->isFloatTy();
    const std::string name =
        std::string("llvm.x86.avx512.mask.scalef.") + (is_float32 ? "ps." : "pd.") + std::to_string(bits);
    llvm::Type* mask = b_.getIntNTy(std::max(bits / (is_float32 ? 32 : 64), 8u));
    llvm::SmallVector<Value*> arguments = {x, n, x, llvm::Constant::getAllOnesValue(mask)};
    if (bits == 512) arguments.push_back(b_.getInt32(kCurrentRounding));
    llvm::SmallVector<llvm::Type*> types;
    for (Value* argument : arguments) types.push_back(argument->getType());
    llvm::Module& module = *b_.GetInsertBlock()->getModule();
    return b_.CreateCall(module.getOrInsertFunction(name, llvm::FunctionType::get(x->getType(), types, false)),
                         arguments);
  }

  llvm::IRBuilderBase& b_;
};

void ExpandScales(llvm::Module& module, bool has_instruction) {
  for (llvm::Function& marker : llvm::make_early_inc_range(module)) {
    if (!marker.getName().starts_with(kScale)) continue;
    for (llvm::User* user : llvm::make_early_inc_range(marker.users())) {
      auto* call = llvm::cast<llvm::CallInst>(user);
      llvm::IRBuilder<> builder(call);
      Expander expander(builder);
      Value* x = call->getArgOperand(0);
      Value* scaled = has_instruction ? expander.ScaleByInstruction(x, call->getArgOperand(1)) : nullptr;
      call->replaceAllUsesWith(scaled != nullptr ? scaled : expander.ScaleTwice(x, call->getArgOperand(2)));
      call->eraseFromParent();
    }
    marker.eraseFromParent();
  }
}

bool IsHalf(const llvm::Type* type) { return type->getScalarType()->isHalfTy(); }

// Returns a replacement for the instruction, or null if the target has the instruction.
Value* Expand(llvm::Instruction& instruction, llvm::IRBuilderBase& builder, bool has_fma, bool has_float16) {
  Expander expander(builder);
  if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
    if (has_fma || call->getIntrinsicID() != llvm::Intrinsic::fma) return nullptr;
    return expander.Fma(call->getArgOperand(0), call->getArgOperand(1), call->getArgOperand(2));
  }
  if (has_float16) return nullptr;
  if (llvm::isa<llvm::FPExtInst>(instruction) && IsHalf(instruction.getOperand(0)->getType())) {
    return builder.CreateFPExt(expander.Float16ToFloat32(instruction.getOperand(0)), instruction.getType());
  }
  if (llvm::isa<llvm::FPTruncInst>(instruction) && IsHalf(instruction.getType())) {
    INGOT_CHECK(instruction.getOperand(0)->getType()->getScalarType()->isFloatTy(),
                "float64 is rounded to float32 first");
    return expander.Float32ToFloat16(instruction.getOperand(0));
  }
  return nullptr;
}

}  // namespace

llvm::Function* ScaleMarker(llvm::Module& module, llvm::Type* type) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  const unsigned lanes = vector != nullptr ? vector->getNumElements() : 1;
  const std::string name =
      kScale + std::string(type->getScalarType()->isFloatTy() ? "float." : "double.") + std::to_string(lanes);
  llvm::FunctionCallee marker =
      module.getOrInsertFunction(name, llvm::FunctionType::get(type, {type, type, type}, false));
  return llvm::cast<llvm::Function>(marker.getCallee());
}

void ExpandOperations(llvm::Module& module, const Target& target) {
  const CpuFeatures features{target.required_features};
  const bool is_x86 = target.triple.starts_with("x86_64");
  const bool has_fma = !is_x86 || features.Has(CpuFeature::kFma);
  const bool has_float16 = !is_x86 || features.Has(CpuFeature::kF16c);
  ExpandScales(module, is_x86 && features.Has(CpuFeature::kAvx512f) && features.Has(CpuFeature::kAvx512vl));
  if (has_fma && has_float16) return;
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
      llvm::IRBuilder<> builder(&instruction);
      Value* expanded = Expand(instruction, builder, has_fma, has_float16);
      if (expanded == nullptr) continue;
      instruction.replaceAllUsesWith(expanded);
      instruction.eraseFromParent();
    }
  }
}

}  // namespace ingot::codegen
