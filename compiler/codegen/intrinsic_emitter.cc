// Intrinsics as LLVM's own where every target has an instruction or an expansion, and as vector_math elsewhere.
#include "compiler/codegen/intrinsic_emitter.h"

#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>

#include <cmath>
#include <string>
#include <vector>

#include "compiler/codegen/integer_products.h"
#include "compiler/codegen/vector_math.h"
#include "compiler/ir/power.h"
#include "runtime/check.h"

namespace ingot::codegen {

IntrinsicEmitter::IntrinsicEmitter(FunctionBuilder& function, KernelStatus& status, const Arithmetic& arithmetic)
    : status_(status), arithmetic_(arithmetic), b_(function.instructions()), numeric_(b_) {}

llvm::Value* IntrinsicEmitter::Unsupported(const ir::PrimCallNode& call) {
  status_.Unsupported(std::string("T.") + ir::GetIntrinsicRow(call.op).name + " of " + call.dtype.ToString());
  return numeric_.Placeholder(call.dtype);
}

llvm::Value* IntrinsicEmitter::Emit(const ir::PrimCallNode& call, Values arguments) {
  switch (call.op) {
#define INGOT_CASE_Plain(id)
#define INGOT_CASE_Elementary(id) case ir::Intrinsic::k##id:
#define INGOT_CASE_WideElementary(id) case ir::Intrinsic::k##id:
#define INGOT_INTRINSIC(id, name, arity, result, traits, expansion, operations) INGOT_CASE_##expansion(id)
#include "compiler/ir/intrinsics.def"
#undef INGOT_CASE_Plain
#undef INGOT_CASE_Elementary
#undef INGOT_CASE_WideElementary
    {
      llvm::Value* simple = EmitPowByConstant(call, arguments[0]);
      return simple != nullptr ? simple : EmitMath(call, arguments);
    }
    case ir::Intrinsic::kSqrt:
      return EmitUnaryFloat(call, llvm::Intrinsic::sqrt, arguments[0]);
    case ir::Intrinsic::kRsqrt:
      return EmitRsqrt(call, arguments[0]);
    case ir::Intrinsic::kFabs:
    case ir::Intrinsic::kAbs:
      if (!call.dtype.is_int()) return EmitUnaryFloat(call, llvm::Intrinsic::fabs, arguments[0]);
      return b_.CreateIntrinsic(llvm::Intrinsic::abs, {arguments[0]->getType()}, {arguments[0], b_.getFalse()});
    case ir::Intrinsic::kFloor:
      return EmitUnaryFloat(call, llvm::Intrinsic::floor, arguments[0]);
    case ir::Intrinsic::kCeil:
      return EmitUnaryFloat(call, llvm::Intrinsic::ceil, arguments[0]);
    case ir::Intrinsic::kTrunc:
      return EmitUnaryFloat(call, llvm::Intrinsic::trunc, arguments[0]);
    case ir::Intrinsic::kNearbyInt:
      return EmitUnaryFloat(call, llvm::Intrinsic::roundeven, arguments[0]);
    case ir::Intrinsic::kRound:
      return EmitRound(call, arguments[0]);
    case ir::Intrinsic::kFma:
      return EmitFma(call, arguments);
    case ir::Intrinsic::kDotBytes:
      return EmitDotBytes(call, arguments);
    case ir::Intrinsic::kIsNan:
    case ir::Intrinsic::kIsInf:
      return EmitClassTest(call, arguments[0]);
    case ir::Intrinsic::kLikely:
      return arguments[0];
    case ir::Intrinsic::kShiftLeft:
    case ir::Intrinsic::kShiftRight:
      return EmitShift(call, arguments[0], arguments[1]);
    case ir::Intrinsic::kBitwiseAnd:
      return b_.CreateAnd(arguments[0], arguments[1]);
    case ir::Intrinsic::kBitwiseOr:
      return b_.CreateOr(arguments[0], arguments[1]);
    case ir::Intrinsic::kBitwiseXor:
      return b_.CreateXor(arguments[0], arguments[1]);
    case ir::Intrinsic::kBitwiseNot:
      return b_.CreateNot(arguments[0]);
    case ir::Intrinsic::kReinterpret:
      return EmitReinterpret(call, arguments[0]);
    case ir::Intrinsic::kVectorReduceAdd:
    case ir::Intrinsic::kVectorReduceMax:
    case ir::Intrinsic::kVectorReduceMin:
      return EmitVectorReduce(call, arguments[0]);
    case ir::Intrinsic::kIfThenElse:
    case ir::Intrinsic::kCallExtern:
    case ir::Intrinsic::kCallPacked:
      break;
  }
  INGOT_UNREACHABLE("Intrinsic");
}

// Rounding functions and absolute values leave unsigned integers and booleans as they are, rounding functions signed
// ones, too.
llvm::Value* IntrinsicEmitter::EmitUnaryFloat(const ir::PrimCallNode& call, llvm::Intrinsic::ID id, llvm::Value* x) {
  if (!call.dtype.is_floating()) return id == llvm::Intrinsic::sqrt ? Unsupported(call) : x;
  return numeric_.Narrow(b_.CreateUnaryIntrinsic(id, numeric_.Widen(x, call.dtype)), call.dtype);
}

llvm::Value* IntrinsicEmitter::EmitRsqrt(const ir::PrimCallNode& call, llvm::Value* x) {
  if (!call.dtype.is_floating()) return Unsupported(call);
  x = numeric_.Widen(x, call.dtype);
  llvm::Value* root = b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
  return numeric_.Narrow(b_.CreateFDiv(llvm::ConstantFP::get(x->getType(), 1.0), root), call.dtype);
}

// Rounds halves away from zero: trunc(x + copysign(h, x)), where h is the largest number below 1/2, so that an x whose
// fraction is below one half does not reach the next integer.
llvm::Value* IntrinsicEmitter::EmitRound(const ir::PrimCallNode& call, llvm::Value* x) {
  if (!call.dtype.is_floating()) return x;
  x = numeric_.Widen(x, call.dtype);
  const bool is_float32 = x->getType()->getScalarType()->isFloatTy();
  llvm::Value* half =
      llvm::ConstantFP::get(x->getType(), is_float32 ? double{std::nextafterf(0.5f, 0.0f)} : std::nextafter(0.5, 0.0));
  llvm::Value* sum = b_.CreateFAdd(x, b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, half, x));
  return numeric_.Narrow(b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, sum), call.dtype);
}

