// The stages of compile.h, top to bottom: LoadModel, OptimizeModule, CompileModule. What runs passes for them, verified
// and observed, comes first.
#include "compiler/driver/compile.h"

#include <xxhash.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>

#include "compiler/driver/read_model.h"
#include "compiler/driver/stand_in_weights.h"
#include "compiler/driver/tuned_schedules.h"
#include "compiler/importer/onnx.h"
#include "compiler/kernels/kernel_set.h"
#include "compiler/lower/bytecode.h"
#include "compiler/memory/passes.h"
#include "compiler/op/verifier.h"
#include "compiler/script/printer.h"
#include "compiler/transform/instruments.h"
#include "runtime/version.h"

namespace ingot::driver {

namespace {

// Tells the observer how long a stage took, when the stage is over.
class StageTimer {
 public:
  StageTimer(const char* stage, const CompileObserver& observer) : stage_(stage), observer_(observer) {}
  void Stop() const {
    if (!observer_.time) return;
    observer_.time(stage_, std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count());
  }

 private:
  const char* stage_;
  const CompileObserver& observer_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Runs passes as the options say, verified and observed.
class PassRun {
 public:
  PassRun(const CompileOptions& options, const CompileObserver& observer)
      : observe_([&observer](const transform::Pass& pass, const ir::IRModule& module, double seconds) -> Status {
          if (observer.time) observer.time(pass.name, seconds);
          return observer.after_pass ? observer.after_pass(pass.name, module) : Status();
        }) {
    context_.options = options.pass_options;
    context_.options.opt_level = options.opt_level;
    context_.options.target = options.target;
    context_.options.keep_prepare = options.keep_prepare;
    context_.log = observer.log;
    context_.detail = observer.detail;
    context_.instruments = options.instruments;
    context_.instruments.insert(context_.instruments.end(), {&verify_, &observe_});
  }
  PassRun(const PassRun&) = delete;
  PassRun& operator=(const PassRun&) = delete;

  Result<ir::IRModule> Run(ir::IRModule module, std::span<const transform::Pass> passes) {
    return transform::RunPasses(std::move(module), passes, context_);
  }
  const transform::RewriteLog& rewrites() const { return context_.rewrites; }
  const std::vector<transform::GraphChoice>& choices() const { return context_.choices; }

 private:
  transform::VerifyPasses verify_;
  transform::CallAfterPasses observe_;
  transform::PassContext context_;
};

// The cache that the options ask for, or null. What keeps it from being used is noted.
std::unique_ptr<kernels::KernelCache> OpenCache(const CompileOptions& options, const CompileObserver& observer) {
  if (!options.cache) return nullptr;
  Result<std::unique_ptr<kernels::KernelCache>> cache = kernels::KernelCache::Open(*options.cache);
  if (cache.ok()) return *std::move(cache);
  if (observer.log) observer.log("kernels are not cached: " + cache.status().message());
  return nullptr;
}

void FinishCache(kernels::KernelCache& cache, const CompileObserver& observer) {
  const Status problem = cache.directory().Finish();
  if (!problem.ok() && observer.log) observer.log("kernels are not cached: " + problem.message());
  if (observer.cached) observer.cached(cache.directory().figures());
}

// A hash of the module's text, in hexadecimal.
std::string SourceHash(const ir::IRModule& module) {
  script::ConstantStore constants;
  const std::string text = script::PrintModule(module, {}, &constants);
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  return digits;
}

// A JSON array of the strings in a function's attribute; nothing if it has none.
std::optional<std::string> JsonOf(const ir::Attrs& attrs, const char* name) {
  const ir::AttrValue* value = attrs.Find(name);
  const auto* list = value == nullptr ? nullptr : value->get<ir::AttrList>();
  if (list == nullptr) return std::nullopt;
  std::string text = "[";
  for (const ir::AttrValue& element : *list) {
    const auto* string = element.get<std::string>();
    if (string == nullptr) return std::nullopt;
    text += text.size() > 1 ? ", \"" : "\"";
    for (const char c : *string) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned char>(c));
      const bool is_special = c == '"' || c == '\\' || (c >= 0 && c < 0x20);
      text += is_special ? std::string(escaped) : std::string(1, c);
    }
    text += '"';
  }
  return text + "]";
}

// Adds what the executable says of its making, and which strings its numbers stand for.
void AddMetadata(vm::Program& program, const ir::IRModule& loaded, std::string source_hash,
                 const CompileOptions& options) {
  program.metadata["producer"] = std::string("ingot ") + kVersion;
  program.metadata["source_hash"] = std::move(source_hash);
  program.metadata["opt_level"] = std::to_string(options.opt_level);
  program.metadata["target"] = options.target_text;
  if (const ir::Function main = loaded.FindFunction("main"); main != nullptr) {
    for (const char* name : {importer::kStringsAttr, importer::kStringTensorsAttr}) {
      if (std::optional<std::string> json = JsonOf(main->attrs, name)) program.metadata[name] = *std::move(json);
    }
  }
  const transform::RewritePermissions& math = options.pass_options.rewrites;
  if (math.strict_math) program.metadata["math"] = "strict";
  for (const std::string& group : math.fast_math) {
    std::string& groups = program.metadata["math"];
    groups += (groups.empty() ? "fast: " : ", ") + group;
  }
}

}  // namespace

