// SharedBytes: a reference-counted, read-only span of bytes: a piece of a mapped file, of a buffer, or of static
// memory. Constants and kernel images travel in it from the importer to the file, and from the file to the kernels,
// without ever being copied. It does not know what the bytes mean.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace ingot {

struct SharedBytes {
  std::shared_ptr<const void> owner;  // keeps the bytes alive; null for static memory
  std::span<const std::byte> bytes;

  SharedBytes() = default;
  SharedBytes(std::shared_ptr<const void> o, std::span<const std::byte> b) : owner(std::move(o)), bytes(b) {}
  // Takes ownership of a buffer.
  static SharedBytes Own(std::vector<std::byte> buffer) {
    auto holder = std::make_shared<const std::vector<std::byte>>(std::move(buffer));
    std::span<const std::byte> view(*holder);
    return {std::move(holder), view};
  }
  const std::byte* data() const { return bytes.data(); }
  size_t size() const { return bytes.size(); }
};

}  // namespace ingot