llvm::Value* IntrinsicEmitter::EmitFma(const ir::PrimCallNode& call, Values arguments) {
  if (!call.dtype.is_floating()) return b_.CreateAdd(b_.CreateMul(arguments[0], arguments[1]), arguments[2]);
  std::vector<llvm::Value*> wide;
  for (llvm::Value* argument : arguments) wide.push_back(numeric_.Widen(argument, call.dtype));
  return numeric_.Narrow(b_.CreateIntrinsic(llvm::Intrinsic::fma, {wide[0]->getType()}, wide), call.dtype);
}

llvm::Value* IntrinsicEmitter::EmitDotBytes(const ir::PrimCallNode& call, Values arguments) {
  if (call.dtype.element_of() != DataType::Int(32) || call.args[1]->dtype != call.dtype) return Unsupported(call);
  llvm::Module& module = *b_.GetInsertBlock()->getModule();
  return b_.CreateCall(DotBytesMarker(module, arguments[0]->getType()), {arguments[0], arguments[1]});
}

// T.isnan and T.isinf.
llvm::Value* IntrinsicEmitter::EmitClassTest(const ir::PrimCallNode& call, llvm::Value* x) {
  const DataType dtype = call.args[0]->dtype;
  if (!dtype.is_floating()) return numeric_.Constant(call.dtype, 0);
  x = numeric_.Widen(x, dtype);
  if (call.op == ir::Intrinsic::kIsNan) return b_.CreateFCmpUNO(x, x);
  return b_.CreateFCmpOEQ(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x),
                          llvm::ConstantFP::getInfinity(x->getType()));
}

llvm::Value* IntrinsicEmitter::EmitMath(const ir::PrimCallNode& call, Values arguments) {
  if (!call.dtype.is_floating()) return Unsupported(call);
  std::vector<llvm::Value*> wide;
  for (llvm::Value* argument : arguments) wide.push_back(numeric_.Widen(argument, call.dtype));
  if (call.op == ir::Intrinsic::kExp2 && wide[0]->getType()->getScalarType()->isFloatTy() && IsForCuda()) {
    return numeric_.Narrow(EmitCudaExp2(wide[0]), call.dtype);
  }
  return numeric_.Narrow(EmitVectorMath(b_, call.op, wide), call.dtype);
}

bool IntrinsicEmitter::IsForCuda() const {
  return llvm::StringRef(b_.GetInsertBlock()->getModule()->getTargetTriple()).starts_with("nvptx");
}

// ex2.approx.f32 is within 2^-22 of the result, denormal ones included (PTX manual, "ex2"), lane by lane.
llvm::Value* IntrinsicEmitter::EmitCudaExp2(llvm::Value* x) {
  const auto one = [&](llvm::Value* lane) {
    return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_ex2_approx_f, {}, {lane});
  };
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (vector == nullptr) return one(x);
  llvm::Value* result = llvm::PoisonValue::get(x->getType());
  for (unsigned i = 0; i < vector->getNumElements(); ++i) {
    result = b_.CreateInsertElement(result, one(b_.CreateExtractElement(x, i)), i);
  }
  return result;
}

