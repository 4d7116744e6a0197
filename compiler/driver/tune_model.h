// Tunes a model: its tasks one by one, and then the whole of it with what was found and without, which decides whether
// a compilation may take it (driver/tuned_schedules.h).
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "compiler/driver/options.h"
#include "compiler/ir/module.h"
#include "compiler/tune/tuner.h"

namespace ingot::driver {

struct ModelTuning {
  std::vector<tune::TaskResult> results;  // of the tasks, in their order
  tune::TunedSet set;                     // of all that were found faster
  const tune::Record* model = nullptr;    // the comparison of the whole model with this set; null: there is none
  std::string note;                       // why there is none
};

// The tasks of a loaded model for the one record of the target; their FLOPs and bytes at these sizes of its symbols.
Result<std::vector<tune::Task>> TasksOfModel(const ir::IRModule& loaded, const CompileOptions& options,
                                             const std::vector<tune::Sizes>& sizes = {});

// `options`: as for the compilation that takes the schedules; one target record. The database outlives the result.
Result<ModelTuning> TuneModel(const ir::IRModule& loaded, const std::vector<tune::Task>& tasks,
                              const CompileOptions& options, const tune::TuneOptions& tuning, tune::RunnerPool& pool,
                              tune::DatabaseFile& database, const std::atomic<bool>& stop,
                              const std::function<void(const tune::TuneProgress&)>& progress);

}  // namespace ingot::driver
