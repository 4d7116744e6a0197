// Knobs as choices and as sampled primitives, and templates as tasks.
#include "compiler/tune/template.h"

#include <algorithm>
#include <utility>

#include "compiler/kernels/kernel_cache.h"

namespace ingot::tune {
namespace {

std::vector<int64_t> DivisorsOf(int64_t number, int64_t largest) {
  std::vector<int64_t> divisors;
  for (int64_t divisor = 1; divisor <= std::min(number, largest); ++divisor) {
    if (number % divisor == 0) divisors.push_back(divisor);
  }
  return divisors;
}

Status Invalid(const std::string& text) { return Status(StatusCode::kInvalidArgument, text); }

Status CheckName(const Template& of) {
  const auto is_legal = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  if (!of.name.empty() && std::ranges::all_of(of.name, is_legal)) return Status();
  return Invalid("a template's name has letters, digits, '_', '-' and '.', not \"" + of.name + "\"");
}

std::string KeyOf(const Template& of) { return TaskKey(of.function) + ":" + of.name; }

}  // namespace

schedule::LoopRVs SplitKnob::Apply(schedule::Schedule& s, schedule::LoopRV loop) const {
  return s.Split(loop, {factors.begin(), factors.end()});
}

SplitKnob Knobs::DefineSplit(const std::string& name, schedule::LoopRV loop, int64_t parts, int64_t max_innermost) {
  // A symbolic extent is refused by sample_perfect_tile.
  const bool is_there = !schedule_.IsVoid(loop) || !schedule_.status().ok();
  const auto extent = is_there ? ir::AsConstInt(schedule_.Loop(loop).loop->extent) : std::optional<int64_t>(1);
  int64_t rest = extent.value_or(1);
  std::vector<int64_t> factors(static_cast<size_t>(std::max<int64_t>(parts, 1)), 1);
  for (size_t i = factors.size() - 1; i > 0; --i) {
    const bool is_innermost = i + 1 == factors.size();
    factors[i] = schedule_.Choose(name + "." + std::to_string(i), 1,
                                  DivisorsOf(rest, is_innermost ? std::max<int64_t>(max_innermost, 1) : rest));
    rest /= factors[i];
  }
  factors[0] = rest;
  return {schedule_.SamplePerfectTile(loop, parts, max_innermost, factors)};
}

int64_t Knobs::DefineKnob(const std::string& name, const std::vector<int64_t>& candidates) {
  int64_t index = 0;
  if (!candidates.empty()) {
    const int64_t value = schedule_.Choose(name, candidates.front(), candidates);
    index = std::ranges::find(candidates, value) - candidates.begin();
  }
  return schedule_.Int(schedule_.SampleCategorical(candidates, index));
}

Result<schedule::ScheduledFunction> ApplyTemplate(const Template& of, const Target& target,
                                                  const schedule::Chosen& chosen) {
  INGOT_ASSIGN_OR_RETURN(schedule::Schedule s, schedule::Schedule::Create(of.function));
  s.SetChosen(chosen);
  Knobs knobs(s, target);
  of.schedule(s, knobs);
  INGOT_RETURN_IF_ERROR(s.status());
  for (const auto& [name, value] : chosen) {
    if (std::ranges::find(s.choices(), name, &schedule::Choice::name) != s.choices().end()) continue;
    return Invalid("template " + of.name + " has no knob " + name);
  }
  schedule::ScheduledFunction scheduled;
  scheduled.function = schedule::MarkScheduled(s.function());
  scheduled.trace = s.trace();
  scheduled.choices = s.choices();
  return scheduled;
}

Result<Task> TaskOfTemplate(const Template& of, const Target& target) {
  INGOT_RETURN_IF_ERROR(CheckName(of));
  Task task;
  task.key = KeyOf(of);
  task.names = {of.name};
  task.function = of.function;
  task.weight = 1;
  task.apply = [of](const Target& on, const schedule::Chosen& chosen) { return ApplyTemplate(of, on, chosen); };
  return Described(std::move(task), target);
}

Result<schedule::ScheduledFunction> ApplyBest(const Template& of, const Target& target, const Database& database) {
  INGOT_RETURN_IF_ERROR(CheckName(of));
  const Record* best = database.Best(KeyOf(of), kernels::TargetText(target));
  if (best == nullptr) return ApplyTemplate(of, target);
  Result<schedule::ScheduledFunction> scheduled = ApplyTemplate(of, target, best->choices);
  INGOT_RETURN_IF_ERROR(FitsRecord(*best, of.function, scheduled));
  return scheduled;
}

}  // namespace ingot::tune
