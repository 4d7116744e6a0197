// Hashes and, where asked, compresses sections as they are added; lays them out in the order of (kind, index); and
// streams header, table, sections and trailer to memory or to a file.
#include "formats/container_writer.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "formats/byte_reader.h"
#include "formats/byte_writer.h"
#include "formats/container_layout.h"
#include "formats/file.h"
#include "formats/hash.h"
#include "formats/zstd_codec.h"

namespace ingot::formats {
namespace {

uint64_t TotalSize(std::span<const std::span<const std::byte>> pieces) {
  uint64_t size = 0;
  for (const std::span<const std::byte> piece : pieces) size += piece.size();
  return size;
}

}  // namespace

Status ContainerWriter::Add(SectionKind kind, uint32_t index, std::vector<std::span<const std::byte>> pieces,
                            const Options& options) {
  INGOT_CHECK(std::has_single_bit(options.alignment) && options.alignment <= kMaxSectionAlignment);
  const std::string_view known_name = SectionKindName(kind);
  Entry entry;
  Section& section = entry.section;
  section.kind = kind;
  section.index = index;
  section.name = known_name.empty() ? options.name : std::string(known_name);
  INGOT_CHECK(!section.name.empty() && section.name.size() <= kSectionNameBytes);
  section.is_required = options.is_required;
  section.alignment_log2 = static_cast<uint8_t>(std::countr_zero(options.alignment));
  section.size = TotalSize(pieces);
  entry.pieces = std::move(pieces);
  if (options.codec == Codec::kZstd) {
    INGOT_ASSIGN_OR_RETURN(entry.kept, CompressZstd(entry.pieces, options.zstd_level));
    // A reader refuses large sections that are denser.
    const bool is_bomb =
        section.size > kFreeDecompressedBytes / 4 && entry.kept.size() < section.size / kDecompressedBytesPerByte;
    if (entry.kept.size() < section.size && !is_bomb) {
      section.codec = Codec::kZstd;
      entry.pieces = {entry.kept};
    } else {
      entry.kept.clear();
    }
  }
  section.stored_size = TotalSize(entry.pieces);
  section.hash = Hash(entry.pieces);
  Insert(std::move(entry));
  return Status();
}

Status ContainerWriter::AddOwned(SectionKind kind, uint32_t index, std::vector<std::byte> bytes,
                                 const Options& options) {
  INGOT_CHECK(options.codec == Codec::kNone, "owned sections are stored raw");
  owned_.push_back(std::make_unique<const std::vector<std::byte>>(std::move(bytes)));
  return Add(kind, index, {std::span<const std::byte>(*owned_.back())}, options);
}

void ContainerWriter::AddStored(const Section& section, std::span<const std::byte> stored) {
  Insert({section, {stored}, {}});
}

void ContainerWriter::Replace(const Section& section, std::span<const std::byte> stored) {
  const auto place = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.section.kind == section.kind && entry.section.index == section.index;
  });
  INGOT_CHECK(place != entries_.end(), "there is no such section");
  *place = {section, {stored}, {}};
}

void ContainerWriter::ForEachSection(
    const std::function<void(const Section& section, std::span<const std::span<const std::byte>> pieces)>& visit)
    const {
  for (const Entry& entry : entries_) visit(entry.section, entry.pieces);
}

void ContainerWriter::Insert(Entry entry) {
  const auto key = [](const Entry& e) { return std::pair(e.section.kind, e.section.index); };
  const auto place = std::lower_bound(entries_.begin(), entries_.end(), entry,
                                      [&](const Entry& a, const Entry& b) { return key(a) < key(b); });
  INGOT_CHECK(place == entries_.end() || key(*place) != key(entry), "a section was added twice");
  entries_.insert(place, std::move(entry));
}

