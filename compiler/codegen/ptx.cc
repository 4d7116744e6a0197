// All kernels are functions of one LLVM module, since PTX text has one header. LLVM's back end prints it.
#include "compiler/codegen/ptx.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <deque>

#include "compiler/codegen/cuda_kernel_emitter.h"
#include "compiler/codegen/cuda_launches.h"
#include "compiler/codegen/dim_code_lowering.h"
#include "compiler/codegen/expand_operations.h"
#include "compiler/codegen/integer_products.h"
#include "compiler/codegen/machine.h"
#include "compiler/codegen/optimizer.h"
#include "runtime/check.h"

namespace ingot::codegen {
namespace {

constexpr uint64_t kVectorBytes = 16;  // of the largest access

// The name of the kernel's launch of this number in PTX, whose identifiers have no '.'.
std::string EntryName(const std::string& kernel, size_t number) {
  std::string name;
  for (const char c : kernel) name += c == '.' ? '$' : c;
  return number == 0 ? name : name + "$" + std::to_string(number);
}

Result<std::array<DimCode, 3>> SizesOf(const CudaLaunch& launch, size_t first, const std::vector<ir::PrimVar>& ints) {
  std::array<DimCode, 3> sizes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(sizes[i], LowerToDimCode(launch.extents[first + i], ints));
  }
  return sizes;
}

// `entries` keeps the names, which emitters refer to.
Result<PtxKernel> EmitKernel(const KernelSource& source, const Target& target, llvm::Module& module,
                             std::deque<std::string>& entries) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<CudaLaunch> launches, LaunchesOf(source.lowered));
  const std::vector<ir::PrimVar> ints = KernelIntArguments(source.lowered);
  PtxKernel kernel;
  kernel.name = source.name;
  for (const CudaLaunch& launch : launches) {
    entries.push_back(EntryName(source.name, kernel.launches.size()));
    if (module.getFunction(entries.back()) != nullptr) {
      return Status(StatusCode::kInvalidArgument, "two entries are named \"" + entries.back() + "\"");
    }
    PtxLaunch made{entries.back(), {}, {}, 0, {}, launch.number_in_round};
    if (launch.round) {
      INGOT_ASSIGN_OR_RETURN(made.rounds, LowerToDimCode(launch.rounds, ints));
    }
    INGOT_ASSIGN_OR_RETURN(made.grid, SizesOf(launch, 0, ints));
    INGOT_ASSIGN_OR_RETURN(made.block, SizesOf(launch, 3, ints));
    // Every launch repeats all allocations, so each has the same workspace.
    CudaKernelEmitter emitter(module, source, launch, entries.back(), target);
    INGOT_ASSIGN_OR_RETURN(kernel.workspace, emitter.Emit());
    made.shared_bytes = emitter.shared_bytes();
    kernel.launches.push_back(std::move(made));
  }
  return kernel;
}

// LLVM makes one access to 16 aligned bytes of a load of <16 x i8>, whatever alignment the load has: those of less become
// loads of a byte each.
void SplitByteLoads(llvm::Module& module) {
  std::vector<llvm::LoadInst*> loads;
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
      if (load == nullptr || load->getAlign().value() >= kVectorBytes) continue;
      const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(load->getType());
      if (type != nullptr && type->getElementType()->isIntegerTy(8) && type->getNumElements() == kVectorBytes) {
        loads.push_back(load);
      }
    }
  }
  for (llvm::LoadInst* load : loads) {
    llvm::IRBuilder<> b(load);
    llvm::Value* bytes = llvm::PoisonValue::get(load->getType());
    for (uint64_t i = 0; i < kVectorBytes; ++i) {
      llvm::Value* place = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), load->getPointerOperand(), i);
      llvm::LoadInst* byte = b.CreateAlignedLoad(b.getInt8Ty(), place, llvm::Align(1));
      byte->copyMetadata(*load, {llvm::LLVMContext::MD_alias_scope, llvm::LLVMContext::MD_noalias});
      bytes = b.CreateInsertElement(bytes, byte, i);
    }
    load->replaceAllUsesWith(bytes);
    load->eraseFromParent();
  }
}

}  // namespace

Result<PtxImage> CompilePtx(std::span<const KernelSource> sources, const Target& target,
                            const CodegenOptions& options) {
  std::vector<std::string> names;
  for (const KernelSource& source : sources) names.push_back(source.name);
  INGOT_RETURN_IF_ERROR(CheckKernelNames(names));
  INGOT_ASSIGN_OR_RETURN(const std::shared_ptr<llvm::TargetMachine> machine,
                         CreateTargetMachine(target, options.opt_level));
  llvm::LLVMContext context;
  llvm::Module module("kernels", context);
  PrepareModule(module, *machine);
  PtxImage image;
  std::deque<std::string> entries;
  for (const KernelSource& source : sources) {
    Result<PtxKernel> kernel = EmitKernel(source, target, module, entries);
    if (!kernel.ok()) return std::move(kernel).status().WithContext("kernel \"" + source.name + "\"");
    image.kernels.push_back(*std::move(kernel));
  }
  ExpandOperations(module, target);
  JoinProducts(module, target);
  std::string complaint;
  llvm::raw_string_ostream complaint_stream(complaint);
  INGOT_CHECK(!llvm::verifyModule(module, &complaint_stream), complaint.c_str());
  OptimizeModule(module, *machine, options.opt_level);
  ExpandProducts(module, target);
  SplitByteLoads(module);
  if (options.emit_llvm) {
    llvm::raw_string_ostream text(image.llvm);
    module.print(text, nullptr);
  }
  image.ptx = EmitLastAssembly(module, *machine);
  // A call of a library that LLVM thought of; nothing would define it.
  const size_t undefined = image.ptx.find(".extern .func");
  if (undefined == std::string::npos) return image;
  return Status(StatusCode::kUnsupportedModel,
                "the kernels need what nothing defines: " +
                    image.ptx.substr(undefined, image.ptx.find('\n', undefined) - undefined));
}

}  // namespace ingot::codegen
