// Reads each .npy entry of a zip file by npy.h, and writes a stored entry per tensor.
#include "formats/npz.h"

#include <set>

#include "formats/npy.h"
#include "formats/zip.h"

namespace ingot::formats {
namespace {

constexpr std::string_view kSuffix = ".npy";
// The zip's limit on names, less the suffix.
constexpr size_t kMaxNameBytes = 4000;

Status BadNpz(std::string message) { return Status(StatusCode::kBadInput, std::move(message)); }

}  // namespace

Result<std::vector<NamedTensor>> ReadNpz(const SharedBytes& bytes, const std::string* key) {
  INGOT_ASSIGN_OR_RETURN(const ZipReader zip, ZipReader::Open(bytes));
  std::vector<NamedTensor> tensors;
  std::vector<std::string> names;
  for (const ZipEntry& entry : zip.entries()) {
    if (!entry.name.ends_with(kSuffix)) return BadNpz("entry \"" + entry.name + "\" is no .npy");
    names.push_back(entry.name.substr(0, entry.name.size() - kSuffix.size()));
    if (key != nullptr && names.back() != *key) continue;
    INGOT_ASSIGN_OR_RETURN(const SharedBytes contents, zip.Read(entry));
    Result<Tensor> tensor = ReadNpy(contents);
    if (!tensor.ok()) return std::move(tensor).status().WithContext("\"" + names.back() + "\"");
    tensors.push_back({names.back(), *std::move(tensor)});
  }
  if (key != nullptr && tensors.empty()) return NoSuchTensor(*key, names);
  return tensors;
}

Status WriteNpz(std::span<const NamedTensor> tensors, const ByteSink& sink) {
  ZipWriter zip(sink);
  std::set<std::string_view> names;
  for (const NamedTensor& named : tensors) {
    if (named.name.empty() || named.name.size() > kMaxNameBytes || !names.insert(named.name).second) {
      return BadNpz("tensors in an .npz need distinct names of 1 to " + std::to_string(kMaxNameBytes) +
                    " bytes, got \"" + named.name.substr(0, 80) + "\"");
    }
    Result<std::vector<std::byte>> header = NpyHeader(named.tensor);
    if (!header.ok()) return std::move(header).status().WithContext("\"" + named.name + "\"");
    INGOT_ASSIGN_OR_RETURN(const Tensor compact, named.tensor.Compact());
    const std::span<const std::byte> pieces[] = {*header, std::as_bytes(compact.bytes())};
    INGOT_RETURN_IF_ERROR(zip.Add(named.name + std::string(kSuffix), pieces));
  }
  return zip.Finish();
}

}  // namespace ingot::formats
