// The drive through code generation: each kernel becomes an object on a thread of its own (emit, expand, verify,
// optimise, machine code); then all objects are linked into one image, and the image is checked. Limits on stack and
// names are here.
#include "compiler/codegen/codegen.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "compiler/codegen/cpu_kernel_emitter.h"
#include "compiler/codegen/expand_operations.h"
#include "compiler/codegen/integer_products.h"
#include "compiler/codegen/link_image.h"
#include "compiler/codegen/machine.h"
#include "compiler/codegen/memory_routines.h"
#include "compiler/codegen/optimizer.h"
#include "compiler/codegen/rename_kernel.h"
#include "compiler/codegen/run_on_threads.h"
#include "compiler/codegen/widen_halves.h"
#include "compiler/codegen/widen_live_values.h"

namespace ingot::codegen {
namespace {

// The stack that the ABI allows a kernel (64 KiB), less what the runtime's own frames between a kernel and its task
// take.
constexpr int64_t kMaxStackBytes = (64 << 10) - (4 << 10);

Status Unsupported(const std::string& kernel, const std::string& message) {
  return Status(StatusCode::kUnsupportedModel, "kernel \"" + kernel + "\": " + message);
}

Status CheckSymbolName(const std::string& name, std::set<std::string>* seen) {
  const auto is_symbol_character = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '$';
  };
  const bool valid = !name.empty() && std::all_of(name.begin(), name.end(), is_symbol_character) &&
                     !(name[0] >= '0' && name[0] <= '9') && !IsMemoryRoutine(name);
  if (!valid) return Status(StatusCode::kInvalidArgument, "\"" + name + "\" cannot name a kernel");
  if (!seen->insert(name).second) return Status(StatusCode::kInvalidArgument, "two kernels are named \"" + name + "\"");
  return Status();
}

std::string PrintModule(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

// The number of steps at the end of postfix code that compute one operand.
size_t LengthOfLastOperand(std::span<const DimStep> steps) {
  size_t length = 0;
  for (size_t missing = 1; missing > 0; ++length) {
    const DimOp op = steps[steps.size() - 1 - length].op;
    missing += op == DimOp::kConst || op == DimOp::kSlot ? 0 : op == DimOp::kSelect ? 3 : 2;
    --missing;
  }
  return length;
}

// Whether the code is the term, or the greater of others of which one is. CPUs of equal vectors get equal schedules: the
// workspaces of four variants are two.
bool IsTermOfMax(std::span<const DimStep> code, std::span<const DimStep> term) {
  if (std::ranges::equal(code, term)) return true;
  if (code.back().op != DimOp::kMax) return false;
  const std::span<const DimStep> operands = code.first(code.size() - 1);
  const size_t length = LengthOfLastOperand(operands);
  return IsTermOfMax(operands.first(operands.size() - length), term) || IsTermOfMax(operands.last(length), term);
}

}  // namespace

Result<KernelObject> CompileKernelObject(const KernelSource& source, const Target& target,
                                         const CodegenOptions& options) {
  // Texts name the kernel; objects are the same for equal kernels of any name.
  const std::string symbol = options.link ? kKernelSymbol : source.name;
  INGOT_ASSIGN_OR_RETURN(const std::shared_ptr<llvm::TargetMachine> machine,
                         CreateTargetMachine(target, options.opt_level));
  llvm::LLVMContext context;
  llvm::Module module(symbol, context);
  PrepareModule(module, *machine);
  INGOT_ASSIGN_OR_RETURN(DimCode workspace, CpuKernelEmitter(module, source, symbol, target).Emit());
  ExpandOperations(module, target);
  JoinProducts(module, target);
  std::string complaint;
  llvm::raw_string_ostream complaint_stream(complaint);
  INGOT_CHECK(!llvm::verifyModule(module, &complaint_stream), (source.name + ": " + complaint).c_str());
  OptimizeKernel(module, *machine, options.opt_level);
  ExpandProducts(module, target);
  WidenHalves(module, target);
  WidenLiveValues(module);

  KernelObject result;
  result.workspace = std::move(workspace);
  if (options.emit_llvm) result.llvm = PrintModule(module);
  if (options.emit_asm) result.assembly = EmitAssembly(module, *machine);
  if (!options.link) return result;
  Result<MachineCode> code = EmitObject(module, *machine);
  if (!code.ok()) return std::move(code).status().WithContext("kernel \"" + source.name + "\"");
  for (const std::string& undefined : code->undefined) {
    if (!IsMemoryRoutine(undefined)) {
      return Unsupported(source.name, "it needs the undefined symbol \"" + undefined + "\"");
    }
    result.needs_memory_routines = true;
  }
  int64_t deepest_task = 0;
  for (const auto& [function, bytes] : code->frame_bytes) {
    if (function == symbol) {
      result.stack_bytes += bytes;
    } else {
      deepest_task = std::max(deepest_task, bytes);
    }
  }
  result.stack_bytes += deepest_task;
  if (result.stack_bytes > kMaxStackBytes) {
    return Unsupported(source.name, "it takes " + std::to_string(result.stack_bytes) + " bytes of stack; at most " +
                                        std::to_string(kMaxStackBytes) + " are allowed");
  }
  result.elf = std::move(code->object);
  return result;
}

Result<std::string> CompileMemoryRoutines(const Target& target) {
  INGOT_ASSIGN_OR_RETURN(const std::shared_ptr<llvm::TargetMachine> machine, CreateTargetMachine(target, 2));
  llvm::LLVMContext context;
  llvm::Module module("memory", context);
  PrepareModule(module, *machine);
  AddMemoryRoutines(module);
  OptimizeModule(module, *machine, 1);
  INGOT_ASSIGN_OR_RETURN(MachineCode code, EmitObject(module, *machine));
  return std::move(code.object);
}

Status CheckKernelNames(std::span<const std::string> names) {
  std::set<std::string> seen;
  for (const std::string& name : names) INGOT_RETURN_IF_ERROR(CheckSymbolName(name, &seen));
  return Status();
}

Result<KernelImage> LinkKernels(std::span<const std::string> names, std::span<const KernelObject* const> objects,
                                const std::string& memory_routines) {
  INGOT_CHECK(names.size() == objects.size());
  std::vector<std::string> renamed;
  for (size_t i = 0; i < names.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(std::string object, RenameKernel(objects[i]->elf, names[i]));
    renamed.push_back(std::move(object));
  }
  std::vector<const std::string*> inputs;
  for (const std::string& object : renamed) inputs.push_back(&object);
  if (!memory_routines.empty()) inputs.push_back(&memory_routines);
  KernelImage image;
  INGOT_ASSIGN_OR_RETURN(image.elf, LinkImage(inputs));
  INGOT_ASSIGN_OR_RETURN(const std::vector<uint64_t> offsets, CheckImage(image.elf, names));
  for (size_t i = 0; i < names.size(); ++i) {
    image.kernels.push_back(
        {names[i], offsets[i], objects[i]->workspace, objects[i]->stack_bytes, objects[i]->llvm, objects[i]->assembly});
  }
  return image;
}

Result<KernelImage> CompileKernels(std::span<const KernelSource> sources, const Target& target,
                                   const CodegenOptions& options) {
  std::vector<std::string> names;
  for (const KernelSource& source : sources) names.push_back(source.name);
  INGOT_RETURN_IF_ERROR(CheckKernelNames(names));

  // Each kernel has a context, a module and an object of its own, so threads share nothing but the counter.
  std::vector<std::optional<Result<KernelObject>>> compiled(sources.size());
  std::atomic<size_t> next{0};
  RunOnThreads(std::min<size_t>(std::max(options.num_threads, 1), sources.size()), [&] {
    for (size_t i = next++; i < sources.size(); i = next++)
      compiled[i].emplace(CompileKernelObject(sources[i], target, options));
  });

  std::vector<const KernelObject*> objects;
  bool needs_memory_routines = false;
  for (std::optional<Result<KernelObject>>& object : compiled) {
    if (!object->ok()) return std::move(*object).status();
    objects.push_back(&**object);
    needs_memory_routines |= objects.back()->needs_memory_routines;
  }
  if (!options.link || sources.empty()) {
    KernelImage texts;
    for (size_t i = 0; i < sources.size(); ++i) {
      texts.kernels.push_back({names[i], 0, objects[i]->workspace, 0, objects[i]->llvm, objects[i]->assembly});
    }
    return texts;
  }
  std::string routines;
  if (needs_memory_routines) {
    INGOT_ASSIGN_OR_RETURN(routines, CompileMemoryRoutines(target));
  }
  return LinkKernels(names, objects, routines);
}

void AddVariant(const CompiledKernel& compiled, const Target& target, uint32_t image, vm::Kernel* kernel) {
  vm::KernelVariant variant;
  variant.image = image;
  variant.offset = compiled.offset;
  variant.entry = compiled.name;
  variant.required_features = target.required_features;
  const bool is_first = kernel->variants.empty();
  kernel->variants.insert(kernel->variants.begin(), std::move(variant));
  if (is_first) {
    kernel->workspace = compiled.workspace;
  } else if (!IsTermOfMax(kernel->workspace.steps(), compiled.workspace.steps())) {
    kernel->workspace = DimCode::Binary(DimOp::kMax, kernel->workspace, compiled.workspace);
  }
}

void OnOutOfMemory(void (*end_process)()) {
  std::set_new_handler(end_process);
  llvm::install_bad_alloc_error_handler([](void* end, const char*, bool) { (*reinterpret_cast<void (*)()>(end))(); },
                                        reinterpret_cast<void*>(end_process));
}

}  // namespace ingot::codegen
