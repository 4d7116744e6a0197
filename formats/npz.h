// NumPy's .npz: a zip of .npy files, named as the arrays are. Files of numpy.savez and numpy.savez_compressed are read;
// written files have stored entries, as those of numpy.savez.
#pragma once

#include "formats/tensor_files.h"

namespace ingot::formats {

Result<std::vector<NamedTensor>> ReadNpz(const SharedBytes& bytes, const std::string* key);
Status WriteNpz(std::span<const NamedTensor> tensors, const ByteSink& sink);

}  // namespace ingot::formats
