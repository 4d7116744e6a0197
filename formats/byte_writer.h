// ByteWriter: writes what ByteReader reads. It appends to a growing buffer; little-endian on any host.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/check.h"

namespace ingot::formats {

class ByteWriter {
 public:
  void U8(uint8_t value) { Fixed(value); }
  void U16(uint16_t value) { Fixed(value); }
  void U32(uint32_t value) { Fixed(value); }
  void U64(uint64_t value) { Fixed(value); }
  void I64(int64_t value) { Fixed(static_cast<uint64_t>(value)); }
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) U8(static_cast<uint8_t>(value | 0x80));
    U8(static_cast<uint8_t>(value));
  }
  void SignedVarint(int64_t value) {
    const auto bits = static_cast<uint64_t>(value);
    Varint(bits << 1 ^ (value < 0 ? ~uint64_t{0} : 0));
  }
  void Bytes(std::span<const std::byte> bytes) { buffer_.insert(buffer_.end(), bytes.begin(), bytes.end()); }
  // A varint length and the text.
  void String(std::string_view text) {
    Varint(text.size());
    Bytes(std::as_bytes(std::span<const char>(text.data(), text.size())));
  }
  void Zeros(uint64_t count) { buffer_.resize(buffer_.size() + count); }
  // Zeros up to the next multiple of `alignment` bytes, a power of two.
  void AlignTo(uint64_t alignment) { Zeros((alignment - buffer_.size() % alignment) % alignment); }
  // Overwrites eight bytes that were written before.
  void PatchU64(uint64_t offset, uint64_t value) {
    INGOT_CHECK(offset <= buffer_.size() && buffer_.size() - offset >= 8);
    for (int i = 0; i < 8; ++i) buffer_[offset + i] = static_cast<std::byte>(value >> (8 * i));
  }

  uint64_t size() const { return buffer_.size(); }
  std::span<const std::byte> bytes() const { return buffer_; }
  std::vector<std::byte> Take() { return std::exchange(buffer_, {}); }

 private:
  template <typename T>
  void Fixed(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) buffer_.push_back(static_cast<std::byte>(value >> (8 * i)));
  }

  std::vector<std::byte> buffer_;
};

}  // namespace ingot::formats
