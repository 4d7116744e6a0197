// Opens a container: header, trailer, section table, then the hash and the zstd frames of each section, one check of
// container_checks.def after the other. Open() stops at the first failed check, Inspect() collects them. Section
// contents are decompressed when they are read.
#include "formats/container.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <tuple>
#include <utility>

#include "formats/byte_reader.h"
#include "formats/container_layout.h"
#include "formats/device_program_section.h"
#include "formats/hash.h"
#include "formats/zstd_codec.h"

namespace ingot::formats {
namespace {

constexpr ContainerCheckRow kChecks[] = {
#define INGOT_CONTAINER_CHECK(id, name, proves) {ContainerCheck::k##id, name, proves},
#include "formats/container_checks.def"
};
static_assert(std::size(kChecks) <= 64);

// The names stand apart from the rows, which only tests read, so that the linker drops the rows from shipped programs.
constexpr const char* kCheckNames[] = {
#define INGOT_CONTAINER_CHECK(id, name, proves) name,
#include "formats/container_checks.def"
};
const char* CheckName(ContainerCheck check) { return kCheckNames[static_cast<int>(check)]; }

bool HasMagicAt(std::span<const std::byte> bytes, uint64_t offset, const std::array<uint8_t, 8>& magic) {
  return offset <= bytes.size() && bytes.size() - offset >= magic.size() &&
         std::memcmp(bytes.data() + offset, magic.data(), magic.size()) == 0;
}

bool IsZero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

// The part of [offset, offset + size) that exists, so that nothing goes out of bounds while findings are collected.
std::span<const std::byte> Clamped(std::span<const std::byte> bytes, uint64_t offset, uint64_t size) {
  if (offset >= bytes.size()) return {};
  return bytes.subspan(offset, std::min<uint64_t>(size, bytes.size() - offset));
}

// The text before the zeros, and whether nothing but zeros follows a name of [a-z0-9_]+.
std::pair<std::string, bool> ReadName(std::span<const std::byte> field) {
  const std::string_view text = AsText(field);
  const std::string_view name = text.substr(0, text.find('\0'));
  bool is_fine = !name.empty() && IsZero(field.subspan(name.size()));
  std::string printable;
  for (const char c : name) {
    const bool is_name_character = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    is_fine &= is_name_character;
    printable += is_name_character ? c : '?';
  }
  return {printable, is_fine};
}

}  // namespace

std::span<const ContainerCheckRow> ContainerChecks() { return kChecks; }

std::string_view SectionKindName(SectionKind kind) {
  switch (kind) {
#define INGOT_SECTION_KIND(number, id, name) \
  case SectionKind::k##id:                   \
    return name;
#include "formats/section_kinds.def"
  }
  return {};
}

std::string Section::Label() const { return index == 0 ? name : StrCat({name, "[", index, "]"}); }

Result<uint64_t> FindContainer(std::span<const std::byte> bytes) {
  if (HasMagicAt(bytes, 0, kHeaderMagic)) return uint64_t{0};
  if (bytes.size() >= kTrailerBytes && HasMagicAt(bytes, bytes.size() - 8, kTrailerMagic)) {
    ByteReader reader(bytes.last(kTrailerBytes), "trailer");
    INGOT_ASSIGN_OR_RETURN(const uint64_t size, reader.U64());
    if (size <= bytes.size() && HasMagicAt(bytes, bytes.size() - size, kHeaderMagic)) return bytes.size() - size;
  }
  return Status(StatusCode::kCorrupt, {"not an Ingot executable: no magic bytes at the start, and no "
                                       "packed executable at the end [",
                                       CheckName(ContainerCheck::kMagic), "]"});
}

uint64_t HashTable(std::span<const std::byte> container, uint64_t num_sections) {
  static constexpr std::byte kZeroField[8] = {};
  const uint64_t end = std::min<uint64_t>(kHeaderBytes + num_sections * kSectionEntryBytes, container.size());
  const uint64_t before = std::min(end, kTableHashOffset);
  const uint64_t after = std::min(end, kTableHashOffset + sizeof(kZeroField));
  const std::span<const std::byte> pieces[] = {container.first(before), kZeroField,
                                               container.subspan(after, end - after)};
  return Hash(pieces);
}

uint64_t ContainerId(std::span<const std::byte> container) {
  ByteReader reader(container, "header");
  if (!reader.Seek(kTableHashOffset).ok()) return 0;
  const Result<uint64_t> hash = reader.U64();
  return hash.ok() ? *hash : 0;
}

// Makes the checks. A check that fails refuses the container, is left out, or adds a finding and lets the rest go on;
// so everything here stays inside the bytes, whatever they say.
class Container::Opener {
 public:
  Opener(const ContainerOptions& options, std::vector<ContainerFinding>* findings)
      : options_(options), findings_(findings) {}

