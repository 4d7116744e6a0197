// ONNX models: any bytes are imported, or refused with a report; what is imported is a module that the verifier
// accepts, and prints as a text that reads back to an equal module.
#include "compiler/importer/onnx.h"

#include "compiler/op/verifier.h"
#include "tests/compiler/round_trip.h"
#include "tests/fuzz_targets/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ingot;  // NOLINT: a function of C's has no namespace
  const SharedBytes bytes = fuzz::SharedCopyOf(data, size);
  const auto imported = importer::ImportOnnx(bytes, "m.onnx");
  const auto report = importer::CheckOnnx(bytes, "m.onnx");
  INGOT_CHECK(!imported.ok() || report.ok(), report.status().message().c_str());
  if (!imported.ok()) return 0;
  const Status verified = op::VerifyModule(imported->module);
  INGOT_CHECK(verified.ok(), verified.message().c_str());
  const std::string difference = script::testing::ReadBackDifference(imported->module);
  INGOT_CHECK(difference.empty(), difference.c_str());
  return 0;
}
