// Asynchronous invocations and observers through the C API.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "ingot/ingot.h"
#include "tests/vm/c_api_session.h"
#include "tests/vm/elf_image.h"

namespace ingot {
namespace {

constexpr const char* kProgram = R"(
function @forever export () -> () {
  note "Loop"
loop:
  jump loop
}
function @count export (n: int) -> (m: int, t: tuple(int, string)) {
  register r1: int
  register r2: bool
  register r3: string
  register r4: tuple(int, string)
  const_int r1, 0
loop:
  dim r1, r1 + 1
  test r2, r1 < r0
  branch r2, loop, done
done:
  const_string r3, "counted"
  tuple r4, [r1, r3]
  return [r1, r4]
}
function @bad export () -> () {
  note "gather"
  fail "no such row"
}
)";

// "ok", or "CODE: MESSAGE @LOCATION".
std::string Take(ingot_status* status) {
  const std::string location = status == nullptr ? "" : std::string(" @") + ingot_status_location(status);
  return test::Take(status) + location;
}

struct Api : test::Session {
  Api() : Session(test::Add16Program() + kProgram, {.num_threads = 1, .trust = INGOT_TRUST_FILE}) {}
  ingot_task* Start(const char* name, const ingot_value* arguments = nullptr, size_t count = 0) {
    ingot_task* task = nullptr;
    REQUIRE(Take(ingot_invoke_async(context, Find(name), arguments, count, &task)) == "ok");
    return task;
  }
};

struct alignas(64) Floats {
  float data[16];
  int64_t shape[1] = {16};
  ingot_dl_tensor tensor{data, {INGOT_DL_CPU, 0}, 1, {2, 32, 1}, shape, nullptr, 0};
  explicit Floats(float value) {
    for (float& element : data) element = value;
  }
  Floats(const Floats&) = delete;
};

ingot_value Int(int64_t i) {
  ingot_value value = {};
  value.as.i = i;
  return value;
}

TEST_CASE("a task runs beside its caller and gives its results once") {
  Api api;
  const ingot_value n = Int(1'000'000);
  ingot_task* task = api.Start("count", &n, 1);
  CHECK(ingot_task_wait_for(task, -1) == 1);
  CHECK(ingot_task_is_done(task) == 1);
  ingot_value results[2] = {};
  CHECK(Take(ingot_task_wait(task, results, 1)).starts_with("1: function \"count\" has 2 results, room is for 1"));
  REQUIRE(Take(ingot_task_wait(task, results, 2)) == "ok");
  CHECK(results[0].as.i == 1'000'000);
  CHECK(std::strcmp(results[1].as.tuple.elements[1].as.string, "counted") == 0);
  for (ingot_value& result : results) ingot_value_clear(&result);
  CHECK(Take(ingot_task_wait(task, results, 2)) == "1: the task was waited for already @");
  ingot_task_release(task);
}

TEST_CASE("outputs of a task are written where the caller said") {
  Api api;
  Floats x(21), y(0);
  const ingot_dl_tensor* inputs[] = {&x.tensor};
  ingot_dl_tensor* outputs[] = {&y.tensor};
  ingot_task* task = nullptr;
  REQUIRE(Take(ingot_invoke_into_async(api.context, api.Find("main"), inputs, 1, outputs, 1, &task)) == "ok");
  ingot_value none = {};
  CHECK(Take(ingot_task_wait(task, &none, 1)).starts_with("1: the results are in the outputs"));
  REQUIRE(Take(ingot_task_wait(task, nullptr, 0)) == "ok");
  CHECK(y.data[15] == 42);
  ingot_task_release(task);
}

TEST_CASE("while a task has the context, nobody else gets in; afterwards everybody does") {
  Api api;
  ingot_task* task = api.Start("forever");
  CHECK(ingot_task_is_done(task) == 0);
  CHECK(ingot_task_wait_for(task, 0.01) == 0);
  ingot_task* other = nullptr;
  const std::string busy = "1: the context is in use: an asynchronous invocation was started and not waited for @";
  CHECK(Take(ingot_invoke_async(api.context, api.Find("bad"), nullptr, 0, &other)) == busy);
  CHECK(Take(ingot_invoke(api.context, api.Find("bad"), nullptr, 0, nullptr, 0)) == busy);
  CHECK(Take(ingot_context_set_deadline(api.context, 1)) == busy);
  CHECK(Take(ingot_context_set_check_finite(api.context, 1)) == busy);
  std::thread canceller([&] { ingot_task_cancel(task); });
  CHECK(Take(ingot_task_wait(task, nullptr, 0)) ==
        "10: m: function \"forever\", Loop, instruction 0: cancelled @Loop, "
        "instruction 0");
  canceller.join();
  ingot_task_release(task);
  task = api.Start("bad");
  CHECK(Take(ingot_task_wait(task, nullptr, 0)) ==
        "11: m: function \"bad\", gather, instruction 0: no such row @gather, instruction 0");
  ingot_task_release(task);
  const ingot_value n = Int(3);
  ingot_value results[2] = {};
  REQUIRE(Take(ingot_invoke(api.context, api.Find("count"), &n, 1, results, 2)) == "ok");
  CHECK(results[0].as.i == 3);
  for (ingot_value& result : results) ingot_value_clear(&result);
}

TEST_CASE("a cancellation is never lost, however early it comes") {
  Api api;
  for (int i = 0; i < 200; ++i) {
    ingot_task* task = api.Start("forever");
    ingot_task_cancel(task);
    CHECK(Take(ingot_task_wait(task, nullptr, 0)).starts_with("10: "));
    ingot_task_release(task);
  }
}

TEST_CASE("releasing a task stops it; a deadline does so too") {
  Api api;
  ingot_task_release(api.Start("forever"));
  ingot_task_release(nullptr);
  REQUIRE(Take(ingot_context_set_deadline(api.context, 0.01)) == "ok");
  ingot_task* task = api.Start("forever");
  CHECK(Take(ingot_task_wait(task, nullptr, 0)).starts_with("8: "));
  ingot_task_release(task);
}

TEST_CASE("C API: profiler, instrument and the search for NaN") {
  Api api;
  struct Seen {
    std::vector<std::string> events;
    int skipped = 0;
  } seen;
  REQUIRE(Take(ingot_context_set_profiler(
              api.context,
              [](void* user, const ingot_event* event) {
                CHECK(event->struct_size == sizeof(ingot_event));
                CHECK(event->end_ns >= event->begin_ns);
                static_cast<Seen*>(user)->events.push_back(std::string(event->function) + "/" + event->operation + "/" +
                                                           event->name + " " + std::to_string(event->kind));
              },
              &seen)) == "ok");
  Floats x(1), y(5);
  const ingot_dl_tensor* inputs[] = {&x.tensor};
  ingot_dl_tensor* outputs[] = {&y.tensor};
  const ingot_function* main = api.Find("main");
  REQUIRE(Take(ingot_invoke_into(api.context, main, inputs, 1, outputs, 1)) == "ok");
  CHECK(seen.events == std::vector<std::string>{"main//alloc_output 3", "main/add/add 0"});
  CHECK(y.data[3] == 2);
  const auto skip = [](void* user, ingot_phase phase, const ingot_event* event, const ingot_event_argument* arguments,
                       size_t num_arguments) {
    CHECK(num_arguments == 3);
    CHECK(arguments[2].role == INGOT_ROLE_OUT);
    CHECK(std::string(arguments[2].name) == "c");
    CHECK(arguments[2].tensor.shape[0] == 16);
    CHECK((event->end_ns != 0) == (phase == INGOT_AFTER));
    static_cast<float*>(arguments[2].tensor.data)[0] = 8;
    ++static_cast<Seen*>(user)->skipped;
    return INGOT_SKIP;
  };
  REQUIRE(Take(ingot_context_set_profiler(api.context, nullptr, nullptr)) == "ok");
  REQUIRE(Take(ingot_context_set_instrument(api.context, skip, &seen)) == "ok");
  REQUIRE(Take(ingot_invoke_into(api.context, main, inputs, 1, outputs, 1)) == "ok");
  CHECK(seen.skipped == 2);
  CHECK(y.data[0] == 8);
  REQUIRE(Take(ingot_context_set_instrument(api.context, nullptr, nullptr)) == "ok");
  REQUIRE(Take(ingot_context_set_check_finite(api.context, 1)) == "ok");
  x.data[5] = 3e38F;
  CHECK(Take(ingot_invoke_into(api.context, main, inputs, 1, outputs, 1))
            .starts_with("11: m: function \"main\", add, instruction 1: kernel \"add\", output \"c\": element [5]"));
  CHECK(Take(ingot_context_set_check_finite(nullptr, 1)) == "1: the argument \"context\" is NULL @");
}

}  // namespace
}  // namespace ingot
