#include <doctest/doctest.h>

#include "compiler/interp/interpreter.h"
#include "compiler/ir/visitor.h"
#include "compiler/script/printer.h"
#include "compiler/te/tensor.h"

namespace ingot::te {
namespace {

using ir::FloatImm;
using ir::Int64;
using ir::MakePrimVar;
using ir::PrimExpr;

const DataType kF32 = DataType::Float(32);

// The text below the signature.
std::string Body(const ir::PrimFunc& function) {
  const std::string text = script::PrintFunction("f", function);
  return text.substr(text.find("    # with T.sblock"));
}

TEST_CASE("a convolution with padding, bias and relu becomes TVM's canonical stages") {
  const PrimExpr n = MakePrimVar("n");
  const Tensor data = Placeholder({n, Int64(1), Int64(8), Int64(8)}, kF32, "image");
  const Tensor weight = Placeholder({Int64(16), Int64(1), Int64(3), Int64(3)}, kF32, "weight");
  const Tensor bias = Placeholder({Int64(1), Int64(16), Int64(1), Int64(1)}, kF32, "bias");
  const Tensor padded = Compute(
      {n, Int64(1), Int64(10), Int64(10)},
      [&](const Indices& i) {
        const PrimExpr inside = And(And(Int64(1) <= i[2], i[2] < Int64(9)), And(Int64(1) <= i[3], i[3] < Int64(9)));
        return ir::IfThenElse(inside, data(i[0], i[1], i[2] - 1, i[3] - 1), FloatImm(kF32, 0));
      },
      "pad_temp");
  const ir::IterVar rc = ReduceAxis(Int64(1), "rc");
  const ir::IterVar ry = ReduceAxis(Int64(3), "ry");
  const ir::IterVar rx = ReduceAxis(Int64(3), "rx");
  const Tensor conv = Compute(
      {n, Int64(16), Int64(8), Int64(8)},
      [&](const Indices& i) {
        return Sum(padded(i[0], rc->var, i[2] + ry->var, i[3] + rx->var) * weight(i[1], rc->var, ry->var, rx->var),
                   {rc, ry, rx});
      },
      "conv2d_nchw", {"nn", "ff", "yy", "xx"});
  const Tensor added =
      Compute(conv.shape(), [&](const Indices& i) { return conv(i) + bias(Int64(0), i[1], Int64(0), Int64(0)); },
              "T_add", {"ax0", "ax1", "ax2", "ax3"});
  const Tensor relu = Compute(
      added.shape(), [&](const Indices& i) { return ir::Max(added(i), FloatImm(kF32, 0)); }, "compute");
  const ir::PrimFunc function = CreatePrimFunc({data, weight, bias, relu});
  CHECK(Body(function) == R"(    # with T.sblock("root"):
    pad_temp = T.sblock_alloc_buffer((n, T.int64(1), T.int64(10), T.int64(10)))
    conv2d_nchw = T.sblock_alloc_buffer((n, T.int64(16), T.int64(8), T.int64(8)))
    T_add = T.sblock_alloc_buffer((n, T.int64(16), T.int64(8), T.int64(8)))
    for i0, i1, i2, i3 in T.grid(n, T.int64(1), T.int64(10), T.int64(10)):
        with T.sblock("pad_temp"):
            v_i0, v_i1, v_i2, v_i3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
            T.reads(image[v_i0, v_i1, v_i2 - T.int64(1), v_i3 - T.int64(1)])
            T.writes(pad_temp[v_i0, v_i1, v_i2, v_i3])
            pad_temp[v_i0, v_i1, v_i2, v_i3] = T.if_then_else(T.int64(1) <= v_i2 and v_i2 < T.int64(9) and (T.int64(1) <= v_i3 and v_i3 < T.int64(9)), image[v_i0, v_i1, v_i2 - T.int64(1), v_i3 - T.int64(1)], T.float32(0.0))
    for nn, ff, yy, xx, rc, ry, rx in T.grid(n, T.int64(16), T.int64(8), T.int64(8), T.int64(1), T.int64(3), T.int64(3)):
        with T.sblock("conv2d_nchw"):
            v_nn, v_ff, v_yy, v_xx, v_rc, v_ry, v_rx = T.axis.remap("SSSSRRR", [nn, ff, yy, xx, rc, ry, rx])
            T.reads(pad_temp[v_nn, v_rc, v_yy + v_ry, v_xx + v_rx], weight[v_ff, v_rc, v_ry, v_rx])
            T.writes(conv2d_nchw[v_nn, v_ff, v_yy, v_xx])
            with T.init():
                conv2d_nchw[v_nn, v_ff, v_yy, v_xx] = T.float32(0.0)
            conv2d_nchw[v_nn, v_ff, v_yy, v_xx] = conv2d_nchw[v_nn, v_ff, v_yy, v_xx] + pad_temp[v_nn, v_rc, v_yy + v_ry, v_xx + v_rx] * weight[v_ff, v_rc, v_ry, v_rx]
    for ax0, ax1, ax2, ax3 in T.grid(n, T.int64(16), T.int64(8), T.int64(8)):
        with T.sblock("T_add"):
            v_ax0, v_ax1, v_ax2, v_ax3 = T.axis.remap("SSSS", [ax0, ax1, ax2, ax3])
            T.reads(conv2d_nchw[v_ax0, v_ax1, v_ax2, v_ax3], bias[T.int64(0), v_ax1, T.int64(0), T.int64(0)])
            T.writes(T_add[v_ax0, v_ax1, v_ax2, v_ax3])
            T_add[v_ax0, v_ax1, v_ax2, v_ax3] = conv2d_nchw[v_ax0, v_ax1, v_ax2, v_ax3] + bias[T.int64(0), v_ax1, T.int64(0), T.int64(0)]
    for i0, i1, i2, i3 in T.grid(n, T.int64(16), T.int64(8), T.int64(8)):
        with T.sblock("compute"):
            v_i0, v_i1, v_i2, v_i3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
            T.reads(T_add[v_i0, v_i1, v_i2, v_i3])
            T.writes(compute[v_i0, v_i1, v_i2, v_i3])
            compute[v_i0, v_i1, v_i2, v_i3] = T.max(T_add[v_i0, v_i1, v_i2, v_i3], T.float32(0.0))
)");
}

TEST_CASE("several results of one reduction, scalars, and equal names") {
  const PrimExpr n = MakePrimVar("n");
  const Tensor x = Placeholder({n}, kF32, "x");
  const ir::IterVar k = ReduceAxis(n, "k");
  const std::vector<Tensor> arg_max = ComputeMany(
      {},
      [&](const Indices&) {
        return Reduce({x(k->var), k->var}, {k},
                      [](const Indices& a, const Indices& b) {
                        const PrimExpr keep = a[0] >= b[0];
                        return std::vector<PrimExpr>{ir::Select(keep, a[0], b[0]), ir::Select(keep, a[1], b[1])};
                      },
                      {ir::MinValue(kF32), Int64(-1)});
      },
      "arg_max");
  const Tensor scaled = Compute({}, [&](const Indices&) { return arg_max[0](Indices{}) * 2; });
  const Tensor shifted = Compute({}, [&](const Indices&) { return scaled(Indices{}) + 1; });
  CHECK(Body(CreatePrimFunc({x, arg_max[1], shifted})) == R"(    # with T.sblock("root"):
    arg_max_v0 = T.sblock_alloc_buffer(())
    compute1 = T.sblock_alloc_buffer(())
    for k in range(n):
        with T.sblock("arg_max"):
            v_k = T.axis.reduce(n, k)
            T.reads(x[v_k])
            T.writes(arg_max_v0[()], arg_max_v1[()])
            with T.init():
                arg_max_v0[()] = T.float32(-3.4028235e+38)
                arg_max_v1[()] = T.int64(-1)
            v_arg_max_v0: T.let[T.float32] = T.Select(arg_max_v0[()] >= x[v_k], arg_max_v0[()], x[v_k])
            v_arg_max_v1: T.let[T.int64] = T.Select(arg_max_v0[()] >= x[v_k], arg_max_v1[()], v_k)
            arg_max_v0[()] = v_arg_max_v0
            arg_max_v1[()] = v_arg_max_v1
    with T.sblock("compute"):
        vi = T.axis.spatial(T.int64(1), T.int64(0))
        T.reads(arg_max_v0[()])
        T.writes(compute1[()])
        compute1[()] = arg_max_v0[()] * T.float32(2.0)
    with T.sblock("compute_1"):
        vi = T.axis.spatial(T.int64(1), T.int64(0))
        T.reads(compute1[()])
        T.writes(compute[()])
        compute[()] = compute1[()] + T.float32(1.0)
)");
}

TEST_CASE("reductions: sum, product, maximum and minimum, and one of one's own") {
  const auto reduced = [](DataType dtype, const auto& reduce) {
    const Tensor x = Placeholder({Int64(2), Int64(3)}, dtype, "x");
    const ir::IterVar k = ReduceAxis(Int64(3), "k");
    const Tensor y = Compute({Int64(2)}, [&](const Indices& i) { return reduce(x(i[0], k->var), k); });
    return CreatePrimFunc({x, y});
  };
  const auto check = [](const ir::PrimFunc& function, auto zero, std::vector<double> values,
                        std::vector<double> expected) {
    using T = decltype(zero);
    std::vector<T> in(values.begin(), values.end()), out(2);
    const DataType dtype = function->params[0].buffer->dtype;
    const std::vector<interp::HostBuffer> buffers{{dtype, {2, 3}, std::as_writable_bytes(std::span(in))},
                                                  {dtype, {2}, std::as_writable_bytes(std::span(out)), false}};
    const Status status = interp::Interpret(function, buffers, {}, {});
    REQUIRE_MESSAGE(status.ok(), status.message());
    CHECK(std::vector<double>(out.begin(), out.end()) == expected);
  };
  const DataType i32 = DataType::Int(32);
  const auto one = [](const auto& reduction) {
    return [&reduction](PrimExpr x, ir::IterVar k) { return reduction(std::move(x), {std::move(k)}); };
  };
  const auto closest = [](PrimExpr x, ir::IterVar k) {  // to zero
    return Reduce({x}, {k},
                  [](const Indices& a, const Indices& b) {
                    return std::vector<PrimExpr>{ir::Select(a[0] * a[0] <= b[0] * b[0], a[0], b[0])};
                  },
                  {ir::MakeConst(x->dtype, 1000)})[0];
  };
  const std::vector<double> values{-2, -3, -5, 7, 1, -4};
  check(reduced(kF32, one(Sum)), 0.0F, values, {-10, 4});
  check(reduced(kF32, one(Prod)), 0.0F, values, {-30, -28});
  check(reduced(kF32, one(ReduceMax)), 0.0F, values, {-2, 7});
  check(reduced(kF32, one(ReduceMin)), 0.0F, values, {-5, -4});
  check(reduced(kF32, closest), 0.0F, values, {-2, 1});
  check(reduced(i32, one(Prod)), int32_t{0}, values, {-30, -28});
  check(reduced(i32, one(ReduceMax)), int32_t{0}, values, {-2, 7});
  check(reduced(i32, one(ReduceMin)), int32_t{0}, {2, 3, 5, 9, 8, 7}, {2, 7});
}

TEST_CASE("ranges of reads: windows, whole dimensions, symbolic scalars") {
  const ir::PrimVar n = MakePrimVar("n");
  const ir::PrimVar start = MakePrimVar("start");
  const Tensor x = Placeholder({n, Int64(8)}, kF32, "x");
  const Tensor out = Compute({n, Int64(4)}, [&](const Indices& i) {
    return x(i[0], i[1] * 2) + x(i[0], i[1] * 2 + 1) + x(start, i[1]) + x(i[0], ir::FloorMod(i[1], Int64(2)));
  });
  CHECK(Body(CreatePrimFunc({x, out}, {start})) == R"(    # with T.sblock("root"):
    for i0, i1 in T.grid(n, T.int64(4)):
        with T.sblock("compute"):
            v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
            T.reads(x[T.int64(0):T.int64(0) + n, T.int64(0):T.int64(8)])
            T.writes(compute[v_i0, v_i1])
            compute[v_i0, v_i1] = x[v_i0, v_i1 * T.int64(2)] + x[v_i0, v_i1 * T.int64(2) + T.int64(1)] + x[start, v_i1] + x[v_i0, v_i1 % T.int64(2)]
)");
}

}  // namespace
}  // namespace ingot::te
