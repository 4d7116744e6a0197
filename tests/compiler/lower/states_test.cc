// States of the context in compiled modules: a decoder whose keys and values stay in the context from call to call.
#include <doctest/doctest.h>

#include "tests/allocation_counter.h"
#include "tests/compiler/lower/compiled.h"

namespace ingot::driver {
namespace {

constexpr const char* kDecoder = R"(
    @R.function
    def main(x: R.Tensor((1, 1, 16), "float32"), past_k: R.Tensor((1, 2, "past", 8), "float32"),
             past_v: R.Tensor((1, 2, "past", 8), "float32")):
        R.func_attr({"num_input": 3, "input_names": ["x", "past_k", "past_v"], "output_names": ["out", "k", "v"],
                     "tir_var_lower_bound": {"past": 0}, "tir_var_upper_bound": {"past": 255},
                     "states": {"past_k": "k", "past_v": "v"}})
        past = T.int64()
        with R.dataflow():
            q = R.reshape(x, R.shape([1, 2, 1, 8]))
            new_v = R.add(q, R.const(1.0, "float32"))
            k = R.concat((past_k, q), axis=2)
            v = R.concat((past_v, new_v), axis=2)
            scores = R.matmul(q, R.permute_dims(k, axes=[0, 1, 3, 2]))
            out = R.matmul(R.nn.softmax(scores, axis=3), v)
            R.output(k, v, out)
        return (out, k, v)
)";

TEST_CASE("a warm step of a compiled decoder allocates nothing, however long the cache has become") {
  Compiled module(kDecoder);
  const auto& jit = module.modules().back();  // without optimisation attention has a workspace, which grows
  const vm::Function& main = **jit->executable().Find("main");
  Tensor x = New(DataType::Float(32), {1, 1, 16}), out = New(DataType::Float(32), {1, 2, 1, 8});
  // Attention over equal values is that value, whatever the keys are.
  for (float& element : x.MutableElements<float>()) element = 0.25F;
  const auto step = [&] { return jit->context().InvokeInto(main, {&x.view(), 1}, {&out.view(), 1}).ok(); };
  for (int i = 0; i < 2; ++i) REQUIRE(step());
  const int64_t before = test::NumAllocations();
  const int64_t pool_before = jit->context().memory_stats().num_allocations;
  int failed = 0, wrong = 0;
  for (int i = 0; i < 250; ++i) {
    failed += step() ? 0 : 1;
    for (const float element : out.Elements<float>()) wrong += element > 1.2499F && element < 1.2501F ? 0 : 1;
  }
  CHECK(test::NumAllocations() == before);
  CHECK(jit->context().memory_stats().num_allocations == pool_before);
  CHECK(failed == 0);
  CHECK(wrong == 0);
  for (int i = 0; i < 4; ++i) REQUIRE(step());
  CHECK_FALSE(step());  // full
}

TEST_CASE("what a function has finished with is given back before it returns") {
  Compiled module(R"(
    @R.function(private=True)
    def larger(x: R.Tensor(("n",), "float32")) -> R.Tensor(("m",), "float32"):
        n = T.int64()
        m = T.int64()
        y = R.add(x, x)
        z = R.concat((y, R.const([1], "float32")), axis=0)
        cast = R.match_cast(z, R.Tensor((m,), "float32"))
        return cast

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
        cls = Module
        a: R.Tensor(ndim=1, dtype="float32") = cls.larger(x)
        b: R.Tensor(ndim=1, dtype="float32") = cls.larger(a)
        c: R.Tensor(ndim=1, dtype="float32") = cls.larger(b)
        d: R.Tensor(ndim=1, dtype="float32") = cls.larger(c)
        return cls.larger(d)
)");
  const auto& jit = module.modules().back();
  const Tensor x = New(DataType::Float(32), {100'000});
  for (float& element : x.MutableElements<float>()) element = 1;
  const auto results = jit->Invoke("main", std::vector<vm::Value>{x});
  REQUIRE_MESSAGE(results.ok(), results.status().message());
  CHECK(std::get<Tensor>((*results)[0]).Elements<float>()[99'999] == 32);
  CHECK(Has(jit->executable().program(), "main", vm::Opcode::kRelease));
  // The calls make five tensors, and one copy is returned, of 400,000 bytes each; at most two are alive at the same
  // time.
  CHECK(jit->context().memory_stats().peak_bytes_in_use < 3 * 400'000);
}

}  // namespace
}  // namespace ingot::driver
