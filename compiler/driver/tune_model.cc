// The whole model is compiled as any, with the set and without.
#include "compiler/driver/tune_model.h"

#include <algorithm>
#include <utility>

#include "compiler/driver/compile.h"
#include "compiler/driver/tuned_schedules.h"
#include "compiler/kernels/kernel_cache.h"
#include "vm/program/program_codec.h"

namespace ingot::driver {
namespace {

Result<tune::MeasuredProgram> Executable(const vm::Program& program) {
  INGOT_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, vm::EncodeProgram(program));
  return tune::MeasuredProgram{SharedBytes::Own(std::move(bytes)), "main"};
}

Status Refuse(const std::string& why) { return Status(StatusCode::kUnsupportedModel, why); }

// Floats at random; integers are zeros, since they may be places that are read.
Result<std::vector<tune::MeasuredInput>> InputsOf(const vm::Signature& signature, const tune::Sizes& sizes) {
  std::vector<int64_t> symbols;
  for (const vm::Symbol& symbol : signature.symbols) symbols.push_back(sizes.values.at(symbol.name));
  std::vector<tune::MeasuredInput> inputs;
  for (const auto& [name, type] : signature.params) {
    if (!type.is_tensor()) return Refuse("the input \"" + name + "\" is no tensor");
    tune::MeasuredInput input;
    for (const vm::Dim& dim : type.dims) {
      if (!dim) return Refuse("the input \"" + name + "\" has a dimension that nothing tells");
      INGOT_ASSIGN_OR_RETURN(const int64_t extent, dim->Evaluate(symbols));
      input.dims.push_back(extent);
    }
    input.spec = type.dtype.is_floating() ? "rand" : "zeros";
    inputs.push_back(std::move(input));
  }
  return inputs;
}

// One case for each of the sizes; of a model without symbols a single one.
Result<std::vector<tune::MeasuredCase>> CasesOf(const vm::Program& program, const std::vector<tune::Sizes>& given) {
  const auto main = std::ranges::find(program.functions, std::string("main"), &vm::Function::name);
  if (main == program.functions.end()) return Refuse("the model has no function \"main\"");
  const vm::Signature& signature = main->signature;
  std::vector<tune::Sizes> all(1);
  if (!signature.symbols.empty()) all = given;
  if (all.empty()) return Refuse("its inputs have dimensions that are symbols (--sizes, or --dim to fix them)");
  std::vector<tune::MeasuredCase> cases;
  for (tune::Sizes& sizes : all) {
    for (const vm::Symbol& symbol : signature.symbols) {
      if (!sizes.values.contains(symbol.name)) return Refuse("there is no size for its symbol " + symbol.name);
    }
    INGOT_ASSIGN_OR_RETURN(std::vector<tune::MeasuredInput> inputs, InputsOf(signature, sizes));
    cases.push_back({std::move(sizes), std::move(inputs)});
  }
  return cases;
}

}  // namespace

Result<std::vector<tune::Task>> TasksOfModel(const ir::IRModule& loaded, const CompileOptions& options,
                                             const std::vector<tune::Sizes>& sizes) {
  if (options.target.variants.size() != 1 || !options.target.byte_product_variants.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "--target " + options.target_text + " names several CPUs: one is tuned at a time");
  }
  INGOT_ASSIGN_OR_RETURN(const ir::IRModule module, OptimizeModule(loaded, WithKernelsApart(options), {}));
  return tune::TasksOf(module, options.target.variants.front(), sizes);
}

Result<ModelTuning> TuneModel(const ir::IRModule& loaded, const std::vector<tune::Task>& tasks,
                              const CompileOptions& options, const tune::TuneOptions& tuning, tune::RunnerPool& pool,
                              tune::DatabaseFile& database, const std::atomic<bool>& stop,
                              const std::function<void(const tune::TuneProgress&)>& progress) {
  ModelTuning result;
  INGOT_ASSIGN_OR_RETURN(result.results, tune::Tune(tasks, tuning, pool, database, stop, progress));
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (result.results[i].best != nullptr) result.set[tasks[i].key] = result.results[i].best->choices;
  }
  const auto without = [&](std::string why) {
    result.note = std::move(why);
    return std::move(result);
  };
  if (result.set.empty()) return without("no task was found faster");
  INGOT_ASSIGN_OR_RETURN(const ir::IRModule module, OptimizeModule(loaded, WithKernelsApart(options), {}));
  tune::ModelPrograms programs;
  programs.key = tune::ModelKey(module, options.opt_level);
  programs.set = result.set;
  result.model = tune::FindModelComparison(database.database(), programs.key, kernels::TargetText(tuning.target),
                                           programs.set, tuning.sizes);
  if (result.model != nullptr) return result;
  if (stop) return without("interrupted");
  if (progress) progress({0, 1, "comparing the model"});
  const tune::TunedSet none;
  CompileOptions compile = options;
  compile.tuned = &none;
  INGOT_ASSIGN_OR_RETURN(const vm::Program untuned, CompileModule(loaded, compile, {}));
  Result<std::vector<tune::MeasuredCase>> cases = CasesOf(untuned, tuning.sizes);
  if (!cases.ok()) return without(cases.status().message());
  programs.cases = *std::move(cases);
  compile.tuned = &programs.set;
  INGOT_ASSIGN_OR_RETURN(const vm::Program tuned, CompileModule(loaded, compile, {}));
  INGOT_ASSIGN_OR_RETURN(programs.untuned, Executable(untuned));
  INGOT_ASSIGN_OR_RETURN(programs.tuned, Executable(tuned));
  INGOT_ASSIGN_OR_RETURN(result.model, tune::CompareModel(programs, tuning, pool, database));
  if (progress) progress({1, 1, "comparing the model"});
  return result;
}

}  // namespace ingot::driver
