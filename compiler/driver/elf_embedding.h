// An executable inside an ELF file that an application links: a relocatable object, or a shared library. In: a
// container; out: the file, with one symbol, the C object `const struct { const void* data; size_t size; }`. It is a
// pair rather than the bytes themselves, so that a linker which copies a library's data objects into a program (copy
// relocations) copies sixteen bytes. The few ELF structures are written here: no linker is needed, and the weights are
// streamed into the file instead of going through an object file first.
#pragma once

#include <string>

#include "formats/container_writer.h"
#include "formats/file.h"
#include "runtime/status.h"

namespace ingot::driver {

struct ElfEmbedding {
  std::string symbol;
  std::string architecture;  // "x86_64" or "aarch64"
  bool is_shared = false;    // a library; otherwise a relocatable object
  std::string soname;        // of a library
};

Status WriteElfEmbedding(const ElfEmbedding& embedding, const formats::ContainerWriter& container,
                         const std::string& path, formats::FileCalls& calls = formats::FileCalls::System());

}  // namespace ingot::driver
