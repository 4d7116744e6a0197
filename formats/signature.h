// Signatures of executables: Ed25519 over a SHA-256 tree of all sections, in sections of kind `signature` that the tree
// leaves out. formats/README.md describes the bytes. Checking is what loaders need; making keys and signatures is
// formats/signing.h. Both need libsodium. A build without it cannot check a signature: it refuses files of which a
// policy requires one, and reports others as unchecked.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "formats/container.h"
#include "formats/sha256.h"
#include "runtime/status.h"

namespace ingot::formats {

using PublicKey = std::array<uint8_t, 32>;
using SignatureBytes = std::array<uint8_t, 64>;

// The size of a signature section: key and signature.
inline constexpr size_t kSignatureSectionBytes = sizeof(PublicKey) + sizeof(SignatureBytes);

// A section's fields and its stored bytes, in pieces.
using SectionVisitor = std::function<void(const Section& section, std::span<const std::span<const std::byte>> pieces)>;

// The digest that is signed. `for_each` calls the visitor for every section in the order of the file; signatures are
// skipped. Blocks are hashed on the pool's threads when there is one.
Sha256Digest SignedDigest(uint64_t required_features, const std::function<void(const SectionVisitor&)>& for_each,
                          ThreadPool* pool);
Sha256Digest SignedDigest(const Container& container, ThreadPool* pool);

// Succeeds when the container holds a signature by one of the keys and it is right; otherwise a not-trusted status.
Status CheckSignature(const Container& container, std::span<const PublicKey> keys, ThreadPool* pool);

// The verdict on each signature of a file: right, wrong (malformed ones too), or unchecked in a build without
// libsodium. The file is hashed once, however many signatures it has.
struct SignatureFinding {
  enum class Verdict : uint8_t { kRight, kWrong, kUnchecked };
  std::string signer;  // the key in hexadecimal digits; of a malformed signature "nobody"
  Verdict verdict;
};
std::vector<SignatureFinding> ExamineSignatures(const Container& container, ThreadPool* pool);

// Whether this build has libsodium.
bool CanCheckSignatures();

}  // namespace ingot::formats
