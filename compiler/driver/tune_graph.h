// Tunes what graph passes choose for the whole file (transform::PassContext::Choose): blocks of channels or plain
// images, Winograd's convolution or the direct one of each size, groups that share blocks, packed weights. They are one
// choice for all CPUs of the target, since these share layouts and bytecode, and each is judged by the whole model, end
// to end, on each of the CPUs:
//
//   each candidate of each choice alone, and the usual ones, in turns: a record of a screening
//   where several were faster, the best of each choice together: the same
//   the fastest of all these and the usual choices in turns, once, on fresh measurements: a record with the interval
//   of the ratio of times, one for each CPU, which alone makes a compilation take them (driver/tuned_schedules.h)
//
// Schedules are the default ones meanwhile. What the database holds is not measured again.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "compiler/driver/options.h"
#include "compiler/ir/module.h"
#include "compiler/tune/tuner.h"

namespace ingot::driver {

// What graph passes choose of a loaded model.
Result<std::vector<transform::GraphChoice>> GraphChoicesOf(const ir::IRModule& loaded, const CompileOptions& options);

struct GraphTuning {
  std::vector<transform::GraphChoice> choices;
  // What was tried, and a record for each CPU; those that follow the first one's failure are missing.
  struct Tried {
    schedule::Chosen chosen;
    std::vector<const tune::Record*> records;
    double ratio() const;  // the geometric mean of the medians; infinite where one is not ok
  };
  std::vector<Tried> screened;
  Tried compared;          // the fastest of them; of no records: none was faster
  schedule::Chosen taken;  // by a compilation with this database
  std::string note;        // why nothing was compared; empty: it was
};

// For all CPUs of the options' target, whatever `tuning` says of it. The database outlives the result.
Result<GraphTuning> TuneGraph(const ir::IRModule& loaded, const CompileOptions& options,
                              const tune::TuneOptions& tuning, tune::RunnerPool& pool, tune::DatabaseFile& database,
                              const std::atomic<bool>& stop,
                              const std::function<void(const tune::TuneProgress&)>& progress);

}  // namespace ingot::driver
