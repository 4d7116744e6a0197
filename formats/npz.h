// NumPy's .npz: a zip of .npy files, named as the arrays are. numpy.savez's and numpy.savez_compressed's are read;
// what numpy.savez would write (stored) is written.
#pragma once

#include "formats/tensor_files.h"

namespace ingot::formats {

Result<std::vector<NamedTensor>> ReadNpz(const SharedBytes& bytes, const std::string* key);
Status WriteNpz(std::span<const NamedTensor> tensors, const ByteSink& sink);

}  // namespace ingot::formats
