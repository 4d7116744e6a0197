// Binding parameters to constants, and detaching them again.
#include "compiler/transform/params.h"

#include <doctest/doctest.h>

#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/script/parser.h"
#include "compiler/script/printer.h"

namespace ingot::transform {
namespace {

constexpr const char* kModule = R"(
@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 4), "float32"), b: R.Tensor((4,), "float32")
    ) -> R.Tensor((2, 4), "float32"):
        R.func_attr({"num_input": 1, "input_names": ["x", "w", "b"]})
        with R.dataflow():
            product: R.Tensor((2, 4), "float32") = R.matmul(x, w)
            sum: R.Tensor((2, 4), "float32") = R.add(product, b)
            out: R.Tensor((2, 4), "float32") = R.add(sum, b)
            R.output(out)
        return out
)";

NamedConstant Constant(std::string name, std::vector<int64_t> dims, float value) {
  Tensor tensor = Tensor::Allocate(DataType::Float(32), dims).value();
  for (float& element : tensor.MutableElements<float>()) element = value;
  return {std::move(name), ConstantOf(tensor)};
}

TEST_CASE("parameters are bound by name and detached in the order of their use") {
  const ir::IRModule module = script::ParseModule(kModule, "module.py").value();
  const std::vector<NamedConstant> constants{Constant("b", {4}, 2), Constant("w", {3, 4}, 1)};
  const auto bound = BindParams(module, "main", constants);
  REQUIRE_MESSAGE(bound.ok(), bound.status().message());
  const ir::Function main_function = bound->FindFunction("main");
  CHECK(main_function->params.size() == 1);
  CHECK(main_function->attrs.GetInt("num_input") == 1);
  CHECK(main_function->attrs.Find("input_names")->get<ir::AttrList>()->size() == 1);
  const auto detached = DetachParams(*bound, "main");
  REQUIRE_MESSAGE(detached.ok(), detached.status().message());
  CHECK(ir::ExplainDifference(detached->module, module) == "");
  REQUIRE(detached->params.size() == 2);
  CHECK(detached->params[0].name == "w");
  CHECK(detached->params[1].data->Equals(*constants[0].data));
  CHECK(TensorOf(*detached->params[1].data)->Elements<float>()[3] == 2);
  // Again: nothing is left to detach.
  CHECK(DetachParams(detached->module, "main")->params.empty());
}

TEST_CASE("constants of one name and different contents get different parameters") {
  const ir::IRModule module = script::ParseModule(kModule, "module.py").value();
  const auto once = BindParams(module, "main", std::vector{Constant("b", {4}, 2)});
  REQUIRE(once.ok());
  const NamedConstant other = Constant("w", {3, 4}, 1);
  auto twice = BindParams(*once, "main", std::vector{other});
  REQUIRE(twice.ok());
  // w's constant is called b, too.
  struct Rename : ir::ExprMutator {
    using ExprMutator::Mutate;
    ir::Expr Mutate(const ir::Constant& constant) override { return ir::Make<ir::ConstantNode>(constant->data, "b"); }
  } rename;
  twice->Set(twice->FindGlobalVar("main"), rename.MutateFunction(twice->FindFunction("main")));
  const auto detached = DetachParams(*twice, "main");
  REQUIRE(detached.ok());
  REQUIRE(detached->params.size() == 2);
  CHECK(detached->params[0].name == "b");
  CHECK(detached->params[1].name == "b1");
}

TEST_CASE("what cannot be bound says why") {
  const ir::IRModule module = script::ParseModule(kModule, "module.py").value();
  const auto message = [&](const char* function, NamedConstant constant) {
    return BindParams(module, function, std::vector{std::move(constant)}).status().message();
  };
  CHECK(message("main", Constant("ww", {3, 4}, 1)) == "\"ww\" is no parameter of \"main\"; did you mean \"w\"?");
  CHECK(message("main", Constant("w", {4, 3}, 1)) ==
        "\"w\": expected R.Tensor((3, 4), dtype=\"float32\"), got R.Tensor((4, 3), dtype=\"float32\")");
  CHECK(message("mian", Constant("w", {3, 4}, 1)) ==
        "the module has no graph function \"mian\"; did you mean \"main\"?");
}

}  // namespace
}  // namespace ingot::transform
