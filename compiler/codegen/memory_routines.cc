// Each routine moves blocks of 32 bytes, then single bytes. memmove goes upwards when the destination does not start
// inside the source, else downwards, so that no byte is overwritten before it is read.
#include "compiler/codegen/memory_routines.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>

namespace ingot::codegen {
namespace {

constexpr int64_t kBlock = 32;
using Step = std::function<void(llvm::IRBuilder<>&, llvm::Type* unit, llvm::Value* offset)>;

class Routine {
 public:
  Routine(llvm::Module& module, const char* name, llvm::Type* second) : b_(module.getContext()) {
    auto* type = llvm::FunctionType::get(b_.getPtrTy(), {b_.getPtrTy(), second, b_.getInt64Ty()}, false);
    function_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module);
    function_->setVisibility(llvm::GlobalValue::HiddenVisibility);
    function_->setDSOLocal(true);
    function_->addFnAttr(llvm::Attribute::NoUnwind);
    function_->addFnAttr("no-builtins");  // otherwise LLVM would make its loops calls of itself
    b_.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", function_));
  }

  llvm::IRBuilder<>& builder() { return b_; }
  llvm::Function* function() { return function_; }
  llvm::Value* argument(unsigned i) { return function_->getArg(i); }
  llvm::Type* block_type() { return llvm::FixedVectorType::get(b_.getInt8Ty(), kBlock); }
  llvm::Value* At(llvm::Value* base, llvm::Value* offset) { return b_.CreateInBoundsGEP(b_.getInt8Ty(), base, offset); }

  // Emits for (i = begin; i + size <= end; i += size) step(i); returns the i at which the loop stopped.
  llvm::Value* Upwards(llvm::Value* begin, llvm::Value* end, int64_t size, llvm::Type* unit, const Step& step) {
    llvm::BasicBlock* before = b_.GetInsertBlock();
    llvm::BasicBlock* head = NewBlock();
    llvm::BasicBlock* body = NewBlock();
    llvm::BasicBlock* done = NewBlock();
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2);
    i->addIncoming(begin, before);
    b_.CreateCondBr(b_.CreateICmpUGE(b_.CreateSub(end, i), b_.getInt64(size)), body, done);
    b_.SetInsertPoint(body);
    step(b_, unit, i);
    i->addIncoming(b_.CreateAdd(i, b_.getInt64(size)), body);
    b_.CreateBr(head);
    b_.SetInsertPoint(done);
    return i;
  }

  // Emits for (i = end; i >= size; i -= size) step(i - size); returns the i at which the loop stopped.
  llvm::Value* Downwards(llvm::Value* end, int64_t size, llvm::Type* unit, const Step& step) {
    llvm::BasicBlock* before = b_.GetInsertBlock();
    llvm::BasicBlock* head = NewBlock();
    llvm::BasicBlock* body = NewBlock();
    llvm::BasicBlock* done = NewBlock();
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2);
    i->addIncoming(end, before);
    b_.CreateCondBr(b_.CreateICmpUGE(i, b_.getInt64(size)), body, done);
    b_.SetInsertPoint(body);
    llvm::Value* next = b_.CreateSub(i, b_.getInt64(size));
    step(b_, unit, next);
    i->addIncoming(next, body);
    b_.CreateBr(head);
    b_.SetInsertPoint(done);
    return i;
  }

  llvm::BasicBlock* NewBlock() { return llvm::BasicBlock::Create(b_.getContext(), "", function_); }
  void Return() { b_.CreateRet(argument(0)); }

 private:
  llvm::IRBuilder<> b_;
  llvm::Function* function_;
};

Step CopyStep(Routine& routine) {
  return [&routine](llvm::IRBuilder<>& b, llvm::Type* unit, llvm::Value* offset) {
    llvm::Value* value = b.CreateAlignedLoad(unit, routine.At(routine.argument(1), offset), llvm::Align(1));
    b.CreateAlignedStore(value, routine.At(routine.argument(0), offset), llvm::Align(1));
  };
}

void CopyUpwards(Routine& routine) {
  llvm::IRBuilder<>& b = routine.builder();
  llvm::Value* size = routine.argument(2);
  llvm::Value* rest = routine.Upwards(b.getInt64(0), size, kBlock, routine.block_type(), CopyStep(routine));
  routine.Upwards(rest, size, 1, b.getInt8Ty(), CopyStep(routine));
}

}  // namespace

void AddMemoryRoutines(llvm::Module& module) {
  llvm::LLVMContext& context = module.getContext();
  {
    Routine memset(module, "memset", llvm::Type::getInt32Ty(context));
    llvm::IRBuilder<>& b = memset.builder();
    llvm::Value* byte = b.CreateTrunc(memset.argument(1), b.getInt8Ty());
    llvm::Value* block = b.CreateVectorSplat(kBlock, byte);
    const auto store = [&](llvm::Value* value) {
      return [&memset, value](llvm::IRBuilder<>& builder, llvm::Type*, llvm::Value* offset) {
        builder.CreateAlignedStore(value, memset.At(memset.argument(0), offset), llvm::Align(1));
      };
    };
    llvm::Value* rest = memset.Upwards(b.getInt64(0), memset.argument(2), kBlock, memset.block_type(), store(block));
    memset.Upwards(rest, memset.argument(2), 1, b.getInt8Ty(), store(byte));
    memset.Return();
  }
  {
    Routine memcpy(module, "memcpy", llvm::PointerType::getUnqual(context));
    CopyUpwards(memcpy);
    memcpy.Return();
  }
  {
    Routine memmove(module, "memmove", llvm::PointerType::getUnqual(context));
    llvm::IRBuilder<>& b = memmove.builder();
    llvm::Value* distance = b.CreateSub(b.CreatePtrToInt(memmove.argument(0), b.getInt64Ty()),
                                        b.CreatePtrToInt(memmove.argument(1), b.getInt64Ty()));
    llvm::BasicBlock* up = memmove.NewBlock();
    llvm::BasicBlock* down = memmove.NewBlock();
    // An unsigned comparison: a destination below the source counts as far away, too.
    b.CreateCondBr(b.CreateICmpUGE(distance, memmove.argument(2)), up, down);
    b.SetInsertPoint(up);
    CopyUpwards(memmove);
    memmove.Return();
    b.SetInsertPoint(down);
    llvm::Value* rest = memmove.Downwards(memmove.argument(2), kBlock, memmove.block_type(), CopyStep(memmove));
    memmove.Downwards(rest, 1, b.getInt8Ty(), CopyStep(memmove));
    memmove.Return();
  }
}

bool IsMemoryRoutine(std::string_view symbol) {
  return symbol == "memset" || symbol == "memcpy" || symbol == "memmove";
}

}  // namespace ingot::codegen
