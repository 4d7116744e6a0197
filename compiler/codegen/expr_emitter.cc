// Expressions by kind. Operands are computed from left to right; a + b * c in float32 and float64 becomes one fused
// multiply-add.
#include "compiler/codegen/expr_emitter.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/check.h"

namespace ingot::codegen {
namespace {

// Whether the offset grows by equal steps from lane to lane: one index is a ramp or a broadcast, the others are
// scalars.
bool IsAffine(const std::vector<ir::PrimExpr>& indices) {
  int vector_indices = 0;
  for (const ir::PrimExpr& index : indices) {
    if (index->dtype.lanes == 1) continue;
    if (ir::As<ir::RampNode>(index) == nullptr && ir::As<ir::BroadcastNode>(index) == nullptr) return false;
    ++vector_indices;
  }
  return vector_indices <= 1;
}

// The terms of an index that is a sum; else the index.
std::vector<ir::PrimExpr> TermsOf(const ir::PrimExpr& index) {
  const auto* sum = ir::As<ir::BinaryNode>(index);
  if (sum == nullptr || sum->op != ir::BinaryOp::kAdd) return {index};
  std::vector<ir::PrimExpr> terms = TermsOf(sum->a);
  for (ir::PrimExpr& term : TermsOf(sum->b)) terms.push_back(std::move(term));
  return terms;
}

// An index that is a sum of something and a small constant, as these two; else the index and 0. The first one times the
// stride of its dimension does not overflow: the offset of an element and the stride are below 2^47, the size of the
// address space, and the constant is at most 2^15.
std::pair<ir::PrimExpr, int64_t> SplitConstant(const ir::PrimExpr& index) {
  constexpr int64_t kLargest = 1 << 15;
  if (!index->dtype.is_int()) return {index, 0};  // unsigned sums may wrap
  if (const auto constant = ir::AsConstInt(index); constant && std::abs(*constant) <= kLargest) {
    return {ir::IntImm(index->dtype, 0), *constant};
  }
  const auto* sum = ir::As<ir::BinaryNode>(index);
  if (sum == nullptr || sum->op != ir::BinaryOp::kAdd) return {index, 0};
  const std::optional<int64_t> constant = ir::AsConstInt(sum->b);
  if (!constant || std::abs(*constant) > kLargest) return {index, 0};
  return {sum->a, *constant};
}

}  // namespace

ExprEmitter::ExprEmitter(FunctionBuilder& function, KernelStatus& status, MemoryAccess& memory, KernelRuntime& runtime,
                         const KernelDescription& description)
    : function_(function),
      status_(status),
      memory_(memory),
      runtime_(runtime),
      description_(description),
      b_(function.instructions()),
      numeric_(b_),
      arithmetic_(function, runtime),
      intrinsics_(function, status, arithmetic_) {}

llvm::Value* ExprEmitter::Unsupported(DataType dtype, const std::string& message) {
  status_.Unsupported(message);
  return numeric_.Placeholder(dtype);
}

llvm::Value* ExprEmitter::Find(const ir::PrimVarNode* variable) const {
  const auto found = variables_.find(variable);
  return found == variables_.end() ? nullptr : found->second;
}

void ExprEmitter::BindWord(const ir::PrimVarNode& variable, llvm::Value* word) {
  const DataType dtype = variable.dtype;
  if (!Numeric::IsSupported(dtype) || dtype.is_handle()) {
    return status_.Unsupported("scalar parameter \"" + variable.name + "\" is " + dtype.ToString());
  }
  llvm::Type* type = numeric_.RegisterType(dtype);
  llvm::Value* value = word;
  if (type->isFloatingPointTy()) {
    value = b_.CreateBitCast(b_.CreateTrunc(word, b_.getIntNTy(type->getScalarSizeInBits())), type, variable.name);
  } else if (type != word->getType()) {
    value = b_.CreateTrunc(word, type, variable.name);
  }
  Bind(&variable, value);
}

ExprEmitter::VariableMap ExprEmitter::ExchangeVariables(VariableMap variables) {
  return std::exchange(variables_, std::move(variables));
}

llvm::Value* ExprEmitter::EmitWithoutOverflow(const ir::PrimExpr& expr) {
  ++no_overflow_depth_;
  llvm::Value* value = Emit(expr);
  --no_overflow_depth_;
  return value;
}

llvm::Value* ExprEmitter::EmitIndex(const ir::PrimExpr& expr) {
  const DataType dtype = DataType::Int(64, expr->dtype.lanes);
  llvm::Value* value = EmitWithoutOverflow(expr);
  return status_.failed() ? numeric_.Placeholder(dtype) : numeric_.Convert(value, expr->dtype, dtype);
}

llvm::Value* ExprEmitter::Emit(const ir::PrimExpr& expr) {
  const DataType dtype = expr->dtype;
  if (status_.failed()) return numeric_.Placeholder(dtype);
  if (!Numeric::IsSupported(dtype)) {
    return Unsupported(dtype, "an expression of " + dtype.ToString() + ", which kernels do not support yet");
  }
  switch (expr->kind) {
    case ir::PrimKind::kIntImm: {
      const int64_t value = ir::As<ir::IntImmNode>(expr)->value;
      return dtype.is_floating() ? numeric_.FloatConstant(dtype, static_cast<double>(value))
                                 : numeric_.Constant(dtype, value);
    }
    case ir::PrimKind::kFloatImm:
      return numeric_.FloatConstant(dtype, ir::As<ir::FloatImmNode>(expr)->value);
    case ir::PrimKind::kPrimVar:
      return EmitVariable(*ir::As<ir::PrimVarNode>(expr));
    case ir::PrimKind::kBinary:
      return EmitBinary(*ir::As<ir::BinaryNode>(expr));
    case ir::PrimKind::kNot:
      return b_.CreateNot(Emit(ir::As<ir::NotNode>(expr)->a));
    case ir::PrimKind::kSelect:
      return EmitSelect(*ir::As<ir::SelectNode>(expr));
    case ir::PrimKind::kCast: {
      const ir::PrimExpr& from = ir::As<ir::CastNode>(expr)->value;
      llvm::Value* value = Emit(from);
      return status_.failed() ? numeric_.Placeholder(dtype) : numeric_.Convert(value, from->dtype, dtype);
    }
    case ir::PrimKind::kBufferLoad:
      return EmitLoad(*ir::As<ir::BufferLoadNode>(expr));
    case ir::PrimKind::kRamp:
      return EmitRamp(*ir::As<ir::RampNode>(expr));
    case ir::PrimKind::kBroadcast: {
      const auto* broadcast = ir::As<ir::BroadcastNode>(expr);
      llvm::Value* value = Emit(broadcast->value);
      return status_.failed() ? numeric_.Placeholder(dtype) : numeric_.Broadcast(value, broadcast->lanes);
    }
    case ir::PrimKind::kShuffle:
      return EmitShuffle(*ir::As<ir::ShuffleNode>(expr));
    case ir::PrimKind::kLet: {
      const auto* let = ir::As<ir::LetNode>(expr);
      BindLet(let->var, let->value);
      return Emit(let->body);
    }
    case ir::PrimKind::kPrimCall:
      return EmitCall(*ir::As<ir::PrimCallNode>(expr));
    case ir::PrimKind::kStringImm:
    case ir::PrimKind::kReduce:
    case ir::PrimKind::kProducerLoad:
      break;
  }
  return Unsupported(dtype, "an expression that was not lowered");
}

void ExprEmitter::BindLet(const ir::PrimVar& variable, const ir::PrimExpr& value) {
  Bind(variable.get(), Emit(value));
  analyzer_.BindLet(variable, value);
}

llvm::Value* ExprEmitter::EmitVariable(const ir::PrimVarNode& variable) {
  if (variable.dtype.is_handle()) {
    if (const Storage* storage = memory_.Find(&variable)) return storage->base;
  } else if (llvm::Value* value = Find(&variable)) {
    return value;
  }
  return Unsupported(variable.dtype, "the variable \"" + variable.name + "\" is bound by no argument, loop or let");
}

llvm::Value* ExprEmitter::EmitBinary(const ir::BinaryNode& node) {
  if (llvm::Value* fused = TryFusedMultiplyAdd(node)) return fused;
  const DataType operands = node.a->dtype;
  if (!operands.is_scalar()) {
    if (llvm::Value* count = EmitCountOfFirstLanes(ir::PrimExpr(ir::Ref<ir::BinaryNode>(&node)))) {
      std::vector<llvm::Constant*> numbers;
      for (int lane = 0; lane < operands.lanes; ++lane) numbers.push_back(b_.getInt32(static_cast<uint32_t>(lane)));
      return b_.CreateICmpSLT(llvm::ConstantVector::get(numbers), numeric_.Broadcast(count, operands.lanes));
    }
  }
  llvm::Value* a = Emit(node.a);
  llvm::Value* b = Emit(node.b);
  if (status_.failed()) return numeric_.Placeholder(node.dtype);
  if (a->getType() != b->getType()) {
    return Unsupported(node.dtype, "operands of " + operands.ToString() + " and " + node.b->dtype.ToString());
  }
  if (Arithmetic::IsDivision(node.op) && !operands.is_floating()) {
    return arithmetic_.Divide(node.op, operands, a, b, DescribeDivisor(node));
  }
  const bool no_wrap = no_overflow_depth_ > 0 && operands.is_int() && operands.bits >= 32;
  return arithmetic_.Binary(node.op, operands, a, b, no_wrap);
}

llvm::Value* ExprEmitter::TryFusedMultiplyAdd(const ir::BinaryNode& node) {
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
  llvm::Value* other = Emit(product_is_right ? node.a : node.b);
  llvm::Value* a = Emit(product->a);
  llvm::Value* b = Emit(product->b);
  if (status_.failed()) return numeric_.Placeholder(dtype);
  if (node.op == ir::BinaryOp::kSub) {
    if (product_is_right) {
      a = b_.CreateFNeg(a);
    } else {
      other = b_.CreateFNeg(other);
    }
  }
  return b_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {a->getType()}, {a, b, other});
}

