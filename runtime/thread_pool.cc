// How a loop meets its workers. One 32-bit word, the gate, holds a generation, an open flag and the number of workers
// inside. The caller writes the job, opens the gate and starts taking tasks from a shared counter itself. A worker that
// sees an open gate enters by compare-and-swap, which succeeds only while the same job is open, and takes tasks too.
// When the counter is used up the caller closes the gate and waits only for the workers that are inside. So a sleeping
// worker that wakes up late finds a closed gate and goes back to sleep, and the job's fields are never written while
// somebody may read them. The generation has 15 bits: a worker that sleeps through exactly 2^15 loops misses one more,
// which costs its help and nothing else.
#include "runtime/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <new>
#include <string>
#include <vector>

namespace ingot {
namespace {

constexpr uint32_t kInsideMask = 0x0000ffff;
constexpr uint32_t kOpen = 0x00010000;
constexpr uint32_t kGenerationStep = 0x00020000;
// 0.2 to 0.4 milliseconds of pauses, by the processor: longer than most serial kernels between two parallel ones take.
// A worker that sleeps is of no help to a loop of some 10 microseconds, which is over before it wakes up.
constexpr int kSpinRounds = 8000;
// Kernels use at most 64 KiB of stack; the rest is for external functions and sanitizers.
constexpr size_t kWorkerStackBytes = size_t{1} << 20;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace

// One loop: the tasks, and the lowest failure so far.
struct Job {
  ThreadPool::TaskFn task = nullptr;
  void* closure = nullptr;
  int64_t num_tasks = 0;
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> lowest_failed{std::numeric_limits<int64_t>::max()};
  std::mutex failure_mutex;
  int32_t failure_code = 0;

  void Reset(ThreadPool::TaskFn new_task, void* new_closure, int64_t new_num_tasks) {
    task = new_task;
    closure = new_closure;
    num_tasks = new_num_tasks;
    next.store(0, std::memory_order_relaxed);
    lowest_failed.store(std::numeric_limits<int64_t>::max(), std::memory_order_relaxed);
    failure_code = 0;
  }

  void RunOne(int64_t t) {
    if (t > lowest_failed.load(std::memory_order_relaxed)) return;
    const int32_t code = task(closure, t);
    if (code == 0) return;
    std::lock_guard lock(failure_mutex);
    if (t < lowest_failed.load(std::memory_order_relaxed)) {
      lowest_failed.store(t, std::memory_order_relaxed);
      failure_code = code;
    }
  }

  void TakeTasks() {
    for (;;) {
      const int64_t t = next.fetch_add(1, std::memory_order_relaxed);
      if (t >= num_tasks) return;
      RunOne(t);
    }
  }
};

namespace {

int32_t RunSerially(int64_t num_tasks, ThreadPool::TaskFn task, void* closure) {
  for (int64_t t = 0; t < num_tasks; ++t) {
    const int32_t code = task(closure, t);
    if (code != 0) return code;
  }
  return 0;
}

// A page that the operating system clears in the child of a fork(); null where it cannot.
std::atomic<uint32_t>* MapForkMark() {
  const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* page = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  if (madvise(page, page_bytes, MADV_WIPEONFORK) != 0) {
    munmap(page, page_bytes);
    return nullptr;
  }
  return new (page) std::atomic<uint32_t>(1);
}

}  // namespace

int AvailableProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max<long>(1, sysconf(_SC_NPROCESSORS_ONLN)));
}

// The worker threads of one process. In a forked child this object is a dead copy: its threads do not exist there.
struct ThreadPool::Workers {
  alignas(64) std::atomic<uint32_t> gate{0};
  alignas(64) std::atomic<uint32_t> left{0};  // incremented when the last worker leaves a closed gate
  alignas(64) Job job;
  std::atomic<bool> stop{false};
  int spin_rounds = 0;
  pid_t pid = 0;
  std::atomic<uint32_t>* fork_mark = nullptr;
  std::vector<pthread_t> threads;

  static void* ThreadMain(void* self) {
    static_cast<Workers*>(self)->Work();
    return nullptr;
  }

