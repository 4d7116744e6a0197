// Whole files as text and back: sections beside the program's own, compressed constants, a launcher, files without a
// debug map; with all bytes in the text, and with large ones in a file beside it.
#include "vm/program/file_form.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "formats/byte_reader.h"
#include "formats/container_writer.h"
#include "formats/file.h"
#include "formats/hash.h"
#include "formats/packed_program.h"
#include "vm/program/golden_cases.h"
#include "vm/program/program_codec.h"
#include "vm/text/assembler.h"
#include "vm/text/disassembler.h"

namespace ingot::vm {
namespace {

namespace fs = std::filesystem;
using formats::SectionKind;

constexpr char kText[] = R"(ingot 1
constant "zeros" float32[4096] = zeros
constant "few" float32[2] = 1, 2
function @main export () -> (y: float32[2]) {
  register r0: constant float32[2]
  register r1: float32[2]
  note "a copy"
  const_tensor r0, #1
  copy r1, r0
  return [r1]
}
)";

// A temporary folder, removed by the destructor.
struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "ingot-form-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name + "/";
  }
  ~Folder() { fs::remove_all(path); }
  std::string path;
};

std::vector<std::byte> BytesOf(const std::string& path) {
  const SharedBytes file = *formats::MapFile(path);
  return {file.bytes.begin(), file.bytes.end()};
}

struct Opened {
  explicit Opened(const std::string& path)
      : file(*formats::MapFile(path)), container(*formats::Container::Open(file)), program(*DecodeProgram(container)) {}
  SharedBytes file;
  formats::Container container;
  Program program;
};

