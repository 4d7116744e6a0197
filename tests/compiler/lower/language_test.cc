// The language as a whole: branches, recursion, closures, tuples, scalars and shapes as values, types that are compared
// when the program runs.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/compiler/lower/compiled.h"

namespace ingot::driver {
namespace {

TEST_CASE("if: conditions of each kind, in the middle and at the end") {
  Compiled module(R"(
    @R.function
    def tensors(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        if c:
            a = R.add(x, x)
            y: R.Tensor((n,), "float32") = R.exp(a)
        else:
            y: R.Tensor((n,), "float32") = x
        z = R.add(y, R.const(1.0, "float32"))
        return z

    @R.function
    def at_end(c: R.Tensor((), "int64"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        if c:
            y: R.Tensor((2,), "float32") = R.negative(x)
        else:
            y: R.Tensor((2,), "float32") = R.const([7, 8], "float32")
        return y

    @R.function
    def scalars(c: R.Prim("bool"), steps: R.Prim(value="k"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        k = T.int64()
        if c:
            if R.prim_value(k > 3):
                y: R.Tensor((2,), "float32") = R.negative(x)
            else:
                y: R.Tensor((2,), "float32") = x
        else:
            y: R.Tensor((2,), "float32") = R.add(x, x)
        return y

    @R.function
    def constant(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        if R.const(True, "bool"):
            y: R.Tensor((2,), "float32") = R.negative(x)
        else:
            y: R.Tensor((2,), "float32") = x
        return y
)");
  const Tensor x = Floats({2}, {1, 2});
  CHECK(Elements(module("tensors", {Truth(false), x})[0]) == Numbers{2, 3});
  CHECK(Elements(module("tensors", {Truth(true), Floats({1}, {0})})[0]) == Numbers{2});
  CHECK(Elements(module("at_end", {Integer(5), x})[0]) == Numbers{-1, -2});
  CHECK(Elements(module("at_end", {Integer(0), x})[0]) == Numbers{7, 8});
  CHECK(Elements(module("scalars", {true, int64_t{4}, x})[0]) == Numbers{-1, -2});
  CHECK(Elements(module("scalars", {true, int64_t{3}, x})[0]) == Numbers{1, 2});
  CHECK(Elements(module("scalars", {false, int64_t{4}, x})[0]) == Numbers{2, 4});
  CHECK(Elements(module("constant", {x})[0]) == Numbers{-1, -2});
}

TEST_CASE("recursion: tail calls are jumps, others take frames, and two functions may call each other") {
  Compiled module(R"(
    @R.function
    def count(k: R.Prim("int64"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        r: R.Tensor((2,), "float32") = cls.step(k, x, R.const([10, 20], "float32"))
        return r

    @R.function(private=True)
    def step(steps: R.Prim(value="k"), x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")) -> R.Tensor((2,),
            "float32"):
        k = T.int64()
        cls = Module
        if R.prim_value(k > 0):
            z = R.add(x, R.const(1.0, "float32"))
            r: R.Tensor((2,), "float32") = cls.step(R.prim_value(k - 1), y, z)
        else:
            r: R.Tensor((2,), "float32") = x
        return r

    @R.function
    def deep(steps: R.Prim(value="k"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        k = T.int64()
        cls = Module
        if R.prim_value(k > 0):
            below: R.Tensor((2,), "float32") = cls.deep(R.prim_value(k - 1), x)
            r: R.Tensor((2,), "float32") = R.add(below, R.const(1.0, "float32"))
        else:
            r: R.Tensor((2,), "float32") = x
        return r

    @R.function
    def even(steps: R.Prim(value="k")) -> R.Prim("bool"):
        k = T.int64()
        cls = Module
        if R.prim_value(k > 0):
            r: R.Prim("bool") = cls.odd(R.prim_value(k - 1))
        else:
            r: R.Prim("bool") = R.prim_value(T.bool(True))
        return r

    @R.function
    def odd(steps: R.Prim(value="k")) -> R.Prim("bool"):
        k = T.int64()
        cls = Module
        if R.prim_value(k > 0):
            r: R.Prim("bool") = cls.even(R.prim_value(k - 1))
        else:
            r: R.Prim("bool") = R.prim_value(T.bool(False))
        return r
)");
  const Tensor x = Floats({2}, {0, 0});
  CHECK(Elements(module("count", {int64_t{0}, x})[0]) == Numbers{0, 0});
  CHECK(Elements(module("count", {int64_t{3}, x})[0]) == Numbers{11, 21});
  CHECK(Elements(module("count", {int64_t{100'000}, x})[0]) == Numbers{50'000, 50'000});
  CHECK_FALSE(Has(module.program(), "step", vm::Opcode::kCallFunction));
  CHECK(Elements(module("deep", {int64_t{5'000}, x})[0]) == Numbers{5'000, 5'000});
  CHECK(module.Failure("deep", {int64_t{1'000'000}, x}).find("calls nest too deep") != std::string::npos);
  CHECK(Elements(module("deep", {int64_t{5}, x})[0]) == Numbers{5, 5});
  CHECK(std::get<bool>(module("even", {int64_t{10}})[0]));
  CHECK_FALSE(std::get<bool>(module("even", {int64_t{7}})[0]));
}

TEST_CASE("a carried value whose dims change keeps frames; a rank alone is enough for a jump") {
  Compiled module(R"(
    @R.function
    def doubled(steps: R.Prim(value="k"), x: R.Tensor(("n",), "float32")) -> R.Tensor(dtype="float32", ndim=1):
        k, n = T.int64(), T.int64()
        cls = Module
        if R.prim_value(k > 0):
            y = R.concat((x, x), axis=0)
            r: R.Tensor(dtype="float32", ndim=1) = cls.doubled(R.prim_value(k - 1), y)
        else:
            r: R.Tensor(dtype="float32", ndim=1) = x
        return r

    @R.function
    def grown(steps: R.Prim(value="k"), x: R.Tensor(dtype="float32", ndim=1)) -> R.Tensor(dtype="float32", ndim=1):
        k, n = T.int64(), T.int64()
        cls = Module
        if R.prim_value(k > 0):
            m: R.Tensor((n,), "float32") = R.match_cast(x, R.Tensor((n,), "float32"))
            y = R.concat((m, m), axis=0)
            r: R.Tensor(dtype="float32", ndim=1) = cls.grown(R.prim_value(k - 1), y)
        else:
            r: R.Tensor(dtype="float32", ndim=1) = x
        return r
)");
  for (const char* function : {"doubled", "grown"}) {
    CAPTURE(function);
    CHECK(Elements(module(function, {int64_t{2}, Floats({2}, {1, 2})})[0]) == Numbers{1, 2, 1, 2, 1, 2, 1, 2});
    CHECK(Elements(module(function, {int64_t{0}, Floats({1}, {3})})[0]) == Numbers{3});
  }
  CHECK(Has(module.program(), "doubled", vm::Opcode::kCallFunction));
  CHECK_FALSE(Has(module.program(), "grown", vm::Opcode::kCallFunction));
}

TEST_CASE("functions in functions, functions as values") {
  Compiled module(R"(
    @R.function
    def captures(x: R.Tensor(("n", 3), "float32"), y: R.Tensor(("n", 3), "float32")) -> R.Tensor(("n", 3), "float32"):
        n = T.int64()
        @R.function
        def inner(a: R.Tensor((n, 3), "float32")) -> R.Tensor((n, 3), "float32"):
            b = R.add(a, y)
            s: R.Tensor((n, 3), "float32") = R.multiply(b, b)
            return s
        once: R.Tensor((n, 3), "float32") = inner(x)
        twice: R.Tensor((n, 3), "float32") = inner(once)
        return twice

    @R.function
    def chosen(c: R.Tensor((), "bool"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        @R.function
        def plus(a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            s: R.Tensor((2,), "float32") = R.add(a, x)
            return s
        if c:
            f: R.Callable((R.Tensor((2,), "float32"),), R.Tensor((2,), "float32"), True) = plus
        else:
            f: R.Callable((R.Tensor((2,), "float32"),), R.Tensor((2,), "float32"), True) = cls.twice
        y: R.Tensor((2,), "float32") = f(R.const([1, 2], "float32"))
        z: R.Tensor((2,), "float32") = cls.apply(f, y)
        return z

    @R.function(private=True)
    def twice(a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        s: R.Tensor((2,), "float32") = R.add(a, a)
        return s

    @R.function(private=True)
    def apply(f: R.Callable((R.Tensor((2,), "float32"),), R.Tensor((2,), "float32"), True), a: R.Tensor((2,),
            "float32")) -> R.Tensor((2,), "float32"):
        s: R.Tensor((2,), "float32") = f(a)
        return s

    @R.function
    def loop(x: R.Tensor((2,), "float32"), by: R.Tensor((2,), "float32"),
            turns: R.Prim(value="count")) -> R.Tensor((2,), "float32"):
        count = T.int64()
        @R.function
        def turn(steps: R.Prim(value="k"), a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            k = T.int64()
            if R.prim_value(k < count):
                b: R.Tensor((2,), "float32") = R.add(a, by)
                r: R.Tensor((2,), "float32") = turn(R.prim_value(k + 1), b)
            else:
                r: R.Tensor((2,), "float32") = a
            return r
        r1: R.Tensor((2,), "float32") = turn(R.prim_value(0), x)
        return r1
)");
  const Tensor x = Floats({1, 3}, {1, 2, 3}), y = Floats({1, 3}, {1, 0, -1});
  CHECK(Elements(module("captures", {x, y})[0]) == Numbers{25, 16, 9});
  CHECK(Elements(module("chosen", {Truth(true), Floats({2}, {10, 20})})[0]) == Numbers{21, 42});
  CHECK(Elements(module("chosen", {Truth(false), Floats({2}, {10, 20})})[0]) == Numbers{4, 8});
  CHECK(Elements(module("loop", {Floats({2}, {1, 2}), Floats({2}, {1, -1}), int64_t{1'000}})[0]) ==
        Numbers{1001, -998});
}

TEST_CASE("tuples, nested ones too, through calls and branches") {
  Compiled module(R"(
    @R.function
    def nested(c: R.Tensor((), "bool"), t: R.Tuple(R.Tensor((2,), "float32"), R.Tuple(R.Tensor((2,), "float32"),
            R.Prim("int64")))) -> R.Tuple(R.Tuple(R.Tensor((2,), "float32"), R.Prim("int64")), R.Tensor((2,),
                    "float32")):
        cls = Module
        a: R.Tensor((2,), "float32") = t[0]
        b: R.Tuple(R.Tensor((2,), "float32"), R.Prim("int64")) = t[1]
        d: R.Tensor((2,), "float32") = b[0]
        if c:
            s: R.Tensor((2,), "float32") = R.add(a, d)
            r: R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32")) = (s, a)
        else:
            r: R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32")) = cls.swapped((a, d))
        e: R.Tensor((2,), "float32") = r[0]
        f: R.Tensor((2,), "float32") = r[1]
        k: R.Prim("int64") = b[1]
        return ((e, k), f)

    @R.function(private=True)
    def swapped(t: R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32"))) -> R.Tuple(R.Tensor((2,),
            "float32"), R.Tensor((2,), "float32")):
        a: R.Tensor((2,), "float32") = t[1]
        b: R.Tensor((2,), "float32") = t[0]
        return (a, b)
)");
  const vm::Value t = vm::MakeTuple({Floats({2}, {1, 2}), vm::MakeTuple({Floats({2}, {10, 20}), int64_t{5}})});
  for (const bool c : {true, false}) {
    const std::vector<vm::Value> results = module("nested", {Truth(c), t});
    const auto& pair = static_cast<const vm::TupleObject&>(*std::get<Ref<vm::Object>>(results[0]));
    CHECK(Elements(pair.elements()[0]) == (c ? Numbers{11, 22} : Numbers{10, 20}));
    CHECK(std::get<int64_t>(pair.elements()[1]) == 5);
    CHECK(Elements(results[1]) == Numbers{1, 2});
  }
}

TEST_CASE("scalars, strings and shapes are values") {
  Compiled module(R"(
    @R.function
    def scalars(number: R.Prim(value="i"), f: R.Prim("float64"), b: R.Prim("bool"),
            s: R.Object) -> R.Tuple(R.Prim("int64"), R.Prim("float64"), R.Prim("bool"), R.Object):
        i = T.int64()
        return (R.prim_value(i * 2), f, b, s)

    @R.function
    def shape(x: R.Tensor(("n", "m"), "float32")) -> R.Shape(["m", "n * 2"]):
        n, m = T.int64(), T.int64()
        return R.shape([m, n * 2])

    @R.function
    def reshaped(x: R.Tensor((6,), "float32"), s: R.Shape(ndim=2)) -> R.Tensor(dtype="float32", ndim=2):
        a, b = T.int64(), T.int64()
        s1: R.Shape([a, b]) = R.match_cast(s, R.Shape([a, b]))
        y: R.Tensor((a, b), "float32") = R.reshape(x, R.shape([a, b]))
        z: R.Tensor((a, b), "float32") = R.add(y, y)
        return z

    @R.function
    def shape_of(x: R.Tensor(dtype="float32", ndim=2)) -> R.Shape(ndim=2):
        s: R.Shape(ndim=2) = R.shape_of(x)
        return s

    @R.function
    def extents(t: R.Tensor((2,), "int64")) -> R.Tensor(dtype="float32", ndim=2):
        a, b = T.int64(), T.int64()
        s: R.Shape(ndim=2) = R.tensor_to_shape(t)
        s1: R.Shape([a, b]) = R.match_cast(s, R.Shape([a, b]))
        z: R.Tensor((a, b), "float32") = R.ones(R.shape([a, b]), dtype="float32")
        return z
)");
  const auto results = module("scalars", {int64_t{21}, 1.5, true, vm::MakeString("text")});
  CHECK(std::get<int64_t>(results[0]) == 42);
  CHECK(std::get<double>(results[1]) == 1.5);
  CHECK(std::get<bool>(results[2]));
  CHECK(static_cast<const vm::StringObject&>(*std::get<Ref<vm::Object>>(results[3])).text == "text");
  const Tensor x = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(std::get<vm::ShapeValue>(module("shape", {x})[0]).extents == std::vector<int64_t>{3, 4});
  CHECK(std::get<vm::ShapeValue>(module("shape_of", {x})[0]).extents == std::vector<int64_t>{2, 3});
  const auto y = module("reshaped", {Floats({6}, {1, 2, 3, 4, 5, 6}), vm::ShapeValue{{3, 2}}});
  CHECK(std::ranges::equal(std::get<Tensor>(y[0]).dims(), std::vector<int64_t>{3, 2}));
  CHECK(Elements(y[0]) == Numbers{2, 4, 6, 8, 10, 12});
  Tensor extents = New(DataType::Int(64), {2});
  static_cast<int64_t*>(extents.data())[0] = 1;
  static_cast<int64_t*>(extents.data())[1] = 3;
  CHECK(Elements(module("extents", {extents})[0]) == Numbers{1, 1, 1});
}

TEST_CASE("integer formulas of any length: as sizes, dims that are compared, scalars and conditions") {
  // Far more steps than one formula of the file has.
  std::string sum = "n";
  int64_t expected = 7;
  for (int64_t k = 2; k < 60; ++k) {
    const std::string number = std::to_string(k);
    sum = "T.max(" + sum + ", T.min((n * " + number + ") // 5 % 11, m)) + T.Select(n % " + number + " < m, 1, 2)";
    expected = std::max(expected, std::min(7 * k / 5 % 11, int64_t{3})) + (7 % k < 3 ? 1 : 2);
  }
  std::string condition = "n < 0";
  for (int64_t k = 2; k < 60; ++k) condition += " or n * " + std::to_string(k) + " % 13 < m - 4";
  std::string text = R"(
    @R.function
    def scalar(x: R.Tensor(("n", "m"), "float32")) -> R.Prim("int64"):
        n, m = T.int64(), T.int64()
        return R.prim_value(SUM)

    @R.function
    def made(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(dtype="float32", ndim=2):
        n, m = T.int64(), T.int64()
        y: R.Tensor((2, SUM), "float32") = R.ones(R.shape([2, SUM]), dtype="float32")
        z: R.Tensor((2, SUM), "float32") = R.add(y, y)
        return z

    @R.function
    def compared(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(("k",), "float32")) -> R.Tensor(dtype="float32", ndim=1):
        n, m, k = T.int64(), T.int64(), T.int64()
        z: R.Tensor((SUM,), "float32") = R.match_cast(y, R.Tensor((SUM,), "float32"))
        w: R.Tensor((SUM,), "float32") = R.exp(z)
        return w

    @R.function
    def chosen(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n", "m"), "float32"):
        n, m = T.int64(), T.int64()
        if R.prim_value(CONDITION):
            y: R.Tensor((n, m), "float32") = R.negative(x)
        else:
            y: R.Tensor((n, m), "float32") = x
        return y
)";
  const auto replace_all = [&](const std::string& what, const std::string& by) {
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
      text.replace(at, what.size(), by);
    }
  };
  replace_all("SUM", sum);
  replace_all("CONDITION", condition);
  Compiled module(text.c_str());
  const Tensor x = New(DataType::Float(32), {7, 3});
  std::fill_n(static_cast<float*>(x.view().data), 21, 1.0f);
  CHECK(std::get<int64_t>(module("scalar", {x})[0]) == expected);
  const auto made = module("made", {x});
  CHECK(std::ranges::equal(std::get<Tensor>(made[0]).dims(), std::vector<int64_t>{2, expected}));
  CHECK(Elements(made[0]) == Numbers(static_cast<size_t>(2 * expected), 2));
  CHECK(Elements(module("compared", {x, New(DataType::Float(32), {expected})})[0]).size() ==
        static_cast<size_t>(expected));
  CHECK(module.Failure("compared", {x, New(DataType::Float(32), {expected + 1})}).find("expected") !=
        std::string::npos);
  CHECK(Elements(module("chosen", {x})[0]) == Numbers(21, 1));
  const Tensor wide = New(DataType::Float(32), {7, 6});
  std::fill_n(static_cast<float*>(wide.view().data), 42, 1.0f);
  CHECK(Elements(module("chosen", {wide})[0]) == Numbers(42, -1));
}

TEST_CASE("match_cast says what it expected and what it got") {
  Compiled module(R"(
    @R.function
    def rows(x: R.Tensor(dtype="float32", ndim=2),
             y: R.Tensor(dtype="float32", ndim=1)) -> R.Tensor(dtype="float32", ndim=1):
        n, m = T.int64(), T.int64()
        a: R.Tensor((n, m), "float32") = R.match_cast(x, R.Tensor((n, m), "float32"))
        b: R.Tensor((m + 1,), "float32") = R.match_cast(y, R.Tensor((m + 1,), "float32"))
        c: R.Tensor((m + 1,), "float32") = R.negative(b)
        return c

    @R.function
    def square(x: R.Tensor(dtype="float32", ndim=2)) -> R.Tensor(dtype="float32", ndim=2):
        n = T.int64()
        a: R.Tensor((n, n), "float32") = R.match_cast(x, R.Tensor((n, n), "float32"))
        b: R.Tensor((n, n), "float32") = R.negative(a)
        return b

    @R.function
    def constant(x: R.Tensor(dtype="float32", ndim=1)) -> R.Tensor((3,), "float32"):
        a: R.Tensor((3,), "float32") = R.match_cast(x, R.Tensor((3,), "float32"))
        return a

    @R.function
    def dtype(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "int32"):
        a: R.Tensor((3,), "int32") = R.match_cast(x, R.Tensor((3,), "int32"))
        return a

    @R.function
    def object(x: R.Object) -> R.Tuple(R.Tensor((2,), "float32"), R.Prim("int64")):
        a: R.Tuple(R.Tensor((2,), "float32"), R.Prim("int64")) = R.match_cast(x, R.Tuple(R.Tensor((2,), "float32"),
                R.Prim("int64")))
        return a
)");
  const Tensor x = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(Elements(module("rows", {x, Floats({4}, {1, 2, 3, 4})})[0]) == Numbers{-1, -2, -3, -4});
  CHECK(
      module.Failure("rows", {x, Floats({3}, {1, 2, 3})}).find("match_cast of \"b\": dimension 0: expected 4, got 3") !=
      std::string::npos);
  CHECK(module.Failure("square", {x}).find("match_cast of \"a\": dimension 1: expected 2, got 3") != std::string::npos);
  CHECK(Elements(module("square", {Floats({1, 1}, {4})})[0]) == Numbers{-4});
  CHECK(module.Failure("constant", {Floats({2}, {1, 2})}).find("expected float32[3], got float32[2]") !=
        std::string::npos);
  CHECK(module.Failure("dtype", {Floats({3}, {1, 2, 3})}).find("expected int32[3], got float32[3]") !=
        std::string::npos);
  const vm::Value good = vm::MakeTuple({Floats({2}, {1, 2}), int64_t{5}});
  CHECK(std::get<int64_t>(module("object", {good})[1]) == 5);
  CHECK(module.Failure("object", {vm::MakeString("no")}).find("got string") != std::string::npos);
}

TEST_CASE("match_cast of a tuple goes by its fields, and names the one that does not fit") {
  Compiled module(R"(
    @R.function
    def objects(t: R.Tuple(R.Object, R.Tuple(R.Object, R.Prim("int64")))) -> R.Tuple(R.Tensor(ndim=1, dtype="float32"),
                                                                                     R.Prim("int64")):
        n = T.int64()
        u = R.match_cast(t,
                         R.Tuple(R.Tensor(("n",), "float32"), R.Tuple(R.Tensor(("n", 2), "float32"), R.Prim("int64"))))
        v = u[1]
        a: R.Tensor((n,), "float32") = R.negative(u[0])
        return (a, v[1])

    @R.function
    def tensors(x: R.Tensor(ndim=1, dtype="float32"),
                y: R.Tensor(ndim=1, dtype="float32")) -> R.Tensor((2,), "float32"):
        t = (x, y)
        u = R.match_cast(t, R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32")))
        z: R.Tensor((2,), "float32") = R.add(u[0], u[1])
        return z

    @R.function
    def count(t: R.Tuple(R.Object, R.Object)) -> R.Object:
        u = R.match_cast(t, R.Tuple(R.Object, R.Object, R.Object))
        v = u[2]
        return v
)");
  const auto nested = [](const vm::Value& a, const vm::Value& b) {
    return vm::MakeTuple({a, vm::MakeTuple({b, int64_t{7}})});
  };
  const Tensor x = Floats({2}, {1, 2}), y = Floats({2, 2}, {1, 2, 3, 4});
  const auto results = module("objects", {nested(x, y)});
  CHECK(Elements(results[0]) == Numbers{-1, -2});
  CHECK(std::get<int64_t>(results[1]) == 7);
  const auto says = [&](const char* function, const std::vector<vm::Value>& arguments, const std::string& text) {
    const std::string failure = module.Failure(function, arguments);
    CHECK_MESSAGE(failure.find(text) != std::string::npos, failure);
  };
  says("objects", {nested(int64_t{1}, y)}, "u, element 0");
  says("objects", {nested(x, x)}, "u, element 1, element 0");
  says("objects", {nested(x, Floats({1, 2}, {1, 2}))}, "element 1, element 0: dimension 0: expected 2, got 1");
  CHECK(Elements(module("tensors", {x, x})[0]) == Numbers{2, 4});
  says("tensors", {x, Floats({1}, {1})}, "u, element 1");
  says("tensors", {x, Floats({1}, {1})}, "expected float32[2], got float32[1]");
  says("count", {vm::MakeTuple({x, x})}, "match_cast of \"u\": expected");
}

TEST_CASE("closures of entry points, whose own parameters keep their order") {
  Compiled module(R"(
    @R.function
    def power(x: R.Tensor(("n",), "float32"), steps: R.Prim(value="k"),
              y: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n, k = T.int64(), T.int64()
        cls = Module
        if R.prim_value(k > 0):
            z = R.multiply(x, y)
            below: R.Tensor((n,), "float32") = cls.power(z, R.prim_value(k - 1), y)
            r: R.Tensor((n,), "float32") = R.add(below, R.const(0.0, "float32"))
        else:
            r: R.Tensor((n,), "float32") = x
        return r

    @R.function
    def captured(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        f = R.make_closure(cls.power, (y,))
        g = R.make_closure(cls.power, (R.prim_value(2), y))
        a: R.Tensor((n,), "float32") = R.invoke_pure_closure(f, (x, R.prim_value(1)),
                                                             sinfo_args=R.Tensor((n,), "float32"))
        b: R.Tensor((n,), "float32") = R.invoke_pure_closure(g, (a,), sinfo_args=R.Tensor((n,), "float32"))
        return b

    @R.function
    def nested(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32"),
               k: R.Prim("int64")) -> R.Tensor((2,), "float32"):
        @R.function
        def turn(a: R.Tensor((2,), "float32"), steps: R.Prim(value="i")) -> R.Tensor((2,), "float32"):
            i = T.int64()
            if R.prim_value(i > 0):
                b = R.add(a, y)
                c: R.Tensor((2,), "float32") = turn(b, R.prim_value(i - 1))
                r: R.Tensor((2,), "float32") = R.negative(c)
            else:
                r: R.Tensor((2,), "float32") = a
            return r
        z: R.Tensor((2,), "float32") = turn(x, k)
        return z
)");
  const Tensor x = Floats({2}, {1, 2}), y = Floats({2}, {3, 5});
  CHECK(Elements(module("power", {x, int64_t{2}, y})[0]) == Numbers{9, 50});
  CHECK(Elements(module("captured", {x, y})[0]) == Numbers{27, 250});
  CHECK(Elements(module("nested", {x, y, int64_t{2}})[0]) == Numbers{7, 12});
  CHECK(Elements(module("nested", {x, y, int64_t{3}})[0]) == Numbers{-10, -17});
}

}  // namespace
}  // namespace ingot::driver
