// The default schedule of a tensor function for a CPU or for CUDA: rules, which are chosen by what the blocks compute
// and by the target record, never by names of blocks or functions. It is a trace like any other: tuning replays it with
// other decisions.
//
// Work is divided by shapes alone: the number of threads is never asked for, so results are bitwise equal for any.
#pragma once

#include <span>

#include "compiler/ir/expr.h"
#include "compiler/schedule/match.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/target.h"

namespace ingot::schedule {

// The last answer of a rule to a block.
struct RuleAnswer {
  const char* rule;
  BlockName block;
  Match<> match;
  std::string refusal;  // why a primitive refused the schedule of a block that the rule took; empty: it was scheduled

  bool is_scheduled() const { return match && refusal.empty(); }
  std::string why_not() const { return match ? refusal : match.declined().why; }
};
// A rule that scheduled a block, with the other blocks that it scheduled or made with it.
struct Application {
  const char* rule;
  BlockName block;
  std::vector<BlockName> blocks;  // the block among them; some may be inlined, and be there no more
};

struct ScheduledFunction {
  ir::PrimFunc function;
  Trace trace;
  std::vector<Choice> choices;     // that the rules made
  std::vector<std::string> rules;  // "rule(block)" for each application, in order; for messages and tests
  // For vm-compile --explain: the same with all blocks, what each rule said to each block in the order of the
  // questions, and why no rule was asked (null: all were).
  std::vector<Application> applications;
  std::vector<RuleAnswer> answers;
  const char* left_alone = nullptr;
};
// The attribute of a function that was scheduled already: the rules leave it alone, whatever its loops look like.
inline constexpr const char* kIsScheduledAttr = "tirx.is_scheduled";
bool IsScheduled(const ir::PrimFunc& function);
ir::PrimFunc MarkScheduled(const ir::PrimFunc& function);

// One rule. It is asked about each block that no rule has handled yet, in order of the table and, within a row, of the
// function; matches takes the block or says why not (match.h); apply schedules the block and others together with it,
// and returns the names of all of them. When a primitive is refused, apply runs to its end all the same (schedule.h),
// the schedule before it is kept, and the next block or rule is tried.
struct ScheduleRule {
  const char* name;
  const char* summary;
  Match<> (*matches)(const ScheduleState& state, const BlockSite& block, const Target& target);
  std::vector<BlockName> (*apply)(Schedule& schedule, const BlockSite& block, const Target& target);
};
std::span<const ScheduleRule> DefaultRules(Target::Kind kind = Target::Kind::kCpu);

// A function that has no root block, or is marked as scheduled, comes back as it is with an empty trace.
// `chosen` decides what rules would choose themselves (choices.h). It is refused where a rule asks for none of that
// name, does not take the number, or does not get a legal schedule of it.
Result<ScheduledFunction> ApplyDefaultSchedule(const ir::PrimFunc& function, const Target& target,
                                               const Chosen& chosen = {});
// The same with the given rules, in their order.
Result<ScheduledFunction> ApplySchedule(const ir::PrimFunc& function, const Target& target,
                                        std::span<const ScheduleRule> rules, const Chosen& chosen = {});

}  // namespace ingot::schedule
