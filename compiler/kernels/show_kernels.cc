// Each form is a loop over the tensor functions of a module.
#include "compiler/kernels/show_kernels.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/codegen/ptx.h"
#include "compiler/schedule/default_schedule.h"
#include "runtime/suggest.h"

namespace ingot::kernels {

Result<ir::IRModule> ScheduleModule(const ir::IRModule& module, const Target& target) {
  ir::IRModule scheduled_module = module;
  for (const ir::IRModule::Entry& entry : module.functions()) {
    const ir::PrimFunc prim = ir::AsRef<ir::PrimFuncNode>(entry.function);
    if (!prim) continue;
    INGOT_ASSIGN_OR_RETURN(schedule::ScheduledFunction scheduled, schedule::ApplyDefaultSchedule(prim, target));
    scheduled_module.Set(entry.var, scheduled.function);
  }
  return scheduled_module;
}

Result<ir::IRModule> SelectKernels(const ir::IRModule& module, std::span<const std::string> names) {
  std::vector<std::string_view> known;
  for (const ir::IRModule::Entry& entry : module.functions()) {
    if (ir::As<ir::PrimFuncNode>(entry.function) != nullptr) known.push_back(entry.var->name);
  }
  for (const std::string& name : names) {
    if (module.FindPrimFunc(name) != nullptr) continue;
    return Status(StatusCode::kNotFound, "the module has no kernel \"" + name + "\"" + DidYouMean(name, known));
  }
  ir::IRModule selected;
  for (const ir::IRModule::Entry& entry : module.functions()) {
    const bool is_named = std::find(names.begin(), names.end(), entry.var->name) != names.end();
    if (is_named) selected.Set(entry.var, entry.function);
  }
  return selected;
}

Result<std::string> EmitSchedules(const ir::IRModule& module, const Target& target) {
  std::string text;
  for (const auto& [name, function] : PrimFuncsOf(module)) {
    INGOT_ASSIGN_OR_RETURN(schedule::ScheduledFunction scheduled, schedule::ApplyDefaultSchedule(function, target));
    text += "# " + name + " for " + target.name + ":";
    for (const std::string& rule : scheduled.rules) text += " " + rule;
    text += (scheduled.rules.empty() ? " as it is\n" : "\n") + scheduled.trace.ToString();
  }
  return text;
}

Result<std::string> EmitAssembly(const ir::IRModule& module, const Target& target, AssemblyKind kind,
                                 const KernelOptions& options) {
  const std::vector<NamedPrimFunc> functions = PrimFuncsOf(module);
  INGOT_ASSIGN_OR_RETURN(std::vector<codegen::KernelSource> sources, MakeSources(functions, target, options));
  codegen::CodegenOptions codegen_options = CodegenOptionsOf(options);
  codegen_options.link = false;
  codegen_options.emit_llvm = kind == AssemblyKind::kLlvm;
  codegen_options.emit_asm = kind == AssemblyKind::kAssembly;
  if (target.kind == Target::Kind::kCuda) {
    INGOT_ASSIGN_OR_RETURN(codegen::PtxImage ptx, codegen::CompilePtx(sources, target, codegen_options));
    return kind == AssemblyKind::kLlvm ? ptx.llvm : ptx.ptx;
  }
  INGOT_ASSIGN_OR_RETURN(codegen::KernelImage image, codegen::CompileKernels(sources, target, codegen_options));
  std::string text;
  for (const codegen::CompiledKernel& kernel : image.kernels)
    text += kind == AssemblyKind::kLlvm ? kernel.llvm : kernel.assembly;
  return text;
}

}  // namespace ingot::kernels
