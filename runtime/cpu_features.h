// Sets of CPU features: what a kernel variant requires and what this machine offers. The bit numbers are part of the
// file format (cpu_features.def). On x86-64 detection asks cpuid and, for wide registers, whether the operating system
// saves them (xgetbv); on aarch64 it asks Linux (the auxiliary vector).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/status.h"

namespace ingot {

enum class CpuFeature : uint8_t {
#define INGOT_CPU_FEATURE(number, id, name, leaf, subleaf, reg, bit, state) k##id = number,
#define INGOT_ARM_FEATURE(number, id, name, word, bit) k##id = number,
#include "runtime/cpu_features.def"
};

struct CpuFeatures {
  uint64_t bits = 0;

  constexpr bool Has(CpuFeature feature) const { return (bits >> static_cast<int>(feature) & 1) != 0; }
  constexpr CpuFeatures With(CpuFeature feature) const { return {bits | uint64_t{1} << static_cast<int>(feature)}; }
  constexpr CpuFeatures Without(CpuFeature feature) const {
    return {bits & ~(uint64_t{1} << static_cast<int>(feature))};
  }
  // True when a machine with these features runs code that needs `required`. Unknown bits are never covered by
  // detection, so code from a newer compiler is refused rather than tried.
  constexpr bool Covers(CpuFeatures required) const { return (required.bits & ~bits) == 0; }

  // The features that this machine and its operating system offer.
  static CpuFeatures Detect();
  // The feature set of x86-64-v1 (empty), -v2, -v3 or -v4.
  static CpuFeatures Level(int level);
  // "x86-64-v3", "aarch64" (Neon), or LLVM's feature names, joined by ',' ("+avx2", too); errors name the unknown one.
  static Result<CpuFeatures> Parse(std::string_view text);
  // All features that have a name.
  static CpuFeatures AllKnown();
  // All features of aarch64 that have a name.
  static CpuFeatures AllOfAarch64();
  // LLVM's names in the order of their numbers, joined by ','; "bit63" for bits without a name.
  std::string ToString() const;
  // The highest x86-64-v level that these features cover.
  int HighestLevel() const;

  friend constexpr bool operator==(CpuFeatures, CpuFeatures) = default;
};

const char* CpuFeatureName(CpuFeature feature);

// Asks Linux to let this process use AMX tiles; needed once before the first such kernel runs. Thread-safe.
Status RequestAmxPermission();

}  // namespace ingot
