// Golden tests of the text form: `print` parses and prints. Every input, and every output, must read back structurally
// equal and print the same again.
#include <doctest/doctest.h>

#include <array>

#include "compiler/op/verifier.h"
#include "compiler/script/parser.h"
#include "compiler/script/printer.h"
#include "tests/compiler/round_trip.h"
#include "tests/golden.h"

namespace ingot::script {
namespace {

Result<std::string> Print(const golden::Case& golden) {
  INGOT_ASSIGN_OR_RETURN(const ir::IRModule module, ParseModule(golden.input, "input.py"));
  INGOT_RETURN_IF_ERROR(op::VerifyModule(module));
  const PrintOptions options{.spans = golden.arguments == "spans"};
  const std::string difference = testing::ReadBackDifference(module, options);
  CHECK_MESSAGE(difference.empty(), golden.path << ": " << difference);
  return PrintModule(module, {.golden = true, .spans = options.spans});
}

constexpr std::array<golden::Directive, 1> kDirectives{{{"print", Print}}};

TEST_CASE("script goldens") { golden::RunArea("script", kDirectives); }

}  // namespace
}  // namespace ingot::script
