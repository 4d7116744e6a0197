// The compressing half of formats/zstd_codec.h, a file of its own: programs that only read executables link none of it.
#include <zstd.h>

#include <memory>
#include <string>

#include "formats/zstd_codec.h"

namespace ingot::formats {

Result<std::vector<std::byte>> CompressZstd(std::span<const std::span<const std::byte>> pieces, int level) {
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  if (context == nullptr) return Status::OutOfMemory();
  uint64_t size = 0;
  for (const std::span<const std::byte> piece : pieces) size += piece.size();
  const auto failed = [](size_t code) {
    return Status(StatusCode::kInvalidArgument, std::string("zstd: ") + ZSTD_getErrorName(code));
  };
  for (const size_t code : {ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level),
                            ZSTD_CCtx_setPledgedSrcSize(context.get(), size)}) {
    if (ZSTD_isError(code)) return failed(code);
  }
  std::vector<std::byte> compressed(ZSTD_compressBound(size));
  ZSTD_outBuffer out{compressed.data(), compressed.size(), 0};
  for (size_t i = 0; i <= pieces.size(); ++i) {
    // After the last piece, an empty one ends the frame.
    const bool is_end = i == pieces.size();
    ZSTD_inBuffer in{is_end ? nullptr : pieces[i].data(), is_end ? 0 : pieces[i].size(), 0};
    size_t left = 0;
    do {
      left = ZSTD_compressStream2(context.get(), &out, &in, is_end ? ZSTD_e_end : ZSTD_e_continue);
      if (ZSTD_isError(left)) return failed(left);
    } while (is_end ? left != 0 : in.pos < in.size);
  }
  compressed.resize(out.pos);
  return compressed;
}

}  // namespace ingot::formats
