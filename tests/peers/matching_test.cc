// Types and shapes that other systems compare when a function is called, a value is cast, or a result is returned
// (tests/peers/README.md): modules, the results of calls, and the messages of mismatches.
#include <doctest/doctest.h>

#include <cstring>

#include "tests/compiler/lower/compiled.h"

namespace ingot::driver {
namespace {

using vm::MakeTuple;
using vm::ShapeValue;
using vm::Value;

Tensor Zeros(DataType dtype, const std::vector<int64_t>& dims) {
  Tensor tensor = New(dtype, dims);
  std::memset(tensor.data(), 0, static_cast<size_t>(tensor.view().size_bytes));
  return tensor;
}
Tensor F32(const std::vector<int64_t>& dims) { return Zeros(DataType::Float(32), dims); }
Tensor I32(const std::vector<int64_t>& dims) { return Zeros(DataType::Int(32), dims); }

// The outcome, or "... " and what the message of the failure holds.
struct Call {
  std::vector<Value> arguments;
  std::string outcome;
};

// Each function is a subcase.
struct Function {
  const char* name;
  std::vector<Call> calls;
};

void CheckOutcome(const std::string& outcome, const std::string& expected) {
  CAPTURE(outcome);
  CAPTURE(expected);
  CHECK(
      (outcome == expected || (expected.starts_with("... ") && outcome.find(expected.substr(4)) != std::string::npos)));
}

void CheckCalls(Compiled& module, const std::vector<Function>& functions) {
  for (const Function& function : functions) {
    DOCTEST_SUBCASE(function.name) {
      for (const Call& call : function.calls) CheckOutcome(module.Outcome(function.name, call.arguments), call.outcome);
    }
  }
}

vm::ContextOptions Externals() {
  vm::ContextOptions context;
  context.externals["flatten"].call = [](std::span<const Value> arguments) -> Result<std::vector<Value>> {
    const Tensor& x = std::get<Tensor>(arguments[0]);
    // The result has the argument's length, less the first element.
    const int64_t length = x.view().num_elements - static_cast<int64_t>(*static_cast<const float*>(x.data()));
    return std::vector<Value>{F32({length})};
  };
  return context;
}

constexpr const char* kCasts = R"(
    @R.function
    def of_unknown_rank(x: R.Tensor(dtype="float32")) -> R.Shape(ndim=2):
        n, m = T.int64(), T.int64()
        _ = R.match_cast(x, R.Tensor((n, m), "float32"))
        return R.shape([n * 2, m * 3])

    @R.function
    def returned(x: R.Tensor(("n", "m"), "int32"), y: R.Any) -> R.Tensor(("m", "n"), "float32"):
        return y

    @R.function
    def returned_in_tuple(x: R.Tensor(("n", "m"), "float32"), y: R.Object) -> R.Tuple(R.Tensor(("n", "m"), "float32")):
        return y

    @R.function(pure=False)
    def returned_from_outside(x: R.Tensor(("n", "n"), "float32")) -> R.Tensor(("n * n",), "float32"):
        out = R.call_packed("flatten", x, ty_args=R.Object)
        return out

    @R.function
    def computed(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(ndim=3, dtype="float32")) -> R.Shape(ndim=3):
        m, k = T.int64(), T.int64()
        z = R.match_cast(y, R.Tensor((k, m, k + 1), "float32"))
        return R.shape([k + 1, m, 2])

    @R.function
    def of_shape(number: R.Prim(value="n")) -> R.Prim("int64"):
        n, m = T.int64(), T.int64()
        shape = R.shape([n])
        _ = R.match_cast(shape, R.Shape([m]))
        return R.prim_value(m)

    @R.function
    def of_object(x: R.Object) -> R.Tuple(R.Tensor((2,), "float32"), R.Prim("int64")):
        a = R.match_cast(x, R.Tuple(R.Tensor((2,), "float32"), R.Prim("int64")))
        return a

    @R.function
    def to_number(x: R.Object) -> R.Prim("int64"):
        a = R.match_cast(x, R.Prim("int64"))
        return a

    @R.function
    def to_shape(x: R.Object) -> R.Shape(ndim=2):
        a = R.match_cast(x, R.Shape(ndim=2))
        return a

