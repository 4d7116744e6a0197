#include "tests/cuda_standin/device_memory.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace ingot::ptx {
namespace {

std::string Hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

Result<uint64_t> DeviceMemory::Allocate(int64_t size_bytes) {
  if (size_bytes < 0 || size_bytes > capacity_bytes_ - live_bytes_) {
    return Status::OutOfMemory(
        {"device memory: ", size_bytes, " bytes requested, ", capacity_bytes_ - live_bytes_, " free"});
  }
  auto block = std::make_unique<MemoryBlock>();
  block->address = next_address_;
  block->size_bytes = size_bytes;
  block->data.assign(static_cast<size_t>(size_bytes), 0xcd);
  block->written.assign(static_cast<size_t>(size_bytes), 0);
  const uint64_t address = next_address_;
  next_address_ += (static_cast<uint64_t>(size_bytes) + 4096 + 511) / 512 * 512;
  live_bytes_ += size_bytes;
  blocks_.emplace(address, std::move(block));
  return address;
}

Status DeviceMemory::Free(uint64_t address) {
  const auto found = blocks_.find(address);
  if (found == blocks_.end())
    return Status(StatusCode::kInvalidArgument, {"freed what was not allocated: ", Hex(address)});
  live_bytes_ -= found->second->size_bytes;
  blocks_.erase(found);
  ++generation_;
  return Status();
}

MemoryBlock* DeviceMemory::Find(uint64_t address) const {
  auto block = blocks_.upper_bound(address);
  if (block == blocks_.begin()) return nullptr;
  --block;
  return address - block->first < static_cast<uint64_t>(block->second->size_bytes) ? block->second.get() : nullptr;
}

Result<MemoryBlock*> DeviceMemory::FindRange(uint64_t address, int64_t size_bytes) const {
  if (address < kDeviceBase || address >= kSharedBase) {
    return Status(StatusCode::kInvalidArgument, {Hex(address), " is no address of device memory"});
  }
  auto block = blocks_.upper_bound(address);
  if (block != blocks_.begin()) {
    --block;
    MemoryBlock& found = *block->second;
    const uint64_t offset = address - found.address;
    const auto block_bytes = static_cast<uint64_t>(found.size_bytes);
    if (size_bytes >= 0 && offset <= block_bytes && static_cast<uint64_t>(size_bytes) <= block_bytes - offset)
      return &found;
    return Status(StatusCode::kInvalidArgument, {size_bytes, " bytes at ", Hex(address), ": byte ", offset,
                                                 " of a block of ", found.size_bytes, " bytes"});
  }
  return Status(StatusCode::kInvalidArgument, {size_bytes, " bytes at ", Hex(address), ": in no block"});
}

Status DeviceMemory::Write(uint64_t address, const void* from, int64_t size_bytes) {
  if (size_bytes == 0) return Status();
  INGOT_ASSIGN_OR_RETURN(MemoryBlock * block, FindRange(address, size_bytes));
  const uint64_t offset = address - block->address;
  std::memcpy(block->data.data() + offset, from, static_cast<size_t>(size_bytes));
  std::memset(block->written.data() + offset, 1, static_cast<size_t>(size_bytes));
  return Status();
}

Status DeviceMemory::Read(void* to, uint64_t address, int64_t size_bytes, bool demand_written) const {
  if (size_bytes == 0) return Status();
  INGOT_ASSIGN_OR_RETURN(MemoryBlock * block, FindRange(address, size_bytes));
  const auto offset = static_cast<int64_t>(address - block->address);
  if (demand_written) {
    const auto begin = block->written.begin() + offset;
    const auto hole = std::find(begin, begin + size_bytes, 0);
    if (hole != begin + size_bytes) {
      return Status(StatusCode::kFailed, {"byte ", hole - begin, " of ", size_bytes, " was never written"});
    }
  }
  std::memcpy(to, block->data.data() + offset, static_cast<size_t>(size_bytes));
  return Status();
}

Status DeviceMemory::Copy(uint64_t to, uint64_t from, int64_t size_bytes) {
  if (size_bytes == 0) return Status();
  INGOT_ASSIGN_OR_RETURN(MemoryBlock * source, FindRange(from, size_bytes));
  INGOT_ASSIGN_OR_RETURN(MemoryBlock * target, FindRange(to, size_bytes));
  const uint64_t at = from - source->address, into = to - target->address;
  std::memmove(target->data.data() + into, source->data.data() + at, static_cast<size_t>(size_bytes));
  std::memmove(target->written.data() + into, source->written.data() + at, static_cast<size_t>(size_bytes));
  return Status();
}

}  // namespace ingot::ptx
