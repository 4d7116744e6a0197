// The version of Ingot as text; the file format has numbers of its own (formats/README.md).
#pragma once

namespace ingot {
inline constexpr const char* kVersion = "0.1.0";
}  // namespace ingot
