// The whole model is compiled as any, with the set and without.
#include "compiler/driver/tune_model.h"

#include <utility>

#include "compiler/driver/compile.h"
#include "compiler/driver/measured_model.h"
#include "compiler/driver/tuned_schedules.h"
#include "compiler/kernels/kernel_cache.h"

namespace ingot::driver {
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
  Result<std::vector<tune::MeasuredCase>> cases = ModelCases(untuned, tuning.sizes);
  if (!cases.ok()) return without(cases.status().message());
  programs.cases = *std::move(cases);
  compile.tuned = &programs.set;
  INGOT_ASSIGN_OR_RETURN(const vm::Program tuned, CompileModule(loaded, compile, {}));
  INGOT_ASSIGN_OR_RETURN(programs.untuned, MeasuredModel(untuned));
  INGOT_ASSIGN_OR_RETURN(programs.tuned, MeasuredModel(tuned));
  INGOT_ASSIGN_OR_RETURN(result.model, tune::CompareModel(programs, tuning, pool, database));
  if (progress) progress({1, 1, "comparing the model"});
  return result;
}

}  // namespace ingot::driver
