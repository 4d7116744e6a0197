#include "vm/deadline_timer.h"

#include <algorithm>
#include <system_error>

namespace ingot::vm {

DeadlineTimer::~DeadlineTimer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status DeadlineTimer::Arm(std::atomic<int32_t>* flag, Clock::time_point when) {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { Run(); });
    } catch (const std::system_error&) {
      return Status(StatusCode::kOutOfMemory, "the system gives no thread for deadlines");
    }
  }
  deadlines_.emplace(when, flag);
  changed_.notify_all();
  return Status();
}

void DeadlineTimer::Disarm(std::atomic<int32_t>* flag) {
  const std::lock_guard lock(mutex_);
  const auto armed =
      std::find_if(deadlines_.begin(), deadlines_.end(), [&](const auto& d) { return d.second == flag; });
  if (armed != deadlines_.end()) deadlines_.erase(armed);
}

void DeadlineTimer::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (deadlines_.empty()) {
      changed_.wait(lock);
    } else if (const auto next = deadlines_.begin(); Clock::now() >= next->first) {
      int32_t expected = kNotInterrupted;
      next->second->compare_exchange_strong(expected, kInterruptDeadline);
      deadlines_.erase(next);
    } else {
      changed_.wait_until(lock, Clock::time_point(next->first));
    }
  }
}

}  // namespace ingot::vm
