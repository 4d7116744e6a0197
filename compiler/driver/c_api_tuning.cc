// The C API to tune (ingot/compiler.h): converts C options to the tuner's, and keeps what a run found behind an opaque
// handle.
#include <atomic>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/driver/c_api.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/read_model.h"
#include "compiler/driver/tune_graph.h"
#include "compiler/driver/tune_model.h"
#include "compiler/driver/write.h"
#include "compiler/tune/measure/runner_pool.h"

struct ingot_tuning {
  ingot::Target target;
  std::vector<ingot::tune::Task> tasks;
  std::vector<ingot::tune::TaskResult> results;  // of the tasks; none where they were only listed
  std::vector<ingot_ratio> comparisons;          // the same
  ingot_ratio model{}, graph{};
  std::string choices;
  std::string note;
};

namespace ingot::driver {
namespace {

Result<tune::TuneOptions> TuneOptionsOf(const ingot_tune_options& given, const CompileOptions& options) {
  const auto refuse = [](const std::string& text) { return Status(StatusCode::kInvalidArgument, text); };
  tune::TuneOptions tuning;
  tuning.target = options.target.variants.front();
  tuning.opt_level = options.opt_level;
  const std::string search = given.search == nullptr ? "evolution" : given.search;
  if (search == "random") {
    tuning.search = tune::Search::kRandom;
  } else if (search == "grid") {
    tuning.search = tune::Search::kGrid;
  } else if (search != "evolution") {
    return refuse("search: expected evolution, random or grid, got \"" + search + "\"");
  }
  if (given.trials < 0 || given.trials_per_task < 0 || given.early_stop < 0) {
    return refuse("a number of trials is negative");
  }
  if (given.num_threads < 1) return refuse("num_threads: expected at least 1");
  if (!(given.seconds >= 0) || !(given.trial_seconds > 0)) return refuse("a time is negative");
  tuning.trials = given.trials;
  tuning.trials_per_task = given.trials_per_task;
  tuning.early_stop = given.early_stop;
  if (given.seconds > 0) tuning.seconds = given.seconds;
  tuning.seed = given.seed;
  tuning.measure.threads = given.num_threads;
  tuning.measure.timeout_seconds = given.trial_seconds;
  if (given.hot != 0) tuning.measure.flush_bytes = 0;
  return tuning;
}

Result<std::unique_ptr<tune::RunnerPool>> RunnersOf(const ingot_tune_options& given, const Target& target) {
  tune::RunnerPoolOptions options;
  if (given.worker != nullptr) {
    options.worker = given.worker;
  } else {
    const std::string architecture = target.triple.substr(0, target.triple.find('-'));
    INGOT_ASSIGN_OR_RETURN(options.worker, FindLauncher("measure-worker-" + architecture));
  }
  std::vector<std::string> commands(given.runners, given.runners + given.num_runners);
  if (commands.empty()) commands.emplace_back("{program}");
  return tune::RunnerPool::Create(std::move(commands), std::move(options));
}

ingot_ratio RatioOf(const tune::Record* record) {
  if (record == nullptr || !record->is_ok()) return {};
  const tune::PairedRatio ratio = record->ratio();
  return {ratio.median, ratio.lower, ratio.upper, record->is_faster() ? 1 : 0};
}

Status Measure(const ir::IRModule& model, CompileOptions options, const ingot_tune_options& given,
               std::vector<tune::Sizes> sizes, const CompileObserver& observer, ingot_tuning& tuning) {
  if (given.database == nullptr) return NullArgument("database");
  if (given.only != nullptr && std::string_view(given.only) != "graph" && std::string_view(given.only) != "schedules") {
    return Status(StatusCode::kInvalidArgument,
                  std::string("only: expected graph or schedules, got \"") + given.only + "\"");
  }
  INGOT_ASSIGN_OR_RETURN(tune::TuneOptions tune, TuneOptionsOf(given, options));
  tune.sizes = std::move(sizes);
  std::unique_ptr<tune::CostModel> cost_model;
  if (given.learn != 0 && tune.search == tune::Search::kEvolution) {
    Result<std::unique_ptr<tune::CostModel>> loaded = tune::LoadXgboostModel();
    if (loaded.ok()) cost_model = *std::move(loaded);
    if (!loaded.ok() && observer.log) observer.log("without a cost model: " + loaded.status().message());
  }
  tune.model = cost_model.get();
  INGOT_ASSIGN_OR_RETURN(tune::DatabaseFile database, tune::DatabaseFile::Open(given.database));
  if (observer.log && !database.database().torn_line().empty()) observer.log(database.database().torn_line());
  INGOT_ASSIGN_OR_RETURN(const auto pool, RunnersOf(given, tune.target));
  std::atomic<bool> stop{false};
  const auto progress = [&](const tune::TuneProgress& at) {
    if (observer.progress) observer.progress(at.step, at.done, at.total);
    if (given.should_stop != nullptr && given.should_stop(given.user) != 0) stop = true;
  };
  const std::string_view only = given.only == nullptr ? "" : given.only;
  if (only != "schedules") {
    const auto start = std::chrono::steady_clock::now();
    tune::TuneOptions of_graph = tune;
    if (only.empty()) of_graph.seconds /= 2;
    INGOT_ASSIGN_OR_RETURN(const GraphTuning graph,
                           TuneGraph(model, options, of_graph, *pool, database, stop, progress));
    tune.seconds -= std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    tuning.choices = tune::ChoicesText(graph.taken);
    if (!graph.compared.records.empty()) tuning.graph = RatioOf(graph.compared.records.front());
    tuning.note = "schedules were not tuned";
    options.pass_options.graph_choices = graph.taken;
  }
  if (only == "graph") return Status();
  INGOT_ASSIGN_OR_RETURN(tuning.tasks, TasksOfModel(model, options, tune.sizes));
  INGOT_ASSIGN_OR_RETURN(ModelTuning result,
                         TuneModel(model, tuning.tasks, options, tune, *pool, database, stop, progress));
  for (const tune::TaskResult& task : result.results) tuning.comparisons.push_back(RatioOf(task.comparison));
  for (tune::TaskResult& task : result.results) task.comparison = task.best = nullptr;  // the database's
  tuning.results = std::move(result.results);
  tuning.model = RatioOf(result.model);
  tuning.note = std::move(result.note);
  return Status();
}

Status Run(const char* model_path, const ingot_compile_options* given, const ingot_tune_options* tune,
           ingot_tuning** out) {
  if (out == nullptr) return NullArgument("tuning");
  *out = nullptr;
  if (model_path == nullptr) return NullArgument("model_path");
  INGOT_ASSIGN_OR_RETURN(ingot_compile_options copied, CopyOptions(given, INGOT_COMPILE_OPTIONS_INIT));
  if (copied.target == nullptr) copied.target = "cpu:native";
  INGOT_ASSIGN_OR_RETURN(const CompileOptions options, Convert(copied));
  const CompileObserver observer = Observe(copied);
  INGOT_ASSIGN_OR_RETURN(const ir::IRModule model, LoadModel(model_path, options, observer));
  auto tuning = std::make_unique<ingot_tuning>();
  INGOT_ASSIGN_OR_RETURN(const ingot_tune_options copied_tune, CopyOptions(tune, INGOT_TUNE_OPTIONS_INIT));
  INGOT_RETURN_IF_ERROR(CheckTexts(copied_tune.sizes, copied_tune.num_sizes, "sizes"));
  INGOT_RETURN_IF_ERROR(CheckTexts(copied_tune.runners, copied_tune.num_runners, "runners"));
  std::vector<tune::Sizes> all_sizes;
  for (size_t i = 0; i < copied_tune.num_sizes; ++i) {
    INGOT_ASSIGN_OR_RETURN(tune::Sizes sizes, tune::ParseSizes(copied_tune.sizes[i]));
    all_sizes.push_back(std::move(sizes));
  }
  tuning->target = options.target.variants.front();
  if (tune != nullptr) {
    INGOT_RETURN_IF_ERROR(Measure(model, options, copied_tune, std::move(all_sizes), observer, *tuning));
  } else {
    INGOT_ASSIGN_OR_RETURN(tuning->tasks, TasksOfModel(model, options, all_sizes));
  }
  *out = tuning.release();
  return Status();
}

Status GetTask(const ingot_tuning* tuning, size_t index, ingot_tuned_task* out) {
  if (tuning == nullptr) return NullArgument("tuning");
  if (out == nullptr) return NullArgument("task");
  if (index >= tuning->tasks.size()) {
    return Status(StatusCode::kInvalidArgument, "there is no task " + std::to_string(index));
  }
  const size_t size = out->struct_size;
  if (size < sizeof(size_t) || size > sizeof *out) {
    return Status(StatusCode::kInvalidArgument, "struct_size of the task is not one of this library's");
  }
  const tune::Task& task = tuning->tasks[index];
  ingot_tuned_task all = INGOT_TUNED_TASK_INIT;
  all.struct_size = size;
  all.key = task.key.c_str();
  all.kernel = task.names[0].c_str();
  all.note = "";
  all.weight = task.weight;
  all.flops = task.flops;
  all.bytes = task.bytes;
  all.roofline_seconds = tune::RooflineSeconds(task, tuning->target);
  all.predicted_seconds = task.predicted_seconds;
  all.num_schedules = task.num_schedules();
  all.is_symbolic = task.is_symbolic ? 1 : 0;
  if (!tuning->results.empty()) {
    const tune::TaskResult& result = tuning->results[index];
    all.note = result.note.c_str();
    all.trials = result.trials;
    all.new_trials = result.new_trials;
    all.failed = result.failed;
    all.default_seconds = result.default_seconds;
    all.best_seconds = result.best_seconds;
    all.comparison = tuning->comparisons[index];
  }
  std::memcpy(out, &all, size);
  return Status();
}

}  // namespace
}  // namespace ingot::driver

