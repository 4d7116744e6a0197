// The function around a kernel: arguments in, the body, its code out.
#include "compiler/codegen/cpu_kernel_emitter.h"

#include <string>

#include "compiler/codegen/bind_buffers.h"
#include "compiler/schedule/device_loops.h"
#include "runtime/kernel_abi.h"

namespace ingot::codegen {

CpuKernelEmitter::CpuKernelEmitter(llvm::Module& module, const KernelSource& source, const std::string& symbol,
                                   const Target& target)
    : source_(source),
      symbol_(symbol),
      ints_(KernelIntArguments(source.lowered)),
      function_(module),
      status_(source.name),
      context_(function_),
      memory_(function_, symbol, target),
      exprs_(function_, status_, memory_, context_, source.description),
      stmts_(function_, status_, memory_, exprs_, context_, *this, source.description),
      allocations_(function_, status_, memory_, exprs_, context_, target),
      loops_(function_, status_, memory_, exprs_, stmts_, context_, symbol),
      has_amx_products_(target.has_amx() && AmxProducts::AreIn(source.lowered->body, source.description)),
      amx_products_(function_, status_, memory_, exprs_) {}

Result<DimCode> CpuKernelEmitter::Emit() {
  llvm::Function* kernel = AddKernel();
  function_.Start(kernel);
  BindArguments(kernel->getArg(1), kernel->getArg(2));
  stmts_.Emit(source_.lowered->body);
  llvm::IRBuilderBase& b = function_.instructions();
  b.CreateRet(b.getInt32(INGOT_KERNEL_OK));
  INGOT_RETURN_IF_ERROR(status_.get());
  amx_products_.Finish();
  return allocations_.WorkspaceSize(ints_);
}

llvm::Function* CpuKernelEmitter::AddKernel() {
  llvm::IRBuilderBase& b = function_.instructions();
  auto* type = llvm::FunctionType::get(b.getInt32Ty(), {b.getPtrTy(), b.getPtrTy(), b.getPtrTy()}, false);
  llvm::Function* kernel =
      llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol_, function_.module());
  kernel->setDSOLocal(true);
  const char* names[] = {"context", "buffers", "ints"};
  for (llvm::Argument& argument : kernel->args()) {
    argument.setName(names[argument.getArgNo()]);
    argument.addAttr(llvm::Attribute::NoAlias);
    argument.addAttr(llvm::Attribute::ReadOnly);
  }
  return kernel;
}

void CpuKernelEmitter::BindArguments(llvm::Value* buffers, llvm::Value* ints) {
  llvm::IRBuilderBase& b = function_.instructions();
  for (size_t i = 0; i < ints_.size(); ++i) {
    llvm::Value* slot = b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), ints, i);
    exprs_.BindWord(*ints_[i], function_.LoadInvariant(b.getInt64Ty(), slot, ints_[i]->name + ".word"));
  }
  if (status_.failed()) return;
  BindBuffers(source_, status_, memory_, [&](size_t number, const std::string& name, int64_t alignment) {
    llvm::Value* slot = b.CreateConstInBoundsGEP1_64(b.getPtrTy(), buffers, number);
    llvm::LoadInst* pointer = function_.LoadInvariant(b.getPtrTy(), slot, name);
    function_.SetPointerAlignment(pointer, alignment);
    return pointer;
  });
}

void CpuKernelEmitter::EmitIndependentLoop(const ir::ForNode& loop) {
  if (loop.for_kind != ir::ForKind::kParallel) {
    return status_.Unsupported("loop \"" + loop.var->name + "\" was not lowered");
  }
  if (has_amx_products_) amx_products_.Forget();
  loops_.Emit(loop);
}

void CpuKernelEmitter::EmitDeviceLoop(const ir::ForNode& loop) {
  if (schedule::IsAmxProduct(loop)) {
    return has_amx_products_ ? amx_products_.Emit(loop) : stmts_.EmitSerialFor(loop);
  }
  status_.Unsupported("loop \"" + loop.var->name + "\" is annotated for another device");
}

std::optional<Storage> CpuKernelEmitter::Allocate(const ir::Buffer& buffer) {
  return allocations_.Allocate(buffer, loops_.in_task());
}

}  // namespace ingot::codegen
