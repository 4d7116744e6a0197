// default_schedule
//   Before: a verified module; a tensor function that is marked as scheduled, or has no blocks, is left alone.
//   After:  every other tensor function is scheduled for the target's first variant by an ordered list of rules, and
//           marked ("tirx.is_scheduled"), so that it is not scheduled again: kernels of other variants use this
//           schedule, too.
//   In no default pipeline: without it, kernels/ schedules for each variant by itself. It is for pipelines in which a
//   user wants to see, or choose, how kernels are scheduled; it belongs behind everything that fuses.
#include "compiler/transform/schedule_functions.h"

#include "compiler/transform/passes.h"
#include "runtime/suggest.h"

namespace ingot::transform {

namespace {

Result<ir::IRModule> ScheduleFunctions(ir::IRModule module, std::span<const schedule::ScheduleRule> rules,
                                       const PassContext& context) {
  const std::vector<Target>& variants = context.options.target.variants;
  if (variants.empty()) return UnmetPrecondition("a target, whose registers and caches the rules ask for");
  const std::vector<ir::IRModule::Entry> entries = module.functions();
  for (const ir::IRModule::Entry& entry : entries) {
    const ir::PrimFunc function = ir::AsRef<ir::PrimFuncNode>(entry.function);
    if (function == nullptr) continue;
    Result<schedule::ScheduledFunction> scheduled = schedule::ApplySchedule(function, variants.front(), rules);
    if (!scheduled.ok()) return std::move(scheduled).status().WithContext("function \"" + entry.var->name + "\"");
    if (!schedule::IsScheduled(function)) module.Set(entry.var, schedule::MarkScheduled(scheduled->function));
  }
  return module;
}

}  // namespace

Result<ir::IRModule> DefaultSchedule(ir::IRModule module, PassContext& context) {
  // What schedules prove takes the numbers of tensor functions to be at least 0.
  INGOT_ASSIGN_OR_RETURN(module, SplitSignedScalars(std::move(module), context));
  const std::span<const schedule::ScheduleRule> known = schedule::DefaultRules(context.options.target.kind);
  if (context.options.schedule_rules.empty()) return ScheduleFunctions(std::move(module), known, context);
  std::vector<schedule::ScheduleRule> rules;
  for (const std::string& name : context.options.schedule_rules) {
    std::vector<std::string_view> names;
    for (const schedule::ScheduleRule& rule : known) {
      if (name == rule.name) rules.push_back(rule);
      names.emplace_back(rule.name);
    }
    if (!rules.empty() && name == rules.back().name) continue;
    return Status(StatusCode::kInvalidArgument, "there is no schedule rule \"" + name + "\"" + DidYouMean(name, names));
  }
  return ScheduleFunctions(std::move(module), rules, context);
}

Pass DefaultScheduleWith(std::vector<schedule::ScheduleRule> rules) {
  return {"default_schedule", "schedule tensor functions by the caller's rules", 0,
          [rules = std::move(rules)](ir::IRModule module, PassContext& context) {
            return ScheduleFunctions(std::move(module), rules, context);
          }};
}

}  // namespace ingot::transform
