// Exceptions of C++ that leave functions of the embedder: each place times each way to call. The call fails, with what
// the exception says, in the same way wherever it runs, and the context goes on as if nothing had happened.
#include <doctest/doctest.h>

#include <cstdlib>
#include <functional>
#include <new>
#include <stdexcept>
#include <vector>

#include "ingot/ingot.h"
#include "tests/vm/c_api_session.h"

namespace ingot {
namespace {

using test::Array;
using test::Take;

constexpr const char* kProgram = R"(ingot 1
external @hook(x: float32[4]) -> () effects io
function @main export (x: float32[4]) -> (y: float32[4]) {
  register r1: float32[4]
  register r2: string
  const_string r2, "text"
  alloc_output r1, 0, [4]
  call_external [], @hook, [r0]
  call_builtin [], print, [r2]
  copy_into r1, r0
  return [r1]
}
function @forever export () -> () {
loop:
  jump loop
}
)";

enum class Place { kExternal, kLog, kProfiler, kInstrumentBefore, kInstrumentAfter, kAllocator };

struct Thrower {
  Place place;
  std::function<void()> raise;
  bool is_on = false;
  void At(Place here) const {
    if (is_on && here == place) raise();
  }
};

Thrower& Of(void* user) { return *static_cast<Thrower*>(user); }

struct Api {
  Thrower thrower;
  ingot_instance* instance = nullptr;
  ingot_executable* executable = nullptr;
  ingot_context* context = nullptr;
  const ingot_function *main = nullptr, *forever = nullptr;
  std::vector<std::byte> bytes = *vm::EncodeProgram(test::Assembled(kProgram));
  Array<float> x{{1, 2, 3, 4}, {4}}, y{std::vector<float>(8), {4}};
  float* y_values = y.values.data();

