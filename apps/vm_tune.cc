// vm-tune: finds faster schedules for the kernels of a model, shows what there is to tune, and keeps databases of
// records. Parses options, calls compiler/tune, and prints.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <set>

#include "apps/common/duration.h"
#include "apps/common/process.h"
#include "apps/common/tool.h"
#include "compiler/codegen/codegen.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/tune_graph.h"
#include "compiler/driver/tune_model.h"
#include "compiler/driver/write.h"
#include "compiler/tune/database.h"
#include "compiler/tune/report.h"
#include "compiler/tune/task.h"
#include "compiler/tune/tuner.h"
#include "formats/file.h"
#include "runtime/suggest.h"

namespace ingot::apps {
namespace {

constexpr const char* kExamples =
    "  vm-tune model.onnx --db records.jsonl --trials 200      # then: vm-compile model.onnx --tuning-db records.jsonl "
    "...\n"
    "  vm-tune model.onnx --db records.jsonl --runner 'ssh board {program}' --target cpu:x86-64-v3\n"
    "  vm-tune model.onnx --list-tasks\n"
    "  vm-tune db show records.jsonl                   # every record, one line each\n"
    "  vm-tune db best records.jsonl                   # what vm-compile --tuning-db takes\n"
    "  vm-tune db merge a.jsonl b.jsonl -o both.jsonl  # equal records once\n"
    "  vm-tune db prune records.jsonl -o small.jsonl   # the best alone";

struct Options {
  std::vector<std::string> arguments, input_shapes, dims, sizes, tasks;
  std::vector<std::string> runners;
  std::string target = "cpu:native", output, db, search = "evolution", cost_model = "auto", worker, report, time_budget,
              run_timeout = "10s", repeat_time = "5ms", only;
  int trials = 64, repeats = 5, trials_per_task = 256, early_stop = 64, threads = 1, seed = 1;
  bool list_tasks = false, hot = false, cold = false;
};

std::string Microseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f us", seconds * 1e6);
  return text;
}

// Ctrl-C: what runs is finished, what was measured is printed. A second one ends the process.
std::atomic<bool> interrupted{false};
void OnInterrupt(int signal) {
  interrupted = true;
  std::signal(signal, SIG_DFL);
}

class Tuning {
 public:
  Tuning(Tool& tool, const Options& options) : tool_(tool), options_(options) {}

  Result<int> Run() {
    const std::vector<std::string>& arguments = options_.arguments;
    if (arguments.empty()) return Usage("no MODEL was given");
    if (arguments[0] == "db") return RunOnDatabases();
    if (arguments.size() > 1) return Usage("more than one MODEL was given");
    if (!options_.list_tasks && options_.db.empty()) return Usage("no --db FILE was given for the records");
    INGOT_RETURN_IF_ERROR(Load(arguments[0]));
    return options_.list_tasks ? ListTasks(arguments[0]) : TuneTasks(arguments[0]);
  }

 private:
  static Status Usage(const std::string& text) { return Status(StatusCode::kInvalidArgument, text); }

  Status Load(const std::string& path) {
    compile_.target_text = options_.target;
    INGOT_ASSIGN_OR_RETURN(compile_.target, ParseTarget(options_.target));
    for (const std::string& text : options_.input_shapes) {
      INGOT_ASSIGN_OR_RETURN(importer::InputShape shape, importer::ParseInputShape(text));
      compile_.import.input_shapes.push_back(std::move(shape));
    }
    for (const std::string& text : options_.dims) {
      INGOT_ASSIGN_OR_RETURN(importer::DimRange range, importer::ParseDimRange(text));
      compile_.import.dims.push_back(std::move(range));
    }
    INGOT_ASSIGN_OR_RETURN(model_, driver::LoadModel(path, compile_, {}));
    for (const std::string& text : options_.sizes) {
      INGOT_ASSIGN_OR_RETURN(tune::Sizes sizes, tune::ParseSizes(text));
      sizes_.push_back(std::move(sizes));
    }
    target_ = compile_.target.variants.front();
    return Status();
  }

