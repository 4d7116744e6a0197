// NumPy's .npy (NEP 1): versions 1 to 3 are read, 1 is written, byte for byte as numpy.save does. Big-endian elements
// are swapped and Fortran order is turned into C order while reading; object, string, structured and time dtypes are
// refused by name, nothing is ever unpickled.
#pragma once

#include "formats/tensor_files.h"

namespace ingot::formats {

// Reads one array that fills the bytes. The tensor shares them where the array is C-ordered and little-endian.
Result<Tensor> ReadNpy(const SharedBytes& bytes);
// The header of a tensor of this type: magic, version, length, dict, padding. Dtypes that NumPy lacks are refused.
Result<std::vector<std::byte>> NpyHeader(const Tensor& tensor);

// The functions of the row in the format list (tensor_files.h).
Result<std::vector<NamedTensor>> ReadNpyFile(const SharedBytes& bytes, const std::string* key);
Status WriteNpyFile(std::span<const NamedTensor> tensors, const ByteSink& sink);

}  // namespace ingot::formats
