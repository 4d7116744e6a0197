// TVMScript: any text is read or refused. A module that the verifier accepts prints as a text that reads back to an
// equal module.
#include "compiler/op/verifier.h"
#include "compiler/script/parser.h"
#include "tests/compiler/round_trip.h"
#include "tests/fuzz_targets/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ingot;  // NOLINT: a function of C's has no namespace
  const auto module = script::ParseModule(std::string(fuzz::TextOf(data, size)), "m.py");
  if (!module.ok() || !op::VerifyModule(*module).ok()) return 0;
  const std::string difference = script::testing::ReadBackDifference(*module);
  INGOT_CHECK(difference.empty(), difference.c_str());
  return 0;
}
