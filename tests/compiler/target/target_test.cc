// Target names: what the default holds, what a name means, and what errors suggest.
#include "compiler/target/target.h"

#include <algorithm>

#include "compiler/target/cuda.h"
#include "compiler/target/join_targets.h"
#include "doctest/doctest.h"
#include "runtime/cpu_features.h"

namespace ingot {
namespace {

TEST_CASE("target: the default is the two levels, least demanding first") {
  for (const char* text : {"cpu", "cpu:x86-64-v4,x86-64-v3"}) {
    const Result<TargetFamily> family = ParseTarget(text);
    REQUIRE(family.ok());
    REQUIRE(family->variants.size() == 2);
    const Target& v3 = family->variants[0];
    const Target& v4 = family->variants[1];
    CHECK(v3.name == "x86-64-v3");
    CHECK(v3.required_features == CpuFeatures::Level(3).bits);
    CHECK(v3.vector_bits == 256);
    CHECK(v3.num_vector_registers == 16);
    CHECK(v3.vector_lanes(32) == 8);
    CHECK(std::find(v3.llvm_features.begin(), v3.llvm_features.end(), "+avx2") != v3.llvm_features.end());
    CHECK(std::find(v3.llvm_features.begin(), v3.llvm_features.end(), "+avx512f") == v3.llvm_features.end());
    CHECK(v4.vector_bits == 512);
    CHECK(v4.num_vector_registers == 32);
  }
}

TEST_CASE("target: a model with a feature added") {
  const Result<TargetFamily> family = ParseTarget("cpu:tigerlake,+avx512bf16");
  REQUIRE(family.ok());
  REQUIRE(family->variants.size() == 1);
  const Target& target = family->variants[0];
  CHECK(target.name == "tigerlake,+avx512bf16");
  CHECK(CpuFeatures{target.required_features}.Has(CpuFeature::kAvx512bf16));
  CHECK(CpuFeatures{target.required_features}.Covers(CpuFeatures::Level(4)));
}

TEST_CASE("target: aarch64 has Neon's registers, and stands beside x86-64 in one family") {
  const Result<TargetFamily> family = ParseTarget("cpu:x86-64-v3,aarch64,neoverse-v1,aarch64,+dotprod");
  REQUIRE(family.ok());
  REQUIRE(family->variants.size() == 4);
  const Target& base = family->variants[0];
  CHECK(base.name == "aarch64");
  CHECK(base.triple == "aarch64-unknown-linux-gnu");
  CHECK(base.llvm_features == std::vector<std::string>{"+neon"});
  CHECK(base.vector_bits == 128);
  CHECK(base.num_vector_registers == 32);
  CHECK(family->variants[1].name == "aarch64,+dotprod");
  CHECK(family->variants[2].name == "neoverse-v1");
  CHECK(family->variants[3].triple == "x86_64-unknown-linux-gnu");
}

TEST_CASE("target: several are one list of variants") {
  const auto join = [](std::vector<std::string> texts) { return JoinTargets(texts); };
  CHECK(join({"cpu"}).value() == "cpu");
  CHECK(join({"cpu:x86-64-v3", "cpu:aarch64,+dotprod"}).value() == "cpu:x86-64-v3,aarch64,+dotprod");
  const Result<TargetFamily> family = ParseTarget(join({"cpu:aarch64", "cpu"}).value());
  REQUIRE(family.ok());
  REQUIRE(family->variants.size() == 3);
  CHECK(family->variants[0].name == "aarch64");
  CHECK(family->variants[2].name == "x86-64-v4");
  CHECK(join({"cuda:sm_80", "cuda:sm_90,sm_86"}).value() == "cuda:sm_80,sm_86,sm_90");
  CHECK(join({"cpu:x86-64-v3", "cuda:sm_90"}).status().message().find("two kinds of devices") != std::string::npos);
  CHECK(join({"cpu:x86-64-v3", "cpu:+avx512bf16"}).status().message().find("follows no CPU") != std::string::npos);
}

TEST_CASE("target: native is this machine's features") {
  const Result<TargetFamily> family = ParseTarget("cpu:native");
  REQUIRE(family.ok());
  CHECK(family->variants[0].required_features == CpuFeatures::Detect().bits);
}

TEST_CASE("target: every listed name is known") {
  for (const std::string& name : ListTargets()) CHECK(ParseTarget(name).ok());
}

TEST_CASE("target: errors name the part and suggest") {
  const auto message = [](const char* text) { return ParseTarget(text).status().message(); };
  CHECK(message("cpu:x86-64-v5") == "target \"cpu:x86-64-v5\": unknown CPU \"x86-64-v5\"; did you mean \"x86-64-v2\"?");
  CHECK(message("cpu:tigerlike") == "target \"cpu:tigerlike\": unknown CPU \"tigerlike\"; did you mean \"tigerlake\"?");
  CHECK(message("cpu:haswell,+avx512fp61") ==
        "target \"cpu:haswell,+avx512fp61\": unknown CPU feature \"avx512fp61\"; "
        "did you mean \"avx512fp16\"?");
  CHECK(message("cpu:aarch64,+avx2").find("unknown CPU feature \"avx2\"") != std::string::npos);
  CHECK(message("cpu:haswell,+dotprod").find("unknown CPU feature \"dotprod\"") != std::string::npos);
  CHECK(message("cpux") == "target \"cpux\": unknown device family \"cpux\"; did you mean \"cpu\"?");
  CHECK(message("cpu:haswell,x86-64-v3") ==
        "target \"cpu:haswell,x86-64-v3\": variants \"haswell\" and \"x86-64-v3\" have the same features");
  CHECK(message("cpu:+avx2").find("follows no CPU") != std::string::npos);
  CHECK(message("cuda:sm_81").find("unknown CUDA architecture \"sm_81\"; did you mean") != std::string::npos);
  CHECK(message("cuda").find("unknown CUDA architecture \"\"") != std::string::npos);
  CHECK(message("cuda:sm_80,sm_80").find("named twice") != std::string::npos);
}

TEST_CASE("target: CUDA architectures come in their order, each with the lowest PTX that knows it") {
  const Result<TargetFamily> family = ParseTarget("cuda:sm_90,sm_80");
  REQUIRE(family.ok());
  CHECK((family->kind == Target::Kind::kCuda));
  REQUIRE(family->variants.size() == 2);
  CHECK(family->variants[0].name == "sm_80");
  CHECK(family->variants[0].triple == "nvptx64-nvidia-cuda");
  CHECK((family->variants[0].llvm_features == std::vector<std::string>{"+ptx70"}));
  CHECK((family->variants[1].llvm_features == std::vector<std::string>{"+ptx78"}));
  CHECK(FindCudaArch(family->variants[1])->max_shared_bytes == 227 << 10);
  CHECK(FindCudaArch(Target()) == nullptr);
  CHECK(CudaSharedBytes(family->variants[1]) == 99 << 10);
  // The one that runs on compute capability 9.0 alone is more special than the one that runs on later ones, too.
  const Result<TargetFamily> exact = ParseTarget("cuda:sm_90a,sm_80,sm_90");
  REQUIRE(exact.ok());
  REQUIRE(exact->variants.size() == 3);
  CHECK(exact->variants[1].name == "sm_90");
  CHECK(exact->variants[2].name == "sm_90a");
  CHECK((exact->variants[2].llvm_features == std::vector<std::string>{"+ptx80"}));
  CHECK(CudaSharedBytes(exact->variants[2]) == 227 << 10);
}

}  // namespace
}  // namespace ingot