Divisor ExprEmitter::DescribeDivisor(const ir::BinaryNode& node) {
  ir::PrimExpr divisor = node.b;
  if (const auto* broadcast = ir::As<ir::BroadcastNode>(divisor)) divisor = broadcast->value;
  if (const auto constant = ir::AsConstInt(divisor)) return {{*constant, *constant}, constant};
  if (!divisor->dtype.is_scalar() || !node.a->dtype.is_int()) return {arith::Interval::Everything(), std::nullopt};
  if (analyzer_.IsOfElements(divisor)) return {arith::Interval::Everything(), std::nullopt};
  return {analyzer_.Bounds(divisor), std::nullopt};
}

llvm::Value* ExprEmitter::EmitSelect(const ir::SelectNode& node) {
  llvm::Value* condition = Emit(node.condition);
  llvm::Value* true_value = Emit(node.true_value);
  llvm::Value* false_value = Emit(node.false_value);
  if (status_.failed()) return numeric_.Placeholder(node.dtype);
  return b_.CreateSelect(condition, true_value, false_value);
}

llvm::Value* ExprEmitter::EmitRamp(const ir::RampNode& node) {
  llvm::Value* base = Emit(node.base);
  llvm::Value* stride = Emit(node.stride);
  if (status_.failed()) return numeric_.Placeholder(node.dtype);
  std::vector<llvm::Constant*> lanes;
  for (int lane = 0; lane < node.lanes; ++lane) {
    lanes.push_back(llvm::ConstantInt::get(base->getType(), static_cast<uint64_t>(lane)));
  }
  llvm::Value* steps = b_.CreateMul(numeric_.Broadcast(stride, node.lanes), llvm::ConstantVector::get(lanes));
  return b_.CreateAdd(numeric_.Broadcast(base, node.lanes), steps);
}

