#include "formats/zstd_codec.h"

#include <zstd.h>

#include <new>
#include <string>

#include "formats/byte_reader.h"

namespace ingot::formats {
namespace {

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

}  // namespace

ZstdFrameInfo InspectZstdFrame(std::span<const std::byte> bytes) {
  ZstdFrameInfo info;
  const Result<FrameHeader> header = ReadFrameHeader(bytes);
  if (!header.ok()) return info;
  const unsigned long long content_size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (content_size == ZSTD_CONTENTSIZE_ERROR) return info;
  if (content_size != ZSTD_CONTENTSIZE_UNKNOWN) info.content_size = content_size;
  info.window_size = header->window_size;
  // The size of the first frame, found by walking its blocks; an error code is larger than any span.
  info.is_single_frame =
      !header->has_dictionary && ZSTD_findFrameCompressedSize(bytes.data(), bytes.size()) == bytes.size();
  return info;
}

Result<std::vector<std::byte>> DecompressZstd(std::span<const std::byte> bytes, uint64_t size) {
  std::vector<std::byte> content;
  try {
    content.resize(size);
  } catch (const std::exception&) {  // bad_alloc, or length_error for sizes beyond the address space
    return Status::OutOfMemory("out of memory: " + std::to_string(size) + " bytes requested to decompress into");
  }
  const size_t done = ZSTD_decompress(content.data(), content.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(done)) {
    return Status(StatusCode::kCorrupt, std::string("zstd data is damaged: ") + ZSTD_getErrorName(done));
  }
  if (done != size) {
    return Status(StatusCode::kCorrupt,
                  "zstd data holds " + std::to_string(done) + " bytes, expected " + std::to_string(size));
  }
  return content;
}

}  // namespace ingot::formats
