// The C API from 16 threads at once, over one instance and one executable, which are shared: contexts of their own,
// made and released again and again, every way to call, deadlines and cancellations, tasks that other threads watch and
// cancel, states, and what is read of the executable, whose golden cases the first reader decodes. Results are those of
// one thread; ThreadSanitizer (the preset tsan) looks at the rest.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "ingot/ingot.h"
#include "tests/vm/c_api_session.h"

namespace ingot {
namespace {

using test::Array;
using test::Take;

constexpr const char* kProgram = R"(
metadata "key" = "value"
constant "packed" float32[8] = prepared @prepare 0
state @count int64[] device 0
external @hook(x: float32[8]) -> (y: float32[8]) effects io
function @prepare () -> (y: float32[8]) {
  register r0: float32[8]
  register r1: float32[8]
  alloc r0, [8]
  alloc r1, [8]
  call_builtin [], add, [r1, r0, r0]
  return [r1]
}
function @double export (x: float32[8]) -> (y: float32[8], t: tuple(string, float32[8])) {
  register r1: float32[8]
  register r2: string
  register r3: tuple(string, float32[8])
  register r4: constant float32[8]
  register r5: float32[8]
  alloc r1, [8]
  const_tensor r4, #0
  call_external [r5], @hook, [r0]
  call_builtin [], add, [r1, r0, r5]
  const_string r2, "doubled"
  call_builtin [], print, [r2]
  tuple r3, [r2, r1]
  return [r1, r3]
}
function @into export (x: float32[8]) -> (y: float32[8]) {
  register r1: float32[8]
  alloc_output r1, 0, [8]
  call_builtin [], add, [r1, r0, r0]
  return [r1]
}
function @step export () -> (n: int) {
  register r0: borrowed_mut int64[]
  register r1: int
  register r2: int
  state r0, @count
  const_int r2, 0
  load_int r1, r0, r2
  dim r1, r1 + 1
  call_builtin [], store_int, [r0, r1]
  return [r1]
}
function @forever export () -> () {
loop:
  jump loop
}
)";

ingot_status* Hook(void*, const ingot_value* arguments, size_t, ingot_value* results, size_t) {
  struct Owner {
    ingot_dl_managed_tensor_versioned managed{};
    int64_t shape[1] = {8};
    float values[8];
  };
  auto* owner = new Owner();
  for (int i = 0; i < 8; ++i) owner->values[i] = static_cast<const float*>(arguments[0].as.tensor->data)[i];
  owner->managed.version = {INGOT_DL_MAJOR_VERSION, INGOT_DL_MINOR_VERSION};
  owner->managed.manager_ctx = owner;
  owner->managed.deleter = [](ingot_dl_managed_tensor_versioned* self) {
    delete static_cast<Owner*>(self->manager_ctx);
  };
  owner->managed.dl_tensor = {owner->values, {INGOT_DL_CPU, 0}, 1, {2, 32, 1}, owner->shape, nullptr, 0};
  results[0].kind = INGOT_KIND_TENSOR;
  results[0].as.owned_tensor = &owner->managed;
  return nullptr;
}

constexpr ingot_external kHook = {"hook", &Hook, nullptr, nullptr};

// One thread's work; the number of calls that did not end as they should.
int Work(ingot_executable* executable, int thread, int rounds) {
  int wrong = 0;
  const auto check = [&](bool holds) { wrong += holds ? 0 : 1; };
  const auto find = [&](const char* name) {
    const ingot_function* function = nullptr;
    check(Take(ingot_executable_find_function(executable, name, &function)) == "ok");
    return function;
  };
  for (int round = 0; round < rounds; ++round) {
    ingot_context_options options = INGOT_CONTEXT_OPTIONS_INIT;
    options.externals = &kHook;
    options.num_externals = 1;
    options.deadline_seconds = round % 3 == 0 ? 1000 : 0;
    ingot_context* context = nullptr;
    check(Take(ingot_context_create(executable, &options, &context)) == "ok");
    size_t count = 7;
    check(Take(ingot_executable_golden_case_count(executable, &count)) == "ok" && count == 0);
    check(std::string(ingot_executable_metadata_value(executable, 0)) == "value");

    const float x0 = static_cast<float>(thread * 100 + round);
    Array<float> x(std::vector<float>(8, x0), {8}), y(std::vector<float>(8, 0), {8});
    ingot_value argument{}, results[2] = {};
    argument.kind = INGOT_KIND_TENSOR;
    argument.as.tensor = &x.tensor;
    const auto is_doubled = [&] {
      const bool is_right = static_cast<const float*>(results[0].as.owned_tensor->dl_tensor.data)[7] == 2 * x0 &&
                            std::string(results[1].as.tuple.elements[0].as.string) == "doubled";
      for (ingot_value& result : results) ingot_value_clear(&result);
      return is_right;
    };
    check(Take(ingot_invoke(context, find("double"), &argument, 1, results, 2)) == "ok" && is_doubled());

    const ingot_dl_tensor* input = &x.tensor;
    ingot_dl_tensor* output = &y.tensor;
    check(Take(ingot_invoke_into(context, find("into"), &input, 1, &output, 1)) == "ok" && y.values[7] == 2 * x0);

    check(Take(ingot_context_set_input(context, find("double"), "x", &x.tensor)) == "ok");
    check(Take(ingot_context_run(context, find("double"))) == "ok");
    for (size_t i = 0; i < 2; ++i) check(Take(ingot_context_get_output(context, i, &results[i])) == "ok");
    check(is_doubled());

    for (int64_t n = 1; n <= 3; ++n) {
      check(Take(ingot_invoke(context, find("step"), nullptr, 0, results, 1)) == "ok" && results[0].as.i == n);
    }

    // A task, which another thread watches.
    ingot_task* task = nullptr;
    check(Take(ingot_invoke_async(context, find("double"), &argument, 1, &task)) == "ok");
    std::thread watcher([task] {
      while (ingot_task_wait_for(task, 0.001) == 0) {
      }
    });
    watcher.join();
    check(Take(ingot_task_wait(task, results, 2)) == "ok" && is_doubled());
    ingot_task_release(task);

    // One that another thread cancels, early or late; the context goes on.
    check(Take(ingot_invoke_async(context, find("forever"), nullptr, 0, &task)) == "ok");
    std::thread canceller([task, round] {
      for (int i = 0; i < round % 5; ++i) std::this_thread::yield();
      ingot_task_cancel(task);
    });
    check(Take(ingot_task_wait(task, nullptr, 0)).starts_with("10: "));
    canceller.join();
    ingot_task_release(task);
    // An invocation that the context's owner began, cancelled from outside.
    std::atomic<bool> has_ended{false};
    std::thread from_outside([&] {
      while (!has_ended) {
        ingot_context_cancel(context);
        std::this_thread::yield();
      }
    });
    check(Take(ingot_invoke(context, find("forever"), nullptr, 0, nullptr, 0)).starts_with("10: "));
    has_ended = true;
    from_outside.join();
    check(Take(ingot_context_set_deadline(context, 0.001)) == "ok");
    check(Take(ingot_invoke(context, find("forever"), nullptr, 0, nullptr, 0)).starts_with("8: "));
    check(ingot_context_memory_peak(context) > 0);
    ingot_context_release(context);
  }
  return wrong;
}

TEST_CASE("C API: 16 threads with contexts of their own, in every way to call") {
  const std::vector<std::byte> bytes = *vm::EncodeProgram(test::Assembled(std::string("ingot 1\n") + kProgram));
  ingot_instance_options instance_options = INGOT_INSTANCE_OPTIONS_INIT;
  std::atomic<int> num_logged{0};
  instance_options.num_threads = 3;
  instance_options.user = &num_logged;
  instance_options.log = [](void* user, const char*) { ++*static_cast<std::atomic<int>*>(user); };
  ingot_instance* instance = nullptr;
  ingot_executable* executable = nullptr;
  REQUIRE(Take(ingot_instance_create(&instance_options, &instance)) == "ok");
  REQUIRE(Take(ingot_executable_open_memory(instance, bytes.data(), bytes.size(), "m", nullptr, &executable)) == "ok");
  constexpr int kThreads = 16, kRounds = 20;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&, t] { wrong += Work(executable, t, kRounds); });
  // They and their contexts keep what they need alive.
  for (std::thread& thread : threads) thread.join();
  ingot_instance_release(instance);
  ingot_executable_release(executable);
  CHECK(wrong == 0);
  CHECK(num_logged == kThreads * kRounds * 3);
}

}  // namespace
}  // namespace ingot