  bool tunes_graph() const { return options_.only != "schedules"; }
  bool tunes_schedules() const { return options_.only != "graph"; }

  // With what graph passes choose by now.
  Status FindTasks() {
    if (!tunes_schedules()) return Status();
    INGOT_ASSIGN_OR_RETURN(tasks_, driver::TasksOfModel(model_, compile_, sizes_));
    return KeepNamedTasks();
  }

  // --task: the others are left out, as if the model did not have them.
  Status KeepNamedTasks() {
    std::vector<std::string_view> keys;
    for (const tune::Task& task : tasks_) keys.push_back(task.key);
    for (const std::string& named : options_.tasks) {
      if (std::ranges::find(keys, named) == keys.end()) {
        return Usage("--task: the model has no task " + named + DidYouMean(named, keys));
      }
    }
    if (options_.tasks.empty()) return Status();
    std::erase_if(tasks_, [&](const tune::Task& task) {
      return std::ranges::find(options_.tasks, task.key) == options_.tasks.end();
    });
    return Status();
  }

  Result<tune::TuneOptions> TuningOptions() const {
    tune::TuneOptions tuning;
    tuning.target = target_;
    tuning.opt_level = compile_.opt_level;
    tuning.sizes = sizes_;
    tuning.search = options_.search == "random" ? tune::Search::kRandom
                    : options_.search == "grid" ? tune::Search::kGrid
                                                : tune::Search::kEvolution;
    tuning.trials = options_.trials;
    tuning.trials_per_task = options_.trials_per_task;
    tuning.early_stop = options_.early_stop;
    if (!options_.time_budget.empty()) {
      INGOT_ASSIGN_OR_RETURN(tuning.seconds, ParseDuration(options_.time_budget));
    }
    INGOT_ASSIGN_OR_RETURN(tuning.measure.timeout_seconds, ParseDuration(options_.run_timeout));
    INGOT_ASSIGN_OR_RETURN(tuning.measure.repeat_seconds, ParseDuration(options_.repeat_time));
    if (options_.repeats < 1) return Usage("--repeats: expected at least 1");
    tuning.measure.repeats = options_.repeats;
    tuning.seed = static_cast<uint64_t>(options_.seed);
    tuning.measure.threads = options_.threads;
    if (options_.hot) tuning.measure.flush_bytes = 0;
    tuning.all_cold = options_.cold;
    return tuning;
  }

  Result<std::unique_ptr<tune::CostModel>> Model() const {
    if (options_.cost_model == "none" || options_.search != "evolution") return std::unique_ptr<tune::CostModel>();
    Result<std::unique_ptr<tune::CostModel>> model = tune::LoadXgboostModel();
    if (model.ok() || options_.cost_model == "xgb") return model;
    tool_.Note("without a cost model, by random draws and evolution alone: " + model.status().message());
    return std::unique_ptr<tune::CostModel>();
  }

  Result<std::unique_ptr<tune::RunnerPool>> Runners() const {
    tune::RunnerPoolOptions options;
    options.worker = options_.worker;
    if (options.worker.empty()) {
      const std::string architecture = target_.triple.substr(0, target_.triple.find('-'));
      INGOT_ASSIGN_OR_RETURN(options.worker, driver::FindLauncher("measure-worker-" + architecture));
    }
    std::vector<std::string> commands = options_.runners;
    if (commands.empty()) commands.push_back("{program}");
    std::signal(SIGPIPE, SIG_IGN);
    return tune::RunnerPool::Create(std::move(commands), std::move(options));
  }