    @R.function
    def to_function(x: R.Object) -> R.Prim("int64"):
        f = R.match_cast(x, R.Callable((R.Prim("int64"),), R.Prim("int64")))
        y: R.Prim("int64") = f(R.prim_value(20))
        return y

    @R.function
    def make_function(by: R.Prim(value="k")) -> R.Callable((R.Prim("int64"),), R.Prim("int64")):
        k = T.int64()
        @R.function
        def inner(number: R.Prim(value="i")) -> R.Prim("int64"):
            i = T.int64()
            return R.prim_value(i * k)
        return inner

    @R.function
    def objects(x: R.Tensor((2,), "float32"), k: R.Prim("int64")) -> R.Tuple(R.Object, R.Object, R.Object):
        cls = Module
        y = R.add(x, x)
        a = cls.through(y)
        b = cls.through(k)
        c = cls.through(R.shape([3, 4]))
        return (a, b, c)

    @R.function(private=True)
    def through(x: R.Object) -> R.Object:
        return x
)";

TEST_CASE("peers: match_cast and what is returned") {
  static Compiled module(kCasts, Externals());
  const Tensor x = F32({2, 2});
  const Value pair = MakeTuple({F32({2}), int64_t{5}});
  Tensor more = F32({3, 3});
  *static_cast<float*>(more.data()) = 1;
  CheckCalls(
      module,
      {{"of_unknown_rank",
        {{{F32({32, 16})}, "shape[64, 48]"},
         {{I32({1, 2})}, "... got int32[1, 2]"},
         {{F32({1})}, "... got float32[1]"},
         {{MakeTuple({})}, "... got tuple()"}}},
       {"returned",
        {{{I32({1, 2}), F32({2, 1})}, "float32[2, 1]"},
         {{I32({1, 2}), F32({1, 2})}, "... got float32[1, 2]"},
         {{I32({1, 2}), F32({2, 1, 1})}, "... got float32[2, 1, 1]"},
         {{I32({1, 2}), I32({2, 1})}, "... got int32[2, 1]"},
         {{I32({1, 2}), int64_t{3}}, "... got int"}}},
       {"returned_in_tuple",
        {{{F32({1, 2}), MakeTuple({F32({1, 2})})}, "float32[1, 2]"},
         {{F32({1, 2}), MakeTuple({F32({2, 2})})}, "... got tuple(float32[2, 2])"},
         {{F32({1, 2}), MakeTuple({F32({1, 2}), F32({1, 2})})}, "... got tuple(float32[1, 2], float32[1, 2])"},
         {{F32({1, 2}), MakeTuple({I32({1, 2})})}, "... got tuple(int32[1, 2])"},
         {{F32({1, 2}), F32({1, 2})}, "... got float32[1, 2]"}}},
       {"returned_from_outside", {{{F32({3, 3})}, "float32[9]"}, {{more}, "... got float32[8]"}}},
       {"computed",
        {{{F32({1, 5}), F32({2, 5, 3})}, "shape[3, 5, 2]"},
         {{F32({1, 5}), F32({2, 4, 3})}, "... got float32[2, 4, 3]"},
         {{F32({1, 5}), F32({2, 5, 2})}, "... expected 3, got 2"},
         {{F32({1, 5}), F32({2, 5})}, "... got float32[2, 5]"}}},
       {"of_shape", {{{int64_t{7}}, "7"}, {{ShapeValue{{7}}}, "... got shape[7]"}}},
       {"of_object",
        {{{pair}, "float32[2], 5"},
         {{MakeTuple({F32({2})})}, "... got tuple(float32[2])"},
         {{vm::MakeString("no")}, "... got string"},
         {{x}, "... got float32[2, 2]"}}},
       {"to_number",
        {{{int64_t{5}}, "5"}, {{1.5}, "... got float"}, {{true}, "... got bool"}, {{x}, "... got float32[2, 2]"}}},
       {"to_shape",
        {{{ShapeValue{{3, 4}}}, "shape[3, 4]"},
         {{ShapeValue{{3}}}, "... got shape[3]"},
         {{x}, "... got float32[2, 2]"}}},
       {"objects", {{{F32({2}), int64_t{7}}, "float32[2], 7, shape[3, 4]"}}}});
  DOCTEST_SUBCASE("to_function") {
    std::vector<Value> functions;
    const std::vector<Value> five = {int64_t{5}};
    for (const auto& compiled : module.modules()) {
      functions = compiled->Invoke("make_function", five).value();
      const Result<std::vector<Value>> called = compiled->Invoke("to_function", functions);
      REQUIRE_MESSAGE(called.ok(), called.status().message());
      CHECK(std::get<int64_t>(called->at(0)) == 100);
    }
    // A closure of the last module cannot be called by the first one.
    const Result<std::vector<Value>> foreign = module.modules()[0]->Invoke("to_function", functions);
    REQUIRE_FALSE(foreign.ok());
    CHECK(foreign.status().message().find("the closure is another executable's") != std::string::npos);
    CheckOutcome(module.Outcome("to_function", {x}), "... got float32[2, 2]");
    CheckOutcome(module.Outcome("to_function", {int64_t{3}}), "... got int");
  }
}

constexpr const char* kParameters = R"(
    @R.function
    def constant_shape(x: R.Shape([1, 2]), y: R.Shape) -> R.Shape([1, 2]):
        return x