// Expands powers with small constant exponents to multiplications. Returns null if the call is no power or the exponent
// is another. x^3 is within 1 ULP.
llvm::Value* IntrinsicEmitter::EmitPowByConstant(const ir::PrimCallNode& call, llvm::Value* x) {
  const std::optional<double> y = ir::ProductExponent(call);
  if (!y) return nullptr;
  x = numeric_.Widen(x, call.dtype);
  llvm::Value* result = x;
  if (*y == -1.0) result = b_.CreateFDiv(llvm::ConstantFP::get(x->getType(), 1.0), x);
  if (*y >= 2.0) result = b_.CreateFMul(x, x);
  if (*y == 3.0) result = b_.CreateFMul(result, x);
  return numeric_.Narrow(result, call.dtype);
}

// Shift amounts that reach the dtype's width shift everything out (an arithmetic shift leaves copies of the sign).
llvm::Value* IntrinsicEmitter::EmitShift(const ir::PrimCallNode& call, llvm::Value* x, llvm::Value* amount) {
  llvm::Type* type = x->getType();
  llvm::Value* fits = b_.CreateICmpULT(amount, llvm::ConstantInt::get(type, call.dtype.bits));
  const bool is_arithmetic = call.op == ir::Intrinsic::kShiftRight && call.dtype.is_int();
  const auto* always = llvm::dyn_cast<llvm::Constant>(fits);
  if (always != nullptr && always->isAllOnesValue()) {
    if (is_arithmetic) return b_.CreateAShr(x, amount);
    return call.op == ir::Intrinsic::kShiftLeft ? b_.CreateShl(x, amount) : b_.CreateLShr(x, amount);
  }
  llvm::Value* safe =
      b_.CreateSelect(fits, amount, llvm::ConstantInt::get(type, is_arithmetic ? call.dtype.bits - 1u : 0u));
  if (is_arithmetic) return b_.CreateAShr(x, safe);
  llvm::Value* shifted = call.op == ir::Intrinsic::kShiftLeft ? b_.CreateShl(x, safe) : b_.CreateLShr(x, safe);
  return b_.CreateSelect(fits, shifted, llvm::Constant::getNullValue(type));
}

llvm::Value* IntrinsicEmitter::EmitReinterpret(const ir::PrimCallNode& call, llvm::Value* x) {
  const DataType from = call.args[0]->dtype;
  llvm::Value* memory = numeric_.ToMemory(x, from);
  if (memory->getType()->getPrimitiveSizeInBits() != numeric_.MemoryType(call.dtype)->getPrimitiveSizeInBits()) {
    status_.Unsupported("T.reinterpret of " + from.ToString() + " as " + call.dtype.ToString());
    return numeric_.Placeholder(call.dtype);
  }
  return numeric_.FromMemory(b_.CreateBitCast(memory, numeric_.MemoryType(call.dtype)), call.dtype);
}

// Combines the two halves of the vector until one lane is left; an odd lane joins the first one. Sixteen-bit floats are
// combined in float32.
llvm::Value* IntrinsicEmitter::EmitVectorReduce(const ir::PrimCallNode& call, llvm::Value* x) {
  const DataType dtype = call.args[0]->dtype;
  const ir::BinaryOp op = call.op == ir::Intrinsic::kVectorReduceAdd   ? ir::BinaryOp::kAdd
                          : call.op == ir::Intrinsic::kVectorReduceMax ? ir::BinaryOp::kMax
                                                                       : ir::BinaryOp::kMin;
  x = numeric_.Widen(x, dtype);
  int lanes = dtype.lanes;
  llvm::Value* odd = nullptr;
  const auto slice = [&](int first, int count) -> llvm::Value* {
    if (count == 1) return b_.CreateExtractElement(x, static_cast<uint64_t>(first));
    std::vector<int> mask(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) mask[i] = first + i;
    return b_.CreateShuffleVector(x, mask);
  };
  while (lanes > 1) {
    const int half = lanes / 2;
    if (lanes % 2 != 0) {
      llvm::Value* last = slice(lanes - 1, 1);
      odd = odd == nullptr ? last : arithmetic_.Combine(op, dtype, odd, last);
    }
    x = arithmetic_.Combine(op, dtype, slice(0, half), slice(half, half));
    lanes = half;
  }
  if (odd != nullptr) x = arithmetic_.Combine(op, dtype, x, odd);
  return numeric_.Narrow(x, dtype.element_of());
}

}  // namespace ingot::codegen
