// Lowers expressions of lowered functions to LLVM values. A part of KernelEmitter (kernel_emitter.h).
#include <algorithm>

#include "compiler/codegen/kernel_emitter.h"
#include "compiler/codegen/vector_math.h"
#include "runtime/kernel_abi.h"

namespace ingot::codegen {
namespace {

bool IsBool(ir::BinaryOp op) { return op == ir::BinaryOp::kAnd || op == ir::BinaryOp::kOr; }

}  // namespace

llvm::Value* KernelEmitter::Error(DataType dtype) {
  return Numeric::IsSupported(dtype) ? llvm::PoisonValue::get(numeric_.RegisterType(dtype))
                                     : llvm::PoisonValue::get(b_.getInt32Ty());
}

llvm::Value* KernelEmitter::EmitIndex(const ir::PrimExpr& expr) {
  ++index_depth_;
  llvm::Value* value = EmitExpr(expr);
  --index_depth_;
  return failed() ? Error(DataType::Int(64, expr->dtype.lanes))
                  : numeric_.Convert(value, expr->dtype, DataType::Int(64, expr->dtype.lanes));
}

llvm::Value* KernelEmitter::EmitExpr(const ir::PrimExpr& expr) {
  if (failed()) return Error(expr->dtype);
  if (!Numeric::IsSupported(expr->dtype)) {
    Unsupported("an expression of " + expr->dtype.ToString() + ", which kernels do not support yet");
    return Error(expr->dtype);
  }
  switch (expr->kind) {
    case ir::PrimKind::kIntImm: {
      const int64_t value = ir::As<ir::IntImmNode>(expr)->value;
      return expr->dtype.is_floating() ? numeric_.FloatConstant(expr->dtype, static_cast<double>(value))
                                       : numeric_.Constant(expr->dtype, value);
    }
    case ir::PrimKind::kFloatImm:
      return numeric_.FloatConstant(expr->dtype, ir::As<ir::FloatImmNode>(expr)->value);
    case ir::PrimKind::kPrimVar: {
      const auto* var = ir::As<ir::PrimVarNode>(expr);
      if (var->dtype.is_handle()) {
        const auto found = storage_.find(var);
        if (found != storage_.end()) return found->second.base;
      } else {
        const auto found = values_.find(var);
        if (found != values_.end()) return found->second;
      }
      Unsupported("the variable \"" + var->name + "\" is bound by no argument, loop or let");
      return Error(expr->dtype);
    }
    case ir::PrimKind::kBinary:
      return EmitBinary(*ir::As<ir::BinaryNode>(expr));
    case ir::PrimKind::kNot:
      return b_.CreateNot(EmitExpr(ir::As<ir::NotNode>(expr)->a));
    case ir::PrimKind::kSelect: {
      const auto* select = ir::As<ir::SelectNode>(expr);
      llvm::Value* condition = EmitExpr(select->condition);
      llvm::Value* true_value = EmitExpr(select->true_value);
      llvm::Value* false_value = EmitExpr(select->false_value);
      return failed() ? Error(expr->dtype) : b_.CreateSelect(condition, true_value, false_value);
    }
    case ir::PrimKind::kCast: {
      const auto* cast = ir::As<ir::CastNode>(expr);
      llvm::Value* value = EmitExpr(cast->value);
      return failed() ? Error(expr->dtype) : numeric_.Convert(value, cast->value->dtype, expr->dtype);
    }
    case ir::PrimKind::kBufferLoad:
      return EmitLoad(*ir::As<ir::BufferLoadNode>(expr));
    case ir::PrimKind::kRamp:
      return EmitRamp(*ir::As<ir::RampNode>(expr));
    case ir::PrimKind::kBroadcast: {
      const auto* broadcast = ir::As<ir::BroadcastNode>(expr);
      llvm::Value* value = EmitExpr(broadcast->value);
      return failed() ? Error(expr->dtype) : numeric_.Broadcast(value, broadcast->lanes);
    }
    case ir::PrimKind::kShuffle:
      return EmitShuffle(*ir::As<ir::ShuffleNode>(expr));
    case ir::PrimKind::kLet: {
      const auto* let = ir::As<ir::LetNode>(expr);
      values_[let->var.get()] = EmitExpr(let->value);
      return EmitExpr(let->body);
    }
    case ir::PrimKind::kPrimCall:
      return EmitCall(*ir::As<ir::PrimCallNode>(expr));
    case ir::PrimKind::kStringImm:
    case ir::PrimKind::kReduce:
    case ir::PrimKind::kProducerLoad:
      break;
  }
  Unsupported("an expression that was not lowered");
  return Error(expr->dtype);
}

llvm::Value* KernelEmitter::EmitRamp(const ir::RampNode& node) {
  llvm::Value* base = EmitExpr(node.base);
  llvm::Value* stride = EmitExpr(node.stride);
  if (failed()) return Error(node.dtype);
  std::vector<llvm::Constant*> lanes;
  for (int lane = 0; lane < node.lanes; ++lane) {
    lanes.push_back(llvm::ConstantInt::get(base->getType(), static_cast<uint64_t>(lane)));
  }
  llvm::Value* steps = b_.CreateMul(numeric_.Broadcast(stride, node.lanes), llvm::ConstantVector::get(lanes));
  return b_.CreateAdd(numeric_.Broadcast(base, node.lanes), steps);
}

llvm::Value* KernelEmitter::EmitShuffle(const ir::ShuffleNode& node) {
  std::vector<llvm::Value*> vectors;
  std::vector<std::pair<size_t, int>> lanes;  // of the concatenated vectors: (vector, lane)
  for (size_t i = 0; i < node.vectors.size(); ++i) {
    vectors.push_back(EmitExpr(node.vectors[i]));
    for (int lane = 0; lane < node.vectors[i]->dtype.lanes; ++lane) lanes.emplace_back(i, lane);
  }
  if (failed()) return Error(node.dtype);
  const bool is_vector = node.vectors[0]->dtype.lanes > 1;
  if (is_vector && node.dtype.lanes > 1 && vectors.size() <= 2 &&
      vectors.front()->getType() == vectors.back()->getType()) {
    std::vector<int> mask(node.indices.begin(), node.indices.end());
    return b_.CreateShuffleVector(vectors.front(), vectors.back(), mask);
  }
  const auto element = [&](int64_t index) {
    const auto [vector, lane] = lanes.at(static_cast<size_t>(index));
    return node.vectors[vector]->dtype.lanes == 1
               ? vectors[vector]
               : b_.CreateExtractElement(vectors[vector], static_cast<uint64_t>(lane));
  };
  if (node.dtype.lanes == 1) return element(node.indices[0]);
  llvm::Value* result = llvm::PoisonValue::get(numeric_.RegisterType(node.dtype));
  for (size_t i = 0; i < node.indices.size(); ++i) {
    result = b_.CreateInsertElement(result, element(node.indices[i]), i);
  }
  return result;
}

llvm::Value* KernelEmitter::TryFusedMultiplyAdd(const ir::BinaryNode& node) {
  const DataType dtype = node.dtype;
  if (dtype.code != TypeCode::kFloat || dtype.bits < 32) return nullptr;
  if (node.op != ir::BinaryOp::kAdd && node.op != ir::BinaryOp::kSub) return nullptr;
  const auto product_of = [](const ir::PrimExpr& expr) {
    const auto* product = ir::As<ir::BinaryNode>(expr);
    return product != nullptr && product->op == ir::BinaryOp::kMul ? product : nullptr;
  };
  // Tries the right operand first, since reductions are written as acc + a * b.
  const ir::BinaryNode* product = product_of(node.b);
  const bool product_is_right = product != nullptr;
  if (product == nullptr) product = product_of(node.a);
  if (product == nullptr) return nullptr;
  llvm::Value* other = EmitExpr(product_is_right ? node.a : node.b);
  llvm::Value* a = EmitExpr(product->a);
  llvm::Value* b = EmitExpr(product->b);
  if (failed()) return Error(dtype);
  if (node.op == ir::BinaryOp::kSub) {
    if (product_is_right) {
      a = b_.CreateFNeg(a);
    } else {
      other = b_.CreateFNeg(other);
    }
  }
  return b_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {a->getType()}, {a, b, other});
}

