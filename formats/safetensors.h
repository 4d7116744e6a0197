// safetensors: a length, a JSON header, the tensors' bytes. Read as its specification demands: every byte of the data
// belongs to exactly one tensor, sizes agree with dtype and shape, no name twice. Tensors share the file. The
// "__metadata__" texts are skipped.
#pragma once

#include "formats/tensor_files.h"

namespace ingot::formats {

Result<std::vector<NamedTensor>> ReadSafetensors(const SharedBytes& bytes, const std::string* key);
// Whether the format has a name for the dtype.
bool SafetensorsHolds(DataType dtype);
// Tensors whose size is a multiple of 64 bytes come first, which aligns them so, then those with wide elements, which
// aligns the rest to their elements; otherwise in the given order.
Status WriteSafetensors(std::span<const NamedTensor> tensors, const ByteSink& sink);

}  // namespace ingot::formats
