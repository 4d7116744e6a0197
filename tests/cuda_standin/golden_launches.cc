#include "tests/cuda_standin/golden_launches.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>

#include "formats/sha256.h"

namespace ingot::ptx {
namespace {

// A block's number and the offset in it, for an argument that is an address.
struct Place {
  int64_t block, offset;
};
std::optional<Place> FindPlace(const GoldenLaunches::Snapshot& blocks, const std::vector<uint8_t>& argument) {
  uint64_t address = 0;
  if (argument.size() != sizeof(address)) return {};
  std::memcpy(&address, argument.data(), sizeof(address));
  for (size_t k = 0; k < blocks.size(); ++k) {
    if (address >= blocks[k].address && address - blocks[k].address <= static_cast<uint64_t>(blocks[k].size_bytes))
      return Place{static_cast<int64_t>(k), static_cast<int64_t>(address - blocks[k].address)};
  }
  return {};
}

std::span<const std::byte> BytesOf(const void* data, size_t size) {
  return {static_cast<const std::byte*>(data), size};
}

// What the launch starts from, whatever its addresses are.
std::string KeyOf(const LaunchedKernel& launch, const GoldenLaunches::Snapshot& before) {
  formats::Sha256 hash;
  const auto add = [&](const auto& values) { hash.Update(BytesOf(values.data(), values.size() * sizeof(values[0]))); };
  add(launch.module_text), add(launch.kernel);
  hash.Update(BytesOf(&launch.config, sizeof(launch.config)));
  for (const std::vector<uint8_t>& argument : launch.arguments) {
    if (const std::optional<Place> place = FindPlace(before, argument)) {
      hash.Update(BytesOf(&*place, sizeof(*place)));
    } else {
      add(argument);
    }
  }
  for (const MemoryBlock& block : before) {
    hash.Update(BytesOf(&block.size_bytes, sizeof(block.size_bytes)));
    add(block.data), add(block.written);
  }
  const formats::Sha256Digest digest = hash.Finish();
  return formats::ToHex(std::span(digest).first(8));
}

class Writer {
 public:
  explicit Writer(const std::string& path) : out_(path, std::ios::binary | std::ios::app) {}
  void Int(int64_t value) { out_.write(reinterpret_cast<const char*>(&value), sizeof(value)); }
  template <typename Bytes>
  void Blob(const Bytes& bytes) {
    Int(static_cast<int64_t>(bytes.size()));
    out_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::ofstream out_;
};

}  // namespace

GoldenLaunches* GoldenLaunches::Get() {
  static const std::unique_ptr<GoldenLaunches> instance = []() -> std::unique_ptr<GoldenLaunches> {
    const char* record = std::getenv("INGOT_STANDIN_RECORD");
    if (record == nullptr) return nullptr;
    auto created = std::make_unique<GoldenLaunches>();
    created->record_path_ = record;
    return created;
  }();
  return instance.get();
}

GoldenLaunches::Snapshot GoldenLaunches::Take(const DeviceMemory& memory) {
  Snapshot blocks;
  for (const auto& [address, block] : memory.blocks()) {
    MemoryBlock& copy = blocks.emplace_back();
    copy.address = address, copy.size_bytes = block->size_bytes, copy.is_constant = block->is_constant;
    copy.data = block->data, copy.written = block->written;
  }
  return blocks;
}

Status GoldenLaunches::Check(const LaunchedKernel& launch, const Snapshot& before, const DeviceMemory& after) {
  Record(launch, KeyOf(launch, before), before, after);
  return Status();
}

// As scripts/record_gpu_launches reads it: numbers of 64 bits, texts and bytes behind their length.
void GoldenLaunches::Record(const LaunchedKernel& launch, const std::string& key, const Snapshot& before,
                            const DeviceMemory& after) const {
  Writer out(record_path_);
  out.Blob(key), out.Blob(launch.module_text), out.Blob(launch.kernel);
  for (const int64_t extent : launch.config.grid) out.Int(extent);
  for (const int64_t extent : launch.config.block) out.Int(extent);
  out.Int(launch.config.shared_bytes);
  out.Int(static_cast<int64_t>(launch.arguments.size()));
  for (const std::vector<uint8_t>& argument : launch.arguments) {
    const std::optional<Place> place = FindPlace(before, argument);
    out.Int(place ? place->block : -1);
    out.Int(place ? place->offset : 0);
    out.Blob(argument);
  }
  out.Int(static_cast<int64_t>(before.size()));
  for (const MemoryBlock& block : before) {
    std::string variable;
    for (const auto& [name, address] : launch.variables) {
      if (address == block.address) variable = name;
    }
    const MemoryBlock* left = after.Find(block.address);
    out.Blob(variable);
    out.Int(block.is_constant ? 1 : 0);
    out.Blob(block.data), out.Blob(block.written), out.Blob(left->data), out.Blob(left->written);
  }
}

}  // namespace ingot::ptx
