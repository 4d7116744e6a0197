// Tensor files: reading and writing named tensors by the file's extension: .npy (one tensor, named after the file
// without its extension), .npz and .safetensors (several). One table lists the formats; each has a file of its own.
// Every error names the file, what was expected and what was found; no bytes make a reader crash or take more memory
// than the file can hold.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/status.h"
#include "runtime/tensor.h"

namespace ingot::formats {

struct NamedTensor {
  std::string name;
  Tensor tensor;  // host memory, compact
};

// In the order of the file.
Result<std::vector<NamedTensor>> ReadTensorFile(const std::string& path);
// One tensor of a file: @f.npz:key; an unknown key is answered with the nearest one. An empty key: the file's only
// tensor.
Result<Tensor> ReadTensor(const std::string& path, std::string_view key);
// Whole or not at all (formats/file.h). .npy takes exactly one tensor.
Status WriteTensorFile(const std::string& path, std::span<const NamedTensor> tensors);

}  // namespace ingot::formats
