// XXH3-64, the hash of sections: it finds accidents and proves nothing about who wrote a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace ingot::formats {

// The hash of the pieces' concatenation.
uint64_t Hash(std::span<const std::span<const std::byte>> pieces);
inline uint64_t Hash(std::span<const std::byte> bytes) { return Hash({&bytes, 1}); }

}  // namespace ingot::formats
