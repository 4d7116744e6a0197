// Operands are extended where they are used, and results rounded behind each step. Instruction selection merges equal
// conversions, and those of loads and stores with the access.
#include "compiler/codegen/widen_halves.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace ingot::codegen {
namespace {

using llvm::Value;

bool IsHalf(const Value* value) { return value->getType()->getScalarType()->isHalfTy(); }

bool HasHalfArithmetic(const Target& target) {
  return std::ranges::any_of(target.llvm_features, [](std::string_view feature) {
    return feature == "+avx512fp16" || feature == "+fullfp16";
  });
}

Value* Wide(llvm::IRBuilder<>& b, Value* value) {
  if (!IsHalf(value)) return value;
  return b.CreateFPExt(value, value->getType()->getWithNewType(b.getFloatTy()));
}

// What the optimiser narrows, and instruction selection has no instructions for.
bool IsOfFloats(llvm::Intrinsic::ID id) {
  constexpr llvm::Intrinsic::ID kIds[] = {
      llvm::Intrinsic::minnum, llvm::Intrinsic::maxnum,    llvm::Intrinsic::minimum, llvm::Intrinsic::maximum,
      llvm::Intrinsic::floor,  llvm::Intrinsic::ceil,      llvm::Intrinsic::trunc,   llvm::Intrinsic::rint,
      llvm::Intrinsic::round,  llvm::Intrinsic::roundeven, llvm::Intrinsic::sqrt,    llvm::Intrinsic::nearbyint};
  return llvm::is_contained(kIds, id);
}

// Returns the instruction's result by float32, or null where it has no part in float16 or needs no arithmetic.
Value* Widened(llvm::Instruction& instruction, llvm::IRBuilder<>& b) {
  if (auto* compare = llvm::dyn_cast<llvm::FCmpInst>(&instruction)) {
    if (!IsHalf(compare->getOperand(0))) return nullptr;
    return b.CreateFCmp(compare->getPredicate(), Wide(b, compare->getOperand(0)), Wide(b, compare->getOperand(1)));
  }
  if (!IsHalf(&instruction)) return nullptr;
  Value* result = nullptr;
  if (auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(&instruction)) {
    result = b.CreateBinOp(binary->getOpcode(), Wide(b, binary->getOperand(0)), Wide(b, binary->getOperand(1)));
  } else if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
             call && IsOfFloats(call->getIntrinsicID())) {
    std::vector<Value*> args;
    for (Value* arg : call->args()) args.push_back(Wide(b, arg));
    result = b.CreateIntrinsic(call->getIntrinsicID(), {args[0]->getType()}, args);
  }
  return result != nullptr ? b.CreateFPTrunc(result, instruction.getType()) : nullptr;
}

}  // namespace

void WidenHalves(llvm::Module& module, const Target& target) {
  if (HasHalfArithmetic(target)) return;
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
      llvm::IRBuilder<> b(&instruction);
      if (llvm::isa<llvm::FPMathOperator>(instruction)) b.setFastMathFlags(instruction.getFastMathFlags());
      Value* wide = Widened(instruction, b);
      if (wide == nullptr) continue;
      instruction.replaceAllUsesWith(wide);
      instruction.eraseFromParent();
    }
  }
}

}  // namespace ingot::codegen
