#include "vm/run/context.h"

#include <doctest/doctest.h>

#include <cstring>

#include <thread>

#include "tests/allocation_counter.h"
#include "tests/vm/round_trip.h"
#include "tests/vm/test_kernels.h"

namespace ingot::vm {
namespace {

constexpr const char* kChain = R"(ingot 1
constant "w" float32[16] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
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
kernel @spin {
}
function @main export (x: float32[16]) -> (y: float32[16]) {
  register r1: arena float32[16]
  register r2: constant float32[16]
  register r3: float32[16]
  arena device 0, size 64
  entry 0: arena 0, offset 0, size 64, live 0..4
  plan_view r1, 0, [16]
  const_tensor r2, #0
  call_kernel @add16, [r0, r2, r1], []
  alloc_output r3, 0, [16]
  call_kernel @add16, [r1, r0, r3], []
  return [r3]
}
function @symbolic export [n in 1..1000](x: float32[n]) -> (y: float32[n]) {
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
function @echo export (x: float32[16]) -> (y: float32[16], t: tuple(float32[16])) {
  register r1: float32[16]
  register r2: tuple(float32[16])
  alloc_output r1, 0, [16]
  copy_into r1, r0
  tuple r2, [r1]
  return [r1, r2]
}
function @prim export (x: float32[16], y: borrowed_mut float32[16]) -> () {
  call_kernel @add16, [r0, r0, r1], []
  return []
}
function @wait export () -> () {
  call_kernel @spin, [], []
  return []
}
function @forever export () -> () {
loop:
  jump loop
}
function @large export (n: int) -> (y: float32[?]) {
  register r1: float32[?]
  alloc r1, [r0]
  return [r1]
}
)";

struct Fixture {
  std::shared_ptr<const Executable> executable;
  std::unique_ptr<Context> context;
  explicit Fixture(ContextOptions options = {}) {
    InstanceOptions instance;
    instance.num_threads = 1;
    OpenOptions open;
    open.find_kernel = test::FindTestKernel;
    executable = *Executable::FromProgram(*Instance::Create(instance), test::Assembled(kChain), "chain", open);
    context = *Context::Create(executable, std::move(options));
  }
  const Function& function(const char* name) const { return **executable->Find(name); }
};

struct alignas(64) Buffer {
  float data[16] = {};
  TensorView view(std::vector<int64_t> dims = {16}, const int64_t* strides = nullptr) {
    return *TensorView::Make(data, DataType::Float(32), dims, strides, DeviceId());
  }
};

TEST_CASE("a warm static call allocates nothing, and a warm symbolic one neither") {
  Fixture f;
  Buffer x, y;
  for (int i = 0; i < 16; ++i) x.data[i] = static_cast<float>(i);
  const TensorView in = x.view(), out = y.view();
  for (const char* name : {"main", "symbolic"}) {
    const Function& function = f.function(name);
    REQUIRE(f.context->InvokeInto(function, {&in, 1}, {&out, 1}).ok());
    const int64_t before = test::NumAllocations();
    for (int i = 0; i < 10; ++i) REQUIRE(f.context->InvokeInto(function, {&in, 1}, {&out, 1}).ok());
    CHECK(test::NumAllocations() == before);
  }
  CHECK(y.data[5] == 15);
}

TEST_CASE("a loop that appends to a sequence that nobody else has copies none of it") {
  constexpr const char* kAppends = R"(ingot 1
function @main export (n: int) -> (length: int) {
  register r1: object("any")
  register r2: tuple()
  register r3: tuple(int)
  register r4: int
  register r5: int
  register r6: bool
  const_int r4, 0
  const_int r5, 0
  tuple r2, []
  tuple r3, [r4]
  move r1, r2
  release r2
loop:
  call_builtin [r1], sequence_splice, [r1, r5, r4, r3]
  dim r5, r5 + 1
  test r6, r5 < r0
  branch r6, loop, done
done:
  call_builtin [r5], sequence_length, [r1]
  return [r5]
}
)";
  const auto executable = *Executable::FromProgram(*Instance::Create({}), test::Assembled(kAppends), "appends", {});
  const auto context = *Context::Create(executable);
  const Function& function = **executable->Find("main");
  const auto append = [&](int64_t n) {
    const Value count = n;
    const int64_t before = test::NumAllocations();
    const auto results = context->Invoke(function, {&count, 1});
    CHECK(std::get<int64_t>((*results)[0]) == n);
    return test::NumAllocations() - before;
  };
  append(1);
  // The sequence grows in place, so its room doubles ten times at most; copying it would take two allocations per turn.
  CHECK(append(1000) <= append(1) + 10);
}

TEST_CASE("other symbol values move the plan") {
  Fixture f;
  for (int n : {3, 1000, 7, 16}) {
    Tensor x = *Tensor::Allocate(DataType::Float(32), std::vector<int64_t>{n});
    for (float& value : x.MutableElements<float>()) value = 2;
    const Value argument = x;
    const auto results = f.context->Invoke(f.function("symbolic"), {&argument, 1});
    REQUIRE(results.ok());
    CHECK(std::get<Tensor>((*results)[0]).Elements<float>()[static_cast<size_t>(n - 1)] == 6);
  }
}

TEST_CASE("strided and under-aligned inputs are compacted; outputs that cannot be written directly are copied to") {
  Fixture f;
  alignas(64) float wide[64] = {};
  for (int i = 0; i < 16; ++i) wide[4 * i] = static_cast<float>(i);
  const int64_t stride = 4;
  const TensorView strided =
      *TensorView::Make(wide, DataType::Float(32), std::vector<int64_t>{16}, &stride, DeviceId());
  alignas(64) float out[20] = {};
  const TensorView shifted =
      *TensorView::Make(out + 1, DataType::Float(32), std::vector<int64_t>{16}, nullptr, DeviceId());
  REQUIRE(f.context->InvokeInto(f.function("main"), {&strided, 1}, {&shifted, 1}).ok());
  CHECK(out[0] == 0);
  CHECK(out[1] == 1);
  CHECK(out[16] == 31);
  CHECK(out[17] == 0);
}

TEST_CASE("outputs are checked: dtype, dims, overlap, read-only") {
  Fixture f;
  Buffer x, y;
  const TensorView in = x.view();
  const auto code = [&](TensorView out) {
    return f.context->InvokeInto(f.function("main"), {&in, 1}, {&out, 1}).ToString();
  };
  CHECK(code(y.view({4, 4})) ==
        "bad_input: chain: function \"main\", output \"y\": expected float32[16], got float32[4, 4]");
  CHECK(code(y.view({8})) == "bad_input: chain: function \"main\", output \"y\": expected float32[16], got float32[8]");
  CHECK(code(in) == "bad_input: chain: function \"main\", output \"y\": the tensor overlaps input \"x\"");
  TensorView constant = y.view();
  constant.is_read_only = true;
  CHECK(code(constant) == "bad_input: chain: function \"main\", output \"y\": the tensor is read-only");
  CHECK(code(y.view()) == "ok");
}

// The kernel declares that it may write c over a. Whether an output may share an input's memory depends on the
// function's whole code.
constexpr const char* kInPlace = R"(ingot 1
kernel @add16 {
  in a: float32[16]
  in b: float32[16]
  out c: float32[16] in_place 0
}
function @first export (x: float32[16], w: float32[16]) -> (y: float32[16]) {
  register r2: float32[16]
  alloc_output r2, 0, [16]
  call_kernel @add16, [r0, r1, r2], []
  return [r2]
}
function @chain export (x: float32[16], w: float32[16]) -> (y: float32[16]) {
  register r2: arena float32[16]
  register r3: float32[16]
  arena device 0, size 64
  entry 0: arena 0, offset 0, size 64, live 0..3
  plan_view r2, 0, [16]
  call_kernel @add16, [r0, r1, r2], []
  alloc_output r3, 0, [16]
  call_kernel @add16, [r2, r2, r3], []
  return [r3]
}
function @twice export (x: float32[16], w: float32[16]) -> (y: float32[16]) {
  register r2: float32[16]
  alloc_output r2, 0, [16]
  call_kernel @add16, [r0, r1, r2], []
  call_kernel @add16, [r0, r1, r2], []
  return [r2]
}
function @branches export (x: float32[16], w: float32[16]) -> (y: float32[16]) {
  register r2: float32[16]
  alloc_output r2, 0, [16]
  jump done
done:
  call_kernel @add16, [r0, r1, r2], []
  return [r2]
}
)";

