// Detection of CPU features (cpuid and xgetbv on x86-64, the auxiliary vector on aarch64), x86-64 levels, and the text
// form. All of it comes from the rows of cpu_features.def.
#include "runtime/cpu_features.h"

#include <cerrno>
#include <cstring>
#include <iterator>

#include "runtime/check.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace ingot {
namespace {

struct FeatureRow {
  CpuFeature feature;
  const char* name;
};
constexpr FeatureRow kFeatures[] = {
#define INGOT_CPU_FEATURE(number, id, name, leaf, subleaf, reg, bit, state) {CpuFeature::k##id, name},
#define INGOT_ARM_FEATURE(number, id, name, word, bit) {CpuFeature::k##id, name},
#include "runtime/cpu_features.def"
};

struct LevelRow {
  int level;
  CpuFeature feature;
};
constexpr LevelRow kLevelFeatures[] = {
#define INGOT_CPU_LEVEL_FEATURE(level, id) {level, CpuFeature::k##id},
#include "runtime/cpu_features.def"
};

constexpr std::string_view kLevelPrefix = "x86-64-v";
constexpr std::string_view kAarch64 = "aarch64";

}  // namespace

#if defined(__x86_64__)

namespace {

// Bits of XCR0: which register state the operating system saves.
enum XcrState : uint64_t { none = 0, ymm = 0x6, zmm = 0xe6, tile = 0x60000 };

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// Reads each cpuid leaf only once: under a hypervisor every read traps and takes microseconds.
class CpuidLeaves {
 public:
  // All zero where the leaf or subleaf does not exist.
  Registers Read(unsigned leaf, unsigned subleaf) {
    Entry* entry = entries_;
    while (entry != end_ && (entry->leaf != leaf || entry->subleaf != subleaf)) ++entry;
    if (entry == end_) {
      INGOT_CHECK(end_ != std::end(entries_));
      Registers r;
      // Leaf 7 counts its subleaves in eax of the first.
      if ((leaf == 7 && subleaf > 0 && subleaf > Read(7, 0).eax) ||
          !__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx)) {
        r = Registers();
      }
      entry = end_++;
      *entry = {leaf, subleaf, r};
    }
    return entry->registers;
  }

 private:
  struct Entry {
    unsigned leaf, subleaf;
    Registers registers;
  };
  Entry entries_[8];
  Entry* end_ = entries_;
};

uint64_t SavedStates(CpuidLeaves& leaves) {
  constexpr unsigned kOsXsave = 1u << 27;
  if ((leaves.Read(1, 0).ecx & kOsXsave) == 0) return 0;
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

}  // namespace

CpuFeatures CpuFeatures::Detect() {
  CpuidLeaves leaves;
  const uint64_t saved = SavedStates(leaves);
  CpuFeatures features;
#define INGOT_CPU_FEATURE(number, id, name, leaf, subleaf, reg, bit, state)               \
  if ((leaves.Read(leaf, subleaf).reg >> (bit)&1) != 0 && (saved & (state)) == (state)) { \
    features = features.With(CpuFeature::k##id);                                          \
  }
#include "runtime/cpu_features.def"
  return features;
}

Status RequestAmxPermission() {
  constexpr long kArchReqXcompPerm = 0x1023;
  constexpr long kXfeatureXtiledata = 18;
  if (syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0) return Status();
  return Status(StatusCode::kUnsupportedFile, {"the kernel does not permit AMX: ", std::strerror(errno)});
}

#else

CpuFeatures CpuFeatures::Detect() {
  CpuFeatures features;
#if defined(__aarch64__)
  const uint64_t hwcap = getauxval(AT_HWCAP), hwcap2 = getauxval(AT_HWCAP2);
#define INGOT_ARM_FEATURE(number, id, name, word, bit) \
  if ((word >> (bit)&1) != 0) features = features.With(CpuFeature::k##id);
#include "runtime/cpu_features.def"
#endif
  return features;
}

Status RequestAmxPermission() { return Status(StatusCode::kUnsupportedFile, "AMX exists on x86-64 only"); }

#endif

CpuFeatures CpuFeatures::AllOfAarch64() {
  CpuFeatures features;
#define INGOT_ARM_FEATURE(number, id, name, word, bit) features = features.With(CpuFeature::k##id);
#include "runtime/cpu_features.def"
  return features;
}

CpuFeatures CpuFeatures::Level(int level) {
  CpuFeatures features;
  for (const LevelRow& row : kLevelFeatures) {
    if (row.level <= level) features = features.With(row.feature);
  }
  return features;
}

CpuFeatures CpuFeatures::AllKnown() {
  CpuFeatures features;
  for (const FeatureRow& row : kFeatures) features = features.With(row.feature);
  return features;
}

Result<CpuFeatures> CpuFeatures::Parse(std::string_view text) {
  CpuFeatures features;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    std::string_view name = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    if (name.starts_with('+')) name.remove_prefix(1);
    if (name.size() == kLevelPrefix.size() + 1 && name.starts_with(kLevelPrefix) && name.back() >= '1' &&
        name.back() <= '4') {
      features.bits |= Level(name.back() - '0').bits;
      continue;
    }
    if (name == kAarch64) {
      features = features.With(CpuFeature::kNeon);
      continue;
    }
    bool found = false;
    for (const FeatureRow& row : kFeatures) {
      if (name != row.name) continue;
      features = features.With(row.feature);
      found = true;
    }
    if (!found) {
      return Status(StatusCode::kInvalidArgument,
                    {"unknown CPU feature \"", name.substr(0, 40),
                     "\", expected x86-64-v1 to -v4, aarch64, or LLVM's names, such as avx2"});
    }
  }
  return features;
}

std::string CpuFeatures::ToString() const {
  std::string text;
  for (int bit = 0; bit < 64; ++bit) {
    const auto feature = static_cast<CpuFeature>(bit);
    if (!Has(feature)) continue;
    if (!text.empty()) text += ',';
    const char* name = CpuFeatureName(feature);
    text += name != nullptr ? name : StrCat({"bit", bit});
  }
  return text;
}

int CpuFeatures::HighestLevel() const {
  int level = 1;
  while (level < 4 && Covers(Level(level + 1))) ++level;
  return level;
}

const char* CpuFeatureName(CpuFeature feature) {
  for (const FeatureRow& row : kFeatures) {
    if (row.feature == feature) return row.name;
  }
  return nullptr;
}

}  // namespace ingot
