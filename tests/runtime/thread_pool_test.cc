#include "runtime/thread_pool.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <new>
#include <numeric>
#include <thread>
#include <vector>

namespace ingot {
namespace {

int32_t For(ThreadPool& pool, int64_t num_tasks, const std::function<int32_t(int64_t)>& body) {
  return pool.ParallelFor(
      num_tasks, [](void* f, int64_t t) { return (*static_cast<const std::function<int32_t(int64_t)>*>(f))(t); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

TEST_CASE("every task runs once, for any number of threads and tasks") {
  for (const int threads : {1, 2, 3, 8}) {
    const auto pool = ThreadPool::Create(threads).value();
    CHECK(pool->num_threads() == threads);
    for (const int64_t tasks : {0, 1, 2, 7, 1000}) {
      for (int round = 0; round < 20; ++round) {
        std::vector<int> runs(static_cast<size_t>(tasks));
        CHECK(For(*pool, tasks, [&](int64_t t) { return ++runs[t], 0; }) == 0);
        CHECK(std::count(runs.begin(), runs.end(), 1) == tasks);
      }
    }
  }
}

TEST_CASE("tasks really run on several threads") {
  const auto pool = ThreadPool::Create(2).value();
  // Each of the two tasks waits for the other one.
  std::atomic<int> inside{0};
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  CHECK(For(*pool, 2, [&](int64_t) {
          ++inside;
          while (inside < 2 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
          return inside == 2 ? 0 : 1;
        }) == 0);
}

TEST_CASE("the lowest failing task wins") {
  const auto pool = ThreadPool::Create(4).value();
  for (int round = 0; round < 200; ++round) {
    CHECK(For(*pool, 100, [](int64_t t) { return t % 10 == 7 ? static_cast<int32_t>(t) : 0; }) == 7);
    CHECK(For(*pool, 100, [](int64_t t) { return static_cast<int32_t>(100 - t); }) == 100);
    CHECK(For(*pool, 100, [](int64_t t) { return t == 99 ? 5 : 0; }) == 5);
  }
  CHECK(For(*pool, 100, [](int64_t) { return 0; }) == 0);
}

TEST_CASE("a nested loop runs serially in its task") {
  const auto pool = ThreadPool::Create(4).value();
  std::atomic<int> total{0};
  CHECK(For(*pool, 8, [&](int64_t) {
          const auto self = std::this_thread::get_id();
          return For(*pool, 8, [&](int64_t) { return ++total, std::this_thread::get_id() == self ? 0 : 1; });
        }) == 0);
  CHECK(total == 64);
}

TEST_CASE("callers that compete for the pool all get their work done") {
  const auto pool = ThreadPool::Create(3).value();
  std::vector<std::thread> callers;
  std::atomic<int64_t> total{0};
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        std::atomic<int64_t> sum{0};
        For(*pool, 20, [&](int64_t t) { return sum += t, 0; });
        total += sum;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(total == 4 * 300 * 190);
}

TEST_CASE("sleeping workers wake up again") {
  const auto pool = ThreadPool::Create(2).value();
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> inside{0};
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    CHECK(For(*pool, 2, [&](int64_t) {
            ++inside;
            while (inside < 2 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
            return inside == 2 ? 0 : 1;
          }) == 0);
  }
}

TEST_CASE("pools come and go, used and unused") {
  for (int round = 0; round < 50; ++round) {
    const auto pool = ThreadPool::Create(4).value();
    if (round % 2 == 0) CHECK(For(*pool, 3, [](int64_t) { return 0; }) == 0);
  }
  CHECK_FALSE(ThreadPool::Create(-1).ok());
  CHECK_FALSE(ThreadPool::Create(ThreadPool::kMaxThreads + 1).ok());
  CHECK(ThreadPool::Create().value()->num_threads() == std::min(AvailableProcessors(), ThreadPool::kMaxThreads));
}

TEST_CASE("an embedder's hook follows the same rules") {
  int calls = 0;
  ThreadPool::Hook hook;
  hook.user_data = &calls;
  hook.num_threads = 2;
  hook.parallel_for = [](void* user_data, int64_t num_tasks, void (*task)(void*, int64_t), void* closure) {
    ++*static_cast<int*>(user_data);
    for (int64_t t = num_tasks - 1; t >= 0; --t) task(closure, t);
  };
  const auto pool = ThreadPool::CreateWithHook(hook).value();
  int64_t sum = 0;
  CHECK(For(*pool, 10, [&](int64_t t) { return sum += t, For(*pool, 2, [](int64_t) { return 0; }); }) == 0);
  CHECK(sum == 45);
  CHECK(calls == 1);
  CHECK(For(*pool, 10, [](int64_t t) { return static_cast<int32_t>(t / 5 * t); }) == 5);
  CHECK_FALSE(ThreadPool::CreateWithHook(ThreadPool::Hook{}).ok());
}

#if defined(__SANITIZE_THREAD__)
TEST_CASE("a forked child gets workers of its own") { MESSAGE("SKIP: ThreadSanitizer knows no threads after fork()"); }
#else
TEST_CASE("a forked child gets workers of its own") {
  const auto pool = ThreadPool::Create(2).value();
  CHECK(For(*pool, 4, [](int64_t) { return 0; }) == 0);
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> inside{0};
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const int32_t code = For(*pool, 2, [&](int64_t) {
      ++inside;
      while (inside < 2 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
      return inside == 2 ? 0 : 1;
    });
    _exit(code == 0 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(For(*pool, 4, [](int64_t) { return 0; }) == 0);
}
#endif

}  // namespace
}  // namespace ingot
