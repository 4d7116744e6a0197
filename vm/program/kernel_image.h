// CPU kernel images: ELF shared objects of one segment that is readable and executable, without imports, relocations
// or writable data, so that loading one is a single mapping and an entry point is base + offset. This file
// checks that form and makes the bytes executable; the kernel descriptors say which kernel lies where. Memory is never
// writable and executable at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "runtime/shared_bytes.h"
#include "runtime/status.h"

namespace ingot::vm {

// The CPU that this library was built for: its ELF machine number (EM_X86_64, EM_AARCH64), and its name in kernel
// images (KernelImage::arch).
uint16_t HostElfMachine();
const char* HostArchitecture();

struct ElfImage {
  uint64_t offset = 0;  // of the segment, in the file and in memory alike
  uint64_t size = 0;
  bool ContainsCode(uint64_t address) const { return address >= offset && address - offset < size; }
};

// Refuses, as corrupt, everything that is not exactly such an image for the host's machine. Never reads outside of the
// bytes, whatever they are.
Result<ElfImage> ReadElfImage(std::span<const std::byte> bytes);

// Where the image's bytes lie in a file that may be mapped: the descriptor is borrowed for the call.
struct ImageFile {
  int fd = -1;
  uint64_t offset = 0;  // of the image's first byte
};

// An image in executable memory, unmapped with the object.
class LoadedImage {
 public:
  // Maps the file's pages where they are aligned and the system allows it, else copies the bytes to anonymous memory
  // that is made executable afterwards.
  static Result<std::shared_ptr<const LoadedImage>> Load(std::span<const std::byte> bytes,
                                                         std::optional<ImageFile> file);
  ~LoadedImage();
  LoadedImage(const LoadedImage&) = delete;
  LoadedImage& operator=(const LoadedImage&) = delete;

  // The address of an entry point; the offset is inside the segment (ContainsCode).
  void* Address(uint64_t offset) const { return base_ + offset; }
  bool is_mapped_file() const { return is_mapped_file_; }

 private:
  LoadedImage() = default;
  std::byte* base_ = nullptr;
  size_t size_ = 0;
  bool is_mapped_file_ = false;
};

}  // namespace ingot::vm