TEST_CASE("an output is an input's own tensor where the kernels declare it") {
  InstanceOptions instance;
  instance.num_threads = 1;
  OpenOptions open;
  open.find_kernel = test::FindTestKernel;
  const auto executable =
      *Executable::FromProgram(*Instance::Create(instance), test::Assembled(kInPlace), "in_place", open);
  const auto context = *Context::Create(executable);
  struct Row {
    const char* function;
    bool into_x, into_w;  // what the output may be
  };
  for (const Row& row : {Row{"first", true, false}, Row{"chain", true, true}, Row{"twice", false, false},
                         Row{"branches", false, false}}) {
    CAPTURE(row.function);
    const Function& function = **executable->Find(row.function);
    for (const bool is_x : {true, false}) {
      Buffer x, w, y;
      for (int i = 0; i < 16; ++i) x.data[i] = static_cast<float>(i), w.data[i] = 10;
      const TensorView inputs[] = {x.view(), w.view()};
      const TensorView apart = y.view(), shared = is_x ? x.view() : w.view();
      REQUIRE(context->InvokeInto(function, inputs, {&apart, 1}).ok());
      const Status status = context->InvokeInto(function, inputs, {&shared, 1});
      CAPTURE(status.ToString());
      REQUIRE(status.ok() == (is_x ? row.into_x : row.into_w));
      if (status.ok()) CHECK(std::memcmp(shared.data, y.data, sizeof y.data) == 0);
    }
  }
  // An output that overlaps only a part of the input is refused.
  struct alignas(64) {
    float data[48] = {};
  } memory;
  const auto at = [&](int element, int64_t n) {
    return *TensorView::Make(memory.data + element, DataType::Float(32), std::vector<int64_t>{n}, nullptr, DeviceId());
  };
  const TensorView inputs[] = {at(0, 16), at(32, 16)}, shifted = at(8, 16);
  CHECK(context->InvokeInto(**executable->Find("first"), inputs, {&shifted, 1})
            .message()
            .ends_with("output \"y\": the tensor overlaps input \"x\""));
  // An output is refused when another input shows the same memory.
  const TensorView both[] = {at(0, 16), at(0, 16)}, out = at(0, 16);
  CHECK(context->InvokeInto(**executable->Find("first"), both, {&out, 1}).message().ends_with("overlaps input \"w\""));
}