  Result<Container> Run(SharedBytes bytes) {
    INGOT_ASSIGN_OR_RETURN(container_.start_offset_, FindContainer(bytes.bytes));
    container_.left_out_ = options_.left_out;
    container_.pool_ = options_.pool;
    INGOT_RETURN_IF_ERROR(Check(ContainerCheck::kPackedOffset, container_.start_offset_ % kPackedAlignment == 0,
                                {"the packed executable starts at offset ", container_.start_offset_,
                                 ", expected a multiple of ", kPackedAlignment}));
    bytes.bytes = bytes.bytes.subspan(container_.start_offset_);
    container_.bytes_ = std::move(bytes);
    INGOT_RETURN_IF_ERROR(ReadHeader());
    INGOT_RETURN_IF_ERROR(ReadTrailer());
    container_.sections_.reserve(section_count_);
    for (uint32_t i = 0; i < section_count_; ++i) INGOT_RETURN_IF_ERROR(ReadEntry(i));
    INGOT_RETURN_IF_ERROR(CheckEnd());
    for (const Section& section : container_.sections_) INGOT_RETURN_IF_ERROR(CheckContents(section));
    return std::move(container_);
  }

 private:
  std::span<const std::byte> bytes() const { return container_.bytes_.bytes; }

  // A check: the message is put together only where it does not hold.
  Status Check(ContainerCheck check, bool holds, Text message, StatusCode code = StatusCode::kCorrupt) {
    return holds || options_.left_out.Has(check) ? Status() : Refuse(check, message, code);
  }
  // The same for a status that says it all already.
  Status Check(ContainerCheck check, const Status& status) {
    return status.ok() || options_.left_out.Has(check) ? Status() : Refuse(check, status.message(), status.code());
  }
  [[gnu::noinline]] Status Refuse(ContainerCheck check, Text message, StatusCode code) {
    Status status(code, {message, " [", CheckName(check), "]"});
    if (findings_ == nullptr) return status;
    findings_->push_back({check, std::move(status)});
    return Status();
  }

