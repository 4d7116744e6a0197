#include "compiler/ir/structural.h"

#include <doctest/doctest.h>

#include "compiler/ir/visitor.h"

namespace ingot::ir {
namespace {

Type Vector(const PrimExpr& n) { return Make<TensorTypeNode>(std::vector<PrimExpr>{n}, DataType::Float(32)); }

std::shared_ptr<const ConstantData> Bytes(int first) {
  std::vector<std::byte> bytes(4);
  bytes[0] = static_cast<std::byte>(first);
  return ConstantData::FromBytes(DataType::Int(8), {4}, std::move(bytes));
}

// def f(x: Tensor((n,))): count bindings, each a call on the one before and a constant.
Function Chain(int count, const std::string& prefix, int constant = 1, bool dataflow = true) {
  const PrimVar n = MakePrimVar(prefix + "n");
  const Var x = Make<VarNode>(prefix + "x", Vector(n));
  BindingBlock block;
  block.is_dataflow = dataflow;
  Var last = x;
  const Expr data = Make<ConstantNode>(Bytes(constant));
  const Type type = Make<ObjectTypeNode>();
  const Expr callee = Make<ExternFuncNode>("combine");
  for (int i = 0; i < count; ++i) {
    const bool leaves = i + 1 == count;
    const Var next = Make<VarNode>(prefix + std::to_string(i), type, dataflow && !leaves);
    block.bindings.push_back(
        {next, Make<CallNode>(callee, std::vector<Expr>{last, data}, Attrs{}, std::vector<Type>{}, type), nullptr, {}});
    last = next;
  }
  return Make<FunctionNode>(std::vector<Var>{x}, Make<SeqExprNode>(std::vector<BindingBlock>{block}, Expr(last)), type);
}

TEST_CASE("names of bound variables do not count, free variables do") {
  const PrimVar n = MakePrimVar("n");
  const PrimVar m = MakePrimVar("m");
  CHECK(StructuralEqual(n + m * 2, n + m * 2));
  CHECK_FALSE(StructuralEqual(PrimExpr(n + m), PrimExpr(m + n)));
  CHECK(StructuralEqual(PrimExpr(n + m), PrimExpr(m + n), true));
  CHECK_FALSE(StructuralEqual(PrimExpr(n + m), PrimExpr(n + n), true));  // one to one
  CHECK_FALSE(StructuralEqual(PrimExpr(n + n), PrimExpr(n + m), true));
  const PrimVar x = MakePrimVar("x");
  const PrimVar y = MakePrimVar("y");
  const PrimExpr let_x = Make<LetNode>(x, n, x + n);
  const PrimExpr let_y = Make<LetNode>(y, n, y + n);
  CHECK(StructuralEqual(let_x, let_y));
  CHECK(StructuralHash(let_x) == StructuralHash(let_y));
  CHECK_FALSE(StructuralEqual(let_x, PrimExpr(Make<LetNode>(y, n, n + n))));
  CHECK_FALSE(StructuralEqual(PrimExpr(n), PrimExpr(MakePrimVar("n"))));
  CHECK(StructuralHash(PrimExpr(n), true) == StructuralHash(PrimExpr(m), true));
}

// The type of a function from vectors of one length to vectors of another.
Type VectorFunction(const PrimExpr& from, const PrimExpr& to) {
  return Make<CallableTypeNode>(std::vector<Type>{Vector(from)}, Vector(to), true);
}

TEST_CASE("hashes by identity tell free variables of one name apart") {
  const PrimVar n = MakePrimVar("n"), other = MakePrimVar("n");
  CHECK(IdentityHash(PrimExpr(n) * 2 + 1) == IdentityHash(PrimExpr(n) * 2 + 1));
  CHECK(IdentityHash(PrimExpr(n) * 2 + 1) != IdentityHash(PrimExpr(other) * 2 + 1));
  CHECK(StructuralHash(PrimExpr(n) * 2 + 1) == StructuralHash(PrimExpr(other) * 2 + 1));
}

TEST_CASE("a function type binds the symbols of its parameters") {
  const PrimVar n = MakePrimVar("n"), m = MakePrimVar("m");
  CHECK(StructuralEqual(VectorFunction(n, n), VectorFunction(m, m)));
  CHECK(StructuralHash(VectorFunction(n, n)) == StructuralHash(VectorFunction(m, m)));
  CHECK_FALSE(StructuralEqual(VectorFunction(n, n), VectorFunction(n, n + 1)));
  CHECK_FALSE(StructuralEqual(VectorFunction(n, n), VectorFunction(n, m)));  // m is from outside
  CHECK_FALSE(StructuralEqual(VectorFunction(Int64(4), n), VectorFunction(Int64(4), m)));
  const std::vector<PrimVar> free = FreePrimVars(VectorFunction(n, n * m));
  REQUIRE(free.size() == 1);
  CHECK(free[0].same_as(m));

  // def f(x: Tensor((length,)), g: Callable((Tensor((from,)),), Tensor((to,)))): return x
  const auto function = [](const PrimVar& length, const PrimVar& from, const PrimVar& to) {
    const Var x = Make<VarNode>("x", Vector(length)), g = Make<VarNode>("g", VectorFunction(from, to));
    return Expr(Make<FunctionNode>(std::vector<Var>{x, g}, Make<SeqExprNode>(std::vector<BindingBlock>{}, Expr(x)),
                                   Vector(length)));
  };
  const PrimVar k = MakePrimVar("k");
  CHECK(StructuralEqual(function(n, m, m), function(n, k, k)));
  CHECK(StructuralEqual(function(n, n, n), function(m, m, m)));
  CHECK_FALSE(StructuralEqual(function(n, m, m), function(n, n, n)));  // there the function's symbol is meant
  CHECK_FALSE(StructuralEqual(function(n, m, m), function(n, m, n)));
}

TEST_CASE("values count") {
  CHECK_FALSE(StructuralEqual(Int64(1), Int32(1)));
  CHECK_FALSE(StructuralEqual(FloatImm(DataType::Float(32), 0.0), FloatImm(DataType::Float(32), -0.0)));
  CHECK(AttrValue(1) == AttrValue(1));
  CHECK_FALSE(AttrValue(1) == AttrValue(1.0));
  CHECK_FALSE(AttrValue(1) == AttrValue(true));
  CHECK(AttrValue(Int64(3)) == AttrValue(Int64(3)));
  CHECK(AttrValue::Ints({1, 2}) == AttrValue::Ints({1, 2}));
}

TEST_CASE("loops, blocks and buffers correspond by definition") {
  const auto build = [](const char* name, int64_t extent) {
    const PrimVar n = MakePrimVar("n");
    const Buffer a = MakeBuffer("A", DataType::Float(32), {n});
    const PrimVar i = MakePrimVar(name);
    const PrimVar v = MakePrimVar(std::string("v_") + name);
    const Stmt store = Make<BufferStoreNode>(a, FloatImm(DataType::Float(32), 1), std::vector<PrimExpr>{v});
    const Block block = Make<BlockNode>(
        "fill", std::vector<IterVar>{Make<IterVarNode>(Range{Int64(0), Int64(extent)}, v, IterType::kSpatial)},
        std::vector<BufferRegion>{}, std::vector<BufferRegion>{{a, {{v, Int64(1)}}}}, store);
    const Stmt realize = Make<BlockRealizeNode>(std::vector<PrimExpr>{i}, BoolImm(true), block);
    const Stmt loop = Make<ForNode>(i, Int64(0), Int64(extent), ForKind::kSerial, realize);
    return Make<PrimFuncNode>(std::vector<PrimFuncParam>{{a->data, a}}, loop);
  };
  CHECK(StructuralEqual(Expr(build("i", 8)), Expr(build("j", 8))));
  CHECK(StructuralHash(Expr(build("i", 8))) == StructuralHash(Expr(build("j", 8))));
  CHECK_FALSE(StructuralEqual(Expr(build("i", 8)), Expr(build("i", 9))));
}

TEST_CASE("modules differ where ExplainDifference says") {
  IRModule a;
  IRModule b;
  a.Add("main", Chain(5, "a"));
  b.Add("main", Chain(5, "b"));
  CHECK(StructuralEqual(a, b));
  CHECK(ExplainDifference(a, b).empty());
  IRModule c;
  c.Add("main", Chain(5, "c", 2));
  CHECK_FALSE(StructuralEqual(a, c));
  CHECK(ExplainDifference(a, c) == "main: binding a0");
  IRModule d = a;
  d.Add("main", Chain(1, "d"));
  CHECK(ExplainDifference(a, d) == "main1: only in the second module");
  CHECK(a.functions().size() == 1);  // the copy alone has changed
  CHECK(d.FreshName("main") == "main2");
  d.Remove(d.FindGlobalVar("main1"));
  CHECK(StructuralEqual(a, d));
}

TEST_CASE("constants compare by content") {
  CHECK(StructuralEqual(Expr(Make<ConstantNode>(Bytes(1))), Expr(Make<ConstantNode>(Bytes(1), "w"))));
  CHECK_FALSE(StructuralEqual(Expr(Make<ConstantNode>(Bytes(1))), Expr(Make<ConstantNode>(Bytes(2)))));
  CHECK(Bytes(3)->ContentHash() == Bytes(3)->ContentHash());
}

TEST_CASE("100,000 bindings are compared, hashed, visited, rebuilt and released without recursion") {
  const Function a = Chain(100'000, "a");
  const Function b = Chain(100'000, "b");
  CHECK(StructuralEqual(Expr(a), Expr(b)));
  CHECK(StructuralHash(Expr(a)) == StructuralHash(Expr(b)));
  struct Count : ExprVisitor {
    using ExprVisitor::Visit;
    int calls = 0;
    void Visit(const CallNode& node) override {
      ++calls;
      ExprVisitor::Visit(node);
    }
  } count;
  count.VisitExpr(a);
  CHECK(count.calls == 100'000);
  struct Identity : ExprMutator {
  } identity;
  CHECK(identity.MutateFunction(a).same_as(a));
  struct Swap : ExprMutator {
    using ExprMutator::Mutate;
    Expr Mutate(const Ref<ConstantNode>&) override { return replacement; }
    Expr replacement = Make<ConstantNode>(Bytes(7));
  } swap;
  CHECK(StructuralEqual(Expr(swap.MutateFunction(a)), Expr(Chain(100'000, "c", 7))));
}

}  // namespace
}  // namespace ingot::ir
