// Memory of the device: blocks at addresses that no host pointer has (they are not canonical, so that host code that
// follows one faults), with gaps between them. Each byte knows whether it was ever written, and each granule who read
// and wrote it last in the running launch.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "runtime/status.h"

namespace ingot::ptx {

// Who touched a granule of memory: threads as (block << 10 | thread), clocks as in executor.h. Two readers, so that one
// of them is another than the thread that writes next. A clock below the launch's first is nobody's.
struct AccessRecord {
  uint32_t writer, write_clock;
  uint32_t reader, read_clock;
  uint32_t other_reader, other_clock;
};

constexpr uint64_t kDeviceBase = 0x00d0'0000'0000'0000u;
constexpr uint64_t kSharedBase = 0x00d5'0000'0000'0000u;  // generic addresses of shared, local and parameter memory
constexpr uint64_t kLocalBase = 0x00d6'0000'0000'0000u;
constexpr uint64_t kParamBase = 0x00d7'0000'0000'0000u;
constexpr uint64_t kWindowBytes = uint64_t{1} << 32;

struct MemoryBlock {
  uint64_t address = 0;
  int64_t size_bytes = 0;
  bool is_constant = false;
  std::vector<uint8_t> data, written;              // written: one byte per byte
  std::vector<AccessRecord> records;               // made at the first checked access of a launch
  std::vector<uint8_t> saved_data, saved_written;  // before the launch, of a block that it wrote
  bool is_saved = false;
};

class DeviceMemory {
 public:
  explicit DeviceMemory(int64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  // Aligned to 512 bytes; zero bytes give an address, too.
  Result<uint64_t> Allocate(int64_t size_bytes);
  Status Free(uint64_t address);
  // The block that holds the address, or null.
  MemoryBlock* Find(uint64_t address) const;
  // The block that holds all of it; else a message that says why not.
  Result<MemoryBlock*> FindRange(uint64_t address, int64_t size_bytes) const;
  Status Write(uint64_t address, const void* from, int64_t size_bytes);
  // Bytes that nobody wrote are refused where `demand_written` is set.
  Status Read(void* to, uint64_t address, int64_t size_bytes, bool demand_written) const;
  Status Copy(uint64_t to, uint64_t from, int64_t size_bytes);

  int64_t live_bytes() const { return live_bytes_; }
  int64_t live_blocks() const { return static_cast<int64_t>(blocks_.size()); }
  int64_t capacity_bytes() const { return capacity_bytes_; }
  uint64_t generation() const { return generation_; }  // changes when a block goes
  const std::map<uint64_t, std::unique_ptr<MemoryBlock>>& blocks() const { return blocks_; }

 private:
  int64_t capacity_bytes_, live_bytes_ = 0;
  uint64_t next_address_ = kDeviceBase, generation_ = 1;
  std::map<uint64_t, std::unique_ptr<MemoryBlock>> blocks_;
};

}  // namespace ingot::ptx