llvm::Value* ExprEmitter::EmitShuffle(const ir::ShuffleNode& node) {
  std::vector<llvm::Value*> vectors;
  std::vector<std::pair<size_t, int>> lanes;  // of the concatenated vectors: (vector, lane)
  const int lane_by_lane = node.vectors.size() > 1 ? 1 : 0;
  lane_depth_ += lane_by_lane;
  for (size_t i = 0; i < node.vectors.size(); ++i) {
    vectors.push_back(Emit(node.vectors[i]));
    for (int lane = 0; lane < node.vectors[i]->dtype.lanes; ++lane) lanes.emplace_back(i, lane);
  }
  lane_depth_ -= lane_by_lane;
  if (status_.failed()) return numeric_.Placeholder(node.dtype);
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

std::optional<Address> ExprEmitter::EmitAddress(const ir::Buffer& buffer, const std::vector<ir::PrimExpr>& indices) {
  const Storage* storage = memory_.Find(buffer->data.get());
  if (storage == nullptr) {
    status_.Unsupported("buffer \"" + buffer->name + "\" is neither a parameter nor allocated");
    return std::nullopt;
  }
  if (indices.size() != buffer->shape.size()) {
    status_.Unsupported("an access of \"" + buffer->name + "\" has " + std::to_string(indices.size()) +
                        " indices for " + std::to_string(buffer->shape.size()) + " dimensions");
    return std::nullopt;
  }
  Address address;
  address.storage = *storage;
  // Of the unrolled accesses of a tile, the offsets differ by constants; these are added last, so that the rest of an
  // offset is one value for all of them.
  int64_t constant_steps = 0;
  for (const ir::PrimExpr& index : indices) address.lanes = std::max<int>(address.lanes, index->dtype.lanes);
  const bool is_affine = IsAffine(indices);
  llvm::Value* zero = b_.getInt64(0);
  address.offset = buffer->elem_offset ? EmitIndex(buffer->elem_offset) : zero;
  if (is_affine) address.stride = zero;
  llvm::Value* of_lanes = nullptr;  // what the lanes of a gathered access do not share
  // Row-major: dimension k counts the product of the extents behind it.
  llvm::Value* dim_stride = b_.getInt64(1);
  for (size_t k = indices.size(); k-- > 0 && !status_.failed();) {
    if (!buffer->strides.empty()) dim_stride = EmitIndex(buffer->strides[k]);
    const ir::PrimExpr& index = indices[k];
    if (is_affine) {
      ir::PrimExpr base = index;
      if (const auto* ramp = ir::As<ir::RampNode>(index)) {
        base = ramp->base;
        address.stride = b_.CreateNSWMul(EmitIndex(ramp->stride), dim_stride);
      } else if (const auto* broadcast = ir::As<ir::BroadcastNode>(index)) {
        base = broadcast->value;
      }
      if (const auto* steps = llvm::dyn_cast<llvm::ConstantInt>(dim_stride)) {
        const auto [rest, constant] = SplitConstant(base);
        base = rest;
        constant_steps += constant * steps->getSExtValue();
      }
      address.offset = b_.CreateNSWAdd(address.offset, b_.CreateNSWMul(EmitIndex(base), dim_stride));
    } else {
      for (const ir::PrimExpr& term : TermsOf(index)) {
        const auto* broadcast = ir::As<ir::BroadcastNode>(term);
        if (broadcast != nullptr || term->dtype.is_scalar()) {
          llvm::Value* steps = b_.CreateNSWMul(EmitIndex(broadcast ? broadcast->value : term), dim_stride);
          address.offset = b_.CreateNSWAdd(address.offset, steps);
        } else {
          llvm::Value* steps = b_.CreateNSWMul(EmitIndex(term), numeric_.Broadcast(dim_stride, address.lanes));
          of_lanes = of_lanes == nullptr ? steps : b_.CreateNSWAdd(of_lanes, steps);
        }
      }
    }
    if (buffer->strides.empty() && k > 0) dim_stride = b_.CreateNSWMul(dim_stride, EmitIndex(buffer->shape[k]));
  }
  if (status_.failed()) return std::nullopt;
  address.offset = b_.CreateNSWAdd(address.offset, b_.getInt64(static_cast<uint64_t>(constant_steps)));
  if (of_lanes != nullptr) {
    // A scalar base: offsets that are loaded from a table stay scalars where lanes are loaded one by one.
    address.storage.base =
        b_.CreateGEP(numeric_.MemoryType(buffer->dtype.element_of()), address.storage.base, address.offset);
    address.offset = of_lanes;
  }
  const auto* stride = llvm::dyn_cast_or_null<llvm::ConstantInt>(address.stride);
  address.contiguous = is_affine && (address.lanes == 1 || (stride != nullptr && stride->isOne()));
  if (proves_alignment_ && address.contiguous && address.lanes > 1) address.alignment = AlignmentOf(buffer, indices);
  return address;
}

// Of the vector, in bytes, as far as its first lane's place is known to be a multiple of its lanes.
int64_t ExprEmitter::AlignmentOf(const ir::Buffer& buffer, const std::vector<ir::PrimExpr>& indices) {
  const auto* last = ir::As<ir::RampNode>(indices.back());
  const int64_t bytes = last != nullptr ? last->lanes * buffer->dtype.bits / 8 : 1;
  const bool is_power = bytes > 1 && std::has_single_bit(static_cast<uint64_t>(bytes));
  if (!is_power || !buffer->strides.empty() || buffer->elem_offset) return 1;
  if (memory_.Find(buffer->data.get())->alignment % bytes != 0) return 1;
  ir::PrimExpr place = ir::Int64(0);
  for (size_t k = 0; k < indices.size(); ++k) {
    const ir::PrimExpr& index = indices[k];
    const auto* broadcast = ir::As<ir::BroadcastNode>(index);
    if (broadcast == nullptr && !index->dtype.is_scalar() && k + 1 != indices.size()) return 1;
    const ir::PrimExpr& base = broadcast != nullptr ? broadcast->value : k + 1 == indices.size() ? last->base : index;
    place = place * buffer->shape[k] + base;
  }
  return analyzer_.ProveDivisible(analyzer_.Simplify(place), last->lanes) ? bytes : 1;
}

llvm::Value* ExprEmitter::EmitLoad(const ir::BufferLoadNode& load) {
  const std::optional<Address> address = EmitAddress(load.buffer, load.indices);
  return address ? memory_.Load(*address, load.dtype) : numeric_.Placeholder(load.dtype);
}

llvm::Value* ExprEmitter::EmitCountOfFirstLanes(const ir::PrimExpr& condition) {
  const auto* less = ir::As<ir::BinaryNode>(condition);
  if (less == nullptr || less->op != ir::BinaryOp::kLT) return nullptr;
  const auto* ramp = ir::As<ir::RampNode>(less->a);
  const auto* bound = ir::As<ir::BroadcastNode>(less->b);
  if (ramp == nullptr || bound == nullptr || !ir::IsConstInt(ramp->stride, 1) || less->a->dtype.bits != 64) {
    return nullptr;
  }
  llvm::Value* first = EmitWithoutOverflow(ramp->base);
  llvm::Value* rest = b_.CreateNSWSub(EmitWithoutOverflow(bound->value), first);
  rest = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, rest, b_.getInt64(0));
  rest = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, rest, b_.getInt64(static_cast<uint64_t>(ramp->lanes)));
  return b_.CreateTrunc(rest, b_.getInt32Ty());
}

