// ThreadPool: fork-join loops over numbered tasks, owned by an instance and shared by its contexts.
//   - The calling thread works too: a pool of n threads starts n - 1 workers.
//   - A loop takes the whole pool by one atomic exchange. When the pool is taken, by another caller or because the
//     loop is nested in a task, the same tasks run serially on the calling thread: never a wait, never a deadlock.
//   - Of several failing tasks the lowest one's code is returned, whatever the threads did: tasks below a failing one
//     always run, tasks above it may be left out.
//   - Workers spin for a short time after a loop and then sleep; a loop does not wait for a worker to wake up.
//   - No allocation per loop.
//   - After fork() the child's first loop starts new workers; the parent's copies are left alone. (Forked while a
//     loop was running, the child's copy stays taken: its loops run serially.)
// An embedder's own parallel-for can stand in for the workers (Hook); the rules above hold for it too.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "runtime/status.h"

namespace ingot {

class ThreadPool {
 public:
  // Returns 0, or a failure code.
  using TaskFn = int32_t (*)(void* closure, int64_t task);
  static constexpr int kMaxThreads = 4096;

  // Runs task(closure, t) for every t in [0, num_tasks), each once, on any threads, and waits for all.
  struct Hook {
    void (*parallel_for)(void* user_data, int64_t num_tasks, void (*task)(void* closure, int64_t t), void* closure);
    void* user_data;
    int num_threads;  // what parallel_for may use
  };

  // num_threads counts the caller; 0 takes as many as the process may run on. Spinning is worth it only while every
  // thread has a processor of its own, so it is off otherwise.
  static Result<std::unique_ptr<ThreadPool>> Create(int num_threads = 0);
  static Result<std::unique_ptr<ThreadPool>> CreateWithHook(const Hook& hook);
  // No loop may be running. Joins the workers.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }
  // Runs task(closure, t) for every t in [0, num_tasks) and waits. Any thread may call it at any time.
  int32_t ParallelFor(int64_t num_tasks, TaskFn task, void* closure);

 private:
  struct Workers;

  ThreadPool() = default;
  // False when the workers could not be started again after a fork().
  bool WorkersAreAlive();

  int num_threads_ = 1;
  bool has_hook_ = false;
  Hook hook_{};
  std::atomic<bool> taken_{false};
  Workers* workers_ = nullptr;
};

// Processors that this process may run on, >= 1.
int AvailableProcessors();

}  // namespace ingot
