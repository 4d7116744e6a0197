// The cold part of the limits of an invocation: its deadline, and the failures.
#include "vm/run/call_limits.h"

#include <chrono>

namespace ingot::vm {

Status CallLimits::Arm() {
  const auto duration =
      std::chrono::duration_cast<DeadlineTimer::Clock::duration>(std::chrono::duration<double>(deadline_seconds_));
  Status status = timer_.Arm(&flag_, DeadlineTimer::Clock::now() + duration);
  is_armed_ = status.ok();
  return status;
}

void CallLimits::Disarm() {
  is_armed_ = false;
  timer_.Disarm(&flag_);
}

Status CallLimits::Failure() const {
  switch (flag_.load(std::memory_order_relaxed)) {
    case kInterruptCancelled:
      return Status(StatusCode::kCancelled, "cancelled");
    case kInterruptDeadline:
      return Status(StatusCode::kDeadlineExceeded, "the deadline has passed");
    default:
      return Status(StatusCode::kDeadlineExceeded, {"the fuel of ", fuel_, " calls and back edges is used up"});
  }
}

}  // namespace ingot::vm
