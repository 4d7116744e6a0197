// Lowers the intrinsics of compiler/ir/intrinsics.def to LLVM values. A part of KernelEmitter (kernel_emitter.h).
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "compiler/codegen/kernel_emitter.h"
#include "compiler/codegen/vector_math.h"
#include "runtime/kernel_abi.h"

namespace ingot::codegen {

llvm::Value* KernelEmitter::EmitCall(const ir::PrimCallNode& call) {
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
      llvm::Value* simple = EmitPowByConstant(call);
      return simple != nullptr ? simple : EmitMath(call);
    }
    case ir::Intrinsic::kSqrt:
      return EmitUnaryFloat(call, llvm::Intrinsic::sqrt);
    case ir::Intrinsic::kRsqrt: {
      llvm::Value* x = EmitExpr(call.args[0]);
      if (failed() || !call.dtype.is_floating()) {
        Unsupported("T.rsqrt of " + call.dtype.ToString());
        return Error(call.dtype);
      }
      x = numeric_.Widen(x, call.dtype);
      llvm::Value* root = b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
      return numeric_.Narrow(b_.CreateFDiv(llvm::ConstantFP::get(x->getType(), 1.0), root), call.dtype);
    }
    case ir::Intrinsic::kFabs:
    case ir::Intrinsic::kAbs: {
      if (call.dtype.is_floating()) return EmitUnaryFloat(call, llvm::Intrinsic::fabs);
      llvm::Value* x = EmitExpr(call.args[0]);
      if (failed() || !call.dtype.is_int()) return x;
      return b_.CreateIntrinsic(llvm::Intrinsic::abs, {x->getType()}, {x, b_.getFalse()});
    }
    case ir::Intrinsic::kFloor:
      return EmitUnaryFloat(call, llvm::Intrinsic::floor);
    case ir::Intrinsic::kCeil:
      return EmitUnaryFloat(call, llvm::Intrinsic::ceil);
    case ir::Intrinsic::kTrunc:
      return EmitUnaryFloat(call, llvm::Intrinsic::trunc);
    case ir::Intrinsic::kNearbyInt:
      return EmitUnaryFloat(call, llvm::Intrinsic::roundeven);
    case ir::Intrinsic::kRound:
      return EmitRound(call);
    case ir::Intrinsic::kFma: {
      llvm::Value* arguments[3];
      for (int i = 0; i < 3; ++i) arguments[i] = EmitExpr(call.args[i]);
      if (failed()) return Error(call.dtype);
      if (!call.dtype.is_floating()) return b_.CreateAdd(b_.CreateMul(arguments[0], arguments[1]), arguments[2]);
      for (llvm::Value*& argument : arguments) argument = numeric_.Widen(argument, call.dtype);
      return numeric_.Narrow(b_.CreateIntrinsic(llvm::Intrinsic::fma, {arguments[0]->getType()}, arguments),
                             call.dtype);
    }
    case ir::Intrinsic::kIsNan:
    case ir::Intrinsic::kIsInf: {
      const DataType dtype = call.args[0]->dtype;
      llvm::Value* x = EmitExpr(call.args[0]);
      if (failed()) return Error(call.dtype);
      if (!dtype.is_floating()) return numeric_.Constant(call.dtype, 0);
      x = numeric_.Widen(x, dtype);
      if (call.op == ir::Intrinsic::kIsNan) return b_.CreateFCmpUNO(x, x);
      return b_.CreateFCmpOEQ(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x),
                              llvm::ConstantFP::getInfinity(x->getType()));
    }
    case ir::Intrinsic::kIfThenElse:
      return EmitIfThenElse(call);
    case ir::Intrinsic::kLikely:
      return EmitExpr(call.args[0]);
    case ir::Intrinsic::kShiftLeft:
    case ir::Intrinsic::kShiftRight:
      return EmitShift(call);
    case ir::Intrinsic::kBitwiseAnd:
    case ir::Intrinsic::kBitwiseOr:
    case ir::Intrinsic::kBitwiseXor: {
      llvm::Value* a = EmitExpr(call.args[0]);
      llvm::Value* b = EmitExpr(call.args[1]);
      if (failed()) return Error(call.dtype);
      if (call.op == ir::Intrinsic::kBitwiseAnd) return b_.CreateAnd(a, b);
      return call.op == ir::Intrinsic::kBitwiseOr ? b_.CreateOr(a, b) : b_.CreateXor(a, b);
    }
    case ir::Intrinsic::kBitwiseNot:
      return b_.CreateNot(EmitExpr(call.args[0]));
    case ir::Intrinsic::kReinterpret:
      return EmitReinterpret(call);
    case ir::Intrinsic::kVectorReduceAdd:
    case ir::Intrinsic::kVectorReduceMax:
    case ir::Intrinsic::kVectorReduceMin:
      return EmitVectorReduce(call);
    case ir::Intrinsic::kCallExtern:
    case ir::Intrinsic::kCallPacked:
      return EmitExternal(call);
  }
  INGOT_UNREACHABLE("Intrinsic");
}

