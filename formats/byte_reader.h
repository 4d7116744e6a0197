// ByteReader: the one way in which raw file bytes are read. Little-endian, bounds-checked by subtraction, on any host;
// an error names what was read, the offset, and how many bytes were there. It borrows the bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/status.h"

namespace ingot::formats {

class ByteReader {
 public:
  // `what` names the bytes in errors, such as "header"; both must outlive the reader. Errors have this code.
  ByteReader(std::span<const std::byte> bytes, std::string_view what, StatusCode code = StatusCode::kCorrupt)
      : bytes_(bytes), what_(what), code_(code) {}

  uint64_t offset() const { return offset_; }
  uint64_t remaining() const { return bytes_.size() - offset_; }
  bool at_end() const { return remaining() == 0; }

  Result<uint8_t> U8() { return Fixed<uint8_t>(); }
  Result<uint16_t> U16() { return Fixed<uint16_t>(); }
  Result<uint32_t> U32() { return Fixed<uint32_t>(); }
  Result<uint64_t> U64() { return Fixed<uint64_t>(); }
  Result<int64_t> I64() { return FixedSigned(); }
  Result<uint16_t> U16BigEndian();

  // Unsigned LEB128: seven bits per byte, low first; at most 10 bytes and no superfluous zero byte, so that every
  // value has one encoding.
  Result<uint64_t> Varint();
  // Zigzag: 0, -1, 1, -2, ... are 0, 1, 2, 3, ...
  Result<int64_t> SignedVarint();
  // A varint that must not exceed max, for enums, indexes and small counts.
  Result<uint64_t> VarintUpTo(uint64_t max);
  // A varint that counts items of at least item_bytes (>= 1) bytes each, all still to come: refuses more than can be
  // there, so that a count may size an allocation.
  Result<uint64_t> Count(uint64_t item_bytes);

  Result<std::span<const std::byte>> Bytes(uint64_t size);
  // A varint length and that many bytes. Not checked for UTF-8.
  Result<std::string_view> String();
  Status Skip(uint64_t size) { return Bytes(size).status(); }
  // The bytes [offset, offset + size) of the whole, wherever the reader stands.
  Result<std::span<const std::byte>> Slice(uint64_t offset, uint64_t size) const;
  // Moves to an offset of the whole.
  Status Seek(uint64_t offset);
  // Refuses bytes that are left.
  Status ExpectEnd() const;
  // A failure at the current offset: "header, offset 12: MESSAGE".
  Status Error(Text message) const;

 private:
  template <typename T>
  Result<T> Fixed() {
    if (remaining() < sizeof(T)) return Short(sizeof(T));
    T value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      value = static_cast<T>(value | static_cast<T>(static_cast<T>(bytes_[offset_ + i]) << (8 * i)));
    }
    offset_ += sizeof(T);
    return value;
  }
  Result<int64_t> FixedSigned() {
    INGOT_ASSIGN_OR_RETURN(const uint64_t bits, Fixed<uint64_t>());
    return static_cast<int64_t>(bits);
  }
  Status Short(uint64_t wanted) const;

  std::span<const std::byte> bytes_;
  std::string_view what_;
  StatusCode code_;
  uint64_t offset_ = 0;
};

// Undoes the zigzag encoding that SignedVarint describes.
inline int64_t FromZigzag(uint64_t bits) { return static_cast<int64_t>(bits >> 1 ^ (~(bits & 1) + 1)); }

// A text as bytes, and bytes as a text; neither copies.
inline std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}
inline std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace ingot::formats