llvm::Value* KernelEmitter::EmitBinary(const ir::BinaryNode& node) {
  if (llvm::Value* fused = TryFusedMultiplyAdd(node)) return fused;
  const DataType operands = node.a->dtype;
  if (!operands.is_scalar()) {
    if (llvm::Value* count = CountOfFirstLanes(ir::PrimExpr(ir::Ref<ir::BinaryNode>(&node)))) {
      return FirstLanes(count, operands.lanes);
    }
  }
  llvm::Value* a = EmitExpr(node.a);
  llvm::Value* b = EmitExpr(node.b);
  if (failed()) return Error(node.dtype);
  if (a->getType() != b->getType()) {
    Unsupported("operands of " + operands.ToString() + " and " + node.b->dtype.ToString());
    return Error(node.dtype);
  }
  const bool is_float = operands.is_floating();
  const bool is_signed = operands.is_int();
  if (is_float && !IsBool(node.op)) {
    a = numeric_.Widen(a, operands);
    b = numeric_.Widen(b, operands);
  }
  // Index arithmetic does not overflow for legal shapes.
  const bool no_wrap = index_depth_ > 0 && is_signed && operands.bits >= 32;
  const auto narrow = [&](llvm::Value* value) { return numeric_.Narrow(value, operands); };
  const auto floor = [&](llvm::Value* value) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, value); };
  switch (node.op) {
    case ir::BinaryOp::kAdd:
      return is_float ? narrow(b_.CreateFAdd(a, b)) : b_.CreateAdd(a, b, "", false, no_wrap);
    case ir::BinaryOp::kSub:
      return is_float ? narrow(b_.CreateFSub(a, b)) : b_.CreateSub(a, b, "", false, no_wrap);
    case ir::BinaryOp::kMul:
      return is_float ? narrow(b_.CreateFMul(a, b)) : b_.CreateMul(a, b, "", false, no_wrap);
    case ir::BinaryOp::kDiv:
      return is_float ? narrow(b_.CreateFDiv(a, b)) : EmitIntegerDivision(node, a, b);
    case ir::BinaryOp::kTruncMod:
      if (!is_float) return EmitIntegerDivision(node, a, b);
      return narrow(EmitVectorMath(b_, ir::Intrinsic::kFmod, {a, b}));
    case ir::BinaryOp::kFloorDiv:
      return is_float ? narrow(floor(b_.CreateFDiv(a, b))) : EmitIntegerDivision(node, a, b);
    case ir::BinaryOp::kFloorMod: {
      if (!is_float) return EmitIntegerDivision(node, a, b);
      // Like Python's %: the exact remainder, moved to the divisor's sign.
      llvm::Value* rest = EmitVectorMath(b_, ir::Intrinsic::kFmod, {a, b});
      llvm::Value* zero = llvm::Constant::getNullValue(rest->getType());
      llvm::Value* other_sign = b_.CreateXor(b_.CreateFCmpOLT(rest, zero), b_.CreateFCmpOLT(b, zero));
      llvm::Value* moves = b_.CreateAnd(b_.CreateFCmpUNE(rest, zero), other_sign);
      return narrow(b_.CreateSelect(moves, b_.CreateFAdd(rest, b), rest));
    }
    case ir::BinaryOp::kMin:
    case ir::BinaryOp::kMax:
      return narrow(EmitMinMax(node, a, b));
    case ir::BinaryOp::kEQ:
      return is_float ? b_.CreateFCmpOEQ(a, b) : b_.CreateICmpEQ(a, b);
    case ir::BinaryOp::kNE:
      return is_float ? b_.CreateFCmpUNE(a, b) : b_.CreateICmpNE(a, b);
    case ir::BinaryOp::kLT:
      return is_float ? b_.CreateFCmpOLT(a, b) : is_signed ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b);
    case ir::BinaryOp::kLE:
      return is_float ? b_.CreateFCmpOLE(a, b) : is_signed ? b_.CreateICmpSLE(a, b) : b_.CreateICmpULE(a, b);
    case ir::BinaryOp::kGT:
      return is_float ? b_.CreateFCmpOGT(a, b) : is_signed ? b_.CreateICmpSGT(a, b) : b_.CreateICmpUGT(a, b);
    case ir::BinaryOp::kGE:
      return is_float ? b_.CreateFCmpOGE(a, b) : is_signed ? b_.CreateICmpSGE(a, b) : b_.CreateICmpUGE(a, b);
    case ir::BinaryOp::kAnd:
      return b_.CreateAnd(a, b);
    case ir::BinaryOp::kOr:
      return b_.CreateOr(a, b);
  }
  INGOT_UNREACHABLE("BinaryOp");
}

