// Key files and signatures by libsodium; in a build without it, functions that fail and say so.
#include "formats/signing.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "formats/byte_reader.h"
#include "formats/file.h"

#ifdef INGOT_WITH_SODIUM
#include <sodium.h>
#endif

namespace ingot::formats {

#ifdef INGOT_WITH_SODIUM
namespace {

constexpr std::string_view kSecretPrefix = "ingot-secret-key ";

struct SecretKey {
  std::array<uint8_t, crypto_sign_SECRETKEYBYTES> bytes;
  ~SecretKey() { sodium_memzero(bytes.data(), bytes.size()); }
};

Status Prepare() { return sodium_init() < 0 ? Status(StatusCode::kFailed, "libsodium cannot be used here") : Status(); }

// Writes a file that must not exist yet; it has this mode from the start.
Status WriteNew(const std::string& path, mode_t mode, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  const auto failed = [&] { return Status(StatusCode::kIo, path + ": cannot write: " + std::strerror(errno)); };
  if (fd < 0) return failed();
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t count = write(fd, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    rest.remove_prefix(static_cast<size_t>(count));
  }
  const bool is_whole = rest.empty() && fsync(fd) == 0;
  Status status = is_whole ? Status() : failed();
  close(fd);
  if (!is_whole) unlink(path.c_str());
  return status;
}

Result<SecretKey> ReadSecretKey(const std::string& path) {
  INGOT_ASSIGN_OR_RETURN(const SharedBytes file, MapFile(path));
  std::string_view text = AsText(file.bytes);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  SecretKey key;
  if (text.starts_with(kSecretPrefix) && FromHex(text.substr(kSecretPrefix.size()), key.bytes)) return key;
  return Status(StatusCode::kBadInput, path + ": expected a secret key as vm-inspect --make-key writes it");
}

}  // namespace

Status MakeKeyPair(const std::string& path) {
  INGOT_RETURN_IF_ERROR(Prepare());
  PublicKey public_key;
  SecretKey secret_key;
  crypto_sign_keypair(public_key.data(), secret_key.bytes.data());
  INGOT_RETURN_IF_ERROR(WriteNew(path, 0600, std::string(kSecretPrefix) + ToHex(secret_key.bytes) + "\n"));
  Status status = WriteNew(path + ".pub", 0666, ToHex(public_key) + "\n");
  if (!status.ok()) unlink(path.c_str());
  return status;
}

Status SignContainer(ContainerWriter& container, const std::string& secret_key_path) {
  INGOT_RETURN_IF_ERROR(Prepare());
  INGOT_ASSIGN_OR_RETURN(const SecretKey key, ReadSecretKey(secret_key_path));
  PublicKey public_key;
  crypto_sign_ed25519_sk_to_pk(public_key.data(), key.bytes.data());
  uint32_t index = 0;
  const Sha256Digest digest = SignedDigest(
      container.required_features(),
      [&](const SectionVisitor& visit) {
        container.ForEachSection([&](const Section& section, std::span<const std::span<const std::byte>> pieces) {
          if (section.kind == SectionKind::kSignature) index = section.index + 1;
          visit(section, pieces);
        });
      },
      nullptr);
  SignatureBytes signature;
  crypto_sign_detached(signature.data(), nullptr, digest.data(), digest.size(), key.bytes.data());
  std::vector<std::byte> bytes(kSignatureSectionBytes);
  std::memcpy(bytes.data(), public_key.data(), public_key.size());
  std::memcpy(bytes.data() + public_key.size(), signature.data(), signature.size());
  ContainerWriter::Options options;
  options.is_required = false;
  options.alignment = 8;
  return container.AddOwned(SectionKind::kSignature, index, std::move(bytes), options);
}
#else
namespace {

Status Missing() {
  return Status(StatusCode::kInvalidArgument, "this build of Ingot has no libsodium, which makes keys and signatures");
}

}  // namespace

Status MakeKeyPair(const std::string&) { return Missing(); }
Status SignContainer(ContainerWriter&, const std::string&) { return Missing(); }
#endif

}  // namespace ingot::formats
