// Writes a container (formats/README.md). Deterministic: the same sections give the same bytes. Raw sections are never
// copied: the writer borrows their pieces, hashes them and streams them out. Compressed ones are held compressed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/container.h"
#include "formats/file.h"
#include "runtime/status.h"

namespace ingot::formats {

class ContainerWriter {
 public:
  struct Options {
    bool is_required = true;
    uint64_t alignment = 64;  // bytes; a power of two <= kMaxSectionAlignment
    Codec codec = Codec::kNone;
    int zstd_level = 9;
    std::string name;  // for kinds without a row only; those with one have its name
  };

  explicit ContainerWriter(uint64_t required_features = 0) : required_features_(required_features) {}

  // The section is the concatenation of the pieces, which must stay as they are until the container is written. A
  // second section of the same kind and index is a broken invariant. A compressed section is stored raw after all when
  // that is not longer.
  Status Add(SectionKind kind, uint32_t index, std::vector<std::span<const std::byte>> pieces, const Options& options);
  Status Add(SectionKind kind, uint32_t index, std::vector<std::span<const std::byte>> pieces) {
    return Add(kind, index, std::move(pieces), Options());
  }

  // The same for bytes that the writer keeps.
  Status AddOwned(SectionKind kind, uint32_t index, std::vector<std::byte> bytes, const Options& options);
  // A section of another container as it is stored there, compressed or not; the bytes stay as they are likewise.
  void AddStored(const Section& section, std::span<const std::byte> stored);
  // Replaces the section of this kind and index, which must exist, by one as it is stored (compressed elsewhere).
  void Replace(const Section& section, std::span<const std::byte> stored);
  // Visits the sections in the order of the file; their offsets are not set yet.
  void ForEachSection(const std::function<void(const Section& section,
                                               std::span<const std::span<const std::byte>> pieces)>& visit) const;
  uint64_t required_features() const { return required_features_; }

  // The largest alignment of a section. A container whose sections are to be mapped must start at a multiple of it in
  // its file.
  uint64_t Alignment() const;
  // Bytes of the whole container.
  uint64_t FileSize() const;
  Result<std::vector<std::byte>> ToBytes() const;
  // Appends the container to a file that is being written.
  Status WriteTo(OutputFile& file) const;
  Status WriteFile(const std::string& path, FileCalls& calls = FileCalls::System()) const;

 private:
  struct Entry {
    Section section;
    std::vector<std::span<const std::byte>> pieces;
    std::vector<std::byte> kept;  // what `pieces` refers to, for compressed sections
  };
  void Insert(Entry entry);

  // Places the sections and makes header and table.
  std::vector<std::byte> Layout(std::vector<uint64_t>* offsets, uint64_t* file_size) const;

  uint64_t required_features_;
  std::vector<Entry> entries_;  // ascending by (kind, index)
  std::vector<std::unique_ptr<const std::vector<std::byte>>> owned_;
};

}  // namespace ingot::formats