llvm::Value* ExprEmitter::EmitCall(const ir::PrimCallNode& call) {
  if (call.op == ir::Intrinsic::kIfThenElse) return EmitIfThenElse(call);
  if (call.op == ir::Intrinsic::kCallExtern || call.op == ir::Intrinsic::kCallPacked) return EmitExternal(call);
  std::vector<llvm::Value*> arguments;
  for (const ir::PrimExpr& argument : call.args) arguments.push_back(Emit(argument));
  return status_.failed() ? numeric_.Placeholder(call.dtype) : intrinsics_.Emit(call, arguments);
}

bool ExprEmitter::CanPredicate(const ir::PrimExpr& value) {
  const bool is_wanted = memory_.predicate() != nullptr || prefers_predicates_ || lane_depth_ > 0;
  if (!is_wanted || !memory_.has_predicates()) return false;
  constexpr int kMostLoads = 16, kMostCalls = 4, kMostNodes = 4096;
  struct Check : ir::PrimVisitor {
    ExprEmitter* emitter = nullptr;
    int nodes = 0, loads = 0, calls = 0;
    bool can = true;
    void VisitPrim(const ir::PrimExpr& expr) override {
      can &= ++nodes <= kMostNodes;
      if (can) ir::PrimVisitor::VisitPrim(expr);
    }
    using ir::PrimVisitor::Visit;
    void Visit(const ir::BufferLoadNode& load) override {
      const Storage* storage = emitter->memory_.Find(load.buffer->data.get());
      if (storage != nullptr && MemoryAccess::IsShared(*storage)) {
        can &= load.dtype.is_scalar() && ++loads <= kMostLoads;
      } else {
        can &= storage != nullptr && std::ranges::all_of(load.indices, [](const ir::PrimExpr& index) {
                 return ir::AsConstInt(index).has_value();
               });
      }
      ir::PrimVisitor::Visit(load);
    }
    void Visit(const ir::BinaryNode& node) override {
      if (Arithmetic::IsDivision(node.op) && !node.dtype.is_floating()) {
        const arith::Interval bounds = emitter->DescribeDivisor(node).bounds;
        can &= bounds.min > 0 || bounds.max < 0;
      }
      ir::PrimVisitor::Visit(node);
    }
    void Visit(const ir::PrimCallNode& call) override {
      if (call.op == ir::Intrinsic::kIfThenElse) {
        can &= call.args[0]->dtype.is_scalar();
      } else {
        can &= ++calls <= kMostCalls && ir::GetIntrinsicRow(call.op).traits == ir::IntrinsicRow::kPure;
      }
      ir::PrimVisitor::Visit(call);
    }
  } check;
  check.emitter = this;
  check.VisitPrim(value);
  return check.can;
}

