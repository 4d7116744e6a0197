#include "compiler/transform/legalize.h"

#include <doctest/doctest.h>

#include <string>

#include "compiler/op/infer.h"
#include "compiler/op/registry.h"

namespace ingot::transform {
namespace {

using ir::Expr;
using op::Dims;

const DataType kF32 = DataType::Float(32);

ir::Type TensorType(Dims dims) { return ir::Make<ir::TensorTypeNode>(std::move(dims), kF32); }

// A function of one dataflow block, built call by call.
class FunctionBuilder {
 public:
  Expr Param(Dims dims) {
    params_.push_back(ir::Make<ir::VarNode>("x" + std::to_string(params_.size()), TensorType(std::move(dims))));
    return params_.back();
  }
  Expr Call(std::string_view name, std::vector<Expr> args, ir::Attrs attrs = {}) {
    Result<ir::Call> call = op::MakeCall(name, std::move(args), std::move(attrs));
    REQUIRE_MESSAGE(call.ok(), call.status().message());
    return Bind(*call);
  }
  Expr Bind(const Expr& value) {
    const ir::Var var = ir::Make<ir::VarNode>("lv" + std::to_string(block_.bindings.size()), value->type);
    block_.bindings.push_back({var, value, nullptr, {}});
    return var;
  }
  ir::IRModule Finish(const Expr& result) {
    const ir::SeqExpr body = ir::Make<ir::SeqExprNode>(std::vector<ir::BindingBlock>{block_}, result);
    ir::IRModule module;
    module.Add("main", ir::Make<ir::FunctionNode>(params_, body, result->type));
    return module;
  }

