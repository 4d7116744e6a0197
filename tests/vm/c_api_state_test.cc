// The C API's functions for states: what a context keeps, copied out, set, reset, and the mistakes they report.
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "tests/vm/c_api_session.h"

namespace ingot {
namespace {

using test::Array;
using test::Take;

constexpr const char* kCache = R"(ingot 1
state @past int64[] device 0
state @cache float32[4, 2] device 0 grows axis 0 by @past
function @push export [past in 0..4 state #0](x: float32[1, 2]) -> () {
  register r2: borrowed_mut float32[4, 2]
  register r3: int
  register r4: borrowed_mut int64[]
  register r5: int
  state r2, @cache
  const_int r3, 0
  call_builtin [], cache_append, [r2, r1, r3, r0]
  state r4, @past
  dim r5, past + 1
  call_builtin [], store_int, [r4, r5]
  return []
}
)";

struct Api : test::Session {
  const ingot_function* push = Find("push");
  explicit Api(const std::string& more = "") : Session(kCache + more) {}
  std::string Push(float a, float b) {
    Array<float> x({a, b}, {1, 2});
    const ingot_dl_tensor* input = &x.tensor;
    return Take(ingot_invoke_into(context, push, &input, 1, nullptr, 0));
  }
  std::vector<float> Cache() {
    ingot_dl_managed_tensor_versioned* managed = nullptr;
    REQUIRE(Take(ingot_context_get_state(context, "cache", &managed)) == "ok");
    const ingot_dl_tensor& tensor = managed->dl_tensor;
    REQUIRE(tensor.ndim == 2);
    std::vector<float> values(static_cast<size_t>(tensor.shape[0] * tensor.shape[1]));
    if (!values.empty()) std::memcpy(values.data(), tensor.data, values.size() * sizeof(float));
    managed->deleter(managed);
    return values;
  }
};

TEST_CASE("C API: states are named, copied out, and back at their beginning after a reset") {
  Api api;
  REQUIRE(ingot_executable_state_count(api.executable) == 2);
  CHECK(std::string(ingot_executable_state_name(api.executable, 1)) == "cache");
  CHECK(ingot_executable_state_name(api.executable, 2) == nullptr);
  CHECK(ingot_executable_state_count(nullptr) == 0);
  REQUIRE(api.Push(1, 2) == "ok");
  REQUIRE(api.Push(3, 4) == "ok");
  CHECK(api.Cache() == std::vector<float>{1, 2, 3, 4});
  REQUIRE(Take(ingot_context_reset_states(api.context)) == "ok");
  CHECK(api.Cache().empty());
}

TEST_CASE("C API: states of one context go into another") {
  Api api;
  REQUIRE(api.Push(1, 2) == "ok");
  Array<int64_t> length({2}, {});
  Array<float> cache({5, 6, 7, 8}, {2, 2});
  const char* names[] = {"cache", "past"};
  const ingot_dl_tensor* tensors[] = {&cache.tensor, &length.tensor};
  REQUIRE(Take(ingot_context_set_states(api.context, names, tensors, 2)) == "ok");
  REQUIRE(api.Push(9, 9) == "ok");
  CHECK(api.Cache() == std::vector<float>{5, 6, 7, 8, 9, 9});
  Array<float> shorter({1, 1}, {1, 2});
  CHECK(Take(ingot_context_set_state(api.context, "cache", &shorter.tensor)) ==
        "3: m: state \"cache\": expected float32[3, 2], got float32[1, 2]");
}

// A closure cannot leave the VM, so that the call fails behind its last instruction.
TEST_CASE("C API: a call whose results cannot be handed out leaves a cache as it was") {
  constexpr const char* kHeld = R"(function @nothing () -> () {
  return []
}
function @late export [past in 0..4 state #0](x: float32[1, 2]) -> (f: fn() -> ()) {
  register r2: fn() -> ()
  call_function [], @push, [r1]
  make_closure r2, @nothing, []
  return [r2]
}
)";
  Api api(kHeld);
  const ingot_function* late = api.Find("late");
  REQUIRE(api.Push(1, 2) == "ok");
  Array<float> x({9, 9}, {1, 2});
  ingot_value argument{INGOT_KIND_TENSOR, {}}, result{};
  argument.as.tensor = &x.tensor;
  const std::string said = "1: a result of kind closure cannot leave the VM";
  CHECK(Take(ingot_invoke(api.context, late, &argument, 1, &result, 1)) == said);
  CHECK(api.Cache() == std::vector<float>{1, 2});
  ingot_task* task = nullptr;
  REQUIRE(Take(ingot_invoke_async(api.context, late, &argument, 1, &task)) == "ok");
  CHECK(Take(ingot_task_wait(task, &result, 1)) == said);
  ingot_task_release(task);
  CHECK(api.Cache() == std::vector<float>{1, 2});
  REQUIRE(api.Push(3, 4) == "ok");
  CHECK(api.Cache() == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("C API: mistakes with states") {
  Api api;
  ingot_dl_managed_tensor_versioned* managed = nullptr;
  CHECK(Take(ingot_context_get_state(api.context, "cachet", &managed)) ==
        "2: m: there is no state \"cachet\"; did you mean \"cache\"?");
  CHECK(Take(ingot_context_get_state(api.context, "cache", nullptr)) == "1: the argument \"tensor\" is NULL");
  CHECK(Take(ingot_context_get_state(nullptr, "cache", &managed)) == "1: the argument \"context\" is NULL");
  CHECK(Take(ingot_context_set_state(api.context, nullptr, nullptr)) == "1: the argument \"tensor\" is NULL");
  CHECK(Take(ingot_context_reset_states(nullptr)) == "1: the argument \"context\" is NULL");
  Array<int64_t> length({0}, {});
  const char* names[] = {"past", "past"};
  const ingot_dl_tensor* tensors[] = {&length.tensor, &length.tensor};
  CHECK(Take(ingot_context_set_states(api.context, names, tensors, 2)) == "1: state \"past\" is given twice");
  CHECK(Take(ingot_context_set_states(api.context, names, tensors, 1)) == "3: m: the state \"cache\" is missing");
  CHECK(Take(ingot_context_set_states(api.context, names, nullptr, 1)) == "1: the argument \"tensors\" is NULL");
}

}  // namespace
}  // namespace ingot
