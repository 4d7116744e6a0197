// Policies and keys. The bytes up to the first zero are a policy's text, in which @KEY and @DIGEST stand for the key of
// a signed file and for its SHA-256; what follows changes bytes of the file, three bytes per change (position, value).
// The text is read as a policy and as a file of a public and a secret key. What satisfies a policy is named in it, and a
// signature holds for the same program alone.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "formats/signing.h"
#include "tests/formats/recompute_hashes.h"
#include "tests/fuzz_targets/target.h"
#include "vm/program/program_codec.h"
#include "vm/program/trust.h"
#include "vm/text/assembler.h"

namespace ingot::fuzz {
namespace {

constexpr const char* kProgram = "ingot 1\nfunction @main export (x: int) -> (y: int) {\n  return [r0]\n}\n";

// A file that is signed by a key of its own.
struct SignedFile {
  vm::Program program = *vm::Assemble(kProgram);
  std::vector<std::byte> bytes;
  std::string key, digest;  // as hexadecimal digits

  SignedFile() {
    std::string folder = (std::filesystem::temp_directory_path() / "ingot-fuzz-XXXXXX").string();
    INGOT_CHECK(mkdtemp(folder.data()) != nullptr);
    vm::EncodedProgram encoded = *vm::EncodedProgram::Encode(program);
    const std::string path = folder + "/key";
    if (formats::CanCheckSignatures()) {
      INGOT_CHECK(formats::MakeKeyPair(path).ok());
      INGOT_CHECK(formats::SignContainer(encoded.container(), path).ok());
      key = formats::ToHex(*formats::ReadPublicKey(path + ".pub"));
    }
    std::filesystem::remove_all(folder);
    bytes = *encoded.container().ToBytes();
    digest = formats::ToHex(formats::Sha256Of(bytes));
  }
};

std::string Replaced(std::string text, std::string_view word, const std::string& by) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + by.size())) {
    text.replace(at, word.size(), by);
  }
  return text;
}

bool Names(std::string text, const std::string& digits) {
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c; });
  return !digits.empty() && text.find(digits) != std::string::npos;
}

// What reads files reads the text from a file in memory.
void TryKeyFile(const std::string& text, const SignedFile& file) {
  static const int fd = memfd_create("key", MFD_CLOEXEC);
  const bool is_written =
      ftruncate(fd, 0) == 0 && pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  INGOT_CHECK(is_written);
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  (void)formats::ReadPublicKey(path);
  vm::EncodedProgram encoded = *vm::EncodedProgram::Encode(file.program);
  (void)formats::SignContainer(encoded.container(), path);
  vm::TrustPolicy policy;
  const auto has_policy = vm::ReadMachinePolicy(path, &policy);
  INGOT_CHECK(!has_policy.ok() || *has_policy);
}

void Try(const SignedFile& file, const std::string& text, std::span<const uint8_t> changes) {
  TryKeyFile(text, file);
  const auto policy = vm::ParseTrustPolicy(text, "policy");
  std::vector<std::byte> bytes = file.bytes;
  for (; changes.size() >= 3; changes = changes.subspan(3)) {
    bytes[(changes[0] << 8 | changes[1]) % bytes.size()] = static_cast<std::byte>(changes[2]);
  }
  test::RecomputeContainerHashes(bytes);
  const bool is_changed = bytes != file.bytes;
  const auto container = formats::Container::Open(SharedBytes::Own(bytes));
  if (!policy.ok() || !container.ok() || !vm::CheckTrust(*policy, *container, bytes, nullptr).ok()) return;
  INGOT_CHECK(Names(text, file.key) || (Names(text, file.digest) && !is_changed), text.c_str());
  const auto program = vm::DecodeProgram(*container);
  INGOT_CHECK(program.ok(), program.status().message().c_str());
  INGOT_CHECK(*vm::EncodeProgram(*program) == *vm::EncodeProgram(file.program));
}

}  // namespace
}  // namespace ingot::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ingot::fuzz::SignedFile file;
  const uint8_t* end = std::find(data, data + size, 0);
  const auto text_size = static_cast<size_t>(end - data);
  std::string text(ingot::fuzz::TextOf(data, text_size));
  text = ingot::fuzz::Replaced(std::move(text), "@KEY", file.key);
  text = ingot::fuzz::Replaced(std::move(text), "@DIGEST", file.digest);
  ingot::fuzz::Try(file, text, {end, size - text_size});
  return 0;
}
