#include "vm/program/weights.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "formats/file.h"
#include "formats/hash.h"
#include "vm/program/program_codec.h"
#include "vm/run/context.h"
#include "vm/run/executable.h"
#include "vm/text/assembler.h"

namespace ingot::vm {
namespace {

namespace fs = std::filesystem;

Tensor Pair(float a, float b) {
  Tensor tensor = Tensor::Allocate(DataType::Float(32), std::vector<int64_t>{2}).value();
  tensor.MutableElements<float>()[0] = a;
  tensor.MutableElements<float>()[1] = b;
  return tensor;
}

// main() gives w and p, where p is w + w, prepared.
const std::string kFunctions = R"(constant "p" float32[2] = prepared @prepare 0
function @prepare () -> (p: float32[2]) {
  register r0: constant float32[2]
  register r1: float32[2]
  const_tensor r0, #0
  alloc r1, [2]
  call_builtin [], add, [r1, r0, r0]
  return [r1]
}
function @main export () -> (w: float32[2], p: float32[2]) {
  register r0: constant float32[2]
  register r1: constant float32[2]
  register r2: float32[2]
  register r3: float32[2]
  const_tensor r0, #0
  const_tensor r1, #1
  copy r2, r0
  copy r3, r1
  return [r2, r3]
}
)";

std::vector<float> Run(const std::shared_ptr<const Executable>& executable) {
  const auto context = *Context::Create(executable);
  std::vector<float> numbers;
  const std::vector<Value> results = *context->Invoke(**executable->Find("main"), {});
  for (const Value& value : results) {
    for (const float number : std::get<Tensor>(value).Elements<float>()) numbers.push_back(number);
  }
  return numbers;
}

Result<std::shared_ptr<const Executable>> OpenBytes(const std::vector<std::byte>& bytes, const OpenOptions& options) {
  return Executable::OpenMemory(*Instance::Create(), SharedBytes(nullptr, bytes), "m", options);
}

TEST_CASE("replaced weights are what functions read, and what is packed from") {
  const Program program = *Assemble("ingot 1\nconstant \"w\" float32[2] weight = 1, 2\n" + kFunctions);
  const std::vector<std::byte> bytes = *EncodeProgram(program);
  CHECK(Run(*OpenBytes(bytes, {})) == std::vector<float>{1, 2, 2, 4});
  OpenOptions options;
  options.weights = {{"w", Pair(10, 20)}};
  CHECK(Run(*OpenBytes(bytes, options)) == std::vector<float>{10, 20, 20, 40});
  options.weights = {{"v", Pair(10, 20)}};
  CHECK(OpenBytes(bytes, options).status().message().find("no weight \"v\"") != std::string::npos);
  options.weights = {{"w", Tensor::Allocate(DataType::Float(32), std::vector<int64_t>{1, 2}).value()}};
  CHECK(OpenBytes(bytes, options).status().message().find("expected float32[2], got float32[1, 2]") !=
        std::string::npos);
  const std::vector<std::byte> packed =
      *EncodeProgram(*Assemble("ingot 1\nconstant \"w\" float32[2] = 1, 2\n" + kFunctions));
  options.weights = {{"w", Pair(10, 20)}};
  CHECK(OpenBytes(packed, options).status().message().find("cannot be replaced") != std::string::npos);
}

TEST_CASE("weights in a file beside the executable") {
  const fs::path folder = fs::temp_directory_path() / ("ingot_weights_" + std::to_string(getpid()));
  fs::create_directories(folder);
  const std::string weights = (folder / "w.bin").string(), path = (folder / "m.ingot").string();
  // The weight lies at an unaligned offset of its file, and is copied.
  const float content[] = {0, 3, 4};
  REQUIRE(formats::WriteFileAtomically(weights, std::as_bytes(std::span(content))).ok());
  const auto bytes = std::as_bytes(std::span(content));
  const std::string file = "weight_file \"w.bin\" size 12 hash " + std::to_string(formats::Hash(bytes)) + " sha256 \"" +
                           formats::ToHex(formats::Sha256Of(bytes)) + "\"\n";
  const Program program =
      *Assemble("ingot 1\n" + file + "constant \"w\" float32[2] weight = file 0 offset 4\n" + kFunctions);
  REQUIRE(WriteProgram(program, path).ok());
  const std::vector<float> expected = {3, 4, 6, 8};
  CHECK(Run(*Executable::Open(*Instance::Create(), path, {})) == expected);

  const std::vector<std::byte> in_memory = *EncodeProgram(program);
  CHECK(OpenBytes(in_memory, {}).status().message().find("name no folder") != std::string::npos);
  OpenOptions options;
  options.weights_directory = folder.string();
  CHECK(Run(*OpenBytes(in_memory, options)) == expected);

  // Under a policy the SHA-256 of the file of weights is compared, so that renewing its XXH3 hash does not help.
  TrustPolicy policy;
  policy.allowed = {formats::Sha256Of(in_memory)};
  options.trust = Trust::kPolicy;
  options.policy = policy;
  CHECK(Run(*OpenBytes(in_memory, options)) == expected);
  Program lying = program;
  lying.weight_files[0].sha256[0] ^= 1;
  const std::vector<std::byte> lie = *EncodeProgram(lying);
  options.policy.allowed = {formats::Sha256Of(lie)};
  CHECK(OpenBytes(lie, options).status().message().find("another SHA-256") != std::string::npos);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace ingot::vm
