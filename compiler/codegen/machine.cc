// LLVM's target registry and its legacy pass manager, which emits code. Frame sizes come back as diagnostics, undefined
// symbols from reading the finished object.
#include "compiler/codegen/machine.h"

#include <llvm/IR/DiagnosticHandler.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <utility>

#include "runtime/check.h"

namespace ingot::codegen {
namespace {

Status UnsupportedMachine(std::string message) { return Status(StatusCode::kUnsupportedModel, std::move(message)); }

// Collects the sizes that "warn-stack-size"="0" makes LLVM report, and the first error.
class Diagnostics : public llvm::DiagnosticHandler {
 public:
  std::map<std::string, int64_t>* frame_bytes;
  std::string* error;

  Diagnostics(std::map<std::string, int64_t>* frames, std::string* message) : frame_bytes(frames), error(message) {}

  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getKind() == llvm::DK_StackSize) {
      const auto& size = static_cast<const llvm::DiagnosticInfoStackSize&>(info);
      (*frame_bytes)[size.getFunction().getName().str()] = static_cast<int64_t>(size.getResourceSize());
    } else if (info.getSeverity() == llvm::DS_Error && error->empty()) {
      llvm::raw_string_ostream stream(*error);
      llvm::DiagnosticPrinterRawOStream printer(stream);
      info.print(printer);
    }
    return true;
  }
};

// LLVM's targets are tables of the process; the first call fills them.
void InitializeTargets() {
  static const bool initialized = [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
    return true;
  }();
  (void)initialized;
}

}  // namespace

Result<std::shared_ptr<llvm::TargetMachine>> CreateTargetMachine(const Target& target, int opt_level) {
  InitializeTargets();
  std::string error;
  const llvm::Target* llvm_target = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (llvm_target == nullptr) return UnsupportedMachine("target \"" + target.name + "\": " + error);
  std::string features;
  for (const std::string& feature : target.llvm_features) features += (features.empty() ? "" : ",") + feature;
  llvm::TargetOptions options;
  options.FunctionSections = true;
  options.DataSections = true;
  options.TrapUnreachable = false;
  // The features of a CPU decide which instructions are used; "generic" tunes for no particular CPU and does not split
  // wide vectors.
  std::shared_ptr<llvm::TargetMachine> machine(llvm_target->createTargetMachine(
      target.triple, target.kind == Target::Kind::kCuda ? target.name : "generic", features, options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small,
      opt_level == 0 ? llvm::CodeGenOptLevel::None
                     : (opt_level == 1 ? llvm::CodeGenOptLevel::Less : llvm::CodeGenOptLevel::Aggressive)));
  if (machine == nullptr) return UnsupportedMachine("LLVM makes no code for target \"" + target.name + "\"");
  return machine;
}

void PrepareModule(llvm::Module& module, const llvm::TargetMachine& machine) {
  module.setTargetTriple(machine.getTargetTriple().str());
  module.setDataLayout(machine.createDataLayout());
  module.setPICLevel(llvm::PICLevel::BigPIC);
}

Result<MachineCode> EmitObject(llvm::Module& module, llvm::TargetMachine& machine) {
  MachineCode code;
  std::string error;
  module.getContext().setDiagnosticHandler(std::make_unique<Diagnostics>(&code.frame_bytes, &error));
  llvm::SmallString<0> bytes;
  {
    llvm::raw_svector_ostream stream(bytes);
    llvm::legacy::PassManager passes;
    const bool unsupported =
        machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile, /*DisableVerify=*/true);
    INGOT_CHECK(!unsupported, "LLVM's target writes no object files");
    passes.run(module);
  }
  module.getContext().setDiagnosticHandler(nullptr);
  if (!error.empty()) return UnsupportedMachine("LLVM: " + error);
  code.object.assign(bytes.begin(), bytes.end());

  auto object = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(code.object, "kernel"));
  if (!object) return UnsupportedMachine("LLVM's object file: " + llvm::toString(object.takeError()));
  for (const llvm::object::SymbolRef& symbol : (*object)->symbols()) {
    llvm::Expected<uint32_t> flags = symbol.getFlags();
    llvm::Expected<llvm::StringRef> name = symbol.getName();
    if (!flags || !name) return UnsupportedMachine("LLVM's object file has a malformed symbol table");
    if ((*flags & llvm::object::SymbolRef::SF_Undefined) != 0 && !name->empty()) code.undefined.push_back(name->str());
  }
  return code;
}

std::string EmitAssembly(const llvm::Module& module, llvm::TargetMachine& machine) {
  return EmitLastAssembly(*llvm::CloneModule(module), machine);
}

std::string EmitLastAssembly(llvm::Module& module, llvm::TargetMachine& machine) {
  std::map<std::string, int64_t> frames;
  std::string error;
  module.getContext().setDiagnosticHandler(std::make_unique<Diagnostics>(&frames, &error));
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  const bool unsupported =
      machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile, /*DisableVerify=*/true);
  INGOT_CHECK(!unsupported, "LLVM's target writes no assembly");
  passes.run(module);
  module.getContext().setDiagnosticHandler(nullptr);
  return std::string(text);
}

}  // namespace ingot::codegen
