// Tuning: what a run measures and keeps, what it does with candidates that go wrong, and how it goes on where another
// one ended.
#include "compiler/tune/tuner.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "compiler/kernels/kernel_sources.h"
#include "compiler/schedule/default_schedule.h"
#include "compiler/script/parser.h"
#include "compiler/tune/task_program.h"
#include "compiler/tune/task_search.h"
#include "tests/compiler/schedule/functions.h"

namespace ingot::tune {
namespace {

const Target& Native() {
  static const Target target = ParseTarget("cpu:native")->variants.front();
  return target;
}

Task TaskFor(int64_t rows, int64_t weight = 1) {
  Task task;
  task.function =
      kernels::WithParamsByPlace(schedule::testing::Dense(ir::Int64(rows), ir::Int64(32), ir::Int64(64), true));
  task.key = TaskKey(task.function);
  task.names = {"dense" + std::to_string(rows)};
  task.weight = weight;
  task.choices = schedule::ApplyDefaultSchedule(task.function, Native())->choices;
  return task;
}

// Quick, and without a verdict on times.
TuneOptions Options(int64_t trials) {
  TuneOptions options;
  options.target = Native();
  options.trials = trials;
  options.opt_level = 1;
  options.screening_repeats = 3;
  options.measure.warmup_seconds = 0;
  options.measure.repeat_seconds = 1e-5;
  options.measure.repeats = 3;
  options.measure.flush_bytes = 0;
  options.measure.timeout_seconds = 2;
  options.measure.max_memory_bytes = 256 << 20;
  return options;
}

// A database in a file of its own, and a runner.
class TunerFixture {
 public:
  TunerFixture()
      : path_(std::filesystem::temp_directory_path() / ("ingot_tuner_" + std::to_string(::getpid()) + ".jsonl")) {
    std::filesystem::remove(path_);
    RunnerPoolOptions options;
    options.worker = INGOT_MEASURE_WORKER;
    pool_ = *RunnerPool::Create({"{program}"}, options);
  }
  ~TunerFixture() { std::filesystem::remove(path_); }

  std::vector<TaskResult> Run(const std::vector<Task>& tasks, const TuneOptions& options) {
    Result<DatabaseFile> file = DatabaseFile::Open(path_.string());
    REQUIRE_MESSAGE(file.ok(), file.status().message());
    const std::atomic<bool> stop{false};
    Result<std::vector<TaskResult>> results = Tune(tasks, options, *pool_, *file, stop, nullptr);
    REQUIRE_MESSAGE(results.ok(), results.status().message());
    for (TaskResult& result : *results) {  // these are the database's
      result.comparison = result.best = nullptr;
      result.records.clear();
    }
    return *std::move(results);
  }
  Database Load() const { return *Database::Load(path_.string()); }

