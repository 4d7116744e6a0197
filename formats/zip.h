// A bounded zip reader and a plain writer, for .npz files: stored and deflated entries, data descriptors, zip64.
// Everything is found through the central directory and compared with the local headers. Refused: encryption, other
// methods, several disks, duplicate names, entries that overlap, sizes beyond the file's or the limits, sizes that
// deflate cannot reach, wrong checksums. Nothing is allocated for a size that the input merely claims.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/shared_bytes.h"
#include "runtime/status.h"

namespace ingot::formats {

struct ZipLimits {
  uint64_t max_entries = 1 << 20;
  uint64_t max_name_bytes = 4096;
  // The decompressed size of all entries together. (Stored entries are bounded by the file itself.)
  uint64_t max_decompressed_bytes = uint64_t{64} << 30;
};

struct ZipEntry {
  std::string name;
  bool is_deflated = false;
  uint32_t crc32 = 0;
  uint64_t size = 0;         // decompressed
  uint64_t data_offset = 0;  // of the stored bytes in the file
  uint64_t data_size = 0;
};

class ZipReader {
 public:
  static Result<ZipReader> Open(SharedBytes bytes, const ZipLimits& limits = {});

  // In the order of the central directory.
  std::span<const ZipEntry> entries() const { return entries_; }
  const ZipEntry* Find(std::string_view name) const;
  // The entry's contents: a view of the file where they are stored, otherwise decompressed. Bad input when they do not
  // have the entry's checksum.
  Result<SharedBytes> Read(const ZipEntry& entry) const;

 private:
  SharedBytes bytes_;
  std::vector<ZipEntry> entries_;
};

// Writes stored entries, in order, without times: the same entries give the same bytes. zip64 where sizes need it.
class ZipWriter {
 public:
  using Sink = std::function<Status(std::span<const std::byte>)>;
  explicit ZipWriter(Sink sink) : sink_(std::move(sink)) {}

  // Adds an entry whose contents are the concatenation of the pieces. Names must be distinct.
  Status Add(const std::string& name, std::span<const std::span<const std::byte>> pieces);
  // Writes the directory; call it once, at the end.
  Status Finish();

 private:
  struct Written {
    std::string name;
    uint32_t crc32;
    uint64_t size;
    uint64_t offset;
  };
  Status Write(std::span<const std::byte> bytes);

  Sink sink_;
  uint64_t offset_ = 0;
  std::vector<Written> written_;
};

}  // namespace ingot::formats
