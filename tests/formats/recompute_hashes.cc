#include "tests/formats/recompute_hashes.h"

#include <xxhash.h>

#include <algorithm>
#include <cstdint>

#include "formats/byte_reader.h"
#include "formats/container.h"
#include "formats/container_layout.h"

namespace ingot::test {
namespace {

uint64_t Get(std::span<const std::byte> bytes, uint64_t offset) {
  formats::ByteReader reader(bytes, "container");
  if (!reader.Seek(offset).ok()) return 0;
  return reader.U64().value();
}

void Put(std::span<std::byte> bytes, uint64_t offset, uint64_t value) {
  for (int i = 0; i < 8; ++i) bytes[offset + i] = static_cast<std::byte>(value >> (8 * i));
}

}  // namespace

void RecomputeContainerHashes(std::span<std::byte> container) {
  using namespace formats;  // NOLINT: constants of the layout
  if (container.size() < kHeaderBytes) return;
  const uint64_t room = (container.size() - kHeaderBytes) / kSectionEntryBytes;
  const uint64_t count = std::min<uint64_t>(Get(container, 8) >> 32, room);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t entry = kHeaderBytes + i * kSectionEntryBytes;
    const uint64_t offset = Get(container, entry + 8);
    const uint64_t size = Get(container, entry + 16);
    if (offset > container.size() || size > container.size() - offset) continue;
    Put(container, entry + kSectionHashOffset, XXH3_64bits(container.data() + offset, size));
  }
  Put(container, kTableHashOffset, HashTable(container, count));
}

}  // namespace ingot::test