  Result<int> TuneTasks(const std::string& path) {
    INGOT_ASSIGN_OR_RETURN(tune::TuneOptions tuning, TuningOptions());
    INGOT_ASSIGN_OR_RETURN(const std::unique_ptr<tune::CostModel> cost_model, Model());
    tuning.model = cost_model.get();
    INGOT_ASSIGN_OR_RETURN(tune::DatabaseFile database, tune::DatabaseFile::Open(options_.db));
    if (!database.database().torn_line().empty()) tool_.Note(database.database().torn_line());
    INGOT_ASSIGN_OR_RETURN(const auto pool, Runners());
    std::signal(SIGINT, OnInterrupt);
    const auto show = [this](const tune::TuneProgress& progress) {
      tool_.Progress(progress.step, progress.done, progress.total);
    };
    driver::GraphTuning graph;
    if (tunes_graph()) {
      // At most half of the time, if schedules are to be tuned as well; they get what is left.
      const auto start = std::chrono::steady_clock::now();
      tune::TuneOptions of_graph = tuning;
      if (tunes_schedules()) of_graph.seconds /= 2;
      INGOT_ASSIGN_OR_RETURN(graph, driver::TuneGraph(model_, compile_, of_graph, *pool, database, interrupted, show));
      compile_.pass_options.graph_choices = graph.taken;
      tuning.seconds -= std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    driver::ModelTuning result;
    result.note = "schedules were not tuned";
    INGOT_RETURN_IF_ERROR(FindTasks());
    if (tunes_schedules()) {
      INGOT_ASSIGN_OR_RETURN(result,
                             driver::TuneModel(model_, tasks_, compile_, tuning, *pool, database, interrupted, show));
    }
    const size_t num_commands = std::max<size_t>(options_.runners.size(), 1);
    for (int32_t i = 0; i < static_cast<int32_t>(num_commands); ++i) {
      if (!pool->loss(i).empty()) tool_.Note("the runner \"" + pool->command(i) + "\" is lost: " + pool->loss(i));
    }
    INGOT_RETURN_IF_ERROR(ReportResults(path, result, graph));
    return interrupted ? int{kExitInterrupted} : int{kExitOk};
  }

  static Json RatioJson(const tune::Record& record) {
    const tune::PairedRatio ratio = record.ratio();
    return {{"ratio", ratio.median}, {"lower", ratio.lower}, {"upper", ratio.upper}, {"faster", record.is_faster()}};
  }

  // "0.900 of the default's time [0.890, 0.910]", and what comes of it.
  static std::string RatioText(const tune::Record& record) {
    if (!record.is_ok()) return record.outcome;
    const tune::PairedRatio ratio = record.ratio();
    char text[96];
    std::snprintf(text, sizeof text, "%.3f of the default's time [%.3f, %.3f]", ratio.median, ratio.lower, ratio.upper);
    return text;
  }

  static Json ResultJson(const tune::Task& task, const tune::TaskResult& result, const Target& target) {
    Json row = TaskJson(task, target);
    row["default_seconds"] = result.default_seconds;
    row["best_trial_seconds"] = result.best_seconds;
    row["trials"] = result.trials;
    row["new_trials"] = result.new_trials;
    row["failed"] = result.failed;
    row["note"] = result.note;
    if (result.comparison != nullptr && result.comparison->is_ok()) row["comparison"] = RatioJson(*result.comparison);
    if (result.best != nullptr) row["best"] = RatioJson(*result.best);
    return row;
  }

  Status ReportResults(const std::string& path, const driver::ModelTuning& tuning, const driver::GraphTuning& graph) {
    tune::TuningReport report{
        std::filesystem::path(path).filename().string(), target_, tasks_, tuning.results, tuning.model, tuning.note};
    for (const driver::GraphTuning::Tried& tried : graph.screened) {
      report.graph.insert(report.graph.end(), tried.records.begin(), tried.records.end());
    }
    report.graph.insert(report.graph.end(), graph.compared.records.begin(), graph.compared.records.end());
    report.graph_taken = graph.taken;
    report.graph_note = graph.note;
    if (!options_.report.empty()) {
      const std::string page = tune::ReportPage(report);
      INGOT_RETURN_IF_ERROR(
          formats::WriteFileAtomically(options_.report, std::as_bytes(std::span(page)), tool_.files()));
    }
    if (tool_.wants_json()) {
      Json listed = Json::Array();
      for (size_t i = 0; i < tasks_.size(); ++i) listed.push_back(ResultJson(tasks_[i], tuning.results[i], target_));
      Json document{{"model", path},
                    {"choices", ChoicesJson(graph.choices)},
                    {"alternatives", AlternativesJson(report.graph)},
                    {"choices_taken", tune::ChoicesText(graph.taken)},
                    {"choices_note", graph.note},
                    {"tasks", std::move(listed)},
                    {"note", tuning.note}};
      if (tuning.model != nullptr && tuning.model->is_ok()) document["model_comparison"] = RatioJson(*tuning.model);
      return tool_.WriteJson(1, document);
    }
    std::cout << (tunes_schedules() ? tune::ReportTable(report) : tune::GraphTable(report));
    return Status();
  }

  Result<int> ListTasks(const std::string& model) {
    INGOT_RETURN_IF_ERROR(FindTasks());
    std::vector<transform::GraphChoice> choices;
    if (tunes_graph()) {
      INGOT_ASSIGN_OR_RETURN(choices, driver::GraphChoicesOf(model_, compile_));
    }
    Json listed = Json::Array();
    if (!tool_.wants_json()) {
      if (tunes_schedules()) PrintTasks(tasks_, target_);
      PrintChoices(choices);
    }
    for (const tune::Task& task : tasks_) listed.push_back(TaskJson(task, target_));
    if (tool_.wants_json()) {
      INGOT_RETURN_IF_ERROR(
          tool_.WriteJson(1, {{"model", model}, {"choices", ChoicesJson(choices)}, {"tasks", std::move(listed)}}));
    }
    return int{kExitOk};
  }

  static Json ChoicesJson(const std::vector<transform::GraphChoice>& choices) {
    Json json = Json::Array();
    for (const auto& [choice, calls] : choices) {
      json.push_back(
          {{"name", choice.name}, {"usual", choice.usual}, {"candidates", Json(choice.candidates)}, {"calls", calls}});
    }
    return json;
  }

  static Json AlternativesJson(const std::vector<const tune::Record*>& records) {
    Json json = Json::Array();
    for (const tune::Record* record : records) {
      Json row{{"kind", tune::KindName(record->kind)},
               {"target", tune::TargetNameOf(record->target)},
               {"choices", tune::ChoicesText(record->graph)},
               {"outcome", record->outcome},
               {"error", record->error}};
      if (record->is_ok()) row["comparison"] = RatioJson(*record);
      json.push_back(std::move(row));
    }
    return json;
  }

  static void PrintChoices(const std::vector<transform::GraphChoice>& choices) {
    if (!choices.empty()) std::cout << "choices of the file: calls, candidates, the usual one, name\n";
    for (const auto& [choice, calls] : choices) {
      std::string candidates;
      for (const int64_t candidate : choice.candidates) {
        candidates += (candidates.empty() ? "" : " ") + std::to_string(candidate);
      }
      char line[64];
      std::snprintf(line, sizeof line, "%6lld  %-8s %3lld  ", static_cast<long long>(calls), candidates.c_str(),
                    static_cast<long long>(choice.usual));
      std::cout << line << choice.name << "\n";
    }
  }

  static Json TaskJson(const tune::Task& task, const Target& target) {
    Json choices = Json::Array();
    for (const schedule::Choice& choice : task.choices) {
      choices.push_back({{"name", choice.name}, {"usual", choice.usual}, {"candidates", Json(choice.candidates)}});
    }
    return {{"task", task.key},
            {"target", target.name},
            {"kernels", Json(task.names)},
            {"weight", task.weight},
            {"flops", task.flops},
            {"bytes", task.bytes},
            {"symbolic", task.is_symbolic},
            {"roofline_seconds", tune::RooflineSeconds(task, target)},
            {"predicted_seconds", task.predicted_seconds},
            {"choices", std::move(choices)}};
  }

  static void PrintTasks(const std::vector<tune::Task>& tasks, const Target& target) {
    std::cout << "tasks for " << target.name << ": weight, FLOP, bytes, roofline, predicted, schedules, kernels\n";
    for (const tune::Task& task : tasks) {
      char line[192];
      std::snprintf(line, sizeof line, "%s  %4lld  %10.4g  %10.4g  %12s  %12s  %8.3g  ", task.key.c_str(),
                    static_cast<long long>(task.weight), task.flops, task.bytes,
                    Microseconds(tune::RooflineSeconds(task, target)).c_str(),
                    Microseconds(task.predicted_seconds).c_str(), task.num_schedules());
      std::cout << line << task.names[0];
      if (task.names.size() > 1) std::cout << " and " << task.names.size() - 1 << " more";
      std::cout << (task.is_symbolic ? " (symbolic)\n" : "\n");
    }
  }

  Result<int> RunOnDatabases() {
    const std::vector<std::string_view> commands{"merge", "prune", "best", "show"};
    if (options_.arguments.size() < 3) return Usage("usage: vm-tune db merge|prune|best|show FILE...");
    const std::string& command = options_.arguments[1];
    if (std::ranges::find(commands, command) == commands.end()) {
      return Usage("there is no \"db " + command + "\"" + DidYouMean(command, commands));
    }
    tune::Database database;
    std::set<std::string> lines;
    for (size_t i = 2; i < options_.arguments.size(); ++i) {
      INGOT_ASSIGN_OR_RETURN(const tune::Database read, tune::Database::Load(options_.arguments[i]));
      if (!read.torn_line().empty()) tool_.Note(read.torn_line());
      for (const tune::Record& record : read.records()) {
        if (lines.insert(tune::RecordLine(record)).second) database.Add(record);
      }
    }
    if (command == "merge") return WriteRecords(database);
    if (command == "show") return Show(database);
    return command == "prune" ? WriteRecords(database.Pruned()) : Show(database.Pruned());
  }

  Result<int> WriteRecords(const tune::Database& database) {
    if (options_.output.empty()) return Usage("no -o FILE was given");
    std::string text;
    for (const tune::Record& record : database.records()) text += tune::RecordLine(record) + "\n";
    INGOT_RETURN_IF_ERROR(formats::WriteFileAtomically(options_.output, std::as_bytes(std::span(text)), tool_.files()));
    return int{kExitOk};
  }

  Result<int> Show(const tune::Database& database) {
    Json listed = Json::Array();
    for (const tune::Record& record : database.records()) {
      const bool is_of_graph = !record.model.empty() && record.kind != tune::Record::Kind::kModel;
      const bool is_model = !record.model.empty();
      const bool is_compared = record.is_ok() && !record.default_seconds.empty();
      std::string choices;
      for (const auto& [name, value] : record.choices) choices += " " + name + "=" + std::to_string(value);
      if (is_model) choices = " " + std::to_string(record.set.size()) + " tuned tasks";
      if (is_of_graph) choices = " " + tune::ChoicesText(record.graph);
      if (tool_.wants_json()) {
        Json row{{"kind", tune::KindName(record.kind)},
                 {"target", record.target},
                 {"outcome", record.outcome},
                 {"choices", choices},
                 {"error", record.error},
                 {"program", record.program},
                 {"median_seconds", record.median_seconds()}};
        row[is_model ? "model" : "task"] = is_model ? record.model : record.task;
        if (is_compared) row["comparison"] = RatioJson(record);
        listed.push_back(std::move(row));
        continue;
      }
      std::cout << tune::KindName(record.kind) << "  " << (is_model ? record.model : record.task) << "  "
                << tune::TargetNameOf(record.target) << "  " << record.outcome;
      if (record.is_ok()) std::cout << "  " << Microseconds(record.median_seconds());
      if (is_compared) std::cout << "  " << RatioText(record);
      std::cout << (choices.empty() ? "  default" : " " + choices) << "\n";
    }
    if (tool_.wants_json()) INGOT_RETURN_IF_ERROR(tool_.WriteJson(1, {{"records", std::move(listed)}}));
    return int{kExitOk};
  }

  Tool& tool_;
  const Options& options_;
  driver::CompileOptions compile_;
  ir::IRModule model_;
  Target target_;
  std::vector<tune::Sizes> sizes_;
  std::vector<tune::Task> tasks_;
};

}  // namespace
}  // namespace ingot::apps

