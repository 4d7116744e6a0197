// Golden tests of the text form: `print` parses and prints. Every input, and every output, must read back structurally
// equal and print the same again.
#include <doctest/doctest.h>

#include <array>

#include "compiler/ir/structural.h"
#include "compiler/ir/verifier.h"
#include "compiler/script/parser.h"
#include "compiler/script/printer.h"
#include "tests/golden.h"

namespace ingot::script {
namespace {

Result<std::string> Print(const golden::Case& golden) {
  INGOT_ASSIGN_OR_RETURN(const ir::IRModule module, ParseModule(golden.input, "input.py"));
  INGOT_RETURN_IF_ERROR(ir::VerifyModule(module));
  ConstantStore constants;
  const PrintOptions options{.spans = golden.arguments == "spans"};
  const std::string text = PrintModule(module, options, &constants);
  const Result<ir::IRModule> again = ParseModule(text, "printed.py", &constants);
  CHECK_MESSAGE(again.ok(), golden.path << ": what was printed does not parse:\n" << again.status().message());
  if (again.ok()) {
    const std::string difference = ir::ExplainDifference(module, *again);
    CHECK_MESSAGE(difference.empty(), golden.path << ": what was printed reads back differently: " << difference);
    CHECK(PrintModule(*again, options, &constants) == text);
  }
  return PrintModule(module, {.golden = true, .spans = options.spans});
}

constexpr std::array<golden::Directive, 1> kDirectives{{{"print", Print}}};

TEST_CASE("script goldens") { golden::RunArea("script", kDirectives); }

}  // namespace
}  // namespace ingot::script
