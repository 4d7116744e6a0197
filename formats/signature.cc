// The SHA-256 tree that is signed (blocks of 1 MiB, sections, container), and the check of Ed25519 signatures by
// libsodium, or its absence.
#include "formats/signature.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "formats/byte_writer.h"
#include "runtime/thread_pool.h"

#ifdef INGOT_WITH_SODIUM
#include <sodium.h>
#endif

namespace ingot::formats {
namespace {

constexpr uint64_t kBlockBytes = uint64_t{1} << 20;
constexpr std::string_view kDomain = "ingot signature 1\n";

// The digests of a section's blocks, which threads can make at the same time.
struct BlockHashing {
  std::span<const std::span<const std::byte>> pieces;
  std::vector<Sha256Digest> digests;
};

int32_t HashBlock(void* closure, int64_t block) {
  auto& work = *static_cast<BlockHashing*>(closure);
  uint64_t skip = static_cast<uint64_t>(block) * kBlockBytes, left = kBlockBytes;
  Sha256 hash;
  for (const std::span<const std::byte> piece : work.pieces) {
    if (skip >= piece.size()) {
      skip -= piece.size();
      continue;
    }
    const std::span<const std::byte> part = piece.subspan(skip, std::min<uint64_t>(left, piece.size() - skip));
    hash.Update(part);
    left -= part.size();
    skip = 0;
    if (left == 0) break;
  }
  work.digests[static_cast<size_t>(block)] = hash.Finish();
  return 0;
}

Sha256Digest SectionDigest(const Section& section, std::span<const std::span<const std::byte>> pieces,
                           ThreadPool* pool) {
  ByteWriter fields;
  fields.U32(static_cast<uint32_t>(section.kind));
  fields.U32(section.index);
  fields.U64(section.stored_size);
  fields.U64(section.size);
  fields.U8(static_cast<uint8_t>(section.codec));
  fields.U8(section.alignment_log2);
  fields.U16(section.is_required ? 1 : 0);
  fields.String(section.name);
  const auto num_blocks = static_cast<int64_t>((section.stored_size + kBlockBytes - 1) / kBlockBytes);
  BlockHashing work{pieces, std::vector<Sha256Digest>(static_cast<size_t>(num_blocks))};
  if (pool != nullptr) {
    static_cast<void>(pool->ParallelFor(num_blocks, &HashBlock, &work));
  } else {
    for (int64_t i = 0; i < num_blocks; ++i) HashBlock(&work, i);
  }
  Sha256 hash;
  hash.Update(fields.bytes());
  hash.Update(std::as_bytes(std::span(work.digests)));
  return hash.Finish();
}

// Adds the digest of a section.
struct AddSection {
  Sha256& hash;
  ThreadPool* pool;
  void operator()(const Section& section, std::span<const std::span<const std::byte>> pieces) const {
    if (section.kind == SectionKind::kSignature) return;
    const Sha256Digest digest = SectionDigest(section, pieces, pool);
    hash.Update(std::as_bytes(std::span(digest)));
  }
};

// The sections of a container that is there.
struct ForEachSection {
  const Container& container;
  void operator()(const SectionVisitor& visit) const {
    for (const Section& section : container.sections()) {
      const std::span<const std::byte> stored = container.StoredBytes(section);
      visit(section, {&stored, 1});
    }
  }
};

Status NotTrusted(Text message) { return Status(StatusCode::kNotTrusted, message); }

}  // namespace

Sha256Digest SignedDigest(uint64_t required_features, const std::function<void(const SectionVisitor&)>& for_each,
                          ThreadPool* pool) {
  Sha256 hash;
  ByteWriter head;
  head.Bytes(std::as_bytes(std::span(kDomain)));
  head.U32(kContainerVersion);
  head.U64(required_features);
  hash.Update(head.bytes());
  for_each(AddSection{hash, pool});
  return hash.Finish();
}

Sha256Digest SignedDigest(const Container& container, ThreadPool* pool) {
  return SignedDigest(container.required_features(), ForEachSection{container}, pool);
}

namespace {

struct Signature {
  PublicKey key;
  SignatureBytes bytes;
};

// Returns nothing when the section is malformed.
std::optional<Signature> ReadSignature(const Container& container, const Section& section) {
  const std::span<const std::byte> stored = container.StoredBytes(section);
  if (section.codec != Codec::kNone || stored.size() != kSignatureSectionBytes) return std::nullopt;
  Signature signature;
  std::memcpy(signature.key.data(), stored.data(), signature.key.size());
  std::memcpy(signature.bytes.data(), stored.data() + signature.key.size(), signature.bytes.size());
  return signature;
}

#ifdef INGOT_WITH_SODIUM
bool IsRight(const Signature& signature, const Sha256Digest& digest) {
  return crypto_sign_verify_detached(signature.bytes.data(), digest.data(), digest.size(), signature.key.data()) == 0;
}
#endif

}  // namespace

std::vector<SignatureFinding> ExamineSignatures(const Container& container, [[maybe_unused]] ThreadPool* pool) {
  using Verdict = SignatureFinding::Verdict;
  std::vector<SignatureFinding> findings;
  [[maybe_unused]] std::optional<Sha256Digest> digest;
  for (const Section& section : container.sections()) {
    if (section.kind != SectionKind::kSignature) continue;
    const std::optional<Signature> signature = ReadSignature(container, section);
    if (!signature) {
      findings.push_back({"nobody", Verdict::kWrong});
      continue;
    }
    Verdict verdict = Verdict::kUnchecked;
#ifdef INGOT_WITH_SODIUM
    if (sodium_init() >= 0) {
      if (!digest) digest = SignedDigest(container, pool);
      verdict = IsRight(*signature, *digest) ? Verdict::kRight : Verdict::kWrong;
    }
#endif
    findings.push_back({ToHex(signature->key), verdict});
  }
  return findings;
}

#ifdef INGOT_WITH_SODIUM
bool CanCheckSignatures() { return true; }

Status CheckSignature(const Container& container, std::span<const PublicKey> keys, ThreadPool* pool) {
  bool is_signed = false;
  for (const Section& section : container.sections()) {
    if (section.kind != SectionKind::kSignature) continue;
    is_signed = true;
    const std::optional<Signature> signature = ReadSignature(container, section);
    if (!signature) return NotTrusted("the signature is malformed");
    if (std::find(keys.begin(), keys.end(), signature->key) == keys.end()) continue;
    if (sodium_init() < 0) return NotTrusted("libsodium cannot be used here");
    if (IsRight(*signature, SignedDigest(container, pool))) return Status();
    return NotTrusted({"the signature by ", ToHex(signature->key), " is not one of these bytes"});
  }
  return NotTrusted(is_signed ? "signed, but by none of the trusted keys" : "not signed, and a signature is required");
}
#else
bool CanCheckSignatures() { return false; }

Status CheckSignature(const Container&, std::span<const PublicKey>, ThreadPool*) {
  return NotTrusted("a signature is required, and this build of Ingot has no libsodium to check one");
}
#endif

}  // namespace ingot::formats
