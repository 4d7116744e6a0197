// Operators as LLVM instructions, chosen by the operands' dtype.
#include "compiler/codegen/arithmetic.h"

#include <bit>
#include <utility>

#include "compiler/codegen/vector_math.h"
#include "runtime/check.h"
#include "runtime/kernel_abi.h"

namespace ingot::codegen {

Arithmetic::Arithmetic(FunctionBuilder& function, KernelRuntime& runtime)
    : b_(function.instructions()), numeric_(b_), runtime_(runtime) {}

bool Arithmetic::IsDivision(ir::BinaryOp op) {
  return op == ir::BinaryOp::kDiv || op == ir::BinaryOp::kTruncMod || op == ir::BinaryOp::kFloorDiv ||
         op == ir::BinaryOp::kFloorMod;
}

llvm::Value* Arithmetic::Binary(ir::BinaryOp op, DataType operands, llvm::Value* a, llvm::Value* b,
                                bool no_wrap) const {
  return operands.is_floating() ? OfFloats(op, operands, a, b) : OfIntegers(op, operands, a, b, no_wrap);
}

llvm::Value* Arithmetic::OfFloats(ir::BinaryOp op, DataType operands, llvm::Value* a, llvm::Value* b) const {
  a = numeric_.Widen(a, operands);
  b = numeric_.Widen(b, operands);
  const auto narrow = [&](llvm::Value* value) { return numeric_.Narrow(value, operands); };
  switch (op) {
    case ir::BinaryOp::kAdd:
      return narrow(b_.CreateFAdd(a, b));
    case ir::BinaryOp::kSub:
      return narrow(b_.CreateFSub(a, b));
    case ir::BinaryOp::kMul:
      return narrow(b_.CreateFMul(a, b));
    case ir::BinaryOp::kDiv:
      return narrow(b_.CreateFDiv(a, b));
    case ir::BinaryOp::kTruncMod:
      return narrow(EmitVectorMath(b_, ir::Intrinsic::kFmod, {a, b}));
    case ir::BinaryOp::kFloorDiv:
      return narrow(b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, b_.CreateFDiv(a, b)));
    case ir::BinaryOp::kFloorMod:
      return narrow(FloorModOfFloats(a, b));
    case ir::BinaryOp::kMin:
    case ir::BinaryOp::kMax:
      return narrow(MinMaxOfFloats(op == ir::BinaryOp::kMax, a, b));
    case ir::BinaryOp::kEQ:
      return b_.CreateFCmpOEQ(a, b);
    case ir::BinaryOp::kNE:
      return b_.CreateFCmpUNE(a, b);
    case ir::BinaryOp::kLT:
      return b_.CreateFCmpOLT(a, b);
    case ir::BinaryOp::kLE:
      return b_.CreateFCmpOLE(a, b);
    case ir::BinaryOp::kGT:
      return b_.CreateFCmpOGT(a, b);
    case ir::BinaryOp::kGE:
      return b_.CreateFCmpOGE(a, b);
    case ir::BinaryOp::kAnd:
    case ir::BinaryOp::kOr:
      break;
  }
  INGOT_UNREACHABLE("BinaryOp of floats");
}

llvm::Value* Arithmetic::OfIntegers(ir::BinaryOp op, DataType operands, llvm::Value* a, llvm::Value* b,
                                    bool no_wrap) const {
  const bool is_signed = operands.is_int();
  switch (op) {
    case ir::BinaryOp::kAdd:
      return b_.CreateAdd(a, b, "", false, no_wrap);
    case ir::BinaryOp::kSub:
      return b_.CreateSub(a, b, "", false, no_wrap);
    case ir::BinaryOp::kMul:
      return b_.CreateMul(a, b, "", false, no_wrap);
    case ir::BinaryOp::kMin:
    case ir::BinaryOp::kMax:
      return Combine(op, operands, a, b);
    case ir::BinaryOp::kEQ:
      return b_.CreateICmpEQ(a, b);
    case ir::BinaryOp::kNE:
      return b_.CreateICmpNE(a, b);
    case ir::BinaryOp::kLT:
      return is_signed ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b);
    case ir::BinaryOp::kLE:
      return is_signed ? b_.CreateICmpSLE(a, b) : b_.CreateICmpULE(a, b);
    case ir::BinaryOp::kGT:
      return is_signed ? b_.CreateICmpSGT(a, b) : b_.CreateICmpUGT(a, b);
    case ir::BinaryOp::kGE:
      return is_signed ? b_.CreateICmpSGE(a, b) : b_.CreateICmpUGE(a, b);
    case ir::BinaryOp::kAnd:
      return b_.CreateAnd(a, b);
    case ir::BinaryOp::kOr:
      return b_.CreateOr(a, b);
    case ir::BinaryOp::kDiv:
    case ir::BinaryOp::kTruncMod:
    case ir::BinaryOp::kFloorDiv:
    case ir::BinaryOp::kFloorMod:
      break;
  }
  INGOT_UNREACHABLE("BinaryOp of integers");
}

// Like Python's %: the exact remainder, moved to the divisor's sign.
llvm::Value* Arithmetic::FloorModOfFloats(llvm::Value* a, llvm::Value* b) const {
  llvm::Value* rest = EmitVectorMath(b_, ir::Intrinsic::kFmod, {a, b});
  llvm::Value* zero = llvm::Constant::getNullValue(rest->getType());
  llvm::Value* other_sign = b_.CreateXor(b_.CreateFCmpOLT(rest, zero), b_.CreateFCmpOLT(b, zero));
  llvm::Value* moves = b_.CreateAnd(b_.CreateFCmpUNE(rest, zero), other_sign);
  return b_.CreateSelect(moves, b_.CreateFAdd(rest, b), rest);
}

