#include "vm/program/trust.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "formats/file.h"
#include "formats/signing.h"
#include "vm/program/program_codec.h"
#include "vm/run/executable.h"
#include "vm/text/assembler.h"

namespace ingot::vm {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path = fs::temp_directory_path() / ("ingot_trust_" + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
};

std::vector<std::byte> File(const std::string& key = "") {
  const Program program = *Assemble(
      "ingot 1\nconstant \"c\" float32[2] = 1, 2\n"
      "function @main export (x: float32[2]) -> (y: float32[2]) {\n"
      "  register r1: float32[2]\n  copy r1, r0\n  return [r1]\n}\n");
  EncodedProgram encoded = *EncodedProgram::Encode(program);
  if (!key.empty()) REQUIRE(formats::SignContainer(encoded.container(), key).ok());
  return *encoded.container().ToBytes();
}

Status Open(const std::vector<std::byte>& file, const OpenOptions& options) {
  const SharedBytes bytes(nullptr, file);
  return Executable::OpenMemory(*Instance::Create(), bytes, "m", options).status();
}

OpenOptions Policy(TrustPolicy policy) {
  OpenOptions options;
  options.trust = Trust::kPolicy;
  options.policy = std::move(policy);
  return options;
}

TEST_CASE("a policy is lines of keys and digests, and nothing else") {
  const std::string digits(64, 'a');
  const auto policy =
      ParseTrustPolicy("# ours\n\nrequire-signature " + digits + "  # a key\nallow-sha256 " + digits + "\r\n", "p");
  REQUIRE(policy.ok());
  CHECK(policy->keys.size() == 1);
  CHECK(policy->allowed.size() == 1);
  CHECK(policy->keys[0][31] == 0xaa);
  for (const std::string& line : {"require-signature " + digits + "0", std::string("allow-sha256"), "trust " + digits,
                                  " require-signature " + digits}) {
    const auto refused = ParseTrustPolicy("\n" + line, "p");
    CHECK(refused.status().code() == StatusCode::kNotTrusted);
    CHECK(refused.status().message().starts_with("p, line 2: "));
  }
}

TEST_CASE("a list of digests allows its files and no others") {
  const std::vector<std::byte> file = File();
  TrustPolicy listed;
  listed.allowed = {formats::Sha256Of(file)};
  CHECK(Open(file, Policy(listed)).ok());
  listed.allowed[0][5] ^= 1;
  const Status refused = Open(file, Policy(listed));
  CHECK(refused.code() == StatusCode::kNotTrusted);
  CHECK(refused.message().find(formats::ToHex(formats::Sha256Of(file))) != std::string::npos);
}

TEST_CASE("the machine's policy holds besides the caller's, but for stubs") {
  const Folder folder;
  const std::vector<std::byte> file = File();
  OpenOptions options;
  options.trust = Trust::kFile;
  options.machine_policy_path = folder / "policy";
  CHECK(Open(file, options).ok());
  const auto write = [&](const std::string& text) {
    REQUIRE(formats::WriteFileAtomically(options.machine_policy_path, std::as_bytes(std::span(text))).ok());
  };
  write("allow-sha256 " + std::string(64, '0') + "\n");
  CHECK(Open(file, options).code() == StatusCode::kNotTrusted);
  options.stub_kernels = true;
  CHECK(Open(file, options).ok());
  options.stub_kernels = false;
  write("allow-sha256 " + formats::ToHex(formats::Sha256Of(file)) + "\n");
  CHECK(Open(file, options).ok());
  write("allow-everything\n");
  CHECK(Open(file, options).code() == StatusCode::kNotTrusted);
  write("");  // a policy that allows nothing
  CHECK(Open(file, options).code() == StatusCode::kNotTrusted);
}

TEST_CASE("a policy that cannot be read refuses; only where there is no such name there is none") {
  const Folder folder;
  const std::vector<std::byte> file = File();
  OpenOptions options;
  options.trust = Trust::kFile;
  const auto opens = [&](const std::string& path) {
    options.machine_policy_path = path;
    return Open(file, options).ok();
  };
  CHECK(opens(folder / "policy"));
  CHECK(opens(folder / "none/of/these"));
  REQUIRE(symlink("nowhere", (folder / "dangling").c_str()) == 0);
  REQUIRE(symlink("loop", (folder / "loop").c_str()) == 0);
  REQUIRE(formats::WriteFileAtomically(folder / "file", {}).ok());
  REQUIRE(mkdir((folder / "directory").c_str(), 0700) == 0);
  for (const char* name : {"dangling", "loop", "dangling/policy", "loop/policy", "file/policy", "directory"}) {
    CAPTURE(name);
    CHECK_FALSE(opens(folder / name));
  }
}

TEST_CASE("signatures: of a trusted key, over every byte that means something") {
  if (!formats::CanCheckSignatures()) {
    std::puts("SKIP: signatures, in a build without libsodium");
    return;
  }
  const Folder folder;
  const std::string key = folder / "key", other = folder / "other";
  REQUIRE(formats::MakeKeyPair(key).ok());
  REQUIRE(formats::MakeKeyPair(other).ok());
  CHECK_FALSE(formats::MakeKeyPair(key).ok());  // is there
  struct stat info {};
  REQUIRE(stat(key.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);

  TrustPolicy trusted;
  trusted.keys = {*formats::ReadPublicKey(key + ".pub")};
  TrustPolicy others;
  others.keys = {*formats::ReadPublicKey(other + ".pub")};
  const std::vector<std::byte> file = File(key);
  CHECK(Open(file, Policy(trusted)).ok());
  CHECK(Open(file, Policy(others)).message().find("none of the trusted keys") != std::string::npos);
  CHECK(Open(File(), Policy(trusted)).message().find("not signed") != std::string::npos);

  // Changes bytes of each section and renews the hashes. The signature, or a check of the container, finds each change.
  const formats::Container container = *formats::Container::Open(SharedBytes(nullptr, file));
  int by_signature = 0;
  for (const formats::Section& changed : container.sections()) {
    for (uint64_t at = 0; at<changed.stored_size; at += changed.stored_size> 64 ? 7 : 1) {
      formats::ContainerWriter writer;
      std::vector<std::byte> copy;
      for (const formats::Section& section : container.sections()) {
        const std::span<const std::byte> stored = container.StoredBytes(section);
        formats::ContainerWriter::Options options;
        options.alignment = uint64_t{1} << section.alignment_log2;
        options.is_required = section.is_required;
        copy.assign(stored.begin(), stored.end());
        if (&section == &changed) copy[at] ^= std::byte{1};
        REQUIRE(writer.AddOwned(section.kind, section.index, copy, options).ok());
      }
      const Status refused = Open(*writer.ToBytes(), Policy(trusted));
      CHECK_MESSAGE(refused.code() == StatusCode::kNotTrusted, changed.Label() << " " << at);
      by_signature += refused.code() == StatusCode::kNotTrusted;
    }
  }
  CHECK(by_signature > 100);
}

}  // namespace
}  // namespace ingot::vm
