// FunctionBuilder: the place in an LLVM function where instructions are emitted. It owns the IRBuilder that all
// emitters of a kernel write through, and which makes no index arithmetic twice in a block (reuse_folder.h); the
// function is that of the builder's block, so saving and restoring the insertion point switches functions, too. It
// knows nothing of kernels. Private to code generation.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <cstdint>

#include "compiler/codegen/reuse_folder.h"

namespace ingot::codegen {

class FunctionBuilder {
 public:
  explicit FunctionBuilder(llvm::Module& module)
      : module_(module), b_(module.getContext(), ReuseFolder(reusable_), ReuseInserter(reusable_)) {
    reusable_.Follow(b_);
  }

  llvm::Module& module() { return module_; }
  llvm::LLVMContext& context() { return module_.getContext(); }
  llvm::IRBuilderBase& instructions() { return b_; }
  llvm::Function* function() const { return b_.GetInsertBlock()->getParent(); }

  // Adds the entry block of a function without one and emits into it from here on.
  void Start(llvm::Function* function);
  llvm::BasicBlock* NewBlock(const llvm::Twine& name);
  // A slot in the frame, at the start of the entry block.
  llvm::AllocaInst* EntryAlloca(llvm::Type* type, int64_t alignment, const llvm::Twine& name);
  // Loads what stays the same while the kernel runs.
  llvm::LoadInst* LoadInvariant(llvm::Type* type, llvm::Value* address, const llvm::Twine& name = "");
  // Says how the pointer that the instruction loads is aligned.
  void SetPointerAlignment(llvm::LoadInst* pointer, int64_t alignment);
  // Branches to a block that is hardly ever taken and emits into it from here on. Returns the other block.
  llvm::BasicBlock* EnterUnlikely(llvm::Value* condition, const llvm::Twine& unlikely, const llvm::Twine& otherwise);

 private:
  llvm::Module& module_;
  ReusableValues reusable_;
  llvm::IRBuilder<ReuseFolder, ReuseInserter> b_;
};

}  // namespace ingot::codegen
