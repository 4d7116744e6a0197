// NumPy's .npy (NEP 1): versions 1 to 3 are read, 1 is written, byte for byte as numpy.save does. Big-endian elements
// are swapped and Fortran order is turned into C order while reading; object, string, structured and time dtypes are
// refused by name, nothing is ever unpickled.
#pragma once

#include "formats/tensor_files.h"

namespace ingot::formats {

// One array that fills the bytes. A C-ordered one in the host's byte order shares them.
Result<Tensor> ReadNpy(const SharedBytes& bytes);
// The header of a tensor of this type: magic, version, length, dict, padding. Dtypes that NumPy lacks are refused.
Result<std::vector<std::byte>> NpyHeader(const Tensor& tensor);

// As rows of the format list.
Result<std::vector<NamedTensor>> ReadNpyFile(const SharedBytes& bytes, const std::string* key);
Status WriteNpyFile(std::span<const NamedTensor> tensors, const ByteSink& sink);

}  // namespace ingot::formats
