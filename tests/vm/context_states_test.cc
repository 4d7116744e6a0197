// States of a context as callers see them (reading, setting, resetting, states after a failed call), and the memory
// that symbolic shapes take: plans of constants and of formulas. (100,000 changing shapes: endurance_test.cc.)
#include <doctest/doctest.h>

#include "tests/allocation_counter.h"
#include "tests/vm/round_trip.h"
#include "tests/vm/test_kernels.h"
#include "vm/run/context.h"

namespace ingot::vm {
namespace {

constexpr const char* kCache = R"(ingot 1
constant "start" float32[2] = 5, 6
state @past int64[] device 0
state @cache float32[2, 4] device 0 grows axis 1 by @past
state @h float32[2] device 0 = #0
function @push export [past in 0..4 state #0](x: float32[2, 1], fails: bool) -> () {
  register r3: borrowed_mut float32[2, 4]
  register r4: int
  register r5: borrowed_mut int64[]
  register r6: int
  register r7: string
  register r8: bool
  state r3, @cache
  const_int r4, 1
  call_builtin [], cache_append, [r3, r1, r4, r0]
  const_string r7, "asked to fail"
  test r8, 1
  branch r2, bad, good
bad:
  fail "asked to fail"
good:
  state r5, @past
  dim r6, past + 1
  call_builtin [], store_int, [r5, r6]
  return []
}
)";

Tensor Floats(std::vector<int64_t> dims, const std::vector<float>& values) {
  Tensor tensor = *Tensor::Allocate(DataType::Float(32), dims);
  std::copy(values.begin(), values.end(), tensor.MutableElements<float>().begin());
  return tensor;
}
Tensor Length(int64_t value) {
  Tensor tensor = *Tensor::Allocate(DataType::Int(64), std::vector<int64_t>{});
  tensor.MutableElements<int64_t>()[0] = value;
  return tensor;
}
std::vector<float> ValuesOf(const Tensor& tensor) {
  const auto elements = tensor.Elements<float>();
  return {elements.begin(), elements.end()};
}

struct Fixture {
  std::shared_ptr<const Executable> executable;
  std::unique_ptr<Context> context;
  explicit Fixture(const char* text, ContextOptions options = {}) {
    InstanceOptions instance;
    instance.num_threads = 1;
    OpenOptions open;
    open.find_kernel = test::FindTestKernel;
    executable = *Executable::FromProgram(*Instance::Create(instance), test::Assembled(text), "states", open);
    context = *Context::Create(executable, std::move(options));
  }
  const Function& function(const char* name) const { return **executable->Find(name); }
  Status Push(float a, float b, bool fails = false) {
    const Value arguments[] = {Floats({2, 1}, {a, b}), fails};
    return context->Invoke(function("push"), arguments).status();
  }
  std::vector<float> Cache() const { return ValuesOf(*context->CopyState(StateId(1))); }
};

TEST_CASE("a cache shows what is filled, grows call by call, and is empty after a reset") {
  Fixture f(kCache);
  CHECK(f.context->CopyState(StateId(1))->TypeToString() == "float32[2, 0]");
  REQUIRE(f.Push(1, 2).ok());
  REQUIRE(f.Push(3, 4).ok());
  CHECK(f.context->CopyState(StateId(1))->TypeToString() == "float32[2, 2]");
  CHECK(f.Cache() == std::vector<float>{1, 3, 2, 4});
  CHECK(ValuesOf(*f.context->CopyState(StateId(2))) == std::vector<float>{5, 6});
  REQUIRE(f.context->ResetStates().ok());
  CHECK(f.Cache().empty());
  REQUIRE(f.Push(7, 8).ok());
  CHECK(f.Cache() == std::vector<float>{7, 8});
}

TEST_CASE("a failed call leaves a cache as it was") {
  Fixture f(kCache);
  REQUIRE(f.Push(1, 2).ok());
  CHECK(f.Push(9, 9, /*fails=*/true).message().ends_with("asked to fail"));
  CHECK(f.Cache() == std::vector<float>{1, 2});
  REQUIRE(f.Push(3, 4).ok());
  CHECK(f.Cache() == std::vector<float>{1, 3, 2, 4});
}

// What fails behind the store of the length: an instruction, or the copy of a result, which has another length.
TEST_CASE("a call that fails at its end leaves a cache as it was") {
  constexpr const char* kTail = R"(function @late export [past in 0..4 state #0](x: float32[2, 1]) -> () {
  call_function [], @push, [r1, r2]
  fail "asked to fail"
}
function @short export [past in 0..4 state #0](x: float32[2, 1]) -> (y: float32[?]) {
  call_function [], @push, [r1, r2]
  alloc r3, [2]
  return [r3]
}
)";
  std::string tail = kTail;
  const std::string call = "  call_function [], @push, [r1, r2]\n";
  const auto declare = [&](const char* name, const std::string& registers) {
    const size_t at = tail.find(call, tail.find(name));
    tail.insert(at, registers + "  const_bool r2, false\n");
  };
  declare("@late", "  register r2: bool\n");
  declare("@short", "  register r2: bool\n  register r3: float32[?]\n");
  Fixture f((kCache + tail).c_str());
  REQUIRE(f.Push(1, 2).ok());
  const Tensor x = Floats({2, 1}, {9, 9});
  CHECK(f.context->Invoke(f.function("late"), std::vector<Value>{x}).status().message().ends_with("asked to fail"));
  CHECK(f.Cache() == std::vector<float>{1, 2});
  const Tensor y = *Tensor::Allocate(DataType::Float(32), std::vector<int64_t>{3});
  const TensorView inputs[] = {x.view()}, outputs[] = {y.view()};
  CHECK(!f.context->InvokeInto(f.function("short"), inputs, outputs).ok());
  CHECK(f.Cache() == std::vector<float>{1, 2});
  REQUIRE(f.Push(3, 4).ok());
  CHECK(f.Cache() == std::vector<float>{1, 3, 2, 4});
}