  Status ReadHeader() {
    const std::span<const std::byte> file = bytes();
    INGOT_RETURN_IF_ERROR(
        Check(ContainerCheck::kMagic, file.size() >= kHeaderBytes + kTrailerBytes,
              {"truncated: ", file.size(), " bytes, a header and a trailer need ", kHeaderBytes + kTrailerBytes}));
    // Zeros stand in for a header that is cut off.
    std::array<std::byte, kHeaderBytes> header{};
    std::copy_n(file.begin(), std::min<size_t>(file.size(), kHeaderBytes), header.begin());
    ByteReader reader(header, "header");
    INGOT_RETURN_IF_ERROR(reader.Skip(kHeaderMagic.size()));
    INGOT_ASSIGN_OR_RETURN(const uint32_t version, reader.U32());
    INGOT_ASSIGN_OR_RETURN(section_count_, reader.U32());
    INGOT_ASSIGN_OR_RETURN(file_size_, reader.U64());
    INGOT_ASSIGN_OR_RETURN(container_.required_features_, reader.U64());
    INGOT_ASSIGN_OR_RETURN(const uint64_t table_hash, reader.U64());
    INGOT_ASSIGN_OR_RETURN(const std::span<const std::byte> reserved, reader.Bytes(reader.remaining()));

    INGOT_RETURN_IF_ERROR(
        Check(ContainerCheck::kVersion, version == kContainerVersion,
              {"format version ", version, ", written by ",
               version > kContainerVersion ? "a newer Ingot, which reads it" : "an older Ingot: compile the model anew",
               "; this one reads version ", kContainerVersion},
              StatusCode::kUnsupportedFile));
    const uint64_t unknown = container_.required_features_ & ~options_.known_features;
    INGOT_RETURN_IF_ERROR(Check(ContainerCheck::kFeatures, unknown == 0,
                                {"needs features that this version does not have (bits ", unknown, ")"},
                                StatusCode::kUnsupportedFile));
    INGOT_RETURN_IF_ERROR(
        Check(ContainerCheck::kFileSize, file_size_ == file.size(),
              {"truncated or extended: the header says ", file_size_, " bytes, there are ", file.size()}));
    INGOT_RETURN_IF_ERROR(Check(ContainerCheck::kSectionCount, section_count_ <= options_.max_sections,
                                {section_count_, " sections, expected at most ", options_.max_sections}));
    const uint64_t room = file.size() < kHeaderBytes + kTrailerBytes
                              ? 0
                              : (file.size() - kHeaderBytes - kTrailerBytes) / kSectionEntryBytes;
    INGOT_RETURN_IF_ERROR(Check(ContainerCheck::kTableInside, section_count_ <= room,
                                {"a table of ", section_count_, " sections, there is room for ", room}));
    section_count_ = static_cast<uint32_t>(std::min<uint64_t>(section_count_, room));
    INGOT_RETURN_IF_ERROR(Check(ContainerCheck::kTableHash, HashTable(file, section_count_) == table_hash,
                                "header and section table do not have the hash that the header says"));
    return Check(ContainerCheck::kHeaderReserved, IsZero(reserved), "reserved bytes of the header are not zero");
  }

  Status ReadTrailer() {
    const std::span<const std::byte> trailer = bytes().last(std::min<size_t>(bytes().size(), kTrailerBytes));
    bool is_fine = trailer.size() == kTrailerBytes && HasMagicAt(trailer, 8, kTrailerMagic);
    if (is_fine) {
      ByteReader reader(trailer, "trailer");
      INGOT_ASSIGN_OR_RETURN(const uint64_t size, reader.U64());
      is_fine = size == file_size_;
    }
    return Check(ContainerCheck::kTrailer, is_fine, "the trailer is damaged");
  }

  Status ReadEntry(uint32_t number) {
    ByteReader reader(Clamped(bytes(), kHeaderBytes + number * kSectionEntryBytes, kSectionEntryBytes),
                      "section table");
    Section s;
    INGOT_ASSIGN_OR_RETURN(const uint32_t kind, reader.U32());
    s.kind = static_cast<SectionKind>(kind);
    INGOT_ASSIGN_OR_RETURN(s.index, reader.U32());
    INGOT_ASSIGN_OR_RETURN(s.offset, reader.U64());
    INGOT_ASSIGN_OR_RETURN(s.stored_size, reader.U64());
    INGOT_ASSIGN_OR_RETURN(s.size, reader.U64());
    INGOT_ASSIGN_OR_RETURN(s.hash, reader.U64());
    INGOT_ASSIGN_OR_RETURN(const uint8_t codec, reader.U8());
    s.codec = static_cast<Codec>(codec);
    INGOT_ASSIGN_OR_RETURN(s.alignment_log2, reader.U8());
    INGOT_ASSIGN_OR_RETURN(const uint16_t flags, reader.U16());
    s.is_required = (flags & kSectionRequired) != 0;
    INGOT_ASSIGN_OR_RETURN(const uint32_t reserved, reader.U32());
    INGOT_ASSIGN_OR_RETURN(const std::span<const std::byte> name_field, reader.Bytes(kSectionNameBytes));
    bool name_is_fine = false;
    std::tie(s.name, name_is_fine) = ReadName(name_field);
    const std::string label = StrCat({"section ", number, " (", s.Label(), "): "});

    const std::string_view known_name = SectionKindName(s.kind);
    if (!container_.sections_.empty()) {
      const Section& before = container_.sections_.back();
      INGOT_RETURN_IF_ERROR(Check(ContainerCheck::kOrder,
                                  std::pair(before.kind, before.index) < std::pair(s.kind, s.index),
                                  {label, "does not come after the one before it by kind and index"}));
    }
    INGOT_RETURN_IF_ERROR(Check(ContainerCheck::kKind, !known_name.empty() || !s.is_required,
                                {label, "required, but of kind ", kind, ", which this version does not know"},
                                StatusCode::kUnsupportedFile));
    INGOT_RETURN_IF_ERROR(Check(ContainerCheck::kName, name_is_fine && (known_name.empty() || known_name == s.name),
                                {label, "a wrong name for kind ", kind}));
    INGOT_RETURN_IF_ERROR(Check(ContainerCheck::kEntryReserved, reserved == 0 && (flags & ~kSectionRequired) == 0,
                                {label, "reserved fields are not zero"}));
    INGOT_RETURN_IF_ERROR(Check(ContainerCheck::kCodec, s.codec == Codec::kNone || s.codec == Codec::kZstd,
                                {label, "unknown codec ", codec}, StatusCode::kUnsupportedFile));
    INGOT_RETURN_IF_ERROR(Check(ContainerCheck::kAlignment,
                                s.alignment_log2 < 64 && uint64_t{1} << s.alignment_log2 <= kMaxSectionAlignment,
                                {label, "alignment 2^", s.alignment_log2}));
    s.alignment_log2 = std::min<uint8_t>(s.alignment_log2, 16);
    INGOT_RETURN_IF_ERROR(CheckPlace(s, label));
    INGOT_RETURN_IF_ERROR(CheckSizes(s, label));
    container_.sections_.push_back(std::move(s));
    return Status();
  }

