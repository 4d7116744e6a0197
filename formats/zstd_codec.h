// zstd for sections: whole frames, in memory, sizes known beforehand. Nothing streams, so a frame's window costs no
// memory; it is looked at all the same, because other readers may stream.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/status.h"

namespace ingot::formats {

inline constexpr uint64_t kMaxZstdWindowBytes = uint64_t{1} << 27;
inline constexpr uint64_t kUnknownContentSize = ~uint64_t{0};

struct ZstdFrameInfo {
  bool is_single_frame = false;  // one data frame, no dictionary, nothing after it
  uint64_t content_size = kUnknownContentSize;
  uint64_t window_size = 0;
};

// Never fails: what is no frame is no single frame.
ZstdFrameInfo InspectZstdFrame(std::span<const std::byte> bytes);

// Exactly `size` bytes, or a corrupt (or out-of-memory) status.
Result<std::vector<std::byte>> DecompressZstd(std::span<const std::byte> bytes, uint64_t size);

// One frame over the concatenated pieces, with its content size; deterministic.
Result<std::vector<std::byte>> CompressZstd(std::span<const std::span<const std::byte>> pieces, int level);

}  // namespace ingot::formats
