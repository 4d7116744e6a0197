// Kernel images that are not for this machine: a file may hold some for others besides its own, and they must have the
// same form. What is never loaded here is still checked here.
#pragma once

#include <string_view>

#include "vm/kernel_image.h"

namespace ingot::vm {

// As ReadElfImage, for an architecture by its name (KernelImage::arch). One that is not known here may have any machine
// number; no linker chooses it.
Result<ElfImage> ReadElfImageFor(std::string_view architecture, std::span<const std::byte> bytes);

}  // namespace ingot::vm
