#include "vm/program/program_builder.h"

#include <doctest/doctest.h>

#include <set>

namespace ingot::vm {
namespace {

TEST_CASE("opcode and builtin numbers are unique and found by number and by name") {
  std::set<std::string> names;
  for (const OpcodeInfo& row : AllOpcodes()) {
    CHECK(FindOpcode(static_cast<uint64_t>(row.opcode)) == &row);
    CHECK(FindOpcode(std::string_view(row.name)) == &row);
    CHECK(names.insert(row.name).second);
  }
  for (const BuiltinInfo& row : AllBuiltins()) {
    CHECK(FindBuiltin(static_cast<uint64_t>(row.builtin)) == &row);
    CHECK(FindBuiltin(std::string_view(row.name)) == &row);
  }
  CHECK(FindOpcode(0) == nullptr);
  CHECK(FindOpcode(1000) == nullptr);
}

TEST_CASE("the builder numbers symbols, parameters, registers, and patches labels") {
  Signature signature;
  signature.symbols = {{"n", 1, 64}};
  signature.params = {{"x", Type::Tensor(DataType::Float(32), {DimCode::Slot(0)})}};
  FunctionBuilder f("main", signature);
  CHECK(f.symbol(0).value == 0);
  CHECK(f.param(0).value == 1);
  CHECK(f.type(f.param(0)).storage == Storage::kBorrowed);
  const RegisterId i = f.AddRegister(Type::Int());
  const RegisterId go_on = f.AddRegister(Type::Bool());
  const LabelId loop = f.NewLabel(), done = f.NewLabel();
  f.Note("count");
  f.ConstInt(i, 0);
  f.Bind(loop);
  f.Note("count");
  f.Dim(i, DimCode(7));
  f.Test(go_on, DimCode(1));
  f.Branch(go_on, loop, done);
  f.Bind(done);
  f.Note("leave");
  f.Return({});
  const Function function = std::move(f).Finish();
  REQUIRE(function.code.size() == 5);
  const auto branch = function.code[3].As<op::Branch>();
  CHECK(branch.condition() == go_on);
  CHECK(branch.then_target().value == 1);
  CHECK(branch.else_target().value == 4);
  CHECK(function.notes == std::vector<DebugNote>{{0, "count"}, {4, "leave"}});
  CHECK(function.code[0].opcode == Opcode::kConstInt);
}

}  // namespace
}  // namespace ingot::vm
