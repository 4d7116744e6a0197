// DeadlineTimer: sets flags at given times. One thread, started when the first deadline is asked for. An invocation
// registers its context's flag at its start and takes it back at its end; running code only tests the flag. Registering
// a flag again allocates nothing, and wakes the thread only when the deadline is earlier than the thread's next one.
// After fork() the child's first deadline starts a thread of its own; the parent's copy is left alone.
#pragma once

#include <atomic>
#include <chrono>

#include "runtime/status.h"

namespace ingot::vm {

// Values of an interrupt flag.
inline constexpr int32_t kNotInterrupted = 0;
inline constexpr int32_t kInterruptCancelled = 1;
inline constexpr int32_t kInterruptDeadline = 2;

class DeadlineTimer {
 public:
  using Clock = std::chrono::steady_clock;
  DeadlineTimer() = default;
  ~DeadlineTimer();
  DeadlineTimer(const DeadlineTimer&) = delete;
  DeadlineTimer& operator=(const DeadlineTimer&) = delete;

  // Sets the flag to kInterruptDeadline at that time, unless it is set already or disarmed before. A flag is armed
  // once at a time.
  Status Arm(std::atomic<int32_t>* flag, Clock::time_point when);
  // After this the timer does not touch the flag.
  void Disarm(std::atomic<int32_t>* flag);

 private:
  struct Watch;
  Result<Watch*> LiveWatch();
  std::atomic<Watch*> watch_{nullptr};
};

}  // namespace ingot::vm
