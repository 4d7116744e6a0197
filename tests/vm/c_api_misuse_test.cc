// Misuse of the C API, by an application or by its external functions during a call, is refused, and does not disturb
// the running invocation.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "ingot/ingot.h"
#include "tests/vm/c_api_session.h"

namespace ingot {
namespace {

using test::Array;
using test::Take;

constexpr const char* kProgram = R"(ingot 1
device "cpu" 0
device "null" 0
external @hook() -> (t: int64[512])
function @read_only export () -> (n: int) {
  register r0: int64[512]
  register r1: int
  call_external [r0], @hook, []
  const_int r1, 7
  call_builtin [], store_int, [r0, r1]
  return [r1]
}
function @copy export (x: float32[4], y: float32[4]) -> (a: float32[4], b: float32[4]) {
  register r2: float32[4]
  register r3: float32[4]
  register r4: int64[512]
  call_external [r4], @hook, []
  alloc_output r2, 0, [4]
  alloc_output r3, 1, [4]
  copy_into r2, r0
  copy_into r3, r1
  return [r2, r3]
}
function @swapped export (x: float32[4], y: float32[4]) -> (a: float32[4], b: float32[4]) {
  register r2: float32[4]
  register r3: float32[4]
  alloc_output r2, 0, [4]
  alloc_output r3, 1, [4]
  copy_into r2, r0
  copy_into r3, r1
  return [r3, r2]
}
function @elsewhere export () -> (a: float32[4]@1) {
  register r0: float32[4]@1
  alloc r0, [4]
  return [r0]
}
function @tuple export (x: tuple(int)) -> (y: tuple(int)) {
  return [r0]
}
)";

struct Hooked {
  void (*inside)(Hooked&) = nullptr;  // called where the program calls out
  ingot_context* context = nullptr;
  const ingot_function* function = nullptr;
  std::atomic<ingot_task*> task{nullptr};
  std::vector<std::string> said;
};

// An external function that makes forbidden calls, and returns a tensor in read-only memory.
ingot_status* Hook(void* user, const ingot_value*, size_t, ingot_value* results, size_t) {
  auto& hooked = *static_cast<Hooked*>(user);
  if (hooked.inside != nullptr) hooked.inside(hooked);
  struct Owner {
    void* page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int64_t shape[1] = {512};
    ingot_dl_managed_tensor_versioned managed{};
  };
  auto* owner = new Owner();
  owner->managed.version = {INGOT_DL_MAJOR_VERSION, INGOT_DL_MINOR_VERSION};
  owner->managed.manager_ctx = owner;
  owner->managed.flags = INGOT_DL_FLAG_READ_ONLY;
  owner->managed.deleter = [](ingot_dl_managed_tensor_versioned* self) {
    auto* mine = static_cast<Owner*>(self->manager_ctx);
    munmap(mine->page, 4096);
    delete mine;
  };
  owner->managed.dl_tensor = {owner->page, {INGOT_DL_CPU, 0}, 1, {0, 64, 1}, owner->shape, nullptr, 0};
  results[0].kind = INGOT_KIND_TENSOR;
  results[0].as.owned_tensor = &owner->managed;
  return nullptr;
}

struct Api {
  Hooked hooked;
  const ingot_external external = {"hook", &Hook, &hooked, nullptr};
  test::Session session{kProgram, {.num_threads = 1, .external = &external}};
  Api() { hooked.context = session.context; }
};

struct Floats {
  Array<float> x{{1, 2, 3, 4}, {4}}, y{{5, 6, 7, 8}, {4}}, a{{0, 0, 0, 0}, {4}}, b{{0, 0, 0, 0}, {4}};
  const ingot_dl_tensor* inputs[2] = {&x.tensor, &y.tensor};
  ingot_dl_tensor* outputs[2] = {&a.tensor, &b.tensor};
};

TEST_CASE("C API: a read-only tensor of an external function is copied before the program writes it") {
  Api api;
  ingot_value result{};
  CHECK(Take(ingot_invoke(api.session.context, api.session.Find("read_only"), nullptr, 0, &result, 1)) == "ok");
  CHECK(result.as.i == 7);
}

TEST_CASE("C API: an external function cannot change the call that it is called by") {
  Api api;
  api.hooked.function = api.session.Find("copy");
  api.hooked.inside = [](Hooked& hooked) {
    Floats other;
    std::vector<const ingot_dl_tensor*> many(60, &other.x.tensor);
    std::vector<ingot_dl_tensor*> outputs(60, &other.a.tensor);
    ingot_value value{};
    ingot_task* task = nullptr;
    const auto said = [&](ingot_status* status) { hooked.said.push_back(Take(status)); };
    said(ingot_invoke_into(hooked.context, hooked.function, many.data(), 60, outputs.data(), 60));
    said(ingot_invoke(hooked.context, hooked.function, nullptr, 0, &value, 1));
    said(ingot_invoke_async(hooked.context, hooked.function, nullptr, 0, &task));
    said(ingot_context_set_deadline(hooked.context, 0));
    said(ingot_context_set_input(hooked.context, hooked.function, "x", &other.x.tensor));
    said(ingot_context_run(hooked.context, hooked.function));
    said(ingot_context_get_output(hooked.context, 0, &value));
    said(ingot_context_reset_states(hooked.context));
    said(ingot_context_set_profiler(hooked.context, nullptr, nullptr));
  };
  Floats f;
  CHECK(Take(ingot_context_set_deadline(api.session.context, 100)) == "ok");
  CHECK(Take(ingot_invoke_into(api.session.context, api.hooked.function, f.inputs, 2, f.outputs, 2)) == "ok");
  CHECK(f.a.values == f.x.values);
  CHECK(f.b.values == f.y.values);
  REQUIRE(api.hooked.said.size() == 9);
  for (const std::string& said : api.hooked.said) {
    CHECK(said == "1: the context runs: this is a call from inside of its invocation");
  }
}

TEST_CASE("C API: a task does not wait for itself") {
  Api api;
  api.hooked.inside = [](Hooked& hooked) {
    while (hooked.task.load() == nullptr) std::this_thread::yield();
    hooked.said.push_back(Take(ingot_task_wait(hooked.task, nullptr, 0)));
    ingot_task_release(hooked.task);
  };
  Floats f;
  ingot_task* task = nullptr;
  REQUIRE(Take(ingot_invoke_into_async(api.session.context, api.session.Find("copy"), f.inputs, 2, f.outputs, 2,
                                       &task)) == "ok");
  api.hooked.task = task;
  CHECK(Take(ingot_task_wait(task, nullptr, 0)).starts_with("10: "));
  CHECK(api.hooked.said == std::vector<std::string>{"1: the task's invocation waits for itself"});
  ingot_task_release(task);
}

TEST_CASE("C API: outputs that the program returns in another order are both whole") {
  Api api;
  Floats f;
  CHECK(Take(ingot_invoke_into(api.session.context, api.session.Find("swapped"), f.inputs, 2, f.outputs, 2)) == "ok");
  CHECK(f.a.values == f.y.values);
  CHECK(f.b.values == f.x.values);
}

TEST_CASE("C API: a result on a device that is not the host is refused where it would be copied") {
  Api api;
  Floats f;
  const std::string said =
      Take(ingot_invoke_into(api.session.context, api.session.Find("elsewhere"), nullptr, 0, f.outputs, 1));
  CHECK(said.ends_with("copy from null to cpu, of which one is not the host"));
}

TEST_CASE("C API: functions live as long as the executable's handle or one of its contexts") {
  Api api;
  Floats f;
  const ingot_function* function = api.session.Find("swapped");
  ingot_executable_release(std::exchange(api.session.executable, nullptr));
  CHECK(std::string(ingot_function_name(function)) == "swapped");
  CHECK(Take(ingot_invoke_into(api.session.context, function, f.inputs, 2, f.outputs, 2)) == "ok");
  CHECK(f.a.values == f.y.values);
}

TEST_CASE("C API: of nothing there is nothing to know") {
  CHECK(ingot_executable_weight_count(nullptr) == 0);
  CHECK(ingot_executable_weight_name(nullptr, 0) == nullptr);
  CHECK(ingot_executable_metadata_count(nullptr) == 0);
  CHECK(ingot_executable_metadata_key(nullptr, 0) == nullptr);
  CHECK(ingot_executable_metadata_value(nullptr, 0) == nullptr);
  CHECK(ingot_executable_state_count(nullptr) == 0);
  CHECK(ingot_executable_state_name(nullptr, 0) == nullptr);
  CHECK(ingot_executable_function_count(nullptr) == 0);
  CHECK(ingot_executable_function(nullptr, 0) == nullptr);
  CHECK(ingot_function_name(nullptr) == nullptr);
  CHECK(ingot_function_signature(nullptr) == nullptr);
  CHECK(ingot_function_symbol_count(nullptr) == 0);
  CHECK(ingot_function_symbol(nullptr, 0, nullptr, nullptr) == nullptr);
  CHECK(ingot_function_input_count(nullptr) == 0);
  CHECK(ingot_function_input_name(nullptr, 0) == nullptr);
  CHECK(ingot_function_input_type(nullptr, 0) == nullptr);
  CHECK(ingot_function_input_is_written(nullptr, 0) == 0);
  CHECK(ingot_function_output_count(nullptr) == 0);
  CHECK(ingot_function_output_name(nullptr, 0) == nullptr);
  CHECK(ingot_function_output_type(nullptr, 0) == nullptr);
  CHECK(ingot_type_kind(nullptr) == INGOT_KIND_OBJECT);
  CHECK(ingot_type_text(nullptr) == nullptr);
  CHECK(ingot_type_dtype(nullptr).bits == 0);
  CHECK(ingot_type_rank(nullptr) == 0);
  CHECK(ingot_type_dim(nullptr, 0) == -1);
  CHECK(ingot_type_dim_text(nullptr, 0) == nullptr);
  CHECK(ingot_type_element_count(nullptr) == 0);
  CHECK(ingot_type_element(nullptr, 0) == nullptr);
}

TEST_CASE("C API: arguments that are said to be there and are not") {
  Api api;
  ingot_value argument{}, result{};
  argument.kind = INGOT_KIND_TUPLE;
  argument.as.tuple.count = 1;
  const ingot_function* function = api.session.Find("tuple");
  CHECK(Take(ingot_invoke(api.session.context, function, &argument, 1, &result, 1)) ==
        "1: argument 0: the argument \"elements\" is NULL");
  ingot_context_options options = INGOT_CONTEXT_OPTIONS_INIT;
  options.num_externals = 1;
  ingot_context* context = nullptr;
  CHECK(Take(ingot_context_create(api.session.executable, &options, &context)) ==
        "1: the argument \"externals\" is NULL");
}

TEST_CASE("C API: a task's cancellation that comes late does not hit the next one") {
  test::Session session(R"(ingot 1
function @count export (n: int) -> (m: int) {
  register r1: int
  register r2: bool
  const_int r1, 0
loop:
  dim r1, r1 + 1
  test r2, r1 < r0
  branch r2, loop, done
done:
  return [r1]
}
)",
                        {.num_threads = 1});
  const ingot_function* function = session.Find("count");
  ingot_value argument{}, result{};
  argument.kind = INGOT_KIND_INT;
  argument.as.i = 1;
  ingot_task* first = nullptr;
  REQUIRE(Take(ingot_invoke_async(session.context, function, &argument, 1, &first)) == "ok");
  REQUIRE(Take(ingot_task_wait(first, &result, 1)) == "ok");
  argument.as.i = 3'000'000;
  ingot_task* second = nullptr;
  REQUIRE(Take(ingot_invoke_async(session.context, function, &argument, 1, &second)) == "ok");
  for (int i = 0; i < 100; ++i) {
    ingot_task_cancel(first);
    std::this_thread::yield();
  }
  CHECK(Take(ingot_task_wait(second, &result, 1)) == "ok");
  CHECK(result.as.i == 3'000'000);
  ingot_task_release(first);
  ingot_task_release(second);
}

}  // namespace
}  // namespace ingot
