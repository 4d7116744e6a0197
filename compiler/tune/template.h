// Templates: spaces that a user defines. A template is a function and the way to schedule it, with knobs where the
// schedule may be another one, as AutoTVM has them:
//
//   tune::Template matmul{"matmul", function, [](schedule::Schedule& s, tune::Knobs& knobs) {
//     const schedule::BlockRV c = s.GetBlock("C");
//     const schedule::LoopRVs ijk = s.GetLoops(c);
//     const schedule::LoopRVs j = knobs.DefineSplit("tile_j", ijk[1], 2).Apply(s, ijk[1]);
//     s.Reorder({j[0], ijk[0], ijk[2], j[1]});
//     if (knobs.DefineKnob("vectorize", {0, 1}) == 1) s.Vectorize(j[1]);
//   }};
//
// Knobs are choices (schedule/choices.h) and sampled primitives: what is chosen stands in the trace as a decision, so
// that every candidate replays. What a primitive refuses is no candidate. A task of a template is tuned as any other,
// and its records are of the same kinds; its key ends in the template's name, so that no model takes them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compiler/schedule/default_schedule.h"
#include "compiler/target/target.h"
#include "compiler/tune/database.h"
#include "compiler/tune/task.h"

namespace ingot::tune {

// Factors of a loop's extent, outermost first.
struct SplitKnob {
  schedule::IntRVs factors;
  // Any loop of this extent, in as many parts.
  schedule::LoopRVs Apply(schedule::Schedule& s, schedule::LoopRV loop) const;
};

class Knobs {
 public:
  Knobs(schedule::Schedule& schedule, const Target& target) : schedule_(schedule), target_(target) {}

  // `parts` numbers whose product is the loop's extent, which is constant; the innermost one is max_innermost at most.
  // They are the choices name.1 (of the second part), name.2 and so on, innermost first; the outermost part is the
  // rest. By default the loop stays whole: all but the outermost part are 1.
  SplitKnob DefineSplit(const std::string& name, schedule::LoopRV loop, int64_t parts, int64_t max_innermost = 64);
  // One of these numbers, by default the first.
  int64_t DefineKnob(const std::string& name, const std::vector<int64_t>& candidates);

  const Target& target() const { return target_; }

 private:
  schedule::Schedule& schedule_;
  const Target& target_;
};

struct Template {
  std::string name;  // of letters, digits, '_', '-' and '.'; one name has one meaning for a function in a database
  ir::PrimFunc function;
  // The same calls for the same knobs. After a refused primitive nothing happens any more (schedule.h), and knobs are
  // what they are by default.
  std::function<void(schedule::Schedule&, Knobs&)> schedule;
};

// The function as the template schedules it, marked as scheduled: the compiler takes it as it is. `chosen`: what knobs
// are not by default. Refused where a primitive is, where there is no such knob, and where it has no such number.
Result<schedule::ScheduledFunction> ApplyTemplate(const Template& of, const Target& target,
                                                  const schedule::Chosen& chosen = {});

// For Tune. Its default schedule is the one of the knobs' defaults.
Result<Task> TaskOfTemplate(const Template& of, const Target& target);

// By the records: as the best of them has it, or with the knobs' defaults where none is faster. Fails where that record
// is of another function, or where the template makes another schedule of its choices than was measured.
Result<schedule::ScheduledFunction> ApplyBest(const Template& of, const Target& target, const Database& database);

}  // namespace ingot::tune
