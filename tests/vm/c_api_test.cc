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
