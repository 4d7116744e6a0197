// IRModule as an object: look up, list, iterate, add, replace, remove, print one function.
#include "compiler/ir/module.h"

#include <doctest/doctest.h>

#include "compiler/builder/block_builder.h"
#include "compiler/script/printer.h"

namespace ingot::ir {
namespace {

// Adds the function NAME(x: float32[4]) = op(x).
IRModule WithFunction(IRModule module, const std::string& name, const char* op) {
  builder::BlockBuilder b(std::move(module));
  const Var x = builder::TensorVar("x", {Int64(4)});
  b.Function(name, {x}, [&] { return b.Call(op, {x}); });
  return b.Finish().value();
}

TEST_CASE("functions of a module are found, listed, added, replaced, removed and printed") {
  const IRModule module = WithFunction(WithFunction({}, "first", "nn.relu"), "second", "exp");
  const GlobalVar first = module.FindGlobalVar("first");
  CHECK(module.size() == 2);
  CHECK(module.Contains("second"));
  CHECK_FALSE(module.Contains("third"));
  CHECK(module.Find(first).same_as(module.Find("first")));
  CHECK(module.Find("third") == nullptr);
  CHECK(module.GlobalVars().size() == 2);
  CHECK(module.GlobalVars()[1]->name == "second");
  std::string names;
  for (const IRModule::Entry& entry : module) names += entry.var->name + " ";
  CHECK(names == "first second ");
  // The variable of a function of that name in another module is a different variable.
  const IRModule other = WithFunction({}, "first", "nn.relu");
  CHECK(module.Find(other.FindGlobalVar("first")) == nullptr);

  IRModule changed = module;
  const GlobalVar added = changed.Add("first", module.Find("second"));
  CHECK(added->name == "first1");
  changed.Set(first, module.Find("second"));
  changed.Remove(module.FindGlobalVar("second"));
  CHECK(changed.size() == 2);
  CHECK(changed.Find("first").same_as(module.Find("second")));
  CHECK(module.size() == 2);  // the original stays
  CHECK_FALSE(module.Find("first").same_as(module.Find("second")));

  CHECK(script::PrintFunction("second", module.Find("second")) == R"(# from tvm.script import relax as R

@R.function
def second(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
    gv: R.Tensor((4,), dtype="float32") = R.exp(x)
    return gv
)");
}

}  // namespace
}  // namespace ingot::ir