// Views of what has a fixed place are made at link time, those of the others when their instruction runs.
constexpr const char* kViewsInsideElements = R"(ingot 1
constant "c" float32[4] = 1, 2, 3, 4
state @s float32[4] device 0
function @of_parameter export (x: float32[4]) -> () {
  register r1: borrowed float32[2]
  view r1, r0, 2, [2]
  return []
}
function @of_constant export () -> () {
  register r0: constant float32[4]
  register r1: constant float32[2]
  const_tensor r0, #0
  view r1, r0, 2, [2]
  return []
}
function @of_state export () -> () {
  register r0: borrowed_mut float32[4]
  register r1: borrowed_mut float32[2]
  state r0, @s
  view r1, r0, 2, [2]
  return []
}
function @of_arena export () -> () {
  register r0: arena float32[4]
  register r1: arena float32[2]
  arena device 0, size 64
  entry 0: arena 0, offset 0, size 64, live 0..1
  plan_view r0, 0, [4]
  view r1, r0, 2, [2]
  return []
}
function @of_parameter_view export (x: float32[4]) -> () {
  register r1: borrowed float32[2]
  register r2: borrowed float64[1]
  view r1, r0, 4, [2]
  view r2, r1, 0, [1]
  return []
}
function @of_constant_view export () -> () {
  register r0: constant float32[4]
  register r1: constant float32[2]
  register r2: constant float64[1]
  const_tensor r0, #0
  view r1, r0, 4, [2]
  view r2, r1, 0, [1]
  return []
}
function @of_owned_view export () -> () {
  register r0: float32[4]
  register r1: float32[2]
  register r2: float64[1]
  alloc r0, [4]
  view r1, r0, 4, [2]
  view r2, r1, 0, [1]
  return []
}
function @viewed (x: float32[2]) -> () {
  register r1: borrowed float64[1]
  view r1, r0, 0, [1]
  return []
}
function @of_argument_view export () -> () {
  register r0: float32[4]
  register r1: float32[2]
  alloc r0, [4]
  view r1, r0, 4, [2]
  call_function [], @viewed, [r1]
  return []
}
)";

TEST_CASE("a view that begins inside of an element fails, whether or not its place is fixed") {
  const auto executable =
      *Executable::FromProgram(*Instance::Create({}), test::Assembled(kViewsInsideElements), "views", OpenOptions());
  const auto context = *Context::Create(executable);
  const std::vector<Value> x = {*Tensor::Allocate(DataType::Float(32), std::vector<int64_t>{4})};
  for (const char* name : {"of_parameter", "of_constant", "of_state", "of_arena"}) {
    CAPTURE(name);
    const Function& function = **executable->Find(name);
    const auto results = context->Invoke(function, function.signature.params.empty() ? std::vector<Value>() : x);
    REQUIRE_FALSE(results.ok());
    CHECK(results.status().message().ends_with("a view at byte 2 is not aligned to its elements"));
  }
  // What counts is where the elements lie, not where they lie in the tensor that is viewed.
  for (const char* name : {"of_parameter_view", "of_constant_view", "of_owned_view", "of_argument_view"}) {
    CAPTURE(name);
    const Function& function = **executable->Find(name);
    const auto results = context->Invoke(function, function.signature.params.empty() ? std::vector<Value>() : x);
    REQUIRE_FALSE(results.ok());
    CHECK(results.status().message().find("a view at byte 0 is not aligned to its elements") != std::string::npos);
  }
}

