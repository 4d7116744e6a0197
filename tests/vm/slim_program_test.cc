#include "vm/tools/slim_program.h"

#include <doctest/doctest.h>

namespace ingot::vm {
namespace {

const uint64_t kV3 = CpuFeatures::Level(3).bits;
const uint64_t kV4 = CpuFeatures::Level(4).bits;

// Two kernels in images of two levels, and one of another device.
Program TwoLevels() {
  Program program;
  program.devices.push_back({"cuda", 0});
  program.images = {{"x86-64-v4", ImageFormat::kElf, "x86_64", kV4, {}, {}},
                    {"sm_80", ImageFormat::kPtx, "sm_80", 0, {}, {}},
                    {"x86-64-v3", ImageFormat::kElf, "x86_64", kV3, {}, {}}};
  for (const char* name : {"a", "b"}) {
    Kernel kernel;
    kernel.name = name;
    kernel.variants = {{0, 64, "", kV4}, {2, 128, "", kV3}};
    program.kernels.push_back(std::move(kernel));
  }
  Kernel other;
  other.name = "c";
  other.device = 1;
  other.variants = {{1, 0, "c", 0}};
  program.kernels.push_back(std::move(other));
  return program;
}

TEST_CASE("a thin program keeps the variants that its CPU chooses, and the images that they are in") {
  const Result<Program> v3 = ThinProgram(TwoLevels(), CpuFeatures{kV3});
  REQUIRE(v3.ok());
  REQUIRE(v3->images.size() == 2);
  CHECK(v3->images[0].name == "sm_80");
  CHECK(v3->images[1].name == "x86-64-v3");
  for (size_t i = 0; i < 2; ++i) {
    REQUIRE(v3->kernels[i].variants.size() == 1);
    CHECK(v3->kernels[i].variants[0].image == 1);
    CHECK(v3->kernels[i].variants[0].offset == 128);
  }
  CHECK(v3->kernels[2].variants[0].image == 0);

  const Result<Program> v4 = ThinProgram(TwoLevels(), CpuFeatures{kV4});
  REQUIRE(v4.ok());
  CHECK(v4->images[0].name == "x86-64-v4");
  CHECK(v4->kernels[0].variants[0].offset == 64);
}

TEST_CASE("a CPU without a variant is refused, with the kernel's name") {
  const Result<Program> v2 = ThinProgram(TwoLevels(), CpuFeatures::Level(2));
  REQUIRE(!v2.ok());
  CHECK(v2.status().code() == StatusCode::kUnsupportedFile);
  CHECK(v2.status().message().find("kernel \"a\" has no variant for a CPU with") == 0);
}

}  // namespace
}  // namespace ingot::vm
