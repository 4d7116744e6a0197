// Blocks, stack slots and marked loads of the function that is being emitted.
#include "compiler/codegen/function_builder.h"

namespace ingot::codegen {

void FunctionBuilder::Start(llvm::Function* function) {
  function->addFnAttr(llvm::Attribute::NoUnwind);
  // Makes LLVM report the size of every frame, which machine.cc collects; no warning is printed.
  function->addFnAttr("warn-stack-size", "0");
  b_.SetInsertPoint(llvm::BasicBlock::Create(context(), "entry", function));
}

llvm::BasicBlock* FunctionBuilder::NewBlock(const llvm::Twine& name) {
  return llvm::BasicBlock::Create(context(), name, function());
}

llvm::AllocaInst* FunctionBuilder::EntryAlloca(llvm::Type* type, int64_t alignment, const llvm::Twine& name) {
  llvm::BasicBlock& entry = function()->getEntryBlock();
  llvm::IRBuilder<> builder(&entry, entry.begin());
  llvm::AllocaInst* slot = builder.CreateAlloca(type, nullptr, name);
  slot->setAlignment(llvm::Align(static_cast<uint64_t>(alignment)));
  return slot;
}

llvm::LoadInst* FunctionBuilder::LoadInvariant(llvm::Type* type, llvm::Value* address, const llvm::Twine& name) {
  llvm::LoadInst* load = b_.CreateLoad(type, address, name);
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context(), {}));
  return load;
}

void FunctionBuilder::SetPointerAlignment(llvm::LoadInst* pointer, int64_t alignment) {
  llvm::Metadata* bytes = llvm::ConstantAsMetadata::get(b_.getInt64(static_cast<uint64_t>(alignment)));
  pointer->setMetadata(llvm::LLVMContext::MD_align, llvm::MDNode::get(context(), {bytes}));
}

llvm::BasicBlock* FunctionBuilder::EnterUnlikely(llvm::Value* condition, const llvm::Twine& unlikely,
                                                 const llvm::Twine& otherwise) {
  llvm::BasicBlock* taken = NewBlock(unlikely);
  llvm::BasicBlock* next = NewBlock(otherwise);
  b_.CreateCondBr(condition, taken, next, llvm::MDBuilder(context()).createBranchWeights(1, 1 << 20));
  b_.SetInsertPoint(taken);
  return next;
}

}  // namespace ingot::codegen
