// Modules of other systems' tests of building and running (tests/peers/README.md), with the results of calls.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "tests/compiler/lower/compiled.h"
#include "tests/vm/round_trip.h"

namespace ingot::driver {
namespace {

using vm::Value;

Tensor Int32(const std::vector<int64_t>& dims, std::initializer_list<int32_t> values) {
  Tensor tensor = New(DataType::Int(32), dims);
  std::copy(values.begin(), values.end(), static_cast<int32_t*>(tensor.data()));
  return tensor;
}
std::vector<int32_t> Ints(const Value& value) {
  const std::span<const int32_t> elements = std::get<Tensor>(value).Elements<int32_t>();
  return {elements.begin(), elements.end()};
}

TEST_CASE("peers: values that functions give") {
  static Compiled module(R"(
    @R.function
    def dtype():
        ret = R.dtype("float32")
        return ret

    @R.function
    def text():
        ret = R.str("hello")
        return ret

    @R.function
    def number():
        ret = R.prim_value(T.int64(1))
        return ret

    @R.function
    def constants(x: R.Tensor(ndim=2, dtype="float32")):
        y = R.const([1, 2], "int32")
        z = (y, R.const([3, 4], "int32"), x)
        return z

    @R.function
    def constant_argument(x: R.Tensor((1, 2), "float32")):
        a = R.add(R.const([1, 2], "float32"), R.const([3, 4], "float32"))
        b = R.add(a, x)
        return b

    @R.function
    def reshaped(x: R.Tensor((3, 4), "float32")):
        y = R.reshape(x, R.shape([6, 2]))
        return y

    @R.function
    def tuples(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")):
        t = (x, y)
        item = t[0]
        return (t, item)

    @R.function
    def taken_apart(x: R.Tensor(ndim=2, dtype="float32"), y: R.Tensor(ndim=2, dtype="float32")):
        n, m = T.int64(), T.int64()
        a1 = R.match_cast(x, R.Tensor((n, m), "float32"))
        b1 = R.match_cast(y, R.Tensor((n, m), "float32"))
        t = (a1, b1)
        a = t[0]
        b = t[1]
        c = R.add(a, b)
        return c

    @R.function
    def shape_of(x: R.Tensor(dtype="float32", ndim=2)):
        s = R.shape_of(x)
        return s

    @R.function
    def filled(value: R.Tensor((), "float32")):
        y = R.full(R.shape([4, 4]), R.add(value, value), dtype="float32")
        return y
)");
  const Tensor x = Floats({1, 2}, {10, 20});
  DOCTEST_SUBCASE("dtype") { CHECK(std::get<DataType>(module("dtype", {})[0]) == DataType::Float(32)); }
  DOCTEST_SUBCASE("text") { CHECK(module.Outcome("text", {}) == "hello"); }
  DOCTEST_SUBCASE("number") { CHECK(std::get<int64_t>(module("number", {})[0]) == 1); }
  DOCTEST_SUBCASE("constants") {
    const auto results = module("constants", {x});
    CHECK(Ints(results[0]) == std::vector<int32_t>{1, 2});
    CHECK(Ints(results[1]) == std::vector<int32_t>{3, 4});
    CHECK(Elements(results[2]) == Numbers{10, 20});
  }
  DOCTEST_SUBCASE("constant_argument") { CHECK(Elements(module("constant_argument", {x})[0]) == Numbers{14, 26}); }
  DOCTEST_SUBCASE("reshaped") {
    const Tensor twelve = Floats({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    CHECK(module.Outcome("reshaped", {twelve}) == "float32[6, 2]");
    CHECK(Elements(module("reshaped", {twelve})[0]) == Elements(twelve));
  }
  DOCTEST_SUBCASE("tuples") {
    const auto results = module("tuples", {Floats({2}, {1, 2}), Floats({2}, {3, 4})});
    const auto& pair = static_cast<const vm::TupleObject&>(*std::get<Ref<vm::Object>>(results[0]));
    CHECK(Elements(pair.elements()[0]) == Numbers{1, 2});
    CHECK(Elements(pair.elements()[1]) == Numbers{3, 4});
    CHECK(Elements(results[1]) == Numbers{1, 2});
  }
  DOCTEST_SUBCASE("taken_apart") { CHECK(Elements(module("taken_apart", {x, x})[0]) == Numbers{20, 40}); }
  DOCTEST_SUBCASE("shape_of") { CHECK(module.Outcome("shape_of", {x}) == "shape[1, 2]"); }
  DOCTEST_SUBCASE("filled") { CHECK(Elements(module("filled", {Floats({}, {16})})[0]) == Numbers(16, 32)); }
}

TEST_CASE("peers: conditions") {
  static Compiled module(R"(
    @R.function
    def constant(x: R.Tensor(ndim=2, dtype="float32")) -> R.Tensor(ndim=2, dtype="float32"):
        if R.const(True, "bool"):
            ret: R.Tensor(ndim=2, dtype="float32") = x
        else:
            ret: R.Tensor(ndim=2, dtype="float32") = x
        return ret

    @R.function
    def of_bool(cond: R.Tensor((), "bool"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        if cond:
            w: R.Tensor((2,), "float32") = R.add(x, x)
        else:
            w: R.Tensor((2,), "float32") = R.multiply(x, x)
        return w

    @R.function
    def of_int(cond: R.Tensor((), "int64"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        if cond:
            w: R.Tensor((2,), "float32") = R.add(x, x)
        else:
            w: R.Tensor((2,), "float32") = R.multiply(x, x)
        return w

    @R.function
    def recursion(n: R.Tensor((1,), "float32")) -> R.Tensor((), "float32"):
        cls = Module
        zero = R.equal(n, R.const([0], "float32"))
        cond = R.reshape(zero, R.shape([]))
        if cond:
            res: R.Tensor((), "float32") = R.const(1.0, "float32")
        else:
            less = R.subtract(n, R.const([1], "float32"))
            tmp: R.Tensor((), "float32") = cls.recursion(less)
            res: R.Tensor((), "float32") = R.add(tmp, tmp)
        return res
)");
  const Tensor x = Floats({2}, {3, 5});
  DOCTEST_SUBCASE("constant") { CHECK(Elements(module("constant", {Floats({1, 2}, {3, 5})})[0]) == Numbers{3, 5}); }
  DOCTEST_SUBCASE("of_bool") {
    CHECK(Elements(module("of_bool", {Truth(true), x})[0]) == Numbers{6, 10});
    CHECK(Elements(module("of_bool", {Truth(false), x})[0]) == Numbers{9, 25});
  }
  DOCTEST_SUBCASE("of_int") {
    CHECK(Elements(module("of_int", {Integer(1), x})[0]) == Numbers{6, 10});
    CHECK(Elements(module("of_int", {Integer(0), x})[0]) == Numbers{9, 25});
  }
  DOCTEST_SUBCASE("recursion") {
    for (const float n : {0.F, 1.F, 9.F})
      CHECK(Elements(module("recursion", {Floats({1}, {n})})[0]) == Numbers{std::exp2(n)});
  }
}

constexpr const char* kMatmul = R"(
    @T.prim_func(private=True, s_tir=True)
    def matmul(x: T.handle, y: T.handle, z: T.handle):
        m, n, k = T.int32(), T.int32(), T.int32()
        A = T.match_buffer(x, (m, n))
        B = T.match_buffer(y, (n, k))
        C = T.match_buffer(z, (m, k))
        for i, j, l in T.grid(m, k, n):
            with T.sblock("matmul"):
                vi, vj, vl = T.axis.remap("SSR", [i, j, l])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vl] * B[vl, vj]
)";

TEST_CASE("peers: calls between functions") {
  vm::ContextOptions context;
  context.externals["identity"].call = [](std::span<const Value> arguments) -> Result<std::vector<Value>> {
    const Tensor &x = std::get<Tensor>(arguments[0]), &out = std::get<Tensor>(arguments[1]);
    INGOT_RETURN_IF_ERROR(CopyElements(x.view(), out.view()));
    return std::vector<Value>{};
  };
  context.externals["tile"].call = [](std::span<const Value> arguments) -> Result<std::vector<Value>> {
    const Tensor &x = std::get<Tensor>(arguments[0]), &out = std::get<Tensor>(arguments[1]);
    const int64_t rows = x.dims()[0], columns = x.dims()[1];
    const auto* from = static_cast<const float*>(x.data());
    auto* to = static_cast<float*>(out.view().data);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < 2 * columns; ++j) to[i * 2 * columns + j] = from[i * columns + j % columns];
    }
    return std::vector<Value>{};
  };
  static Compiled module(std::string(kMatmul) + R"(
    @R.function
    def product(x: R.Tensor(("m", "n"), "float32"), w: R.Tensor(("n", "k"), "float32")) -> R.Tensor:
        m, k = T.int64(), T.int64()
        cls = Module
        gv0 = R.call_tir(cls.matmul, (x, w), R.Tensor((m, k), dtype="float32"))
        return gv0

    @R.function
    def squared(x: R.Tensor((2, 2), "float32")) -> R.Any:
        y = R.multiply(x, x)
        return y

    @R.function
    def chained(x: R.Tensor((2, 2), "float32"), w: R.Tensor((2, 2), "float32")) -> R.Any:
        cls = Module
        gv0 = cls.product(x, w)
        gv1 = R.match_cast(gv0, R.Tensor((2, 2), "float32"))
        gv2 = cls.squared(gv1)
        return gv2

    @R.function
    def copied_outside(x: R.Tensor((3, 2), "float32")) -> R.Tensor:
        with R.dataflow():
            y = R.call_dps_packed("identity", (x,), R.Tensor((3, 2), dtype="float32"))
            R.output(y)
        return y

    @R.function
    def tiled_outside(x: R.Tensor(dtype="float32")) -> R.Tensor:
        with R.dataflow():
            n, m = T.int64(), T.int64()
            c = R.match_cast(x, R.Tensor((n, m), "float32"))
            y = R.call_dps_packed("tile", (c,), R.Tensor((n, m * 2), dtype="float32"))
            R.output(y)
        return y

    @R.function(private=True)
    def lifted(x: R.Tensor((2,), "float32"), env: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        s = R.add(x, env)
        return s

    @R.function
    def through_closure(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        clo = R.make_closure(cls.lifted, (x,))
        res = R.invoke_pure_closure(clo, (y,), ty_args=(R.Tensor((2,), "float32"),))
        return res
)",
                         context);
  const Tensor x = Floats({2, 2}, {1, 2, 3, 4}), w = Floats({2, 2}, {1, 1, 0, 1});
  DOCTEST_SUBCASE("product") {
    CHECK(module.Outcome("product", {x, w}) == "float32[2, 2]");
    CHECK(Elements(module("product", {x, w})[0]) == Numbers{1, 3, 3, 7});
    CHECK(Elements(module("product", {Floats({1, 2}, {1, 2}), Floats({2, 3}, {1, 2, 3, 4, 5, 6})})[0]) ==
          Numbers{9, 12, 15});
  }
  DOCTEST_SUBCASE("chained") { CHECK(Elements(module("chained", {x, w})[0]) == Numbers{1, 9, 9, 49}); }
  DOCTEST_SUBCASE("copied_outside") {
    CHECK(Elements(module("copied_outside", {Floats({3, 2}, {1, 2, 3, 4, 5, 6})})[0]) == Numbers{1, 2, 3, 4, 5, 6});
  }
  DOCTEST_SUBCASE("tiled_outside") {
    CHECK(module.Outcome("tiled_outside", {x}) == "float32[2, 4]");
    CHECK(Elements(module("tiled_outside", {x})[0]) == Numbers{1, 2, 1, 2, 3, 4, 3, 4});
  }
  DOCTEST_SUBCASE("through_closure") {
    CHECK(Elements(module("through_closure", {Floats({2}, {1, 2}), Floats({2}, {10, 20})})[0]) == Numbers{11, 22});
  }
}

TEST_CASE("peers: tensor functions in place") {
  static Compiled module(R"(
    @T.prim_func(private=True, s_tir=True)
    def copy(a: T.Buffer((2, 3), "int32"), b: T.Buffer((2, 3), "int32"), c: T.Buffer((2, 3), "int32"),
             out: T.Buffer((2, 3), "int32")):
        for i0, i1 in T.grid(2, 3):
            with T.sblock("copy"):
                v0, v1 = T.axis.remap("SS", [i0, i1])
                a[v0, v1] = c[v0, v1]
                b[v0, v1] = c[v0, v1]
                out[v0, v1] = c[v0, v1]

    @T.prim_func(private=True, s_tir=True)
    def add_to(a: T.Buffer((2, 3), "int32"), b: T.Buffer((2, 3), "int32")):
        for i0, i1 in T.grid(2, 3):
            with T.sblock("add"):
                v0, v1 = T.axis.remap("SS", [i0, i1])
                a[v0, v1] = a[v0, v1] + b[v0, v1]

    @R.function
    def several(x: R.Tensor((2, 3), "int32"), y: R.Tensor((2, 3), "int32"),
                z: R.Tensor((2, 3), "int32")) -> R.Tuple(R.Tensor((2, 3), "int32"), R.Tensor((2, 3), "int32"),
                                                         R.Tensor((2, 3), "int32")):
        cls = Module
        res = R.call_tir_inplace(cls.copy, (x, y, z), [0, 1, -1],
                                 [R.Tensor((2, 3), "int32"), R.Tensor((2, 3), "int32"), R.Tensor((2, 3), "int32")])
        return res

    @R.function
    def read_and_written(x: R.Tensor((2, 3), "int32"), y: R.Tensor((2, 3), "int32")) -> R.Tensor((2, 3), "int32"):
        cls = Module
        res = R.call_tir_inplace(cls.add_to, (x, y), [0], R.Tensor((2, 3), "int32"))
        return res
)");
  const Tensor x = Int32({2, 3}, {0, 0, 0, 0, 0, 0}), y = Int32({2, 3}, {5, 5, 5, 5, 5, 5}),
               z = Int32({2, 3}, {1, 2, 3, 4, 5, 6});
  DOCTEST_SUBCASE("several") {
    const auto results = module("several", {x, y, z});
    REQUIRE(results.size() == 3);
    for (const Value& result : results) CHECK(Ints(result) == Ints(z));
    CHECK(std::get<Tensor>(results[0]).data() != std::get<Tensor>(results[1]).data());
    CHECK(Ints(x) == std::vector<int32_t>(6, 0));
    CHECK(Ints(y) == std::vector<int32_t>(6, 5));
  }
  DOCTEST_SUBCASE("read_and_written") {
    CHECK(Ints(module("read_and_written", {z, y})[0]) == std::vector<int32_t>{6, 7, 8, 9, 10, 11});
    CHECK(Ints(z) == std::vector<int32_t>{1, 2, 3, 4, 5, 6});
  }
}

TEST_CASE("peers: storage by hand") {
  static Compiled module(R"(
    @T.prim_func(private=True, s_tir=True)
    def copy(a: T.Buffer((2, 3), "float32"), b: T.Buffer((2, 3), "float32")):
        for i0, i1 in T.grid(2, 3):
            with T.sblock("block"):
                vi0, vi1 = T.axis.remap("SS", [i0, i1])
                b[vi0, vi1] = a[vi0, vi1]

    @R.function
    def at_offset(x: R.Tensor((2, 3), dtype="float32")) -> R.Tensor((2, 3), "float32"):
        R.func_attr({"relax.force_pure": True})
        cls = Module
        storage = R.memory.alloc_storage(R.shape([128]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
        y = R.memory.alloc_tensor(storage, R.prim_value(64), R.shape([2, 3]), R.dtype("float32"))
        _ = cls.copy(x, y)
        return y

    @R.function
    def used_again(x: R.Tensor((2, 3), dtype="float32"),
                   z: R.Tensor((2, 3), dtype="float32")) -> R.Tensor((2, 3), "float32"):
        R.func_attr({"relax.force_pure": True})
        cls = Module
        storage = R.memory.alloc_storage(R.shape([64]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
        a = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([2, 3]), R.dtype("float32"))
        _ = cls.copy(x, a)
        b = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([2, 3]), R.dtype("float32"))
        _ = cls.copy(z, b)
        return b
)");
  const Tensor x = Floats({2, 3}, {1, 2, 3, 4, 5, 6}), z = Floats({2, 3}, {6, 5, 4, 3, 2, 1});
  DOCTEST_SUBCASE("at_offset") { CHECK(Elements(module("at_offset", {x})[0]) == Elements(x)); }
  DOCTEST_SUBCASE("used_again") { CHECK(Elements(module("used_again", {x, z})[0]) == Elements(z)); }
}

TEST_CASE("peers: rolling caches") {
  static Compiled module(R"(
    @R.function
    def main(x: R.Tensor((1, 2), "float32"), cache: R.Tensor((4, 2), "float32")):
        R.func_attr({"states": {"cache": "next"}, "input_names": ["x", "cache"], "output_names": ["seen", "next"]})
        kept = R.strided_slice(cache, axes=[0], begin=[1], end=[4])
        next = R.concat((kept, x), axis=0)
        seen = R.add(next, next)
        return (seen, next)
)"),
      with_first(R"(
    @R.function
    def main(x: R.Tensor((1, 2), "float32"), cache: R.Tensor((4, 2), "float32")):
        R.func_attr({"states": {"cache": "next"}, "input_names": ["x", "cache"], "output_names": ["seen", "next"]})
        first = R.strided_slice(cache, axes=[0], begin=[0], end=[1])
        kept = R.strided_slice(cache, axes=[0], begin=[2], end=[4])
        next = R.concat((first, kept, x), axis=0)
        seen = R.add(next, next)
        return (seen, next)
)");
  DOCTEST_SUBCASE("the last rows") {
    Numbers expected(8, 0);
    for (int step = 1; step <= 10; ++step) {
      const float value = static_cast<float>(step);
      expected.erase(expected.begin(), expected.begin() + 2);
      expected.insert(expected.end(), {2 * value, 2 * value});
      CHECK(Elements(module("main", {Floats({1, 2}, {value, value})})[0]) == expected);
    }
  }
  DOCTEST_SUBCASE("the first rows and the last") {
    Numbers expected(8, 0);
    for (int step = 1; step <= 10; ++step) {
      const float value = static_cast<float>(step);
      expected.erase(expected.begin() + 2, expected.begin() + 4);
      expected.insert(expected.end(), {2 * value, 2 * value});
      CHECK(Elements(with_first("main", {Floats({1, 2}, {value, value})})[0]) == expected);
    }
  }
}

TEST_CASE("peers: constants") {
  Compiled module(R"(
    @R.function
    def main(x: R.Tensor((3,), "int32")):
        a = R.add(x, R.const([1, 2, 3], "int32"))
        b = R.multiply(a, R.const([1, 2, 3], "int32"))
        c = R.subtract(b, R.const([1, 2, 4], "int32"))
        return c

    @R.function
    def other(x: R.Tensor((3,), "int32")):
        a = R.add(x, R.const([1, 2, 3], "int32"))
        return a
)");
  DOCTEST_SUBCASE("equal ones are stored once") {
    CHECK(module.program().constants.size() == 2);
    test::CheckRoundTrip(module.program());
  }
  DOCTEST_SUBCASE("unlike ones are two") {
    CHECK(Ints(module("main", {Int32({3}, {0, 0, 0})})[0]) == std::vector<int32_t>{0, 2, 5});
    CHECK(Ints(module("other", {Int32({3}, {0, 0, 0})})[0]) == std::vector<int32_t>{1, 2, 3});
  }
}

constexpr const char* kPerceptron = R"(
    @R.function
    def main(x: R.Tensor((1, 2), "float32")) -> R.Tensor((1, 2), "float32"):
        a = R.matmul(x, R.const([[1, -1], [2, 1]], "float32"))
        b = R.nn.relu(a)
        c = R.matmul(b, R.const([[1, 0], [1, 1]], "float32"))
        d = R.nn.relu(c)
        return d
)";

TEST_CASE("peers: an instrument skips what it is asked to and sees the rest") {
  const Result<ir::IRModule> parsed = script::ParseModule(kHead + std::string(kPerceptron), "module.py");
  REQUIRE_MESSAGE(parsed.ok(), parsed.status().message());
  JitOptions options;
  options.compile.opt_level = 0;  // a kernel each
  const auto jit = test::CompileJit(*parsed, options).value();
  std::map<std::pair<std::string, vm::EventPhase>, int> seen;
  jit->context().set_instrument([&](vm::EventPhase phase, const vm::Event& event, std::span<const vm::EventArgument>) {
    const std::string name = std::string(event.name).substr(0, 6);
    ++seen[{name, phase}];
    return name == "matmul" ? vm::Decision::kSkip : vm::Decision::kRun;
  });
  REQUIRE(jit->Call("main", {Floats({1, 2}, {1, 2})}).ok());
  CHECK(seen[{"matmul", vm::EventPhase::kBefore}] == 2);
  CHECK(seen[{"matmul", vm::EventPhase::kAfter}] == 2);  // it may look at what is there instead
  CHECK(seen[{"relu", vm::EventPhase::kBefore}] == 2);
  CHECK(seen[{"relu", vm::EventPhase::kAfter}] == 2);
}

TEST_CASE("peers: an instrument compares kernels with those of another library") {
  const Result<ir::IRModule> parsed = script::ParseModule(kHead + std::string(kPerceptron), "module.py");
  REQUIRE(parsed.ok());
  JitOptions options;
  options.compile.opt_level = 0;
  const auto jit = test::CompileJit(*parsed, options).value();
  int compared = 0;
  jit->context().set_instrument(
      [&](vm::EventPhase phase, const vm::Event& event, std::span<const vm::EventArgument> arguments) {
        if (phase == vm::EventPhase::kBefore || !std::string(event.name).starts_with("relu")) return vm::Decision::kRun;
        REQUIRE(arguments.size() == 2);
        const auto *x = static_cast<const float*>(arguments[0].view.data),
                   *y = static_cast<const float*>(arguments[1].view.data);
        for (int64_t i = 0; i < arguments[0].view.num_elements; ++i) CHECK(y[i] == std::fmax(x[i], 0.F));
        ++compared;
        return vm::Decision::kRun;
      });
  const auto results = jit->Call("main", {Floats({1, 2}, {1, -2})});
  REQUIRE(results.ok());
  CHECK(compared == 2);
  CHECK(Elements(Value((*results)[0])) == Numbers{0, 0});
}

TEST_CASE("peers: after a call that does not fit the next one is right") {
  Compiled module(R"(
    @R.function
    def main(inp: R.Tensor((2, 2), dtype="float32")) -> R.Tensor((2, 2), dtype="float32"):
        with R.dataflow():
            lv = R.multiply(inp, R.const(2, "float32"))
            gv = lv
            R.output(gv)
        return gv
)");
  CHECK(module.Failure("main", {Floats({3, 2}, {1, 2, 3, 4, 5, 6})}) ==
        "in-process module: function \"main\", parameter \"inp\": expected float32[2, 2], got float32[3, 2]");
  CHECK(Elements(module("main", {Floats({2, 2}, {1, 2, 3, 4})})[0]) == Numbers{2, 4, 6, 8});
}

}  // namespace
}  // namespace ingot::driver
