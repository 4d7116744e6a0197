// Reads the ELF headers of a kernel image, refuses every form but the one that kernel_image.h describes, and maps it.
// Field names and numbers: "Tool Interface Standard ELF Specification" and the processor supplements.
#include "vm/program/kernel_image.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "formats/byte_reader.h"
#include "vm/program/foreign_image.h"

namespace ingot::vm {
namespace {

constexpr uint64_t kMaxSegments = 64;
constexpr uint64_t kMaxDynamicEntries = 1024;

Status Refuse(Text what) { return Status(StatusCode::kCorrupt, {"kernel image: ", what}); }

struct Segment {
  uint32_t type, flags;
  uint64_t offset, address, file_size, memory_size;
};

Result<Segment> ReadSegment(formats::ByteReader& in) {
  Segment segment;
  INGOT_ASSIGN_OR_RETURN(segment.type, in.U32());
  INGOT_ASSIGN_OR_RETURN(segment.flags, in.U32());
  INGOT_ASSIGN_OR_RETURN(segment.offset, in.U64());
  INGOT_ASSIGN_OR_RETURN(segment.address, in.U64());
  INGOT_RETURN_IF_ERROR(in.Skip(8));  // physical address
  INGOT_ASSIGN_OR_RETURN(segment.file_size, in.U64());
  INGOT_ASSIGN_OR_RETURN(segment.memory_size, in.U64());
  INGOT_RETURN_IF_ERROR(in.Skip(8));  // alignment
  return segment;
}

// The dynamic section may be there (a linker always writes one) but may ask for nothing.
Status CheckDynamic(std::span<const std::byte> bytes, const Segment& segment) {
  const formats::ByteReader whole(bytes, "kernel image");
  INGOT_ASSIGN_OR_RETURN(const auto table, whole.Slice(segment.offset, segment.file_size));
  formats::ByteReader in(table, "dynamic section of a kernel image");
  for (uint64_t i = 0; i < kMaxDynamicEntries && !in.at_end(); ++i) {
    INGOT_ASSIGN_OR_RETURN(const int64_t tag, in.I64());
    INGOT_ASSIGN_OR_RETURN(const uint64_t value, in.U64());
    if (tag == DT_NULL) return Status();
    const bool relocates = tag == DT_RELASZ || tag == DT_RELSZ || tag == DT_PLTRELSZ || tag == DT_TEXTREL ||
                           tag == DT_INIT || tag == DT_FINI || tag == DT_INIT_ARRAYSZ || tag == DT_FINI_ARRAYSZ ||
                           tag == 35 /* DT_RELRSZ */;
    if (tag == DT_NEEDED) return Refuse("it needs another library");
    if (relocates && value != 0) return Refuse("it has relocations or initialisers");
  }
  return Status();
}

// The ELF machine number of an architecture; 0: the name is not known, and any number is accepted.
uint32_t ElfMachine(std::string_view architecture) {
  if (architecture == "x86_64") return EM_X86_64;
  if (architecture == "aarch64") return EM_AARCH64;
  return 0;
}

size_t PageSize() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

const char* HostArchitecture() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#else
#error "the name of this processor is not known here"
#endif
}

uint16_t HostElfMachine() { return static_cast<uint16_t>(ElfMachine(HostArchitecture())); }

Result<ElfImage> ReadElfImage(std::span<const std::byte> bytes) { return ReadElfImageFor(HostArchitecture(), bytes); }

Result<ElfImage> ReadElfImageFor(std::string_view architecture, std::span<const std::byte> bytes) {
  formats::ByteReader in(bytes, "kernel image");
  INGOT_ASSIGN_OR_RETURN(const auto ident, in.Bytes(EI_NIDENT));
  const auto byte = [&](int i) { return std::to_integer<int>(ident[i]); };
  if (byte(0) != 0x7f || byte(1) != 'E' || byte(2) != 'L' || byte(3) != 'F') return Refuse("no ELF file");
  if (byte(EI_CLASS) != ELFCLASS64 || byte(EI_DATA) != ELFDATA2LSB) return Refuse("not 64-bit little-endian");
  INGOT_ASSIGN_OR_RETURN(const uint16_t type, in.U16());
  INGOT_ASSIGN_OR_RETURN(const uint16_t machine, in.U16());
  if (type != ET_DYN) return Refuse("no shared object");
  const uint32_t expected = ElfMachine(architecture);
  if (expected != 0 && machine != expected) {
    return Refuse({"machine ", machine, ", expected ", architecture, "'s"});
  }
  INGOT_RETURN_IF_ERROR(in.Skip(4 + 8));  // version, entry
  INGOT_ASSIGN_OR_RETURN(const uint64_t table, in.U64());
  INGOT_RETURN_IF_ERROR(in.Skip(8 + 4 + 2));  // section headers, flags, header size
  INGOT_ASSIGN_OR_RETURN(const uint16_t entry_size, in.U16());
  INGOT_ASSIGN_OR_RETURN(const uint16_t num_segments, in.U16());
  if (entry_size != sizeof(Elf64_Phdr) || num_segments > kMaxSegments) return Refuse("its segment table is malformed");
  INGOT_RETURN_IF_ERROR(in.Seek(table));
  std::optional<ElfImage> image;
  for (int i = 0; i < num_segments; ++i) {
    INGOT_ASSIGN_OR_RETURN(const Segment segment, ReadSegment(in));
    switch (segment.type) {
      case PT_LOAD: {
        if (image) return Refuse("more than one loadable segment");
        if (segment.flags != (PF_R | PF_X)) return Refuse("its segment is not readable and executable");
        const bool is_plain = segment.offset == 0 && segment.address == 0 && segment.file_size > 0 &&
                              segment.file_size == segment.memory_size && segment.file_size <= bytes.size();
        if (!is_plain) return Refuse("its segment does not begin at 0, or is not all in the file");
        image = ElfImage{segment.offset, segment.file_size};
        break;
      }
      case PT_DYNAMIC:
        INGOT_RETURN_IF_ERROR(CheckDynamic(bytes, segment));
        break;
      case PT_INTERP:
      case PT_TLS:
        return Refuse("it wants an interpreter or thread-local storage");
      default:
        break;  // notes, the stack's protection, unwind tables: nothing to load
    }
  }
  if (!image) return Refuse("no loadable segment");
  return *image;
}

Result<std::shared_ptr<const LoadedImage>> LoadedImage::Load(std::span<const std::byte> bytes,
                                                             std::optional<ImageFile> file) {
  INGOT_ASSIGN_OR_RETURN(const ElfImage elf, ReadElfImage(bytes));
  std::shared_ptr<LoadedImage> image(new LoadedImage());
  image->size_ = static_cast<size_t>(elf.size);
  if (file && file->fd >= 0 && file->offset % PageSize() == 0) {
    void* mapped =
        mmap(nullptr, image->size_, PROT_READ | PROT_EXEC, MAP_PRIVATE, file->fd, static_cast<off_t>(file->offset));
    if (mapped != MAP_FAILED) {
      image->base_ = static_cast<std::byte*>(mapped);
      image->is_mapped_file_ = true;
      return std::shared_ptr<const LoadedImage>(std::move(image));
    }
  }
  void* memory = mmap(nullptr, image->size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Status::OutOfMemory({"no memory for a kernel image of ", image->size_, " bytes"});
  image->base_ = static_cast<std::byte*>(memory);
  std::memcpy(memory, bytes.data(), image->size_);
  if (mprotect(memory, image->size_, PROT_READ | PROT_EXEC) != 0) {
    return Status(StatusCode::kIo, {"the system refuses to make memory executable: ", std::strerror(errno)});
  }
  __builtin___clear_cache(static_cast<char*>(memory), static_cast<char*>(memory) + image->size_);
  return std::shared_ptr<const LoadedImage>(std::move(image));
}

LoadedImage::~LoadedImage() {
  if (base_ != nullptr) munmap(base_, size_);
}

}  // namespace ingot::vm
