#include "formats/container.h"

#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "formats/byte_reader.h"
#include "formats/container_layout.h"
#include "formats/container_writer.h"
#include "formats/file.h"
#include "formats/hash.h"
#include "formats/zstd_codec.h"
#include "runtime/thread_pool.h"
#include "tests/formats/recompute_hashes.h"
#include "tests/left_out_checks.h"

namespace ingot::formats {
namespace {

using Buffer = std::vector<std::byte>;

constexpr auto kLaterKind = static_cast<SectionKind>(200);

const std::string& Repetitive() {
  static const std::string text = [] {
    std::string t;
    for (int i = 0; i < 500; ++i) t += "weights and measures ";
    return t;
  }();
  return text;
}

// metadata (raw, one byte too long for the alignment), constants (zstd), kernel_image[0] and [1] (aligned to 256),
// constant_data in two pieces, and an optional section of a later kind. In the file in this order: entries 0 to 5.
Buffer Sample() {
  ContainerWriter writer;
  ContainerWriter::Options compressed;
  compressed.codec = Codec::kZstd;
  ContainerWriter::Options image;
  image.alignment = 256;
  ContainerWriter::Options later;
  later.is_required = false;
  later.name = "later_kind";
  CHECK(writer.Add(SectionKind::kConstantData, 0, {AsBytes("first "), AsBytes("second")}).ok());
  CHECK(writer.Add(kLaterKind, 0, {AsBytes("?")}, later).ok());
  CHECK(writer.Add(SectionKind::kConstants, 0, {AsBytes(Repetitive())}, compressed).ok());
  CHECK(writer.Add(SectionKind::kKernelImage, 1, {AsBytes("image one")}, image).ok());
  CHECK(writer.Add(SectionKind::kKernelImage, 0, {AsBytes("image zero")}, image).ok());
  CHECK(writer.Add(SectionKind::kMetadata, 0, {AsBytes("producer=x")}).ok());
  return writer.ToBytes().value();
}

Result<Container> Open(Buffer bytes, ContainerOptions options = {}) {
  options.left_out = test::LeftOutContainerChecks();
  return Container::Open(SharedBytes::Own(std::move(bytes)), options);
}

uint64_t EntryOffset(int section) { return kHeaderBytes + static_cast<uint64_t>(section) * kSectionEntryBytes; }

uint64_t Get(const Buffer& bytes, uint64_t offset) {
  ByteReader reader(bytes, "sample");
  CHECK(reader.Seek(offset).ok());
  return reader.U64().value();
}
void Put(Buffer& bytes, uint64_t offset, uint64_t value, int width = 8) {
  for (int i = 0; i < width; ++i) bytes[offset + i] = static_cast<std::byte>(value >> (8 * i));
}
void Add(Buffer& bytes, uint64_t offset, uint64_t amount) { Put(bytes, offset, Get(bytes, offset) + amount); }

TEST_CASE("a container reads back, section by section") {
  const Container container = Open(Sample()).value();
  std::vector<std::string> labels;
  for (const Section& section : container.sections()) labels.push_back(section.Label());
  CHECK(labels == std::vector<std::string>{"metadata", "constants", "kernel_image", "kernel_image[1]", "constant_data",
                                           "later_kind"});
  const auto text = [&](SectionKind kind, uint32_t index) {
    return std::string(AsText(container.Read(*container.Find(kind, index)).value().bytes));
  };
  CHECK(text(SectionKind::kMetadata, 0) == "producer=x");
  CHECK(text(SectionKind::kConstants, 0) == Repetitive());
  CHECK(text(SectionKind::kKernelImage, 1) == "image one");
  CHECK(text(SectionKind::kConstantData, 0) == "first second");
  CHECK(container.Find(SectionKind::kConstants)->codec == Codec::kZstd);
  CHECK(container.Find(SectionKind::kConstants)->stored_size < Repetitive().size() / 10);
  CHECK(container.Find(SectionKind::kKernelImage, 1)->offset % 256 == 0);
  CHECK(container.Find(SectionKind::kKernelImage, 2) == nullptr);
  CHECK_FALSE(container.Find(kLaterKind)->is_required);
  CHECK(container.VerifyHashes().ok());
  CHECK(ContainerId(container.bytes().bytes) != 0);
}

TEST_CASE("the same sections give the same bytes, in any order, to memory and to a file") {
  const Buffer bytes = Sample();
  CHECK(bytes == Sample());
  ContainerWriter writer;
  CHECK(writer.Add(SectionKind::kMetadata, 0, {AsBytes("m")}).ok());
  CHECK(writer.FileSize() == writer.ToBytes().value().size());
  const std::string path = "container_test.tmp";
  REQUIRE(writer.WriteFile(path).ok());
  const SharedBytes mapped = MapFile(path).value();
  const Buffer in_memory = writer.ToBytes().value();
  CHECK(std::equal(mapped.bytes.begin(), mapped.bytes.end(), in_memory.begin(), in_memory.end()));
  CHECK(Container::Open(mapped).ok());
  FileCalls::System().Unlink(path.c_str());
}

TEST_CASE("a container without sections, and empty sections") {
  CHECK(Open(ContainerWriter().ToBytes().value()).value().sections().empty());
  ContainerWriter writer;
  CHECK(writer.Add(SectionKind::kStrings, 0, {}).ok());
  CHECK(writer.Add(SectionKind::kFunctions, 0, {AsBytes("")}).ok());
  CHECK(Open(writer.ToBytes().value()).value().sections()[1].size == 0);
}

TEST_CASE("what does not shrink is stored raw") {
  ContainerWriter writer;
  ContainerWriter::Options compressed;
  compressed.codec = Codec::kZstd;
  CHECK(writer.Add(SectionKind::kStrings, 0, {AsBytes("ab")}, compressed).ok());
  CHECK(Open(writer.ToBytes().value()).value().sections()[0].codec == Codec::kNone);
}

// Several frames' worth, of words that repeat now and then.
std::string ManyFrames() {
  std::string text;
  for (uint64_t i = 0; text.size() < 3 * kZstdFrameBytes + 5; ++i) text += std::to_string(i * i * 2654435761u);
  return text;
}

TEST_CASE("large sections are several frames, which threads decompress to the same bytes") {
  const std::string text = ManyFrames();
  ContainerWriter writer;
  ContainerWriter::Options compressed;
  compressed.codec = Codec::kZstd;
  const std::string_view view = text;  // pieces that end within frames
  CHECK(writer.Add(SectionKind::kConstants, 0, {AsBytes(view.substr(0, 7)), {}, AsBytes(view.substr(7))}, compressed)
            .ok());
  const Buffer bytes = writer.ToBytes().value();
  const std::unique_ptr<ThreadPool> pool = ThreadPool::Create(3).value();
  for (ThreadPool* threads : {pool.get(), static_cast<ThreadPool*>(nullptr)}) {
    ContainerOptions options;
    options.pool = threads;
    const Container container = Open(bytes, options).value();
    const Section& section = container.sections()[0];
    CHECK(InspectZstd(container.StoredBytes(section)).frames.size() == 4);
    const SharedBytes content = container.Read(section).value();
    CHECK(AsText(content.bytes) == text);
    CHECK(reinterpret_cast<uintptr_t>(content.data()) % 64 == 0);
  }
}

TEST_CASE("a packed program's container is found from its end") {
  Buffer packed(2 * kPackedAlignment, std::byte{'x'});
  const Buffer container = Sample();
  packed.insert(packed.end(), container.begin(), container.end());
  const Container opened = Open(packed).value();
  CHECK(opened.start_offset() == 2 * kPackedAlignment);
  CHECK(opened.bytes().size() == container.size());
  CHECK(AsText(opened.Read(*opened.Find(SectionKind::kMetadata)).value().bytes) == "producer=x");
}

struct CheckCase {
  const char* check;
  bool recompute_hashes;
  std::function<void(Buffer&)> damage;
};

const CheckCase kCheckCases[] = {
    {"packed_offset", false, [](Buffer& b) { b.insert(b.begin(), 64, std::byte{'x'}); }},
    {"magic", false, [](Buffer& b) { b.resize(kHeaderBytes + kTrailerBytes - 1); }},
    {"version", true, [](Buffer& b) { Put(b, 8, 2, 4); }},
    {"version", true, [](Buffer& b) { Put(b, 8, 0, 4); }},
    {"features", true, [](Buffer& b) { Put(b, 24, 1); }},
    {"features", true, [](Buffer& b) { Put(b, 24, uint64_t{1} << 63); }},
    {"file_size", true, [](Buffer& b) { b.pop_back(); }},
    {"file_size", true, [](Buffer& b) { b.push_back(std::byte{0}); }},
    {"section_count", true, [](Buffer& b) { Put(b, 12, 4097, 4); }},
    {"section_count", true, [](Buffer& b) { Put(b, 12, 0xffffffff, 4); }},
    {"table_inside", true, [](Buffer& b) { Put(b, 12, (b.size() - 80) / 64 + 1, 4); }},
    {"table_hash", false, [](Buffer& b) { b[kTableHashOffset] ^= std::byte{1}; }},
    {"header_reserved", true, [](Buffer& b) { b[63] = std::byte{1}; }},
    {"trailer", true, [](Buffer& b) { b[b.size() - 1] ^= std::byte{1}; }},
    {"trailer", true, [](Buffer& b) { b[b.size() - 16] ^= std::byte{1}; }},
    {"order", true, [](Buffer& b) { Put(b, EntryOffset(3) + 4, 0, 4); }},
    {"order", true, [](Buffer& b) { Put(b, EntryOffset(5), 1, 4); }},
    {"kind", true, [](Buffer& b) { Put(b, EntryOffset(5) + 42, kSectionRequired, 2); }},
    {"name", true, [](Buffer& b) { b[EntryOffset(0) + 48] = std::byte{'x'}; }},
    {"name", true, [](Buffer& b) { b[EntryOffset(5) + 48] = std::byte{'\n'}; }},
    {"name", true, [](Buffer& b) { b[EntryOffset(5) + 48] = std::byte{0}; }},
    {"name", true, [](Buffer& b) { b[EntryOffset(5) + 63] = std::byte{'x'}; }},
    {"entry_reserved", true, [](Buffer& b) { b[EntryOffset(1) + 44] = std::byte{1}; }},
    {"entry_reserved", true, [](Buffer& b) { Put(b, EntryOffset(1) + 42, 3, 2); }},
    {"codec", true, [](Buffer& b) { b[EntryOffset(1) + 40] = std::byte{2}; }},
    {"alignment", true, [](Buffer& b) { b[EntryOffset(0) + 41] = std::byte{17}; }},
    {"alignment", true, [](Buffer& b) { b[EntryOffset(0) + 41] = std::byte{255}; }},
    {"placement", true, [](Buffer& b) { Add(b, EntryOffset(0) + 8, 64); }},
    {"placement", true, [](Buffer& b) { Add(b, EntryOffset(1) + 8, ~uint64_t{0}); }},
    {"placement", true, [](Buffer& b) { Put(b, EntryOffset(2) + 8, 0); }},
    {"placement", true, [](Buffer& b) { Put(b, EntryOffset(2) + 8, ~uint64_t{0}); }},
    {"inside", true,
     [](Buffer& b) {
       Put(b, EntryOffset(5) + 16, b.size());
       Put(b, EntryOffset(5) + 24, b.size());
     }},
    {"inside", true,
     [](Buffer& b) {
       Put(b, EntryOffset(5) + 16, ~uint64_t{0});
       Put(b, EntryOffset(5) + 24, ~uint64_t{0});
     }},
    {"padding", true, [](Buffer& b) { b[Get(b, EntryOffset(1) + 8) - 1] = std::byte{1}; }},
    {"padding", true, [](Buffer& b) { b[b.size() - kTrailerBytes - 1] = std::byte{1}; }},
    {"raw_size", true, [](Buffer& b) { Add(b, EntryOffset(0) + 24, 1); }},
    {"raw_size", true, [](Buffer& b) { b[EntryOffset(1) + 40] = std::byte{0}; }},
    {"size_cap", true, [](Buffer& b) { Put(b, EntryOffset(1) + 24, ~uint64_t{0}); }},
    {"size_cap", true, [](Buffer& b) { Put(b, EntryOffset(1) + 24, (uint64_t{4} << 30) + 1); }},
    {"end", true,
     [](Buffer& b) {  // eight zero bytes more before the trailer
       b.insert(b.end() - kTrailerBytes, 8, std::byte{0});
       Put(b, 16, b.size());
       Put(b, b.size() - kTrailerBytes, b.size());
     }},
    {"section_hash", false, [](Buffer& b) { b[Get(b, EntryOffset(0) + 8)] ^= std::byte{1}; }},
    {"zstd_frame", true, [](Buffer& b) { b[Get(b, EntryOffset(1) + 8)] ^= std::byte{1}; }},
    {"zstd_size", true, [](Buffer& b) { Add(b, EntryOffset(1) + 24, 1); }},
};

void CheckRefused(const std::string& check, const Status& status) {
  CAPTURE(check);
  CHECK_FALSE(status.ok());
  CHECK_MESSAGE(status.message().ends_with(" [" + check + "]"), status.message());
}

// A container with one zstd section that is not what the writer would make: `frame` claims to hold `size` bytes.
Buffer WithFrame(const Buffer& frame, uint64_t size) {
  ContainerWriter writer;
  CHECK(writer.Add(SectionKind::kConstants, 0, {frame}).ok());
  Buffer bytes = writer.ToBytes().value();
  bytes[EntryOffset(0) + 40] = std::byte{static_cast<uint8_t>(Codec::kZstd)};
  Put(bytes, EntryOffset(0) + 24, size);
  test::RecomputeContainerHashes(bytes);
  return bytes;
}

TEST_SUITE("checks") {
  TEST_CASE("every check of the container refuses what it is for") {
    for (const CheckCase& c : kCheckCases) {
      Buffer bytes = Sample();
      c.damage(bytes);
      if (c.recompute_hashes) test::RecomputeContainerHashes(bytes);
      CheckRefused(c.check, Open(std::move(bytes)).status());
    }
    CheckRefused("magic", Open(Buffer(100, std::byte{7})).status());
  }

  TEST_CASE("zstd frames must be large, sized, windowed and whole") {
    const std::vector<std::span<const std::byte>> pieces = {AsBytes(Repetitive())};
    const Buffer frame = CompressZstd(pieces, 3).value();
    const uint64_t size = Repetitive().size();
    REQUIRE(Open(WithFrame(frame, size)).ok());

    Buffer twice = frame;
    twice.insert(twice.end(), frame.begin(), frame.end());
    CheckRefused("zstd_frame", Open(WithFrame(twice, size)).status());
    const std::string many = ManyFrames();
    const std::vector<std::span<const std::byte>> long_pieces = {AsBytes(many)};
    const Buffer frames = CompressZstd(long_pieces, 1).value();
    REQUIRE(Open(WithFrame(frames, many.size())).ok());
    Buffer damaged = frames;
    const uint64_t second = InspectZstd(frames).frames[0].stored.size();
    for (uint64_t i = 0; i < 64; ++i) damaged[second + 24 + i] = std::byte{0xff};
    const Result<Container> corrupt = Open(WithFrame(damaged, many.size()));
    REQUIRE(corrupt.ok());
    CheckRefused("zstd_data", corrupt->Read(corrupt->sections()[0]).status());
    Buffer cut(frame.begin(), frame.end() - 1);
    CheckRefused("zstd_frame", Open(WithFrame(cut, size)).status());
    CheckRefused("zstd_frame", Open(WithFrame({}, 0)).status());

    // RFC 8878: magic, a descriptor with an 8-byte content size and no single segment, a window byte (2^(10 + 18)),
    // the content size, and one last raw block of one byte.
    Buffer windowed;
    for (const int byte : {0x28, 0xb5, 0x2f, 0xfd, 0xc0, 18 << 3, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0x78}) {
      windowed.push_back(static_cast<std::byte>(byte));
    }
    CheckRefused("zstd_window", Open(WithFrame(windowed, 1)).status());
    windowed[5] = std::byte{17 << 3};
    CHECK(Open(WithFrame(windowed, 1)).ok());
    // The same with a content size that its block does not have.
    windowed[6] = std::byte{2};
    const Result<Container> lying = Open(WithFrame(windowed, 2));
    REQUIRE(lying.ok());
    CheckRefused("zstd_data", lying->Read(lying->sections()[0]).status());
    // No content size: a descriptor of 0 says so.
    Buffer unsized;
    for (const int byte : {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0, 9, 0, 0, 0x78}) {
      unsized.push_back(static_cast<std::byte>(byte));
    }
    CheckRefused("zstd_size", Open(WithFrame(unsized, 1)).status());
  }

  TEST_CASE("every check of the container has a case") {
    std::set<std::string> covered = {"zstd_window", "zstd_data"};
    for (const CheckCase& c : kCheckCases) covered.insert(c.check);
    for (const ContainerCheckRow& row : ContainerChecks()) {
      CAPTURE(std::string(row.name));
      CHECK(covered.count(row.name) == 1);
    }
    CHECK(covered.size() == ContainerChecks().size());
  }

  TEST_CASE("all compressed sections share one cap") {
    ContainerOptions options;
    options.max_decompressed_bytes = Repetitive().size();
    CHECK(Open(Sample(), options).ok());
    --options.max_decompressed_bytes;
    CheckRefused("size_cap", Open(Sample(), options).status());
  }

  TEST_CASE("what sections may decompress to grows with the size of the file") {
    const Buffer frame = *CompressZstd(std::vector<std::span<const std::byte>>{Buffer(1 << 24)}, 1);
    for (const size_t num_frames : {3, 4, 5}) {
      Buffer stored;
      for (size_t i = 0; i < num_frames; ++i) stored.insert(stored.end(), frame.begin(), frame.end());
      ContainerWriter writer;
      Section section;
      section.kind = SectionKind::kConstantData;
      section.name = SectionKindName(section.kind);
      section.codec = Codec::kZstd;
      section.size = num_frames << 24;
      section.stored_size = stored.size();
      section.hash = Hash(stored);
      section.alignment_log2 = 6;
      writer.AddStored(section, stored);
      Buffer bytes = *writer.ToBytes();
      const uint64_t cap = kFreeDecompressedBytes + bytes.size() * kDecompressedBytesPerByte;
      const Result<Container> container = Open(std::move(bytes));
      if (section.size <= cap) {
        CHECK(container.ok());
      } else {
        CheckRefused("size_cap", container.status());
      }
      CHECK((section.size <= cap) == (num_frames < 5));
    }
  }
}

TEST_CASE("the writer stores large sections raw that a reader would refuse compressed") {
  ContainerWriter::Options compressed;
  compressed.codec = Codec::kZstd;
  for (const size_t size : {size_t{1} << 24, (size_t{1} << 24) + 1}) {
    ContainerWriter writer;
    const Buffer zeros(size);
    REQUIRE(writer.Add(SectionKind::kConstantData, 0, {zeros}, compressed).ok());
    const Container container = *Container::Open(SharedBytes::Own(*writer.ToBytes()));
    CHECK((container.sections()[0].codec == Codec::kZstd) == (size == size_t{1} << 24));
  }
}

TEST_CASE("other versions are refused with what to do about them") {
  for (const auto& [version, text] : {std::pair(2,
                                                "format version 2, written by a newer Ingot, which reads it; this one "
                                                "reads version 1 [version]"),
                                      std::pair(0,
                                                "format version 0, written by an older Ingot: compile the model anew; "
                                                "this one reads version 1 [version]")}) {
    Buffer bytes = Sample();
    Put(bytes, 8, version, 4);
    test::RecomputeContainerHashes(bytes);
    if (!test::IsWorthTesting("container.version")) continue;
    const Status status = Open(std::move(bytes)).status();
    CHECK(status.code() == StatusCode::kUnsupportedFile);
    CHECK(status.message() == text);
  }
}

TEST_CASE("known feature bits are accepted, and kept") {
  ContainerWriter writer(4);
  ContainerOptions options;
  options.known_features = 6;
  CHECK(Open(writer.ToBytes().value(), options).value().required_features() == 4);
  CHECK(Open(writer.ToBytes().value()).status().code() == StatusCode::kUnsupportedFile);
}

TEST_CASE("large raw constants are hashed when asked, not when opened") {
  const Buffer large(kUnhashedConstantBytes + 1);
  for (const bool is_constant : {true, false}) {
    ContainerWriter writer;
    CHECK(writer.Add(is_constant ? SectionKind::kConstantData : SectionKind::kDebugMap, 0, {large}).ok());
    Buffer bytes = writer.ToBytes().value();
    bytes[bytes.size() / 2] ^= std::byte{1};
    const Result<Container> container = Open(std::move(bytes));
    CHECK(container.ok() == is_constant);
    if (container.ok()) CHECK(container->VerifyHashes().code() == StatusCode::kCorrupt);
  }
}

TEST_CASE("every truncation and every changed byte is refused or read, never worse") {
  const Buffer sample = Sample();
  const auto open_and_read = [](Buffer bytes) {
    const bool fits = bytes.size() <= 1 << 20;
    CHECK(fits);
    ContainerOptions options;
    options.max_decompressed_bytes = 1 << 20;
    std::vector<ContainerFinding> findings;
    const SharedBytes shared = SharedBytes::Own(std::move(bytes));
    const Result<Container> inspected = Container::Inspect(shared, options, &findings);
    if (inspected.ok()) {
      for (const Section& section : inspected->sections()) (void)inspected->StoredBytes(section).size();
    }
    const Result<Container> opened = Container::Open(shared, options);
    CHECK(opened.ok() == (inspected.ok() && findings.empty()));
    if (!opened.ok()) {
      CHECK(opened.status().message().ends_with("]"));
      return false;
    }
    for (const Section& section : opened->sections()) (void)opened->Read(section);
    return true;
  };
  CHECK(open_and_read(sample));
  for (size_t size = 0; size < sample.size(); ++size) {
    CHECK_FALSE(open_and_read(Buffer(sample.begin(), sample.begin() + static_cast<ptrdiff_t>(size))));
  }
  int accepted = 0;
  for (size_t i = 0; i < sample.size(); ++i) {
    for (const int change : {0x01, 0x80, 0xff}) {
      Buffer mutant = sample;
      mutant[i] ^= static_cast<std::byte>(change);
      CHECK_FALSE(open_and_read(mutant));
      test::RecomputeContainerHashes(mutant);
      accepted += open_and_read(std::move(mutant)) ? 1 : 0;
    }
  }
  // When hashes are made right again, changes of contents, and of numbers and names of optional kinds, are accepted.
  CHECK(accepted > 0);
}

TEST_CASE("integer fields at their limits are refused or read, never worse") {
  const uint64_t limits[] = {0,
                             1,
                             0x7fffffff,
                             0x80000000,
                             0x80000001,
                             0xffffffff,
                             uint64_t{1} << 63,
                             ~uint64_t{0},
                             ~uint64_t{0} - 15,
                             ~uint64_t{0} - 63};
  const Buffer sample = Sample();
  for (int section = 0; section < 6; ++section) {
    for (const int field : {0, 8, 16, 24, 32, 40, 48}) {
      for (const uint64_t limit : limits) {
        Buffer mutant = sample;
        Put(mutant, EntryOffset(section) + static_cast<uint64_t>(field), limit);
        test::RecomputeContainerHashes(mutant);
        ContainerOptions options;
        options.max_decompressed_bytes = 1 << 20;
        const Result<Container> container = Container::Open(SharedBytes::Own(std::move(mutant)), options);
        if (!container.ok()) continue;
        for (const Section& s : container->sections()) (void)container->Read(s);
      }
    }
  }
}

}  // namespace
}  // namespace ingot::formats
