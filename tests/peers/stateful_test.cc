// The C API, used as other virtual machines' tests use theirs (tests/peers/README.md): inputs that are set, runs,
// outputs that are fetched, mistakes, asynchronous calls, and several executables at the same time.
#include <cstring>

#include "tests/vm/c_api_session.h"

namespace ingot {
namespace {

using test::Array;
using test::Session;
using test::Take;

constexpr const char* kProgram = R"(ingot 1
function @main export (x: float32[4], w: float32[4]) -> (y: float32[4]) {
  register r2: float32[4]
  alloc_output r2, 0, [4]
  call_builtin [], mul, [r2, r0, r1]
  return [r2]
}
function @pair export (x: int32[]) -> (a: int32[], b: int32[]) {
  register r1: int32[]
  copy r1, r0
  return [r1, r1]
}
function @nested export (x: int32[]) -> (t: tuple(int32[], tuple(int32[])), b: int32[]) {
  register r1: int32[]
  register r2: tuple(int32[])
  register r3: tuple(int32[], tuple(int32[]))
  copy r1, r0
  tuple r2, [r1]
  tuple r3, [r1, r2]
  return [r3, r1]
}
function @first export (t: tuple(float32[4], float32[4])) -> (y: float32[4]) {
  register r1: float32[4]
  tuple_get r1, r0, 0
  return [r1]
}
function @of_all_kinds export (i: int, f: float, b: bool, s: string, d: shape[?, ?]))"
                                 R"( -> (i: int, f: float, b: bool, s: string, d: shape[?, ?]) {
  return [r0, r1, r2, r3, r4]
}
function @straight export (n: int) -> (m: int) {
  register r1: int
  dim r1, r0 + 1
  dim r1, r1 + 1
  dim r1, r1 + 1
  return [r1]
}
function @branching export (c: int, a: int, b: int) -> (m: int) {
  register r3: bool
  test r3, r0 != 0
  branch r3, then, else
then:
  return [r1]
else:
  return [r2]
}
)";

const Array<float>& X() {
  static const Array<float> x({1, 2, 3, 4}, {4});
  return x;
}
const Array<float>& W() {
  static const Array<float> w({2, 3, 4, 5}, {4});
  return w;
}

// The elements of a result that is a vector or a scalar.
template <typename T = float>
std::vector<T> Elements(ingot_value& value) {
  REQUIRE(value.kind == INGOT_KIND_TENSOR);
  const ingot_dl_tensor& tensor = value.as.owned_tensor->dl_tensor;
  std::vector<T> elements(tensor.ndim == 0 ? 1 : static_cast<size_t>(tensor.shape[0]));
  std::memcpy(elements.data(), tensor.data, elements.size() * sizeof(T));
  return elements;
}

struct Stateful : Session {
  Stateful() : Session(kProgram) {}
  std::string Set(const char* function, const char* name, const ingot_dl_tensor& tensor) {
    return Take(ingot_context_set_input(context, Find(function), name, &tensor));
  }
  std::string Set(const char* function, const char* name, const ingot_value& value) {
    return Take(ingot_context_set_input_value(context, Find(function), name, &value));
  }
  std::string Run(const char* function) { return Take(ingot_context_run(context, Find(function))); }
  ingot_value Output(size_t index) {
    ingot_value value = {};
    REQUIRE(Take(ingot_context_get_output(context, index, &value)) == "ok");
    return value;
  }
};

TEST_CASE("peers: inputs are set by name, in any order, and stay for further runs") {
  Stateful s;
  REQUIRE(s.Set("main", "w", W().tensor) == "ok");
  REQUIRE(s.Set("main", "x", X().tensor) == "ok");
  for (int i = 0; i < 3; ++i) {
    REQUIRE(s.Run("main") == "ok");
    ingot_value y = s.Output(0);
    CHECK(Elements(y) == std::vector<float>{2, 6, 12, 20});
    ingot_value_clear(&y);
  }
  REQUIRE(s.Set("main", "x", W().tensor) == "ok");
  REQUIRE(s.Run("main") == "ok");
  ingot_value y = s.Output(0);
  CHECK(Elements(y) == std::vector<float>{4, 9, 16, 25});
  ingot_value_clear(&y);
}

