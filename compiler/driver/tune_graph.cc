// Alternatives are compiled whole, with the default schedules, and measured as whole models are.
#include "compiler/driver/tune_graph.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "compiler/driver/compile.h"
#include "compiler/driver/measured_model.h"
#include "compiler/driver/tuned_schedules.h"
#include "compiler/kernels/kernel_cache.h"
#include "compiler/tune/task.h"

namespace ingot::driver {
namespace {

class GraphTuner {
 public:
  GraphTuner(const ir::IRModule& loaded, const CompileOptions& options, const tune::TuneOptions& tuning,
             tune::RunnerPool& pool, tune::DatabaseFile& database, const std::atomic<bool>& stop,
             const std::function<void(const tune::TuneProgress&)>& progress)
      : loaded_(loaded),
        options_(options),
        tuning_(tuning),
        pool_(pool),
        database_(database),
        stop_(stop),
        progress_(progress),
        records_(RecordsOf(options.target)) {
    options_.tuned = &kNone;
    options_.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  }

  Result<GraphTuning> Run() {
    INGOT_ASSIGN_OR_RETURN(result_.choices, GraphChoicesOf(loaded_, options_));
    INGOT_ASSIGN_OR_RETURN(key_, KeyOf({}));
    Status status = Compare();
    if (!status.ok() && status.code() != StatusCode::kUnsupportedModel) return status;
    if (!status.ok()) result_.note = status.message();
    std::vector<std::string> targets;
    for (const Target& target : records_) targets.push_back(kernels::TargetText(target));
    if (const tune::Record* best = database_.database().BestGraph(key_, targets)) result_.taken = best->graph;
    return std::move(result_);
  }

 private:
  using Tried = GraphTuning::Tried;

  Status Compare() {
    INGOT_RETURN_IF_ERROR(ScreenAlone());
    INGOT_RETURN_IF_ERROR(ScreenTogether());
    const Tried* leader = nullptr;
    for (const Tried& tried : result_.screened) {
      if (tried.ratio() < (leader == nullptr ? 1 : leader->ratio())) leader = &tried;
    }
    if (IsOver()) {
      result_.note = stop_ ? "interrupted" : "the time was used up";
    } else if (leader == nullptr) {
      result_.note = WhyNone();
    } else {
      INGOT_ASSIGN_OR_RETURN(std::optional<Tried> compared, Measured(tune::Record::Kind::kGraph, leader->chosen));
      if (compared) result_.compared = *std::move(compared);
    }
    return Status();
  }

  // Why no choice is compared. What does not run on one CPU of the target is not known to be faster on each of them.
  std::string WhyNone() const {
    if (result_.choices.empty()) return "there is nothing to choose";
    for (const Tried& tried : result_.screened) {
      const tune::Record& last = *tried.records.back();
      if (!last.is_ok()) return "not measured on every CPU of the target: " + last.outcome + ": " + last.error;
    }
    return "no other choice was faster";
  }

  Status ScreenAlone() {
    int64_t done = 0, total = 0;
    for (const transform::GraphChoice& each : result_.choices) {
      total += static_cast<int64_t>(each.choice.candidates.size()) - 1;
    }
    for (const transform::GraphChoice& each : result_.choices) {
      for (const int64_t value : each.choice.candidates) {
        if (value == each.choice.value || IsOver()) continue;
        if (progress_) progress_({done++, total, "choice " + each.choice.name + "=" + std::to_string(value)});
        INGOT_RETURN_IF_ERROR(Screen({{each.choice.name, value}}));
      }
    }
    if (progress_ && total > 0) progress_({total, total, "choices"});
    return Status();
  }

  // The best candidates of all choices of which one was faster than usual.
  Status ScreenTogether() {
    std::map<std::string, std::pair<double, int64_t>> best;
    for (const Tried& tried : result_.screened) {
      const auto& [name, value] = *tried.chosen.begin();
      const double ratio = tried.ratio();
      const auto found = best.find(name);
      if (ratio < 1 && (found == best.end() || ratio < found->second.first)) best[name] = {ratio, value};
    }
    if (best.size() < 2 || IsOver()) return Status();
    schedule::Chosen together;
    for (const auto& [name, one] : best) together[name] = one.second;
    return Screen(together);
  }

  Status Screen(const schedule::Chosen& chosen) {
    INGOT_ASSIGN_OR_RETURN(std::optional<Tried> tried, Measured(tune::Record::Kind::kGraphScreening, chosen));
    if (tried) result_.screened.push_back(*std::move(tried));
    return Status();
  }

  bool IsOver() const {
    return stop_ || std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count() > tuning_.seconds;
  }

