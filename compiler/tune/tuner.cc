// The search over tasks, and the comparisons at its end.
#include "compiler/tune/tuner.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <utility>

#include "compiler/kernels/kernel_cache.h"
#include "compiler/tune/task_program.h"
#include "compiler/tune/task_search.h"
#include "runtime/version.h"

namespace ingot::tune {
namespace {

// Of which nothing was learnt, so that it is measured again.
bool WasLost(const Record& record) { return record.outcome == OutcomeName(Outcome::kLostRunner); }

Record RecordFor(Record::Kind kind, const TuneOptions& options) {
  Record record;
  record.kind = kind;
  record.target = kernels::TargetText(options.target);
  record.tool = std::string("ingot ") + kVersion;
  record.threads = options.measure.threads;
  return record;
}

void AddOutcome(const Measurement& measurement, const RunnerPool& pool, Record& record) {
  record.outcome = OutcomeName(measurement.outcome);
  record.error = measurement.error;
  record.seconds = measurement.seconds;
  record.default_seconds = measurement.rival_seconds;
  if (measurement.runner >= 0) {
    const RunnerMachine machine = pool.machine(measurement.runner);
    record.machine = machine.architecture + " " + machine.cpu;
  }
}

Record RecordOf(const ModelPrograms& programs, const TuneOptions& options) {
  Record record = RecordFor(programs.kind, options);
  record.model = programs.key;
  record.set = programs.set;
  record.graph = programs.graph;
  record.result = programs.result;
  record.sizes = SizesOf(programs.cases);
  return record;
}

// The candidate with the inputs of each case, one after the other, with nothing else on the machine.
Result<Measurement> MeasureCases(Candidate candidate, const std::vector<MeasuredCase>& cases, RunnerPool& pool) {
  std::vector<Measurement> measurements;
  for (const MeasuredCase& one : cases) {
    candidate.inputs = one.inputs;
    pool.Submit(candidate);
    INGOT_ASSIGN_OR_RETURN(Measurement measurement, pool.Next());
    measurements.push_back(std::move(measurement));
  }
  return Combined(cases, measurements);
}

class TuningRun {
 public:
  TuningRun(const TuneOptions& options, RunnerPool& pool, DatabaseFile& database, const std::atomic<bool>& stop,
            const std::function<void(const TuneProgress&)>& progress)
      : options_(options),
        pool_(pool),
        database_(database),
        stop_(stop),
        progress_(progress),
        target_text_(kernels::TargetText(options.target)),
        random_(options.seed) {}

  Result<std::vector<TaskResult>> Run(const std::vector<Task>& tasks) {
    tasks_ = tasks;
    for (Task& task : tasks_) {
      task.threads = options_.measure.threads;
      INGOT_RETURN_IF_ERROR(Begin(task));
    }
    INGOT_RETURN_IF_ERROR(MeasureDefaults());
    INGOT_RETURN_IF_ERROR(SearchAll());
    for (size_t i = 0; i < searches_.size() && !stop_; ++i) {
      Show("comparing " + searches_[i]->task().names[0], static_cast<int64_t>(i + 1),
           static_cast<int64_t>(searches_.size()));
      INGOT_RETURN_IF_ERROR(CompareLeader(*searches_[i]));
    }
    std::vector<TaskResult> results;
    for (const auto& search : searches_) results.push_back(ResultOf(*search));
    return results;
  }

 private:
  // ---- Tasks
  Status Begin(const Task& task) {
    searches_.push_back(std::make_unique<TaskSearch>(task, options_.target));
    TaskSearch& search = *searches_.back();
    if (task.choices.empty()) search.note = "its rules choose nothing";
    if (task.weight == 0) search.note = "no graph function calls it";
    if (!search.note.empty()) return Status();
    Result<std::vector<MeasuredCase>> cases = KernelCases(task, options_.sizes);
    if (!cases.ok()) {
      search.note = cases.status().message();
      return Status();
    }
    search.cases = *std::move(cases);
    for (MeasuredCase& each : search.cases) {
      for (MeasuredInput& input : each.inputs) input.is_warm &= !options_.all_cold && !IsHot();
    }
    Result<MeasuredProgram> program = KernelProgram(task, options_.target, options_.opt_level, {});
    if (!program.ok()) {
      search.note = program.status().message();
      return Status();
    }
    search.default_program = *std::move(program);
    for (const Record& record : database_.database().records()) {
      if (!IsOf(record, search) || record.kind != Record::Kind::kTrial || WasLost(record)) continue;
      if (!IsOfThisBuild(record, search)) continue;
      AddTrial(search, {{record.choices, record.trace}, record.fastest_seconds()}, record);
    }
    return Status();
  }

