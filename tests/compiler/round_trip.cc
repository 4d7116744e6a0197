#include "tests/compiler/round_trip.h"

#include "compiler/ir/structural.h"
#include "compiler/script/parser.h"

namespace ingot::script::testing {

std::string ReadBackDifference(const ir::IRModule& module, const PrintOptions& options) {
  ConstantStore constants;
  const std::string text = PrintModule(module, options, &constants);
  const Result<ir::IRModule> again = ParseModule(text, "printed.py", &constants);
  if (!again.ok()) return again.status().message() + "\n" + text;
  const std::string difference = ir::ExplainDifference(module, *again);
  if (!difference.empty()) return difference + "\n" + text;
  const std::string second = PrintModule(*again, options, &constants);
  return second == text ? "" : "the text prints differently once it was read:\n" + text + "\nthen:\n" + second;
}

std::string ReadBackDifference(const ir::PrimFunc& function) {
  ir::IRModule module;
  module.Add("main", function);
  return ReadBackDifference(module);
}

}  // namespace ingot::script::testing