// Rounding functions leave integers as they are.
llvm::Value* KernelEmitter::EmitUnaryFloat(const ir::PrimCallNode& call, llvm::Intrinsic::ID id) {
  llvm::Value* x = EmitExpr(call.args[0]);
  if (failed()) return Error(call.dtype);
  if (!call.dtype.is_floating()) {
    if (id != llvm::Intrinsic::sqrt) return x;
    Unsupported("T.sqrt of " + call.dtype.ToString());
    return Error(call.dtype);
  }
  return numeric_.Narrow(b_.CreateUnaryIntrinsic(id, numeric_.Widen(x, call.dtype)), call.dtype);
}

// Rounds halves away from zero: trunc(x + copysign(h, x)), where h is the largest number below 1/2, so that an x whose
// fraction is below one half does not reach the next integer.
llvm::Value* KernelEmitter::EmitRound(const ir::PrimCallNode& call) {
  llvm::Value* x = EmitExpr(call.args[0]);
  if (failed() || !call.dtype.is_floating()) return x;
  x = numeric_.Widen(x, call.dtype);
  const bool is_float32 = x->getType()->getScalarType()->isFloatTy();
  llvm::Value* half =
      llvm::ConstantFP::get(x->getType(), is_float32 ? double{std::nextafterf(0.5f, 0.0f)} : std::nextafter(0.5, 0.0));
  llvm::Value* sum = b_.CreateFAdd(x, b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, half, x));
  return numeric_.Narrow(b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, sum), call.dtype);
}

llvm::Value* KernelEmitter::EmitMath(const ir::PrimCallNode& call) {
  std::vector<llvm::Value*> arguments;
  for (const ir::PrimExpr& argument : call.args) arguments.push_back(EmitExpr(argument));
  if (failed()) return Error(call.dtype);
  if (!call.dtype.is_floating()) {
    Unsupported(std::string("T.") + ir::GetIntrinsicRow(call.op).name + " of " + call.dtype.ToString());
    return Error(call.dtype);
  }
  for (llvm::Value*& argument : arguments) argument = numeric_.Widen(argument, call.dtype);
  return numeric_.Narrow(EmitVectorMath(b_, call.op, arguments), call.dtype);
}

// Expands powers with small constant exponents to multiplications. Returns null if the call is no power or the exponent
// is another. x^3 is within 1 ULP.
llvm::Value* KernelEmitter::EmitPowByConstant(const ir::PrimCallNode& call) {
  if (call.op != ir::Intrinsic::kPow || !call.dtype.is_floating()) return nullptr;
  ir::PrimExpr exponent = call.args[1];
  if (const auto* broadcast = ir::As<ir::BroadcastNode>(exponent)) exponent = broadcast->value;
  const auto* number = ir::As<ir::FloatImmNode>(exponent);
  if (number == nullptr) return nullptr;
  const double y = number->value;
  if (y != 1.0 && y != 2.0 && y != 3.0 && y != -1.0) return nullptr;
  llvm::Value* x = EmitExpr(call.args[0]);
  if (failed()) return Error(call.dtype);
  x = numeric_.Widen(x, call.dtype);
  llvm::Value* result = x;
  if (y == -1.0) result = b_.CreateFDiv(llvm::ConstantFP::get(x->getType(), 1.0), x);
  if (y >= 2.0) result = b_.CreateFMul(x, x);
  if (y == 3.0) result = b_.CreateFMul(result, x);
  return numeric_.Narrow(result, call.dtype);
}