  // Of the task, and measured as this run measures.
  bool IsOf(const Record& record, const TaskSearch& search) const {
    return record.task == search.task().key && record.target == target_text_ && record.sizes == SizesOf(search.cases) &&
           record.threads == options_.measure.threads && record.is_hot == IsHot() &&
           record.warm == WarmInputsOf(search.cases);
  }
  bool IsHot() const { return options_.measure.flush_bytes == 0; }

  // The rules of another version may make other schedules of the same choices.
  static bool IsOfThisBuild(const Record& record, const TaskSearch& search) {
    const Result<Point> point = search.space().PointOf(record.choices);
    return point.ok() && point->trace == record.trace;
  }

  static void AddTrial(TaskSearch& search, Trial trial, const Record& record) {
    if (!trial.point.choices.empty()) return search.Add(std::move(trial));
    search.SetDefault(trial);
    if (!record.is_ok()) search.note = "the default schedule was not measured: " + record.outcome;
  }

  TaskResult ResultOf(const TaskSearch& search) const {
    TaskResult result;
    result.trials = search.num_trials();
    result.failed = search.num_failed();
    result.new_trials = search.new_trials;
    result.default_seconds = search.default_seconds();
    result.best_seconds = search.best_seconds();
    for (const Record& record : database_.database().records()) {
      if (!IsOf(record, search)) continue;
      if (record.kind == Record::Kind::kTrial) result.records.push_back(&record);
      if (record.kind != Record::Kind::kComparison) continue;
      result.comparison = &record;
      if (!record.is_faster() || !IsOfThisBuild(record, search)) continue;
      if (result.best == nullptr || record.ratio().median < result.best->ratio().median) result.best = &record;
    }
    result.note = search.note;
    return result;
  }

  void Show(const std::string& step, int64_t done, int64_t total) const {
    if (progress_) progress_({done, total, step});
  }

  // ---- The search
  Status MeasureDefaults() {
    int64_t done = 0;
    for (const auto& search : searches_) {
      if (stop_) return FinishPending();
      Show("default of " + search->task().names[0], ++done, static_cast<int64_t>(searches_.size()));
      if (!search->note.empty() || search->default_seconds() > 0) continue;
      INGOT_ASSIGN_OR_RETURN(Point usual, search->space().Default());
      Submit(*search, std::move(usual), search->default_program, TestFault::kNone);
      while (pool_.num_pending() >= pool_.num_runners()) INGOT_RETURN_IF_ERROR(TakeTrial());
    }
    return FinishPending();
  }

  Status FinishPending() {
    while (pool_.num_pending() > 0) INGOT_RETURN_IF_ERROR(TakeTrial());
    return Status();
  }

  TaskSearch* NextTask() {
    TaskSearch* next = nullptr;
    for (const auto& search : searches_) {
      const bool is_over = !search->note.empty() || search->default_seconds() == 0 || ended_.contains(search.get()) ||
                           search->num_trials() >= options_.trials_per_task ||
                           search->since_better() >= options_.early_stop;
      if (is_over) continue;
      if (next == nullptr || search->ExpectedGain() > next->ExpectedGain()) next = search.get();
    }
    return next;
  }

  Status SearchAll() {
    const auto start = std::chrono::steady_clock::now();
    const auto has_time = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < options_.seconds;
    };
    int64_t trials = 0;
    while (!stop_ && trials < options_.trials && has_time()) {
      TaskSearch* search = NextTask();
      if (search == nullptr) break;
      if (options_.model != nullptr && options_.search == Search::kEvolution && search->WantsRanking()) {
        INGOT_RETURN_IF_ERROR(Rank(*search));
      }
      std::optional<Point> point = search->Next(options_.search, options_.trials_per_task, random_);
      if (!point) {
        ended_.insert(search);
        continue;
      }
      Show("trials: " + Standing(*search), trials, options_.trials);
      INGOT_RETURN_IF_ERROR(Try(*search, *std::move(point), trials++));
      while (pool_.num_pending() >= pool_.num_runners()) INGOT_RETURN_IF_ERROR(TakeTrial());
    }
    INGOT_RETURN_IF_ERROR(FinishPending());
    Show("trials", trials, trials);
    return Status();
  }

  // Fits the model to what was measured of all tasks.
  Status Rank(TaskSearch& search) {
    std::vector<CostModel::Group> groups;
    for (const auto& each : searches_) {
      CostModel::Group group = each->Measured();
      if (group.seconds.size() > 1) groups.push_back(std::move(group));
    }
    INGOT_RETURN_IF_ERROR(options_.model->Fit(groups));
    return search.Rank(*options_.model, random_);
  }

