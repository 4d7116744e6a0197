// The default schedule of a tensor function for a CPU: rules, chosen by what the blocks do and by the target record,
// never by names. It is a trace like any other: tuning replays it with other decisions.
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
  std::vector<std::string> rules;  // that were applied, in order, for messages and tests
};
// True of a function that somebody scheduled: the rules leave it alone, whatever its loops look like.
inline constexpr const char* kIsScheduledAttr = "tirx.is_scheduled";
bool IsScheduled(const ir::PrimFunc& function);
ir::PrimFunc MarkScheduled(const ir::PrimFunc& function);

// One rule. It is asked about each block that no rule has handled yet, in order of the table and, within a row, of the
// function; apply schedules the block and those that it takes along, and returns the names of all of them. A rule that
// fails half-way leaves no trace: the schedule before it is kept and the next rule is asked.
struct ScheduleRule {
  const char* name;
  const char* summary;
  bool (*matches)(const ScheduleState& state, const BlockSite& block, const Target& target);
  std::vector<BlockName> (*apply)(Schedule& schedule, const BlockName& block, const Target& target);
};
std::span<const ScheduleRule> DefaultRules();

// A function that has no root block, or is marked as scheduled, comes back as it is with an empty trace.
Result<ScheduledFunction> ApplyDefaultSchedule(const ir::PrimFunc& function, const Target& target);
// The same with these rules, in their order.
Result<ScheduledFunction> ApplySchedule(const ir::PrimFunc& function, const Target& target,
                                        std::span<const ScheduleRule> rules);

}  // namespace ingot::schedule