// A NaN on either side gives NaN. With a constant on one side that is one instruction, the constant first.
llvm::Value* Arithmetic::MinMaxOfFloats(bool is_max, llvm::Value* a, llvm::Value* b) const {
  if (llvm::isa<llvm::Constant>(b)) std::swap(a, b);
  llvm::Value* chosen = b_.CreateSelect(is_max ? b_.CreateFCmpOGT(a, b) : b_.CreateFCmpOLT(a, b), a, b);
  if (llvm::isa<llvm::Constant>(a)) {
    const auto* scalar = llvm::cast<llvm::Constant>(a);
    if (a->getType()->isVectorTy()) scalar = scalar->getSplatValue();
    const auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(scalar);
    if (number != nullptr && !number->isNaN()) return chosen;
  }
  return PropagatingMinMax(is_max, a, b);
}

// A NaN on either side gives NaN; of two zeros either may be chosen.
llvm::Value* Arithmetic::PropagatingMinMax(bool is_max, llvm::Value* a, llvm::Value* b) const {
  llvm::IRBuilderBase::FastMathFlagGuard guard(b_);
  llvm::FastMathFlags flags;
  flags.setNoSignedZeros();
  b_.setFastMathFlags(flags);
  return b_.CreateBinaryIntrinsic(is_max ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, a, b);
}

llvm::Value* Arithmetic::Combine(ir::BinaryOp op, DataType dtype, llvm::Value* a, llvm::Value* b) const {
  if (op == ir::BinaryOp::kAdd) return dtype.is_floating() ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
  const bool is_max = op == ir::BinaryOp::kMax;
  if (dtype.is_floating()) return PropagatingMinMax(is_max, a, b);
  if (dtype.is_bool()) return is_max ? b_.CreateOr(a, b) : b_.CreateAnd(a, b);
  const llvm::Intrinsic::ID id = dtype.is_int() ? (is_max ? llvm::Intrinsic::smax : llvm::Intrinsic::smin)
                                                : (is_max ? llvm::Intrinsic::umax : llvm::Intrinsic::umin);
  return b_.CreateBinaryIntrinsic(id, a, b);
}

void Arithmetic::FailIfZero(DataType operands, llvm::Value* a, llvm::Value* b) const {
  llvm::Value* is_zero = AnyLane(b_, b_.CreateICmpEQ(b, llvm::Constant::getNullValue(b->getType())));
  llvm::Value* dividend = a->getType()->isVectorTy() ? b_.getInt64(0)
                          : operands.is_int()        ? b_.CreateSExtOrTrunc(a, b_.getInt64Ty())
                                                     : b_.CreateZExtOrTrunc(a, b_.getInt64Ty());
  runtime_.FailIf(is_zero, INGOT_KERNEL_DIV_BY_ZERO, dividend, b_.getInt64(0));
}

llvm::Value* Arithmetic::Divide(ir::BinaryOp op, DataType operands, llvm::Value* a, llvm::Value* b,
                                const Divisor& divisor) const {
  llvm::Type* type = a->getType();
  llvm::Value* zero = llvm::Constant::getNullValue(type);
  const bool wants_quotient = op == ir::BinaryOp::kDiv || op == ir::BinaryOp::kFloorDiv;
  const bool floors = op == ir::BinaryOp::kFloorDiv || op == ir::BinaryOp::kFloorMod;
  const arith::Interval bounds = divisor.bounds;
  if (bounds.min <= 0 && bounds.max >= 0) FailIfZero(operands, a, b);
  if (!operands.is_int()) return wants_quotient ? b_.CreateUDiv(a, b) : b_.CreateURem(a, b);
  if (bounds.min > 0 && floors && divisor.constant && (*divisor.constant & (*divisor.constant - 1)) == 0) {
    const auto power_of_two = static_cast<uint64_t>(*divisor.constant);
    return wants_quotient ? b_.CreateAShr(a, static_cast<uint64_t>(std::countr_zero(power_of_two)))
                          : b_.CreateAnd(a, llvm::ConstantInt::get(type, power_of_two - 1));
  }
  llvm::Value* is_minus_one = nullptr;
  if (bounds.min <= -1 && bounds.max >= -1) {
    is_minus_one = b_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(type));
    b = b_.CreateSelect(is_minus_one, llvm::ConstantInt::get(type, 1), b);
  }
  llvm::Value* quotient = wants_quotient ? b_.CreateSDiv(a, b) : nullptr;
  llvm::Value* rest = !wants_quotient || floors ? b_.CreateSRem(a, b) : nullptr;
  if (floors) {
    llvm::Value* below = bounds.min > 0
                             ? b_.CreateICmpSLT(rest, zero)
                             : b_.CreateAnd(b_.CreateICmpNE(rest, zero), b_.CreateICmpSLT(b_.CreateXor(rest, b), zero));
    if (wants_quotient) {
      quotient = b_.CreateSub(quotient, b_.CreateZExt(below, type));
    } else {
      rest = b_.CreateSelect(below, b_.CreateAdd(rest, b), rest);
    }
  }
  if (!wants_quotient) return rest;
  return is_minus_one == nullptr ? quotient : b_.CreateSelect(is_minus_one, b_.CreateNeg(a), quotient);
}

}  // namespace ingot::codegen
