// Everything that stops an invocation leaves nothing behind: every kind of failure is followed by a run that gives the
// same bits as before the failure, in the same context, with the same memory in use.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "tests/allocation_counter.h"
#include "tests/vm/round_trip.h"
#include "tests/vm/test_kernels.h"
#include "vm/program/limits.h"
#include "vm/run/context.h"

namespace ingot::vm {
namespace {

constexpr const char* kProgram = R"(ingot 1
external @refuse(n: int) -> (m: int)
kernel @add16 {
  in a: float32[16]
  in b: float32[16]
  out c: float32[16]
}
kernel @add_n {
  int n: int64
  in a: float32[n]
  in b: float32[n]
  out c: float32[n]
}
kernel @fail_assert {
  message "the sizes must agree"
}
kernel @fail_task {
}
kernel @spin {
}
function @main export (x: float32[16]) -> (y: float32[16]) {
  register r1: arena float32[16]
  register r2: float32[16]
  arena device 0, size 64
  entry 0: arena 0, offset 0, size 64, live 0..3
  plan_view r1, 0, [16]
  call_kernel @add16, [r0, r0, r1], []
  alloc_output r2, 0, [16]
  call_kernel @add16, [r1, r0, r2], []
  return [r2]
}
function @match export (n: int) -> () {
  register r1: float32[?]
  register r2: float32[4]
  alloc r1, [r0]
  match r2, r1
  return []
}
function @give_up export () -> () {
  fail "no way"
}
function @kernel_assert export () -> () {
  call_kernel @fail_assert, [], []
  return []
}
function @kernel_task export () -> () {
  call_kernel @fail_task, [], []
  return []
}
function @large export (n: int) -> (y: float32[?]) {
  register r1: float32[?]
  alloc r1, [r0]
  return [r1]
}
function @outside export (n: int) -> (m: int) {
  register r1: int
  call_external [r1], @refuse, [r0]
  return [r1]
}
function @wait export () -> () {
  call_kernel @spin, [], []
  return []
}
function @forever export () -> () {
loop:
  jump loop
}
function @down export (n: int) -> (depth: int) {
  register r1: bool
  register r2: int
  register r3: int
  test r1, 0 < r0
  branch r1, again, done
again:
  dim r2, r0 - 1
  call_function [r3], @down, [r2]
  dim r3, r3 + 1
  return [r3]
done:
  const_int r3, 0
  return [r3]
}
function @index export (a: int64[3], i: int) -> (v: int) {
  register r2: int
  load_int r2, r0, r1
  return [r2]
}
function @divide export (n: int) -> (m: int) {
  register r1: int
  dim r1, 10 // r0
  return [r1]
}
function @unwrap export () -> () {
  register r0: optional(int)
  register r1: int
  none r0
  unwrap r1, r0
  return []
}
function @held (t: tuple(string, float32[16]), n: int) -> () {
  register r2: float32[?]
  register r3: tuple(tuple(string, float32[16]), float32[?])
  alloc r2, [r1]
  tuple r3, [r0, r2]
  fail "with a lot in hand"
}
function @deep_hold export (n: int) -> () {
  register r1: string
  register r2: float32[16]
  register r3: tuple(string, float32[16])
  register r4: fn(int) -> ()
  const_string r1, "a text that is too long for any small string optimisation"
  alloc r2, [16]
  tuple r3, [r1, r2]
  make_closure r4, @held, [r3]
  call_closure [], r4, [r0]
  return []
}
function @kernel_dims export (n: int) -> () {
  register r1: float32[?]
  register r2: float32[?]
  register r3: float32[?]
  alloc r1, [r0]
  alloc r2, [r0 + 1]
  alloc r3, [r0]
  call_kernel @add_n, [r1, r2, r3], [r0]
  return []
}
)";

struct alignas(64) Buffer {
  float data[16] = {};
  TensorView view() { return *TensorView::Make(data, DataType::Float(32), std::vector<int64_t>{16}, nullptr, {}); }
};

struct Fixture {
  std::shared_ptr<const Executable> executable;
  std::unique_ptr<Context> context;
  Buffer x, y, expected;
  int64_t in_use = 0;

