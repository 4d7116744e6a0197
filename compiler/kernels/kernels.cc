// Runs the steps of a kernel (describe, schedule, tensor passes, code generation) for all PrimFuncs of a module and all
// variants of a target family. Up to code generation, PrimFuncs are independent of each other and spread over threads.
#include "compiler/kernels/kernels.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "compiler/schedule/default_schedule.h"
#include "compiler/transform/tensor/lowered.h"
#include "runtime/suggest.h"

namespace ingot::kernels {

namespace {

struct NamedPrimFunc {
  std::string name;
  ir::PrimFunc function;
};

std::vector<NamedPrimFunc> PrimFuncsOf(const ir::IRModule& module) {
  std::vector<NamedPrimFunc> result;
  for (const ir::IRModule::Entry& entry : module.functions()) {
    if (ir::PrimFunc prim = ir::AsRef<ir::PrimFuncNode>(entry.function))
      result.push_back({entry.var->name, std::move(prim)});
  }
  return result;
}

// Runs body(i) for every i on up to num_threads threads. If several fail, the failure of the lowest i is returned.
Status ForEach(size_t count, int num_threads, const std::function<Status(size_t)>& body) {
  std::vector<Status> statuses(count);
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < count; i = next++) statuses[i] = body(i);
  };
  std::vector<std::thread> threads;
  for (int t = 1; t < num_threads && static_cast<size_t>(t) < count; ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  for (Status& status : statuses) INGOT_RETURN_IF_ERROR(std::move(status));
  return Status();
}

// The kernels of one variant, ready for code generation.
Result<std::vector<codegen::KernelSource>> MakeSources(const std::vector<NamedPrimFunc>& functions,
                                                       const Target& target, const KernelOptions& options) {
  std::vector<codegen::KernelSource> sources(functions.size());
  INGOT_RETURN_IF_ERROR(ForEach(functions.size(), options.num_threads, [&](size_t i) -> Status {
    const auto& [name, function] = functions[i];
    auto run = [&]() -> Status {
      INGOT_ASSIGN_OR_RETURN(codegen::KernelDescription description, codegen::DescribeKernel(name, function));
      INGOT_ASSIGN_OR_RETURN(schedule::ScheduledFunction scheduled, schedule::ApplyDefaultSchedule(function, target));
      INGOT_ASSIGN_OR_RETURN(ir::PrimFunc lowered, transform::LowerPrimFunc(scheduled.function, target));
      sources[i] = {name, std::move(lowered), std::move(description)};
      return Status();
    };
    return run().WithContext("prim function \"" + name + "\", target " + target.name);
  }));
  return sources;
}

codegen::CodegenOptions CodegenOptionsOf(const KernelOptions& options) {
  codegen::CodegenOptions result;
  result.opt_level = options.opt_level == 0 ? 0 : 3;
  result.num_threads = options.num_threads;
  return result;
}

}  // namespace

Result<KernelSet> CompileKernelSet(const ir::IRModule& module, const TargetFamily& family,
                                   const KernelOptions& options) {
  if (family.kind != Target::Kind::kCpu) {
    return Status(StatusCode::kInvalidArgument, "kernels can be compiled for CPU targets alone so far");
  }
  const std::vector<NamedPrimFunc> functions = PrimFuncsOf(module);
  KernelSet result;
  if (functions.empty()) return result;
  for (size_t v = 0; v < family.variants.size(); ++v) {
    const Target& target = family.variants[v];
    INGOT_ASSIGN_OR_RETURN(std::vector<codegen::KernelSource> sources, MakeSources(functions, target, options));
    INGOT_ASSIGN_OR_RETURN(codegen::KernelImage image,
                           codegen::CompileKernels(sources, target, CodegenOptionsOf(options)));
    if (result.kernels.empty()) {
      for (const codegen::KernelSource& source : sources) result.kernels.push_back(source.description);
    }
    for (size_t i = 0; i < result.kernels.size(); ++i) {
      codegen::AddVariant(image.kernels[i], target, static_cast<uint32_t>(v), &result.kernels[i].kernel);
    }
    vm::KernelImage stored;
    stored.name = target.name;
    stored.arch = target.triple.substr(0, target.triple.find('-'));
    stored.features = target.required_features;
    stored.bytes = SharedBytes::Own(std::move(image.elf));
    result.images.push_back(std::move(stored));
    if (options.progress) {
      options.progress("kernels", static_cast<int64_t>(v + 1), static_cast<int64_t>(family.variants.size()));
    }
  }
  return result;
}

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
  INGOT_ASSIGN_OR_RETURN(codegen::KernelImage image, codegen::CompileKernels(sources, target, codegen_options));
  std::string text;
  for (const codegen::CompiledKernel& kernel : image.kernels)
    text += kind == AssemblyKind::kLlvm ? kernel.llvm : kernel.assembly;
  return text;
}

}  // namespace ingot::kernels
