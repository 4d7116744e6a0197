// Warm calls of compiled functions that write into the caller's tensors allocate nothing, whatever the results are.
#include <doctest/doctest.h>

#include "tests/allocation_counter.h"
#include "tests/compiler/lower/compiled.h"

namespace ingot::driver {
namespace {

constexpr const char* kEndings = R"(
    @R.function
    def reshaped(x: R.Tensor(("n", 2, 3), "float32")):
        n = T.int64()
        with R.dataflow():
            a = R.nn.relu(x)
            b = R.reshape(a, R.shape([n, 6]))
            y = R.flatten(R.expand_dims(b, axis=[0]))
            R.output(y)
        return y

    @R.function
    def of_input(x: R.Tensor(("n", 2, 3), "float32")):
        n = T.int64()
        with R.dataflow():
            y = R.reshape(x, R.shape([n * 6]))
            R.output(y)
        return y

    @R.function
    def of_constant(x: R.Tensor(("n", 2, 3), "float32")):
        with R.dataflow():
            y = R.reshape(R.const([[1.0, 2.0], [3.0, 4.0]], "float32"), R.shape([4]))
            R.output(y)
        return y

    @R.function
    def twice(x: R.Tensor(("n", 2, 3), "float32")):
        n = T.int64()
        with R.dataflow():
            a = R.nn.relu(x)
            y = R.reshape(a, R.shape([n, 6]))
            R.output(a, y)
        return (y, a, y)

    @R.function
    def by_cast(x: R.Tensor(("n", 2, 3), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
        n, m = T.int64(), T.int64()
        a = R.nn.relu(x)
        b = R.reshape(a, R.shape([n * 6]))
        y = R.match_cast(b, R.Tensor((m,), "float32"))
        return y

    @R.function
    def in_branches(x: R.Tensor(("n", 2, 3), "float32")) -> R.Tensor(("n * 6",), "float32"):
        n = T.int64()
        if R.prim_value(n > 2):
            a = R.nn.relu(x)
            y: R.Tensor((n * 6,), "float32") = R.reshape(a, R.shape([n * 6]))
        else:
            b = R.negative(x)
            y: R.Tensor((n * 6,), "float32") = R.reshape(b, R.shape([n * 6]))
        return y
)";

TEST_CASE("results that show another tensor's elements are written where the caller wants them, without allocations") {
  Compiled module(kEndings);
  struct Case {
    const char* function;
    std::vector<std::vector<int64_t>> (*outputs)(int64_t n);
  };
  const Case cases[] = {
      {"reshaped", [](int64_t n) { return std::vector<std::vector<int64_t>>{{n * 6}}; }},
      {"of_input", [](int64_t n) { return std::vector<std::vector<int64_t>>{{n * 6}}; }},
      {"of_constant", [](int64_t) { return std::vector<std::vector<int64_t>>{{4}}; }},
      {"twice",
       [](int64_t n) {
         return std::vector<std::vector<int64_t>>{{n, 6}, {n, 2, 3}, {n, 6}};
       }},
      {"by_cast", [](int64_t n) { return std::vector<std::vector<int64_t>>{{n * 6}}; }},
      {"in_branches", [](int64_t n) { return std::vector<std::vector<int64_t>>{{n * 6}}; }},
  };
  for (const Case& c : cases) {
    for (const auto& jit : module.modules()) {
      for (const int64_t n : {5, 2}) {
        CAPTURE(c.function);
        CAPTURE(n);
        Tensor x = New(DataType::Float(32), {n, 2, 3});
        for (size_t i = 0; i < static_cast<size_t>(n * 6); ++i)
          x.MutableElements<float>()[i] = static_cast<float>(i) - 4;
        const vm::Value argument = x;
        const Result<std::vector<vm::Value>> expected = jit->Invoke(c.function, {&argument, 1});
        REQUIRE_MESSAGE(expected.ok(), expected.status().message());
        std::vector<Tensor> outputs;
        std::vector<TensorView> views;
        for (const std::vector<int64_t>& dims : c.outputs(n)) {
          outputs.push_back(New(DataType::Float(32), dims));
          views.push_back(outputs.back().view());
        }
        const vm::Function& function = **jit->executable().Find(c.function);
        const auto call = [&] { return jit->context().InvokeInto(function, {&x.view(), 1}, views); };
        const Status first = call();
        REQUIRE_MESSAGE(first.ok(), first.message());
        const int64_t before = test::NumAllocations();
        const int64_t pool_before = jit->context().memory_stats().num_allocations;
        int failed = 0;
        for (int i = 0; i < 10; ++i) failed += call().ok() ? 0 : 1;
        CHECK(failed == 0);
        CHECK(test::NumAllocations() == before);
        CHECK(jit->context().memory_stats().num_allocations == pool_before);
        for (size_t i = 0; i < outputs.size(); ++i) CHECK(Elements(outputs[i]) == Elements((*expected)[i]));
      }
    }
  }
}

}  // namespace
}  // namespace ingot::driver
