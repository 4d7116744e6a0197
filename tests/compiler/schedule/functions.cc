#include "tests/compiler/schedule/functions.h"

#include <cmath>
#include <functional>
#include <random>

#include "compiler/interp/interpreter.h"
#include "compiler/te/tensor.h"

namespace ingot::schedule::testing {

using namespace ir;  // NOLINT
using te::Indices;

namespace {
const DataType kFloat = DataType::Float(32);
PrimExpr Zero() { return FloatImm(kFloat, 0.0); }
}  // namespace

PrimExpr N() { return MakePrimVar("n"); }

PrimFunc Dense(PrimExpr m, PrimExpr k, PrimExpr n, bool epilogue) {
  const te::Tensor a = te::Placeholder({m, k}, kFloat, "A"), b = te::Placeholder({k, n}, kFloat, "B");
  const te::Tensor bias = te::Placeholder({n}, kFloat, "bias");
  const IterVar r = te::ReduceAxis(k, "k");
  const te::Tensor c = te::Compute(
      {m, n}, [&](const Indices& i) { return te::Sum(a(i[0], r->var) * b(r->var, i[1]), {r}); }, "matmul");
  if (!epilogue) return te::CreatePrimFunc({a, b, c});
  const te::Tensor d = te::Compute(
      {m, n}, [&](const Indices& i) { return c(i[0], i[1]) + bias(i[1]); }, "add");
  const te::Tensor e = te::Compute(
      {m, n}, [&](const Indices& i) { return Max(d(i[0], i[1]), Zero()); }, "relu");
  return te::CreatePrimFunc({a, b, bias, e});
}

// The right factor has its columns in rows.
PrimFunc DenseColumns(PrimExpr m, PrimExpr k, PrimExpr n) {
  const te::Tensor a = te::Placeholder({m, k}, kFloat, "A"), b = te::Placeholder({n, k}, kFloat, "B");
  const IterVar r = te::ReduceAxis(k, "k");
  return te::CreatePrimFunc(
      {a, b,
       te::Compute(
           {m, n}, [&](const Indices& i) { return te::Sum(a(i[0], r->var) * b(i[1], r->var), {r}); }, "matmul")});
}

PrimFunc BatchedMatmul(PrimExpr batch, PrimExpr m, PrimExpr k, PrimExpr n) {
  const te::Tensor a = te::Placeholder({batch, m, k}, kFloat, "A"), b = te::Placeholder({batch, k, n}, kFloat, "B");
  const IterVar r = te::ReduceAxis(k, "k");
  const te::Tensor c = te::Compute(
      {batch, m, n}, [&](const Indices& i) { return te::Sum(a(i[0], i[1], r->var) * b(i[0], r->var, i[2]), {r}); },
      "matmul");
  return te::CreatePrimFunc({a, b, c});
}

PrimFunc PanelProduct(PrimExpr m) {
  const te::Tensor a = te::Placeholder({m, Int64(20)}, kFloat, "A");
  const te::Tensor b = te::Placeholder({Int64(3), Int64(20), Int64(16)}, kFloat, "B");
  const IterVar r = te::ReduceAxis(Int64(20), "k");
  const te::Tensor c = te::Compute(
      {m, Int64(40)},
      [&](const Indices& i) {
        return te::Sum(a(i[0], r->var) * b(FloorDiv(i[1], Int64(16)), r->var, FloorMod(i[1], Int64(16))), {r});
      },
      "matmul");
  return te::CreatePrimFunc({a, b, c});
}

PrimFunc Conv(PrimExpr n, int64_t ci, int64_t h, int64_t co, int64_t ks, int64_t stride, int64_t pad) {
  const PrimExpr out = Int64((h + 2 * pad - ks) / stride + 1);
  const te::Tensor x = te::Placeholder({n, Int64(ci), Int64(h), Int64(h)}, kFloat, "X");
  const te::Tensor w = te::Placeholder({Int64(co), Int64(ci), Int64(ks), Int64(ks)}, kFloat, "W");
  const te::Tensor bias = te::Placeholder({Int64(co)}, kFloat, "bias");
  const te::Tensor p = te::Compute(
      {n, Int64(ci), Int64(h + 2 * pad), Int64(h + 2 * pad)},
      [&](const Indices& i) {
        const PrimExpr inside =
            And(And(Int64(pad) <= i[2], i[2] < Int64(h + pad)), And(Int64(pad) <= i[3], i[3] < Int64(h + pad)));
        return IfThenElse(inside, x(i[0], i[1], i[2] - pad, i[3] - pad), Zero());
      },
      "pad");
  const IterVar rc = te::ReduceAxis(Int64(ci), "rc"), ry = te::ReduceAxis(Int64(ks), "ry"),
                rx = te::ReduceAxis(Int64(ks), "rx");
  const te::Tensor c = te::Compute(
      {n, Int64(co), out, out},
      [&](const Indices& i) {
        return te::Sum(
            p(i[0], rc->var, i[2] * stride + ry->var, i[3] * stride + rx->var) * w(i[1], rc->var, ry->var, rx->var),
            {rc, ry, rx});
      },
      "conv");
  const te::Tensor e = te::Compute(
      {n, Int64(co), out, out}, [&](const Indices& i) { return Max(c(i[0], i[1], i[2], i[3]) + bias(i[1]), Zero()); },
      "relu");
  return te::CreatePrimFunc({x, w, bias, e});
}

PrimFunc BlockedConv(int64_t height, int64_t width) {
  constexpr int64_t kBlock = 16, kBlocks = 2;
  const int64_t taps_y = height > 1 ? 3 : 1, taps_x = width > 1 ? 3 : 1;
  const te::Tensor x = te::Placeholder(
      {Int64(1), Int64(kBlocks), Int64(height + taps_y - 1), Int64(width + taps_x - 1), Int64(kBlock)}, kFloat, "X");
  const te::Tensor w = te::Placeholder(
      {Int64(kBlocks), Int64(kBlocks), Int64(taps_y), Int64(taps_x), Int64(kBlock), Int64(kBlock)}, kFloat, "W");
  const IterVar rc = te::ReduceAxis(Int64(kBlocks), "rc"), ry = te::ReduceAxis(Int64(taps_y), "ry"),
                rx = te::ReduceAxis(Int64(taps_x), "rx"), rv = te::ReduceAxis(Int64(kBlock), "rv");
  const te::Tensor c = te::Compute(
      {Int64(1), Int64(kBlocks), Int64(height), Int64(width), Int64(kBlock)},
      [&](const Indices& i) {
        return te::Sum(x(i[0], rc->var, i[2] + ry->var, i[3] + rx->var, rv->var) *
                           w(i[1], rc->var, ry->var, rx->var, rv->var, i[4]),
                       {rc, ry, rx, rv});
      },
      "conv");
  return te::CreatePrimFunc({x, w, c});
}

PrimFunc GroupedConv(int64_t groups, int64_t ci, int64_t co, PrimExpr width) {  // windows of three
  const te::Tensor x = te::Placeholder({Int64(1), Int64(groups * ci), width + 2}, kFloat, "X");
  const te::Tensor w = te::Placeholder({Int64(groups * co), Int64(ci), Int64(3)}, kFloat, "W");
  const IterVar rc = te::ReduceAxis(Int64(ci), "rc"), rx = te::ReduceAxis(Int64(3), "rx");
  const te::Tensor c = te::Compute(
      {Int64(1), Int64(groups * co), width},
      [&](const Indices& i) {
        return te::Sum(x(i[0], FloorDiv(i[1], Int64(co)) * ci + rc->var, i[2] + rx->var) * w(i[1], rc->var, rx->var),
                       {rc, rx});
      },
      "conv");
  return te::CreatePrimFunc({x, w, c});
}

PrimFunc StridedConv(PrimExpr n, int64_t co, PrimExpr width) {
  const te::Tensor x = te::Placeholder({n, Int64(1), width * 4 + 5}, kFloat, "X");
  const te::Tensor w = te::Placeholder({Int64(co), Int64(1), Int64(9)}, kFloat, "W");
  const IterVar rc = te::ReduceAxis(Int64(1), "rc"), rx = te::ReduceAxis(Int64(9), "rx");
  const te::Tensor c = te::Compute(
      {n, Int64(co), width},
      [&](const Indices& i) {
        return te::Sum(x(i[0], rc->var, i[2] * 4 + rx->var) * w(i[1], rc->var, rx->var), {rc, rx});
      },
      "conv");
  return te::CreatePrimFunc({x, w, c});
}

PrimFunc MaxPool(PrimExpr n, int64_t channels, int64_t h) {
  const te::Tensor x = te::Placeholder({n, Int64(channels), Int64(h), Int64(h)}, kFloat, "X");
  const IterVar ry = te::ReduceAxis(Int64(2), "ry"), rx = te::ReduceAxis(Int64(2), "rx");
  const te::Tensor c = te::Compute(
      {n, Int64(channels), Int64(h / 2), Int64(h / 2)},
      [&](const Indices& i) {
        return te::ReduceMax(x(i[0], i[1], i[2] * 2 + ry->var, i[3] * 2 + rx->var), {ry, rx});
      },
      "pool");
  return te::CreatePrimFunc({x, c});
}

PrimFunc WindowMax(PrimExpr rows, int64_t window, PrimExpr columns) {
  const te::Tensor x = te::Placeholder({rows, columns * window}, kFloat, "X");
  const IterVar r = te::ReduceAxis(Int64(window), "r");
  const te::Tensor c = te::Compute(
      {rows, columns}, [&](const Indices& i) { return te::ReduceMax(x(i[0], i[1] * window + r->var), {r}); }, "pool");
  return te::CreatePrimFunc({x, c});
}

PrimFunc Softmax(PrimExpr m, PrimExpr n) {
  const te::Tensor x = te::Placeholder({m, n}, kFloat, "X");
  const IterVar k = te::ReduceAxis(n, "k"), k2 = te::ReduceAxis(n, "k");
  const te::Tensor greatest = te::Compute(
      {m}, [&](const Indices& i) { return te::ReduceMax(x(i[0], k->var), {k}); }, "max");
  const te::Tensor e = te::Compute(
      {m, n}, [&](const Indices& i) { return CallIntrinsic(Intrinsic::kExp, {x(i[0], i[1]) - greatest(i[0])}); },
      "exp");
  const te::Tensor sum = te::Compute(
      {m}, [&](const Indices& i) { return te::Sum(e(i[0], k2->var), {k2}); }, "sum");
  const te::Tensor y = te::Compute(
      {m, n}, [&](const Indices& i) { return e(i[0], i[1]) / sum(i[0]); }, "norm");
  return te::CreatePrimFunc({x, y});
}

PrimFunc RowSum(PrimExpr m, PrimExpr n) {
  const te::Tensor x = te::Placeholder({m, n}, kFloat, "X");
  const IterVar k = te::ReduceAxis(n, "k");
  const te::Tensor y = te::Compute(
      {m}, [&](const Indices& i) { return te::Sum(x(i[0], k->var), {k}); }, "sum");
  return te::CreatePrimFunc({x, y});
}

PrimFunc ColumnSum(PrimExpr m, PrimExpr n) {
  const te::Tensor x = te::Placeholder({m, n}, kFloat, "X");
  const IterVar k = te::ReduceAxis(m, "k");
  const te::Tensor y = te::Compute(
      {n}, [&](const Indices& i) { return te::Sum(x(k->var, i[0]), {k}); }, "sum");
  return te::CreatePrimFunc({x, y});
}

PrimFunc GlobalMean(PrimExpr m, PrimExpr n) {
  const te::Tensor x = te::Placeholder({m, n}, kFloat, "X");
  const IterVar r = te::ReduceAxis(m, "r"), k = te::ReduceAxis(n, "k");
  const te::Tensor y = te::Compute(
      {},
      [&](const Indices&) {
        return te::Sum(x(r->var, k->var), {r, k});
      },
      "sum");
  const te::Tensor z = te::Compute(
      {}, [&](const Indices&) { return y(Indices{}) / Cast(kFloat, m * n); }, "mean");
  return te::CreatePrimFunc({x, z});
}

PrimFunc ElementwiseChain(PrimExpr a, PrimExpr b) {
  const te::Tensor x = te::Placeholder({a, b}, kFloat, "X"), y = te::Placeholder({b}, kFloat, "Y");
  const te::Tensor c = te::Compute(
      {a, b}, [&](const Indices& i) { return x(i[0], i[1]) * y(i[1]); }, "mul");
  const te::Tensor d = te::Compute(
      {a, b}, [&](const Indices& i) { return c(i[0], i[1]) + FloatImm(kFloat, 1.0); }, "add");
  const te::Tensor e = te::Compute(
      {a, b}, [&](const Indices& i) { return CallIntrinsic(Intrinsic::kTanh, {d(i[0], i[1])}); }, "tanh");
  return te::CreatePrimFunc({x, y, e});
}

PrimFunc Transpose(PrimExpr a, PrimExpr b) {
  const te::Tensor x = te::Placeholder({a, b}, kFloat, "X");
  const te::Tensor y = te::Compute(
      {b, a}, [&](const Indices& i) { return x(i[1], i[0]); }, "transpose");
  return te::CreatePrimFunc({x, y});
}

PrimFunc TransposeInner(PrimExpr a, PrimExpr b, PrimExpr c) {
  const te::Tensor x = te::Placeholder({a, b, c}, kFloat, "X"), y = te::Placeholder({a, c, b}, kFloat, "Y");
  const te::Tensor z = te::Compute(
      {a, c, b}, [&](const Indices& i) { return x(i[0], i[2], i[1]) + y(i[0], i[1], i[2]); }, "transpose_add");
  return te::CreatePrimFunc({x, y, z});
}

PrimFunc Reverse(const std::vector<PrimExpr>& dims) {
  const te::Tensor x = te::Placeholder(dims, kFloat, "X"), y = te::Placeholder({dims[0]}, kFloat, "Y");
  const te::Tensor z = te::Compute(
      {dims.rbegin(), dims.rend()},
      [&](const Indices& i) {
        return x(std::vector<PrimExpr>{i.rbegin(), i.rend()}) + y(i.back());
      },
      "reverse");
  return te::CreatePrimFunc({x, y, z});
}

PrimFunc Interleave(int64_t rests, int64_t shift, PrimExpr columns) {
  const PrimExpr row_length = FloorDiv(columns + (shift + rests - 1), Int64(rests));
  const te::Tensor x = te::Placeholder({Int64(3), Int64(rests), row_length}, kFloat, "X"),
                   y = te::Placeholder({Int64(3), columns}, kFloat, "Y");
  const te::Tensor z = te::Compute(
      {Int64(3), columns},
      [&](const Indices& i) {
        const PrimExpr place = i[1] + shift;
        return x(i[0], FloorMod(place, Int64(rests)), FloorDiv(place, Int64(rests))) + y(i[0], i[1]);
      },
      "interleave");
  return te::CreatePrimFunc({x, y, z});
}

// The rows of a stage read twice, at places from a table.
PrimFunc GatherRows(PrimExpr rows, PrimExpr columns, PrimExpr places) {
  const te::Tensor x = te::Placeholder({rows, columns}, kFloat, "X"), y = te::Placeholder({rows, columns}, kFloat, "Y");
  const te::Tensor row = te::Compute(
      {rows, columns}, [&](const Indices& i) { return x(i[0], i[1]) * y(i[0], i[1]); }, "row");
  const te::Tensor position = te::Compute(
      {places}, [&](const Indices& i) { return FloorDiv(FloorMod(i[0] * 5 + 3, places) * columns, places); },
      "position");
  const te::Tensor z = te::Compute(
      {rows, places},
      [&](const Indices& i) {
        const PrimExpr last = columns - 1;
        return row(i[0], position(i[1])) + row(i[0], Min(position(i[1]) + 1, last));
      },
      "gather");
  return te::CreatePrimFunc({x, y, z});
}

// Pixels of each channel, from places that another tensor tells by a formula of some cost.
PrimFunc GatherPixels(PrimExpr channels, PrimExpr h, PrimExpr w) {
  const te::Tensor x = te::Placeholder({channels, h * w}, kFloat, "X"), y = te::Placeholder({h, w}, kFloat, "Y");
  const te::Tensor place = te::Compute(
      {h, w},
      [&](const Indices& i) {
        const PrimExpr root = CallIntrinsic(Intrinsic::kSqrt, {CallIntrinsic(Intrinsic::kFabs, {y(i[0], i[1])})});
        const PrimExpr at = CallIntrinsic(Intrinsic::kFloor, {root * FloatImm(kFloat, 7.0)});
        return Max(Min(Cast(DataType::Int(64), at), h * w - 1), Int64(0));
      },
      "place");
  const te::Tensor z = te::Compute(
      {channels, h, w}, [&](const Indices& i) { return x(i[0], place(i[1], i[2])); }, "gather");
  return te::CreatePrimFunc({x, y, z});
}

// The sum of as many equal numbers as a vector has lanes.
PrimFunc SumOfEqual(PrimExpr rows, int64_t count) {
  const te::Tensor x = te::Placeholder({rows}, kFloat, "X");
  const IterVar k = te::ReduceAxis(Int64(count), "k");
  const te::Tensor y = te::Compute(
      {rows}, [&](const Indices& i) { return te::Sum(x(i[0]), {k}); }, "sum");
  return te::CreatePrimFunc({x, y});
}

PrimFunc ScaleOfChannels(PrimExpr c, PrimExpr h, PrimExpr w) {
  const te::Tensor x = te::Placeholder({c, h, w}, kFloat, "X"),
                   s = te::Placeholder({c, Int64(1), Int64(1)}, kFloat, "S");
  const te::Tensor y = te::Compute(
      {c, h, w}, [&](const Indices& i) { return x(i[0], i[1], i[2]) * s(i[0], Int64(0), Int64(0)); }, "scale");
  return te::CreatePrimFunc({x, s, y});
}

PrimFunc AddAll(PrimExpr a, PrimExpr b, PrimExpr c) {
  const te::Tensor x = te::Placeholder({a, b, c}, kFloat, "X"), y = te::Placeholder({a, b, c}, kFloat, "Y");
  const te::Tensor z = te::Compute(
      {a, b, c}, [&](const Indices& i) { return x(i[0], i[1], i[2]) + y(i[0], i[1], i[2]); }, "add");
  return te::CreatePrimFunc({x, y, z});
}

PrimFunc ConcatRelu(PrimExpr rows, PrimExpr a, PrimExpr b, PrimExpr inner) {
  const te::Tensor x = te::Placeholder({rows, a, inner}, kFloat, "X"),
                   y = te::Placeholder({rows, b, inner}, kFloat, "Y");
  const te::Tensor z = te::Compute(
      {rows, a + b, inner},
      [&](const Indices& i) { return IfThenElse(i[1] < a, x(i[0], i[1], i[2]), y(i[0], i[1] - a, i[2])); }, "concat");
  const te::Tensor r = te::Compute(
      {rows, a + b, inner}, [&](const Indices& i) { return Max(z(i[0], i[1], i[2]), Zero()); }, "relu");
  return te::CreatePrimFunc({x, y, r});
}

PrimFunc MeanOfPixels(PrimExpr c, PrimExpr h, PrimExpr w) {
  const te::Tensor x = te::Placeholder({c, h, w}, kFloat, "X");
  const IterVar r = te::ReduceAxis(h, "r"), k = te::ReduceAxis(w, "k");
  const te::Tensor sum = te::Compute(
      {c},
      [&](const Indices& i) {
        return te::Sum(x(i[0], r->var, k->var), {r, k});
      },
      "sum");
  const te::Tensor mean = te::Compute(
      {c}, [&](const Indices& i) { return sum(i[0]) / Cast(kFloat, h * w); }, "mean");
  return te::CreatePrimFunc({x, mean});
}

PrimFunc Pad(PrimExpr a, int64_t b) {
  const te::Tensor x = te::Placeholder({a, Int64(b)}, kFloat, "X");
  const te::Tensor y = te::Compute(
      {a, Int64(b + 3)},
      [&](const Indices& i) {
        return IfThenElse(And(Int64(1) <= i[1], i[1] < Int64(b + 1)), x(i[0], i[1] - 1), Zero());
      },
      "pad");
  return te::CreatePrimFunc({x, y});
}

std::vector<Case> AllCases() {
  const auto c = [](int64_t v) { return Int64(v); };
  std::vector<Case> cases = {
      {"dense, symbolic rows",
       Dense(N(), c(20), c(40), true),
       1,
       {{{1, 20}, {20, 40}, {40}, {1, 40}},
        {{6, 20}, {20, 40}, {40}, {6, 40}},
        {{35, 20}, {20, 40}, {40}, {35, 40}},
        {{0, 20}, {20, 40}, {40}, {0, 40}}}},
      {"dense to ten",
       Dense(N(), c(33), c(10), true),
       1,
       {{{1, 33}, {33, 10}, {10}, {1, 10}}, {{20, 33}, {33, 10}, {10}, {20, 10}}}},
      {"dense, constant", Dense(c(13), c(8), c(200), false), 1, {{{13, 8}, {8, 200}, {13, 200}}}},
      {"dense, worth threads", Dense(c(32), c(64), c(160), true), 1, {{{32, 64}, {64, 160}, {160}, {32, 160}}}},
      {"dense, symbolic columns",
       Dense(c(9), c(8), N(), false),
       1,
       {{{9, 8}, {8, 21}, {9, 21}}, {{9, 8}, {8, 3}, {9, 3}}}},
      {"dense, columns in rows",
       DenseColumns(N(), c(37), c(40)),
       1,
       {{{1, 37}, {40, 37}, {1, 40}}, {{14, 37}, {40, 37}, {14, 40}}}},
      {"dense, columns in rows, symbolic",
       DenseColumns(c(13), c(16), N()),
       1,
       {{{13, 16}, {35, 16}, {13, 35}}, {{13, 16}, {3, 16}, {13, 3}}}},
      {"dense, columns in rows of symbolic length",
       DenseColumns(c(13), N(), c(64)),
       1,
       {{{13, 35}, {64, 35}, {13, 64}}, {{13, 3}, {64, 3}, {13, 64}}}},
      {"matrix x vector", Dense(c(1), c(30), c(150), true), 1, {{{1, 30}, {30, 150}, {150}, {1, 150}}}},
      {"batched matmul",
       BatchedMatmul(N(), c(7), c(5), c(18)),
       1,
       {{{3, 7, 5}, {3, 5, 18}, {3, 7, 18}}, {{1, 7, 5}, {1, 5, 18}, {1, 7, 18}}}},
      {"product with panels", PanelProduct(N()), 1, {{{5, 20}, {3, 20, 16}, {5, 40}}, {{1, 20}, {3, 20, 16}, {1, 40}}}},
      {"convolution, padded",
       Conv(N(), 2, 8, 7, 3, 1, 1),
       1,
       {{{2, 2, 8, 8}, {7, 2, 3, 3}, {7}, {2, 7, 8, 8}}, {{1, 2, 8, 8}, {7, 2, 3, 3}, {7}, {1, 7, 8, 8}}}},
      {"convolution, strided",
       Conv(c(1), 3, 21, 16, 3, 2, 0),
       1,
       {{{1, 3, 21, 21}, {16, 3, 3, 3}, {16}, {1, 16, 10, 10}}}},
      {"blocked convolution of one column",
       BlockedConv(23, 1),
       1,
       {{{1, 2, 25, 1, 16}, {2, 2, 3, 1, 16, 16}, {1, 2, 23, 1, 16}}}},
      {"grouped convolution, symbolic columns",
       GroupedConv(3, 2, 5, N()),
       1,
       {{{1, 6, 49}, {15, 2, 3}, {1, 15, 47}}, {{1, 6, 5}, {15, 2, 3}, {1, 15, 3}}}},
      {"strided conv of one channel, symbolic width",
       StridedConv(c(2), 33, N()),
       1,
       {{{2, 1, 605}, {33, 1, 9}, {2, 33, 150}},
        {{2, 1, 153}, {33, 1, 9}, {2, 33, 37}},
        {{2, 1, 9}, {33, 1, 9}, {2, 33, 1}}}},
      {"max pool", MaxPool(N(), 3, 8), 1, {{{2, 3, 8, 8}, {2, 3, 4, 4}}}},
      {"softmax of ten", Softmax(N(), c(10)), 1, {{{1, 10}, {1, 10}}, {{5, 10}, {5, 10}}}},
      {"softmax of hundred", Softmax(N(), c(100)), 1, {{{70, 100}, {70, 100}}}},
      {"softmax, symbolic rows' length", Softmax(c(3), N()), 1, {{{3, 37}, {3, 37}}, {{3, 4}, {3, 4}}}},
      {"row sum", RowSum(N(), c(50)), 1, {{{4, 50}, {4}}}},
      {"long row sum", RowSum(c(1), c(65536)), 1, {{{1, 65536}, {1}}}},
      {"column sum", ColumnSum(c(300), N()), 1, {{{300, 7}, {7}}}},
      {"global mean", GlobalMean(c(4), c(30)), 1, {{{4, 30}, {}}}},
      {"elementwise", ElementwiseChain(N(), c(100)), 1, {{{3, 100}, {100}, {3, 100}}}},
      {"elementwise, symbolic columns",
       ElementwiseChain(c(5), N()),
       1,
       {{{5, 19}, {19}, {5, 19}}, {{5, 2}, {2}, {5, 2}}}},
      {"pixels from computed places", GatherPixels(c(3), c(5), c(9)), 1, {{{3, 45}, {5, 9}, {3, 5, 9}}}},
      {"pixels from computed places, symbolic width",
       GatherPixels(c(2), c(3), N()),
       1,
       {{{2, 63}, {3, 21}, {2, 3, 21}}, {{2, 3}, {3, 1}, {2, 3, 1}}}},
      {"transpose", Transpose(N(), c(12)), 1, {{{9, 12}, {12, 9}}}},
      {"pad", Pad(N(), 20), 1, {{{4, 20}, {4, 23}}}},
      {"transpose in squares", TransposeInner(c(2), c(35), c(19)), 1, {{{2, 35, 19}, {2, 19, 35}, {2, 19, 35}}}},
      {"transpose in pairs of squares",
       TransposeInner(c(1), c(32), c(64)),
       1,
       {{{1, 32, 64}, {1, 64, 32}, {1, 64, 32}}}},
      {"transpose, symbolic", TransposeInner(c(2), c(24), N()), 1, {{{2, 24, 21}, {2, 21, 24}, {2, 21, 24}}}},
      {"reverse, few first rows", Reverse({c(2), c(9), c(3), c(21)}), 1, {{{2, 9, 3, 21}, {2}, {21, 3, 9, 2}}}},
      {"reverse, few last columns", Reverse({c(21), c(3), c(9), c(2)}), 1, {{{21, 3, 9, 2}, {21}, {2, 9, 3, 21}}}},
      {"sum of equal elements", SumOfEqual(c(5), 16), 1, {{{5}, {5}}}},
      {"sum of equal elements, symbolic rows", SumOfEqual(N(), 8), 1, {{{3}, {3}}}},
      {"interleave", Interleave(2, 1, c(43)), 1, {{{3, 2, 22}, {3, 43}, {3, 43}}}},
      {"interleave, symbolic",
       Interleave(3, 0, N()),
       1,
       {{{3, 3, 34}, {3, 100}, {3, 100}}, {{3, 3, 1}, {3, 2}, {3, 2}}, {{3, 3, 0}, {3, 0}, {3, 0}}}},
      {"interleave, long rest", Interleave(2, 0, c(61)), 1, {{{3, 2, 31}, {3, 61}, {3, 61}}}},
      {"short last axis", TransposeInner(c(2), c(3), c(37)), 1, {{{2, 3, 37}, {2, 37, 3}, {2, 37, 3}}}},
      {"short last axis, symbolic",
       TransposeInner(c(2), c(2), N()),
       1,
       {{{2, 2, 37}, {2, 37, 2}, {2, 37, 2}}, {{2, 2, 1}, {2, 1, 2}, {2, 1, 2}}, {{2, 2, 0}, {2, 0, 2}, {2, 0, 2}}}},
      {"short last axis, symbolic rows", TransposeInner(N(), c(4), c(45)), 1, {{{3, 4, 45}, {3, 45, 4}, {3, 45, 4}}}},
      {"gathered rows", GatherRows(c(6), c(23), c(41)), 1, {{{6, 23}, {6, 23}, {6, 41}}}},
      {"gathered rows, symbolic",
       GatherRows(c(3), N(), c(20)),
       1,
       {{{3, 31}, {3, 31}, {3, 20}}, {{3, 1}, {3, 1}, {3, 20}}}},
      {"scale of channels", ScaleOfChannels(N(), c(7), c(7)), 1, {{{3, 7, 7}, {3, 1, 1}, {3, 7, 7}}}},
      {"scale of empty channels", ScaleOfChannels(N(), c(7), c(0)), 1, {{{3, 7, 0}, {3, 1, 1}, {3, 7, 0}}}},
      {"add, all axes one", AddAll(c(5), c(7), c(9)), 1, {{{5, 7, 9}, {5, 7, 9}, {5, 7, 9}}}},
      {"concat", ConcatRelu(c(2), c(5), c(3), c(7)), 1, {{{2, 5, 7}, {2, 3, 7}, {2, 8, 7}}}},
      {"mean of pixels", MeanOfPixels(c(6), c(7), c(7)), 1, {{{6, 7, 7}, {6}}}},
      {"mean of few pixels", MeanOfPixels(c(6), c(3), c(3)), 1, {{{6, 3, 3}, {6}}}},
  };
  // One function for every length.
  const std::vector<int64_t> lengths = {1, 2, 7, 8, 9, 17, 128};
  const auto with_lengths = [&](std::string name, PrimFunc function,
                                const std::function<std::vector<std::vector<int64_t>>(int64_t)>& dims) {
    Case one{std::move(name), std::move(function), 1, {}};
    for (int64_t n : lengths) one.shapes.push_back(dims(n));
    cases.push_back(std::move(one));
  };
  using Dims = std::vector<std::vector<int64_t>>;
  with_lengths("softmax of any length", Softmax(c(2), N()), [](int64_t n) { return Dims{{2, n}, {2, n}}; });
  with_lengths("row sum of any length", RowSum(c(2), N()), [](int64_t n) { return Dims{{2, n}, {2}}; });
  with_lengths("chain of any length", ElementwiseChain(c(2), N()), [](int64_t n) { return Dims{{2, n}, {n}, {2, n}}; });
  with_lengths("add of any length", AddAll(c(3), N(), c(5)), [](int64_t n) {
    return Dims{{3, n, 5}, {3, n, 5}, {3, n, 5}};
  });
  with_lengths("concat of any length", ConcatRelu(c(2), N(), c(1), c(3)), [](int64_t n) {
    return Dims{{2, n, 3}, {2, 1, 3}, {2, n + 1, 3}};
  });
  with_lengths("mean of any picture", MeanOfPixels(c(2), N(), c(3)), [](int64_t n) { return Dims{{2, n, 3}, {2}}; });
  with_lengths("reverse of any number of rows", Reverse({N(), c(5), c(2), c(18)}), [](int64_t n) {
    return Dims{{n, 5, 2, 18}, {n}, {18, 2, 5, n}};
  });
  const PrimVar rows = MakePrimVar("rows");
  cases.push_back({"reverse of any size", Reverse({rows, MakePrimVar("middle"), N()}), 1, {}});
  for (const std::vector<int64_t>& d : std::vector<std::vector<int64_t>>{
           {0, 3, 5}, {1, 1, 1}, {1, 17, 5}, {2, 9, 17}, {17, 3, 1}, {18, 9, 2}, {16, 2, 16}, {17, 0, 17}, {3, 5, 3}}) {
    cases.back().shapes.push_back({d, {d[0]}, {d[2], d[1], d[0]}});
  }
  // Every kind of square and rest, along either axis.
  const PrimVar columns = MakePrimVar("columns");
  cases.push_back({"transpose of any size", TransposeInner(rows, columns, N()), 1, {}});
  for (const auto& [m, n] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 5}, {5, 0}, {1, 1}, {3, 33}, {33, 3}, {4, 9}, {7, 15}, {8, 16}, {13, 28}, {16, 31}, {32, 48}, {47, 63}}) {
    cases.back().shapes.push_back({{2, m, n}, {2, n, m}, {2, n, m}});
  }
  with_lengths("transpose of any length", TransposeInner(c(1), N(), c(10)), [](int64_t n) {
    return Dims{{1, n, 10}, {1, 10, n}, {1, 10, n}};
  });
  return cases;
}