TEST_CASE("a full cache is an error that names the state, and the context goes on") {
  Fixture f(kCache);
  for (int i = 0; i < 4; ++i) REQUIRE(f.Push(1, 1).ok());
  CHECK(f.Push(1, 1).message() ==
        "states: function \"push\", call_builtin (instruction 2): builtin cache_append: insert: float32[2, 1] does not "
        "fit at 4 of axis 1 of float32[2, 4]");
  REQUIRE(f.context->SetState(StateId(0), Length(2).view()).ok());
  CHECK(f.Push(2, 2).ok());
}

TEST_CASE("states are set one by one in the dims that they have, or all at once") {
  Fixture f(kCache);
  CHECK(f.context->SetState(StateId(1), Floats({2, 1}, {1, 2}).view()).message() ==
        "states: state \"cache\": expected float32[2, 0], got float32[2, 1]");
  REQUIRE(f.context->SetState(StateId(0), Length(1).view()).ok());
  REQUIRE(f.context->SetState(StateId(1), Floats({2, 1}, {1, 2}).view()).ok());
  CHECK(f.Cache() == std::vector<float>{1, 2});

  const Tensor length = Length(2), cache = Floats({2, 2}, {1, 2, 3, 4}), h = Floats({2}, {0, 1});
  std::map<std::string, TensorView> values = {{"past", length.view()}, {"cache", cache.view()}, {"h", h.view()}};
  REQUIRE(f.context->SetStates(values).ok());
  CHECK(f.Cache() == std::vector<float>{1, 2, 3, 4});
  REQUIRE(f.Push(8, 9).ok());
  CHECK(f.Cache() == std::vector<float>{1, 2, 8, 3, 4, 9});
}

