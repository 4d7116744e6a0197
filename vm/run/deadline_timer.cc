// One thread sleeps until the earliest of the deadlines in a map and sets the flags whose time has come. Map nodes are
// kept for reuse, so that arming a timer again allocates nothing.
#include "vm/run/deadline_timer.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace ingot::vm {

// The thread of one process and what it looks at. In a forked child this object is a dead copy: its thread does not
// exist there, and its mutex may be in any state.
struct DeadlineTimer::Watch {
  using Deadlines = std::multimap<Clock::time_point, std::atomic<int32_t>*>;
  std::mutex mutex;
  std::condition_variable changed;
  Deadlines deadlines;
  std::vector<Deadlines::node_type> spare;  // nodes of deadlines that were taken back
  Clock::time_point wakes_at = Clock::time_point::max();
  bool stopping = false;
  const pid_t pid = getpid();
  std::thread thread;

  bool IsOfThisProcess() const { return pid == getpid(); }

  Status Start() {
    try {
      thread = std::thread([this] { Run(); });
    } catch (const std::system_error&) {
      return Status::OutOfMemory("the system gives no thread for deadlines");
    }
    return Status();
  }

  void Stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    changed.notify_all();
    thread.join();
  }

  void Add(std::atomic<int32_t>* flag, Clock::time_point when) {
    const std::lock_guard lock(mutex);
    if (spare.empty()) {
      spare.reserve(deadlines.size() + 1);  // so that taking it back allocates nothing
      deadlines.emplace(when, flag);
    } else {
      Deadlines::node_type node = std::move(spare.back());
      spare.pop_back();
      node.key() = when;
      node.mapped() = flag;
      deadlines.insert(std::move(node));
    }
    if (when < wakes_at) changed.notify_all();
  }

  void Remove(std::atomic<int32_t>* flag) {
    const std::lock_guard lock(mutex);
    const auto armed =
        std::find_if(deadlines.begin(), deadlines.end(), [&](const auto& d) { return d.second == flag; });
    if (armed != deadlines.end()) spare.push_back(deadlines.extract(armed));
  }

  void Run() {
    std::unique_lock lock(mutex);
    while (!stopping) {
      if (deadlines.empty()) {
        wakes_at = Clock::time_point::max();
        changed.wait(lock);
      } else if (const auto next = deadlines.begin(); Clock::now() >= next->first) {
        int32_t expected = kNotInterrupted;
        next->second->compare_exchange_strong(expected, kInterruptDeadline);
        spare.push_back(deadlines.extract(next));
      } else {
        wakes_at = next->first;
        changed.wait_until(lock, wakes_at);
      }
    }
  }
};

DeadlineTimer::~DeadlineTimer() {
  Watch* const watch = watch_.load();
  if (watch == nullptr || !watch->IsOfThisProcess()) return;
  watch->Stop();
  delete watch;
}

Result<DeadlineTimer::Watch*> DeadlineTimer::LiveWatch() {
  Watch* seen = watch_.load(std::memory_order_acquire);
  if (seen != nullptr && seen->IsOfThisProcess()) return seen;
  auto fresh = std::make_unique<Watch>();
  INGOT_RETURN_IF_ERROR(fresh->Start());
  if (watch_.compare_exchange_strong(seen, fresh.get(), std::memory_order_acq_rel)) return fresh.release();
  fresh->Stop();  // another thread was faster
  return seen;
}

Status DeadlineTimer::Arm(std::atomic<int32_t>* flag, Clock::time_point when) {
  try {
    INGOT_ASSIGN_OR_RETURN(Watch * watch, LiveWatch());
    watch->Add(flag, when);
    return Status();
  } catch (const std::bad_alloc&) {
    return Status::OutOfMemory();
  }
}

void DeadlineTimer::Disarm(std::atomic<int32_t>* flag) {
  Watch* const watch = watch_.load(std::memory_order_acquire);
  if (watch != nullptr && watch->IsOfThisProcess()) watch->Remove(flag);
}

}  // namespace ingot::vm
