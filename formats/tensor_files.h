// Tensor files: reading and writing named tensors by the file's extension: .npy (one tensor, named after the file
// without its extension), .npz and .safetensors (several). One row per format in the list; a new one is its x.{h,cc}
// and a row. Readers take any bytes: what is malformed, too large for the file, or cannot be expressed is refused with
// the file, the tensor, what was expected and what was found. The container does not depend on it, so that an embedder
// can leave all of this out.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/file.h"
#include "runtime/shared_bytes.h"
#include "runtime/status.h"
#include "runtime/tensor.h"

namespace ingot::formats {

struct NamedTensor {
  std::string name;
  Tensor tensor;  // host memory; compact when it was read
};

// Where a writer puts its bytes.
using ByteSink = std::function<Status(std::span<const std::byte>)>;

struct TensorFileFormat {
  const char* extension;  // with the dot
  bool has_names;         // false: exactly one tensor, whose name is not kept
  // Every tensor, in the order of the file; with a key, that one alone (the others may stay unread). Messages do not
  // name the file: the caller does.
  Result<std::vector<NamedTensor>> (*read)(const SharedBytes& bytes, const std::string* key);
  // Tensors are host tensors of any layout. Deterministic.
  Status (*write)(std::span<const NamedTensor> tensors, const ByteSink& sink);
};

std::span<const TensorFileFormat> TensorFileFormats();
// The format whose extension the path ends with; null when there is none.
const TensorFileFormat* FindTensorFileFormat(std::string_view path);

// Messages begin with the path. Tensors may share the mapped file: it must not be changed while they live.
Result<std::vector<NamedTensor>> ReadTensorFile(const std::string& path);
// One tensor of a file: @f.npz:key; an unknown key is answered with the nearest one. An empty key: the file's only
// tensor.
Result<Tensor> ReadTensor(const std::string& path, std::string_view key = {});
// Whole or not at all (formats/file.h). .npy takes exactly one tensor. Integers of less than a byte take one each
// (packed_elements.h).
Status WriteTensorFile(const std::string& path, std::span<const NamedTensor> tensors,
                       FileCalls& calls = FileCalls::System());

// The failure for a key that a file does not have: lists the names, or suggests the nearest.
Status NoSuchTensor(const std::string& key, std::span<const std::string> names);

}  // namespace ingot::formats
