// Instance: what executables and contexts of one embedder share: the allocator of host memory, the thread pool, the
// log, and the timer of deadlines. Thread-safe; kept alive by what was made from it.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "runtime/host_allocator.h"
#include "runtime/status.h"
#include "runtime/thread_pool.h"
#include "vm/run/deadline_timer.h"

namespace ingot::vm {

struct InstanceOptions {
  int num_threads = 0;  // of the pool, the caller included; 0: all processors
  HostAllocator allocator = HostAllocator::Default();
  ThreadPool::Hook hook{};                    // used when its function is set
  std::function<void(std::string_view)> log;  // called from any thread; empty: silent
};

class Instance {
 public:
  static Result<std::shared_ptr<Instance>> Create(InstanceOptions options = {});

  const HostAllocator& allocator() const { return options_.allocator; }
  ThreadPool* pool() const { return pool_.get(); }
  DeadlineTimer& timer() { return timer_; }
  void Log(std::string_view message) const {
    if (options_.log) options_.log(message);
  }

 private:
  explicit Instance(InstanceOptions options) : options_(std::move(options)) {}
  InstanceOptions options_;
  std::unique_ptr<ThreadPool> pool_;
  DeadlineTimer timer_;
};

}  // namespace ingot::vm