  Status CheckPlace(const Section& s, const std::string& label) {
    const uint64_t previous_end = PreviousEnd();
    const uint64_t expected = AlignUp(previous_end, uint64_t{1} << s.alignment_log2);
    INGOT_RETURN_IF_ERROR(Check(ContainerCheck::kPlacement, s.offset == expected,
                                {label, "at offset ", s.offset, ", expected ", expected}));
    const uint64_t limit = bytes().size() - std::min<uint64_t>(bytes().size(), kTrailerBytes);
    INGOT_RETURN_IF_ERROR(
        Check(ContainerCheck::kInside, s.offset <= limit && s.stored_size <= limit - s.offset,
              {label, s.stored_size, " bytes at offset ", s.offset, " do not fit into the container"}));
    return Check(ContainerCheck::kPadding,
                 s.offset < previous_end || IsZero(Clamped(bytes(), previous_end, s.offset - previous_end)),
                 {label, "the padding before it is not zero"});
  }

  Status CheckSizes(const Section& s, const std::string& label) {
    if (s.codec == Codec::kNone) {
      return Check(ContainerCheck::kRawSize, s.size == s.stored_size,
                   {label, "stored raw with ", s.stored_size, " bytes for a size of ", s.size});
    }
    const uint64_t cap = container_.DecompressedCap(options_.max_decompressed_bytes);
    const uint64_t left = cap - std::min(decompressed_, cap);
    INGOT_RETURN_IF_ERROR(Check(ContainerCheck::kSizeCap, s.size <= left,
                                {label, "would decompress to ", s.size, " bytes; the cap of ", cap, " leaves ", left}));
    decompressed_ += std::min(s.size, left);
    return Status();
  }

  uint64_t PreviousEnd() const {
    if (container_.sections_.empty()) return kHeaderBytes + section_count_ * kSectionEntryBytes;
    const Section& last = container_.sections_.back();
    return last.offset + last.stored_size;
  }

  Status CheckEnd() {
    const uint64_t end = PreviousEnd();
    const uint64_t expected = AlignUp(end, kTrailerAlignment) + kTrailerBytes;
    INGOT_RETURN_IF_ERROR(
        Check(ContainerCheck::kEnd, expected == bytes().size(),
              {"the sections end at offset ", end, ", so the size should be ", expected, ", got ", bytes().size()}));
    return Check(ContainerCheck::kPadding, IsZero(Clamped(bytes(), end, AlignUp(end, kTrailerAlignment) - end)),
                 "the padding before the trailer is not zero");
  }

