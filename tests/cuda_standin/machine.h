// A GPU that is not there: memory, modules of PTX, launches that are checked. Tests link it, or load libcuda.so.1 of
// this folder, which is a thin layer over it.
//
//   ptx::Machine machine({.sm = 80});
//   const ptx::ModuleId module = machine.LoadModule(text).value();
//   const uint64_t x = machine.Allocate(bytes).value();
//   machine.Write(x, host, bytes);
//   machine.Launch(module, "kernel", {.grid = {8, 1, 1}, .block = {128, 1, 1}}, ptx::Arguments().Add(x).Add(n))
//   machine.Read(host, x, bytes);
//
// A launch runs once per order of warps, each time from the same memory, and fails where the memory that it leaves
// differs, unless it made float atomics.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/status.h"
#include "tests/cuda_standin/device_memory.h"
#include "tests/cuda_standin/executor.h"

namespace ingot::ptx {

struct MachineOptions {
  int sm = 80;  // 80, 86, 89, 90, 100, 120: limits, and which modules it takes
  int64_t memory_bytes = int64_t{4} << 30;
  std::vector<WarpOrder> orders = {WarpOrder::kLowestFirst, WarpOrder::kHighestFirst, WarpOrder::kRandom};
  uint64_t seed = 1;
  bool check_races = true;                       // in the first order
  bool count_accesses = false;                   // sectors and bank conflicts, in the first order
  int64_t instruction_limit = int64_t{1} << 36;  // of warps in one launch: more is "runs without end"
};

// The limits of an architecture that a launch must keep.
struct ArchitectureLimits {
  int sm;
  int64_t threads_per_block, shared_bytes_default, shared_bytes_optin, shared_bytes_per_sm, registers_per_block;
  int64_t multiprocessors;
};
const ArchitectureLimits* LimitsOf(int sm);

// The parameters of a kernel, laid out as PTX aligns them.
class Arguments {
 public:
  template <typename T>
  Arguments& Add(T value) {
    bytes_.emplace_back(sizeof(T));
    std::memcpy(bytes_.back().data(), &value, sizeof(T));
    return *this;
  }
  Arguments& AddBytes(const void* data, int64_t size_bytes) {
    const auto* bytes = static_cast<const uint8_t*>(data);
    bytes_.emplace_back(bytes, bytes + size_bytes);
    return *this;
  }
  const std::vector<std::vector<uint8_t>>& values() const { return bytes_; }

 private:
  std::vector<std::vector<uint8_t>> bytes_;
};

using ModuleId = int;

struct KernelFacts {
  std::string name;
  std::vector<int64_t> param_sizes;
  int64_t static_shared_bytes = 0, local_bytes = 0;
  int64_t max_threads = 0;         // per block
  int64_t num_blocks = 0;          // basic blocks
  std::vector<int> lines_not_run;  // first lines of the basic blocks that no launch has run
};

class Machine {
 public:
  explicit Machine(MachineOptions options = {});
  ~Machine();
  Machine(const Machine&) = delete;

  const MachineOptions& options() const { return options_; }
  const ArchitectureLimits& limits() const { return *limits_; }

  Result<ModuleId> LoadModule(std::string_view text);
  Status UnloadModule(ModuleId module);
  // Names of the kernels of a module; not_found of a module or kernel that is none.
  Result<std::vector<std::string>> Kernels(ModuleId module) const;
  Result<KernelFacts> Facts(ModuleId module, std::string_view kernel) const;
  // Address and size of a .global or .const variable.
  Result<std::pair<uint64_t, int64_t>> Variable(ModuleId module, std::string_view name) const;

  Result<uint64_t> Allocate(int64_t size_bytes) { return memory_.Allocate(size_bytes); }
  Status Free(uint64_t address) { return memory_.Free(address); }
  Status Write(uint64_t to, const void* from, int64_t size_bytes) { return memory_.Write(to, from, size_bytes); }
  Status Read(void* to, uint64_t from, int64_t size_bytes, bool demand_written = true) const {
    return memory_.Read(to, from, size_bytes, demand_written);
  }
  DeviceMemory& memory() { return memory_; }

  // Shared memory above the default needs `max_dynamic_shared` (cuFuncSetAttribute).
  Result<LaunchCounts> Launch(ModuleId module, std::string_view kernel, const LaunchConfig& config,
                              const Arguments& arguments, int64_t max_dynamic_shared = -1);

 private:
  struct LoadedModule;
  LoadedModule* Find(ModuleId module) const;
  Status CheckLaunch(const LoadedModule& module, const Program& program, const LaunchConfig& config,
                     const Arguments& arguments, int64_t max_dynamic_shared) const;

  MachineOptions options_;
  const ArchitectureLimits* limits_;
  DeviceMemory memory_;
  std::vector<std::unique_ptr<LoadedModule>> modules_;
  uint32_t clock_ = 1;
};

}  // namespace ingot::ptx
