// LinkImage: object files in, one ELF shared object out, by lld in this process; and CheckImage, which reads the result
// without lld: what the loader relies on is proved, not assumed. Private to code generation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/status.h"

namespace ingot::codegen {

// Objects in link order. The bytes depend on the objects alone. Calls wait for each other (lld is not reentrant).
Result<std::vector<std::byte>> LinkImage(std::span<const std::string* const> objects);

// Checks the image: one R+X segment, which begins with the file and holds everything that is loaded; no zero-filled
// tail, no imports, no relocations, no initialisers, no thread-local storage; every entry is defined inside the
// segment. Returns the entries' offsets, in their order.
Result<std::vector<uint64_t>> CheckImage(std::span<const std::byte> elf, std::span<const std::string> entries);

}  // namespace ingot::codegen