  Status CheckContents(const Section& s) {
    const std::span<const std::byte> stored = container_.StoredBytes(s);
    const bool is_left_unread = (s.kind == SectionKind::kConstantData || s.kind == kDeviceProgramSection) &&
                                s.codec == Codec::kNone && s.stored_size > kUnhashedConstantBytes;
    if (!is_left_unread) {
      INGOT_RETURN_IF_ERROR(Check(ContainerCheck::kSectionHash, Hash(stored) == s.hash,
                                  {"section ", s.Label(), ": its bytes do not have the hash that the table says"}));
    }
    if (s.codec != Codec::kZstd) return Status();
    const ZstdFrames frames = InspectZstd(stored);
    const std::string label = StrCat({"section ", s.Label(), ": "});
    INGOT_RETURN_IF_ERROR(Check(ContainerCheck::kZstdFrame, frames.is_well_formed,
                                {label, "not a row of zstd frames without a dictionary"}));
    INGOT_RETURN_IF_ERROR(Check(ContainerCheck::kZstdSize, frames.content_size == s.size,
                                {label, "its zstd frames do not state the size ", s.size}));
    return Check(ContainerCheck::kZstdWindow, frames.window_size <= kMaxZstdWindowBytes,
                 {label, "a zstd window of ", frames.window_size, " bytes"});
  }

  const ContainerOptions& options_;
  std::vector<ContainerFinding>* findings_;
  Container container_;
  uint32_t section_count_ = 0;
  uint64_t file_size_ = 0;
  uint64_t decompressed_ = 0;
};

Result<Container> Container::Open(SharedBytes bytes, const ContainerOptions& options) {
  try {
    return Opener(options, nullptr).Run(std::move(bytes));
  } catch (const std::bad_alloc&) {
    return Status::OutOfMemory();
  }
}

Result<Container> Container::Inspect(SharedBytes bytes, const ContainerOptions& options,
                                     std::vector<ContainerFinding>* findings) {
  return Opener(options, findings).Run(std::move(bytes));
}

const Section* Container::Find(SectionKind kind, uint32_t index) const {
  for (const Section& section : sections_) {
    if (section.kind == kind && section.index == index) return &section;
  }
  return nullptr;
}

std::span<const std::byte> Container::StoredBytes(const Section& section) const {
  return Clamped(bytes_.bytes, section.offset, section.stored_size);
}

Result<SharedBytes> Container::Read(const Section& section) const {
  try {
    return ReadOrThrow(section);
  } catch (const std::bad_alloc&) {
    return Status::OutOfMemory();
  }
}

Result<SharedBytes> Container::ReadOrThrow(const Section& section) const {
  const std::span<const std::byte> stored = StoredBytes(section);
  if (section.codec == Codec::kNone) return SharedBytes(bytes_.owner, stored);
  // Inspect() goes on without the check of this cap, so it is made again before anything is decompressed.
  uint64_t left = DecompressedCap(ContainerOptions().max_decompressed_bytes);
  for (const Section& other : sections_) {
    if (other.codec == Codec::kNone || left_out_.Has(ContainerCheck::kSizeCap)) continue;
    if (other.size > left) {
      return Status(StatusCode::kCorrupt, {"section ", section.Label(), " is not decompressed: all together are above ",
                                           "the cap [", CheckName(ContainerCheck::kSizeCap), "]"});
    }
    left -= other.size;
  }
  const ZstdFrames frames = InspectZstd(stored);
  if (!frames.is_well_formed || frames.content_size != section.size) return SharedBytes();  // a check is left out
  Result<SharedBytes> bytes = DecompressZstd(frames, pool_);
  if (bytes.ok()) return bytes;
  if (bytes.status().code() == StatusCode::kOutOfMemory) return std::move(bytes).status();
  if (left_out_.Has(ContainerCheck::kZstdData)) return SharedBytes();
  return Status(bytes.status().code(), {"section ", section.Label(), ": ", bytes.status().message(), " [",
                                        CheckName(ContainerCheck::kZstdData), "]"});
}

Status Container::VerifyHashes() const {
  for (const Section& section : sections_) {
    const std::span<const std::byte> stored = StoredBytes(section);
    if (Hash(stored) == section.hash) continue;
    return Status(StatusCode::kCorrupt,
                  {"section ", section.Label(), ": its bytes do not have the hash that the table says [",
                   CheckName(ContainerCheck::kSectionHash), "]"});
  }
  return Status();
}

}  // namespace ingot::formats
