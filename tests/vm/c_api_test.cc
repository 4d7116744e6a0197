#include <doctest/doctest.h>

#include <cstring>

#include "ingot/ingot.h"
#include "tests/allocation_counter.h"
#include "tests/vm/c_api_session.h"
#include "tests/vm/elf_image.h"

// tests/vm/c_api_header_test.c: the header as C11.
extern "C" const char* ingot_test_version_from_c(void);

namespace ingot {
namespace {

using test::Array;
using test::Take;

constexpr const char* kProgram =
    R"(
external @triple(x: float32[2], k: int) -> (y: float32[2])
function @mixed export [n](x: float32[n], t: tuple(int, string), s: shape[?, ?], f: float, b: bool, d: dtype) -> )"
    R"((y: float32[n], t: tuple(int, string), s: shape[?, ?], f: float, b: bool, d: dtype) {
  register r7: float32[n]
  copy r7, r1
  return [r7, r2, r3, r4, r5, r6]
}
function @with_external export (x: float32[2]) -> (y: float32[2]) {
  register r1: int
  register r2: float32[2]
  const_int r1, 3
  call_external [r2], @triple, [r0, r1]
  return [r2]
}
)";

ingot_status* Triple(void* user, const ingot_value* arguments, size_t, ingot_value* results, size_t) {
  ++*static_cast<int*>(user);
  const auto* x = static_cast<const float*>(arguments[0].as.tensor->data);
  if (x[0] < 0) return ingot_status_create(INGOT_FAILED, "negative");
  struct Owner {
    float data[2];
    int64_t shape[1] = {2};
    ingot_dl_managed_tensor_versioned managed{};
  };
  auto* owner = new Owner();
  for (int i = 0; i < 2; ++i) owner->data[i] = x[i] * static_cast<float>(arguments[1].as.i);
  owner->managed.version = {INGOT_DL_MAJOR_VERSION, INGOT_DL_MINOR_VERSION};
  owner->managed.manager_ctx = owner;
  owner->managed.deleter = [](ingot_dl_managed_tensor_versioned* self) {
    delete static_cast<Owner*>(self->manager_ctx);
  };
  owner->managed.dl_tensor = {owner->data, {INGOT_DL_CPU, 0}, 1, {2, 32, 1}, owner->shape, nullptr, 0};
  results[0].kind = INGOT_KIND_TENSOR;
  results[0].as.owned_tensor = &owner->managed;
  return nullptr;
}

std::string WholeProgram() { return test::Add16Program() + kProgram; }

struct Calls {
  int num_calls = 0;
  const ingot_external external = {"triple", &Triple, &num_calls};
};
struct Api : Calls, test::Session {
  Api() : Session(WholeProgram(), {.num_threads = 1, .trust = INGOT_TRUST_FILE, .external = &external}) {}
};

struct alignas(64) Floats {
  float data[16];
  int64_t shape[1];
  ingot_dl_tensor tensor;
  explicit Floats(int n) : data{}, shape{n}, tensor{data, {INGOT_DL_CPU, 0}, 1, {2, 32, 1}, shape, nullptr, 0} {
    for (int i = 0; i < n; ++i) data[i] = static_cast<float>(i);
  }
  Floats(const Floats&) = delete;
};

TEST_CASE("native kernels want trust, and external functions want to be registered") {
  Api api;
  ingot_executable* executable = nullptr;
  ingot_context* context = nullptr;
  CHECK(Take(ingot_executable_open_memory(api.instance, api.bytes.data(), api.bytes.size(), "m", nullptr, &executable))
            .starts_with("6: m: has native"));
  CHECK(executable == nullptr);
  CHECK(Take(ingot_context_create(api.executable, nullptr, &context))
            .starts_with("2: m: external function \"triple\" is not registered"));
  CHECK(context == nullptr);
}

