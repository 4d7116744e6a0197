#include "compiler/op/registry.h"

#include <doctest/doctest.h>

#include "compiler/op/fold.h"
#include "compiler/op/infer.h"

namespace ingot::op {
namespace {

const DataType kF32 = DataType::Float(32);
using ir::AttrValue;
using ir::Expr;

Expr TensorVar(Dims dims, DataType dtype = kF32) {
  return ir::Make<ir::VarNode>("x", ir::Make<ir::TensorTypeNode>(std::move(dims), dtype));
}
Dims Ints(std::initializer_list<int64_t> values) {
  Dims dims;
  for (int64_t value : values) dims.push_back(ir::Int64(value));
  return dims;
}
Expr Shape(Dims dims) { return ir::Make<ir::ShapeExprNode>(std::move(dims)); }

// The type of a call as text, or its error.
std::string TypeOf(std::string_view name, std::vector<Expr> args, ir::Attrs attrs = {}) {
  const Result<ir::Call> call = MakeCall(name, std::move(args), std::move(attrs));
  return call.ok() ? Describe((*call)->type) : call.status().message();
}

TEST_CASE("rows are found by name, in order; near names are suggested") {
  REQUIRE(AllOps().size() > 60);
  for (size_t i = 1; i < AllOps().size(); ++i) {
    CHECK(std::string_view(AllOps()[i - 1]->name) < std::string_view(AllOps()[i]->name));
  }
  for (const OpRow* row : AllOps()) {
    CHECK(FindOp(row->name) == row);
    CHECK(ir::Downcast<ir::OpNode>(GetOp(row->name))->row == row);
    CHECK((row->infer != nullptr));
  }
  CHECK(FindOp("nn.conv2") == nullptr);
  CHECK(SuggestOp("nn.conv2") == "nn.conv2d");
  CHECK(TypeOf("nn.rellu", {TensorVar({})}) == "unknown operator \"nn.rellu\"; did you mean \"nn.relu\"?");
}

TEST_CASE("calls hold every attribute of the row, in its order, in its form") {
  const Result<ir::Call> call = MakeCall("nn.conv2d", {TensorVar(Ints({1, 1, 8, 8})), TensorVar(Ints({4, 1, 3, 3}))},
                                         {{"padding", 1}, {"out_dtype", "void"}});
  REQUIRE(call.ok());
  std::string names;
  for (const auto& [name, value] : (*call)->attrs.items()) names += name + " ";
  CHECK(names == "strides padding dilation groups data_layout kernel_layout out_layout out_dtype ");
  CHECK((*call)->attrs.GetInts("padding") == std::vector<int64_t>{1, 1, 1, 1});
  CHECK((*call)->attrs.GetString("out_layout") == "NCHW");
  CHECK((*call)->attrs.Find("out_dtype")->is_none());
  const Expr x = TensorVar(Ints({2, 3}));
  CHECK(TypeOf("astype", {x}, {{"dtype", "int8"}}) == "int8[2, 3]");
  CHECK(TypeOf("astype", {x}) == "astype: missing attribute \"dtype\", a data type");
  CHECK(TypeOf("nn.softmax", {x}, {{"axes", 1}}) == "nn.softmax: no attribute \"axes\"; did you mean \"axis\"?");
  CHECK(TypeOf("nn.softmax", {x}, {{"axis", "one"}}) == "nn.softmax: attribute \"axis\": expected an integer");
  CHECK(TypeOf("add", {x}) == "add: expected 2 arguments (x1, x2), got 1");
  CHECK(TypeOf("nn.max_pool2d", {x}, {{"padding", AttrValue::Ints({1, 2, 3})}}) ==
        "nn.max_pool2d: padding: expected one, two or four integers, got 3 values");
}

TEST_CASE("inference with symbolic dims") {
  const ir::PrimVar n = ir::MakePrimVar("n");
  const Expr image = TensorVar({n, ir::Int64(1), ir::Int64(8), ir::Int64(8)});
  const Expr kernel = TensorVar(Ints({4, 1, 3, 3}));
  CHECK(TypeOf("nn.conv2d", {image, kernel}, {{"padding", 1}}) == "float32[n, 4, 8, 8]");
  CHECK(TypeOf("nn.conv2d", {image, kernel}, {{"strides", 2}}) == "float32[n, 4, 3, 3]");
  CHECK(TypeOf("nn.max_pool2d", {image}, {{"pool_size", 3}, {"strides", 2}}) == "float32[n, 1, 3, 3]");
  CHECK(TypeOf("nn.max_pool2d", {image}, {{"pool_size", 3}, {"strides", 2}, {"ceil_mode", true}}) ==
        "float32[n, 1, 4, 4]");
  CHECK(TypeOf("reshape", {image, Shape({n, ir::Int64(-1)})}) == "float32[n, 64]");
  CHECK(TypeOf("flatten", {image}) == "float32[n * 64]");
  CHECK(TypeOf("add", {image, TensorVar(Ints({8}))}) == "float32[n, 1, 8, 8]");
  CHECK(TypeOf("add", {image, image}) == "float32[n, 1, 8, 8]");
  const ir::PrimVar m = ir::MakePrimVar("m");
  CHECK(TypeOf("add", {TensorVar({n}), TensorVar({m})}) == "float32[...]");  // m where n is 1, else n: a formula
  CHECK(TypeOf("matmul", {TensorVar({n, ir::Int64(64)}), TensorVar(Ints({64, 10}))}) == "float32[n, 10]");
  CHECK(TypeOf("matmul", {TensorVar({n, m}), TensorVar({m})}) == "float32[n]");
  CHECK(TypeOf("permute_dims", {image}, {{"axes", AttrValue::Ints({0, 2, 3, 1})}}) == "float32[n, 8, 8, 1]");
  CHECK(TypeOf("squeeze", {image}) == "float32[n, 8, 8]");
  CHECK(TypeOf("sum", {image}, {{"axis", AttrValue::Ints({-1, 1})}, {"keepdims", true}}) == "float32[n, 1, 8, 1]");
  const Expr pair = ir::Make<ir::TupleNode>(
      std::vector<Expr>{image, image}, ir::Make<ir::TupleTypeNode>(std::vector<ir::Type>{image->type, image->type}));
  CHECK(TypeOf("concat", {pair}) == "float32[n * 2, 1, 8, 8]");
  CHECK(TypeOf("shape_of", {image}) == "shape[n, 1, 8, 8]");
}

TEST_CASE("errors say the operator, what was expected and what was got") {
  const Expr a = TensorVar(Ints({2, 3}));
  CHECK(TypeOf("matmul", {a, a}) == "matmul: expected 3 rows on the right, got float32[2, 3] and float32[2, 3]");
  CHECK(TypeOf("add", {a, TensorVar(Ints({4}))}) == "add: expected dims that broadcast, got [2, 3] and [4]");
  CHECK(TypeOf("add", {a, TensorVar(Ints({3}), DataType::Int(32))}) ==
        "add: expected equal dtypes, got float32[2, 3] and int32[3]");
  CHECK(TypeOf("exp", {TensorVar({}, DataType::Int(32))}) == "exp: argument \"x\": expected a float, got int32[]");
  CHECK(TypeOf("reshape", {a, Shape(Ints({4}))}) == "reshape: expected 6 elements as in float32[2, 3], got shape[4]");
  CHECK(TypeOf("nn.softmax", {a}, {{"axis", 2}}) == "nn.softmax: expected an axis in [-2, 2), got 2");
  CHECK(TypeOf("nn.relu", {Shape({})}) == "nn.relu: argument \"x\": expected a tensor, got shape[]");
}

TEST_CASE("call_tir has the type that it names; functions' results follow their arguments") {
  ir::IRModule module;
  const ir::PrimVar n = ir::MakePrimVar("n");
  const ir::Var x = ir::Make<ir::VarNode>("x", ir::Make<ir::TensorTypeNode>(Dims{n, ir::Int64(4)}, kF32));
  const ir::SeqExpr body = ir::Make<ir::SeqExprNode>(std::vector<ir::BindingBlock>{}, x);
  const ir::GlobalVar f = module.Add(
      "f", ir::Make<ir::FunctionNode>(std::vector<ir::Var>{x}, body, ir::Make<ir::TensorTypeNode>(Dims{n + n}, kF32)));
  const auto infer = [&](const Expr& argument) {
    const Result<ir::Type> type = InferCallType(module, ir::Make<ir::CallNode>(f, std::vector<Expr>{argument}));
    return type.ok() ? Describe(*type) : type.status().message();
  };
  CHECK(infer(TensorVar(Ints({3, 4}))) == "float32[6]");
  CHECK(infer(TensorVar(Ints({3, 5}))) == "call: expected float32[n, 4], got float32[3, 5]");
  CHECK(infer(ir::Make<ir::VarNode>("y", ir::Make<ir::TensorTypeNode>(2, kF32))) == "float32 of rank 1");
  const ir::Call call = MakeCallTIR(ir::Make<ir::GlobalVarNode>("g"), {x}, {x->type});
  CHECK(Describe(*InferCallType(module, call)) == "float32[n, 4]");
}

TEST_CASE("scalars of a kernel are the symbolic variables that no dimension is alone") {
  const ir::PrimVar n = ir::MakePrimVar("n");
  const ir::PrimVar m = ir::MakePrimVar("m");
  const Expr x = TensorVar({n, ir::Int64(2)});
  CHECK(UnboundShapeVars(*MakeCall("nn.relu", {x})).empty());
  const Result<ir::Call> reshaped = MakeCall("reshape", {TensorVar({n * m}), Shape({n, m})});
  REQUIRE(reshaped.ok());
  CHECK(UnboundShapeVars(*reshaped).empty());
  const Result<ir::Call> zeros = MakeCall("zeros", {Shape({n * 2})}, {{"dtype", "float32"}});
  REQUIRE(zeros.ok());
  REQUIRE(UnboundShapeVars(*zeros).size() == 1);
  CHECK(UnboundShapeVars(*zeros)[0].same_as(n));
}

}  // namespace
}  // namespace ingot::op