llvm::Value* KernelEmitter::EmitIfThenElse(const ir::PrimCallNode& call) {
  if (!call.args[0]->dtype.is_scalar()) return EmitMaskedValue(call);
  llvm::Value* condition = EmitExpr(call.args[0]);
  if (failed()) return Error(call.dtype);
  llvm::BasicBlock* then_block = NewBlock("if.then");
  llvm::BasicBlock* else_block = NewBlock("if.else");
  llvm::BasicBlock* done = NewBlock("if.done");
  b_.CreateCondBr(condition, then_block, else_block);
  b_.SetInsertPoint(then_block);
  llvm::Value* then_value = EmitExpr(call.args[1]);
  then_block = b_.GetInsertBlock();
  b_.CreateBr(done);
  b_.SetInsertPoint(else_block);
  llvm::Value* else_value = EmitExpr(call.args[2]);
  else_block = b_.GetInsertBlock();
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  if (failed()) return Error(call.dtype);
  llvm::PHINode* result = b_.CreatePHI(then_value->getType(), 2);
  result->addIncoming(then_value, then_block);
  result->addIncoming(else_value, else_block);
  return result;
}

// A select with a condition per lane. The first value is computed if any lane selects it, and its loads touch those
// lanes alone; the second value is safe to compute for all lanes.
llvm::Value* KernelEmitter::EmitMaskedValue(const ir::PrimCallNode& call) {
  llvm::Value* condition = EmitExpr(call.args[0]);
  llvm::Value* other = EmitExpr(call.args[2]);
  if (failed()) return Error(call.dtype);
  llvm::Value* outer = mask_;
  llvm::Value* outer_count = std::exchange(mask_count_, nullptr);
  mask_ = outer != nullptr ? b_.CreateAnd(outer, condition) : condition;
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* then_block = NewBlock("mask.some");
  llvm::BasicBlock* done = NewBlock("mask.done");
  b_.CreateCondBr(b_.CreateOrReduce(mask_), then_block, done);
  b_.SetInsertPoint(then_block);
  llvm::Value* value = EmitExpr(call.args[1]);
  mask_ = outer;
  mask_count_ = outer_count;
  if (failed()) return Error(call.dtype);
  value = b_.CreateSelect(condition, value, other);
  then_block = b_.GetInsertBlock();
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  llvm::PHINode* result = b_.CreatePHI(value->getType(), 2);
  result->addIncoming(value, then_block);
  result->addIncoming(other, before);
  return result;
}

// Shift amounts that reach the dtype's width shift everything out (an arithmetic shift leaves copies of the sign).
llvm::Value* KernelEmitter::EmitShift(const ir::PrimCallNode& call) {
  llvm::Value* x = EmitExpr(call.args[0]);
  llvm::Value* amount = EmitExpr(call.args[1]);
  if (failed()) return Error(call.dtype);
  llvm::Type* type = x->getType();
  llvm::Value* fits = b_.CreateICmpULT(amount, llvm::ConstantInt::get(type, call.dtype.bits));
  const bool is_arithmetic = call.op == ir::Intrinsic::kShiftRight && call.dtype.is_int();
  llvm::Value* safe =
      b_.CreateSelect(fits, amount, llvm::ConstantInt::get(type, is_arithmetic ? call.dtype.bits - 1u : 0u));
  if (is_arithmetic) return b_.CreateAShr(x, safe);
  llvm::Value* shifted = call.op == ir::Intrinsic::kShiftLeft ? b_.CreateShl(x, safe) : b_.CreateLShr(x, safe);
  return b_.CreateSelect(fits, shifted, llvm::Constant::getNullValue(type));
}

llvm::Value* KernelEmitter::EmitReinterpret(const ir::PrimCallNode& call) {
  const DataType from = call.args[0]->dtype;
  llvm::Value* x = EmitExpr(call.args[0]);
  if (failed()) return Error(call.dtype);
  llvm::Value* memory = numeric_.ToMemory(x, from);
  if (memory->getType()->getPrimitiveSizeInBits() != numeric_.MemoryType(call.dtype)->getPrimitiveSizeInBits()) {
    Unsupported("T.reinterpret of " + from.ToString() + " as " + call.dtype.ToString());
    return Error(call.dtype);
  }
  return numeric_.FromMemory(b_.CreateBitCast(memory, numeric_.MemoryType(call.dtype)), call.dtype);
}

// A NaN on either side gives NaN; of two zeros either may be chosen.
llvm::Value* KernelEmitter::PropagatingMinMax(bool is_max, llvm::Value* a, llvm::Value* b) {
  llvm::IRBuilderBase::FastMathFlagGuard guard(b_);
  llvm::FastMathFlags flags;
  flags.setNoSignedZeros();
  b_.setFastMathFlags(flags);
  return b_.CreateBinaryIntrinsic(is_max ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, a, b);
}

