// Observers: the profiler, the instrument and the search for NaN of a context, and what they are told of each
// instruction: the interpreter asks before it runs one, and reports after. Without observers it does neither.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "runtime/finite_check.h"
#include "vm/run/call_environment.h"
#include "vm/run/frame_stack.h"
#include "vm/run/observation.h"

namespace ingot::vm {

class Observers {
 public:
  explicit Observers(const CallEnvironment& environment)
      : program_(environment.executable.program()), devices_(environment.devices) {}

  void set_profiler(Profiler profiler) { profiler_ = std::move(profiler); }
  void set_instrument(Instrument instrument) { instrument_ = std::move(instrument); }
  void set_check_finite(bool on) { checks_finite_ = on; }
  bool any() const { return profiler_ || instrument_ || checks_finite_; }

  // At the start of an invocation, whose parameters are in the frame.
  Status CheckParameters(const LinkedFunction& linked, const int64_t* frame) const;
  // Of a kernel call, whose arguments are gathered, or an instruction that stays in its frame. False: it must not run.
  Result<bool> Before(const LinkedInstruction& op, const CallRecord& record, const int64_t* frame);
  // Of the same instruction, between the two, where a device measured it.
  void set_duration_ns(int64_t duration_ns) { duration_ns_ = duration_ns; }
  // Of the same instruction, after it ran or was left out.
  Status After(const LinkedInstruction& op, const CallRecord& record, const int64_t* frame);

 private:
  Event Describe(const LinkedInstruction& op, const CallRecord& record) const;
  // The tensors of the instruction. For an external function these are the arguments before the call and the results
  // after it, since a result may replace an argument.
  Result<std::vector<EventArgument>> ArgumentsOf(EventPhase phase, const LinkedInstruction& op,
                                                 const CallRecord& record, const int64_t* frame) const;

  const Program& program_;
  const Devices& devices_;
  Profiler profiler_;
  Instrument instrument_;
  bool checks_finite_ = false;

  // Of the instruction that runs.
  Event event_;
  std::vector<EventArgument> arguments_;
  std::optional<Finiteness> inputs_;  // the worst of them, where it has to be known before
  Decision decision_ = Decision::kRun;
  std::optional<int64_t> duration_ns_;
};

}  // namespace ingot::vm
