// Keys of the instructions that may be had again, and the laws of neutral operands.
#include "compiler/codegen/reuse_folder.h"

#include <llvm/IR/Instructions.h>
#include <llvm/IR/Operator.h>

#include <optional>

namespace ingot::codegen {
namespace {

using Key = ReusableValues::Key;

// What an instruction promises: its result is poison where the promise is broken.
constexpr unsigned kNuw = 1, kNsw = 2, kExact = 4, kInBounds = 8, kOther = 16;

unsigned FlagsOf(llvm::GEPNoWrapFlags flags) {
  if (flags == llvm::GEPNoWrapFlags::none()) return 0;
  return flags == llvm::GEPNoWrapFlags::inBounds() ? kInBounds : kOther;
}

// As they are now: the builder sets them behind the insertion.
unsigned FlagsOf(const llvm::Instruction& instruction) {
  unsigned flags = 0;
  if (const auto* wraps = llvm::dyn_cast<llvm::OverflowingBinaryOperator>(&instruction)) {
    flags |= (wraps->hasNoUnsignedWrap() ? kNuw : 0) | (wraps->hasNoSignedWrap() ? kNsw : 0);
  }
  if (const auto* exact = llvm::dyn_cast<llvm::PossiblyExactOperator>(&instruction)) {
    flags |= exact->isExact() ? kExact : 0;
  }
  if (const auto* disjoint = llvm::dyn_cast<llvm::PossiblyDisjointInst>(&instruction)) {
    flags |= disjoint->isDisjoint() ? kOther : 0;
  }
  if (const auto* cast = llvm::dyn_cast<llvm::PossiblyNonNegInst>(&instruction))
    flags |= cast->hasNonNeg() ? kOther : 0;
  if (const auto* cast = llvm::dyn_cast<llvm::TruncInst>(&instruction)) {
    flags |= cast->hasNoUnsignedWrap() || cast->hasNoSignedWrap() ? kOther : 0;
  }
  if (const auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(&instruction)) {
    flags |= FlagsOf(address->getNoWrapFlags());
  }
  return flags;
}

Key KeyOfBinary(llvm::Instruction::BinaryOps op, llvm::Value* a, llvm::Value* b) { return {op, a->getType(), a, b}; }

// Nothing for instructions that are made anew each time.
std::optional<Key> KeyOf(llvm::Instruction& instruction) {
  if (auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(&instruction)) {
    if (!binary->getType()->isIntOrIntVectorTy()) return std::nullopt;
    return KeyOfBinary(binary->getOpcode(), binary->getOperand(0), binary->getOperand(1));
  }
  if (auto* cast = llvm::dyn_cast<llvm::CastInst>(&instruction)) {
    if (!cast->getSrcTy()->isIntOrIntVectorTy() || !cast->getDestTy()->isIntOrIntVectorTy()) return std::nullopt;
    return Key{cast->getOpcode(), cast->getDestTy(), cast->getOperand(0), nullptr};
  }
  if (auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(&instruction)) {
    if (address->getNumIndices() != 1) return std::nullopt;
    return Key{llvm::Instruction::GetElementPtr, address->getSourceElementType(), address->getPointerOperand(),
               address->getOperand(1)};
  }
  return std::nullopt;
}

bool IsConstant(const llvm::Value* value, uint64_t number) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  return constant != nullptr && constant->getValue() == number;
}

// The operand that the result equals, or null.
llvm::Value* FoldNeutral(llvm::Instruction::BinaryOps op, llvm::Value* a, llvm::Value* b) {
  switch (op) {
    case llvm::Instruction::Add:
      return IsConstant(b, 0) ? a : IsConstant(a, 0) ? b : nullptr;
    case llvm::Instruction::Sub:
      return IsConstant(b, 0) ? a : nullptr;
    case llvm::Instruction::Mul:
      return IsConstant(b, 1) ? a : IsConstant(a, 1) ? b : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

llvm::Value* ReusableValues::Find(const Key& key, unsigned flags) const {
  if (block_ == nullptr || builder_->GetInsertBlock() != block_) return nullptr;
  if (builder_->GetInsertPoint() != block_->end()) return nullptr;
  const auto [begin, end] = values_.equal_range(key);
  for (auto found = begin; found != end; ++found) {
    if ((FlagsOf(*found->second) & ~flags) == 0) return found->second;
  }
  return nullptr;
}

void ReusableValues::Add(llvm::Instruction* instruction) {
  const std::optional<Key> key = KeyOf(*instruction);
  if (!key || instruction->getNextNode() != nullptr) return;
  if (instruction->getParent() != block_) {
    block_ = instruction->getParent();
    values_.clear();
  }
  values_.emplace(*key, instruction);
}

llvm::Value* ReuseFolder::FoldBinOp(llvm::Instruction::BinaryOps op, llvm::Value* a, llvm::Value* b) const {
  if (llvm::Value* folded = constants_.FoldBinOp(op, a, b)) return folded;
  if (llvm::Value* same = FoldNeutral(op, a, b)) return same;
  return values_->Find(KeyOfBinary(op, a, b), 0);
}

llvm::Value* ReuseFolder::FoldExactBinOp(llvm::Instruction::BinaryOps op, llvm::Value* a, llvm::Value* b,
                                         bool is_exact) const {
  if (llvm::Value* folded = constants_.FoldExactBinOp(op, a, b, is_exact)) return folded;
  return values_->Find(KeyOfBinary(op, a, b), is_exact ? kExact : 0);
}

llvm::Value* ReuseFolder::FoldNoWrapBinOp(llvm::Instruction::BinaryOps op, llvm::Value* a, llvm::Value* b, bool has_nuw,
                                          bool has_nsw) const {
  if (llvm::Value* folded = constants_.FoldNoWrapBinOp(op, a, b, has_nuw, has_nsw)) return folded;
  if (llvm::Value* same = FoldNeutral(op, a, b)) return same;
  return values_->Find(KeyOfBinary(op, a, b), (has_nuw ? kNuw : 0) | (has_nsw ? kNsw : 0));
}

llvm::Value* ReuseFolder::FoldGEP(llvm::Type* type, llvm::Value* pointer, llvm::ArrayRef<llvm::Value*> indices,
                                  llvm::GEPNoWrapFlags flags) const {
  if (llvm::Value* folded = constants_.FoldGEP(type, pointer, indices, flags)) return folded;
  if (indices.size() != 1) return nullptr;
  return values_->Find({llvm::Instruction::GetElementPtr, type, pointer, indices[0]}, FlagsOf(flags));
}

llvm::Value* ReuseFolder::FoldCast(llvm::Instruction::CastOps op, llvm::Value* value, llvm::Type* type) const {
  if (llvm::Value* folded = constants_.FoldCast(op, value, type)) return folded;
  return values_->Find({op, type, value, nullptr}, 0);
}

}  // namespace ingot::codegen