TEST_CASE("C API: signatures") {
  Api api;
  CHECK(std::string(ingot_version()) == ingot_test_version_from_c());
  CHECK(ingot_executable_function_count(api.executable) == 3);
  CHECK(ingot_executable_function(api.executable, 3) == nullptr);
  CHECK(std::string(ingot_executable_metadata_key(api.executable, 0)) == "producer");
  CHECK(std::string(ingot_executable_metadata_value(api.executable, 0)) == "test");
  CHECK(ingot_executable_metadata_key(api.executable, 1) == nullptr);
  const ingot_function* mixed = api.Find("mixed");
  CHECK(std::string(ingot_function_signature(mixed))
            .starts_with("(x: float32[n], t: tuple(int, string), s: shape[?, ?]"));
  CHECK(ingot_function_input_count(mixed) == 6);
  CHECK(std::string(ingot_function_input_name(mixed, 0)) == "x");
  const ingot_type* x = ingot_function_input_type(mixed, 0);
  CHECK(ingot_type_kind(x) == INGOT_KIND_TENSOR);
  CHECK(std::string(ingot_type_text(x)) == "float32[n]");
  CHECK(ingot_type_rank(x) == 1);
  CHECK(ingot_type_dim(x, 0) == -1);
  CHECK(std::string(ingot_type_dim_text(x, 0)) == "n");
  CHECK(ingot_type_dtype(x).bits == 32);
  CHECK(ingot_type_element_count(ingot_function_input_type(mixed, 1)) == 2);
  int64_t min = -1, max = -1;
  CHECK(std::string(ingot_function_symbol(mixed, 0, &min, &max)) == "n");
  CHECK(min == 0);
  CHECK(max == INT64_MAX);
  const ingot_function* missing = nullptr;
  CHECK(Take(ingot_executable_find_function(api.executable, "mian", &missing)).find("did you mean \"main\"?") !=
        std::string::npos);
}

TEST_CASE("C API: invoke_into, the stateful way, and failures that name their place") {
  Api api;
  const ingot_function* main = api.Find("main");
  Floats x(16), y(16);
  const ingot_dl_tensor* inputs[] = {&x.tensor};
  ingot_dl_tensor* outputs[] = {&y.tensor};
  REQUIRE(Take(ingot_invoke_into(api.context, main, inputs, 1, outputs, 1)) == "ok");
  CHECK(y.data[15] == 30);
  const int64_t before = test::NumAllocations();
  for (int i = 0; i < 10; ++i) CHECK(ingot_invoke_into(api.context, main, inputs, 1, outputs, 1) == nullptr);
  CHECK(test::NumAllocations() == before);
  CHECK(Take(ingot_invoke_into(api.context, main, inputs, 0, outputs, 1))
            .starts_with("1: m: function \"main\" takes 1 inputs"));
  CHECK(Take(ingot_invoke_into(api.context, nullptr, inputs, 1, outputs, 1)) == "1: the argument \"function\" is NULL");
  x.shape[0] = 8;
  CHECK(Take(ingot_invoke_into(api.context, main, inputs, 1, outputs, 1)) ==
        "3: m: function \"main\", parameter \"x\": expected float32[16], got float32[8]");
  x.shape[0] = 16;
  CHECK(Take(ingot_context_run(api.context, main)) == "1: input \"x\" is not set");
  CHECK(Take(ingot_context_set_input(api.context, main, "y", &x.tensor)) == "2: function \"main\" has no input \"y\"");
  REQUIRE(Take(ingot_context_set_input(api.context, main, "x", &x.tensor)) == "ok");
  REQUIRE(Take(ingot_context_run(api.context, main)) == "ok");
  ingot_value output;
  REQUIRE(Take(ingot_context_get_output(api.context, 0, &output)) == "ok");
  CHECK(static_cast<const float*>(output.as.owned_tensor->dl_tensor.data)[3] == 6);
  ingot_value_clear(&output);
  CHECK_FALSE(Take(ingot_context_get_output(api.context, 1, &output)) == "ok");
}

