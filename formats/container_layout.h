// Offsets, sizes and magic bytes of a container, shared by its reader and its writer alone. formats/README.md describes
// them.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace ingot::formats {

// The magic holds a byte above 127 and both kinds of line ends, so that a transfer in text mode damages it visibly.
inline constexpr std::array<uint8_t, 8> kHeaderMagic = {0x89, 'I', 'N', 'G', 'O', 'T', '\r', '\n'};
inline constexpr std::array<uint8_t, 8> kTrailerMagic = {'I', 'N', 'G', 'O', 'T', 'E', 'N', 'D'};
inline constexpr uint64_t kTrailerAlignment = 8;
inline constexpr uint64_t kTableHashOffset = 32;
inline constexpr uint64_t kSectionHashOffset = 32;  // in a section's entry
inline constexpr uint64_t kSectionNameBytes = 16;
inline constexpr uint16_t kSectionRequired = 1;  // bit of a section's flags

inline constexpr uint64_t AlignUp(uint64_t offset, uint64_t alignment) {
  return (offset + (alignment - 1)) & ~(alignment - 1);
}

// XXH3-64 of the header, with its hash field as zero, and the table. The bytes must be there.
uint64_t HashTable(std::span<const std::byte> container, uint64_t num_sections);

}  // namespace ingot::formats