llvm::Value* KernelEmitter::EmitMinMax(const ir::BinaryNode& node, llvm::Value* a, llvm::Value* b) {
  const DataType dtype = node.a->dtype;
  const bool is_max = node.op == ir::BinaryOp::kMax;
  if (!dtype.is_floating()) return Combine(node.op, dtype, a, b);
  // A NaN on either side gives NaN. With a constant on one side that is one instruction, the constant first.
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

// Rounds towards zero (kDiv, kTruncMod) or down (kFloorDiv, kFloorMod). Division by zero makes the kernel fail; the
// smallest integer divided by -1 wraps.
llvm::Value* KernelEmitter::EmitIntegerDivision(const ir::BinaryNode& node, llvm::Value* a, llvm::Value* b) {
  const DataType dtype = node.a->dtype;
  llvm::Type* type = a->getType();
  llvm::Value* zero = llvm::Constant::getNullValue(type);
  const bool wants_quotient = node.op == ir::BinaryOp::kDiv || node.op == ir::BinaryOp::kFloorDiv;
  const bool floors = node.op == ir::BinaryOp::kFloorDiv || node.op == ir::BinaryOp::kFloorMod;
  ir::PrimExpr divisor = node.b;
  if (const auto* broadcast = ir::As<ir::BroadcastNode>(divisor)) divisor = broadcast->value;
  const auto constant = ir::AsConstInt(divisor);
  arith::Interval bounds{INT64_MIN, INT64_MAX};
  if (constant) {
    bounds = {*constant, *constant};
  } else if (divisor->dtype.is_scalar() && dtype.is_int()) {
    bounds = analyzer_.Bounds(divisor);
  }
  if (bounds.min <= 0 && bounds.max >= 0) {
    llvm::Value* is_zero = AnyLane(b_, b_.CreateICmpEQ(b, zero));
    llvm::Value* dividend = type->isVectorTy() ? b_.getInt64(0)
                            : dtype.is_int()   ? b_.CreateSExtOrTrunc(a, b_.getInt64Ty())
                                               : b_.CreateZExtOrTrunc(a, b_.getInt64Ty());
    FailIf(is_zero, INGOT_KERNEL_DIV_BY_ZERO, dividend, b_.getInt64(0));
  }
  if (!dtype.is_int()) return wants_quotient ? b_.CreateUDiv(a, b) : b_.CreateURem(a, b);
  if (bounds.min > 0 && floors && constant && (*constant & (*constant - 1)) == 0) {
    const int shift = __builtin_ctzll(static_cast<uint64_t>(*constant));
    return wants_quotient ? b_.CreateAShr(a, shift)
                          : b_.CreateAnd(a, llvm::ConstantInt::get(type, static_cast<uint64_t>(*constant) - 1));
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
