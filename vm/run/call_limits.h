// CallLimits: what ends an invocation early: cancelling, its deadline and its fuel. Running code asks IsReached at each
// call and each jump backwards; the flag alone is what other instructions, kernels and long builtins look at.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/status.h"
#include "vm/run/deadline_timer.h"

namespace ingot::vm {

class CallLimits {
 public:
  // `fuel`: calls and jumps backwards per invocation; 0: no limit.
  CallLimits(DeadlineTimer& timer, int64_t fuel) : timer_(timer), fuel_(fuel) {}

  // Counts from the start of each invocation; 0: none. The running invocation keeps its deadline.
  void set_deadline(double seconds) { deadline_seconds_ = seconds; }
  // Around each invocation. It is cancelled from the start where `cancelled` is given and true.
  Status Start(const std::atomic<bool>* cancelled);
  void Stop() {
    if (is_armed_) Disarm();
  }
  // From any thread, and from a signal handler.
  void Cancel() { flag_.store(kInterruptCancelled); }

  // Counts one call or jump backwards; true: the invocation has to end with Failure().
  bool IsReached() { return flag_.load(std::memory_order_relaxed) != kNotInterrupted || --fuel_left_ < 0; }
  bool is_interrupted() const { return flag_.load() != kNotInterrupted; }
  [[gnu::cold]] Status Failure() const;
  const std::atomic<int32_t>* flag() const { return &flag_; }

 private:
  Status Arm();
  void Disarm();

  DeadlineTimer& timer_;
  const int64_t fuel_;
  int64_t fuel_left_ = 0;
  std::atomic<int32_t> flag_{kNotInterrupted};
  double deadline_seconds_ = 0;
  bool is_armed_ = false;  // the timer has the running invocation's deadline
};

inline Status CallLimits::Start(const std::atomic<bool>* cancelled) {
  fuel_left_ = fuel_ > 0 ? fuel_ : INT64_MAX;
  if (cancelled == nullptr) {
    flag_.store(kNotInterrupted, std::memory_order_relaxed);
  } else {
    // The canceller sets its flag and then calls Cancel. Either this load sees that flag, or Cancel comes after this
    // store: all four accesses are sequentially consistent.
    flag_.store(kNotInterrupted);
    if (cancelled->load()) flag_.store(kInterruptCancelled);
  }
  return deadline_seconds_ > 0 ? Arm() : Status();
}

}  // namespace ingot::vm