  // "dense 35.2 GFLOP/s, model 812.0 us": the task's fastest trial, and what the fastest of all tasks are together.
  std::string Standing(const TaskSearch& of) const {
    double model = 0;
    for (const auto& search : searches_) model += static_cast<double>(search->task().weight) * search->best_seconds();
    char text[96];
    std::snprintf(text, sizeof text, " %.4g GFLOP/s, model %.1f us", of.task().flops / of.best_seconds() * 1e-9,
                  model * 1e6);
    return of.task().names[0] + text;
  }

  // Compiles the point and submits it; one that the compiler refuses is a record as well.
  Status Try(TaskSearch& search, Point point, int64_t trial) {
    ++search.new_trials;
    Result<MeasuredProgram> program = KernelProgram(search.task(), options_.target, options_.opt_level, point.choices);
    if (program.ok()) {
      const TestFault fault = options_.fault ? options_.fault(trial) : TestFault::kNone;
      Submit(search, std::move(point), *std::move(program), fault);
      return Status();
    }
    Record record = RecordOf(Record::Kind::kTrial, search, point);
    record.outcome = Record::kNotCompiled;
    record.error = program.status().message();
    AddTrial(search, {std::move(point), 0}, record);
    return database_.Append(std::move(record)).status();
  }

  void Submit(TaskSearch& search, Point point, MeasuredProgram program, TestFault fault) {
    Record record = RecordOf(Record::Kind::kTrial, search, point);
    record.program = ProgramHash(program);
    Candidate candidate = CandidateOf(search, std::move(program));
    candidate.options.fault = fault;
    const auto running = std::make_shared<Running>(Running{&search, std::move(record), {}});
    for (const MeasuredCase& one : search.cases) {
      candidate.id = next_id_++;
      candidate.inputs = one.inputs;
      running_.emplace(candidate.id, running);
      running->ids.push_back(candidate.id);
      pool_.Submit(candidate);
    }
  }

  // Waits for one of those that were submitted: for one of the cases of a trial.
  Status TakeTrial() {
    INGOT_ASSIGN_OR_RETURN(const Measurement measurement, pool_.Next());
    const std::shared_ptr<Running> running = running_.extract(measurement.id).mapped();
    running->measured.emplace(measurement.id, measurement);
    if (running->measured.size() < running->ids.size()) return Status();
    std::vector<Measurement> measurements;
    for (const uint64_t id : running->ids) measurements.push_back(running->measured.at(id));
    Record& record = running->record;
    AddOutcome(Combined(running->search->cases, measurements), pool_, record);
    AddTrial(*running->search, {{record.choices, record.trace}, record.fastest_seconds()}, record);
    return database_.Append(std::move(record)).status();
  }

  Record RecordOf(Record::Kind kind, const TaskSearch& search, const Point& point) const {
    Record record = RecordFor(kind, options_);
    record.task = search.task().key;
    record.function = TaskText(search.task().function);
    record.choices = point.choices;
    record.trace = point.trace;
    record.sizes = SizesOf(search.cases);
    record.is_hot = IsHot();
    record.warm = WarmInputsOf(search.cases);
    return record;
  }

  // Without inputs.
  Candidate CandidateOf(const TaskSearch& search, MeasuredProgram program) const {
    Candidate candidate;
    candidate.program = std::move(program);
    candidate.reference = search.default_program;
    candidate.options = options_.measure;
    return candidate;
  }

  // ---- Comparisons
  // One comparison for the task: of its leader.
  Status CompareLeader(const TaskSearch& search) {
    std::vector<const Trial*> leaders = search.Leaders();
    if (leaders.size() > static_cast<size_t>(options_.leaders)) leaders.resize(static_cast<size_t>(options_.leaders));
    if (leaders.empty()) return Status();
    const Point* leader = &leaders.front()->point;
    double smallest = 1;
    for (const Trial* trial : leaders) {
      if (leaders.size() == 1 || stop_) break;
      INGOT_ASSIGN_OR_RETURN(const Record* screened, InTurns(Record::Kind::kScreening, search, trial->point));
      if (!screened->is_ok() || screened->ratio().median >= smallest) continue;
      leader = &trial->point;
      smallest = screened->ratio().median;
    }
    if (stop_ || (leaders.size() > 1 && smallest >= 1)) return Status();
    return InTurns(Record::Kind::kComparison, search, *leader).status();
  }

