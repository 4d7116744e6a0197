// TunedSchedules: which schedules a compilation takes that are not the default ones: a given set, or for each record of
// the target the one that a database of tuning found faster for this model, end to end. Without such a comparison of
// the whole model, nothing is taken. A database that is damaged, or does not belong to this build, is an error.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "compiler/driver/options.h"
#include "compiler/ir/module.h"
#include "compiler/tune/database.h"

namespace ingot::driver {

// The same options, by which kernels stay apart: those that differ in the length of a sum alone have schedules of their
// own, and no symbolic length that tuning would need sizes for.
CompileOptions WithKernelsApart(CompileOptions options);

class TunedSchedules {
 public:
  // `module`: behind the graph passes. Borrows options.tuned.
  Status Prepare(const ir::IRModule& module, const CompileOptions& options, const CompileObserver& observer);
  // For kernels::KernelOptions; borrows this. Null where there is nothing to take.
  std::function<Result<schedule::Chosen>(const ir::PrimFunc&, const Target&)> lookup();
  // Says of how many kernels each record of the target got another schedule.
  void Report(const CompileOptions& options, const CompileObserver& observer) const;

 private:
  Result<schedule::Chosen> ChosenFor(const ir::PrimFunc& function, const Target& target);

  const tune::TunedSet* given_ = nullptr;
  std::optional<tune::Database> database_;
  std::string model_;
  std::mutex mutex_;
  std::map<std::string, int64_t> kernels_, tuned_;  // by target
};

}  // namespace ingot::driver
