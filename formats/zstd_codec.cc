// The decompressing half of formats/zstd_codec.h: frame headers are read here, as far as zstd's stable interface does
// not tell, and frames are decompressed by the tasks of a thread pool.
#include "formats/zstd_codec.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <new>
#include <string>

#include "formats/byte_reader.h"
#include "runtime/host_allocator.h"
#include "runtime/thread_pool.h"

namespace ingot::formats {
namespace {

constexpr size_t kContentAlignment = 64;  // what kernels assume of constants

// RFC 8878, 3.1.1.1: the frame header, as far as the library's stable interface does not tell.
struct FrameHeader {
  bool has_dictionary = false;
  uint64_t window_size = 0;  // 0: a single segment, whose window is its content
};

Result<FrameHeader> ReadFrameHeader(std::span<const std::byte> bytes) {
  ByteReader reader(bytes, "zstd frame");
  INGOT_ASSIGN_OR_RETURN(const uint32_t magic, reader.U32());
  if (magic != ZSTD_MAGICNUMBER) return reader.Error("no data frame");
  INGOT_ASSIGN_OR_RETURN(const uint8_t descriptor, reader.U8());
  FrameHeader header;
  header.has_dictionary = (descriptor & 3) != 0;
  const bool is_single_segment = (descriptor >> 5 & 1) != 0;
  if (!is_single_segment) {
    INGOT_ASSIGN_OR_RETURN(const uint8_t window, reader.U8());
    const uint64_t base = uint64_t{1} << (10 + (window >> 3));
    header.window_size = base + base / 8 * (window & 7);
  }
  return header;
}

struct Decompression {
  const ZstdFrames& frames;
  std::byte* content;
};

// A task of the pool: 0, or zstd's error code.
int32_t DecompressFrame(void* closure, int64_t i) {
  const auto& work = *static_cast<const Decompression*>(closure);
  const ZstdFrame& frame = work.frames.frames[static_cast<size_t>(i)];
  const size_t done =
      ZSTD_decompress(work.content + frame.offset, frame.size, frame.stored.data(), frame.stored.size());
  if (ZSTD_isError(done)) return ZSTD_getErrorCode(done);
  return done == frame.size ? 0 : ZSTD_error_corruption_detected;
}

}  // namespace

ZstdFrames InspectZstd(std::span<const std::byte> bytes) {
  ZstdFrames found;
  uint64_t content_size = 0;
  bool is_sized = true;
  do {
    const Result<FrameHeader> header = ReadFrameHeader(bytes);
    if (!header.ok() || header->has_dictionary) return found;
    // The size of the first frame, found by walking its blocks; an error code is larger than any span.
    const size_t stored = ZSTD_findFrameCompressedSize(bytes.data(), bytes.size());
    const unsigned long long size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
    if (stored > bytes.size() || size == ZSTD_CONTENTSIZE_ERROR) return found;
    if (stored < bytes.size() && size < kMinZstdFrameBytes) return found;
    found.frames.push_back({bytes.first(stored), content_size, size});
    is_sized &=
        size != ZSTD_CONTENTSIZE_UNKNOWN && !__builtin_add_overflow(content_size, uint64_t{size}, &content_size);
    if (header->window_size > found.window_size) found.window_size = header->window_size;
    bytes = bytes.subspan(stored);
  } while (!bytes.empty());
  if (is_sized) found.content_size = content_size;
  found.is_well_formed = true;
  return found;
}

Result<SharedBytes> DecompressZstd(const ZstdFrames& frames, ThreadPool* pool) {
  const uint64_t size = frames.content_size;
  auto* content = static_cast<std::byte*>(AllocateAligned(size, kContentAlignment));
  if (content == nullptr) {
    return Status::OutOfMemory({"out of memory: ", size, " bytes requested to decompress into"});
  }
  const std::shared_ptr<const void> owner(
      content, [size](const void* data) { FreeAligned(const_cast<void*>(data), size, kContentAlignment); });
  Decompression work{frames, content};
  const auto num_frames = static_cast<int64_t>(frames.frames.size());
  int32_t error = 0;
  if (pool != nullptr) {
    error = pool->ParallelFor(num_frames, &DecompressFrame, &work);
  } else {
    for (int64_t i = 0; i < num_frames && error == 0; ++i) error = DecompressFrame(&work, i);
  }
  if (error == ZSTD_error_memory_allocation) return Status::OutOfMemory();
  if (error != 0) {
    return Status(StatusCode::kCorrupt,
                  {"zstd data is damaged: ", ZSTD_getErrorString(static_cast<ZSTD_ErrorCode>(error))});
  }
  return SharedBytes(owner, {content, size});
}

}  // namespace ingot::formats
