// Tuner: searches the spaces of tasks, measures on runners, and appends what it finds to a database.
//
//   the default schedule of every task, first
//   until the budget is used up or no task has anything left:
//     the task with the largest expected gain of the model's time (tuner.cc says how that is estimated)
//     a point of its space: at random, or a neighbour of one of its fastest points; with a cost model, of many such
//     ones those that it takes for the fastest, fitted anew to all that was measured
//     measured beside the reference results of the default schedule; a record, whatever comes of it
//   then one task after the other, with nothing else on the machine:
//     if several trials were faster than the default: each and the default in turns, which gives the leader
//     the leader and the default in turns, once, on fresh measurements: a record with the interval of the ratio of
//     times, which alone makes a schedule the best of its task (Record::is_faster)
//
// What the database holds already is not measured again: neither trials, nor comparisons of the same schedules. So a
// run that was interrupted anywhere goes on where it was, and a leader that was not found faster is not asked again.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compiler/target/target.h"
#include "compiler/tune/cost_model.h"
#include "compiler/tune/database.h"
#include "compiler/tune/measure/runner_pool.h"
#include "compiler/tune/task.h"

namespace ingot::tune {

enum class Search { kEvolution, kRandom, kGrid };

struct TuneOptions {
  Target target;
  int opt_level = 2;
  Search search = Search::kEvolution;
  CostModel* model = nullptr;     // borrowed; which of many points evolution tries; null: whichever it draws
  int64_t trials = 64;            // in all, default schedules and those that are in the database not counted
  int64_t trials_per_task = 256;  // those in the database counted
  int64_t early_stop = 64;        // a task ends after so many trials without a better one
  double seconds = 1e9;           // for the search; comparisons come on top
  int leaders = 4;                // of each task, among which turns with the default choose
  int screening_repeats = 11;
  int comparison_repeats = 31;
  double model_timeout_seconds = 600;
  bool all_cold = false;     // inputs of kernels are as cold as weights, not in the caches as in the network
  std::vector<Sizes> sizes;  // with which kernels are measured whose sizes are symbols; empty: they are not tuned
  uint64_t seed = 1;
  MeasureOptions measure;
  std::function<TestFault(int64_t trial)> fault;  // for tests: what a trial does wrong, counted from 0; may be null
};

struct TaskResult {
  int64_t trials = 0, failed = 0;      // of the search, those in the database too
  int64_t new_trials = 0;              // of this run
  double default_seconds = 0;          // the fastest repeat in the search; 0: not measured
  double best_seconds = 0;             // of the fastest trial
  const Record* comparison = nullptr;  // the last one; null: none
  const Record* best = nullptr;        // null: the default stays
  std::vector<const Record*> records;  // the default schedule's and those of all trials, as the database has them
  std::string note;                    // why it was not tuned; empty: it was
};

struct TuneProgress {
  int64_t done = 0, total = 0;
  std::string step;
};

// After how long a comparison in turns is given up: four times a trial's time, and four times what its calls take if
// both take so long as they were measured to, so that a slow default does not keep a faster schedule away.
double TurnsTimeout(const MeasureOptions& options, int repeats, double seconds_of_both);

// `stop`: finish the candidates that run, compare nothing, and return. Results are in the order of the tasks.
Result<std::vector<TaskResult>> Tune(const std::vector<Task>& tasks, const TuneOptions& options, RunnerPool& pool,
                                     DatabaseFile& database, const std::atomic<bool>& stop,
                                     const std::function<void(const TuneProgress&)>& progress);

// A whole model with what tuning chose and without: the best schedules of its tasks, or choices of its graph passes.
struct ModelPrograms {
  Record::Kind kind = Record::Kind::kModel;
  std::string key;         // ModelKey, of the usual choices
  TunedSet set;            // of kModel
  schedule::Chosen graph;  // of the graph's kinds: what was chosen, and
  std::string result;      // the ModelKey of what it gave
  MeasuredProgram tuned, untuned;
  std::vector<MeasuredCase> cases;
};
// The comparison that the database has of this model and set, at these sizes if the model has symbols.
const Record* FindModelComparison(const Database& database, const std::string& key, const std::string& target,
                                  const TunedSet& set, const std::vector<Sizes>& sizes);
// The same of choices of graph passes, of this kind and measured with so many threads.
const Record* FindGraphComparison(const Database& database, const ModelPrograms& programs, const TuneOptions& options);
// Appends that the tuned program could not be compiled.
Result<const Record*> RecordUncompiled(const ModelPrograms& programs, const Status& why, const TuneOptions& options,
                                       DatabaseFile& database);
// Compares the two in turns and appends the record. Nothing is done about the caches: the model's calls follow each
// other, as in use.
Result<const Record*> CompareModel(const ModelPrograms& programs, const TuneOptions& options, RunnerPool& pool,
                                   DatabaseFile& database);

}  // namespace ingot::tune
