// Forms that tensor functions in text may have, called through graph functions: views of memory, allocations in older
// spelling, extents of another dtype than int64.
#include <doctest/doctest.h>

#include "tests/compiler/lower/compiled.h"

namespace ingot::driver {
namespace {

TEST_CASE("views of several dimensions, with strides and an offset, are the elements of the buffer") {
  Compiled module(R"(
    @T.prim_func(private=True, s_tir=True)
    def views(A: T.Buffer((4, 4), "float32"), B: T.Buffer((2, 4), "float32")):
        V = T.decl_buffer((2, 8), "float32", data=A.data)
        W = T.Buffer((2, 2), "float32", data=A.data, strides=[8, 2], elem_offset=5)
        tile = T.allocate([4], "float32", "local")
        square = T.decl_buffer((2, 2), "float32", data=tile, scope="local")
        flat = T.decl_buffer((4,), "float32", data=tile, scope="local")
        for i, j in T.grid(2, 2):
            square[i, j] = V[i, 7 - j] * T.float32(100)
        for i in range(4):
            B[0, i] = flat[i]
            B[1, i] = W[i // 2, i % 2]

    @R.function
    def main(x: R.Tensor((4, 4), "float32")) -> R.Tensor((2, 4), "float32"):
        cls = Module
        y = R.call_tir(cls.views, (x,), out_ty=R.Tensor((2, 4), "float32"))
        return y

    @R.function
    def reshaped(x: R.Tensor((4, 4), "float32")) -> R.Tensor((2, 8), "float32"):
        absent: R.Any = R.null_value()
        a = R.memory.view(x, R.shape([16]), absent, R.tuple())
        b = R.memory.ensure_zero_offset(R.memory.view(a, R.shape([2, 8])))
        return R.negative(b)
)");
  const Tensor x = Floats({4, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  CHECK(Elements(module("main", {x})[0]) == Numbers{700, 600, 1500, 1400, 5, 7, 13, 15});
  CHECK(Elements(module("reshaped", {x})[0])[15] == -15);
}

TEST_CASE("dimensions, loops and values of int32") {
  Compiled module(R"(
    @T.prim_func(private=True, s_tir=True)
    def product(a: T.handle, b: T.handle, c: T.handle):
        m, n, k = T.int32(), T.int32(), T.int32()
        A = T.match_buffer(a, (m, k), "float32")
        B = T.match_buffer(b, (k, n), "float32")
        C = T.match_buffer(c, (m, n), "float32")
        for i, j, l in T.grid(m, n, k):
            with T.sblock("C"):
                vi, vj, vl = T.axis.remap("SSR", [i, j, l])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vl] * B[vl, vj]

    @T.prim_func(private=True, s_tir=True)
    def places(A: T.Buffer((T.int32(3), T.int32(5)), "float32"), I: T.Buffer((T.int32(3),), "int32"),
               B: T.Buffer((T.int32(3), T.int32(5)), "float32")):
        for i, j in T.grid(T.int32(3), T.int32(5)):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.if_then_else(vj < vi + T.int32(2), A[I[vi], vj] + T.Cast("float32", vi * T.int32(5) + vj),
                                           T.float32(-1))

    @R.function
    def main(x: R.Tensor(("m", "k"), "float32"), y: R.Tensor(("k", "n"), "float32")) -> R.Tensor(("m", "n"), "float32"):
        m, n = T.int64(), T.int64()
        cls = Module
        a = R.call_tir(cls.product, (x, y), out_ty=R.Tensor((m, n), "float32"))
        b = R.add(a, R.const(1.0, "float32"))
        return b

    @R.function
    def chosen(x: R.Tensor((3, 5), "float32"), i: R.Tensor((3,), "int32")) -> R.Tensor((3, 5), "float32"):
        cls = Module
        a = R.call_tir(cls.places, (x, i), out_ty=R.Tensor((3, 5), "float32"))
        return a
)");
  CHECK(Elements(module("main", {Floats({2, 3}, {1, 2, 3, 4, 5, 6}), Floats({3, 2}, {1, 0, 0, 1, 1, 1})})[0]) ==
        Numbers{5, 6, 11, 12});
  Tensor index = New(DataType::Int(32), {3});
  const int32_t places[] = {2, 0, 1};
  std::ranges::copy(places, static_cast<int32_t*>(index.data()));
  const Tensor x = Floats({3, 5}, {0, 10, 20, 30, 40, 100, 110, 120, 130, 140, 200, 210, 220, 230, 240});
  CHECK(Elements(module("chosen", {x, index})[0]) ==
        Numbers{200, 211, -1, -1, -1, 5, 16, 27, -1, -1, 110, 121, 132, 143, -1});
}

}  // namespace
}  // namespace ingot::driver
