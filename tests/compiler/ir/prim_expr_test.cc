#include "compiler/ir/prim_expr.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "compiler/ir/float_format.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/visitor.h"
#include "runtime/float4.h"

namespace ingot::ir {
namespace {

TEST_CASE("builders fold constants, and leave what overflows or divides by zero") {
  CHECK(IsConstInt(Int64(3) + Int64(4), 7));
  CHECK(IsConstInt(FloorDiv(Int64(-7), Int64(2)), -4));
  CHECK(IsConstInt(FloorMod(Int64(-7), Int64(2)), 1));
  CHECK(IsConstInt(MakeBinary(BinaryOp::kDiv, Int64(-7), Int64(2)), -3));
  CHECK(IsConstInt(MakeBinary(BinaryOp::kTruncMod, Int64(-7), Int64(2)), -1));
  CHECK(IsConstInt(Int64(3) < Int64(4), 1));
  const PrimExpr big = Int64(std::numeric_limits<int64_t>::max());
  CHECK((big + Int64(1))->kind == PrimKind::kBinary);
  CHECK(FloorDiv(big, Int64(0))->kind == PrimKind::kBinary);
  CHECK((IntImm(DataType::Int(8), 100) + IntImm(DataType::Int(8), 100))->kind == PrimKind::kBinary);
}

TEST_CASE("neutral elements vanish") {
  const PrimExpr n = MakePrimVar("n");
  CHECK((n + 0).same_as(n));
  CHECK((n * 1).same_as(n));
  CHECK(IsConstInt(n * 0, 0));
  CHECK(IsConstInt(n - n, 0));
  CHECK(FloorDiv(n, Int64(1)).same_as(n));
  CHECK(And(BoolImm(true), n < Int64(3))->kind == PrimKind::kBinary);
  const PrimExpr x = MakePrimVar("x", DataType::Float(32));
  CHECK((x + FloatImm(DataType::Float(32), 0))->kind == PrimKind::kBinary);  // -0.0 + 0.0 is 0.0
  const PrimExpr lanes = Make<RampNode>(n, Int64(1), 4);
  CHECK((lanes * 1).same_as(lanes));
  CHECK(As<BroadcastNode>(FloorMod(lanes, Int64(1))) != nullptr);
}

TEST_CASE("operands are matched") {
  const PrimExpr i = MakePrimVar("i", DataType::Int(32));
  CHECK((i + 1)->dtype == DataType::Int(32));
  CHECK((Int64(1) + i)->dtype == DataType::Int(32));
  const PrimExpr x = MakePrimVar("x", DataType::Float(32));
  CHECK((x * 2)->dtype == DataType::Float(32));
  const PrimExpr v = Make<RampNode>(i, Int32(1), 8);
  CHECK((v + i)->dtype == DataType::Int(32, 8));
  CHECK((v < i)->dtype == DataType::Bool(8));
}

TEST_CASE("casts of constants round and wrap") {
  CHECK(IsConstInt(Cast(DataType::Int(8), Int64(300)), 44));
  CHECK(IsConstInt(Cast(DataType::UInt(8), Int64(-1)), 255));
  CHECK(As<FloatImmNode>(Cast(DataType::Float(32), Int64(16777217)))->value == 16777216.0);
  CHECK(IsConstInt(Cast(DataType::Int(32), FloatImm(DataType::Float(32), -2.75)), -2));
  CHECK(Cast(DataType::Int(8), FloatImm(DataType::Float(32), 1e9))->kind == PrimKind::kCast);
}

TEST_CASE("intrinsics have a dtype by their row") {
  const PrimExpr x = MakePrimVar("x", DataType::Float(32, 4));
  CHECK(CallIntrinsic(Intrinsic::kExp, {x})->dtype == x->dtype);
  CHECK(CallIntrinsic(Intrinsic::kIsNan, {x})->dtype == DataType::Bool(4));
  CHECK(FindIntrinsic("if_then_else")->id == Intrinsic::kIfThenElse);
  CHECK(FindIntrinsic("if_then") == nullptr);
  CHECK(GetIntrinsicRow(Intrinsic::kFma).arity == 3);
}

TEST_CASE("float formats: every pattern of 16 bits and fewer survives, values round to nearest even") {
  const DataType types[] = {DataType::Float(16),           DataType::Bfloat16(),
                            {TypeCode::kFloat8E3M4, 8},    {TypeCode::kFloat8E4M3, 8},
                            {TypeCode::kFloat8E4M3FN, 8},  {TypeCode::kFloat8E4M3FNUZ, 8},
                            {TypeCode::kFloat8E5M2, 8},    {TypeCode::kFloat8E5M2FNUZ, 8},
                            {TypeCode::kFloat8E8M0FNU, 8}, {TypeCode::kFloat8E4M3B11FNUZ, 8},
                            kFloat4E2M1FN};
  for (const DataType type : types) {
    CAPTURE(type.ToString());
    for (uint64_t bits = 0; bits < uint64_t{1} << type.bits; ++bits) {
      const double value = DecodeFloat(type, bits);
      if (!std::isnan(value) && EncodeFloat(type, value) != bits) FAIL_CHECK(bits);
    }
  }
  const DataType half = DataType::Float(16);
  CHECK(RoundToFloat(half, 65519.0) == 65504.0);
  CHECK(std::isinf(RoundToFloat(half, 65520.0)));
  CHECK(RoundToFloat(half, 2049.0) == 2048.0);
  CHECK(RoundToFloat(half, 2051.0) == 2052.0);
  CHECK(RoundToFloat(half, std::ldexp(1.0, -25)) == 0.0);  // a tie
  CHECK(RoundToFloat(half, std::ldexp(1.1, -25)) == std::ldexp(1.0, -24));
  CHECK(LargestFinite({TypeCode::kFloat8E4M3FN, 8}) == 448.0);
  CHECK(LargestFinite({TypeCode::kFloat8E5M2, 8}) == 57344.0);
  CHECK(LargestFinite({TypeCode::kFloat8E4M3FNUZ, 8}) == 240.0);
  CHECK(LargestFinite({TypeCode::kFloat8E3M4, 8}) == 15.5);
  CHECK(std::isnan(RoundToFloat({TypeCode::kFloat8E4M3FN, 8}, 500.0)));
  CHECK(RoundToFloat(kFloat4E2M1FN, 500.0) == 6.0);
  CHECK(RoundToFloat(kFloat4E2M1FN, -INFINITY) == -6.0);
  CHECK(RoundToFloat(kFloat4E2M1FN, 0.75) == 1.0);
  CHECK(RoundToFloat(kFloat4E2M1FN, 2.5) == 2.0);
  CHECK(EncodeFloat(kFloat4E2M1FN, NAN) == 8);
}

TEST_CASE("substitution replaces variables, and buffers that are defined inside follow in their shapes") {
  const PrimVar n = MakePrimVar("n");
  CHECK(IsConstInt(Substitute(n * 4 + 1, {{n, Int64(3)}}), 13));
  const PrimExpr same = n * 4;
  CHECK(Substitute(same, {{MakePrimVar("m"), Int64(3)}}).same_as(same));

  const Buffer local = MakeBuffer("local", DataType::Float(32), {n});
  const Stmt store = Make<BufferStoreNode>(local, FloatImm(DataType::Float(32), 1), std::vector<PrimExpr>{Int64(0)});
  const Stmt result = Substitute(Stmt(Make<AllocateNode>(local, store)), {{n, Int64(8)}});
  const auto* allocate = As<AllocateNode>(result);
  REQUIRE(allocate != nullptr);
  CHECK(IsConstInt(allocate->buffer->shape[0], 8));
  CHECK(As<BufferStoreNode>(allocate->body)->buffer.same_as(allocate->buffer));
}

TEST_CASE("substitution replaces the buffer that an attribute is about") {
  const Buffer a = MakeBuffer("A", DataType::Float(32), {Int64(4)});
  const Buffer b = MakeBuffer("B", DataType::Float(32), {Int64(4)});
  const Stmt store = Make<BufferStoreNode>(a, FloatImm(DataType::Float(32), 0), std::vector<PrimExpr>{Int64(0)});
  const Stmt attr = Make<AttrStmtNode>(a, "layout", AttrValue(int64_t{1}), store);
  const Stmt result = Substitute(attr, {}, {{a, b}});
  CHECK(As<AttrStmtNode>(result)->node.get() == b.get());
  CHECK(As<BufferStoreNode>(As<AttrStmtNode>(result)->body)->buffer.same_as(b));
  CHECK(Substitute(attr, {}, {{b, a}}).same_as(attr));
}

TEST_CASE("free variables come by first occurrence, without those bound inside") {
  const PrimVar n = MakePrimVar("n");
  const PrimVar m = MakePrimVar("m");
  const PrimVar x = MakePrimVar("x");
  const PrimExpr let = Make<LetNode>(x, m + 1, x + n + m);
  const std::vector<PrimVar> free = FreePrimVars(let);
  REQUIRE(free.size() == 2);
  CHECK(free[0].same_as(m));
  CHECK(free[1].same_as(n));
}

TEST_CASE("sequences are flat") {
  const Stmt nothing = Make<EvaluateNode>(Int32(0));
  const Buffer b = MakeBuffer("b", DataType::Int(32), {});
  const Stmt store = Make<BufferStoreNode>(b, Int32(1), std::vector<PrimExpr>{});
  CHECK(MakeSeq({nothing, store}).same_as(store));
  const Stmt two = MakeSeq({store, store});
  CHECK(As<SeqNode>(MakeSeq({two, store}))->stmts.size() == 3);
  CHECK(MakeSeq({})->kind == StmtKind::kEvaluate);
}

}  // namespace
}  // namespace ingot::ir