  explicit Api(Thrower given) : thrower(std::move(given)) {
    // The results begin at no multiple of 64 bytes, so that a call computes them in memory of the allocator.
    if (reinterpret_cast<uintptr_t>(y_values) % 64 == 0) y_values += 4;
    y.tensor.data = y_values;
    ingot_instance_options options = INGOT_INSTANCE_OPTIONS_INIT;
    options.num_threads = 1;
    options.user = &thrower;
    options.log = [](void* user, const char*) { Of(user).At(Place::kLog); };
    options.alloc = [](void* user, size_t size, size_t alignment) {
      Of(user).At(Place::kAllocator);
      return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    };
    options.free = [](void*, void* memory, size_t, size_t) { std::free(memory); };
    REQUIRE(Take(ingot_instance_create(&options, &instance)) == "ok");
    REQUIRE(Take(ingot_executable_open_memory(instance, bytes.data(), bytes.size(), "m", nullptr, &executable)) ==
            "ok");
    const ingot_external hook = {"hook",
                                 [](void* user, const ingot_value*, size_t, ingot_value*, size_t) -> ingot_status* {
                                   Of(user).At(Place::kExternal);
                                   return nullptr;
                                 },
                                 &thrower, nullptr};
    ingot_context_options of_context = INGOT_CONTEXT_OPTIONS_INIT;
    of_context.externals = &hook;
    of_context.num_externals = 1;
    REQUIRE(Take(ingot_context_create(executable, &of_context, &context)) == "ok");
    REQUIRE(Take(ingot_executable_find_function(executable, "main", &main)) == "ok");
    REQUIRE(Take(ingot_executable_find_function(executable, "forever", &forever)) == "ok");
    if (thrower.place == Place::kProfiler) {
      const auto profiler = [](void* user, const ingot_event*) { Of(user).At(Place::kProfiler); };
      REQUIRE(Take(ingot_context_set_profiler(context, profiler, &thrower)) == "ok");
    }
    if (thrower.place == Place::kInstrumentBefore || thrower.place == Place::kInstrumentAfter) {
      const ingot_instrument instrument = [](void* user, ingot_phase phase, const ingot_event*,
                                             const ingot_event_argument*, size_t) {
        Of(user).At(phase == INGOT_BEFORE ? Place::kInstrumentBefore : Place::kInstrumentAfter);
        return INGOT_RUN;
      };
      REQUIRE(Take(ingot_context_set_instrument(context, instrument, &thrower)) == "ok");
    }
  }
  Api(const Api&) = delete;
  ~Api() {
    ingot_context_release(context);
    ingot_executable_release(executable);
    ingot_instance_release(instance);
  }
};

// The ways to call; each says how the call of "main" ended, and whether its result was right.
ingot_status* Finish(ingot_status* status, ingot_value& result, bool& is_right) {
  if (status == nullptr) {
    is_right = static_cast<const float*>(result.as.owned_tensor->dl_tensor.data)[3] == 4;
    ingot_value_clear(&result);
  }
  return status;
}
ingot_value Argument(Api& api) {
  ingot_value value{};
  value.kind = INGOT_KIND_TENSOR;
  value.as.tensor = &api.x.tensor;
  return value;
}
ingot_status* Invoke(Api& api, bool& is_right) {
  const ingot_value argument = Argument(api);
  ingot_value result{};
  return Finish(ingot_invoke(api.context, api.main, &argument, 1, &result, 1), result, is_right);
}
ingot_status* RunSet(Api& api, bool& is_right) {
  ingot_value result{};
  ingot_status* status = ingot_context_set_input(api.context, api.main, "x", &api.x.tensor);
  if (status == nullptr) status = ingot_context_run(api.context, api.main);
  if (status == nullptr) status = ingot_context_get_output(api.context, 0, &result);
  return Finish(status, result, is_right);
}
ingot_status* InvokeInto(Api& api, bool& is_right) {
  const ingot_dl_tensor* input = &api.x.tensor;
  ingot_dl_tensor* output = &api.y.tensor;
  ingot_status* status = ingot_invoke_into(api.context, api.main, &input, 1, &output, 1);
  is_right = api.y_values[3] == 4;
  return status;
}
ingot_status* Task(Api& api, bool& is_right) {
  const ingot_value argument = Argument(api);
  ingot_value result{};
  ingot_task* task = nullptr;
  REQUIRE(Take(ingot_invoke_async(api.context, api.main, &argument, 1, &task)) == "ok");
  ingot_status* status = Finish(ingot_task_wait(task, &result, 1), result, is_right);
  ingot_task_release(task);
  return status;
}
ingot_status* TaskInto(Api& api, bool& is_right) {
  const ingot_dl_tensor* input = &api.x.tensor;
  ingot_dl_tensor* output = &api.y.tensor;
  ingot_task* task = nullptr;
  REQUIRE(Take(ingot_invoke_into_async(api.context, api.main, &input, 1, &output, 1, &task)) == "ok");
  ingot_status* status = ingot_task_wait(task, nullptr, 0);
  is_right = api.y_values[3] == 4;
  ingot_task_release(task);
  return status;
}

TEST_CASE("C API: exceptions of the embedder's functions end the call alone, in every way to call") {
  const std::pair<Place, std::string> places[] = {
      {Place::kExternal, "instruction 2"},        {Place::kLog, "instruction 3"},
      {Place::kProfiler, "instruction 0"},        {Place::kInstrumentBefore, "instruction 2"},
      {Place::kInstrumentAfter, "instruction 2"}, {Place::kAllocator, ""},
  };
  const std::pair<std::function<void()>, std::string> exceptions[] = {
      {[] { throw std::runtime_error("no such thing"); }, "no such thing"},
      {[] { throw 7; }, "an exception"},
      {[] { throw std::bad_alloc(); }, "out of memory"},
      {[] { std::vector<int>().reserve(SIZE_MAX); }, "out of memory"},
  };
  for (const auto& [place, where] : places) {
    for (const auto& [raise, said] : exceptions) {
      for (const auto call : {&Invoke, &RunSet, &InvokeInto, &Task, &TaskInto}) {
        CAPTURE(static_cast<int>(place));
        CAPTURE(said);
        Api api({place, raise});
        bool is_right = false;
        // A deadline is armed, and is not when the call has ended.
        REQUIRE(Take(ingot_context_set_deadline(api.context, 1000)) == "ok");
        if (place != Place::kAllocator) REQUIRE(Take(call(api, is_right)) == "ok");
        api.thrower.is_on = true;
        ingot_status* const status = call(api, is_right);
        const std::string code = said == "out of memory" ? "7" : "11";
        CHECK(std::string(ingot_status_message(status)).ends_with(said));
        CHECK(std::string(ingot_status_message(status)).find(where) != std::string::npos);
        CHECK(Take(status).starts_with(code + ": "));
        api.thrower.is_on = false;
        is_right = false;
        CHECK(Take(call(api, is_right)) == "ok");
        CHECK(is_right);
        REQUIRE(Take(ingot_context_set_deadline(api.context, 0.001)) == "ok");
        CHECK(Take(ingot_invoke(api.context, api.forever, nullptr, 0, nullptr, 0)).starts_with("8: "));
      }
    }
  }
}

}  // namespace
}  // namespace ingot
