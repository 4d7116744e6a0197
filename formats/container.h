// The container: an executable as a file of sections. formats/README.md is the normative description of the bytes.
// In: bytes (a mapped file, memory, a packed program); out: the checked section table and the sections' bytes, mapped
// or decompressed. What a section means is not known here; the program's own checks are in vm/verify/verifier.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/shared_bytes.h"
#include "runtime/status.h"

namespace ingot {
class ThreadPool;
}

namespace ingot::formats {

enum class SectionKind : uint32_t {
#define INGOT_SECTION_KIND(number, id, name) k##id = number,
#include "formats/section_kinds.def"
};
// Such as "constants"; empty for a kind that section_kinds.def does not list.
std::string_view SectionKindName(SectionKind kind);

enum class Codec : uint8_t { kNone = 0, kZstd = 1 };

enum class ContainerCheck : uint8_t {
#define INGOT_CONTAINER_CHECK(id, name, proves) k##id,
#include "formats/container_checks.def"
};
struct ContainerCheckRow {
  ContainerCheck check;
  const char* name;
  const char* proves;
};
std::span<const ContainerCheckRow> ContainerChecks();

// A set of checks.
struct ContainerCheckMask {
  uint64_t bits = 0;
  constexpr bool Has(ContainerCheck check) const { return (bits >> static_cast<int>(check) & 1) != 0; }
  static constexpr ContainerCheckMask Of(ContainerCheck check) { return {uint64_t{1} << static_cast<int>(check)}; }
  static constexpr ContainerCheckMask All() { return {~uint64_t{0}}; }
};

inline constexpr uint32_t kContainerVersion = 1;
inline constexpr uint64_t kHeaderBytes = 64;
inline constexpr uint64_t kSectionEntryBytes = 64;
inline constexpr uint64_t kTrailerBytes = 16;
inline constexpr uint64_t kMaxSectionAlignment = 65536;
// Where a container may start in a packed program.
inline constexpr uint64_t kPackedAlignment = 4096;
// Above this size the hash of raw constant data is checked by VerifyHashes alone, not when a container is opened: any
// bytes are valid there, and they are better left unread until they are used.
inline constexpr uint64_t kUnhashedConstantBytes = uint64_t{16} << 20;
// What compressed sections may decompress to, all together: an amount that every container has, and an amount for each
// of its bytes, which contents that are not all alike never need. The writer stores what is denser raw.
inline constexpr uint64_t kFreeDecompressedBytes = uint64_t{64} << 20;
inline constexpr uint64_t kDecompressedBytesPerByte = 1024;

struct Section {
  SectionKind kind{};  // may be a number without a name: an unknown optional section
  uint32_t index = 0;
  uint64_t offset = 0;  // from the start of the container
  uint64_t stored_size = 0;
  uint64_t size = 0;  // after decompression
  uint64_t hash = 0;  // XXH3-64 of the stored bytes
  Codec codec = Codec::kNone;
  uint8_t alignment_log2 = 0;
  bool is_required = true;
  std::string name;

  // "constants" or "kernel_image[2]".
  std::string Label() const;
};

struct ContainerOptions {
  // The feature bits of the header that the reader of the sections supports; none exist yet.
  uint64_t known_features = 0;
  uint32_t max_sections = 4096;
  // The cap on what all compressed sections together may decompress to, however large the file is.
  uint64_t max_decompressed_bytes = uint64_t{4} << 30;
  // Its threads decompress sections; borrowed as long as the container lives. Null: the caller's thread decompresses.
  ThreadPool* pool = nullptr;
  // Tests leave checks out, to prove that each is needed. Never set elsewhere.
  ContainerCheckMask left_out{};
};

struct ContainerFinding {
  ContainerCheck check{};
  Status status;
};

class Container {
 public:
  // Makes every check. The bytes may be a container or end with one (a packed program). Failures are corrupt, or
  // unsupported_file where a newer reader may succeed; the message ends with the failed check's name in brackets.
  static Result<Container> Open(SharedBytes bytes, const ContainerOptions& options = {});
  // Opens damaged files: gives as much of the table as can be read, and what is wrong, instead of a failure at the
  // first finding. Fails only when no container is there at all. Reads never go out of bounds, but nothing is proved.
  static Result<Container> Inspect(SharedBytes bytes, const ContainerOptions& options,
                                   std::vector<ContainerFinding>* findings);

  // The sections in the order of the file: ascending by (kind, index).
  std::span<const Section> sections() const { return sections_; }
  const Section* Find(SectionKind kind, uint32_t index = 0) const;
  // The container's bytes, without what stands before it in a packed program.
  const SharedBytes& bytes() const { return bytes_; }
  // Where the container starts in the bytes that were given.
  uint64_t start_offset() const { return start_offset_; }
  uint64_t required_features() const { return required_features_; }

  // A section's bytes: a view of the file where it is stored raw, otherwise decompressed anew by each call. Corrupt
  // when the data does not decompress to the stated size, out of memory when there is none for it.
  Result<SharedBytes> Read(const Section& section) const;
  // The stored bytes as they are.
  std::span<const std::byte> StoredBytes(const Section& section) const;
  // Hashes every section, large raw constants too; corrupt names the first whose hash differs.
  Status VerifyHashes() const;

 private:
  class Opener;
  Result<SharedBytes> ReadOrThrow(const Section& section) const;
  // The cap for a container of this size.
  uint64_t DecompressedCap(uint64_t most) const {
    return std::min(most, kFreeDecompressedBytes + bytes_.size() * kDecompressedBytesPerByte);
  }
  SharedBytes bytes_;
  uint64_t start_offset_ = 0;
  uint64_t required_features_ = 0;
  ContainerCheckMask left_out_{};
  ThreadPool* pool_ = nullptr;
  std::vector<Section> sections_;
};

// The offset at which the container starts: 0, or by the trailer at the end. Failure: neither is there.
Result<uint64_t> FindContainer(std::span<const std::byte> bytes);

// The executable's identity for logs and caches: the hash over header and table, which holds every section's hash.
uint64_t ContainerId(std::span<const std::byte> container);

}  // namespace ingot::formats