using namespace ingot::driver;  // NOLINT: this file implements a C header

extern "C" {

ingot_status* ingot_tuning_run(const char* model_path, const ingot_compile_options* options,
                               const ingot_tune_options* tune, ingot_tuning** tuning) {
  return Guard([&] { return Run(model_path, options, tune, tuning); });
}
size_t ingot_tuning_task_count(const ingot_tuning* tuning) { return tuning == nullptr ? 0 : tuning->tasks.size(); }
ingot_status* ingot_tuning_task(const ingot_tuning* tuning, size_t index, ingot_tuned_task* task) {
  return Guard([&] { return GetTask(tuning, index, task); });
}
ingot_ratio ingot_tuning_model(const ingot_tuning* tuning) { return tuning == nullptr ? ingot_ratio{} : tuning->model; }
const char* ingot_tuning_choices(const ingot_tuning* tuning) {
  return tuning == nullptr ? "" : tuning->choices.c_str();
}
ingot_ratio ingot_tuning_graph(const ingot_tuning* tuning) { return tuning == nullptr ? ingot_ratio{} : tuning->graph; }
const char* ingot_tuning_note(const ingot_tuning* tuning) { return tuning == nullptr ? "" : tuning->note.c_str(); }
void ingot_tuning_release(ingot_tuning* tuning) { delete tuning; }

}  // extern "C"
