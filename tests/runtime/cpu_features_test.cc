#include "runtime/cpu_features.h"

#include <doctest/doctest.h>

#include <bit>
#include <fstream>
#include <sstream>

namespace ingot {
namespace {

TEST_CASE("levels contain each other") {
  CHECK(CpuFeatures::Level(1).bits == 0);
  for (int level = 2; level <= 4; ++level) {
    CHECK(CpuFeatures::Level(level).Covers(CpuFeatures::Level(level - 1)));
    CHECK_FALSE(CpuFeatures::Level(level - 1).Covers(CpuFeatures::Level(level)));
    CHECK(CpuFeatures::Level(level).HighestLevel() == level);
  }
  CHECK(CpuFeatures::Level(3).Has(CpuFeature::kFma));
  CHECK_FALSE(CpuFeatures::Level(3).Has(CpuFeature::kAvx512f));
}

TEST_CASE("the numbers of the file format stay") {
  CHECK(static_cast<int>(CpuFeature::kSse3) == 0);
  CHECK(static_cast<int>(CpuFeature::kAvx2) == 8);
  CHECK(static_cast<int>(CpuFeature::kAvx512f) == 16);
  CHECK(static_cast<int>(CpuFeature::kAmxFp16) == 37);
  CHECK(CpuFeatures::Level(3).bits == 0xffff);
  CHECK(CpuFeatures::Level(4).bits == 0x1fffff);
  CHECK(static_cast<int>(CpuFeature::kNeon) == 38);
  CHECK(CpuFeatures::AllOfAarch64().bits == uint64_t{0x1f} << 38);
}

TEST_CASE("names print and parse back") {
  CHECK(CpuFeatures::Parse("x86-64-v3,+avx512f").value() == CpuFeatures::Level(3).With(CpuFeature::kAvx512f));
  CHECK(CpuFeatures::Parse("avx2,fma").value().ToString() == "avx2,fma");
  const CpuFeatures all = CpuFeatures::AllKnown();
  CHECK(CpuFeatures::Parse(all.ToString()).value() == all);
  CHECK(CpuFeatures{uint64_t{1} << 63}.ToString() == "bit63");
  CHECK(CpuFeatures::Parse("aarch64,+dotprod").value().ToString() == "neon,dotprod");
  CHECK_FALSE(CpuFeatures::Parse("avx3").ok());
  CHECK_FALSE(CpuFeatures::Parse("x86-64-v5").ok());
  CHECK_FALSE(CpuFeatures::Parse("avx2,,fma").ok());
  CHECK_FALSE(all.Covers(CpuFeatures{uint64_t{1} << 63}));
}

TEST_CASE("detection agrees with what Linux says") {
#if defined(__x86_64__)
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line, flags;
  while (std::getline(cpuinfo, line)) {
    if (line.starts_with("flags")) flags = line + " ";
    if (!flags.empty()) break;
  }
  if (flags.empty()) {
    MESSAGE("SKIP: no /proc/cpuinfo");
    return;
  }
  const CpuFeatures host = CpuFeatures::Detect();
  const struct {
    CpuFeature feature;
    const char* flag;
  } rows[] = {{CpuFeature::kAvx2, " avx2 "},        {CpuFeature::kFma, " fma "},
              {CpuFeature::kF16c, " f16c "},        {CpuFeature::kBmi2, " bmi2 "},
              {CpuFeature::kAvx512f, " avx512f "},  {CpuFeature::kAvx512vnni, " avx512_vnni "},
              {CpuFeature::kAmxTile, " amx_tile "}, {CpuFeature::kSse41, " sse4_1 "},
              {CpuFeature::kMovbe, " movbe "},      {CpuFeature::kGfni, " gfni "}};
  for (const auto& row : rows) {
    CAPTURE(std::string(row.flag));
    CHECK(host.Has(row.feature) == (flags.find(row.flag) != std::string::npos));
  }
  const Status amx = RequestAmxPermission();
  if (host.Has(CpuFeature::kAmxTile)) CHECK(amx.ok());
#elif defined(__aarch64__)
  CHECK(CpuFeatures::Detect().Has(CpuFeature::kNeon));
  CHECK(CpuFeatures::AllOfAarch64().Covers(CpuFeatures::Detect()));
#else
  CHECK(CpuFeatures::Detect() == CpuFeatures());
#endif
}

}  // namespace
}  // namespace ingot