 private:
  std::vector<ir::Var> params_;
  ir::BindingBlock block_;
};

// The bindings of main: the operator or the tensor function that each calls.
std::string Callees(const ir::IRModule& module) {
  std::string text;
  for (const ir::BindingBlock& block : module.FindFunction("main")->body->blocks) {
    for (const ir::Binding& binding : block.bindings) {
      const auto* call = ir::As<ir::CallNode>(binding.value);
      if (call == nullptr) {
        text += "? ";
        continue;
      }
      std::string name = ir::Downcast<ir::OpNode>(call->callee)->name;
      if (name == "call_tir") name = ir::Downcast<ir::GlobalVarNode>(call->args[0])->name;
      text += name + " ";
    }
  }
  return text;
}

std::string Functions(const ir::IRModule& module) {
  std::string text;
  for (const ir::IRModule::Entry& entry : module.functions()) text += entry.var->name + " ";
  return text;
}

TEST_CASE("operators become calls of tensor functions, views stay, equal functions are one") {
  FunctionBuilder b;
  const ir::PrimVar n = ir::MakePrimVar("n");
  const Expr image = b.Param({n, ir::Int64(1), ir::Int64(8), ir::Int64(8)});
  const Expr kernel = b.Param({ir::Int64(2), ir::Int64(1), ir::Int64(3), ir::Int64(3)});
  const Expr matrix = b.Param({ir::Int64(128), ir::Int64(128)});
  const Expr conv = b.Call("nn.conv2d", {image, kernel}, {{"padding", 1}});
  const Expr relu = b.Call("nn.relu", {conv});
  const Expr flat = b.Call("reshape", {relu, ir::Make<ir::ShapeExprNode>(Dims{n, ir::Int64(-1)})});
  const Expr hidden = b.Call("matmul", {flat, matrix});
  const Expr relu1 = b.Call("nn.relu", {hidden});
  const Expr out = b.Call("matmul", {relu1, matrix});
  PassContext context;
  const Result<ir::IRModule> legal = Legalize(b.Finish(out), context);
  REQUIRE_MESSAGE(legal.ok(), legal.status().message());
  CHECK(Callees(*legal) == "conv2d relu reshape matmul relu1 matmul ");
  CHECK(Functions(*legal) == "main conv2d relu matmul relu1 ");
  const ir::PrimFunc conv2d = legal->FindPrimFunc("conv2d");
  REQUIRE(conv2d->params.size() == 3);
  CHECK(conv2d->is_private);
  CHECK(op::Describe(TensorType(conv2d->params[2].buffer->shape)) == "float32[n, 2, 8, 8]");
  CHECK(conv2d->params[0].buffer->shape[0].get() != n.get());  // variables of its own
}

TEST_CASE("variables that no dimension is alone are passed as a shape where the call names them") {
  FunctionBuilder b;
  const ir::PrimVar n = ir::MakePrimVar("n");
  const Expr x = b.Param({n * 2});
  const Expr y = b.Call("broadcast_to", {x, ir::Make<ir::ShapeExprNode>(op::Dims{ir::Int64(3), n * 2})});
  PassContext context;
  const Result<ir::IRModule> legal = Legalize(b.Finish(y), context);
  REQUIRE_MESSAGE(legal.ok(), legal.status().message());
  const auto call = ir::Downcast<ir::CallNode>(legal->FindFunction("main")->body->blocks[0].bindings[0].value);
  REQUIRE(call->args.size() == 3);
  const auto shape = ir::Downcast<ir::ShapeExprNode>(call->args[2]);
  REQUIRE(shape->dims.size() == 1);
  CHECK(shape->dims[0].get() == n.get());
  const ir::PrimFunc function = legal->FindPrimFunc("broadcast_to");
  REQUIRE(function->params.size() == 3);
  CHECK(function->params[2].buffer == nullptr);
}

TEST_CASE("formulas of dims are symbols of the function, and calls at several sizes share it") {
  FunctionBuilder b;
  const ir::PrimVar n = ir::MakePrimVar("n");
  const Expr x = b.Param({n * 2}), y = b.Param({ir::FloorDiv(n + 1, ir::Int64(2))});
  const Expr doubled = b.Call("nn.relu", {x});
  const Expr both = b.Call("add", {doubled, x});
  const Expr halved = b.Call("nn.relu", {y});
  const Expr all = b.Bind(ir::Make<ir::TupleNode>(
      std::vector<Expr>{both, halved}, ir::Make<ir::TupleTypeNode>(std::vector<ir::Type>{both->type, halved->type})));
  PassContext context;
  const Result<ir::IRModule> legal = Legalize(b.Finish(all), context);
  REQUIRE_MESSAGE(legal.ok(), legal.status().message());
  CHECK(Functions(*legal) == "main relu add ");
  for (const char* name : {"relu", "add"}) {
    const ir::PrimFunc function = legal->FindPrimFunc(name);
    for (const ir::PrimFuncParam& param : function->params) {
      REQUIRE(param.buffer != nullptr);
      const ir::PrimExpr& dim = param.buffer->shape[0];
      CHECK(dim->kind == ir::PrimKind::kPrimVar);
      CHECK(dim.get() == function->params[0].buffer->shape[0].get());
    }
  }
}

TEST_CASE("a tuple in a variable is taken apart") {
  FunctionBuilder b;
  const Expr x = b.Param({ir::Int64(2)});
  const Expr pair = b.Bind(ir::Make<ir::TupleNode>(
      std::vector<Expr>{x, x}, ir::Make<ir::TupleTypeNode>(std::vector<ir::Type>{x->type, x->type})));
  const Expr y = b.Call("concat", {pair});
  PassContext context;
  const Result<ir::IRModule> legal = Legalize(b.Finish(y), context);
  REQUIRE_MESSAGE(legal.ok(), legal.status().message());
  CHECK(Callees(*legal) == "? ? ? concat ");
}

TEST_CASE("what no implementation takes is reported at once") {
  FunctionBuilder b;
  const Expr image = b.Param({ir::Int64(1), ir::Int64(8), ir::Int64(8), ir::Int64(3)});
  const Expr kernel = b.Param({ir::Int64(4), ir::Int64(3), ir::Int64(3), ir::Int64(3)});
  const Expr conv = b.Call("nn.conv2d", {image, kernel}, {{"data_layout", "NHWC"}});
  const Expr x = b.Bind(ir::Make<ir::VarNode>("y", ir::Make<ir::TensorTypeNode>(1, kF32)));
  b.Call("nn.relu", {x});
  PassContext context;
  const Result<ir::IRModule> legal = Legalize(b.Finish(conv), context);
  REQUIRE_FALSE(legal.ok());
  CHECK(legal.status().code() == StatusCode::kUnsupportedModel);
  CHECK(legal.status().message() ==
        "unsupported operator calls:\n"
        "  nn.conv2d: no implementation for target \"x86-64-v3\" takes this call (float32[1, 8, 8, 3], "
        "float32[4, 3, 3, 3] to float32[1, 6, 6, 4])\n"
        "  nn.relu: needs arguments and results of known shape and dtype (float32 of rank 1 to float32 of rank 1)");
}

}  // namespace
}  // namespace ingot::transform