  // The record of this point and the default in turns; made now where there is none.
  Result<const Record*> InTurns(Record::Kind kind, const TaskSearch& search, const Point& point) {
    for (const Record& record : database_.database().records()) {
      if (record.kind == kind && IsOf(record, search) && record.trace == point.trace && !WasLost(record)) {
        return &record;
      }
    }
    INGOT_ASSIGN_OR_RETURN(MeasuredProgram program,
                           KernelProgram(search.task(), options_.target, options_.opt_level, point.choices));
    Record record = RecordOf(kind, search, point);
    record.program = ProgramHash(program);
    Candidate candidate = CandidateOf(search, std::move(program));
    candidate.rival = search.default_program;
    candidate.options.repeats =
        kind == Record::Kind::kScreening ? options_.screening_repeats : options_.comparison_repeats;
    candidate.options.timeout_seconds =
        TurnsTimeout(options_.measure, candidate.options.repeats, search.default_seconds() + search.SecondsOf(point));
    INGOT_ASSIGN_OR_RETURN(const Measurement measurement, MeasureCases(std::move(candidate), search.cases, pool_));
    AddOutcome(measurement, pool_, record);
    return database_.Append(std::move(record));
  }

  // A trial that is being measured.
  struct Running {
    TaskSearch* search;
    Record record;
    std::vector<uint64_t> ids;  // of its candidates, by cases
    std::map<uint64_t, Measurement> measured = {};
  };

  const TuneOptions& options_;
  RunnerPool& pool_;
  DatabaseFile& database_;
  const std::atomic<bool>& stop_;
  const std::function<void(const TuneProgress&)>& progress_;
  const std::string target_text_;
  std::mt19937_64 random_;
  std::vector<Task> tasks_;
  std::vector<std::unique_ptr<TaskSearch>> searches_;     // of the tasks
  std::set<const TaskSearch*> ended_;                     // whose spaces give nothing new
  std::map<uint64_t, std::shared_ptr<Running>> running_;  // by the candidate's number
  uint64_t next_id_ = 1;
};

}  // namespace

double TurnsTimeout(const MeasureOptions& options, int repeats, double seconds_of_both) {
  constexpr int kCallsBefore = 8;  // of both, and of the reference, before the first repeat
  const double of_repeat = std::max(seconds_of_both, 2 * options.repeat_seconds);
  return 4 * (options.timeout_seconds + (repeats + kCallsBefore) * of_repeat);
}

Result<std::vector<TaskResult>> Tune(const std::vector<Task>& tasks, const TuneOptions& options, RunnerPool& pool,
                                     DatabaseFile& database, const std::atomic<bool>& stop,
                                     const std::function<void(const TuneProgress&)>& progress) {
  return TuningRun(options, pool, database, stop, progress).Run(tasks);
}

const Record* FindModelComparison(const Database& database, const std::string& key, const std::string& target,
                                  const TunedSet& set, const std::vector<Sizes>& sizes) {
  for (const Record& record : database.records()) {
    const bool is_of = record.kind == Record::Kind::kModel && record.model == key && record.target == target;
    const bool is_at = record.sizes.empty() || record.sizes == sizes;
    if (is_of && is_at && record.set == set && !WasLost(record)) return &record;
  }
  return nullptr;
}

const Record* FindGraphComparison(const Database& database, const ModelPrograms& programs, const TuneOptions& options) {
  const std::string target = kernels::TargetText(options.target);
  for (const Record& record : database.records()) {
    const bool is_of = record.kind == programs.kind && record.model == programs.key && record.target == target &&
                       record.graph == programs.graph && record.result == programs.result;
    const bool is_at =
        (record.sizes.empty() || record.sizes == options.sizes) && record.threads == options.measure.threads;
    if (is_of && is_at && !WasLost(record)) return &record;
  }
  return nullptr;
}

Result<const Record*> RecordUncompiled(const ModelPrograms& programs, const Status& why, const TuneOptions& options,
                                       DatabaseFile& database) {
  Record record = RecordOf(programs, options);
  record.outcome = Record::kNotCompiled;
  record.error = why.message();
  return database.Append(std::move(record));
}

Result<const Record*> CompareModel(const ModelPrograms& programs, const TuneOptions& options, RunnerPool& pool,
                                   DatabaseFile& database) {
  Record record = RecordOf(programs, options);
  record.program = ProgramHash(programs.tuned);
  Candidate candidate;
  candidate.program = programs.tuned;
  candidate.rival = candidate.reference = programs.untuned;
  // Sums in another order, which all layers behind pass on.
  candidate.tolerance = {1e-3, 1e-4};
  candidate.options = options.measure;
  candidate.options.flush_bytes = 0;
  candidate.options.warmup_seconds = 0.2;
  const bool is_screening = programs.kind == Record::Kind::kGraphScreening;
  candidate.options.repeats = is_screening ? options.screening_repeats : options.comparison_repeats;
  candidate.options.timeout_seconds = options.model_timeout_seconds;
  candidate.options.max_memory_bytes = 0;
  INGOT_ASSIGN_OR_RETURN(const Measurement measurement, MeasureCases(std::move(candidate), programs.cases, pool));
  AddOutcome(measurement, pool, record);
  return database.Append(std::move(record));
}

}  // namespace ingot::tune
