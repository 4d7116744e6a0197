// TunedSchedules: which schedules a compilation takes that are not the default ones: a given set, or for each record of
// the target the one that a database of tuning found faster for this model, end to end; and what graph passes choose
// for the file, if the database found it faster for each record of the target. Without such a comparison of the whole
// model, nothing is taken. A database that is damaged, or does not belong to this build, is an error.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "compiler/driver/options.h"
#include "compiler/ir/module.h"
#include "compiler/tune/database.h"

namespace ingot::driver {

// The same options, by which kernels stay apart: those that differ in the length of a sum alone have schedules of their
// own, and no symbolic length that tuning would need sizes for.
CompileOptions WithKernelsApart(CompileOptions options);
// Every record of the target.
std::vector<Target> RecordsOf(const TargetFamily& family);

class TunedSchedules {
 public:
  // Reads the database, if any. Borrows options.tuned.
  Status Open(const CompileOptions& options, const CompileObserver& observer);
  // The choices with which graph passes are to run over the module (transform::PassContext::Choose).
  Result<schedule::Chosen> ChooseGraph(const ir::IRModule& module, const CompileOptions& options);
  // `module`: behind these passes.
  Status Prepare(const ir::IRModule& module, const CompileOptions& options);
  // For kernels::KernelOptions; borrows this. Null where there is nothing to take.
  std::function<Result<schedule::Chosen>(const ir::PrimFunc&, const Target&)> lookup();
  // Says what graph passes chose, and of how many kernels each record of the target got another schedule.
  void Report(const CompileOptions& options, const CompileObserver& observer) const;

 private:
  Result<schedule::Chosen> ChosenFor(const ir::PrimFunc& function, const Target& target);

  const tune::TunedSet* given_ = nullptr;
  std::optional<tune::Database> database_;
  std::string usual_model_;              // ModelKey, if graph passes chose as usual
  const tune::Record* graph_ = nullptr;  // what they chose otherwise; null: nothing
  std::string model_;                    // ModelKey
  std::mutex mutex_;
  std::map<std::string, int64_t> kernels_, tuned_;  // by target
};

}  // namespace ingot::driver
