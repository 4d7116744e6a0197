#include "compiler/arith/block_util.h"

#include <doctest/doctest.h>

#include "compiler/script/printer.h"

namespace ingot::arith {

using namespace ir;  // NOLINT
namespace {

const DataType kF32 = DataType::Float(32);

struct Fixture {
  PrimVar n = MakePrimVar("n");
  PrimVar v = MakePrimVar("v");
  PrimVar i = MakePrimVar("i");
  PrimVar j = MakePrimVar("j");
  Buffer a = MakeBuffer("A", kF32, {n, Int64(64)});
  Buffer b = MakeBuffer("B", kF32, {n, Int64(64)});

  Stmt Copy(PrimExpr row, PrimExpr column) const {
    const std::vector<PrimExpr> indices{std::move(row), std::move(column)};
    return Make<BufferStoreNode>(b, Make<BufferLoadNode>(a, indices), indices);
  }
  static Stmt Loop(const PrimVar& var, PrimExpr extent, Stmt body) {
    return Make<ForNode>(var, Int64(0), std::move(extent), ForKind::kSerial, std::move(body));
  }
  // "A[min:extent, ...]" of each region.
  static std::string Text(const std::vector<BufferRegion>& regions) {
    std::string text;
    for (const BufferRegion& region : regions) {
      text += text.empty() ? "" : " ";
      text += region.buffer->name + "[";
      for (size_t d = 0; d < region.region.size(); ++d) {
        text += (d == 0 ? "" : ", ") + script::PrintExpr(region.region[d].min) + ":" +
                script::PrintExpr(region.region[d].extent);
      }
      text += "]";
    }
    return text;
  }
};

TEST_CASE_FIXTURE(Fixture, "loops inside widen an access to their range") {
  const ReadWriteRegions r = GetBlockReadWriteRegions(Loop(i, n, Loop(j, Int64(4), Copy(i, v * 4 + j))));
  CHECK(Text(r.reads) == "A[0:n, v * 4:4]");
  CHECK(Text(r.writes) == "B[0:n, v * 4:4]");
}

TEST_CASE_FIXTURE(Fixture, "a tail of a split loop") {
  const PrimExpr tail = Min(n - v * 14, Int64(14));
  const ReadWriteRegions r = GetBlockReadWriteRegions(Loop(i, tail, Copy(v * 14 + i, Int64(0))));
  CHECK(Text(r.reads) == "A[v * 14:T.min(n - v * 14, 14), 0:1]");
}

TEST_CASE_FIXTURE(Fixture, "several accesses are joined; what cannot be compared is the whole dimension") {
  const ReadWriteRegions r = GetBlockReadWriteRegions(MakeSeq({Copy(v, v), Copy(v, v + 3), Copy(i, v + 1)}));
  CHECK(Text(r.reads) == "A[0:n, v:4]");
  const ReadWriteRegions indirect = GetBlockReadWriteRegions(
      Loop(i, Int64(8), Copy(v, Cast(DataType::Int(64), Make<BufferLoadNode>(a, std::vector<PrimExpr>{v, i})))));
  CHECK(Text(indirect.reads) == "A[v:1, 0:64]");
}

TEST_CASE_FIXTURE(Fixture, "vectors, lets, inner blocks and local buffers") {
  const PrimExpr lanes = Make<RampNode>(j * 8, Int64(1), 8);
  CHECK(Text(GetBlockReadWriteRegions(Loop(j, Int64(2), Copy(v, lanes))).writes) == "B[v:1, 0:16]");
  const PrimVar x = MakePrimVar("x");
  CHECK(Text(GetBlockReadWriteRegions(Stmt(Make<LetStmtNode>(x, v + 2, Copy(x, x * 2)))).reads) ==
        "A[v + 2:1, v * 2 + 4:1]");
  const Buffer local = MakeBuffer("local", kF32, {Int64(1)});
  const Stmt store = Make<BufferStoreNode>(local, Make<BufferLoadNode>(a, std::vector<PrimExpr>{v, Int64(0)}),
                                           std::vector<PrimExpr>{Int64(0)});
  CHECK(Text(GetBlockReadWriteRegions(Stmt(Make<AllocateNode>(local, store))).writes).empty());
  const PrimVar inner = MakePrimVar("inner");
  const Block block = Make<BlockNode>(
      "inner", std::vector<IterVar>{Make<IterVarNode>(Range{Int64(0), Int64(64)}, inner, IterType::kSpatial)},
      std::vector<BufferRegion>{{a, {{Int64(0), n}, {inner, Int64(1)}}}},
      std::vector<BufferRegion>{{b, {{v, Int64(1)}, {inner, Int64(1)}}}}, Copy(v, inner));
  const Stmt realize = Make<BlockRealizeNode>(std::vector<PrimExpr>{v * 16 + i}, BoolImm(true), block);
  const ReadWriteRegions r = GetBlockReadWriteRegions(Loop(i, Int64(16), realize));
  CHECK(Text(r.reads) == "A[0:n, v * 16:16]");
  CHECK(Text(r.writes) == "B[v:1, v * 16:16]");
}

}  // namespace
}  // namespace ingot::arith