// Disassembles the file, assembles the text again and checks that both files have the same bytes. Returns the text.
std::string CheckRoundTrip(const Folder& folder, const std::string& path, bool beside) {
  const Opened opened(path);
  const FileForm form = FormOf(opened.container, opened.file);
  BlobsBeside blobs;
  blobs.name = "blobs";
  DisassembleOptions options;
  options.form = &form;
  if (beside) options.beside = &blobs;
  const std::string text = Disassemble(opened.program, options);
  std::vector<std::byte> bytes;
  for (const auto piece : blobs.pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
  CHECK(bytes.size() == blobs.size);
  REQUIRE(formats::WriteFileAtomically(folder.path + "blobs", bytes).ok());
  const Result<AssembledFile> assembled = AssembleFile(text, "text", folder.path);
  REQUIRE_MESSAGE(assembled.ok(), assembled.status().message());
  const Status written = WriteInForm(assembled->program, assembled->form, folder.path + "again");
  REQUIRE_MESSAGE(written.ok(), written.message());
  CHECK(BytesOf(folder.path + "again") == BytesOf(path));
  CHECK((fs::status(folder.path + "again").permissions() & fs::perms::owner_exec) ==
        (fs::status(path).permissions() & fs::perms::owner_exec));
  return text;
}

void CheckRoundTrips(const Folder& folder, const std::string& path, std::string_view line) {
  const std::string whole = CheckRoundTrip(folder, path, false);
  CHECK_MESSAGE(whole.find(line) != std::string::npos, whole.substr(0, 400));
  const std::string text = CheckRoundTrip(folder, path, true);
  CHECK(text.find(line) != std::string::npos);
  CHECK(text.starts_with("ingot 1\nblobs \"blobs\" size "));
  CHECK(text.size() < 2000);  // the large constant is not in it
}

TEST_CASE("a file assembles back to its bytes in every form") {
  const Folder folder;
  const std::string path = folder.path + "file";
  const Program program = *Assemble(kText);
  EncodeOptions options;
  SUBCASE("plain") {
    REQUIRE(WriteProgram(program, path).ok());
    CheckRoundTrips(folder, path, "constant \"few\"");
  }
  SUBCASE("without a debug map") {
    options.debug_map = false;
    REQUIRE(WriteProgram(program, path, options).ok());
    CheckRoundTrips(folder, path, "\nstripped\n");
  }
  SUBCASE("compressed constants, of whatever level") {
    options.constants_codec = formats::Codec::kZstd;
    options.zstd_level = 3;
    REQUIRE(WriteProgram(program, path, options).ok());
    CheckRoundTrips(folder, path, "section constant_data[0] required align 64 zstd 16448 = ");
  }
  SUBCASE("other sections, and those of a later version") {
    EncodedProgram encoded = *EncodedProgram::Encode(program);
    formats::ContainerWriter::Options section;
    section.is_required = false;
    const std::vector<GoldenCase> cases = {{"main", GoldenOrigin::kFile, 0, 0, {}, {}}};
    REQUIRE(encoded.container().AddOwned(SectionKind::kGoldenCases, 0, EncodeGoldenCases(cases), section).ok());
    section.name = "later";
    section.alignment = 256;
    const auto later = static_cast<SectionKind>(77);
    REQUIRE(encoded.container().Add(later, 2, {formats::AsBytes("bytes")}, section).ok());
    SUBCASE("in an executable") { REQUIRE(encoded.container().WriteFile(path).ok()); }
    SUBCASE("behind a launcher") {
      const std::string launcher =
          "\x7f"
          "ELF, as far as packing looks at it";
      REQUIRE(formats::WritePackedProgram(formats::AsBytes(launcher), encoded.container(), path).ok());
    }
    CheckRoundTrips(folder, path, "section golden_cases[0] optional align 64 = ");
    CheckRoundTrips(folder, path, "\nsection 77 \"later\"[2] optional align 256 = hex \"6279746573\"\n");
  }
}

std::string FailureOf(const Folder& folder, const std::string& lines) {
  const auto assembled = AssembleFile("ingot 1\n" + lines + "\n" + std::string(kText).substr(8), "f", folder.path);
  if (!assembled.ok()) return assembled.status().message();
  const Status written = WriteInForm(assembled->program, assembled->form, folder.path + "out");
  CHECK(fs::exists(folder.path + "out") == written.ok());
  CHECK((written.ok() || written.code() == StatusCode::kBadInput));
  return written.message();
}

TEST_CASE("sections and blobs that do not fit are refused") {
  const Folder folder;
  REQUIRE(formats::WriteFileAtomically(folder.path + "blobs", formats::AsBytes("0123456789")).ok());
  const auto check = [&](const std::string& lines, std::string_view message) {
    const std::string failure = FailureOf(folder, lines);
    CHECK_MESSAGE(failure.find(message) != std::string::npos, failure);
  };
  check("section weight[0] optional align 8 = hex \"\"", "unknown section \"weight\"; did you mean \"weights\"?");
  check("section 77 \"later\"[0] optional align 8 = hex \"\"\nsection 77 \"later\"[0] optional align 8 = hex \"\"",
        "sections ascend by kind and index");
  check("section 77 \"later\"[0] optional align 12 = hex \"\"", "expected a power of two");
  check("section 77 \"later\"[0] optional align 131072 = hex \"\"", "at most 65536");
  check("section 77 \"a_name_of_17_byte\"[0] optional align 8 = hex \"\"", "16 bytes at most");
  check("section 77 \"Later\"[0] optional align 8 = hex \"\"", "[name]");
  check("section 77 \"later\"[0] required align 8 = hex \"\"", "[kind]");
  check("section 77 \"later\"[0] optional align 8 zstd 10 = hex \"00\"", "[zstd_frame]");
  check("section strings[0] required align 8 = hex \"00\"", "section strings is not the program's any more");
  check("section weights[0] required align 8 = hex \"00\"", "section weights is not the program's any more");
  check("launcher = hex \"00\"", "the launcher is no ELF program");
  check("blobs \"none\" size 10 hash 0x0", "none");
  check("blobs \"../blobs\" size 10 hash 0x0", "../blobs");
  check("blobs \"blobs\" size 10 hash 0x0", "not the one that belongs to this text");
  check("launcher = blob 0 size 1", "no file of blobs was named before");
  const std::string right =
      "blobs \"blobs\" size 10 hash " + std::to_string(formats::Hash(formats::AsBytes("0123456789")));
  check(right + "\n" + right, "there is a file of blobs already");
  for (const char* piece : {"11 size 0", "10 size 1", "0 size 11", "1 size 18446744073709551615"}) {
    check(right + "\nlauncher = blob " + piece, "has only 10 bytes");
  }
  CHECK(FailureOf(folder, right + "\nsection 77 \"later\"[0] optional align 8 = blob 10 size 0").empty());
  CHECK(Assemble("ingot 1\n" + right + "\n").status().message().find("beside a text that is a file") !=
        std::string::npos);
}

TEST_CASE("a text with anything in the place of a character is refused or written") {
  const Folder folder;
  REQUIRE(formats::WriteFileAtomically(folder.path + "blobs", formats::AsBytes("0123456789")).ok());
  const std::string lines = "blobs \"blobs\" size 10 hash " +
                            std::to_string(formats::Hash(formats::AsBytes("0123456789"))) +
                            "\nsection golden_cases[0] optional align 64 = hex \"00\"\n"
                            "section 77 \"later\"[1] optional align 8 = blob 2 size 5\nstripped";
  REQUIRE(FailureOf(folder, lines).empty());
  int refused = 0, written = 0;
  for (size_t at = 0; at < lines.size(); ++at) {
    for (const char c : {'\0', '0', '9', '"', ' ', '\n', '\x80'}) {
      std::string text = lines;
      text[at] = c;
      fs::remove(folder.path + "out");
      ++(FailureOf(folder, text).empty() ? written : refused);
    }
  }
  CHECK(refused > 500);
  CHECK(written > 50);
}

TEST_CASE("compressed constants of a text that was changed are refused") {
  const Folder folder;
  EncodeOptions options;
  options.constants_codec = formats::Codec::kZstd;
  REQUIRE(WriteProgram(*Assemble(kText), folder.path + "file", options).ok());
  const Opened opened(folder.path + "file");
  const FileForm form = FormOf(opened.container, opened.file);
  Program changed = opened.program;
  changed.constants[1].bytes = SharedBytes::Own(std::vector<std::byte>(8));
  CHECK(WriteInForm(changed, form, folder.path + "out").message() ==
        "section constant_data is not the program's any more: leave it out, and it is stored as it is");
  CHECK(WriteInForm(changed, FileForm(), folder.path + "out").ok());
}

}  // namespace
}  // namespace ingot::vm
