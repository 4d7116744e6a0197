// The string table of the symbols is written anew behind the object, with the new name at its end; the sections in
// front of it stay where they are. Every offset is checked: objects may come out of a file.
#include "compiler/codegen/rename_kernel.h"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <optional>

namespace ingot::codegen {
namespace {

Status MalformedObject(const char* what) { return Status(StatusCode::kCorrupt, {"a kernel's object: ", what}); }

template <typename T>
std::optional<T> ReadAt(std::string_view bytes, uint64_t offset) {
  T value;
  if (bytes.size() < sizeof value || offset > bytes.size() - sizeof value) return std::nullopt;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <typename T>
void WriteAt(std::string& bytes, uint64_t offset, const T& value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

bool IsInside(std::string_view bytes, const Elf64_Shdr& section) {
  return section.sh_offset <= bytes.size() && section.sh_size <= bytes.size() - section.sh_offset;
}

// A section and where its header is.
struct FoundSection {
  Elf64_Shdr header;
  uint64_t at;
};

}  // namespace

Result<std::string> RenameKernel(std::string_view object, std::string_view name) {
  const auto file = ReadAt<Elf64_Ehdr>(object, 0);
  if (!file || std::memcmp(file->e_ident, ELFMAG, SELFMAG) != 0 || file->e_ident[EI_CLASS] != ELFCLASS64 ||
      file->e_ident[EI_DATA] != ELFDATA2LSB || file->e_type != ET_REL || file->e_shentsize != sizeof(Elf64_Shdr)) {
    return MalformedObject("no ELF object of 64 bits");
  }
  const auto section_at = [&](uint64_t index) -> std::optional<FoundSection> {
    if (index >= file->e_shnum || file->e_shoff > object.size()) return std::nullopt;
    const uint64_t at = file->e_shoff + index * sizeof(Elf64_Shdr);
    const auto header = ReadAt<Elf64_Shdr>(object, at);
    if (!header) return std::nullopt;
    return FoundSection{*header, at};
  };
  std::optional<FoundSection> symbols;
  for (uint64_t i = 0; i < file->e_shnum; ++i) {
    const std::optional<FoundSection> section = section_at(i);
    if (!section) return MalformedObject("its sections end behind it");
    if (section->header.sh_type != SHT_SYMTAB) continue;
    if (symbols) return MalformedObject("it has two symbol tables");
    symbols = section;
  }
  if (!symbols || !IsInside(object, symbols->header) || symbols->header.sh_entsize != sizeof(Elf64_Sym)) {
    return MalformedObject("it has no symbol table");
  }
  const std::optional<FoundSection> names = section_at(symbols->header.sh_link);
  if (!names || names->header.sh_type != SHT_STRTAB || !IsInside(object, names->header)) {
    return MalformedObject("its symbols have no names");
  }
  const std::string_view texts = object.substr(names->header.sh_offset, names->header.sh_size);

  std::optional<uint64_t> kernel_at;
  for (uint64_t at = 0; at < symbols->header.sh_size; at += sizeof(Elf64_Sym)) {
    const auto symbol = ReadAt<Elf64_Sym>(object, symbols->header.sh_offset + at);
    if (!symbol) return MalformedObject("its symbol table ends behind it");
    if (ELF64_ST_BIND(symbol->st_info) != STB_GLOBAL || symbol->st_shndx == SHN_UNDEF) continue;
    if (symbol->st_name >= texts.size()) return MalformedObject("a symbol's name is nowhere");
    const std::string_view text = texts.substr(symbol->st_name);
    if (text.substr(0, text.find('\0')) != kKernelSymbol) return MalformedObject("it defines more than the kernel");
    if (kernel_at) return MalformedObject("it defines the kernel twice");
    kernel_at = symbols->header.sh_offset + at;
  }
  if (!kernel_at) return MalformedObject("it does not define the kernel");

  std::string renamed(object);
  renamed.append(texts).append(name).push_back('\0');
  auto symbol = *ReadAt<Elf64_Sym>(object, *kernel_at);
  symbol.st_name = static_cast<Elf64_Word>(texts.size());
  WriteAt(renamed, *kernel_at, symbol);
  Elf64_Shdr header = names->header;
  header.sh_offset = object.size();
  header.sh_size = texts.size() + name.size() + 1;
  WriteAt(renamed, names->at, header);
  return renamed;
}

}  // namespace ingot::codegen