// Functions whose parameters are no tensors, though tensors are what they get.
struct Kept : test::Session {
  Array<int64_t> first{{1, 2}, {2}};
  Array<int64_t> second{{7, 8}, {2}};
  Kept()
      : Session(std::string(R"(ingot 1
function @same export (x: object("any")) -> (y: object("any")) {
  return [r0]
}
function @written export (x: object("any")) -> (y: int64[2]) {
  register r1: int64[2]
  register r2: int64[2]
  register r3: int64[2]
  match r1, r0
  copy r3, r1
  alloc r2, [2]
  copy_into r1, r2
  return [r3]
}
function @whole export (x: tuple(int64[2])) -> (y: tuple(int64[2])) {
  return [r0]
}
function @part export (x: tuple(int64[2])) -> (y: int64[2]) {
  register r1: int64[2]
  register r2: int64[2]
  register r3: int64[2]
  tuple_get r1, r0, 0
  copy r3, r1
  alloc r2, [2]
  copy_into r1, r2
  return [r3]
}
)")) {}
  void Set(const ingot_function* function, const ingot_dl_tensor& tensor, bool in_tuple) {
    ingot_value part{}, whole{};
    part.kind = INGOT_KIND_TENSOR;
    part.as.tensor = &tensor;
    whole.kind = INGOT_KIND_TUPLE;
    whole.as.tuple = {&part, 1};
    REQUIRE(Take(ingot_context_set_input_value(context, function, "x", in_tuple ? &whole : &part)) == "ok");
  }
  ingot_value Run(const ingot_function* function) {
    ingot_value output{};
    REQUIRE(Take(ingot_context_run(context, function)) == "ok");
    REQUIRE(Take(ingot_context_get_output(context, 0, &output)) == "ok");
    return output;
  }
  static const ingot_dl_managed_tensor_versioned& TensorOf(const ingot_value& value) {
    return *(value.kind == INGOT_KIND_TUPLE ? value.as.tuple.elements[0] : value).as.owned_tensor;
  }
  static std::vector<int64_t> Elements(const ingot_value& value) {
    const auto* data = static_cast<const int64_t*>(TensorOf(value).dl_tensor.data);
    return {data, data + 2};
  }
};

TEST_CASE("C API: an output stays as it is when another input is set") {
  Kept kept;
  for (const bool in_tuple : {false, true}) {
    const ingot_function* same = kept.Find(in_tuple ? "whole" : "same");
    kept.Set(same, kept.first.tensor, in_tuple);
    ingot_value output = kept.Run(same);
    kept.Set(same, kept.second.tensor, in_tuple);
    CHECK(Kept::Elements(output) == kept.first.values);
    ingot_value_clear(&output);
    output = kept.Run(same);
    CHECK(Kept::Elements(output) == kept.second.values);
    ingot_value_clear(&output);
  }
}

TEST_CASE("C API: an input that is set stays as it is, whatever the callee and the caller write") {
  Kept kept;
  const ingot_function* written = kept.Find("written");
  const ingot_function* part = kept.Find("part");
  kept.Set(written, kept.first.tensor, false);
  for (int run = 0; run < 2; ++run) {
    ingot_value output = kept.Run(written);
    CHECK(Kept::Elements(output) == kept.first.values);
    ingot_value_clear(&output);
  }
  const ingot_function* same = kept.Find("same");
  kept.Set(same, kept.first.tensor, false);
  ingot_value output = kept.Run(same);
  REQUIRE((Kept::TensorOf(output).flags & INGOT_DL_FLAG_READ_ONLY) == 0);
  static_cast<int64_t*>(Kept::TensorOf(output).dl_tensor.data)[0] = -5;
  ingot_value again = kept.Run(same);
  CHECK(Kept::Elements(again) == kept.first.values);
  ingot_value_clear(&output);
  ingot_value_clear(&again);

  kept.Set(part, kept.first.tensor, true);
  for (int run = 0; run < 2; ++run) {
    output = kept.Run(part);
    CHECK(Kept::Elements(output) == kept.first.values);
    ingot_value_clear(&output);
  }
  const ingot_function* whole = kept.Find("whole");
  kept.Set(whole, kept.first.tensor, true);
  output = kept.Run(whole);
  CHECK((Kept::TensorOf(output).flags & INGOT_DL_FLAG_READ_ONLY) != 0);
  ingot_value_clear(&output);
}

TEST_CASE("C API: the text of all results together is bounded") {
  // Strings that the VM shares are copied for the caller, one by one.
  const auto ask = [](size_t num_texts, bool in_tuple) {
    std::string names, values, types;
    for (size_t i = 0; i < num_texts; ++i) {
      names += (i == 0 ? "y" : ", y") + std::to_string(i) + ": string";
      values += i == 0 ? "r0" : ", r0";
      types += i == 0 ? "string" : ", string";
    }
    const std::string type = "tuple(" + types + ")";
    test::Session session(
        "ingot 1\nfunction @main export () -> (" + (in_tuple ? "y: " + type : names) + ") {\n  register r0: string\n" +
        (in_tuple ? "  register r1: " + type + "\n" : "") + "  const_string r0, \"" + std::string(1 << 20, 'a') +
        "\"\n" + (in_tuple ? "  tuple r1, [" + values + "]\n  return [r1]\n" : "  return [" + values + "]\n") + "}\n");
    std::vector<ingot_value> results(in_tuple ? 1 : num_texts);
    const std::string said =
        Take(ingot_invoke(session.context, session.Find("main"), nullptr, 0, results.data(), results.size()));
    if (said == "ok") {
      for (ingot_value& result : results) ingot_value_clear(&result);
    }
    return said;
  };
  for (const bool in_tuple : {false, true}) {
    CHECK(ask(60, in_tuple) == "ok");
    CHECK(ask(70, in_tuple).find("too much text") != std::string::npos);
  }
}

TEST_CASE("C API: values of every kind go in and come out") {
  Api api;
  Floats x(4);
  ingot_value elements[2] = {};
  elements[0].kind = INGOT_KIND_INT;
  elements[0].as.i = 7;
  elements[1].kind = INGOT_KIND_STRING;
  elements[1].as.string = "seven";
  const int64_t extents[2] = {3, 4};
  ingot_value arguments[6] = {}, results[6] = {};
  arguments[0].kind = INGOT_KIND_TENSOR;
  arguments[0].as.tensor = &x.tensor;
  arguments[1].kind = INGOT_KIND_TUPLE;
  arguments[1].as.tuple.elements = elements;
  arguments[1].as.tuple.count = 2;
  arguments[2].kind = INGOT_KIND_SHAPE;
  arguments[2].as.shape.extents = extents;
  arguments[2].as.shape.rank = 2;
  arguments[3].kind = INGOT_KIND_FLOAT;
  arguments[3].as.f = 1.5;
  arguments[4].kind = INGOT_KIND_BOOL;
  arguments[4].as.b = 1;
  arguments[5].kind = INGOT_KIND_DTYPE;
  arguments[5].as.dtype = {2, 16, 1};
  REQUIRE(Take(ingot_invoke(api.context, api.Find("mixed"), arguments, 6, results, 6)) == "ok");
  ingot_context_release(api.context);  // results outlive their context
  api.context = nullptr;
  CHECK(static_cast<const float*>(results[0].as.owned_tensor->dl_tensor.data)[3] == 3);
  CHECK(results[1].as.tuple.elements[0].as.i == 7);
  CHECK(std::strcmp(results[1].as.tuple.elements[1].as.string, "seven") == 0);
  CHECK(results[2].as.shape.extents[1] == 4);
  CHECK(results[3].as.f == 1.5);
  CHECK(results[4].as.b == 1);
  CHECK(results[5].as.dtype.bits == 16);
  for (ingot_value& result : results) ingot_value_clear(&result);
}

TEST_CASE("C API: external functions") {
  Api api;
  Floats x(2), y(2);
  const ingot_dl_tensor* inputs[] = {&x.tensor};
  ingot_dl_tensor* outputs[] = {&y.tensor};
  const ingot_function* function = api.Find("with_external");
  REQUIRE(Take(ingot_invoke_into(api.context, function, inputs, 1, outputs, 1)) == "ok");
  CHECK(y.data[1] == 3);
  CHECK(api.num_calls == 1);
  x.data[0] = -1;
  ingot_status* status = ingot_invoke_into(api.context, function, inputs, 1, outputs, 1);
  CHECK(std::string(ingot_status_function(status)) == "with_external");
  CHECK(Take(status).ends_with("external function \"triple\": negative"));
}

TEST_CASE("C API: a call that fails before its invocation has no place, whatever failed before it") {
  Api api;
  Floats x(2), y(2);
  const ingot_dl_tensor* inputs[] = {&x.tensor};
  ingot_dl_tensor* outputs[] = {&y.tensor};
  const ingot_function* function = api.Find("with_external");
  const auto fails_without_place = [&] {
    ingot_status* status = ingot_invoke_into(api.context, function, inputs, 1, nullptr, 1);
    CHECK(std::string(ingot_status_function(status)).empty());
    CHECK(std::string(ingot_status_location(status)).empty());
    CHECK(Take(status) == "1: the argument \"output\" is NULL");
  };
  x.data[0] = -1;
  CHECK(Take(ingot_invoke_into(api.context, function, inputs, 1, outputs, 1)) != "ok");
  fails_without_place();
  ingot_task* task = nullptr;
  REQUIRE(Take(ingot_invoke_into_async(api.context, function, inputs, 1, outputs, 1, &task)) == "ok");
  ingot_task_wait_for(task, -1);
  ingot_task_release(task);
  fails_without_place();
}

TEST_CASE("C API: an embedder's allocator serves every tensor, also after the instance is released") {
  struct Counts {
    int64_t live = 0, total = 0;
  } counts;
  ingot_instance_options options = INGOT_INSTANCE_OPTIONS_INIT;
  options.num_threads = 1;
  options.user = &counts;
  options.alloc = [](void* user, size_t size, size_t alignment) {
    auto* c = static_cast<Counts*>(user);
    ++c->live, ++c->total;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  };
  options.free = [](void* user, void* memory, size_t, size_t) {
    --static_cast<Counts*>(user)->live;
    free(memory);
  };
  Api api;
  ingot_instance* instance = nullptr;
  ingot_executable* executable = nullptr;
  ingot_context* context = nullptr;
  REQUIRE(Take(ingot_instance_create(&options, &instance)) == "ok");
  ingot_open_options open = INGOT_OPEN_OPTIONS_INIT;
  open.kernels = INGOT_KERNELS_STUB;
  const std::vector<std::byte> bytes = *vm::EncodeProgram(test::Assembled(test::Add16Program()));
  REQUIRE(Take(ingot_executable_open_memory(instance, bytes.data(), bytes.size(), nullptr, &open, &executable)) ==
          "ok");
  REQUIRE(Take(ingot_context_create(executable, nullptr, &context)) == "ok");
  const ingot_function* main = ingot_executable_function(executable, 0);
  Floats x(16);
  ingot_value argument = {}, result = {};
  argument.kind = INGOT_KIND_TENSOR;
  argument.as.tensor = &x.tensor;
  REQUIRE(Take(ingot_invoke(context, main, &argument, 1, &result, 1)) == "ok");
  CHECK(ingot_context_memory_in_use(context) >= 64);
  ingot_context_release(context);
  ingot_executable_release(executable);
  ingot_instance_release(instance);
  CHECK(counts.total > 0);
  CHECK(counts.live > 0);
  ingot_value_clear(&result);
  CHECK(counts.live == 0);
}

}  // namespace
}  // namespace ingot
