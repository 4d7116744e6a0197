// One executable in many threads, and many threads in one invocation: the bits are those of a serial run.
// INGOT_LONG_TESTS=1 makes ten times as many invocations.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/vm/round_trip.h"
#include "tests/vm/test_kernels.h"
#include "vm/run/context.h"

namespace ingot::vm {
namespace {

constexpr const char* kProgram = R"(ingot 1
kernel @add_n {
  int n: int64
  in a: float32[n]
  in b: float32[n]
  out c: float32[n] in_place 0
}
kernel @row_sums {
  int n: int64
  int m: int64
  in a: float32[n, m]
  out b: float32[n]
}
function @sums export [n, m](x: float32[n, m]) -> (y: float32[n]) {
  register r3: arena float32[n]
  register r4: float32[n]
  arena device 0, size (n * 4 + 63) // 64 * 64
  entry 0: arena 0, offset 0, size n * 4, live 0..3
  plan_view r3, 0, [n]
  call_kernel @row_sums, [r2, r3], [r0, r1]
  alloc_output r4, 0, [n]
  call_kernel @add_n, [r3, r3, r4], [r0]
  return [r4]
}
function @steps export [n, m](x: float32[n, m], k: int) -> (y: float32[n]) {
  register r4: bool
  register r5: float32[n]
  register r6: int
  register r7: float32[n]
  test r4, 0 < r3
  branch r4, again, done
again:
  dim r6, r3 - 1
  call_function [r5], @steps, [r2, r6]
  alloc r7, [n]
  call_kernel @add_n, [r5, r5, r7], [r0]
  return [r7]
done:
  call_function [r5], @sums, [r2]
  return [r5]
}
function @forever export () -> () {
loop:
  jump loop
}
)";

std::shared_ptr<const Executable> Open(int num_threads) {
  InstanceOptions instance;
  instance.num_threads = num_threads;
  OpenOptions open;
  open.find_kernel = test::FindTestKernel;
  return *Executable::FromProgram(*Instance::Create(instance), test::Assembled(kProgram), "m", open);
}

constexpr int kNumInputs = 24;

// Sizes that differ, and elements whose sums depend on their order.
Tensor Input(int i) {
  const std::vector<int64_t> dims = {1 + i * 7 % 40, 1 + i * 5 % 33};
  Tensor tensor = *Tensor::Allocate(DataType::Float(32), dims);
  uint32_t bits = static_cast<uint32_t>(i) + 1;
  for (float& value : tensor.MutableElements<float>()) {
    bits = bits * 1664525 + 1013904223;
    value = static_cast<float>(static_cast<int32_t>(bits)) * 1e-5F;
  }
  return tensor;
}

std::vector<uint8_t> Call(Context& context, int i) {
  std::vector<Value> arguments = {Input(i)};
  if (i % 3 == 0) arguments.emplace_back(int64_t{i % 5});
  const Function& function = **context.executable().Find(i % 3 == 0 ? "steps" : "sums");
  const Result<std::vector<Value>> results = context.Invoke(function, arguments);
  if (!results.ok()) return {};
  const std::span<const uint8_t> bytes = std::get<Tensor>((*results)[0]).bytes();
  return {bytes.begin(), bytes.end()};
}

std::vector<std::vector<uint8_t>> Reference() {
  const auto context = *Context::Create(Open(1));
  std::vector<std::vector<uint8_t>> outputs;
  for (int i = 0; i < kNumInputs; ++i) outputs.push_back(Call(*context, i));
  return outputs;
}

TEST_CASE("1, 2 and 5 threads of the pool give the same bits") {
  const auto expected = Reference();
  for (const auto& output : expected) CHECK_FALSE(output.empty());
  for (const int threads : {1, 2, 5}) {
    const auto context = *Context::Create(Open(threads));
    for (int round = 0; round < 5; ++round) {
      for (int i = 0; i < kNumInputs; ++i) CHECK(Call(*context, i) == expected[static_cast<size_t>(i)]);
    }
  }
}

TEST_CASE("16 threads with a context each give the bits of a serial run") {
  const int invocations = std::getenv("INGOT_LONG_TESTS") != nullptr ? 10'000 : 1'000;
  const auto expected = Reference();
  const auto executable = Open(3);  // they compete for its pool too
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      const auto context = *Context::Create(executable);
      for (int k = 0; k < invocations; ++k) {
        const int i = (k * 5 + t) % kNumInputs;
        if (Call(*context, i) != expected[static_cast<size_t>(i)]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  MESSAGE("calls on 16 threads: ", 16 * invocations, ", other bits than a serial run's: ", wrong.load());
}

#if defined(__SANITIZE_THREAD__)
TEST_CASE("after fork() the child calls, in parallel and under a deadline") {
  MESSAGE("SKIP: ThreadSanitizer knows no threads after fork()");
}
#else
TEST_CASE("after fork() the child calls, in parallel and under a deadline") {
  const auto expected = Reference();
  const auto context = *Context::Create(Open(2));
  context->set_deadline(0.02);
  const Function& forever = **context->executable().Find("forever");
  REQUIRE(context->Invoke(forever, {}).status().code() ==
          StatusCode::kDeadlineExceeded);  // the timer's thread is there
  const pid_t child = fork();
  if (child == 0) {
    if (context->Invoke(forever, {}).status().code() != StatusCode::kDeadlineExceeded) _exit(1);
    context->set_deadline(30);
    for (int i = 0; i < kNumInputs; ++i) {
      if (Call(*context, i) != expected[static_cast<size_t>(i)]) _exit(2);
    }
    _exit(0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(context->Invoke(forever, {}).status().code() == StatusCode::kDeadlineExceeded);
}
#endif

}  // namespace
}  // namespace ingot::vm
