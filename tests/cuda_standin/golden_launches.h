// What a real GPU makes of the launches of tests. With INGOT_STANDIN_RECORD=FILE every launch that succeeds is written
// there: module, configuration, arguments, memory before and after. scripts/record_gpu_launches repeats them on a GPU and
// writes what comes out (data/launches_*.txt); with INGOT_STANDIN_GOLDEN=FILE the stand-in is held to that: a launch
// that leaves something else fails. Launches without a row are counted, and the numbers are printed at the end.
// Kernels whose names end in "_refused" are left out: ptxas and drivers crash at them, or take no such PTX.
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
  explicit GoldenLaunches(std::string record_path) : record_path_(std::move(record_path)) {}
  // Reads rows of data/launches_*.txt.
  Status AddRows(const std::string& text);

  // What a launch starts from. Its memory is kept where it is recorded.
  struct Before {
    std::string key;
    std::vector<MemoryBlock> blocks;
  };
  Before Take(const LaunchedKernel& launch, const DeviceMemory& memory) const;
  // Behind a launch that succeeded: records it and holds its results to those of the GPU.
  Status Check(const LaunchedKernel& launch, const Before& before, const DeviceMemory& after);

  int64_t held() const { return held_; }
  int64_t missing() const { return missing_; }

 private:
  // Elements where the GPU may have left something else than the stand-in.
  struct Row {
    std::string hash;
    std::string type;  // empty: none; "any": nothing is comparable
    double relative = 0, absolute = 0;
    std::vector<std::pair<int64_t, uint64_t>> values;  // position among the written bytes, bits
  };
  Status Compare(const Row& row, const LaunchedKernel& launch, const DeviceMemory& after) const;
  void Record(const LaunchedKernel& launch, const Before& before, const DeviceMemory& after) const;

  std::string record_path_;
  std::map<std::string, Row, std::less<>> rows_;
  int64_t held_ = 0, missing_ = 0;
};

}  // namespace ingot::ptx