 private:
  std::filesystem::path path_;
  std::unique_ptr<RunnerPool> pool_;
};

TEST_CASE_FIXTURE(TunerFixture, "tuner: defaults of all tasks first, then trials, each once; another run goes on") {
  const std::vector<Task> tasks{TaskFor(24), TaskFor(40), TaskFor(56, 0)};
  const std::vector<TaskResult> first = Run(tasks, Options(6));
  CHECK(first[0].new_trials + first[1].new_trials == 6);
  CHECK(first[0].default_seconds > 0);
  CHECK(first[0].best_seconds <= first[0].default_seconds);
  CHECK(first[2].note == "no graph function calls it");
  const std::vector<TaskResult> second = Run(tasks, Options(4));
  CHECK(second[0].new_trials + second[1].new_trials == 4);
  CHECK(second[0].trials + second[1].trials == 10);
  CHECK(second[0].default_seconds == first[0].default_seconds);
  const Database database = Load();
  std::set<std::tuple<Record::Kind, std::string, std::string>> seen;
  int64_t trials = 0;
  for (const Record& record : database.records()) {
    CHECK(seen.insert({record.kind, record.task, record.trace}).second);
    if (record.kind == Record::Kind::kTrial && ++trials <= 2) CHECK(record.choices.empty());
  }
  CHECK(trials == 12);
}

TEST_CASE_FIXTURE(TunerFixture, "tuner: what was measured with other caches, or by other threads, does not count") {
  const Task task = TaskFor(24);
  Run({task}, Options(2));
  TuneOptions cold = Options(1), threaded = Options(0);
  cold.measure.flush_bytes = 1 << 20;
  threaded.measure.threads = 2;
  CHECK(Run({task}, cold)[0].trials == 1);
  CHECK(Run({task}, threaded)[0].trials == 0);
  CHECK(Run({task}, Options(0))[0].trials == 2);
  const Database database = Load();
  CHECK(std::ranges::count(database.records(), true, &Record::is_hot) > 3);
  CHECK(std::ranges::count_if(database.records(), [](const Record& record) { return record.choices.empty(); }) == 3);
}

TEST_CASE_FIXTURE(TunerFixture, "tuner: inputs that are warm are measured so, and are records of their own") {
  Task task = TaskFor(24), warm = task;
  warm.warm = {true, false, false, false};
  TuneOptions cold = Options(1), all_cold = Options(0);
  cold.measure.flush_bytes = all_cold.measure.flush_bytes = 1 << 20;
  all_cold.all_cold = true;
  CHECK(Run({warm}, cold)[0].trials == 1);
  CHECK(Run({warm}, all_cold)[0].trials == 0);
  CHECK(Run({task}, all_cold)[0].default_seconds > 0);
  Run({warm}, Options(0));  // hot: all of them are in the caches
  using Caches = std::pair<bool, std::vector<int64_t>>;
  std::set<Caches> defaults;
  const Database database = Load();
  for (const Record& record : database.records()) {
    if (record.kind == Record::Kind::kTrial && record.choices.empty()) {
      defaults.insert({record.is_hot, record.warm});
    }
  }
  CHECK(defaults == std::set<Caches>{{false, {}}, {false, {0}}, {true, {}}});
}

// The one task of a module whose "main" does this with an x and some weights w of so many numbers.
Task TaskOfCalls(int64_t count, const std::string& calls) {
  std::string weights;
  for (int64_t i = 0; i < count; ++i) weights += (i == 0 ? "" : ", ") + std::to_string(i % 7) + ".0";
  std::string text = R"(@I.ir_module
class Module:
    @T.prim_func(private=True)
    def add(x: T.Buffer((N,), "float32"), y: T.Buffer((N,), "float32"), z: T.Buffer((N,), "float32")):
        for i in range((N)):
            with T.block("z"):
                v = T.axis.spatial(N, i)
                z[v] = x[v] + y[v]

    @R.function
    def main(x: R.Tensor((N,), dtype="float32")):
        cls = Module
        with R.dataflow():
            w = R.const([W], "float32")
)" + calls + R"(            R.output(gv)
        return gv
)";
  const std::pair<std::string, std::string> names[] = {{"OUT", "out_ty=R.Tensor((N,), dtype=\"float32\")"},
                                                       {"N,", std::to_string(count) + ","},
                                                       {"(N)", "(" + std::to_string(count) + ")"},
                                                       {"[W]", "[" + weights + "]"}};
  for (const auto& [name, with] : names) {
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += with.size()) {
      text.replace(at, name.size(), with);
    }
  }
  const Result<ir::IRModule> module = script::ParseModule(text, "case.py");
  REQUIRE_MESSAGE(module.ok(), module.status().message());
  const Result<std::vector<Task>> tasks = TasksOf(*module, Native());
  REQUIRE_MESSAGE(tasks.ok(), tasks.status().message());
  REQUIRE(tasks->size() == 1);
  return tasks->at(0);
}

TEST_CASE("tasks: what some call gives a weight for is not warm") {
  const Task task = TaskOfCalls(4,
                                "            a = R.call_tir(cls.add, (x, w), OUT)\n"
                                "            gv = R.call_tir(cls.add, (a, a), OUT)\n");
  CHECK(task.weight == 2);
  CHECK(task.warm == std::vector<bool>{true, false, true});
  const Result<std::vector<MeasuredCase>> cases = KernelCases(task, {});
  REQUIRE_MESSAGE(cases.ok(), cases.status().message());
  CHECK(WarmInputsOf(*cases) == std::vector<int64_t>{0});  // a result is never warm
}

TEST_CASE_FIXTURE(TunerFixture, "tuner: what reads warm inputs takes less time") {
  const Task task = TaskOfCalls(1 << 15, "            gv = R.call_tir(cls.add, (x, x), OUT)\n");
  TuneOptions options = Options(0);
  options.measure.flush_bytes = MeasureOptions::kEveryCache;
  options.measure.repeats = 25;
  const double warm = Run({task}, options)[0].default_seconds;
  options.all_cold = true;
  CHECK(warm > 0);
  CHECK(warm < Run({task}, options)[0].default_seconds);
}

TEST_CASE_FIXTURE(TunerFixture, "tuner: the search goes by the fastest repeats") {
  const Task task = TaskFor(24);
  const TaskResult result = Run({task}, Options(0))[0];
  const Database database = Load();
  REQUIRE(database.records().size() == 1);
  const std::vector<double>& seconds = database.records()[0].seconds;
  REQUIRE(seconds.size() == 3);
  CHECK(result.default_seconds == *std::ranges::min_element(seconds));
  CHECK(result.best_seconds == result.default_seconds);
}

