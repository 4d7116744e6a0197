// The list of tensor file formats, the choice of one by its extension, and the messages that name file and tensor.
#include "formats/tensor_files.h"

#include <algorithm>
#include <new>

#include "formats/file.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "formats/packed_elements.h"
#include "formats/safetensors.h"
#include "runtime/suggest.h"

namespace ingot::formats {
namespace {

constexpr TensorFileFormat kFormats[] = {
    {".npy", false, ReadNpyFile, WriteNpyFile},
    {".npz", true, ReadNpz, WriteNpz},
    {".safetensors", true, ReadSafetensors, WriteSafetensors},
};
// How many names an error lists.
constexpr size_t kMaxListedNames = 20;

Result<const TensorFileFormat*> FormatOf(const std::string& path) {
  const TensorFileFormat* format = FindTensorFileFormat(path);
  if (format != nullptr) return format;
  std::string known;
  for (const TensorFileFormat& row : kFormats) known += (known.empty() ? "" : ", ") + std::string(row.extension);
  return Status(StatusCode::kBadInput, path + ": unknown kind of tensor file, expected " + known);
}

// "b" of "a/b.npy".
std::string StemOf(const std::string& path, const TensorFileFormat& format) {
  const std::string name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  return name.substr(0, name.size() - std::string_view(format.extension).size());
}

Result<std::vector<NamedTensor>> Read(const std::string& path, const std::string* key) {
  INGOT_ASSIGN_OR_RETURN(const TensorFileFormat* format, FormatOf(path));
  INGOT_ASSIGN_OR_RETURN(const SharedBytes bytes, MapFile(path));
  try {
    Result<std::vector<NamedTensor>> tensors = format->read(bytes, key);
    if (!tensors.ok()) return std::move(tensors).status().WithContext(path);
    if (!format->has_names) tensors->front().name = StemOf(path, *format);
    return tensors;
  } catch (const std::bad_alloc&) {
    return Status::OutOfMemory();
  }
}

}  // namespace

std::span<const TensorFileFormat> TensorFileFormats() { return kFormats; }

const TensorFileFormat* FindTensorFileFormat(std::string_view path) {
  for (const TensorFileFormat& row : kFormats) {
    if (path.ends_with(row.extension)) return &row;
  }
  return nullptr;
}

Result<std::vector<NamedTensor>> ReadTensorFile(const std::string& path) { return Read(path, nullptr); }

Result<Tensor> ReadTensor(const std::string& path, std::string_view key) {
  const std::string name(key);
  INGOT_ASSIGN_OR_RETURN(std::vector<NamedTensor> tensors, Read(path, key.empty() ? nullptr : &name));
  if (tensors.size() == 1) return std::move(tensors[0].tensor);
  std::string names;
  for (size_t i = 0; i < std::min(tensors.size(), kMaxListedNames); ++i) {
    names += (i == 0 ? ": " : ", ") + tensors[i].name;
  }
  return Status(StatusCode::kBadInput,
                path + ": expected one tensor or a name, got " + std::to_string(tensors.size()) + " tensors" + names);
}

Status WriteTensorFile(const std::string& path, std::span<const NamedTensor> tensors, FileCalls& calls) {
  INGOT_ASSIGN_OR_RETURN(const TensorFileFormat* format, FormatOf(path));
  std::vector<NamedTensor> held;
  for (const NamedTensor& named : tensors) {
    INGOT_ASSIGN_OR_RETURN(Tensor tensor, UnpackIntegers(named.tensor));
    held.push_back({named.name, std::move(tensor)});
  }
  INGOT_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, calls));
  Status status = format->write(held, [&](std::span<const std::byte> bytes) { return file.Write(bytes); });
  if (!status.ok()) {
    // Messages of failed system calls name the path already.
    return status.code() == StatusCode::kIo ? std::move(status) : std::move(status).WithContext(path);
  }
  return file.Commit();
}

Status NoSuchTensor(const std::string& key, std::span<const std::string> names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  std::string message = "no tensor \"" + key + "\"";
  const std::string suggestion = DidYouMean(key, views);
  if (!suggestion.empty()) {
    message += suggestion;
  } else {
    for (size_t i = 0; i < std::min(names.size(), kMaxListedNames); ++i)
      message += (i == 0 ? "; there are " : ", ") + names[i];
    if (names.size() > kMaxListedNames) message += ", ...";
  }
  return Status(StatusCode::kBadInput, std::move(message));
}

}  // namespace ingot::formats
