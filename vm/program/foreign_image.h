// Checks kernel images for any architecture. A file may hold images for other machines besides this one; they must have
// the same form, and are checked although they are never loaded here.
#pragma once

#include <string_view>

#include "vm/program/kernel_image.h"

namespace ingot::vm {

// As ReadElfImage, for an architecture by its name (KernelImage::arch). An image of an architecture that is not known
// here may have any machine number, since no linker here chooses it.
Result<ElfImage> ReadElfImageFor(std::string_view architecture, std::span<const std::byte> bytes);

}  // namespace ingot::vm