llvm::Value* ExprEmitter::EmitByPredicate(const ir::PrimCallNode& call, llvm::Value* condition) {
  llvm::Value* outer = memory_.predicate();
  const auto under = [&](llvm::Value* inner, const ir::PrimExpr& value) {
    memory_.set_predicate(outer == nullptr ? inner : b_.CreateAnd(outer, inner));
    return Emit(value);
  };
  llvm::Value* then_value = under(condition, call.args[1]);
  llvm::Value* else_value = under(b_.CreateNot(condition), call.args[2]);
  memory_.set_predicate(outer);
  return status_.failed() ? numeric_.Placeholder(call.dtype) : b_.CreateSelect(condition, then_value, else_value);
}

llvm::Value* ExprEmitter::EmitIfThenElse(const ir::PrimCallNode& call) {
  if (!call.args[0]->dtype.is_scalar()) return EmitMaskedValue(call);
  llvm::Value* condition = Emit(call.args[0]);
  if (status_.failed()) return numeric_.Placeholder(call.dtype);
  if (CanPredicate(call.args[1]) && CanPredicate(call.args[2])) return EmitByPredicate(call, condition);
  llvm::BasicBlock* then_block = function_.NewBlock("if.then");
  llvm::BasicBlock* else_block = function_.NewBlock("if.else");
  llvm::BasicBlock* done = function_.NewBlock("if.done");
  b_.CreateCondBr(condition, then_block, else_block);
  b_.SetInsertPoint(then_block);
  llvm::Value* then_value = Emit(call.args[1]);
  then_block = b_.GetInsertBlock();
  b_.CreateBr(done);
  b_.SetInsertPoint(else_block);
  llvm::Value* else_value = Emit(call.args[2]);
  else_block = b_.GetInsertBlock();
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  if (status_.failed()) return numeric_.Placeholder(call.dtype);
  llvm::PHINode* result = b_.CreatePHI(then_value->getType(), 2);
  result->addIncoming(then_value, then_block);
  result->addIncoming(else_value, else_block);
  return result;
}

