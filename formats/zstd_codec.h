// zstd for sections: whole frames, in memory, sizes known beforehand. A section is a sequence of frames, so that
// threads can decompress them at the same time. Nothing streams, so a frame's window costs no memory; it is looked at
// all the same, because other readers may stream.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/shared_bytes.h"
#include "runtime/status.h"

namespace ingot {
class ThreadPool;
}

namespace ingot::formats {

inline constexpr uint64_t kMaxZstdWindowBytes = uint64_t{1} << 27;
inline constexpr uint64_t kUnknownContentSize = ~uint64_t{0};
// The least content of each frame but the last, which bounds the number of frames by the decompressed size; and the
// content that the writer puts into a frame: enough for the codec to learn from, little enough to keep all threads
// busy.
inline constexpr uint64_t kMinZstdFrameBytes = uint64_t{1} << 16;
inline constexpr uint64_t kZstdFrameBytes = uint64_t{1} << 20;

struct ZstdFrame {
  std::span<const std::byte> stored;
  uint64_t offset = 0;  // of its content, in all frames' content
  uint64_t size = 0;
};

struct ZstdFrames {
  bool is_well_formed = false;  // one data frame or more, no dictionary, each of a stated size; nothing else
  uint64_t content_size = kUnknownContentSize;
  uint64_t window_size = 0;  // the largest
  std::vector<ZstdFrame> frames;
};

// Never fails: for bytes that are no such sequence, is_well_formed is false.
ZstdFrames InspectZstd(std::span<const std::byte> bytes);

// The content of well-formed frames whose sizes are trusted to be under a cap, aligned to 64 bytes; a corrupt (or
// out-of-memory) status otherwise. pool may be null.
Result<SharedBytes> DecompressZstd(const ZstdFrames& frames, ThreadPool* pool);

// Frames over the concatenated pieces, with their content sizes; deterministic.
Result<std::vector<std::byte>> CompressZstd(std::span<const std::span<const std::byte>> pieces, int level);

}  // namespace ingot::formats
