// CheckImage: reads the linked image with <elf.h> alone.
#include <elf.h>

#include <cstring>
#include <string_view>

#include "compiler/codegen/link_image.h"

namespace ingot::codegen {
namespace {

Status Broken(std::string message) {
  return Status(StatusCode::kUnsupportedModel, "the linked kernel image " + std::move(message));
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  bool Read(uint64_t offset, T* value) const {
    if (offset > bytes_.size() || sizeof(T) > bytes_.size() - offset) return false;
    std::memcpy(value, bytes_.data() + offset, sizeof(T));
    return true;
  }
  std::string_view String(uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    const char* begin = reinterpret_cast<const char*>(bytes_.data()) + offset;
    return {begin, strnlen(begin, bytes_.size() - offset)};
  }

 private:
  std::span<const std::byte> bytes_;
};

struct DynamicTable {
  uint64_t symbols = 0, strings = 0, gnu_hash = 0;
};

Result<DynamicTable> ReadDynamic(const Reader& reader, const Elf64_Phdr& header) {
  DynamicTable table;
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= header.p_filesz; at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    if (!reader.Read(header.p_offset + at, &entry)) return Broken("has a dynamic section outside of the file");
    switch (entry.d_tag) {
      case DT_NULL:
        return table;
      case DT_SYMTAB:
        table.symbols = entry.d_un.d_ptr;
        break;
      case DT_STRTAB:
        table.strings = entry.d_un.d_ptr;
        break;
      case DT_GNU_HASH:
        table.gnu_hash = entry.d_un.d_ptr;
        break;
      case DT_SYMENT:
      case DT_STRSZ:
      case DT_SYMBOLIC:
      case DT_FLAGS:
        break;
      case DT_NEEDED:
        return Broken("needs another library");
      case DT_RELA:
      case DT_REL:
      case DT_RELR:
      case DT_JMPREL:
      case DT_TEXTREL:
        return Broken("has dynamic relocations");
      default:
        return Broken("has an unexpected dynamic entry " + std::to_string(entry.d_tag));
    }
  }
  return Broken("has a dynamic section without an end");
}

}  // namespace

Result<std::vector<uint64_t>> CheckImage(std::span<const std::byte> elf, std::span<const std::string> entries) {
  const Reader reader(elf);
  Elf64_Ehdr header;
  if (!reader.Read(0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return Broken("is no ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_type != ET_DYN) {
    return Broken("is no little-endian 64-bit shared object");
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return Broken("has program headers of another size");
  Elf64_Phdr load{}, dynamic{};
  int num_loads = 0;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr program;
    if (!reader.Read(header.e_phoff + static_cast<uint64_t>(i) * sizeof(program), &program)) {
      return Broken("has program headers outside of the file");
    }
    if (program.p_type == PT_LOAD) {
      load = program;
      ++num_loads;
    } else if (program.p_type == PT_DYNAMIC) {
      dynamic = program;
    } else if (program.p_type == PT_TLS || program.p_type == PT_INTERP) {
      return Broken("has thread-local storage or an interpreter");
    }
  }
  if (num_loads != 1) return Broken("has " + std::to_string(num_loads) + " segments instead of one");
  if (load.p_flags != (PF_R | PF_X)) return Broken("has a segment that is not exactly readable and executable");
  if (load.p_offset != 0 || load.p_vaddr != 0) return Broken("does not start at address 0");
  if (load.p_filesz != load.p_memsz || load.p_filesz > elf.size()) return Broken("has a zero-filled tail");
  if (dynamic.p_type != PT_DYNAMIC) return Broken("has no dynamic section");
  INGOT_ASSIGN_OR_RETURN(const DynamicTable table, ReadDynamic(reader, dynamic));

  // The number of dynamic symbols is where the hash table's last chain ends.
  uint32_t hash_header[4];
  if (!reader.Read(table.gnu_hash, &hash_header)) return Broken("has no symbol hash table");
  const uint64_t buckets = table.gnu_hash + sizeof(hash_header) + uint64_t{hash_header[2]} * 8;
  uint32_t last = 0;
  for (uint32_t i = 0; i < hash_header[0]; ++i) {
    uint32_t bucket;
    if (!reader.Read(buckets + uint64_t{i} * 4, &bucket)) return Broken("has a malformed symbol hash table");
    last = std::max(last, bucket);
  }
  const uint64_t chains = buckets + uint64_t{hash_header[0]} * 4;
  for (uint32_t chain = 0; last >= hash_header[1]; ++last) {
    if (!reader.Read(chains + uint64_t{last - hash_header[1]} * 4, &chain)) {
      return Broken("has a malformed symbol hash table");
    }
    if ((chain & 1) != 0) break;
  }

  std::vector<uint64_t> offsets(entries.size(), 0);
  for (uint64_t i = 1; i <= last; ++i) {
    Elf64_Sym symbol;
    if (!reader.Read(table.symbols + i * sizeof(symbol), &symbol)) return Broken("has symbols outside of the file");
    const std::string_view name = reader.String(table.strings + symbol.st_name);
    if (symbol.st_shndx == SHN_UNDEF) return Broken("imports \"" + std::string(name) + "\"");
    for (size_t k = 0; k < entries.size(); ++k) {
      if (entries[k] == name && symbol.st_value < load.p_filesz) offsets[k] = symbol.st_value;
    }
  }
  for (size_t k = 0; k < entries.size(); ++k) {
    if (offsets[k] == 0) return Broken("lacks the kernel \"" + entries[k] + "\"");
  }
  return offsets;
}

}  // namespace ingot::codegen
