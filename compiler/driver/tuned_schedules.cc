// Looks sets up by model and target, and schedules in them by task.
#include "compiler/driver/tuned_schedules.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "compiler/driver/compile.h"
#include "compiler/kernels/kernel_cache.h"
#include "compiler/tune/task.h"

namespace ingot::driver {

namespace {

constexpr const char* kKeepsApart = "share_depths";  // the pass without which kernels stay apart

}  // namespace

CompileOptions WithKernelsApart(CompileOptions options) {
  options.pass_options.disabled_passes.emplace_back(kKeepsApart);
  return options;
}

std::vector<Target> RecordsOf(const TargetFamily& family) {
  std::vector<Target> records = family.variants;
  records.insert(records.end(), family.byte_product_variants.begin(), family.byte_product_variants.end());
  return records;
}

Status TunedSchedules::Open(const CompileOptions& options, const CompileObserver& observer) {
  given_ = options.tuned;
  if (given_ != nullptr || options.tuning_db_path.empty()) return Status();
  INGOT_ASSIGN_OR_RETURN(database_, tune::Database::Load(options.tuning_db_path));
  if (observer.log && !database_->torn_line().empty()) observer.log(database_->torn_line());
  return Status();
}

namespace {

// Whether graph passes run as where choices were measured: with others, the same choices may give another module.
bool HasUsualPasses(const CompileOptions& options) {
  const transform::PassOptions& own = options.pass_options;
  const auto is_left_out = [](const std::string& pass) { return pass != kKeepsApart; };
  return !options.passes && std::ranges::none_of(own.disabled_passes, is_left_out) && own.schedule_rules.empty() &&
         !own.rewrites.strict_math && own.rewrites.fast_math.empty();
}

}  // namespace

Result<schedule::Chosen> TunedSchedules::ChooseGraph(const ir::IRModule& module, const CompileOptions& options) {
  const schedule::Chosen& given = options.pass_options.graph_choices;
  if (!database_ || !given.empty() || !database_->has_graphs() || !HasUsualPasses(options)) return given;
  INGOT_ASSIGN_OR_RETURN(const ir::IRModule usual, OptimizeModule(module, options, {}));
  usual_model_ = tune::ModelKey(usual, options.opt_level);
  std::vector<std::string> targets;
  for (const Target& target : RecordsOf(options.target)) targets.push_back(kernels::TargetText(target));
  graph_ = database_->BestGraph(usual_model_, targets);
  return graph_ == nullptr ? given : graph_->graph;
}

Status TunedSchedules::Prepare(const ir::IRModule& module, const CompileOptions& options) {
  if (!database_) return Status();
  model_ = tune::ModelKey(module, options.opt_level);
  if (graph_ == nullptr || graph_->result == model_) return Status();
  return Status(StatusCode::kBadInput, options.tuning_db_path + ": the record of model " + graph_->model +
                                           " is refused: its choices (" + tune::ChoicesText(graph_->graph) +
                                           ") give another module than was measured");
}

std::function<Result<schedule::Chosen>(const ir::PrimFunc&, const Target&)> TunedSchedules::lookup() {
  if (given_ == nullptr && !database_) return nullptr;
  return [this](const ir::PrimFunc& function, const Target& target) -> Result<schedule::Chosen> {
    INGOT_ASSIGN_OR_RETURN(schedule::Chosen chosen, ChosenFor(function, target));
    const std::lock_guard lock(mutex_);
    ++kernels_[target.name];
    if (!chosen.empty()) ++tuned_[target.name];
    return chosen;
  };
}

Result<schedule::Chosen> TunedSchedules::ChosenFor(const ir::PrimFunc& function, const Target& target) {
  if (given_ != nullptr) {
    const auto found = given_->find(tune::TaskKey(function));
    return found == given_->end() ? schedule::Chosen() : found->second;
  }
  const tune::Record* best = database_->BestOfModel(model_, kernels::TargetText(target));
  if (best == nullptr) return schedule::Chosen();
  return database_->ChosenFor(function, target, best->set);
}

void TunedSchedules::Report(const CompileOptions& options, const CompileObserver& observer) const {
  if (!observer.log || !database_) return;
  for (const Target& target : RecordsOf(options.target)) {
    if (graph_ == nullptr) break;
    const tune::PairedRatio ratio =
        database_->FasterGraph(usual_model_, graph_->graph, graph_->result, kernels::TargetText(target))->ratio();
    char measured[96];
    std::snprintf(measured, sizeof measured, "; the model took %.3f [%.3f, %.3f] of its time with the usual choices",
                  ratio.median, ratio.lower, ratio.upper);
    observer.log("tuned choices for " + target.name + ": " + tune::ChoicesText(graph_->graph) + measured);
  }
  for (const auto* variants : {&options.target.variants, &options.target.byte_product_variants}) {
    for (const Target& target : *variants) {
      const auto kernels = kernels_.find(target.name), tuned = tuned_.find(target.name);
      if (kernels == kernels_.end()) continue;
      std::string text = "tuned schedules for " + target.name + ": " +
                         std::to_string(tuned == tuned_.end() ? 0 : tuned->second) + " of " +
                         std::to_string(kernels->second) + " kernels";
      if (const tune::Record* best = database_->BestOfModel(model_, kernels::TargetText(target))) {
        const tune::PairedRatio ratio = best->ratio();
        char measured[96];
        std::snprintf(measured, sizeof measured, "; the model took %.3f [%.3f, %.3f] of its time without them",
                      ratio.median, ratio.lower, ratio.upper);
        text += measured;
      } else {
        text += "; no record says that this model is faster as a whole with tuned schedules";
      }
      observer.log(text);
    }
  }
}

}  // namespace ingot::driver
