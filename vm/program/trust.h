// Whether the native code of a file may run: policies that the caller or the machine sets, and that nothing in the file
// can loosen. A policy asks for a signature by one of some keys (Ed25519 over a SHA-256 tree of all sections,
// formats/signature.h) or for a file whose SHA-256 stands in a list. In: the file's bytes, private to the process; out:
// success, or a not-trusted status. Code that passes such a check still has all powers of the process.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/container.h"
#include "formats/sha256.h"
#include "runtime/status.h"

namespace ingot::vm {

using PublicKey = std::array<uint8_t, 32>;

// A file satisfies the policy by a valid signature of one of the keys, or by a digest in the list.
struct TrustPolicy {
  std::vector<PublicKey> keys;
  std::vector<formats::Sha256Digest> allowed;  // of whole files
};

// The lines of a policy: "require-signature HEX", "allow-sha256 HEX"; empty ones and what follows "#" are skipped.
// `name` stands in messages. A line that is none of these is refused, so that no policy is weaker than it looks.
Result<TrustPolicy> ParseTrustPolicy(std::string_view text, const std::string& name);
// False only when the path, or a folder above it, does not exist. A dangling link, a file in the place of a folder, and
// a path that cannot be examined count as a policy; reading it then fails, and the executable is refused.
bool HasMachinePolicy(const std::string& path);
// Reads the machine's policy, from a file that only its administrator writes; false: there is none.
Result<bool> ReadMachinePolicy(const std::string& path, TrustPolicy* policy);

// Succeeds when the file satisfies the policy; otherwise a not-trusted status. file: the bytes of the whole file, of
// which the container is all or the end. pool, which may be null, hashes large sections.
Status CheckTrust(const TrustPolicy& policy, const formats::Container& container, std::span<const std::byte> file,
                  ThreadPool* pool);

}  // namespace ingot::vm
