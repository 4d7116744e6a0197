#include "compiler/op/verifier.h"
#include "compiler/ir/verify_prim_func.h"

#include <doctest/doctest.h>

#include "compiler/ir/visitor.h"
#include "compiler/op/registry.h"

namespace ingot::op {

using namespace ir;  // NOLINT
namespace {

const DataType kF32 = DataType::Float(32);

struct PrimFixture {
  PrimVar n = MakePrimVar("n");
  Buffer a = MakeBuffer("A", kF32, {n, Int64(4)});
  PrimVar i = MakePrimVar("i");
  PrimVar j = MakePrimVar("j");

  PrimFunc Func(Stmt body) const {
    return Make<PrimFuncNode>(std::vector<PrimFuncParam>{{a->data, a}}, std::move(body));
  }
  Stmt Store(PrimExpr value, std::vector<PrimExpr> indices) const {
    return Make<BufferStoreNode>(a, std::move(value), std::move(indices));
  }
  Stmt Nest(Stmt body) const {
    const Stmt inner = Make<ForNode>(j, Int64(0), Int64(4), ForKind::kSerial, std::move(body));
    return Make<ForNode>(i, Int64(0), n, ForKind::kSerial, inner);
  }
  void Refused(const PrimFunc& function, const std::string& message) const {
    const Status status = VerifyPrimFunc(function);
    CHECK_FALSE(status.ok());
    CHECK(status.message() == message);
  }
};

TEST_CASE_FIXTURE(PrimFixture, "a prim function that is in order") {
  CHECK(VerifyPrimFunc(Func(Nest(Store(FloatImm(kF32, 1), {i, j})))).ok());
}

TEST_CASE_FIXTURE(PrimFixture, "prim functions are refused for what is wrong") {
  const PrimExpr one = FloatImm(kF32, 1);
  Refused(Func(Store(one, {i, Int64(0)})), "the store to A: variable i is not in scope");
  Refused(Func(Nest(Store(one, {i}))), "the store to A: buffer A has 2 dimensions, got 1 indices");
  Refused(Func(Nest(Store(Int32(1), {i, j}))),
          "the store to A: expected a value of the buffer's dtype (float32), got int32");
  Refused(Func(Nest(Nest(Store(one, {i, j})))), "loop i: variable i is bound twice");
  const Buffer b = MakeBuffer("B", kF32, {n, Int64(4)});
  Refused(Func(Nest(Store(Make<BufferLoadNode>(b, std::vector<PrimExpr>{i, j}), {i, j}))),
          "the store to A: buffer B is not in scope");
  const PrimVar v = MakePrimVar("v");
  const Block block =
      Make<BlockNode>("fill", std::vector<IterVar>{Make<IterVarNode>(Range{Int64(0), n}, v, IterType::kSpatial)},
                      std::vector<BufferRegion>{}, std::vector<BufferRegion>{}, Store(one, {v, Int64(0)}));
  Refused(Func(Make<BlockRealizeNode>(std::vector<PrimExpr>{}, BoolImm(true), block)),
          "block fill: has 1 iteration variables and 0 bindings");
  CHECK(VerifyPrimFunc(Func(Make<BlockRealizeNode>(std::vector<PrimExpr>{Int64(0)}, BoolImm(true), block))).ok());
  PrimExpr deep = i;
  for (int d = 0; d < 2 * kMaxNesting; ++d) deep = Make<BinaryNode>(BinaryOp::kAdd, deep, i);
  Refused(Func(Nest(Store(one, {deep, j}))), "the store to A: expressions nest deeper than 1000");
  Refused(Func(Nest(Store(one, {Make<BinaryNode>(BinaryOp::kAdd, i, Int32(1)), j}))),
          "the store to A: expected operands of one dtype (int64), got int32");
}

struct GraphFixture {
  IRModule module;
  Type type = Make<ObjectTypeNode>();
  Var x = Make<VarNode>("x", type);
  Expr callee = Make<ExternFuncNode>("f", Make<CallableTypeNode>(std::nullopt, type, true));

