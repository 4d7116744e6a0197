// What a real GPU makes of the launches of tests. With INGOT_STANDIN_RECORD=FILE every launch that succeeds is written
// there: module, configuration, arguments, memory before and after. scripts/record_gpu_launches repeats them on a GPU and
// writes what comes out (data/launches_*.txt); with INGOT_STANDIN_GOLDEN=FILE the stand-in is held to that.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/status.h"
#include "tests/cuda_standin/device_memory.h"
#include "tests/cuda_standin/executor.h"

namespace ingot::ptx {

struct LaunchedKernel {
  std::string_view module_text, kernel;
  const LaunchConfig& config;
  const std::vector<std::vector<uint8_t>>& arguments;
  const std::map<std::string, uint64_t>& variables;  // .global and .const ones of the module
};

class GoldenLaunches {
 public:
  // The one of the environment; null where it names no file.
  static GoldenLaunches* Get();

  // Memory before the launch.
  using Snapshot = std::vector<MemoryBlock>;
  static Snapshot Take(const DeviceMemory& memory);
  // Behind a launch that succeeded: records it, or holds its results to those of the GPU.
  Status Check(const LaunchedKernel& launch, const Snapshot& before, const DeviceMemory& after);

 private:
  void Record(const LaunchedKernel& launch, const std::string& key, const Snapshot& before,
              const DeviceMemory& after) const;

  std::string record_path_;
};

}  // namespace ingot::ptx
