// Target names: the grammar of --target and the tables of levels and CPU models behind it. A model is a level plus
// features; what a name means is fixed here and depends on no compiler library and, "native" apart, on no machine.
#include "compiler/target/target.h"

#include <algorithm>
#include <bit>
#include <span>

#include "compiler/target/cuda.h"
#include "runtime/cpu_features.h"
#include "runtime/suggest.h"

namespace ingot {
namespace {

constexpr std::string_view kX86 = "x86_64";
constexpr std::string_view kArm = "aarch64";
#if defined(__aarch64__)
constexpr std::string_view kHost = kArm;
#else
constexpr std::string_view kHost = kX86;
#endif

// A CPU name: an x86-64 level (1 on other architectures) and what it has beyond it (comma-separated names of
// runtime/cpu_features.def). Models that have nothing of interest beyond another model are left out; every feature can
// be added by "+feature".
struct CpuModel {
  std::string_view name;
  std::string_view architecture;
  int level;
  std::string_view extra_features;
};
constexpr std::string_view kIceLake = "avx512vnni,avx512vbmi,avx512vbmi2,avx512ifma,avx512bitalg,avx512vpopcntdq,gfni";
constexpr CpuModel kModels[] = {
    {"x86-64-v2", kX86, 2, ""},
    {"x86-64-v3", kX86, 3, ""},
    {"x86-64-v4", kX86, 4, ""},
    {"haswell", kX86, 3, ""},
    {"znver3", kX86, 3, ""},
    {"alderlake", kX86, 3, "gfni,avxvnni"},
    {"skylake-avx512", kX86, 4, ""},
    {"cascadelake", kX86, 4, "avx512vnni"},
    {"cooperlake", kX86, 4, "avx512vnni,avx512bf16"},
    {"icelake-server", kX86, 4, kIceLake},
    {"tigerlake", kX86, 4, kIceLake},
    {"znver4", kX86, 4, "avx512vnni,avx512vbmi,avx512vbmi2,avx512ifma,avx512bitalg,avx512vpopcntdq,gfni,avx512bf16"},
    {"sapphirerapids", kX86, 4,
     "avx512vnni,avx512vbmi,avx512vbmi2,avx512ifma,avx512bitalg,avx512vpopcntdq,gfni,avx512bf16,avx512fp16,avxvnni,"
     "amx-tile,amx-int8,amx-bf16"},
    {"aarch64", kArm, 1, "neon"},
    {"cortex-a76", kArm, 1, "neon,dotprod,fullfp16"},
    {"neoverse-n1", kArm, 1, "neon,dotprod,fullfp16"},
    {"neoverse-v1", kArm, 1, "neon,dotprod,fullfp16,i8mm,bf16"},
};
constexpr std::string_view kNative = "native";
constexpr std::string_view kDefaultVariants = kHost == kX86 ? "x86-64-v3,x86-64-v4" : "aarch64";
constexpr std::string_view kDefaultByteProductVariants =
    kHost == kX86 ? "x86-64-v3,+avxvnni,x86-64-v4,+avx512vnni,x86-64-v4,+avx512vnni,+amx-tile,+amx-int8" : "";

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string Quoted(std::string_view text) { return "\"" + std::string(text.substr(0, 60)) + "\""; }

// Sets what follows from the features: the parts of the record that schedules read.
void CompleteRecord(Target& target) {
  const CpuFeatures features{target.required_features};
  const bool avx512 = features.Covers(CpuFeatures::Level(4));
  target.vector_bits = avx512 ? 512 : features.Has(CpuFeature::kAvx) ? 256 : 128;
  target.num_vector_registers = avx512 || features.Has(CpuFeature::kNeon) ? 32 : 16;
  target.l2_bytes = avx512 ? 1 << 20 : 512 << 10;
  constexpr int64_t kTileBytes = 8 << 10;  // what codegen/amx_products copies the last words to, and what goes with it
  target.max_stack_bytes = Target().max_stack_bytes - (target.has_amx() ? kTileBytes : 0);
  target.llvm_features.clear();
  const std::string names = features.ToString();
  for (std::string_view name : Split(names, ',')) {
    if (!name.empty()) target.llvm_features.push_back("+" + std::string(name));
  }
}

std::string TripleOf(std::string_view architecture) { return std::string(architecture) + "-unknown-linux-gnu"; }

Result<Target> ParseVariant(std::string_view name) {
  Target target;
  target.kind = Target::Kind::kCpu;
  target.name = name;
  if (name == kNative) {
    target.triple = TripleOf(kHost);
    target.required_features = CpuFeatures::Detect().bits;
    return target;
  }
  std::vector<std::string_view> known{kNative};
  for (const CpuModel& model : kModels) {
    known.push_back(model.name);
    if (model.name != name) continue;
    INGOT_ASSIGN_OR_RETURN(const CpuFeatures extra, CpuFeatures::Parse(model.extra_features));
    target.triple = TripleOf(model.architecture);
    target.required_features = CpuFeatures::Level(model.level).bits | extra.bits;
    return target;
  }
  return Status(StatusCode::kInvalidArgument, "unknown CPU " + Quoted(name) + DidYouMean(name, known));
}

Status AddFeature(Target& target, std::string_view item) {
  const std::string_view name = item.substr(1);
  const CpuFeatures arm = CpuFeatures::AllOfAarch64();
  const bool is_arm = CpuFeatures{target.required_features}.Has(CpuFeature::kNeon);
  const CpuFeatures all{is_arm ? arm.bits : CpuFeatures::AllKnown().bits & ~arm.bits};
  Result<CpuFeatures> feature = CpuFeatures::Parse(name);
  if (!feature.ok() || name.empty() || !all.Covers(*feature)) {
    return Status(StatusCode::kInvalidArgument,
                  "unknown CPU feature " + Quoted(name) + DidYouMean(name, Split(all.ToString(), ',')));
  }
  target.required_features |= feature->bits;
  target.name += "," + std::string(item);
  return Status();
}

Result<TargetFamily> ParseCpu(std::string_view text) {
  TargetFamily family;
  family.kind = Target::Kind::kCpu;
  for (std::string_view item : Split(text, ',')) {
    if (item.starts_with('+')) {
      if (family.variants.empty()) {
        return Status(
            StatusCode::kInvalidArgument,
            "feature " + Quoted(item) + " follows no CPU; expected such as cpu:x86-64-v3," + std::string(item));
      }
      INGOT_RETURN_IF_ERROR(AddFeature(family.variants.back(), item));
      continue;
    }
    INGOT_ASSIGN_OR_RETURN(Target target, ParseVariant(item));
    family.variants.push_back(std::move(target));
  }
  for (Target& target : family.variants) CompleteRecord(target);
  std::stable_sort(family.variants.begin(), family.variants.end(), [](const Target& a, const Target& b) {
    return std::popcount(a.required_features) < std::popcount(b.required_features);
  });
  for (size_t i = 1; i < family.variants.size(); ++i) {
    const Target& before = family.variants[i - 1];
    if (before.required_features == family.variants[i].required_features) {
      return Status(StatusCode::kInvalidArgument, "variants " + Quoted(before.name) + " and " +
                                                      Quoted(family.variants[i].name) + " have the same features");
    }
  }
  return family;
}

}  // namespace

bool Target::has_amx() const {
  const CpuFeatures features{required_features};
  return kind == Kind::kCpu && features.Has(CpuFeature::kAmxTile) && features.Has(CpuFeature::kAmxInt8);
}

Result<TargetFamily> ParseTarget(std::string_view text) {
  const auto error = [&](const Status& status) {
    return Status(status.code(), "target " + Quoted(text) + ": " + status.message());
  };
  const size_t colon = text.find(':');
  const std::string_view family = text.substr(0, colon);
  if (family == "cpu") {
    const bool is_default = colon == std::string_view::npos;
    Result<TargetFamily> parsed = ParseCpu(is_default ? kDefaultVariants : text.substr(colon + 1));
    if (!parsed.ok()) return error(parsed.status());
    if (is_default && !kDefaultByteProductVariants.empty()) {
      INGOT_ASSIGN_OR_RETURN(TargetFamily of_bytes, ParseCpu(kDefaultByteProductVariants));
      parsed->byte_product_variants = std::move(of_bytes.variants);
    }
    return parsed;
  }
  if (family == "cuda") {
    const std::string_view architectures = colon == std::string_view::npos ? "" : text.substr(colon + 1);
    Result<TargetFamily> parsed = ParseCuda(architectures);
    if (!parsed.ok()) return error(parsed.status());
    return parsed;
  }
  constexpr std::string_view kFamilies[] = {"cpu", "cuda"};
  return error(
      Status(StatusCode::kInvalidArgument, "unknown device family " + Quoted(family) + DidYouMean(family, kFamilies)));
}

std::vector<std::string> ListTargets() {
  std::vector<std::string> names{"cpu", "cpu:native"};
  for (const CpuModel& model : kModels) names.push_back("cpu:" + std::string(model.name));
  for (const std::string& name : ListCudaArchs()) names.push_back("cuda:" + name);
  return names;
}

}  // namespace ingot
