// The border between a module and its embedder: functions of the embedding program, called by functions and by kernels,
// messages and assertions, tensors that are written in place; and passes on modules with branches.
#include <doctest/doctest.h>
#include <bit>

#include "tests/compiler/lower/compiled.h"

namespace ingot::driver {
namespace {

TEST_CASE("functions of the embedding program are called, and their results checked") {
  constexpr const char* kText = R"(
    @R.function(pure=False)
    def packed(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        y: R.Tensor((n,), "float32") = R.call_packed("triple", x, out_ty=R.Tensor((n,), "float32"))
        z: R.Tensor((n,), "float32") = R.call_pure_packed("triple", y, out_ty=R.Tensor((n,), "float32"))
        return z

    @R.function
    def dps(x: R.Tensor(("n",), "float32"), k: R.Prim("int64")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        y = R.call_dps_packed("fill", (x, k), out_ty=R.Tensor((n,), "float32"))
        z = R.add(y, y)
        return z

    @R.function(pure=False)
    def wrong(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        y: R.Tensor((2,), "float32") = R.call_packed("wrong", x, R.str("why"), out_ty=R.Tensor((2,), "float32"))
        return y
)";
  vm::ContextOptions context;
  context.externals["triple"].call = [](std::span<const vm::Value> arguments) -> Result<std::vector<vm::Value>> {
    const Tensor& x = std::get<Tensor>(arguments[0]);
    Tensor y = New(DataType::Float(32), {x.dims().begin(), x.dims().end()});
    for (int64_t i = 0; i < x.view().num_elements; ++i) {
      static_cast<float*>(y.data())[i] = 3 * static_cast<const float*>(x.data())[i];
    }
    return std::vector<vm::Value>{y};
  };
  context.externals["fill"].call = [](std::span<const vm::Value> arguments) -> Result<std::vector<vm::Value>> {
    const Tensor &x = std::get<Tensor>(arguments[0]), &out = std::get<Tensor>(arguments[2]);
    for (int64_t i = 0; i < out.view().num_elements; ++i) {
      static_cast<float*>(out.view().data)[i] =
          static_cast<const float*>(x.data())[i] + static_cast<float>(std::get<int64_t>(arguments[1]));
    }
    return std::vector<vm::Value>{};
  };
  context.externals["wrong"].call = [](std::span<const vm::Value>) -> Result<std::vector<vm::Value>> {
    return std::vector<vm::Value>{New(DataType::Float(32), {3})};
  };
  Compiled module(kText, context);
  CHECK(Elements(module("packed", {Floats({2}, {1, 2})})[0]) == Numbers{9, 18});
  CHECK(Elements(module("dps", {Floats({2}, {1, 2}), int64_t{10}})[0]) == Numbers{22, 24});
  CHECK(module.Failure("wrong", {Floats({2}, {1, 2})}).find("expected float32[2], got float32[3]") !=
        std::string::npos);
  CHECK(module.program().externals.size() == 3);
  const Result<ir::IRModule> parsed = script::ParseModule(kHead + std::string(kText), "module.py");
  const auto unbound = test::CompileJit(*parsed);
  REQUIRE_FALSE(unbound.ok());
  CHECK(unbound.status().message().find("\"triple\" is not registered") != std::string::npos);
}

TEST_CASE("kernels call functions of the embedding program") {
  vm::ContextOptions context;
  context.externals["observe"].call_raw = [](void* const*, const int64_t* ints) -> int32_t {
    return ints[0] > 2 ? 5 : 0;
  };
  Compiled module(R"(
    @T.prim_func(private=True, s_tir=True)
    def copy(x: T.Buffer((T.int64(3),), "int64"), y: T.Buffer((T.int64(3),), "int64")):
        for i in range(T.int64(3)):
            with T.sblock("copy"):
                vi = T.axis.spatial(T.int64(3), i)
                T.evaluate(T.call_packed("observe", x[vi]))
                y[vi] = x[vi] + T.int64(1)

    @R.function
    def main(x: R.Tensor((3,), "int64")) -> R.Tensor((3,), "int64"):
        cls = Module
        y = R.call_tir(cls.copy, (x,), out_ty=R.Tensor((3,), "int64"))
        return y
)",
                  context);
  Tensor x = New(DataType::Int(64), {3});
  for (int64_t i = 0; i < 3; ++i) static_cast<int64_t*>(x.data())[i] = i;
  CHECK(static_cast<const int64_t*>(std::get<Tensor>(module("main", {x})[0]).data())[2] == 3);
  static_cast<int64_t*>(x.data())[1] = 3;
  CHECK(module.Failure("main", {x}).find("kernel \"copy\"") != std::string::npos);
}

TEST_CASE("kernels hand buffers and numbers to functions of the embedding program") {
  vm::ContextOptions context;
  context.externals["scale"].call_raw = [](void* const* buffers, const int64_t* ints) -> int32_t {
    const auto factor = std::bit_cast<float>(static_cast<uint32_t>(ints[1]));
    for (int64_t i = 0; i < ints[0]; ++i) {
      static_cast<float*>(buffers[1])[i] = static_cast<const float*>(buffers[0])[i] * factor;
    }
    return 0;
  };
  Compiled module(R"(
    @T.prim_func(private=True, s_tir=True)
    def scaled(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
        with T.sblock("scaled"):
            T.reads(x[0:n])
            T.writes(y[0:n])
            T.call_extern("int32", "scale", x.data, y.data, n, T.float32(1.5))

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        cls = Module
        n = T.int64()
        y = R.call_tir(cls.scaled, (x,), out_ty=R.Tensor((n,), "float32"))
        z = R.add(y, y)
        return z
)",
                  context);
  CHECK(Elements(module("main", {Floats({2}, {1, 2})})[0]) == Numbers{3, 6});
  CHECK(Elements(module("main", {Floats({3}, {4, 6, -2})})[0]) == Numbers{12, 18, -6});
}

TEST_CASE("printing and assertions") {
  std::vector<std::string> log;
  vm::InstanceOptions instance;
  instance.log = [&](std::string_view line) { log.emplace_back(line); };
  Compiled module(R"(
    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32"), k: R.Prim("int64"), c: R.Tensor((), "bool")) -> R.Tensor((2,), "float32"):
        y = R.add(x, x)
        R.print(y, k, format=R.str("y is {}, k is {}"))
        R.assert_op(c, k, format=R.str("not with {}"))
        return y
)",
                  {}, instance);
  const Tensor x = Floats({2}, {1, 2.5F});
  CHECK(Elements(module("main", {x, int64_t{7}, Truth(true)})[0]) == Numbers{2, 5});
  REQUIRE(!log.empty());
  CHECK(log.back() == "y is float32[2] {2, 5}, k is 7");
  CHECK(module.Failure("main", {x, int64_t{7}, Truth(false)}).find("not with 7") != std::string::npos);
}

TEST_CASE("in place: values keep their meaning") {
  Compiled module(R"(
    @T.prim_func(private=True, s_tir=True)
    def increment(x: T.Buffer((T.int64(2),), "float32")):
        for i in range(T.int64(2)):
            with T.sblock("increment"):
                vi = T.axis.spatial(T.int64(2), i)
                x[vi] = x[vi] + T.float32(1)

    @R.function
    def parameter(x: R.Tensor((2,), "float32")) -> R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32")):
        cls = Module
        y = R.call_tir_inplace(cls.increment, (x,), inplace_indices=[0], out_ty=R.Tensor((2,), "float32"))
        z = R.call_tir_inplace(cls.increment, (y,), inplace_indices=[0], out_ty=R.Tensor((2,), "float32"))
        return (z, x)

    @R.function
    def shared(x: R.Tensor((2,), "float32")) -> R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32")):
        cls = Module
        y = R.add(x, x)
        z = R.call_tir_inplace(cls.increment, (y,), inplace_indices=[0], out_ty=R.Tensor((2,), "float32"))
        s = R.add(y, z)
        return (s, z)

    @R.function
    def appended(x: R.Tensor((2,), "float32")) -> R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32")):
        y = R.add(x, x)
        one = R.full(R.shape([1]), R.const(9, "float32"), dtype="float32")
        z = R.kv_cache.append(y, one, R.prim_value(1), axis=0)
        s = R.add(y, z)
        return (s, z)

    @R.function
    def appended_parameter(x: R.Tensor((2,), "float32")) -> R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32")):
        one = R.full(R.shape([1]), R.const(9, "float32"), dtype="float32")
        z = R.kv_cache.append(x, one, R.prim_value(0), axis=0)
        return (z, x)

    @R.function
    def rows(x: R.Tensor((2,), "float32")) -> R.Tensor((3, 2), "float32"):
        cls = Module
        buffer = R.zeros(R.shape([3, 2]), dtype="float32")
        filled: R.Tensor((3, 2), "float32") = cls.fill(R.prim_value(0), x, buffer)
        return filled

    @R.function(private=True)
    def fill(steps: R.Prim(value="k"), x: R.Tensor((2,), "float32"), buffer: R.Tensor((3, 2),
            "float32")) -> R.Tensor((3, 2), "float32"):
        k = T.int64()
        cls = Module
        if R.prim_value(k < 3):
            y = R.add(x, x)
            written: R.Tensor((3, 2), "float32") = R.memory.write_row(buffer, x, R.prim_value(k))
            r: R.Tensor((3, 2), "float32") = cls.fill(R.prim_value(k + 1), y, written)
        else:
            r: R.Tensor((3, 2), "float32") = buffer
        return r
)");
  const Tensor x = Floats({2}, {1, 2});
  auto results = module("parameter", {x});
  CHECK(Elements(results[0]) == Numbers{3, 4});
  CHECK(Elements(results[1]) == Numbers{1, 2});
  CHECK(Elements(x) == Numbers{1, 2});
  results = module("shared", {x});
  CHECK(Elements(results[0]) == Numbers{5, 9});
  CHECK(Elements(results[1]) == Numbers{3, 5});
  results = module("appended", {x});
  CHECK(Elements(results[0]) == Numbers{4, 13});
  CHECK(Elements(results[1]) == Numbers{2, 9});
  results = module("appended_parameter", {x});
  CHECK(Elements(results[0]) == Numbers{9, 2});
  CHECK(Elements(results[1]) == Numbers{1, 2});
  CHECK(Elements(x) == Numbers{1, 2});
  CHECK(Elements(module("rows", {x})[0]) == Numbers{1, 2, 2, 4, 4, 8});
}

TEST_CASE("convolutions and weights inside of branches and loops") {
  Compiled module(R"(
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((1, 16, 4, 4), "float32")) -> R.Tensor((1, 16, 4, 4), "float32"):
        w = R.full(R.shape([16, 16, 3, 3]), R.const(0.01, "float32"), dtype="float32")
        if c:
            a = R.nn.conv2d(x, w, padding=[1, 1, 1, 1])
            b = R.nn.relu(a)
            d = R.nn.conv2d(b, w, padding=[1, 1, 1, 1])
            y: R.Tensor((1, 16, 4, 4), "float32") = R.add(d, x)
        else:
            e = R.nn.softmax(x, axis=1)
            y: R.Tensor((1, 16, 4, 4), "float32") = R.multiply(e, x)
        z = R.nn.conv2d(y, w, padding=[1, 1, 1, 1])
        return z

    @R.function
    def straight(x: R.Tensor((1, 16, 4, 4), "float32")) -> R.Tensor((1, 16, 4, 4), "float32"):
        w = R.full(R.shape([16, 16, 3, 3]), R.const(0.01, "float32"), dtype="float32")
        with R.dataflow():
            a = R.nn.conv2d(x, w, padding=[1, 1, 1, 1])
            b = R.nn.relu(a)
            d = R.nn.conv2d(b, w, padding=[1, 1, 1, 1])
            y = R.add(d, x)
            z = R.nn.conv2d(y, w, padding=[1, 1, 1, 1])
            R.output(z)
        return z
)");
  Tensor x = New(DataType::Float(32), {1, 16, 4, 4});
  for (int64_t i = 0; i < 256; ++i) static_cast<float*>(x.data())[i] = static_cast<float>(i % 7) - 2;
  const std::vector<float> branch = Elements(module("main", {Truth(true), x})[0]);
  const std::vector<float> straight = Elements(module("straight", {x})[0]);
  for (size_t i = 0; i < branch.size(); ++i) CHECK(branch[i] == doctest::Approx(straight[i]).epsilon(1e-5));
  CHECK(Elements(module("main", {Truth(false), x})[0]) != branch);
}

}  // namespace
}  // namespace ingot::driver
