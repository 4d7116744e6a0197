// The compressing half of formats/zstd_codec.h, a file of its own: programs that only read executables link none of it.
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <string>

#include "formats/zstd_codec.h"

namespace ingot::formats {

Result<std::vector<std::byte>> CompressZstd(std::span<const std::span<const std::byte>> pieces, int level) {
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  if (context == nullptr) return Status::OutOfMemory();
  const auto failed = [](size_t code) {
    return Status(StatusCode::kInvalidArgument, std::string("zstd: ") + ZSTD_getErrorName(code));
  };
  uint64_t left = 0;
  for (const std::span<const std::byte> piece : pieces) left += piece.size();
  std::vector<std::byte> compressed;
  std::vector<std::byte> frame(ZSTD_compressBound(kZstdFrameBytes));
  size_t next = 0;
  std::span<const std::byte> piece;
  do {
    const uint64_t size = std::min(left, kZstdFrameBytes);
    for (const size_t code : {ZSTD_CCtx_reset(context.get(), ZSTD_reset_session_only),
                              ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level),
                              ZSTD_CCtx_setPledgedSrcSize(context.get(), size)}) {
      if (ZSTD_isError(code)) return failed(code);
    }
    ZSTD_outBuffer out{frame.data(), frame.size(), 0};
    for (uint64_t taken = 0;;) {
      while (piece.empty() && taken < size) piece = pieces[next++];
      const bool is_end = taken == size;  // then an empty piece ends the frame
      ZSTD_inBuffer in{piece.data(), is_end ? 0 : std::min<uint64_t>(piece.size(), size - taken), 0};
      size_t unfinished = 0;
      do {
        unfinished = ZSTD_compressStream2(context.get(), &out, &in, is_end ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(unfinished)) return failed(unfinished);
      } while (is_end ? unfinished != 0 : in.pos < in.size);
      if (is_end) break;
      taken += in.size;
      piece = piece.subspan(in.size);
    }
    compressed.insert(compressed.end(), frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(out.pos));
    left -= size;
  } while (left > 0);
  return compressed;
}

}  // namespace ingot::formats