  Var NewVar(const char* name, bool dataflow = false) { return Make<VarNode>(name, type, dataflow); }
  Expr Call(std::vector<Expr> args) {
    return Make<CallNode>(callee, std::move(args), Attrs{}, std::vector<Type>{}, type);
  }
  Status Verify(std::vector<BindingBlock> blocks, Expr result) {
    return VerifyFunction(module,
                          Make<FunctionNode>(std::vector<Var>{x}, Make<SeqExprNode>(std::move(blocks), result), type));
  }
};

TEST_CASE_FIXTURE(GraphFixture, "call_tir gives the tensor function its parameters") {
  const Buffer a = MakeBuffer("A", kF32, {Int64(4)}), b = MakeBuffer("B", kF32, {Int64(4)});
  const GlobalVar copy = module.Add(
      "copy", Make<PrimFuncNode>(std::vector<PrimFuncParam>{{a->data, a}, {b->data, b}},
                                 Make<BufferStoreNode>(b, Make<BufferLoadNode>(a, std::vector<PrimExpr>{Int64(0)}),
                                                       std::vector<PrimExpr>{Int64(0)})));
  const Type tensor = Make<TensorTypeNode>(std::vector<PrimExpr>{Int64(4)}, kF32);
  const auto message = [&](std::vector<Expr> inputs, std::vector<Type> outputs, std::vector<PrimExpr> numbers) {
    const Var result = NewVar("r");
    return Verify(
               {{{{result, op::MakeCallTIR(copy, std::move(inputs), std::move(outputs), std::move(numbers))}}, false}},
               result)
        .message();
  };
  x = Make<VarNode>("x", tensor);
  CHECK(message({x}, {tensor}, {}) == "");
  CHECK(message({x, x}, {tensor}, {}) == "binding r: copy has 2 parameters, the call gives 3");
  CHECK(message({x}, {tensor, tensor}, {}) == "binding r: copy has 2 parameters, the call gives 3");
  CHECK(message({x}, {tensor}, {Int64(1)}) == "binding r: copy has 2 parameters, the call gives 3");
}

TEST_CASE_FIXTURE(GraphFixture, "graph functions") {
  const Var a = NewVar("a", true);
  const Var b = NewVar("b");
  const Binding ba{a, Call({x}), nullptr, {}};
  const Binding bb{b, Call({a}), nullptr, {}};
  CHECK(Verify({{{ba, bb}, true}}, b).ok());
  CHECK(Verify({{{bb, ba}, true}}, b).message() == "binding b: variable a is not defined here");
  CHECK(Verify({{{ba, bb}, true}}, a).message() == "the result: variable a is not defined here");
  CHECK(Verify({{{ba, ba, bb}, true}}, b).message() == "variable a is defined twice");
  CHECK(Verify({{{ba, bb}, false}}, b).message() == "binding a: a dataflow variable outside a dataflow block");
  const Binding nested{b, Call({Call({x})}), nullptr, {}};
  CHECK(Verify({{{nested}, true}}, b).message() ==
        "binding b: an argument that needs a binding of its own (A-normal form)");
  CHECK(Verify({}, Call({x})).message() == "the result of a sequence is no variable, constant, tuple or shape");
  const Expr effect = Make<ExternFuncNode>("g", Make<CallableTypeNode>(std::nullopt, type, false));
  const Binding impure{b, Make<CallNode>(effect, std::vector<Expr>{x}), nullptr, {}};
  CHECK(Verify({{{impure}, true}}, b).message() == "binding b: a call with effects in a dataflow block");
  CHECK(Verify({{{impure}, false}}, b).message() == "binding b: a call with effects in a pure function");
  const Expr missing = Make<GlobalVarNode>("missing");
  const Binding global{b, Make<CallNode>(missing, std::vector<Expr>{x}), nullptr, {}};
  CHECK(Verify({{{global}, false}}, b).message() == "binding b: no function missing in the module");
  const Var untyped = Make<VarNode>("untyped", nullptr);
  CHECK(Verify({{{{untyped, Call({x}), nullptr, {}}}, false}}, untyped).message() == "variable untyped has no type");
}

TEST_CASE_FIXTURE(GraphFixture, "100,000 bindings are verified without recursion") {
  BindingBlock block;
  Var last = x;
  for (int i = 0; i < 100'000; ++i) {
    const Var next = NewVar("v");
    block.bindings.push_back({next, Call({last}), nullptr, {}});
    last = next;
  }
  CHECK(Verify({block}, last).ok());
}

}  // namespace
}  // namespace ingot::op
