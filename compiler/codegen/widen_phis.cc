// Values are widened at the end of the block that they come from, and narrowed behind the phis of the block that they
// reach; both are shuffles that cost no instruction, since vectors are stored widened in registers anyway.
#include "compiler/codegen/widen_phis.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/MathExtras.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace ingot::codegen {
namespace {

// Returns the first lanes of a vector, or all of its lanes and poison behind them.
llvm::Value* WithLanes(llvm::IRBuilder<>& b, llvm::Value* vector, unsigned lanes) {
  const unsigned own = llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
  std::vector<int> mask(lanes, llvm::PoisonMaskElem);
  std::iota(mask.begin(), mask.begin() + std::min(own, lanes), 0);
  return b.CreateShuffleVector(vector, mask);
}

void Widen(llvm::PHINode& phi) {
  const unsigned own = llvm::cast<llvm::FixedVectorType>(phi.getType())->getNumElements();
  const auto whole = static_cast<unsigned>(llvm::PowerOf2Ceil(own));
  llvm::IRBuilder<> b(&phi);
  llvm::PHINode* wide = b.CreatePHI(llvm::FixedVectorType::get(phi.getType()->getScalarType(), whole),
                                    phi.getNumIncomingValues(), phi.getName());
  b.SetInsertPoint(phi.getParent(), phi.getParent()->getFirstInsertionPt());
  phi.replaceAllUsesWith(WithLanes(b, wide, own));
  for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
    // One block may come in several times, always with the same value.
    const int known = wide->getBasicBlockIndex(phi.getIncomingBlock(i));
    b.SetInsertPoint(phi.getIncomingBlock(i)->getTerminator());
    llvm::Value* value = known >= 0 ? wide->getIncomingValue(static_cast<unsigned>(known))
                                    : WithLanes(b, phi.getIncomingValue(i), whole);
    wide->addIncoming(value, phi.getIncomingBlock(i));
  }
  phi.eraseFromParent();
}

}  // namespace

void WidenPhis(llvm::Module& module) {
  std::vector<llvm::PHINode*> odd;
  for (llvm::Function& function : module) {
    for (llvm::BasicBlock& block : function) {
      for (llvm::PHINode& phi : block.phis()) {
        const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(phi.getType());
        if (type != nullptr && !llvm::isPowerOf2_32(type->getNumElements())) odd.push_back(&phi);
      }
    }
  }
  for (llvm::PHINode* phi : odd) Widen(*phi);
}

}  // namespace ingot::codegen