// A select with a condition per lane. The first value is computed if any lane selects it, and its loads touch those
// lanes alone; the second value is safe to compute for all lanes.
llvm::Value* ExprEmitter::EmitMaskedValue(const ir::PrimCallNode& call) {
  llvm::Value* condition = Emit(call.args[0]);
  llvm::Value* other = Emit(call.args[2]);
  if (status_.failed()) return numeric_.Placeholder(call.dtype);
  const LaneMask outer = memory_.mask();
  const LaneMask inner{outer.lanes != nullptr ? b_.CreateLogicalAnd(outer.lanes, condition) : condition, nullptr,
                       /*is_of_stores=*/false};
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* then_block = function_.NewBlock("mask.some");
  llvm::BasicBlock* done = function_.NewBlock("mask.done");
  b_.CreateCondBr(b_.CreateOrReduce(inner.lanes), then_block, done);
  b_.SetInsertPoint(then_block);
  memory_.set_mask(inner);
  llvm::Value* value = Emit(call.args[1]);
  memory_.set_mask(outer);
  if (status_.failed()) return numeric_.Placeholder(call.dtype);
  value = b_.CreateSelect(condition, value, other);
  then_block = b_.GetInsertBlock();
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  llvm::PHINode* result = b_.CreatePHI(value->getType(), 2);
  result->addIncoming(value, then_block);
  result->addIncoming(other, before);
  return result;
}