TEST_CASE("a set of states that does not fit changes nothing") {
  Fixture f(kCache);
  REQUIRE(f.Push(1, 2).ok());
  const Tensor length = Length(2), cache = Floats({2, 2}, {3, 4, 5, 6}), h = Floats({2}, {0, 1}), five = Length(5);
  const auto message = [&](std::map<std::string, TensorView> values) {
    const std::string text = f.context->SetStates(values).message();
    CHECK(f.Cache() == std::vector<float>{1, 2});
    CHECK(ValuesOf(*f.context->CopyState(StateId(2))) == std::vector<float>{5, 6});
    return text;
  };
  CHECK(message({{"past", length.view()}, {"h", h.view()}}) == "states: the state \"cache\" is missing");
  CHECK(message({{"past", length.view()}, {"cachet", cache.view()}, {"h", h.view()}}) ==
        "states: there is no state \"cachet\"; did you mean \"cache\"?");
  CHECK(message({{"past", length.view()}, {"cache", cache.view()}, {"h", length.view()}}) ==
        "states: state \"h\": expected float32[2], got int64[]");
  CHECK(message({{"past", five.view()}, {"cache", cache.view()}, {"h", h.view()}}) ==
        "states: state \"cache\" holds 4 at most, not 5");
  CHECK(message({{"past", h.view()}, {"cache", cache.view()}, {"h", h.view()}}) ==
        "states: state \"past\": expected int64[], got float32[2]");
}

TEST_CASE("states count against the cap, and the failure names the state") {
  InstanceOptions instance;
  instance.num_threads = 1;
  const auto executable = *Executable::FromProgram(
      *Instance::Create(instance), test::Assembled("ingot 1\nstate @huge float32[1000000] device 0\n"), "states", {});
  ContextOptions options;
  options.max_memory_bytes = 1000;
  const Status status = Context::Create(executable, std::move(options)).status();
  CHECK(status.code() == StatusCode::kOutOfMemory);
  CHECK(status.message().starts_with("states: state \"huge\": out of memory on cpu"));
}

// A step of decoding: symbols that differ in each call, builtins, and a cache that is read in place.
constexpr const char* kDecode = R"(ingot 1
constant "window" float32[1] = 2
kernel @row_sums {
  int n: int64
  int m: int64
  in a: float32[n, m]
  out b: float32[n]
}
state @past int64[] device 0
state @cache float32[4096, 2] device 0 grows axis 0 by @past
function @step export [past in 0..4096 state #0](x: float32[1, 2]) -> (y: float32[4], z: float32[1]) {
  register r2: borrowed_mut float32[4096, 2]
  register r3: arena float32[1, 2]
  register r4: int
  register r5: borrowed_mut float32[4, 2]
  register r6: float32[4]
  register r7: int
  register r8: int
  register r9: arena float32[past + 1]
  register r10: constant float32[1]
  register r11: float32[1]
  register r12: int
  register r13: borrowed_mut int64[]
  arena device 0, size 16512
  entry 0: arena 0, offset 0, size 64, live 0..18
  entry 1: arena 0, offset 64, size 16448, live 0..18
  state r2, @cache
  plan_view r3, 0, [1, 2]
  call_builtin [], add, [r3, r1, r1]
  const_int r4, 0
  call_builtin [], cache_append, [r2, r3, r4, r0]
  view r5, r2, 0, [4, 2]
  alloc_output r6, 0, [4]
  const_int r7, 4
  const_int r8, 2
  call_kernel @row_sums, [r5, r6], [r7, r8]
  plan_view r9, 1, [past + 1]
  const_tensor r10, #0
  call_builtin [], broadcast_to, [r9, r10]
  alloc_output r11, 1, [1]
  copy_into r11, r10
  dim r12, past + 1
  state r13, @past
  call_builtin [], store_int, [r13, r12]
  return [r6, r11]
}
)";

TEST_CASE("steps of decoding allocate nothing: builtins, symbols that differ from call to call, a cache") {
  Fixture f(kDecode);
  const Function& step = f.function("step");
  const Tensor x = Floats({1, 2}, {1, 2}), y = Floats({4}, {0, 0, 0, 0}), z = Floats({1}, {0});
  const TensorView outputs[] = {y.view(), z.view()};
  const auto run = [&] { return f.context->InvokeInto(step, {&x.view(), 1}, outputs).ok(); };
  for (int i = 0; i < 3; ++i) REQUIRE(run());
  const int64_t before = test::NumAllocations(), pool_before = f.context->memory_stats().num_allocations;
  int failed = 0;
  for (int i = 0; i < 1000; ++i) failed += run() ? 0 : 1;
  CHECK(test::NumAllocations() == before);
  CHECK(f.context->memory_stats().num_allocations == pool_before);
  CHECK(failed == 0);
  CHECK(ValuesOf(y) == std::vector<float>{6, 6, 6, 6});
  CHECK(ValuesOf(z) == std::vector<float>{2});
  CHECK(f.context->StateDims(StateId(1)) == std::vector<int64_t>{1003, 2});
}