int main(int argc, char** argv) {
  using namespace ingot::apps;  // NOLINT: the tool's own names
  PrepareProcess("vm-tune");
  ingot::codegen::OnOutOfMemory(ExitOutOfMemory);
  Tool tool("vm-tune", "Finds faster schedules for the kernels of a model, by measuring.", kExamples);
  Options options;
  CommandLine& line = tool.command_line();
  line.Add("MODEL", options.arguments, "model.onnx, or module.py; or db merge|prune|best|show and files of records");
  line.AddFlag("--list-tasks", options.list_tasks,
               "Print the tasks: calls per run, FLOP, bytes, roofline, predicted time, size of the space, kernels");
  line.Add("--task", options.tasks, "This task alone, by its key in the list; several").Type("KEY").OneEach();
  line.Add("--db", options.db, "The records: those that it holds are not measured again, new ones are appended")
      .Type("FILE");
  line.Add("--trials", options.trials, "Schedules that are measured at most, default ones not counted").ShowDefault();
  line.Add("--trials-per-task", options.trials_per_task, "The same of each task, earlier records counted")
      .ShowDefault();
  line.Add("--time-budget", options.time_budget,
           "Try nothing more after so long (30m), of which choices of the file take half at most; comparisons come on "
           "top")
      .Type("DURATION");
  line.Add("--early-stop", options.early_stop, "A task ends after so many trials without a faster one").ShowDefault();
  line.Add("--search", options.search, "How schedules are chosen").OneOf({"evolution", "random", "grid"}).ShowDefault();
  line.Add(
          "--cost-model", options.cost_model,
          "Which schedules evolution tries: those that XGBoost, fitted to the records, takes for the fastest (xgb), or "
          "whichever it draws (none); auto: xgb where libxgboost is installed")
      .OneOf({"auto", "xgb", "none"})
      .ShowDefault();
  line.Add("--seed", options.seed, "Of what is drawn at random").ShowDefault();
  line.Add("--runner", options.runners,
           "Where to measure: a command that runs {program}, such as 'ssh board {program}'; several work side by side")
      .Type("COMMAND")
      .OneEach();
  line.Add("--worker", options.worker, "The program that runners run (default: the one installed)").Type("FILE");
  line.Add("--threads", options.threads, "Of a kernel that is measured").ShowDefault();
  line.Add("--run-timeout", options.run_timeout, "A schedule that takes longer is given up").ShowDefault();
  line.Add("--repeats", options.repeats,
           "Measurements of a schedule in the search, of which the fastest counts: on a busy machine many short ones")
      .ShowDefault();
  line.Add("--repeat-time", options.repeat_time, "The timed calls of a measurement take so long at least")
      .Type("DURATION")
      .ShowDefault();
  line.AddFlag(
      "--hot", options.hot,
      "Leave tensors in the caches between calls (default: weights and results out of all caches, other inputs "
      "as another kernel has just written them)");
  line.AddFlag("--cold", options.cold, "Inputs out of all caches, too");
  line.Add("--only", options.only,
           "What is tuned: choices of the whole file (blocked layouts, Winograd's convolutions, packed weights), also "
           "for "
           "several CPUs; or the schedules of kernels (default: both)")
      .OneOf({"graph", "schedules"});
  line.Add("--report", options.report, "Also write a page with the table, the roofline and the course of every search")
      .Type("FILE.html");
  line.Add("--target", options.target, "The CPU, as in vm-compile").ShowDefault();
  line.Add("--input-shape", options.input_shapes, "NAME=DIM,DIM,...: fix or name an input's dimensions").OneEach();
  line.Add("--dim", options.dims, "NAME=VALUE or NAME=MIN..MAX: fix or bound a symbolic dimension").OneEach();
  line.Add("--sizes", options.sizes,
           "NAME=SIZE,...[:WEIGHT]: measure kernels with symbolic dimensions at these sizes; of several, times are "
           "means "
           "by weight")
      .OneEach();
  line.Add("-o,--output", options.output, "Where db merge and db prune write").Type("FILE");
  return tool.Run(argc, argv, [&] { return Tuning(tool, options).Run(); });
}