  Status Start(int num_workers) {
    pid = getpid();
    fork_mark = MapForkMark();
    threads.reserve(static_cast<size_t>(num_workers));
    // Signals belong to the embedder's threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kWorkerStackBytes);
    int error = 0;
    for (int i = 0; i < num_workers && error == 0; ++i) {
      pthread_t thread;
      error = pthread_create(&thread, &attributes, ThreadMain, this);
      if (error == 0) threads.push_back(thread);
    }
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error == 0) return Status();
    return Status::OutOfMemory({"cannot start thread ", threads.size() + 1, " of ", num_workers});
  }

  bool IsOfThisProcess() const {
    return fork_mark != nullptr ? fork_mark->load(std::memory_order_relaxed) != 0 : pid == getpid();
  }

  ~Workers() {
    stop.store(true);
    gate.fetch_add(kGenerationStep);
    gate.notify_all();
    for (const pthread_t thread : threads) pthread_join(thread, nullptr);
    if (fork_mark != nullptr) munmap(fork_mark, static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  }

  void Work() {
    int spins = 0;
    uint32_t last_generation = kOpen;  // of the last job this worker took part in; no generation has this bit
    for (;;) {
      uint32_t seen = gate.load(std::memory_order_acquire);
      if (stop.load(std::memory_order_relaxed)) return;
      const uint32_t generation = seen & ~(kOpen | kInsideMask);
      if ((seen & kOpen) != 0 && generation != last_generation) {
        if (!gate.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire)) continue;
        last_generation = generation;
        job.TakeTasks();
        const uint32_t old = gate.fetch_sub(1, std::memory_order_release);
        if ((old & (kOpen | kInsideMask)) == 1) {
          left.fetch_add(1, std::memory_order_release);
          left.notify_one();
        }
        spins = 0;
      } else if (spins < spin_rounds) {
        ++spins;
        Pause();
      } else {
        gate.wait(seen, std::memory_order_acquire);
        spins = 0;
      }
    }
  }

  int32_t Run(int64_t num_tasks, TaskFn task, void* closure) {
    job.Reset(task, closure, num_tasks);
    const uint32_t generation = (gate.load(std::memory_order_relaxed) & ~(kOpen | kInsideMask)) + kGenerationStep;
    gate.store(generation | kOpen, std::memory_order_release);
    const int64_t wanted = std::min<int64_t>(num_tasks - 1, static_cast<int64_t>(threads.size()));
    if (wanted == static_cast<int64_t>(threads.size())) {
      gate.notify_all();
    } else {
      for (int64_t i = 0; i < wanted; ++i) gate.notify_one();
    }
    job.TakeTasks();
    uint32_t state = gate.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
    for (int spins = 0; (state & kInsideMask) != 0 && spins < spin_rounds; ++spins) {
      Pause();
      state = gate.load(std::memory_order_acquire);
    }
    while ((state & kInsideMask) != 0) {
      const uint32_t before = left.load(std::memory_order_acquire);
      state = gate.load(std::memory_order_acquire);
      if ((state & kInsideMask) != 0) left.wait(before, std::memory_order_acquire);
      state = gate.load(std::memory_order_acquire);
    }
    return job.failure_code;
  }
};

Result<std::unique_ptr<ThreadPool>> ThreadPool::Create(int num_threads) {
  const int processors = AvailableProcessors();
  if (num_threads == 0) num_threads = std::min(processors, kMaxThreads);
  if (num_threads < 1 || num_threads > kMaxThreads) {
    return Status(StatusCode::kInvalidArgument, {num_threads, " threads, expected 1 to ", kMaxThreads});
  }
  try {
    std::unique_ptr<ThreadPool> pool(new ThreadPool());
    pool->num_threads_ = num_threads;
    if (num_threads > 1) {
      pool->workers_ = new Workers();
      pool->workers_->spin_rounds = num_threads <= processors ? kSpinRounds : 0;
      INGOT_RETURN_IF_ERROR(pool->workers_->Start(num_threads - 1));
    }
    return pool;
  } catch (const std::bad_alloc&) {
    return Status::OutOfMemory();
  }
}

Result<std::unique_ptr<ThreadPool>> ThreadPool::CreateWithHook(const Hook& hook) {
  if (hook.parallel_for == nullptr || hook.num_threads < 1) {
    return Status(StatusCode::kInvalidArgument, "a parallel_for hook needs a function and at least one thread");
  }
  std::unique_ptr<ThreadPool> pool(new (std::nothrow) ThreadPool());
  if (pool == nullptr) return Status::OutOfMemory();
  pool->num_threads_ = hook.num_threads;
  pool->has_hook_ = true;
  pool->hook_ = hook;
  return pool;
}

ThreadPool::~ThreadPool() {
  // In a forked child the threads are gone and may have left any state behind: nothing to join, nothing safe to free.
  if (workers_ != nullptr && workers_->IsOfThisProcess()) delete workers_;
}

bool ThreadPool::WorkersAreAlive() {
  if (workers_->IsOfThisProcess()) return true;
  const int spin_rounds = workers_->spin_rounds;
  try {
    auto fresh = std::make_unique<Workers>();
    fresh->spin_rounds = spin_rounds;
    if (!fresh->Start(num_threads_ - 1).ok()) return false;
    workers_ = fresh.release();  // the parent's copy stays: see the destructor
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

int32_t ThreadPool::ParallelFor(int64_t num_tasks, TaskFn task, void* closure) {
  if (num_tasks <= 1 || num_threads_ == 1 || taken_.exchange(true, std::memory_order_acquire)) {
    return RunSerially(num_tasks, task, closure);
  }
  int32_t code = 0;
  if (has_hook_) {
    Job job;
    job.Reset(task, closure, num_tasks);
    const auto run_one = [](void* self, int64_t t) { static_cast<Job*>(self)->RunOne(t); };
    hook_.parallel_for(hook_.user_data, num_tasks, run_one, &job);
    code = job.failure_code;
  } else if (WorkersAreAlive()) {
    code = workers_->Run(num_tasks, task, closure);
  } else {
    code = RunSerially(num_tasks, task, closure);
  }
  taken_.store(false, std::memory_order_release);
  return code;
}

}  // namespace ingot
