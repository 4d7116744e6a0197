#include "compiler/script/printer.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>

#include "compiler/script/name_supply.h"

namespace ingot::script {
namespace {

using namespace ir;  // NOLINT: tests are about IR nodes

PrimFunc AddOne() {
  const PrimVar n = MakePrimVar("n");
  const Buffer a = MakeBuffer("A", DataType::Float(32), {n, Int64(8)});
  const Buffer b = MakeBuffer("B", DataType::Float(32), {n, n * 2});
  const PrimVar i = MakePrimVar("i"), j = MakePrimVar("j"), vi = MakePrimVar("v_i"), vj = MakePrimVar("v_j");
  const Stmt store = Make<BufferStoreNode>(
      b, Make<BufferLoadNode>(a, std::vector<PrimExpr>{vi, vj}) + FloatImm(DataType::Float(32), 1.5),
      std::vector<PrimExpr>{vi, vj});
  const std::vector<Range> element{{vi, Int64(1)}, {vj, Int64(1)}};
  const Block block =
      Make<BlockNode>("add",
                      std::vector<IterVar>{Make<IterVarNode>(Range{Int64(0), n}, vi, IterType::kSpatial),
                                           Make<IterVarNode>(Range{Int64(0), Int64(8)}, vj, IterType::kSpatial)},
                      std::vector<BufferRegion>{{a, element}}, std::vector<BufferRegion>{{b, element}}, store);
  Stmt body = Make<BlockRealizeNode>(std::vector<PrimExpr>{i, j}, BoolImm(true), block);
  body = Make<ForNode>(j, Int64(0), Int64(8), ForKind::kSerial, body);
  body = Make<ForNode>(i, Int64(0), n, ForKind::kSerial, body);
  const Block root =
      Make<BlockNode>("root", std::vector<IterVar>{}, std::vector<BufferRegion>{}, std::vector<BufferRegion>{}, body);
  return Make<PrimFuncNode>(
      std::vector<PrimFuncParam>{{MakePrimVar("a", DataType::Handle()), a}, {MakePrimVar("b", DataType::Handle()), b}},
      Make<BlockRealizeNode>(std::vector<PrimExpr>{}, BoolImm(true), root), true, Attrs{{"tirx.noalias", true}});
}

TEST_CASE("a tensor function prints in TVM's dialect") {
  CHECK(PrintFunction("add_one", AddOne()) ==
        "# from typing import TypeVar\n"
        "# from tvm.script import tirx as T\n"
        "\n"
        "n = TypeVar(\"n\")\n"
        "@T.prim_func(private=True, s_tir=True)\n"
        "def add_one(A: T.Buffer((n, T.int64(8)), \"float32\"), "
        "B: T.Buffer((n, \"n * T.int64(2)\"), \"float32\")):\n"
        "    T.func_attr({\"tirx.noalias\": True})\n"
        "    # with T.sblock(\"root\"):\n"
        "    for i, j in T.grid(n, T.int64(8)):\n"
        "        with T.sblock(\"add\"):\n"
        "            v_i, v_j = T.axis.remap(\"SS\", [i, j])\n"
        "            T.reads(A[v_i, v_j])\n"
        "            T.writes(B[v_i, v_j])\n"
        "            B[v_i, v_j] = A[v_i, v_j] + T.float32(1.5)\n");
}

TEST_CASE("scalar expressions print with the least parentheses") {
  const PrimExpr n = MakePrimVar("n"), m = MakePrimVar("m");
  CHECK(PrintExpr((n + m) * 2) == "(n + m) * 2");
  CHECK(PrintExpr(n - (m - 1)) == "n - (m - 1)");
  CHECK(PrintExpr(FloorDiv(n, Int64(4)) * 4 + FloorMod(n, m)) == "n // 4 * 4 + n % m");
  CHECK(PrintExpr(Or(And(n < m, Not(Equal(n, m))), n >= m)) == "n < m and not n == m or n >= m");
  CHECK(PrintExpr(Equal(Cast(DataType::Int(64), n < m), m)) == "T.Cast(\"int64\", n < m) == m");
  CHECK(PrintExpr(FloatImm(DataType::Float(32), 0.1)) == "T.float32(0.1)");
  CHECK(PrintExpr(FloatImm(DataType::Float(64), std::numeric_limits<double>::infinity())) == "T.float64(\"inf\")");
}

TEST_CASE("names are unique, numbered, and free again after their scope") {
  NameSupply names;
  const PrimVar a = MakePrimVar("x"), b = MakePrimVar("x"), c = MakePrimVar("x0"), d = MakePrimVar("x0");
  CHECK(names.Define(a.get(), "x") == "x");
  {
    const NameSupply::Scope scope(names);
    CHECK(names.Define(b.get(), "x") == "x1");
    CHECK(names.Define(c.get(), "x0") == "x0");
    CHECK(names.Define(d.get(), "x0") == "x0_1");
  }
  CHECK(names.Find(b.get()) == nullptr);
  CHECK(names.Define(c.get(), "x") == "x1");
  CHECK(names.Define(d.get(), "R") == "R_");
  CHECK(ToPlainName("0_weight") == "0_weight");
  CHECK(ToPlainName("12") == "_12");
  CHECK(ToPlainName("onnx::Conv") == "onnx__Conv");
}

TEST_CASE("small constants stand in the text, large ones in the store") {
  const float values[3] = {1.5F, std::numeric_limits<float>::quiet_NaN(), -0.0F};
  std::vector<std::byte> bytes(sizeof(values));
  std::memcpy(bytes.data(), values, sizeof(values));
  const Expr constant = Make<ConstantNode>(ConstantData::FromBytes(DataType::Float(32), {1, 3}, bytes), "w");
  CHECK(PrintExpr(constant) == "R.const([[1.5, \"nan\", -0.0]], \"float32\", name=\"w\")");

  ConstantStore store;
  const auto large = ConstantData::FromBytes(DataType::Int(8), {17}, std::vector<std::byte>(17));
  const std::string hash = store.Add(large);
  CHECK(store.Add(ConstantData::FromBytes(DataType::Int(8), {17}, std::vector<std::byte>(17))) == hash);
  CHECK(store.Find(hash) == large);
  CHECK(PrintExpr(Expr(Make<ConstantNode>(large))) == "metadata[\"" + hash + "\"]");
}

}  // namespace
}  // namespace ingot::script