TEST_CASE("peers: several outputs, and nested ones, of a run") {
  Stateful s;
  const Array<int32_t> two({2}, {}), one({1}, {});
  REQUIRE(s.Set("pair", "x", two.tensor) == "ok");
  REQUIRE(s.Run("pair") == "ok");
  for (const size_t i : {0, 1}) {
    ingot_value value = s.Output(i);
    CHECK(Elements<int32_t>(value) == std::vector<int32_t>{2});
    ingot_value_clear(&value);
  }
  REQUIRE(s.Set("nested", "x", one.tensor) == "ok");
  REQUIRE(s.Run("nested") == "ok");
  ingot_value t = s.Output(0), b = s.Output(1);
  REQUIRE(t.kind == INGOT_KIND_TUPLE);
  REQUIRE(t.as.tuple.count == 2);
  CHECK(Elements<int32_t>(t.as.tuple.elements[0]) == std::vector<int32_t>{1});
  REQUIRE(t.as.tuple.elements[1].as.tuple.count == 1);
  CHECK(Elements<int32_t>(t.as.tuple.elements[1].as.tuple.elements[0]) == std::vector<int32_t>{1});
  CHECK(Elements<int32_t>(b) == std::vector<int32_t>{1});
  ingot_value_clear(&t);
  ingot_value_clear(&b);
}

TEST_CASE("peers: inputs of every kind are set") {
  Stateful s;
  {
    Array<float> a({1, 2, 3, 4}, {4});
    ingot_value elements[2] = {};
    for (ingot_value& element : elements) element.kind = INGOT_KIND_TENSOR;
    elements[0].as.tensor = &a.tensor;
    elements[1].as.tensor = &W().tensor;
    ingot_value pair = {};
    pair.kind = INGOT_KIND_TUPLE;
    pair.as.tuple = {elements, 2};
    REQUIRE(s.Set("first", "t", pair) == "ok");
    a.values[0] = 7;  // it was copied
    pair.as.tuple.count = 1;
    CHECK(s.Set("first", "t", pair) == "ok");
    CHECK(s.Run("first") ==
          "3: m: function \"first\", parameter \"t\": expected tuple(float32[4], float32[4]), got tuple(float32[4])");
    pair.as.tuple.count = 2;
    REQUIRE(s.Set("first", "t", pair) == "ok");
  }
  REQUIRE(s.Run("first") == "ok");
  ingot_value y = s.Output(0);
  CHECK(Elements(y) == std::vector<float>{7, 2, 3, 4});
  ingot_value_clear(&y);

  ingot_value value = {};
  value.as.i = 5;
  REQUIRE(s.Set("of_all_kinds", "i", value) == "ok");
  value.kind = INGOT_KIND_FLOAT;
  value.as.f = 1.5;
  REQUIRE(s.Set("of_all_kinds", "f", value) == "ok");
  value.kind = INGOT_KIND_BOOL;
  value.as.b = 1;
  REQUIRE(s.Set("of_all_kinds", "b", value) == "ok");
  value.kind = INGOT_KIND_STRING;
  value.as.string = "text";
  REQUIRE(s.Set("of_all_kinds", "s", value) == "ok");
  const int64_t extents[] = {3, 4};
  value.kind = INGOT_KIND_SHAPE;
  value.as.shape = {extents, 2};
  REQUIRE(s.Set("of_all_kinds", "d", value) == "ok");
  REQUIRE(s.Run("of_all_kinds") == "ok");
  ingot_value text = s.Output(3), shape = s.Output(4);
  CHECK(s.Output(0).as.i == 5);
  CHECK(s.Output(1).as.f == 1.5);
  CHECK(s.Output(2).as.b == 1);
  CHECK(std::string(text.as.string) == "text");
  CHECK(shape.as.shape.extents[1] == 4);
  ingot_value_clear(&text);
  ingot_value_clear(&shape);
}

