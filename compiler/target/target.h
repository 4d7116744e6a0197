// Target record: what schedules, layouts and code generation know of the machine that will run the file. Everything is
// explicit; nothing is read from the compiling host unless "native" is asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/status.h"

namespace ingot {

struct Target {
  enum class Kind : uint8_t { kCpu, kCuda };
  Kind kind = Kind::kCpu;
  std::string name = "x86-64-v3";  // as on the command line, after "cpu:" or "cuda:"
  std::string triple = "x86_64-unknown-linux-gnu";
  std::vector<std::string> llvm_features;  // "+avx2", ...; a level is spelled out
  uint64_t required_features = 0;          // bits of runtime/cpu_features.h that a variant needs
  int vector_bits = 256;
  int num_vector_registers = 16;
  int fma_ports = 2;
  int64_t l1_bytes = 32 << 10;
  int64_t l2_bytes = 512 << 10;        // per core
  int64_t l3_bytes = 4 << 20;          // per core
  int64_t max_stack_bytes = 48 << 10;  // of a kernel's local buffers; the ABI's limit is 64 KiB for everything

  int vector_lanes(int bits) const { return vector_bits / bits; }
  bool has_amx() const;  // tile instructions for products of bytes
};

// One program of the file: a device family and the CPU feature sets (or CUDA architectures) that its kernels are made
// for. Layouts, packed weights, plans and bytecode are shared by all variants.
struct TargetFamily {
  Target::Kind kind = Target::Kind::kCpu;
  std::vector<Target> variants;  // from the least to the most demanding
  // The same for kernels that multiply bytes (T.dot_bytes) alone, for which CPUs have instructions of their own; one with
  // AMX is for those alone that multiply by a weight in panels.
  std::vector<Target> byte_product_variants;
};
// The grammar of --target: "cpu" alone (the default variants, byte_product_variants among them), or "cpu:" and a
// comma-separated list of CPU names (ListTargets; "native" is this machine), each of which may be followed by features
// to add: "cpu:x86-64-v3,+name".
// Variants must differ in features. Or "cuda:" and a list of architectures (cuda.h). Errors suggest the nearest name.
Result<TargetFamily> ParseTarget(std::string_view text);
// Names that ParseTarget knows, for --list-targets.
std::vector<std::string> ListTargets();

}  // namespace ingot