std::vector<std::byte> ContainerWriter::Layout(std::vector<uint64_t>* offsets, uint64_t* file_size) const {
  uint64_t end = kHeaderBytes + entries_.size() * kSectionEntryBytes;
  for (const Entry& entry : entries_) {
    offsets->push_back(AlignUp(end, uint64_t{1} << entry.section.alignment_log2));
    end = offsets->back() + entry.section.stored_size;
  }
  *file_size = AlignUp(end, kTrailerAlignment) + kTrailerBytes;

  ByteWriter table;
  table.Bytes(std::as_bytes(std::span(kHeaderMagic)));
  table.U32(kContainerVersion);
  table.U32(static_cast<uint32_t>(entries_.size()));
  table.U64(*file_size);
  table.U64(required_features_);
  table.AlignTo(kHeaderBytes);  // the hash, for now zero, and the reserved fields
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Section& section = entries_[i].section;
    table.U32(static_cast<uint32_t>(section.kind));
    table.U32(section.index);
    table.U64((*offsets)[i]);
    table.U64(section.stored_size);
    table.U64(section.size);
    table.U64(section.hash);
    table.U8(static_cast<uint8_t>(section.codec));
    table.U8(section.alignment_log2);
    table.U16(section.is_required ? kSectionRequired : 0);
    table.U32(0);
    table.Bytes(AsBytes(section.name));
    table.AlignTo(kSectionEntryBytes);
  }
  table.PatchU64(kTableHashOffset, HashTable(table.bytes(), entries_.size()));
  return table.Take();
}

uint64_t ContainerWriter::Alignment() const {
  uint64_t alignment = kTrailerAlignment;
  for (const Entry& entry : entries_) alignment = std::max(alignment, uint64_t{1} << entry.section.alignment_log2);
  return alignment;
}

uint64_t ContainerWriter::FileSize() const {
  std::vector<uint64_t> offsets;
  uint64_t file_size = 0;
  Layout(&offsets, &file_size);
  return file_size;
}

namespace {

// Hands out a container piece by piece: write(bytes) and write_zeros(count).
template <typename Entries, typename Write, typename WriteZeros>
Status Stream(std::span<const std::byte> table, const Entries& entries, std::span<const uint64_t> offsets,
              uint64_t file_size, Write write, WriteZeros write_zeros) {
  INGOT_RETURN_IF_ERROR(write(table));
  uint64_t at = table.size();
  for (size_t i = 0; i < entries.size(); ++i) {
    INGOT_RETURN_IF_ERROR(write_zeros(offsets[i] - at));
    for (const std::span<const std::byte> piece : entries[i].pieces) INGOT_RETURN_IF_ERROR(write(piece));
    at = offsets[i] + entries[i].section.stored_size;
  }
  INGOT_RETURN_IF_ERROR(write_zeros(file_size - kTrailerBytes - at));
  ByteWriter trailer;
  trailer.U64(file_size);
  trailer.Bytes(std::as_bytes(std::span(kTrailerMagic)));
  return write(trailer.bytes());
}

}  // namespace

Result<std::vector<std::byte>> ContainerWriter::ToBytes() const {
  std::vector<uint64_t> offsets;
  uint64_t file_size = 0;
  const std::vector<std::byte> table = Layout(&offsets, &file_size);
  std::vector<std::byte> bytes;
  bytes.reserve(file_size);
  INGOT_RETURN_IF_ERROR(Stream(
      table, entries_, offsets, file_size,
      [&](std::span<const std::byte> piece) {
        bytes.insert(bytes.end(), piece.begin(), piece.end());
        return Status();
      },
      [&](uint64_t count) {
        bytes.resize(bytes.size() + count);
        return Status();
      }));
  return bytes;
}

Status ContainerWriter::WriteTo(OutputFile& file) const {
  std::vector<uint64_t> offsets;
  uint64_t file_size = 0;
  const std::vector<std::byte> table = Layout(&offsets, &file_size);
  return Stream(
      table, entries_, offsets, file_size, [&](std::span<const std::byte> piece) { return file.Write(piece); },
      [&](uint64_t count) { return file.WriteZeros(count); });
}

Status ContainerWriter::WriteFile(const std::string& path, FileCalls& calls) const {
  INGOT_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, calls));
  INGOT_RETURN_IF_ERROR(WriteTo(file));
  return file.Commit();
}

}  // namespace ingot::formats