llvm::Value* KernelEmitter::Combine(ir::BinaryOp op, DataType dtype, llvm::Value* a, llvm::Value* b) {
  if (op == ir::BinaryOp::kAdd) return dtype.is_floating() ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
  const bool is_max = op == ir::BinaryOp::kMax;
  if (dtype.is_floating()) return PropagatingMinMax(is_max, a, b);
  if (dtype.is_bool()) return is_max ? b_.CreateOr(a, b) : b_.CreateAnd(a, b);
  const llvm::Intrinsic::ID id = dtype.is_int() ? (is_max ? llvm::Intrinsic::smax : llvm::Intrinsic::smin)
                                                : (is_max ? llvm::Intrinsic::umax : llvm::Intrinsic::umin);
  return b_.CreateBinaryIntrinsic(id, a, b);
}

// Combines the two halves of the vector until one lane is left; an odd lane joins the first one. Sixteen-bit floats are
// combined in float32.
llvm::Value* KernelEmitter::EmitVectorReduce(const ir::PrimCallNode& call) {
  const DataType dtype = call.args[0]->dtype;
  llvm::Value* x = EmitExpr(call.args[0]);
  if (failed()) return Error(call.dtype);
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
      odd = odd == nullptr ? last : Combine(op, dtype, odd, last);
    }
    x = Combine(op, dtype, slice(0, half), slice(half, half));
    lanes = half;
  }
  if (odd != nullptr) x = Combine(op, dtype, x, odd);
  return numeric_.Narrow(x, dtype.element_of());
}

// call_extern(name, ...): data pointers of buffers go to `buffers`, scalars to `ints` (floats as their bits). If the
// external function returns a code other than 0, the kernel returns it; the value of the expression is 0.
llvm::Value* KernelEmitter::EmitExternal(const ir::PrimCallNode& call) {
  const auto* name = call.args.empty() ? nullptr : ir::As<ir::StringImmNode>(call.args[0]);
  const std::vector<std::string>& names = source_.description.externals;
  if (name == nullptr) {
    Unsupported("T.call_extern without a name");
    return Error(call.dtype);
  }
  const auto found = std::find(names.begin(), names.end(), name->value);
  INGOT_CHECK(found != names.end(), name->value.c_str());
  std::vector<llvm::Value*> buffers, ints;
  for (size_t i = 1; i < call.args.size(); ++i) {
    const DataType dtype = call.args[i]->dtype;
    if (call.args[i]->kind == ir::PrimKind::kStringImm) {
      Unsupported("T.call_extern with a string argument");
      return Error(call.dtype);
    }
    llvm::Value* value = EmitExpr(call.args[i]);
    if (failed()) return Error(call.dtype);
    if (dtype.is_handle()) {
      buffers.push_back(value);
    } else if (!dtype.is_scalar()) {
      Unsupported("T.call_extern with a vector argument");
      return Error(call.dtype);
    } else if (dtype.is_floating()) {
      llvm::Type* bits = b_.getIntNTy(dtype.bits);
      ints.push_back(b_.CreateZExt(b_.CreateBitCast(value, bits), b_.getInt64Ty()));
    } else {
      ints.push_back(numeric_.Convert(value, dtype, DataType::Int(64)));
    }
  }
  const auto array_of = [&](const std::vector<llvm::Value*>& values, llvm::Type* type, const char* label) {
    llvm::Value* array = EntryAlloca(llvm::ArrayType::get(type, std::max<size_t>(values.size(), 1)), 8, label);
    for (size_t i = 0; i < values.size(); ++i) b_.CreateStore(values[i], b_.CreateConstInBoundsGEP1_64(type, array, i));
    return array;
  };
  llvm::Value* buffer_array = array_of(buffers, b_.getPtrTy(), "extern.buffers");
  llvm::Value* int_array = array_of(ints, b_.getInt64Ty(), "extern.ints");
  llvm::Value* callee = LoadContextField(offsetof(IngotKernelContext, call_external), b_.getPtrTy(), "external.fn");
  auto* type =
      llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getInt32Ty(), b_.getPtrTy(), b_.getPtrTy()}, false);
  llvm::Value* index = b_.getInt32(static_cast<uint32_t>(found - names.begin()));
  ReturnIfNonZero(b_.CreateCall(type, callee, {context_, index, buffer_array, int_array}));
  return call.dtype.is_handle() ? static_cast<llvm::Value*>(llvm::ConstantPointerNull::get(b_.getPtrTy()))
                                : llvm::Constant::getNullValue(numeric_.RegisterType(call.dtype));
}

}  // namespace ingot::codegen