Result<ir::IRModule> LoadModel(const std::string& path, const CompileOptions& options,
                               const CompileObserver& observer) {
  const StageTimer timer("import", observer);
  INGOT_ASSIGN_OR_RETURN(ir::IRModule module, ReadModel(path, options));
  INGOT_RETURN_IF_ERROR(op::VerifyModule(module).WithContext(path));
  timer.Stop();
  if (observer.after_pass) INGOT_RETURN_IF_ERROR(observer.after_pass("import", module));
  return module;
}

Result<ir::IRModule> PrepareModule(ir::IRModule module) {
  INGOT_ASSIGN_OR_RETURN(module, InferTypes(std::move(module)));
  INGOT_RETURN_IF_ERROR(op::VerifyModule(module));
  return module;
}

Result<ir::IRModule> OptimizeModule(ir::IRModule module, const CompileOptions& options,
                                    const CompileObserver& observer) {
  const bool is_tuned = options.tuned != nullptr || !options.tuning_db_path.empty();
  const CompileOptions used = is_tuned ? WithKernelsApart(options) : options;
  PassRun run(used, observer);
  INGOT_ASSIGN_OR_RETURN(const std::vector<transform::Pass> default_passes, transform::FindPipeline("default"));
  INGOT_ASSIGN_OR_RETURN(module, run.Run(std::move(module), options.passes ? *options.passes : default_passes));
  if (observer.rewritten) observer.rewritten(run.rewrites());
  if (observer.chosen) observer.chosen(run.choices());
  return module;
}

std::vector<transform::Pass> AllPasses() {
  const auto graph = transform::GraphPasses();
  const auto memory = memory::MemoryPasses();
  std::vector<transform::Pass> passes(graph.begin(), graph.end());
  passes.insert(passes.end(), memory.begin(), memory.end());
  return passes;
}

Result<vm::Program> CompileModule(const ir::IRModule& loaded, const CompileOptions& options,
                                  const CompileObserver& observer) {
  std::string source_hash = SourceHash(loaded);
  StandInWeights stand_ins;
  CompileObserver shown = observer;
  if (options.keep_prepare && observer.after_pass) {
    shown.after_pass = [&](std::string_view pass, const ir::IRModule& module) {
      return observer.after_pass(pass, stand_ins.Reveal(module));
    };
  }
  // Stages 2 and 3: graph passes, memory plan.
  ir::IRModule module = options.keep_prepare ? stand_ins.Hide(loaded) : loaded;
  TunedSchedules tuned;
  INGOT_RETURN_IF_ERROR(tuned.Open(options, observer));
  CompileOptions chosen = options;
  INGOT_ASSIGN_OR_RETURN(chosen.pass_options.graph_choices, tuned.ChooseGraph(module, options));
  INGOT_ASSIGN_OR_RETURN(module, OptimizeModule(std::move(module), chosen, shown));
  INGOT_RETURN_IF_ERROR(tuned.Prepare(module, options));
  INGOT_ASSIGN_OR_RETURN(module, PassRun(options, shown).Run(std::move(module), memory::MemoryPasses()));

  // Stages 4 to 7, for each record of the target: descriptors, schedules, tensor passes, code generation.
  const StageTimer kernels_timer("kernels", observer);
  const std::unique_ptr<kernels::KernelCache> cache = OpenCache(options, observer);
  kernels::KernelOptions kernel_options{options.opt_level, options.threads, observer.progress, cache.get()};
  kernel_options.chosen = tuned.lookup();
  kernel_options.ptxas = options.ptxas;
  const TargetFamily& family = options.kernels_for ? *options.kernels_for : options.target;
  INGOT_ASSIGN_OR_RETURN(kernels::KernelSet kernels, kernels::CompileKernelSet(module, family, kernel_options));
  tuned.Report(options, observer);
  if (cache != nullptr) FinishCache(*cache, observer);
  kernels_timer.Stop();

  // Stage 8: bytecode. Stage 9 is the caller's, who may check the program and add to it before.
  const StageTimer bytecode_timer("bytecode", observer);
  INGOT_ASSIGN_OR_RETURN(vm::Program program, lower::LowerToBytecode(module, std::move(kernels.kernels)));
  stand_ins.Restore(program);
  program.images = std::move(kernels.images);
  AddMetadata(program, loaded, std::move(source_hash), options);
  bytecode_timer.Stop();
  return program;
}

}  // namespace ingot::driver