    @R.function
    def function_and_shape(f: R.Callable((R.Prim("int64"),), R.Prim("int64")), y: R.Shape([1, 2])) -> R.Shape([1, 2]):
        return y

    @R.function
    def symbols(x: R.Tensor(("n", 2, "m"), "float32")) -> R.Tensor(("n", 2, "m"), "float32"):
        return x

    @R.function
    def nested(x: R.Tuple(R.Tensor(("n", "m"), "float32"),
                          R.Tuple(R.Shape, R.Tensor(("n", "k"), "int32")))) -> R.Prim("int64"):
        n, m, k = T.int64(), T.int64(), T.int64()
        return R.prim_value(n * 100 + m * 10 + k)

    @R.function
    def rows_first(a: R.Tensor(("m", "n"), "float32")) -> R.Shape(["m", "n"]):
        m, n = T.int64(), T.int64()
        return R.shape([m, n])

    @R.function
    def columns_first(a: R.Tensor(("n", "m"), "float32")) -> R.Shape(["m", "n"]):
        m, n = T.int64(), T.int64()
        return R.shape([m, n])

    @R.function
    def weights(x: R.Tensor((2, 2), "float32"), w: R.Tensor((2, 2), "float32")) -> R.Tuple(R.Tensor((2, 2), "float32"),
                                                                                           R.Tensor((2, 2), "float32")):
        R.func_attr({"num_input": 1})
        return (x, w)

    @R.function
    def weights_in_tuple(params: R.Tuple(R.Tensor((2, 2), "float32"))) -> R.Tuple(R.Tensor((2, 2), "float32")):
        return params

    @R.function
    def weights_of_unknown_size(x: R.Tensor((2, 2), "float32"),
                                params: R.Tuple(R.Tensor((2, 2), "float32"),
                                                R.Tensor(("n",), "float32"))) -> R.Tuple(R.Tensor((2, 2), "float32"),
                                                                                         R.Tensor(("n",), "float32")):
        R.func_attr({"num_input": 1})
        n = T.int64()
        a = params[0]
        b = params[1]
        return (a, b)

    @R.function
    def numbers(first: R.Prim(value="n"), shape: R.Shape(["n * 2", "m * 2"]),
                last: R.Prim(value="m")) -> R.Shape(ndim=2):
        n, m = T.int64(), T.int64()
        return R.shape([n * n, m + 1])

    @R.function
    def number(a: R.Prim(value="n")) -> R.Prim("int64"):
        n = T.int64()
        return R.prim_value(n * n)

    @R.function
    def shape(s: R.Shape(["m", "n"])) -> R.Shape(["2 * m", "3 * n"]):
        m, n = T.int64(), T.int64()
        return R.shape([2 * m, 3 * n])