  Fixture() {
    InstanceOptions instance;
    instance.num_threads = 2;
    OpenOptions open;
    open.find_kernel = test::FindTestKernel;
    executable = *Executable::FromProgram(*Instance::Create(instance), test::Assembled(kProgram), "m", open);
    ContextOptions options;
    options.max_memory_bytes = 4 << 20;
    options.fuel = 200'000;
    options.externals["refuse"].call = [](std::span<const Value> arguments) -> Result<std::vector<Value>> {
      const int64_t n = std::get<int64_t>(arguments[0]);
      if (n == 0) return Status(StatusCode::kFailed, "refused");
      if (n == 1) return std::vector<Value>{Value(1.5)};
      if (n == 2) return std::vector<Value>{};
      return std::vector<Value>{Value(n)};
    };
    context = *Context::Create(executable, std::move(options));
    for (int i = 0; i < 16; ++i) x.data[i] = 0.1F * static_cast<float>(i);
    REQUIRE(Run(expected).ok());
    in_use = context->memory_stats().bytes_in_use;
  }
  const Function& function(const char* name) const { return **executable->Find(name); }
  Status Run(Buffer& out) {
    const TensorView in = x.view(), view = out.view();
    return context->InvokeInto(function("main"), {&in, 1}, {&view, 1});
  }
  Status Call(const char* name, std::vector<Value> arguments = {}) {
    return context->Invoke(function(name), arguments).status();
  }
  void CheckUnharmed() {
    std::memset(y.data, 0xff, sizeof y.data);
    CHECK(Run(y).ToString() == "ok");
    CHECK(std::memcmp(y.data, expected.data, sizeof y.data) == 0);
    CHECK(context->memory_stats().bytes_in_use == in_use);
  }
};

Value Ints(std::vector<int64_t> values) {
  Tensor tensor = *Tensor::Allocate(DataType::Int(64), std::vector<int64_t>{static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.MutableElements<int64_t>().begin());
  return tensor;
}

TEST_CASE("after every kind of failure the next run gives the same bits, and nothing is left in memory") {
  Fixture f;
  struct Row {
    StatusCode code;
    const char* message;  // a part of it
    std::function<Status()> fail;
  };
  const auto call = [&](const char* name, std::vector<Value> arguments = {}) {
    return [&f, name, arguments] { return f.Call(name, arguments); };
  };
  const auto cancelled = [&] {
    // Cancels repeatedly, since a Cancel before the start of the invocation has no effect.
    std::atomic<bool> stopped{false};
    std::thread canceller([&] {
      while (!stopped) {
        f.context->Cancel();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    Status status = f.Call("wait");
    stopped = true;
    canceller.join();
    return status;
  };
  const auto late = [&] {
    f.context->set_deadline(0.005);
    Status status = f.Call("wait");
    f.context->set_deadline(0);
    return status;
  };
  const auto stopped = [&] {
    f.context->set_instrument([](EventPhase, const Event&, std::span<const EventArgument>) { return Decision::kStop; });
    Status status = f.Run(f.y);
    f.context->set_instrument(nullptr);
    return status;
  };
  const auto not_finite = [&] {
    f.context->set_check_finite(true);
    const float before = std::exchange(f.x.data[3], 3e38F);
    Status status = f.Run(f.y);
    f.x.data[3] = before;
    f.context->set_check_finite(false);
    return status;
  };
  const auto n = [](int64_t value) { return std::vector<Value>{Value(value)}; };
  const Row rows[] = {
      {StatusCode::kInvalidArgument, "takes 1 arguments, got 0", call("main")},
      {StatusCode::kBadInput, "parameter \"x\": expected float32[16], got int64[2]", call("main", {Ints({1, 2})})},
      {StatusCode::kBadInput, "parameter \"x\": expected float32[16], got int", call("main", n(1))},
      {StatusCode::kBadInput, "match (instruction 1): r1: expected float32[4], got float32[5]", call("match", n(5))},
      {StatusCode::kFailed, "\"give_up\", fail (instruction 0): no way", call("give_up")},
      {StatusCode::kFailed, "kernel \"fail_assert\": the sizes must agree", call("kernel_assert")},
      {StatusCode::kFailed, "kernel \"fail_task\": code 77 (3, 0)", call("kernel_task")},
      {StatusCode::kBadInput, "kernel \"add_n\", parameter \"b\": axis 0 is 5, expected 4", call("kernel_dims", n(4))},
      {StatusCode::kOutOfMemory, "alloc (instruction 0): out of memory on cpu: requested", call("large", n(1 << 20))},
      {StatusCode::kFailed, "external function \"refuse\": refused", call("outside", n(0))},
      {StatusCode::kFailed, "result \"m\": expected int, got float", call("outside", n(1))},
      {StatusCode::kFailed, "gives 0 results, expected 1", call("outside", n(2))},
      {StatusCode::kCancelled, "\"wait\", call_kernel (instruction 0): cancelled", cancelled},
      {StatusCode::kDeadlineExceeded, "\"wait\", call_kernel (instruction 0): the deadline has passed", late},
      {StatusCode::kDeadlineExceeded, "the fuel of 200000 calls and back edges", call("forever")},
      {StatusCode::kFailed, "calls nest too deep: more than 10000", call("down", n(1'000'000))},
      {StatusCode::kFailed, "loads element 3 of parameter \"a\", int64[3]",
       call("index", {Ints({1, 2, 3}), Value(int64_t{3})})},
      {StatusCode::kFailed, "loads element -1 of parameter \"a\"",
       call("index", {Ints({1, 2, 3}), Value(int64_t{-1})})},
      {StatusCode::kInvalidArgument, "10 // 0 divides by zero", call("divide", n(0))},
      {StatusCode::kFailed, "r0: the optional is empty", call("unwrap")},
      {StatusCode::kFailed,
       "\"held\", fail (instruction 2) <- \"deep_hold\", call_closure (instruction 4): with a lot in hand",
       call("deep_hold", n(100))},
      {StatusCode::kOutOfMemory,
       "\"held\", alloc (instruction 0) <- \"deep_hold\", call_closure (instruction 4): out of memory",
       call("deep_hold", n(1 << 20))},
      {StatusCode::kCancelled, "kernel \"add16\": stopped by the instrument", stopped},
      {StatusCode::kFailed, "kernel \"add16\", output \"c\": element [3] is infinite", not_finite},
  };
  for (const Row& row : rows) {
    const Status status = row.fail();
    CAPTURE(status.ToString());
    CHECK(status.code() == row.code);
    CHECK(status.message().find(row.message) != std::string::npos);
    f.CheckUnharmed();
  }
}

TEST_CASE("an allocation that fails anywhere in a call leaves nothing behind, and says where it was") {
  Fixture f;
  int failures = 0, located = 0;
  const Function& function = f.function("deep_hold");
  const Value argument = int64_t{16};
  for (int64_t k = 1;; ++k) {
    test::FailAllocation(k);
    const Status status = f.context->Invoke(function, {&argument, 1}).status();
    const bool reached = test::AllocationHasFailed();
    test::FailAllocation(0);
    f.CheckUnharmed();
    if (!reached) break;
    failures += status.code() == StatusCode::kOutOfMemory ? 1 : 0;
    located += status.message().find("\"deep_hold\"") != std::string::npos ? 1 : 0;
  }
  CHECK(failures > 10);
  CHECK(located > 5);
}

TEST_CASE("a recursion up to the limit works; its frames live off the C stack") {
  Fixture f;
  const Value depth = kMaxCallDepth - 1;
  const auto results = f.context->Invoke(f.function("down"), {&depth, 1});
  REQUIRE(results.ok());
  CHECK(std::get<int64_t>((*results)[0]) == kMaxCallDepth - 1);
  const Value more = kMaxCallDepth;
  CHECK(f.context->Invoke(f.function("down"), {&more, 1}).status().message() ==
        "m: function \"down\", call_function (instruction 3) <- \"down\", call_function (instruction 3) <- \"down\", "
        "call_function (instruction 3) <- \"down\", call_function (instruction 3) <- 9995 more calls <- \"down\", "
        "call_function (instruction 3): calls nest too deep: more than 10000, at function \"down\"");
  f.CheckUnharmed();
}

TEST_CASE("a warm call under a deadline allocates nothing; many contexts share the timer") {
  Fixture f;
  f.context->set_deadline(60);
  ContextOptions options;
  options.externals["refuse"].call = [](std::span<const Value>) -> Result<std::vector<Value>> {
    return std::vector<Value>{};
  };
  const auto other = *Context::Create(f.executable, std::move(options));
  other->set_deadline(0.01);
  const TensorView in = f.x.view(), out = f.y.view();
  const Function& main = f.function("main");
  const auto run = [&] { return f.context->InvokeInto(main, {&in, 1}, {&out, 1}).ok(); };
  REQUIRE(run());
  const int64_t before = test::NumAllocations();
  int failed = 0;
  for (int i = 0; i < 100; ++i) failed += run() ? 0 : 1;
  CHECK(test::NumAllocations() == before);
  CHECK(failed == 0);
  CHECK(other->Invoke(f.function("forever"), {}).status().code() == StatusCode::kDeadlineExceeded);
  f.CheckUnharmed();
}

}  // namespace
}  // namespace ingot::vm