  // Nothing where the choices change nothing.
  Result<std::optional<Tried>> Measured(tune::Record::Kind kind, const schedule::Chosen& chosen) {
    const Result<std::string> result = KeyOf(chosen);
    if (result.ok() && *result == key_) return std::optional<Tried>();
    Tried tried{chosen, {}};
    for (const Target& target : records_) {
      tune::ModelPrograms programs;
      programs.kind = kind;
      programs.key = key_;
      programs.graph = chosen;
      if (result.ok()) programs.result = *result;
      tune::TuneOptions tuning = tuning_;
      tuning.target = target;
      const tune::Record* record = tune::FindGraphComparison(database_.database(), programs, tuning);
      if (record == nullptr) {
        INGOT_RETURN_IF_ERROR(CompileUsual(target, programs));
        const Status compiled = result.ok() ? Compile(target, programs) : result.status();
        INGOT_ASSIGN_OR_RETURN(record, compiled.ok() ? tune::CompareModel(programs, tuning, pool_, database_)
                                                     : tune::RecordUncompiled(programs, compiled, tuning, database_));
      }
      tried.records.push_back(record);
      if (!record->is_ok()) break;
    }
    return std::optional<Tried>(std::move(tried));
  }

  Status CompileUsual(const Target& target, tune::ModelPrograms& programs) {
    std::optional<Usual>& usual = usual_[target.name];
    if (!usual) {
      INGOT_ASSIGN_OR_RETURN(const vm::Program program, CompileModule(loaded_, With({}, target), {}));
      usual.emplace();
      INGOT_ASSIGN_OR_RETURN(usual->cases, ModelCases(program, tuning_.sizes));
      INGOT_ASSIGN_OR_RETURN(usual->program, MeasuredModel(program));
    }
    programs.cases = usual->cases;
    programs.untuned = usual->program;
    return Status();
  }

  Status Compile(const Target& target, tune::ModelPrograms& programs) const {
    INGOT_ASSIGN_OR_RETURN(const vm::Program chosen, CompileModule(loaded_, With(programs.graph, target), {}));
    INGOT_ASSIGN_OR_RETURN(programs.tuned, MeasuredModel(chosen));
    return Status();
  }

  CompileOptions With(const schedule::Chosen& chosen, const Target& target) const {
    CompileOptions with = options_;
    with.pass_options.graph_choices = chosen;
    with.kernels_for = TargetFamily{target.kind, {target}, {}};
    return with;
  }

  Result<std::string> KeyOf(const schedule::Chosen& chosen) const {
    CompileOptions with = options_;
    with.pass_options.graph_choices = chosen;
    INGOT_ASSIGN_OR_RETURN(const ir::IRModule module, OptimizeModule(loaded_, with, {}));
    return tune::ModelKey(module, with.opt_level);
  }

  struct Usual {
    tune::MeasuredProgram program;
    std::vector<tune::MeasuredCase> cases;
  };
  inline static const tune::TunedSet kNone;
  const ir::IRModule& loaded_;
  CompileOptions options_;
  const tune::TuneOptions& tuning_;
  tune::RunnerPool& pool_;
  tune::DatabaseFile& database_;
  const std::atomic<bool>& stop_;
  const std::function<void(const tune::TuneProgress&)>& progress_;
  const std::vector<Target> records_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::string key_;                                    // ModelKey with the usual choices
  std::map<std::string, std::optional<Usual>> usual_;  // by target, once it was needed
  GraphTuning result_;
};

}  // namespace

double GraphTuning::Tried::ratio() const {
  double product = 1;
  for (const tune::Record* record : records) {
    if (!record->is_ok()) return std::numeric_limits<double>::infinity();
    product *= record->ratio().median;
  }
  return std::pow(product, 1 / std::max<double>(static_cast<double>(records.size()), 1));
}

Result<std::vector<transform::GraphChoice>> GraphChoicesOf(const ir::IRModule& loaded, const CompileOptions& options) {
  std::vector<transform::GraphChoice> choices;
  CompileObserver observer;
  observer.chosen = [&](const std::vector<transform::GraphChoice>& made) { choices = made; };
  INGOT_RETURN_IF_ERROR(OptimizeModule(loaded, options, observer).status());
  return choices;
}

Result<GraphTuning> TuneGraph(const ir::IRModule& loaded, const CompileOptions& options,
                              const tune::TuneOptions& tuning, tune::RunnerPool& pool, tune::DatabaseFile& database,
                              const std::atomic<bool>& stop,
                              const std::function<void(const tune::TuneProgress&)>& progress) {
  return GraphTuner(loaded, options, tuning, pool, database, stop, progress).Run();
}

}  // namespace ingot::driver