TEST_CASE("two contexts have states of their own") {
  Fixture f(kCache);
  const auto other = *Context::Create(f.executable);
  REQUIRE(f.Push(1, 2).ok());
  CHECK(other->CopyState(StateId(1))->TypeToString() == "float32[2, 0]");
}

constexpr const char* kShapes = R"(ingot 1
kernel @add_n {
  int n: int64
  in a: float32[n]
  in b: float32[n]
  out c: float32[n]
}
function @formula export [n in 1..5000](x: float32[n]) -> (y: float32[n]) {
  register r2: arena float32[n]
  register r3: float32[n]
  arena device 0, size (n * 4 + 63) // 64 * 64
  entry 0: arena 0, offset 0, size n * 4, live 0..3
  plan_view r2, 0, [n]
  call_kernel @add_n, [r1, r1, r2], [r0]
  alloc_output r3, 0, [n]
  call_kernel @add_n, [r2, r1, r3], [r0]
  return [r3]
}
function @bounded export [n in 1..5000](x: float32[n]) -> (y: float32[n]) {
  register r2: arena float32[n]
  register r3: float32[n]
  arena device 0, size 20032
  entry 0: arena 0, offset 0, size 20032, live 0..3
  plan_view r2, 0, [n]
  call_kernel @add_n, [r1, r1, r2], [r0]
  alloc_output r3, 0, [n]
  call_kernel @add_n, [r2, r1, r3], [r0]
  return [r3]
}
)";

TEST_CASE("a plan of numbers keeps its arena whatever the shapes are") {
  Fixture f(kShapes);
  const Function& function = f.function("bounded");
  alignas(64) static float in[5000] = {}, out[5000] = {};
  int64_t allocations = 0;
  for (const int64_t n : {7, 5000, 64, 64, 1}) {
    const std::vector<int64_t> dims{n};
    const TensorView x = *TensorView::Make(in, DataType::Float(32), dims, nullptr, DeviceId());
    const TensorView y = *TensorView::Make(out, DataType::Float(32), dims, nullptr, DeviceId());
    REQUIRE(f.context->InvokeInto(function, {&x, 1}, {&y, 1}).ok());
    if (allocations == 0) allocations = f.context->memory_stats().num_device_allocations;
    CHECK(f.context->memory_stats().num_device_allocations == allocations);
  }
}

TEST_CASE("equal shapes in consecutive calls allocate nothing, after any change of shapes") {
  Fixture f(kShapes);
  alignas(64) static float in[5000] = {}, out[5000] = {};
  for (const char* name : {"formula", "bounded"}) {
    const Function& function = f.function(name);
    for (const int64_t n : {7, 5000, 64, 1}) {
      const std::vector<int64_t> dims{n};
      const TensorView x = *TensorView::Make(in, DataType::Float(32), dims, nullptr, DeviceId());
      const TensorView y = *TensorView::Make(out, DataType::Float(32), dims, nullptr, DeviceId());
      REQUIRE(f.context->InvokeInto(function, {&x, 1}, {&y, 1}).ok());
      const int64_t before = test::NumAllocations();
      const int64_t pool_before = f.context->memory_stats().num_allocations;
      for (int i = 0; i < 5; ++i) REQUIRE(f.context->InvokeInto(function, {&x, 1}, {&y, 1}).ok());
      CHECK(test::NumAllocations() == before);
      CHECK(f.context->memory_stats().num_allocations == pool_before);
    }
  }
}

}  // namespace
}  // namespace ingot::vm
