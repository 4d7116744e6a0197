// Values are widened in the block that computes them, and narrowed in each block that uses them; both are shuffles that
// cost no instruction, since instruction selection widens what it computes with anyway.
#include "compiler/codegen/widen_live_values.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/MathExtras.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

namespace ingot::codegen {
namespace {

unsigned LanesOfVector(const llvm::Value& value) {
  return llvm::cast<llvm::FixedVectorType>(value.getType())->getNumElements();
}

bool IsOddVector(const llvm::Value& value) {
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value.getType());
  return type != nullptr && !llvm::isPowerOf2_32(type->getNumElements());
}

// Returns the first lanes of a vector, or all of its lanes and poison behind them.
llvm::Value* WithLanes(llvm::IRBuilder<>& b, llvm::Value* vector, unsigned lanes) {
  std::vector<int> mask(lanes, llvm::PoisonMaskElem);
  std::iota(mask.begin(), mask.begin() + std::min(LanesOfVector(*vector), lanes), 0);
  return b.CreateShuffleVector(vector, mask);
}

llvm::Value* Widened(llvm::IRBuilder<>& b, llvm::Value* vector) {
  return WithLanes(b, vector, static_cast<unsigned>(llvm::PowerOf2Ceil(LanesOfVector(*vector))));
}

void WidenPhi(llvm::PHINode& phi) {
  const unsigned lanes = LanesOfVector(phi);
  llvm::IRBuilder<> b(&phi);
  auto* type =
      llvm::FixedVectorType::get(phi.getType()->getScalarType(), static_cast<unsigned>(llvm::PowerOf2Ceil(lanes)));
  llvm::PHINode* wide = b.CreatePHI(type, phi.getNumIncomingValues(), phi.getName());
  b.SetInsertPoint(phi.getParent(), phi.getParent()->getFirstInsertionPt());
  phi.replaceAllUsesWith(WithLanes(b, wide, lanes));
  for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
    // A block that comes in several times brings the same value.
    const int known = wide->getBasicBlockIndex(phi.getIncomingBlock(i));
    b.SetInsertPoint(phi.getIncomingBlock(i)->getTerminator());
    llvm::Value* value =
        known >= 0 ? wide->getIncomingValue(static_cast<unsigned>(known)) : Widened(b, phi.getIncomingValue(i));
    wide->addIncoming(value, phi.getIncomingBlock(i));
  }
  phi.eraseFromParent();
}

// No user is a phi: those of this type were widened before.
void WidenForOtherBlocks(llvm::Instruction& value) {
  std::vector<llvm::Use*> uses;
  for (llvm::Use& use : value.uses()) {
    if (llvm::cast<llvm::Instruction>(use.getUser())->getParent() != value.getParent()) uses.push_back(&use);
  }
  if (uses.empty()) return;
  const llvm::BasicBlock::iterator behind(value.getNextNode());
  llvm::IRBuilder<> b(value.getParent(), behind);
  llvm::Value* wide = Widened(b, &value);
  std::map<llvm::BasicBlock*, llvm::Value*> narrow;
  for (llvm::Use* use : uses) {
    llvm::BasicBlock* block = llvm::cast<llvm::Instruction>(use->getUser())->getParent();
    llvm::Value*& known = narrow[block];
    if (known == nullptr) {
      b.SetInsertPoint(block, block->getFirstInsertionPt());
      known = WithLanes(b, wide, LanesOfVector(value));
    }
    use->set(known);
  }
}

}  // namespace

void WidenLiveValues(llvm::Module& module) {
  std::vector<llvm::PHINode*> phis;
  for (llvm::Function& function : module) {
    for (llvm::BasicBlock& block : function) {
      for (llvm::PHINode& phi : block.phis()) {
        if (IsOddVector(phi)) phis.push_back(&phi);
      }
    }
  }
  for (llvm::PHINode* phi : phis) WidenPhi(*phi);
  std::vector<llvm::Instruction*> values;  // phis that were narrowed again are among them
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      if (IsOddVector(instruction)) values.push_back(&instruction);
    }
  }
  for (llvm::Instruction* value : values) WidenForOtherBlocks(*value);
}

}  // namespace ingot::codegen
