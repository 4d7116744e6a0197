// What a run of the tuner found, for people: a table as text, and a page of HTML that needs nothing beside it.
#pragma once

#include <string>
#include <vector>

#include "compiler/target/target.h"
#include "compiler/tune/database.h"
#include "compiler/tune/task.h"
#include "compiler/tune/tuner.h"

namespace ingot::tune {

struct TuningReport {
  std::string title;  // the model's name
  const Target& target;
  const std::vector<Task>& tasks;
  const std::vector<TaskResult>& results;  // in their order
  const Record* model = nullptr;           // the comparison of the whole model; null: there is none
  std::string note;                        // why there is none
  // Of choices of the whole file: those that were screened, then compared; what a compilation takes, and why nothing was
  // compared.
  std::vector<const Record*> graph = {};
  schedule::Chosen graph_taken = {};
  std::string graph_note = {};
};

// Mean, median and standard deviation; of no times: zeros.
struct Spread {
  double mean = 0, median = 0, deviation = 0;
};
Spread SpreadOf(const std::vector<double>& values);

// A task's times: of its accepted comparison, else the default's in the search for both; 0: not measured.
struct TaskTimes {
  double default_seconds = 0, best_seconds = 0;
};
TaskTimes TimesOf(const TaskResult& result);

// "1.102x [1.080, 1.125]" of a record that is ok: how many times as fast as the default, and the interval.
std::string GainText(const Record& record);

// A line for each choice of the whole file that was tried, where there are such.
std::string GraphTable(const TuningReport& report);
// A line for each task: weight, FLOP, default, best, rate, gain, trials, kernel. Then what they are together, and the
// whole model before and after.
std::string ReportTable(const TuningReport& report);

// The table, the roofline, and of each task that was tried how its search went and the schedule that was found.
std::string ReportPage(const TuningReport& report);

}  // namespace ingot::tune
