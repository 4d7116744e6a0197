// XXH3-64 of several pieces, from the xxHash library's header. A file of its own, so that one object holds the inlined
// code.
#include "formats/hash.h"

#define XXH_INLINE_ALL  // the two functions that are called, instead of the whole library
#include <xxhash.h>

namespace ingot::formats {

uint64_t Hash(std::span<const std::span<const std::byte>> pieces) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (const std::span<const std::byte> piece : pieces) XXH3_64bits_update(&state, piece.data(), piece.size());
  return XXH3_64bits_digest(&state);
}

}  // namespace ingot::formats
