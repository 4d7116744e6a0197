#include "vm/program/golden_cases.h"

#include <doctest/doctest.h>

#include "formats/container_writer.h"
#include "ingot/ingot.h"
#include "tests/vm/c_api_session.h"
#include "vm/program/program_codec.h"
#include "vm/text/assembler.h"

namespace ingot::vm {
namespace {

Tensor Numbers(std::initializer_list<float> values) {
  Tensor tensor = Tensor::Allocate(DataType::Float(32), std::vector<int64_t>{std::ssize(values)}).value();
  std::copy(values.begin(), values.end(), tensor.MutableElements<float>().begin());
  return tensor;
}

std::vector<GoldenCase> TwoCases() {
  GoldenCase first{"main", GoldenOrigin::kReference, 1e-4, 1e-5, {{"x", Numbers({1, 2})}}, {{"y", Numbers({1, 2})}}};
  GoldenCase second{"main", GoldenOrigin::kFile, 0, 0, {{"x", Numbers({3})}}, {{"y", Numbers({4})}}};
  return {first, second};
}

std::vector<std::byte> FileWith(std::vector<std::byte> golden) {
  const Program program = *Assemble(
      "ingot 1\nfunction @main export [n](x: float32[n]) -> (y: float32[n]) {\n"
      "  register r2: float32[n]\n  copy r2, r1\n  return [r2]\n}\n");
  EncodedProgram encoded = *EncodedProgram::Encode(program);
  formats::ContainerWriter::Options options;
  options.is_required = false;
  REQUIRE(encoded.container().AddOwned(formats::SectionKind::kGoldenCases, 0, std::move(golden), options).ok());
  return *encoded.container().ToBytes();
}

Result<std::vector<GoldenCase>> Decode(std::vector<std::byte> golden) {
  const formats::Container container = formats::Container::Open(SharedBytes::Own(FileWith(std::move(golden)))).value();
  return DecodeGoldenCases(container);
}

TEST_CASE("golden cases are read as they were written") {
  const std::vector<GoldenCase> written = TwoCases();
  const auto read = Decode(EncodeGoldenCases(written));
  REQUIRE_MESSAGE(read.ok(), read.status().message());
  REQUIRE(read->size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    const GoldenCase &a = written[i], &b = (*read)[i];
    CHECK(b.function == "main");
    CHECK(b.origin == a.origin);
    CHECK(b.relative_tolerance == a.relative_tolerance);
    CHECK(b.absolute_tolerance == a.absolute_tolerance);
    REQUIRE(b.inputs.size() == 1);
    CHECK(b.inputs[0].name == "x");
    CHECK(std::ranges::equal(b.inputs[0].tensor.bytes(), a.inputs[0].tensor.bytes()));
    CHECK(std::ranges::equal(b.outputs[0].tensor.bytes(), a.outputs[0].tensor.bytes()));
    CHECK(reinterpret_cast<uintptr_t>(b.inputs[0].tensor.data()) % 16 == 0);
  }
}

TEST_CASE("a damaged section of golden cases is corrupt, or says something else") {
  const std::vector<std::byte> whole = EncodeGoldenCases(TwoCases());
  int refused = 0;
  for (size_t at = 0; at < 128; ++at) {
    std::vector<std::byte> damaged = whole;
    damaged[at] ^= std::byte{0x81};
    const auto read = Decode(damaged);
    if (read.ok()) continue;
    CHECK(read.status().code() == StatusCode::kCorrupt);
    ++refused;
  }
  CHECK(refused > 40);
  for (size_t size = 0; size < 100; ++size) {
    const auto read = Decode({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
    CHECK_FALSE(read.ok());
  }
}

TEST_CASE("the C API lends golden cases") {
  const test::Session session(FileWith(EncodeGoldenCases(TwoCases())));
  size_t count = 0;
  REQUIRE(ingot_executable_golden_case_count(session.executable, &count) == nullptr);
  CHECK(count == 2);
  ingot_golden_case golden = INGOT_GOLDEN_CASE_INIT;
  REQUIRE(ingot_executable_golden_case(session.executable, 0, &golden) == nullptr);
  CHECK(std::string(golden.function) == "main");
  CHECK(std::string(golden.origin) == "reference");
  REQUIRE(golden.num_inputs == 1);
  REQUIRE(golden.num_outputs == 1);
  CHECK(std::string(golden.outputs[0].name) == "y");
  CHECK(golden.inputs[0].tensor.shape[0] == 2);
  CHECK(static_cast<const float*>(golden.inputs[0].tensor.data)[1] == 2);
  CHECK(test::Take(ingot_executable_golden_case(session.executable, 2, &golden))
            .starts_with(std::to_string(INGOT_NOT_FOUND) + ": "));
}

}  // namespace
}  // namespace ingot::vm