std::vector<std::vector<float>> RandomBuffers(const std::vector<std::vector<int64_t>>& dims, int num_outputs,
                                              uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<std::vector<float>> data;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t elements = 1;
    for (int64_t d : dims[i]) elements *= d;
    data.emplace_back(elements);
    if (i + num_outputs >= dims.size()) continue;
    for (float& value : data.back()) value = uniform(generator);
  }
  return data;
}

Result<std::vector<std::vector<float>>> RunOnRandom(const PrimFunc& function,
                                                    const std::vector<std::vector<int64_t>>& dims, int num_outputs,
                                                    uint64_t seed, bool check_races) {
  std::vector<std::vector<float>> data = RandomBuffers(dims, num_outputs, seed);
  std::vector<interp::HostBuffer> buffers;
  const size_t first_output = dims.size() - num_outputs;
  for (size_t i = 0; i < dims.size(); ++i) {
    buffers.push_back({kFloat, dims[i], std::as_writable_bytes(std::span<float>(data[i])), i < first_output});
  }
  interp::InterpretOptions options;
  options.check_races = check_races;
  INGOT_RETURN_IF_ERROR(interp::Interpret(function, buffers, {}, options));
  data.erase(data.begin(), data.begin() + first_output);
  return data;
}

std::string Compare(const std::vector<std::vector<float>>& expected, const std::vector<std::vector<float>>& got) {
  for (size_t o = 0; o < expected.size(); ++o) {
    for (size_t i = 0; i < expected[o].size(); ++i) {
      const float tolerance = 1e-5f * std::max(1.0f, std::fabs(expected[o][i]));
      if (std::fabs(expected[o][i] - got[o][i]) <= tolerance) continue;
      return "output " + std::to_string(o) + " at " + std::to_string(i) + ": expected " +
             std::to_string(expected[o][i]) + ", got " + std::to_string(got[o][i]);
    }
  }
  return "";
}

}  // namespace ingot::schedule::testing
