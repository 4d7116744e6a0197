// From values to buffers: golden texts (tests/golden/memory). Modules are given after the graph passes.
#include <doctest/doctest.h>

#include <string>

#include "compiler/script/printer.h"
#include "tests/compiler/memory/memory_passes.h"
#include "tests/golden.h"

namespace ingot::memory {
namespace {

// memory PASS: the module after PASS.
Result<std::string> RunMemory(const golden::Case& golden) {
  INGOT_ASSIGN_OR_RETURN(const ir::IRModule module, testing::ModuleAfter(golden.arguments, golden.input));
  // Tensor functions are as they were: only the graph functions are shown.
  std::string shown;
  for (const ir::IRModule::Entry& entry : module.functions()) {
    if (ir::As<ir::FunctionNode>(entry.function) != nullptr)
      shown += script::PrintFunction(entry.var->name, entry.function) + "\n";
  }
  return shown;
}

TEST_CASE("memory passes: golden") {
  static constexpr golden::Directive kDirectives[] = {{"memory", RunMemory}};
  golden::RunArea("memory", kDirectives);
}

}  // namespace
}  // namespace ingot::memory