TEST_CASE("a parameter that the function writes: in place, strided, but never over another parameter") {
  Fixture f;
  Buffer x;
  alignas(64) float wide[32] = {};
  const int64_t stride = 2;
  for (float& value : x.data) value = 1;
  const TensorView strided =
      *TensorView::Make(wide, DataType::Float(32), std::vector<int64_t>{16}, &stride, DeviceId());
  const TensorView good[] = {x.view(), strided};
  REQUIRE(f.context->InvokeInto(f.function("prim"), good, {}).ok());
  CHECK(wide[30] == 2);
  CHECK(wide[31] == 0);
  const TensorView same[] = {x.view(), x.view()};
  CHECK(f.context->InvokeInto(f.function("prim"), same, {}).message() ==
        "chain: function \"prim\", parameter \"y\": expected float32[16], got a tensor that overlaps parameter "
        "\"x\"");
}

TEST_CASE("a tensor written into the caller's memory is copied where it would escape") {
  Fixture f;
  Buffer x;
  x.data[3] = 42;
  const Value argument = *Tensor::FromView(x.view(), {});
  const std::vector<Value> results = *f.context->Invoke(f.function("echo"), {&argument, 1});
  x.data[3] = 0;
  f.context.reset();  // results outlive their context
  CHECK(std::get<Tensor>(results[0]).Elements<float>()[3] == 42);
  const auto& tuple = dynamic_cast<const TupleObject&>(*std::get<Ref<Object>>(results[1]));
  CHECK(std::get<Tensor>(tuple.elements()[0]).Elements<float>()[3] == 42);
}

TEST_CASE("deadline, cancellation and fuel stop an invocation, and the next one is right") {
  Fixture f;
  f.context->set_deadline(0.02);
  for (const char* name : {"wait", "forever"}) {
    CHECK(f.context->Invoke(f.function(name), {}).status().code() == StatusCode::kDeadlineExceeded);
    CHECK(f.context->failure_place().function == name);
  }
  f.context->set_deadline(0);
  for (const char* name : {"wait", "forever"}) {
    std::atomic<bool> stopped{false};
    std::thread canceller([&] {
      while (!stopped) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        f.context->Cancel();
      }
    });
    CHECK(f.context->Invoke(f.function(name), {}).status().code() == StatusCode::kCancelled);
    stopped = true;
    canceller.join();
  }
  Buffer x, y;
  const TensorView in = x.view(), out = y.view();
  REQUIRE(f.context->InvokeInto(f.function("main"), {&in, 1}, {&out, 1}).ok());
  CHECK(y.data[0] == 1);
}

TEST_CASE("the memory cap is a status, and the context stays usable") {
  ContextOptions options;
  options.max_memory_bytes = 1 << 20;
  Fixture f(std::move(options));
  Value n = int64_t{1} << 30;
  CHECK(f.context->Invoke(f.function("large"), {&n, 1}).status().code() == StatusCode::kOutOfMemory);
  n = int64_t{1} << 62;
  CHECK_FALSE(f.context->Invoke(f.function("large"), {&n, 1}).ok());
  n = int64_t{16};
  for (int i = 0; i < 100; ++i) CHECK(f.context->Invoke(f.function("large"), {&n, 1}).ok());
}

TEST_CASE("contexts of one executable run on many threads at once") {
  Fixture f;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto context = *Context::Create(f.executable);
      Buffer x, y;
      for (float& value : x.data) value = static_cast<float>(t);
      const TensorView in = x.view(), out = y.view();
      for (int i = 0; i < 200; ++i) {
        if (!context->InvokeInto(f.function("main"), {&in, 1}, {&out, 1}).ok() ||
            y.data[7] != static_cast<float>(2 * t + 1))
          ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a profiler sees every kernel call") {
  Fixture f;
  std::vector<std::string> kernels;
  f.context->set_profiler([&](const Event& event) {
    CHECK(event.end_ns >= event.begin_ns);
    if (event.kind == EventKind::kKernel) kernels.push_back(event.name);
  });
  Buffer x, y;
  const TensorView in = x.view(), out = y.view();
  REQUIRE(f.context->InvokeInto(f.function("main"), {&in, 1}, {&out, 1}).ok());
  CHECK(kernels == std::vector<std::string>{"add16", "add16"});
}

}  // namespace
}  // namespace ingot::vm
