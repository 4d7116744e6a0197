// SHA-256 (FIPS 180-4): what trust policies compare and signatures cover, where XXH3 only finds accidents. It is
// implemented here and not taken from libsodium, because a build without libsodium still compares files with lists of
// allowed digests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ingot::formats {

using Sha256Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  void Update(std::span<const std::byte> bytes);
  // Once, at the end.
  Sha256Digest Finish();

 private:
  void Block(const std::byte* block);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> buffer_{};
  size_t buffered_ = 0;
  uint64_t size_bytes_ = 0;
};

Sha256Digest Sha256Of(std::span<const std::byte> bytes);

// Lower-case hexadecimal, and the way back: exactly two digits for each byte of `out`, of either case.
std::string ToHex(std::span<const uint8_t> bytes);
bool FromHex(std::string_view text, std::span<uint8_t> out);

}  // namespace ingot::formats
