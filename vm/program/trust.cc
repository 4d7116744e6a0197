// Reads policies, and applies them: a digest in the list suffices, else a signature by one of the keys.
#include "vm/program/trust.h"

#include <algorithm>
#include <cerrno>

#include <sys/stat.h>

#include "formats/byte_reader.h"
#include "formats/file.h"
#include "formats/signature.h"

namespace ingot::vm {

Result<TrustPolicy> ParseTrustPolicy(std::string_view text, const std::string& name) {
  TrustPolicy policy;
  for (int number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    line = line.substr(0, line.find('#'));
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const std::string_view word = line.substr(0, line.find(' '));
    const std::string_view value = line.substr(std::min(word.size() + 1, line.size()));
    const bool is_known = (word == "require-signature" && formats::FromHex(value, policy.keys.emplace_back())) ||
                          (word == "allow-sha256" && formats::FromHex(value, policy.allowed.emplace_back()));
    if (!is_known) {
      return Status(
          StatusCode::kNotTrusted,
          {name, ", line ", number, ": expected \"require-signature\" or \"allow-sha256\" and 64 hex digits"});
    }
  }
  return policy;
}

bool HasMachinePolicy(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    struct stat info {};
    if (lstat(part.c_str(), &info) != 0) return errno != ENOENT;
    if (end == std::string::npos) return true;
    if (stat(part.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return true;  // a link to nowhere, or no folder
  }
}

Result<bool> ReadMachinePolicy(const std::string& path, TrustPolicy* policy) {
  if (!HasMachinePolicy(path)) return false;
  INGOT_ASSIGN_OR_RETURN(const std::shared_ptr<const formats::InputFile> file,
                         formats::InputFile::Open(path, formats::ReadMode::kCopy));
  INGOT_ASSIGN_OR_RETURN(*policy, ParseTrustPolicy(formats::AsText(file->bytes()), path));
  return true;
}

Status CheckTrust(const TrustPolicy& policy, const formats::Container& container, std::span<const std::byte> file,
                  ThreadPool* pool) {
  if (!policy.allowed.empty()) {
    const formats::Sha256Digest digest = formats::Sha256Of(file);
    if (std::find(policy.allowed.begin(), policy.allowed.end(), digest) != policy.allowed.end()) return Status();
    if (policy.keys.empty()) {
      return Status(StatusCode::kNotTrusted, {"its SHA-256, ", formats::ToHex(digest), ", is not in the list"});
    }
  }
  return formats::CheckSignature(container, policy.keys, pool);
}

}  // namespace ingot::vm
