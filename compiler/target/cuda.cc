// The table of architectures. Drivers refuse PTX that is newer than they are, so each row has the lowest version. The more
// special one of two that run on a device comes later.
#include "compiler/target/cuda.h"

#include <algorithm>
#include <iterator>

#include "runtime/suggest.h"

namespace ingot {
namespace {

constexpr CudaArch kArchs[] = {
    {"sm_80", "+ptx70", 163 << 10},  //
    {"sm_86", "+ptx71", 99 << 10},   //
    {"sm_87", "+ptx74", 163 << 10},  //
    {"sm_89", "+ptx78", 99 << 10},   //
    {"sm_90", "+ptx78", 227 << 10},  //
    {"sm_90a", "+ptx80", 227 << 10, /*is_exact=*/true},
};

Target RecordOf(const CudaArch& arch) {
  Target target;
  target.kind = Target::Kind::kCuda;
  target.name = arch.name;
  target.triple = "nvptx64-nvidia-cuda";
  target.llvm_features = {std::string(arch.ptx)};
  target.vector_bits = 128;           // of one access
  target.num_vector_registers = 255;  // of 32 bits, for a thread
  target.max_stack_bytes = 16 << 10;  // of a thread's local memory
  return target;
}

}  // namespace

const CudaArch* FindCudaArch(const Target& target) {
  if (target.kind != Target::Kind::kCuda) return nullptr;
  const auto* found = std::ranges::find(kArchs, target.name, &CudaArch::name);
  return found == std::end(kArchs) ? nullptr : found;
}

int64_t CudaSharedBytes(const Target& target) {
  const CudaArch* arch = FindCudaArch(target);
  return arch != nullptr && arch->is_exact ? arch->max_shared_bytes : kCudaMostSharedBytes;
}

Result<TargetFamily> ParseCuda(std::string_view architectures) {
  std::vector<std::string_view> known, wanted;
  for (const CudaArch& arch : kArchs) known.push_back(arch.name);
  for (size_t begin = 0; begin <= architectures.size();) {
    const size_t end = std::min(architectures.find(',', begin), architectures.size());
    const std::string_view name = architectures.substr(begin, end - begin);
    const std::string quoted = "\"" + std::string(name.substr(0, 60)) + "\"";
    if (std::ranges::find(known, name) == known.end()) {
      return Status(StatusCode::kInvalidArgument, "unknown CUDA architecture " + quoted + DidYouMean(name, known));
    }
    if (std::ranges::find(wanted, name) != wanted.end()) {
      return Status(StatusCode::kInvalidArgument, "CUDA architecture " + quoted + " is named twice");
    }
    wanted.push_back(name);
    begin = end + 1;
  }
  TargetFamily family;
  family.kind = Target::Kind::kCuda;
  for (const CudaArch& arch : kArchs) {
    if (std::ranges::find(wanted, arch.name) != wanted.end()) family.variants.push_back(RecordOf(arch));
  }
  return family;
}

std::vector<std::string> ListCudaArchs() {
  std::vector<std::string> names;
  for (const CudaArch& arch : kArchs) names.emplace_back(arch.name);
  return names;
}

}  // namespace ingot