// call_extern(name, ...): data pointers of buffers and scalars (floats as their bits) are passed in separate lists. The
// value of the expression is 0.
llvm::Value* ExprEmitter::EmitExternal(const ir::PrimCallNode& call) {
  const auto* name = call.args.empty() ? nullptr : ir::As<ir::StringImmNode>(call.args[0]);
  if (name == nullptr) return Unsupported(call.dtype, "T.call_extern without a name");
  const std::vector<std::string>& names = description_.externals;
  const auto found = std::find(names.begin(), names.end(), name->value);
  INGOT_CHECK(found != names.end(), name->value.c_str());
  std::vector<llvm::Value*> buffers, ints;
  for (size_t i = 1; i < call.args.size(); ++i) {
    const DataType dtype = call.args[i]->dtype;
    if (call.args[i]->kind == ir::PrimKind::kStringImm) {
      return Unsupported(call.dtype, "T.call_extern with a string argument");
    }
    llvm::Value* value = Emit(call.args[i]);
    if (status_.failed()) return numeric_.Placeholder(call.dtype);
    if (dtype.is_handle()) {
      buffers.push_back(value);
    } else if (!dtype.is_scalar()) {
      return Unsupported(call.dtype, "T.call_extern with a vector argument");
    } else if (dtype.is_floating()) {
      llvm::Type* bits = b_.getIntNTy(dtype.bits);
      ints.push_back(b_.CreateZExt(b_.CreateBitCast(value, bits), b_.getInt64Ty()));
    } else {
      ints.push_back(numeric_.Convert(value, dtype, DataType::Int(64)));
    }
  }
  runtime_.CallExternal(static_cast<size_t>(found - names.begin()), buffers, ints);
  return llvm::Constant::getNullValue(numeric_.RegisterType(call.dtype));
}

}  // namespace ingot::codegen
