// The default schedule of a tensor function for a CPU: rules, which are chosen by what the blocks compute and by the
// target record, never by names of blocks or functions. It is a trace like any other: tuning replays it with other
// decisions.
//
// Work is divided by shapes alone: the number of threads is never asked for, so results are bitwise equal for any.
#pragma once

#include <span>

#include "compiler/ir/expr.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/target.h"

namespace ingot::schedule {

struct ScheduledFunction {
  ir::PrimFunc function;
  Trace trace;
  std::vector<std::string> rules;  // "rule(block)" for each application, in order; for messages and tests
};
// The attribute of a function that was scheduled already: the rules leave it alone, whatever its loops look like.
inline constexpr const char* kIsScheduledAttr = "tirx.is_scheduled";
bool IsScheduled(const ir::PrimFunc& function);
ir::PrimFunc MarkScheduled(const ir::PrimFunc& function);

// One rule. It is asked about each block that no rule has handled yet, in order of the table and, within a row, of the
// function; apply schedules the block and others together with it, and returns the names of all of them. When a
// primitive is refused, apply runs to its end all the same (schedule.h), the schedule before it is kept, and the next
// block or rule is tried.
struct ScheduleRule {
  const char* name;
  const char* summary;
  bool (*matches)(const ScheduleState& state, const BlockSite& block, const Target& target);
  std::vector<BlockName> (*apply)(Schedule& schedule, const BlockSite& block, const Target& target);
};
std::span<const ScheduleRule> DefaultRules();

// A function that has no root block, or is marked as scheduled, comes back as it is with an empty trace.
Result<ScheduledFunction> ApplyDefaultSchedule(const ir::PrimFunc& function, const Target& target);
// The same with the given rules, in their order.
Result<ScheduledFunction> ApplySchedule(const ir::PrimFunc& function, const Target& target,
                                        std::span<const ScheduleRule> rules);

}  // namespace ingot::schedule
