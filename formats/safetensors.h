// safetensors: a length, a JSON header, the tensors' bytes. Read as its specification demands: every byte of the data
// belongs to exactly one tensor, sizes agree with dtype and shape, no name twice. Tensors share the file. The
// "__metadata__" texts are skipped.
#pragma once

#include "formats/tensor_files.h"

namespace ingot::formats {

Result<std::vector<NamedTensor>> ReadSafetensors(const SharedBytes& bytes, const std::string* key);
// Tensors with wide elements come first, so that all are aligned; otherwise in the given order.
Status WriteSafetensors(std::span<const NamedTensor> tensors, const ByteSink& sink);

}  // namespace ingot::formats
