// Parses hex bytes, pieces of the file of blobs (checked by size and hash when it is named), and stored sections.
#include "vm/text/assembler_file.h"

#include <algorithm>
#include <bit>

#include "formats/container_layout.h"
#include "formats/file.h"
#include "formats/hash.h"

namespace ingot::vm {
namespace {

constexpr struct {
  std::string_view name;
  formats::SectionKind kind;
} kSections[] = {
#define INGOT_SECTION_KIND(number, id, name) {name, formats::SectionKind::k##id},
#include "formats/section_kinds.def"
};

}  // namespace

void FileParser::ParseBlobs() {
  const size_t at = in_.position();
  const std::string name = in_.ExpectString();
  in_.Expect("size");
  const uint64_t size = in_.ExpectUnsigned(UINT64_MAX);
  in_.Expect("hash");
  const uint64_t hash = in_.ExpectUnsigned(UINT64_MAX);
  if (!in_.ok()) return;
  if (has_blobs_) {
    in_.FailAt(at, "there is a file of blobs already");
  } else if (directory_.empty()) {
    in_.FailAt(at, "blobs lie beside a text that is a file");
  } else if (auto file = formats::InputFile::OpenBeneath(directory_, name); !file.ok()) {
    in_.FailAt(at, file.status().message());
  } else {
    blobs_ = formats::InputFile::Share(*std::move(file));
    has_blobs_ = true;
    if (blobs_.size() != size || formats::Hash(blobs_.bytes) != hash) {
      in_.FailAt(at, "the file \"" + name + "\" is not the one that belongs to this text");
    }
  }
}

void FileParser::ParseSection() {
  StoredSection part;
  formats::Section& section = part.section;
  const size_t at = in_.position();
  if (in_.PeekWord().empty()) {  // a number: a kind of a later version
    section.kind = static_cast<formats::SectionKind>(in_.ExpectUnsigned(UINT32_MAX));
    section.name = in_.ExpectString();
    if (section.name.size() > formats::kSectionNameBytes) in_.FailAt(at, "a section's name has 16 bytes at most");
  } else {
    std::string_view names[std::size(kSections)];
    std::ranges::transform(kSections, names, [](const auto& row) { return row.name; });
    const int row = in_.ExpectOneOf("section", names);
    if (row < 0) return;
    section.kind = kSections[row].kind;
    section.name = names[row];
  }
  in_.Expect("[");
  section.index = static_cast<uint32_t>(in_.ExpectUnsigned(UINT32_MAX));
  in_.Expect("]");
  constexpr std::string_view kUse[] = {"optional", "required"};
  section.is_required = in_.ExpectOneOf("kind of section", kUse) == 1;
  in_.Expect("align");
  const size_t alignment_at = in_.position();
  const uint64_t alignment = in_.ExpectUnsigned(formats::kMaxSectionAlignment);
  if (in_.ok() && !std::has_single_bit(alignment)) in_.FailAt(alignment_at, "expected a power of two");
  section.alignment_log2 = static_cast<uint8_t>(std::countr_zero(alignment) & 31);
  const bool is_compressed = in_.Take("zstd");
  if (is_compressed) {
    section.codec = formats::Codec::kZstd;
    section.size = in_.ExpectUnsigned(UINT64_MAX);
  }
  in_.Expect("=");
  part.stored = ParseBlob();
  section.stored_size = part.stored.size();
  if (!is_compressed) section.size = section.stored_size;
  section.hash = formats::Hash(part.stored.bytes);
  const auto key = [](const StoredSection& p) { return std::pair(p.section.kind, p.section.index); };
  if (in_.ok() && !form_.sections.empty() && key(form_.sections.back()) >= key(part)) {
    in_.FailAt(at, "sections ascend by kind and index, and none stands here twice");
  }
  form_.sections.push_back(std::move(part));
}

void FileParser::ParseLauncher() {
  in_.Expect("=");
  form_.launcher = ParseBlob();
}

SharedBytes FileParser::ParseBlob() { return in_.Peek("blob") ? ParsePieceOfBlobs() : ParseHex(); }

SharedBytes FileParser::ParsePieceOfBlobs() {
  const size_t at = in_.position();
  in_.Expect("blob");
  const uint64_t offset = in_.ExpectUnsigned(UINT64_MAX);
  in_.Expect("size");
  const uint64_t size = in_.ExpectUnsigned(UINT64_MAX);
  if (!in_.ok()) return {};
  if (!has_blobs_) {
    in_.FailAt(at, "no file of blobs was named before");
    return {};
  }
  if (offset > blobs_.size() || size > blobs_.size() - offset) {
    in_.FailAt(at, "the file of blobs has only " + std::to_string(blobs_.size()) + " bytes");
    return {};
  }
  return {blobs_.owner, blobs_.bytes.subspan(offset, size)};
}

// Spaces inside the quotes separate nothing.
SharedBytes FileParser::ParseHex() {
  std::vector<std::byte> bytes;
  in_.Expect("hex");
  while (in_.ok()) {
    const size_t at = in_.position();
    const std::string digits = in_.ExpectString();
    int high = -1;
    for (char c : digits) {
      if (c == ' ') continue;
      const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
      if (digit < 0) {
        in_.FailAt(at, "expected the digits 0-9 and a-f");
        break;
      }
      if (high < 0) {
        high = digit;
      } else {
        bytes.push_back(static_cast<std::byte>(high * 16 + digit));
        high = -1;
      }
    }
    if (high >= 0) in_.FailAt(at, "an odd number of hex digits");
    if (!in_.Peek("\"")) break;
  }
  return SharedBytes::Own(std::move(bytes));
}

}  // namespace ingot::vm