TEST_CASE("peers: mistakes of the stateful way") {
  Stateful s;
  ingot_value value = {};
  CHECK(s.Run("main") == "1: input \"x\" is not set");
  REQUIRE(s.Set("main", "x", X().tensor) == "ok");
  CHECK(s.Run("main") == "1: input \"w\" is not set");
  REQUIRE(s.Set("main", "w", W().tensor) == "ok");
  CHECK(Take(ingot_context_get_output(s.context, 0, &value)) == "1: output 0 of 0; was there a run?");
  // Inputs that are set are used by ingot_context_run only.
  CHECK(Take(ingot_invoke(s.context, s.Find("main"), nullptr, 0, &value, 1)) ==
        "1: m: function \"main\" takes 2 arguments, got 0; it is main(x: float32[4], w: float32[4]) -> (y: "
        "float32[4])");
  CHECK(s.Set("main", "v", X().tensor) == "2: function \"main\" has no input \"v\"");
  CHECK(Take(ingot_context_set_input_value(s.context, s.Find("main"), "x", nullptr)) ==
        "1: the argument \"value\" is NULL");
  value.kind = INGOT_KIND_TENSOR;
  CHECK(s.Set("main", "x", value) == "1: the argument \"tensor\" is NULL");
  value.kind = INGOT_KIND_CLOSURE;
  CHECK(s.Set("main", "x", value) == "1: values of kind 9 cannot come from outside");
  REQUIRE(s.Run("main") == "ok");
  // Setting an input of another function drops them.
  const Array<int32_t> two({2}, {});
  REQUIRE(s.Set("pair", "x", two.tensor) == "ok");
  CHECK(s.Run("main") == "1: input \"x\" is not set");
  CHECK(Take(ingot_context_get_output(s.context, 0, &value)) == "1: output 0 of 0; was there a run?");
}

TEST_CASE("peers: asynchronous calls") {
  Stateful s;
  const auto call = [&](const char* name, std::vector<int64_t> arguments) {
    std::vector<ingot_value> values(arguments.size());
    for (size_t i = 0; i < values.size(); ++i) values[i].as.i = arguments[i];
    ingot_task* task = nullptr;
    REQUIRE(Take(ingot_invoke_async(s.context, s.Find(name), values.data(), values.size(), &task)) == "ok");
    ingot_value result = {};
    REQUIRE(Take(ingot_task_wait(task, &result, 1)) == "ok");
    ingot_task_release(task);
    return result.as.i;
  };
  SUBCASE("straight") { CHECK(call("straight", {97}) == 100); }
  SUBCASE("branching") {
    CHECK(call("branching", {0, 1, 2}) == 2);
    CHECK(call("branching", {1, 1, 2}) == 1);
  }
}

TEST_CASE("peers: executables with equal names live beside each other") {
  Session zeros(R"(ingot 1
constant "c" float32[2] = 0, 0
function @main export () -> (y: float32[2]) {
  register r0: constant float32[2]
  register r1: float32[2]
  const_tensor r0, #0
  copy r1, r0
  return [r1]
}
)"),
      ones(R"(ingot 1
constant "c" float32[1] = 1
function @main export () -> (y: float32[1]) {
  register r0: constant float32[1]
  register r1: float32[1]
  const_tensor r0, #0
  copy r1, r0
  return [r1]
}
)");
  ingot_value a = {}, b = {};
  REQUIRE(Take(ingot_invoke(zeros.context, zeros.Find("main"), nullptr, 0, &a, 1)) == "ok");
  REQUIRE(Take(ingot_invoke(ones.context, ones.Find("main"), nullptr, 0, &b, 1)) == "ok");
  CHECK(Elements(a) == std::vector<float>{0, 0});
  CHECK(Elements(b) == std::vector<float>{1});
  // A context refuses a function of another executable.
  CHECK(Take(ingot_invoke(zeros.context, ones.Find("main"), nullptr, 0, &a, 1)).starts_with("1: "));
  ingot_value_clear(&a);
  ingot_value_clear(&b);
}

}  // namespace
}  // namespace ingot
