// Every allocation fails, once or with all after it: opening, calling in every way, calling again and releasing through
// the C API gives the out-of-memory status (or does without), and the same objects then give the right result.
#include <doctest/doctest.h>

#include <string>

#include "ingot/ingot.h"
#include "tests/allocation_counter.h"
#include "tests/vm/round_trip.h"
#include "vm/program/program_codec.h"

namespace ingot {
namespace {

constexpr const char* kProgram = R"(ingot 1
constant "w" float32[4] = 1, 2, 3, 4
constant "twice" float32[4] = prepared @prepare 0
state @s float32[4] device 0
function @prepare () -> (twice: float32[4]) {
  register r0: constant float32[4]
  register r1: float32[4]
  const_tensor r0, #0
  alloc_output r1, 0, [4]
  call_builtin [], add, [r1, r0, r0]
  return [r1]
}
function @helper (t: float32[4], n: int) -> (u: tuple(float32[4], string)) {
  register r2: float32[4]
  register r3: string
  register r4: tuple(float32[4], string)
  copy r2, r0
  const_string r3, "a text that is too long for any small string optimisation"
  tuple r4, [r2, r3]
  return [r4]
}
function @main export [n](x: float32[n], m: int) -> (y: float32[n], t: tuple(float32[4], string)) {
  register r3: constant float32[4]
  register r4: float32[n]
  register r5: float32[4]
  register r6: fn(int) -> (tuple(float32[4], string))
  register r7: tuple(float32[4], string)
  register r8: arena float32[n]
  arena device 0, size (n * 4 + 63) // 64 * 64
  entry 0: arena 0, offset 0, size n * 4, live 0..7
  const_tensor r3, #0
  plan_view r8, 0, [n]
  call_builtin [], mul, [r8, r1, r1]
  alloc_output r4, 0, [n]
  copy r5, r3
  make_closure r6, @helper, [r5]
  call_closure [r7], r6, [r2]
  call_builtin [], add, [r4, r8, r1]
  return [r4, r7]
}
function @into export [n](x: float32[n]) -> (y: float32[n]) {
  register r2: float32[n]
  register r3: float32[n]
  alloc_output r2, 0, [n]
  copy r3, r1
  call_builtin [], mul, [r2, r1, r3]
  return [r2]
}
)";

struct Objects {
  ingot_instance* instance = nullptr;
  ingot_executable* executable = nullptr;
  ingot_context* context = nullptr;
  int32_t num_threads = 1;
  double deadline_seconds = 0;
  const ingot_function *function = nullptr, *into = nullptr;
  ~Objects() {
    ingot_context_release(context);
    ingot_executable_release(executable);
    ingot_instance_release(instance);
  }
};

// True for success, false for an out-of-memory status; any other failure fails the test.
bool Good(ingot_status* status) {
  if (status == nullptr) return true;
  CHECK_MESSAGE(ingot_status_get_code(status) == INGOT_OUT_OF_MEMORY, ingot_status_message(status));
  ingot_status_release(status);
  return false;
}

enum class Way { kInvoke, kInvokeInto, kRunSet, kTask, kTaskInto };

bool CallInto(Objects& o, const ingot_dl_tensor& input, bool is_task) {
  float values[4] = {};
  int64_t shape[1] = {4};
  ingot_dl_tensor tensor = {values, {INGOT_DL_CPU, 0}, 1, {2, 32, 1}, shape, nullptr, 0};
  const ingot_dl_tensor* inputs[1] = {&input};
  ingot_dl_tensor* outputs[1] = {&tensor};
  ingot_task* task = nullptr;
  if (!is_task) {
    if (!Good(ingot_invoke_into(o.context, o.into, inputs, 1, outputs, 1))) return false;
  } else {
    if (!Good(ingot_invoke_into_async(o.context, o.into, inputs, 1, outputs, 1, &task))) return false;
    const bool good = Good(ingot_task_wait(task, nullptr, 0));
    ingot_task_release(task);
    if (!good) return false;
  }
  CHECK(values[3] == 16);
  return true;
}

bool CallWith(Objects& o, const ingot_value* arguments, ingot_value* results, Way way) {
  if (way == Way::kInvoke) return Good(ingot_invoke(o.context, o.function, arguments, 2, results, 2));
  if (way == Way::kTask) {
    ingot_task* task = nullptr;
    if (!Good(ingot_invoke_async(o.context, o.function, arguments, 2, &task))) return false;
    const bool good = Good(ingot_task_wait(task, results, 2));
    ingot_task_release(task);
    return good;
  }
  if (!Good(ingot_context_set_input(o.context, o.function, "x", arguments[0].as.tensor))) return false;
  if (!Good(ingot_context_set_input_value(o.context, o.function, "m", &arguments[1]))) return false;
  if (!Good(ingot_context_run(o.context, o.function))) return false;
  if (!Good(ingot_context_get_output(o.context, 0, &results[0]))) return false;
  if (Good(ingot_context_get_output(o.context, 1, &results[1]))) return true;
  ingot_value_clear(&results[0]);
  return false;
}

bool Call(Objects& o, const std::vector<std::byte>& bytes, Way way) {
  if (o.instance == nullptr) {
    ingot_instance_options options = INGOT_INSTANCE_OPTIONS_INIT;
    options.num_threads = o.num_threads;
    if (!Good(ingot_instance_create(&options, &o.instance))) return false;
  }
  if (o.executable == nullptr &&
      !Good(ingot_executable_open_memory(o.instance, bytes.data(), bytes.size(), "m", nullptr, &o.executable))) {
    return false;
  }
  if (o.function == nullptr && !Good(ingot_executable_find_function(o.executable, "main", &o.function))) return false;
  if (o.into == nullptr && !Good(ingot_executable_find_function(o.executable, "into", &o.into))) return false;
  if (o.context == nullptr) {
    ingot_context_options options = INGOT_CONTEXT_OPTIONS_INIT;
    options.deadline_seconds = o.deadline_seconds;
    if (!Good(ingot_context_create(o.executable, &options, &o.context))) return false;
  }
  alignas(64) float data[8] = {0, 1, 0, 2, 0, 3, 0, 4};  // strided: it is compacted
  int64_t shape[1] = {4}, strides[1] = {2};
  const ingot_dl_tensor tensor = {data, {INGOT_DL_CPU, 0}, 1, {2, 32, 1}, shape, strides, sizeof(float)};
  ingot_value arguments[2] = {}, results[2] = {};
  arguments[0].kind = INGOT_KIND_TENSOR;
  arguments[0].as.tensor = &tensor;
  arguments[1].kind = INGOT_KIND_INT;
  if (way == Way::kInvokeInto || way == Way::kTaskInto) return CallInto(o, tensor, way == Way::kTaskInto);
  if (!CallWith(o, arguments, results, way)) return false;
  CHECK(static_cast<const float*>(results[0].as.owned_tensor->dl_tensor.data)[3] == 20);
  CHECK(results[1].as.tuple.count == 2);
  for (ingot_value& result : results) ingot_value_clear(&result);
  return true;
}

TEST_CASE("every allocation fails, once or for ever: the status, no leak, and the next run is right") {
  const std::vector<std::byte> bytes = *vm::EncodeProgram(test::Assembled(kProgram));
  int num_failures = 0;
  for (const Way way : {Way::kInvoke, Way::kInvokeInto, Way::kRunSet, Way::kTask, Way::kTaskInto}) {
    for (const bool for_ever : {false, true}) {
      CAPTURE(static_cast<int>(way));
      CAPTURE(for_ever);
      for (int64_t k = 1;; ++k) {
        Objects objects;
        test::FailAllocation(k, for_ever);
        const bool good = Call(objects, bytes, way) && Call(objects, bytes, way);
        const bool has_failed = test::AllocationHasFailed();
        test::FailAllocation(0);
        if (good && !has_failed) break;
        if (!good) ++num_failures;
        CHECK(Call(objects, bytes, way));
        CHECK(Call(objects, bytes, Way::kInvoke));
      }
    }
  }
  // Those of a task's thread, of the timer of deadlines, and of the pool, too.
  for (const Way way : {Way::kTask, Way::kTaskInto}) {
    CAPTURE(static_cast<int>(way));
    for (int64_t k = 1;; ++k) {
      Objects objects;
      objects.num_threads = 3;
      objects.deadline_seconds = 1000;
      test::FailAllocationOfAnyThread(k);
      const bool good = Call(objects, bytes, way) && Call(objects, bytes, way);
      const bool has_failed = test::AllocationOfAnyThreadHasFailed();
      test::FailAllocationOfAnyThread(0);
      if (good && !has_failed) break;
      if (!good) ++num_failures;
      CHECK(Call(objects, bytes, way));
    }
  }
  CHECK(num_failures > 1000);
  MESSAGE("allocations of loading and calling: ", num_failures, " ended out of memory");
}

TEST_CASE("every allocation fails: states are set whole or not at all, and are got and reset") {
  // On the host, and on a device whose memory it does not reach.
  std::string text, head = "ingot 1\ndevice \"cpu\" 0\ndevice \"null\" 0\n";
  SUBCASE("host") { text = head + "state @a float32[4] device 0\nstate @b float32[2] device 0\n"; }
  SUBCASE("device") { text = head + "state @a float32[4] device 1\nstate @b float32[2] device 1\n"; }
  const std::vector<std::byte> bytes =
      *vm::EncodeProgram(test::Assembled(text + "function @main export () -> () {\n  return []\n}\n"));
  Objects o;
  REQUIRE(Good(ingot_instance_create(nullptr, &o.instance)));
  REQUIRE(Good(ingot_executable_open_memory(o.instance, bytes.data(), bytes.size(), "m", nullptr, &o.executable)));
  REQUIRE(Good(ingot_context_create(o.executable, nullptr, &o.context)));
  float a[8] = {1, 0, 2, 0, 3, 0, 4, 0}, b[2] = {5, 6};
  int64_t shape_a[1] = {4}, strides_a[1] = {2}, shape_b[1] = {2};
  const ingot_dl_tensor of_a = {a, {INGOT_DL_CPU, 0}, 1, {2, 32, 1}, shape_a, strides_a, 0};
  const ingot_dl_tensor of_b = {b, {INGOT_DL_CPU, 0}, 1, {2, 32, 1}, shape_b, nullptr, 0};
  const char* names[2] = {"b", "a"};
  const ingot_dl_tensor* tensors[2] = {&of_b, &of_a};
  // The last elements of both.
  const auto get = [&](bool& good) {
    std::pair<float, float> last{-1, -1};
    ingot_dl_managed_tensor_versioned* managed = nullptr;
    good = Good(ingot_context_get_state(o.context, "a", &managed));
    if (!good) return last;
    last.first = static_cast<const float*>(managed->dl_tensor.data)[3];
    managed->deleter(managed);
    good = Good(ingot_context_get_state(o.context, "b", &managed));
    if (!good) return last;
    last.second = static_cast<const float*>(managed->dl_tensor.data)[1];
    managed->deleter(managed);
    return last;
  };
  int num_failures = 0;
  for (const bool for_ever : {false, true}) {
    for (int64_t k = 1;; ++k) {
      bool good = true;
      test::FailAllocation(k, for_ever);
      const bool is_set = Good(ingot_context_set_states(o.context, names, tensors, 2));
      const bool was_set_before_failing = !test::AllocationHasFailed();
      const auto during = get(good);
      const bool is_reset = Good(ingot_context_reset_states(o.context));
      const bool has_failed = test::AllocationHasFailed();
      test::FailAllocation(0);
      CAPTURE(k);
      CAPTURE(for_ever);
      if (good) CHECK(during == (is_set ? std::pair(4.F, 6.F) : std::pair(0.F, 0.F)));
      if (was_set_before_failing) CHECK(is_set);
      bool good_after = true;
      CHECK(get(good_after) == (is_set && !is_reset ? std::pair(4.F, 6.F) : std::pair(0.F, 0.F)));
      CHECK(good_after);
      CHECK(Good(ingot_context_reset_states(o.context)));
      if (!has_failed) break;
      num_failures += is_set && is_reset && good ? 0 : 1;
    }
  }
  CHECK(num_failures > 5);
}

}  // namespace
}  // namespace ingot