TEST_CASE_FIXTURE(TunerFixture, "tuner: what was measured is compiled again to the same bytes") {
  const Task task = TaskFor(24);
  Run({task}, Options(5));
  const Database database = Load();
  for (const Record& record : database.records()) {
    const Result<Record> read = ParseRecord(RecordLine(record));
    REQUIRE(read.ok());
    const auto program = KernelProgram(task, Native(), 1, read->choices);
    REQUIRE_MESSAGE(program.ok(), program.status().message());
    CHECK(ProgramHash(*program) == record.program);
  }
}

TEST_CASE_FIXTURE(TunerFixture, "tuner: candidates that crash, hang, eat memory and give wrong numbers are records") {
  TuneOptions options = Options(6);
  options.measure.timeout_seconds = 1;
  options.fault = [](int64_t trial) { return trial < 5 ? static_cast<TestFault>(trial) : TestFault::kNone; };
  const std::vector<TaskResult> results = Run({TaskFor(24)}, options);
  CHECK(results[0].trials == 6);
  CHECK(results[0].failed == 4);
  std::vector<std::string> outcomes;
  const Database database = Load();
  for (const Record& record : database.records()) {
    if (record.kind != Record::Kind::kTrial) continue;
    outcomes.push_back(record.outcome);
    CHECK(record.error.empty() == record.is_ok());
  }
  CHECK(outcomes == std::vector<std::string>{"ok", "ok", "crashed", "hung", "out of memory", "wrong result", "ok"});
}

TEST_CASE_FIXTURE(TunerFixture, "tuner: one comparison for each task, also of tasks without trials in this run") {
  const std::vector<Task> tasks{TaskFor(24), TaskFor(40)};
  Run(tasks, Options(8));
  const auto comparisons = [&] {
    std::map<std::string, int> count;
    const Database database = Load();
    for (const Record& record : database.records()) count[record.task] += record.kind == Record::Kind::kComparison;
    return count;
  };
  const auto before = comparisons();
  for (const auto& [task, count] : before) CHECK(count <= 1);
  // A run that ended before its comparisons: one without any, over trials that name a leader.
  Run(tasks, Options(0));
  CHECK(comparisons() == before);  // nothing new was tried, and nobody is asked twice
}

Trial TrialOf(const std::string& trace, double seconds) { return {{{{"x", 1}}, trace}, seconds}; }

TEST_CASE("tuner: a grid goes on behind all that was measured") {
  Task task = TaskFor(96);
  TaskSearch search(task, Native());
  const std::vector<Point> measured = search.space().Grid(60);
  REQUIRE(measured.size() == 60);
  for (const Point& point : measured) search.Add({point, 1e-3});
  std::mt19937_64 random(1);
  const std::optional<Point> next = search.Next(Search::kGrid, 70, random);
  REQUIRE(next);
  CHECK(std::ranges::find(measured, next->trace, &Point::trace) == measured.end());
}

TEST_CASE("tuner: a comparison with a slow default has the time that it needs") {
  MeasureOptions options;
  options.timeout_seconds = 10;
  options.repeat_seconds = 0.01;
  CHECK(TurnsTimeout(options, 31, 0) > 40);
  CHECK(TurnsTimeout(options, 31, 0) < 45);
  CHECK(TurnsTimeout(options, 31, 2) > 2 * 31 * 2);  // with a machine that is half as fast meanwhile
  const Task task = TaskFor(24);
  TaskSearch search(task, Native());
  search.Add(TrialOf("slow", 2));
  CHECK(search.SecondsOf({{}, "slow"}) == 2);
  CHECK(search.SecondsOf({{}, "another"}) == 0);
}

TEST_CASE("tuner: expected gains come from measured times, weights and recent improvements") {
  const Task light = TaskFor(24, 1), heavy = TaskFor(24, 10);
  TaskSearch a(light, Native()), b(heavy, Native());
  for (TaskSearch* search : {&a, &b}) search->SetDefault({{{}, "default"}, 1e-3});
  CHECK(b.ExpectedGain() == doctest::Approx(10 * a.ExpectedGain()));
  // Trials that bring nothing lower it, one that brings something raises it.
  const double at_first = a.ExpectedGain();
  for (int i = 0; i < 8; ++i) a.Add(TrialOf("worse" + std::to_string(i), 2e-3));
  const double without = a.ExpectedGain();
  CHECK(without < at_first);
  a.Add(TrialOf("better", 0.5e-3));
  CHECK(a.ExpectedGain() > without);
  CHECK(a.since_better() == 0);
  CHECK(a.best_seconds() == 0.5e-3);
  a.Add(TrialOf("failed", 0));
  CHECK(a.num_failed() == 1);
  REQUIRE(a.Leaders().size() == 1);
  CHECK(a.Leaders()[0]->point.trace == "better");
}

}  // namespace
}  // namespace ingot::tune