    @R.function
    def related(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n // 2 + 1",), "float32")) -> R.Prim("int64"):
        n = T.int64()
        return R.prim_value(n)

    @R.function
    def make_function() -> R.Callable((R.Prim("int64"),), R.Prim("int64")):
        @R.function
        def inner(a: R.Prim("int64")) -> R.Prim("int64"):
            return a
        return inner
)";

TEST_CASE("peers: parameters") {
  static Compiled module(kParameters);
  const ShapeValue one_two{{1, 2}};
  const Value twos = F32({2, 2});
  const auto nested = [](Tensor a, Tensor b) { return MakeTuple({a, MakeTuple({ShapeValue{{9}}, b})}); };
  CheckCalls(module, {{"constant_shape",
                       {{{one_two, ShapeValue{{7, 8, 9}}}, "shape[1, 2]"},
                        {{ShapeValue{{1, 3}}, one_two}, "... got shape[1, 3]"},
                        {{ShapeValue{{1, 2, 3}}, one_two}, "... got shape[1, 2, 3]"},
                        {{twos, one_two}, "... got float32[2, 2]"}}},
                      {"symbols",
                       {{{F32({3, 2, 1})}, "float32[3, 2, 1]"},
                        {{F32({3, 3, 1})}, "... got float32[3, 3, 1]"},
                        {{F32({3, 2})}, "... got float32[3, 2]"},
                        {{I32({3, 2, 1})}, "... got int32[3, 2, 1]"},
                        {{MakeTuple({})}, "... got tuple()"}}},
                      {"nested",
                       {{{nested(F32({1, 2}), I32({1, 3}))}, "123"},
                        {{nested(F32({1, 2}), I32({2, 3}))}, "... expected 1, got 2"},
                        {{nested(F32({1, 2}), F32({1, 3}))}, "... got tuple(float32[1, 2], ...)"},
                        {{MakeTuple({F32({1, 2})})}, "... got tuple(float32[1, 2])"},
                        {{F32({1, 2})}, "... got float32[1, 2]"}}},
                      {"rows_first", {{{F32({3, 4})}, "shape[3, 4]"}}},
                      {"columns_first", {{{F32({3, 4})}, "shape[4, 3]"}}},
                      {"weights",
                       {{{twos, twos}, "float32[2, 2], float32[2, 2]"},
                        {{twos, F32({2, 3})}, "... got float32[2, 3]"},
                        {{F32({2}), twos}, "... got float32[2]"}}},
                      {"weights_in_tuple",
                       {{{MakeTuple({twos})}, "float32[2, 2]"},
                        {{MakeTuple({twos, twos})}, "... got tuple(float32[2, 2], float32[2, 2])"}}},
                      {"weights_of_unknown_size",
                       {{{twos, MakeTuple({twos, F32({5})})}, "float32[2, 2], float32[5]"},
                        {{twos, MakeTuple({F32({2, 3}), F32({5})})}, "... got tuple(float32[2, 3], float32[5])"},
                        {{twos, MakeTuple({twos, F32({5, 5})})}, "... got tuple(float32[2, 2], float32[5, 5])"}}},
                      {"numbers",
                       {{{int64_t{2}, ShapeValue{{4, 12}}, int64_t{6}}, "shape[4, 7]"},
                        {{int64_t{2}, ShapeValue{{4, 12}}, int64_t{1}}, "... dimension 1: expected 2, got 12"},
                        {{ShapeValue{{2}}}, "... takes 3 arguments, got 1"}}},
                      {"number", {{{int64_t{2}}, "4"}, {{ShapeValue{{2}}}, "... got shape[2]"}}},
                      {"shape",
                       {{{ShapeValue{{2, 3}}}, "shape[4, 9]"},
                        {{ShapeValue{{2, 3, 4}}}, "... got shape[2, 3, 4]"},
                        {{int64_t{2}}, "... got int"}}},
                      {"related", {{{F32({5}), F32({3})}, "5"}, {{F32({5}), F32({2})}, "... got float32[2]"}}}});
  DOCTEST_SUBCASE("function_and_shape") {
    const Value function = module("make_function", {})[0];
    CheckOutcome(module.Outcome("function_and_shape", {function, one_two}), "shape[1, 2]");
    CheckOutcome(module.Outcome("function_and_shape", {twos, one_two}), "... got float32[2, 2]");
    CheckOutcome(module.Outcome("function_and_shape", {function, ShapeValue{{2, 2}}}), "... got shape[2, 2]");
  }
}

}  // namespace
}  // namespace ingot::driver
