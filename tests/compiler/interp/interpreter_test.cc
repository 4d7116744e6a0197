#include "compiler/interp/interpreter.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "compiler/ir/float_format.h"
#include "compiler/ir/visitor.h"
#include "compiler/te/tensor.h"

namespace ingot::interp {
namespace {

using ir::Buffer;
using ir::BufferLoadNode;
using ir::BufferStoreNode;
using ir::FloatImm;
using ir::ForKind;
using ir::Int64;
using ir::Make;
using ir::MakeBuffer;
using ir::MakePrimVar;
using ir::PrimExpr;
using ir::PrimFunc;
using ir::PrimVar;
using ir::Stmt;

const DataType kF32 = DataType::Float(32);

// The block around a function's blocks.
Stmt Root(Stmt body) {
  return Make<ir::BlockRealizeNode>(std::vector<PrimExpr>{}, ir::BoolImm(true),
                                    Make<ir::BlockNode>(ir::BlockNode("root", {}, {}, {}, std::move(body))));
}

// A host tensor of any dtype, as values.
struct Host {
  DataType dtype;
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;

  Host(DataType t, std::vector<int64_t> d) : dtype(t), dims(std::move(d)) {
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    bytes.resize(static_cast<size_t>(*dtype.SizeBytes(count)));
  }
  Host(DataType t, std::vector<int64_t> d, const std::vector<double>& values) : Host(t, std::move(d)) {
    for (size_t i = 0; i < values.size(); ++i) Set(i, values[i]);
  }
  void Set(size_t i, double value) {
    uint64_t bits =
        dtype.is_floating() ? ir::EncodeFloat(dtype, value) : static_cast<uint64_t>(static_cast<int64_t>(value));
    std::memcpy(&bytes[i * dtype.bits / 8], &bits, dtype.bits / 8);
  }
  double Get(size_t i) const {
    uint64_t bits = 0;
    std::memcpy(&bits, &bytes[i * dtype.bits / 8], dtype.bits / 8);
    return dtype.is_floating() ? ir::DecodeFloat(dtype, bits)
                               : static_cast<double>(ir::WrapInt(dtype, static_cast<int64_t>(bits)));
  }
  HostBuffer In() { return {dtype, dims, bytes, true}; }
  HostBuffer Out() { return {dtype, dims, bytes, false}; }
};

PrimFunc Func(std::vector<Buffer> buffers, Stmt body, std::vector<PrimVar> scalars = {}) {
  std::vector<ir::PrimFuncParam> params;
  for (const Buffer& buffer : buffers) params.push_back({buffer->data, buffer});
  for (const PrimVar& scalar : scalars) params.push_back({scalar, nullptr});
  return Make<ir::PrimFuncNode>(std::move(params), std::move(body));
}
PrimExpr Load(const Buffer& buffer, std::vector<PrimExpr> indices) {
  return Make<BufferLoadNode>(buffer, std::move(indices));
}
Stmt Store(const Buffer& buffer, PrimExpr value, std::vector<PrimExpr> indices) {
  return Make<BufferStoreNode>(buffer, std::move(value), std::move(indices));
}
Stmt Loop(const PrimVar& var, PrimExpr extent, Stmt body, ForKind kind = ForKind::kSerial) {
  return Make<ir::ForNode>(var, Int64(0), std::move(extent), kind, std::move(body));
}

TEST_CASE("a convolution stage by stage, over a symbolic batch") {
  const PrimExpr n = MakePrimVar("n");
  const te::Tensor data = te::Placeholder({n, Int64(2), Int64(5), Int64(5)}, kF32, "data");
  const te::Tensor weight = te::Placeholder({Int64(3), Int64(2), Int64(3), Int64(3)}, kF32, "weight");
  const te::Tensor padded = te::Compute(
      {n, Int64(2), Int64(7), Int64(7)},
      [&](const te::Indices& i) {
        const PrimExpr inside = And(And(Int64(1) <= i[2], i[2] < Int64(6)), And(Int64(1) <= i[3], i[3] < Int64(6)));
        return ir::IfThenElse(inside, data(i[0], i[1], i[2] - 1, i[3] - 1), FloatImm(kF32, 0));
      },
      "pad");
  const ir::IterVar c = te::ReduceAxis(Int64(2), "c");
  const ir::IterVar y = te::ReduceAxis(Int64(3), "y");
  const ir::IterVar x = te::ReduceAxis(Int64(3), "x");
  const te::Tensor conv = te::Compute({n, Int64(3), Int64(5), Int64(5)}, [&](const te::Indices& i) {
    return te::Sum(padded(i[0], c->var, i[2] + y->var, i[3] + x->var) * weight(i[1], c->var, y->var, x->var),
                   {c, y, x});
  });
  const PrimFunc function = te::CreatePrimFunc({data, weight, conv});

  std::mt19937 rng(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Host a(kF32, {2, 2, 5, 5});
  Host w(kF32, {3, 2, 3, 3});
  Host out(kF32, {2, 3, 5, 5});
  for (size_t i = 0; i < 100; ++i) a.Set(i, uniform(rng));
  for (size_t i = 0; i < 54; ++i) w.Set(i, uniform(rng));
  const Status status = Interpret(function, std::vector<HostBuffer>{a.In(), w.In(), out.Out()});
  INFO(status.ToString());
  REQUIRE(status.ok());
  for (int b = 0; b < 2; ++b) {
    for (int f = 0; f < 3; ++f) {
      for (int r = 0; r < 5; ++r) {
        for (int s = 0; s < 5; ++s) {
          float sum = 0;  // the same order and rounding as the function
          for (int ch = 0; ch < 2; ++ch) {
            for (int dy = 0; dy < 3; ++dy) {
              for (int dx = 0; dx < 3; ++dx) {
                const int yy = r + dy - 1;
                const int xx = s + dx - 1;
                const bool inside = yy >= 0 && yy < 5 && xx >= 0 && xx < 5;
                const double v = inside ? a.Get(static_cast<size_t>(((b * 2 + ch) * 5 + yy) * 5 + xx)) : 0;
                const double k = w.Get(static_cast<size_t>(((f * 2 + ch) * 3 + dy) * 3 + dx));
                sum = sum + static_cast<float>(v * k);
              }
            }
          }
          CHECK(out.Get(static_cast<size_t>(((b * 3 + f) * 5 + r) * 5 + s)) == sum);
        }
      }
    }
  }
  CHECK(Interpret(function, std::vector<HostBuffer>{a.In(), w.In()}).message() ==
        "the function takes 3 buffers and 0 scalars, got 2 and 0");
  Host wrong(kF32, {1, 3, 5, 5});
  CHECK(Interpret(function, std::vector<HostBuffer>{a.In(), w.In(), wrong.Out()}).message() ==
        "buffer compute: expected 2 elements in dimension 0, got float32[1, 3, 5, 5]");
  Host half(DataType::Float(16), {2, 2, 5, 5});
  CHECK(Interpret(function, std::vector<HostBuffer>{half.In(), w.In(), out.Out()}).message() ==
        "buffer data: expected float32 of rank 4, got float16[2, 2, 5, 5]");
}

struct Loops {
  Buffer a = MakeBuffer("A", kF32, {Int64(8)});
  Buffer b = MakeBuffer("B", kF32, {Int64(8)});
  PrimVar i = MakePrimVar("i");
  PrimVar j = MakePrimVar("j");
  Host x{kF32, {8}, {1, 2, 3, 4, 5, 6, 7, 8}};
  Host y{kF32, {8}};
  std::string Run(const Stmt& body, InterpretOptions options = {}) {
    return Interpret(Func({a, b}, body), std::vector<HostBuffer>{x.In(), y.Out()}, {}, options).message();
  }
};

TEST_CASE_FIXTURE(Loops, "accesses out of bounds and reads of nothing name block, buffer and indices") {
  CHECK(Run(Loop(i, Int64(8), Store(b, Load(a, {i + 1}), {i}))) ==
        "a read of A[8] is out of bounds: dimension 0 has 8 elements");
  CHECK(Run(Loop(i, Int64(8), Store(b, Load(a, {i}), {i - 1}))) ==
        "a write of B[-1] is out of bounds: dimension 0 has 8 elements");
  CHECK(Run(Store(b, Load(b, {Int64(2)}), {Int64(0)})) == "a read of B[2], which nobody has written");
  const PrimVar v = MakePrimVar("v");
  ir::BlockNode block("copy", {Make<ir::IterVarNode>(ir::Range{Int64(0), Int64(8)}, v, ir::IterType::kSpatial)}, {}, {},
                      Store(b, Load(a, {v * 2}), {v}));
  const ir::Block copy = Make<ir::BlockNode>(block);
  const auto realize = [&](PrimExpr value, PrimExpr predicate) {
    return Root(Loop(i, Int64(8), Make<ir::BlockRealizeNode>(std::vector<PrimExpr>{value}, predicate, copy)));
  };
  CHECK(Run(realize(i, ir::BoolImm(true))) ==
        "block copy: a read of A[8] is out of bounds: dimension 0 has 8 elements");
  CHECK(Run(realize(i, i < Int64(4))).empty());
  CHECK(Run(realize(i + 8, ir::BoolImm(true))) ==
        "block copy: iteration variable v is bound to 8, outside its domain of 8 from 0");
}

TEST_CASE_FIXTURE(Loops, "parallel iterations that touch one element race, ordered ones do not") {
  const ForKind parallel = ForKind::kParallel;
  CHECK(Run(Loop(i, Int64(8), Store(b, Load(a, {i}), {i}), parallel)).empty());
  CHECK(Run(Loop(i, Int64(8), Store(b, Load(a, {i}), {ir::FloorDiv(i, Int64(2))}), parallel)) ==
        "a write of B[0] races with a write by another parallel iteration");
  const Stmt shift = ir::MakeSeq(
      {Store(b, Load(a, {i}), {i}), Make<ir::IfStmtNode>(i > Int64(0), Store(a, Load(b, {i - 1}), {i}), Stmt())});
  CHECK(Run(Loop(i, Int64(8), shift)).empty());
  CHECK(Run(Loop(i, Int64(8), shift, parallel)) == "a read of B[0] races with a write by another parallel iteration");
  CHECK(Run(Loop(i, Int64(8), shift, ForKind::kVectorized)) ==
        "a read of B[0] races with a write by another parallel iteration");
  const Stmt read_then_write = ir::MakeSeq({Store(b, Load(a, {Int64(7)}), {i}), Store(a, FloatImm(kF32, 1), {i})});
  CHECK(Run(Loop(i, Int64(8), read_then_write, parallel)) ==
        "a write of A[7] races with a read by another parallel iteration");
  // One loop after the other is ordered, and so is a serial loop around a parallel one.
  const PrimVar k = MakePrimVar("k");
  CHECK(Run(ir::MakeSeq({Loop(i, Int64(8), Store(b, Load(a, {i}), {i}), parallel),
                         Loop(k, Int64(8), Store(b, Load(a, {k}), {Int64(7) - k}), parallel)}))
            .empty());
  CHECK(Run(Loop(k, Int64(3), Loop(i, Int64(8), Store(b, Load(a, {i}), {i}), parallel))).empty());
  // A reduction over a parallel axis.
  const Stmt sum = Loop(j, Int64(4), Store(b, Load(b, {i}) + Load(a, {j}), {i}), parallel);
  CHECK(Run(Loop(i, Int64(8), ir::MakeSeq({Store(b, FloatImm(kF32, 0), {i}), sum}))) ==
        "a read of B[0] races with a write by another parallel iteration");
  // Storage made inside an iteration is its own.
  const Buffer local = MakeBuffer("local", kF32, {Int64(1)}, "local");
  const Stmt body = Make<ir::AllocateNode>(
      local, ir::MakeSeq({Store(local, Load(a, {i}), {Int64(0)}), Store(b, Load(local, {Int64(0)}), {i})}));
  CHECK(Run(Loop(i, Int64(8), body, parallel)).empty());
  InterpretOptions unchecked;
  unchecked.check_races = false;
  CHECK(Run(Loop(i, Int64(8), shift, parallel), unchecked).empty());
}

TEST_CASE_FIXTURE(Loops, "vectors: ramps, broadcasts, shuffles, reductions") {
  const PrimExpr lanes = Make<ir::RampNode>(Int64(0), Int64(1), 8);
  const PrimExpr reversed = Make<ir::RampNode>(Int64(7), Int64(-1), 8);
  CHECK(Run(Store(b, Load(a, {reversed}) * 2, {lanes})).empty());
  CHECK(y.Get(0) == 16);
  CHECK(y.Get(7) == 2);
  const PrimExpr all = Load(a, {lanes});
  const PrimExpr sum = Make<ir::PrimCallNode>(kF32, ir::Intrinsic::kVectorReduceAdd, std::vector<PrimExpr>{all});
  const PrimExpr max = Make<ir::PrimCallNode>(kF32, ir::Intrinsic::kVectorReduceMax, std::vector<PrimExpr>{all});
  const PrimExpr some = Make<ir::ShuffleNode>(std::vector<PrimExpr>{all, all}, std::vector<int64_t>{9, 0});
  const PrimExpr pair = Make<ir::RampNode>(Int64(2), Int64(1), 2);
  CHECK(Run(ir::MakeSeq({Store(b, sum, {Int64(0)}), Store(b, max, {Int64(1)}), Store(b, some, {pair})})).empty());
  CHECK(y.Get(0) == 36);
  CHECK(y.Get(1) == 8);
  CHECK(y.Get(2) == 2);
  CHECK(y.Get(3) == 1);
  // A vector is computed as a whole before it is stored: shifting by one in place.
  const PrimExpr seven = Make<ir::RampNode>(Int64(0), Int64(1), 7);
  const PrimExpr next = Make<ir::RampNode>(Int64(1), Int64(1), 7);
  CHECK(Run(Store(a, Load(a, {seven}), {next})).empty());
  CHECK(x.Get(7) == 7);
  CHECK(x.Get(1) == 1);
}

TEST_CASE_FIXTURE(Loops, "limits, assertions, divisions and external calls") {
  InterpretOptions options;
  options.max_steps = 100;
  const Stmt nothing = Store(b, FloatImm(kF32, 0), {Int64(0)});
  CHECK(Run(Make<ir::WhileNode>(ir::BoolImm(true), nothing), options) == "more than 100 steps");
  CHECK(Run(Make<ir::AssertStmtNode>(ir::BoolImm(false), "n is even", nothing)) ==
        "an assertion does not hold: n is even");
  CHECK(Run(Loop(i, Int64(1), Store(b, FloatImm(kF32, 0), {ir::FloorDiv(Int64(3), i)}))) ==
        "an integer division of 3 by zero");
  const Stmt call = Make<ir::EvaluateNode>(Make<ir::PrimCallNode>(
      DataType::Int(32), ir::Intrinsic::kCallPacked, std::vector<PrimExpr>{ir::StringImm("hook"), Int64(5)}));
  CHECK(Run(call) == "a call of the external function hook, and none is given");
  int64_t seen = 0;
  options.external = [&](std::string_view name, std::span<const int64_t> ints) {
    seen = name == "hook" && ints.size() == 1 ? ints[0] : -1;
    return Status();
  };
  CHECK(Run(call, options).empty());
  CHECK(seen == 5);
}

// out[0] = op(x, y) in the dtype.
double Apply(DataType dtype, ir::BinaryOp op, double x, double y) {
  const Buffer in = MakeBuffer("in", dtype, {Int64(2)});
  const Buffer out = MakeBuffer("out", dtype, {Int64(1)});
  Host a(dtype, {2}, {x, y});
  Host b(dtype, {1});
  const Stmt body = Store(out, ir::MakeBinary(op, Load(in, {Int64(0)}), Load(in, {Int64(1)})), {Int64(0)});
  const Status status = Interpret(Func({in, out}, body), std::vector<HostBuffer>{a.In(), b.Out()});
  INFO(status.ToString());
  REQUIRE(status.ok());
  return b.Get(0);
}

TEST_CASE("every operation rounds to its dtype") {
  using ir::BinaryOp;
  CHECK(Apply(kF32, BinaryOp::kAdd, 16777216, 1) == 16777216);
  CHECK(Apply(DataType::Float(64), BinaryOp::kAdd, 16777216, 1) == 16777217);
  CHECK(Apply(DataType::Float(16), BinaryOp::kAdd, 2048, 1) == 2048);
  CHECK(Apply(DataType::Bfloat16(), BinaryOp::kMul, 1.0078125, 1.0078125) == 1.015625);
  CHECK(std::isinf(Apply(DataType::Float(16), BinaryOp::kMul, 300, 300)));
  CHECK(Apply(DataType::Int(8), BinaryOp::kAdd, 100, 100) == -56);
  CHECK(Apply(DataType::UInt(8), BinaryOp::kSub, 1, 2) == 255);
  CHECK(Apply(DataType::Int(32), BinaryOp::kFloorDiv, -7, 2) == -4);
  CHECK(Apply(DataType::Int(32), BinaryOp::kDiv, -7, 2) == -3);
  CHECK(Apply(DataType::UInt(64), BinaryOp::kMax, -1, 2) == -1);  // the largest uint64
  CHECK(Apply(DataType::Int(16), BinaryOp::kFloorMod, -7, 4) == 1);
  CHECK(Apply({TypeCode::kFloat8E4M3FN, 8}, BinaryOp::kAdd, 16, 1) == 16);
}

TEST_CASE("casts saturate and round; packed int4 keeps its neighbours") {
  const Buffer in = MakeBuffer("in", kF32, {Int64(4)});
  const Buffer out = MakeBuffer("out", DataType::Int(4), {Int64(4)});
  const PrimVar i = MakePrimVar("i");
  Host a(kF32, {4}, {-3.7, 5.2, 100, std::nan("")});
  Host b(DataType::Int(4), {4});
  const Stmt body = Loop(i, Int64(4), Store(out, ir::Cast(DataType::Int(4), Load(in, {i})), {i}));
  REQUIRE(Interpret(Func({in, out}, body), std::vector<HostBuffer>{a.In(), b.Out()}).ok());
  CHECK(b.bytes[0] == std::byte{0x5d});  // -3, 5
  CHECK(b.bytes[1] == std::byte{0x07});  // 7, 0
}

TEST_CASE("functions of floats, scalars and lets") {
  const PrimVar scale = MakePrimVar("scale", kF32);
  const Buffer out = MakeBuffer("out", kF32, {Int64(4)});
  const PrimVar t = MakePrimVar("t", kF32);
  const auto call = [](ir::Intrinsic op, PrimExpr x) { return ir::CallIntrinsic(op, {std::move(x)}); };
  const Stmt body = Make<ir::LetStmtNode>(
      t, scale + FloatImm(kF32, 0.25),
      ir::MakeSeq({Store(out, call(ir::Intrinsic::kExp, t), {Int64(0)}),
                   Store(out, call(ir::Intrinsic::kTanh, t), {Int64(1)}),
                   Store(out, ir::Select(t > FloatImm(kF32, 0), t, FloatImm(kF32, 0) - t), {Int64(2)}),
                   Store(out, call(ir::Intrinsic::kNearbyInt, t * 2), {Int64(3)})}));
  Host b(kF32, {4});
  const float value = 1.0F;
  uint32_t bits = 0;
  std::memcpy(&bits, &value, 4);
  const Status status = Interpret(Func({out}, body, {scale}), std::vector<HostBuffer>{b.Out()},
                                  std::vector<int64_t>{static_cast<int64_t>(bits)});
  INFO(status.ToString());
  REQUIRE(status.ok());
  CHECK(b.Get(0) == static_cast<float>(std::exp(1.25)));
  CHECK(b.Get(1) == static_cast<float>(std::tanh(1.25)));
  CHECK(b.Get(2) == 1.25);
  CHECK(b.Get(3) == 2);
}

TEST_CASE("a block's match of a region is a view, and its init runs before the first step") {
  const Buffer a = MakeBuffer("A", kF32, {Int64(3), Int64(4)});
  const Buffer b = MakeBuffer("B", kF32, {Int64(3)});
  ir::BufferNode row_node("row", kF32, {Int64(4)});
  row_node.elem_offset = MakePrimVar("offset");
  row_node.strides = {MakePrimVar("stride")};
  const Buffer row = Make<ir::BufferNode>(row_node);
  const PrimVar i = MakePrimVar("i");
  const PrimVar k = MakePrimVar("k");
  const PrimVar vi = MakePrimVar("vi");
  const PrimVar vk = MakePrimVar("vk");
  ir::BlockNode block("sum",
                      {Make<ir::IterVarNode>(ir::Range{Int64(0), Int64(3)}, vi, ir::IterType::kSpatial),
                       Make<ir::IterVarNode>(ir::Range{Int64(0), Int64(4)}, vk, ir::IterType::kReduce)},
                      {}, {}, Store(b, Load(b, {vi}) + Load(row, {vk}), {vi}), Store(b, FloatImm(kF32, 0), {vi}));
  block.match_buffers.push_back({row, {a, {{vi, Int64(1)}, {Int64(0), Int64(4)}}}});
  const Stmt realize =
      Make<ir::BlockRealizeNode>(std::vector<PrimExpr>{i, k}, ir::BoolImm(true), Make<ir::BlockNode>(block));
  Host x(kF32, {3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  Host y(kF32, {3});
  const Status status = Interpret(Func({a, b}, Root(Loop(i, Int64(3), Loop(k, Int64(4), realize)))),
                                  std::vector<HostBuffer>{x.In(), y.Out()});
  INFO(status.ToString());
  REQUIRE(status.ok());
  CHECK(y.Get(0) == 10);
  CHECK(y.Get(2) == 42);
}

}  // namespace
}  // namespace ingot::interp
