// Both forms have the same parts in the same order: ELF header, what a linker or loader reads first, the container, the
// pair that the symbol names (with the dynamic section behind it in a library), the section headers and their names.
// In an object a relocation says where the pair points to; in a library the pair holds a relative relocation, so it
// lies in a writable page of its own. Structures are those of <elf.h>, written by a little-endian host for a
// little-endian target.
#include "compiler/driver/elf_embedding.h"

#include <elf.h>

#include <bit>
#include <cstring>
#include <vector>

#include "formats/byte_reader.h"
#include "formats/byte_writer.h"
#include "formats/file.h"

namespace ingot::driver {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr uint64_t kDataAlignment = 64;        // the alignment of constants that kernels assume
constexpr uint64_t kSegmentAlignment = 65536;  // the largest page size of any target
constexpr uint64_t kPairBytes = 16;

struct Machine {
  const char* architecture;
  uint16_t machine;
  uint32_t absolute;  // relocation types: a 64-bit address of a symbol,
  uint32_t relative;  // and of the library's own load address
};
constexpr Machine kMachines[] = {{"x86_64", EM_X86_64, R_X86_64_64, R_X86_64_RELATIVE},
                                 {"aarch64", EM_AARCH64, R_AARCH64_ABS64, R_AARCH64_RELATIVE}};

uint64_t AlignedTo(uint64_t offset, uint64_t alignment) { return (offset + alignment - 1) & ~(alignment - 1); }

template <typename T>
void Put(formats::ByteWriter& out, const T& structure) {
  out.Bytes(std::as_bytes(std::span(&structure, 1)));
}

// Strings one after the other, each with a zero behind it; the first one is empty.
class Names {
 public:
  uint32_t Add(std::string_view name) {
    const auto offset = static_cast<uint32_t>(text_.size());
    text_ += name;
    text_ += '\0';
    return offset;
  }
  std::string_view text() const { return text_; }

 private:
  std::string text_ = std::string(1, '\0');
};

class Writer {
 public:
  Writer(const ElfEmbedding& embedding, const Machine& machine, uint64_t container_bytes)
      : embedding_(embedding), machine_(machine), container_bytes_(container_bytes) {}

  Status Write(const formats::ContainerWriter& container, const std::string& path, formats::FileCalls& calls) {
    const std::vector<std::byte> front = embedding_.is_shared ? LibraryFront() : ObjectFront();
    formats::ByteWriter back;
    if (embedding_.is_shared) {
      LibraryBack(back);
    } else {
      ObjectBack(back);
    }
    INGOT_ASSIGN_OR_RETURN(formats::OutputFile file, formats::OutputFile::Create(path, calls));
    INGOT_RETURN_IF_ERROR(file.Write(front));
    INGOT_RETURN_IF_ERROR(container.WriteTo(file));
    INGOT_RETURN_IF_ERROR(file.WriteZeros(pair_at_ - data_at_ - container_bytes_));
    INGOT_RETURN_IF_ERROR(file.Write(back.bytes()));
    return file.Commit();
  }

 private:
  Elf64_Ehdr FileHeader(uint16_t type, uint16_t num_segments, uint16_t num_sections, uint64_t sections_at) const {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = type;
    header.e_machine = machine_.machine;
    header.e_version = EV_CURRENT;
    header.e_phoff = num_segments > 0 ? sizeof(Elf64_Ehdr) : 0;
    header.e_shoff = sections_at;
    header.e_ehsize = sizeof(Elf64_Ehdr);
    header.e_phentsize = num_segments > 0 ? sizeof(Elf64_Phdr) : 0;
    header.e_phnum = num_segments;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = num_sections;
    header.e_shstrndx = num_sections - 1;  // the names are the last section
    return header;
  }

  static Elf64_Shdr Section(uint32_t type, uint64_t flags, uint64_t at, uint64_t size, uint64_t alignment) {
    Elf64_Shdr section{};
    section.sh_type = type;
    section.sh_flags = flags;
    section.sh_offset = at;
    section.sh_size = size;
    section.sh_addralign = alignment;
    return section;
  }

  Elf64_Sym Symbol(uint32_t name, uint16_t section, uint64_t value) const {
    Elf64_Sym symbol{};
    symbol.st_name = name;
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
    symbol.st_shndx = section;
    symbol.st_value = value;
    symbol.st_size = kPairBytes;
    return symbol;
  }

  // ---- A relocatable object. Sections by number: 1 data, 2 pair, 3 relocation, 4 symbols, 5 symbol names, 6 the mark
  // that no executable stack is wanted, 7 section names.
  static constexpr uint16_t kObjectSections = 8;

  std::vector<std::byte> ObjectFront() {
    data_at_ = AlignedTo(sizeof(Elf64_Ehdr), kDataAlignment);
    pair_at_ = AlignedTo(data_at_ + container_bytes_, kPairBytes);
    const uint64_t names_bytes = embedding_.symbol.size() + 2;  // the empty name, and the zero behind this one
    const uint64_t relocation_at = pair_at_ + kPairBytes;
    const uint64_t symbols_at = relocation_at + sizeof(Elf64_Rela);
    const uint64_t names_at = symbols_at + 3 * sizeof(Elf64_Sym);
    AddObjectSections(relocation_at, symbols_at, names_at, names_bytes);
    formats::ByteWriter front;
    Put(front, FileHeader(ET_REL, 0, kObjectSections, sections_at_));
    front.AlignTo(kDataAlignment);
    return front.Take();
  }

  void AddObjectSections(uint64_t relocation_at, uint64_t symbols_at, uint64_t names_at, uint64_t names_bytes) {
    sections_.emplace_back();
    AddSection(".rodata.ingot", Section(SHT_PROGBITS, SHF_ALLOC, data_at_, container_bytes_, kDataAlignment));
    AddSection(".data.rel.ro", Section(SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, pair_at_, kPairBytes, 8));
    Elf64_Shdr relocation = Section(SHT_RELA, SHF_INFO_LINK, relocation_at, sizeof(Elf64_Rela), 8);
    relocation.sh_link = 4;
    relocation.sh_info = 2;
    relocation.sh_entsize = sizeof(Elf64_Rela);
    AddSection(".rela.data.rel.ro", relocation);
    Elf64_Shdr symbols = Section(SHT_SYMTAB, 0, symbols_at, 3 * sizeof(Elf64_Sym), 8);
    symbols.sh_link = 5;
    symbols.sh_info = 2;  // index of the first global symbol
    symbols.sh_entsize = sizeof(Elf64_Sym);
    AddSection(".symtab", symbols);
    AddSection(".strtab", Section(SHT_STRTAB, 0, names_at, names_bytes, 1));
    AddSection(".note.GNU-stack", Section(SHT_PROGBITS, 0, names_at + names_bytes, 0, 1));
    AddSectionNames(names_at + names_bytes);
  }

  void ObjectBack(formats::ByteWriter& back) const {
    back.U64(0);
    back.U64(container_bytes_);
    Put(back, Elf64_Rela{0, ELF64_R_INFO(1, machine_.absolute), 0});
    Put(back, Elf64_Sym{});
    Elf64_Sym data{};  // the data's section as a symbol, for the relocation
    data.st_info = ELF64_ST_INFO(STB_LOCAL, STT_SECTION);
    data.st_shndx = 1;
    Put(back, data);
    Put(back, Symbol(1, 2, 0));
    Names names;
    names.Add(embedding_.symbol);
    back.Bytes(formats::AsBytes(names.text()));
    PutSections(back);
  }

  // ---- A shared library. Sections by number: 1 hash, 2 symbols, 3 symbol names, 4 relocation, 5 data, 6 pair,
  // 7 dynamic, 8 section names.
  static constexpr uint16_t kLibrarySections = 9;
  static constexpr uint16_t kSegments = 4;
  static constexpr uint64_t kDynamicEntries = 11;

  std::vector<std::byte> LibraryFront() {
    Names names;
    const uint32_t symbol_name = names.Add(embedding_.symbol);
    soname_ = names.Add(embedding_.soname);
    hash_at_ = sizeof(Elf64_Ehdr) + kSegments * sizeof(Elf64_Phdr);
    constexpr uint32_t kHash[] = {1, 2, 1, 0, 0};  // one bucket, two symbols: the bucket starts at symbol 1
    symbols_at_ = AlignedTo(hash_at_ + sizeof kHash, 8);
    names_at_ = symbols_at_ + 2 * sizeof(Elf64_Sym);
    names_bytes_ = names.text().size();
    relocation_at_ = AlignedTo(names_at_ + names_bytes_, 8);
    data_at_ = AlignedTo(relocation_at_ + sizeof(Elf64_Rela), kDataAlignment);
    pair_at_ = AlignedTo(data_at_ + container_bytes_, kSegmentAlignment);
    const uint64_t dynamic_at = pair_at_ + kPairBytes;
    const uint64_t dynamic_bytes = kDynamicEntries * sizeof(Elf64_Dyn);
    AddLibrarySections(dynamic_at, dynamic_bytes);

    formats::ByteWriter front;
    Put(front, FileHeader(ET_DYN, kSegments, kLibrarySections, sections_at_));
    Put(front, Segment(PT_LOAD, PF_R, 0, data_at_ + container_bytes_, kSegmentAlignment));
    Put(front, Segment(PT_LOAD, PF_R | PF_W, pair_at_, kPairBytes + dynamic_bytes, kSegmentAlignment));
    Put(front, Segment(PT_DYNAMIC, PF_R | PF_W, dynamic_at, dynamic_bytes, 8));
    Put(front, Segment(PT_GNU_STACK, PF_R | PF_W, 0, 0, 16));
    Put(front, kHash);
    front.AlignTo(8);
    Put(front, Elf64_Sym{});
    Put(front, Symbol(symbol_name, 6, pair_at_));
    front.Bytes(formats::AsBytes(names.text()));
    front.AlignTo(8);
    Put(front, Elf64_Rela{pair_at_, ELF64_R_INFO(0, machine_.relative), static_cast<int64_t>(data_at_)});
    front.AlignTo(kDataAlignment);
    return front.Take();
  }

  static Elf64_Phdr Segment(uint32_t type, uint32_t flags, uint64_t at, uint64_t size, uint64_t alignment) {
    Elf64_Phdr segment{};
    segment.p_type = type;
    segment.p_flags = flags;
    segment.p_offset = segment.p_vaddr = segment.p_paddr = at;
    segment.p_filesz = segment.p_memsz = size;
    segment.p_align = alignment;
    return segment;
  }

  void AddLibrarySections(uint64_t dynamic_at, uint64_t dynamic_bytes) {
    sections_.emplace_back();
    const auto add = [&](const char* name, Elf64_Shdr section, uint32_t link, uint32_t info, uint64_t entry_bytes) {
      section.sh_addr = section.sh_offset;  // every section's address is its offset
      section.sh_link = link;
      section.sh_info = info;
      section.sh_entsize = entry_bytes;
      AddSection(name, section);
    };
    add(".hash", Section(SHT_HASH, SHF_ALLOC, hash_at_, 20, 8), 2, 0, 4);
    add(".dynsym", Section(SHT_DYNSYM, SHF_ALLOC, symbols_at_, 2 * sizeof(Elf64_Sym), 8), 3, 1, sizeof(Elf64_Sym));
    add(".dynstr", Section(SHT_STRTAB, SHF_ALLOC, names_at_, names_bytes_, 1), 0, 0, 0);
    add(".rela.dyn", Section(SHT_RELA, SHF_ALLOC, relocation_at_, sizeof(Elf64_Rela), 8), 2, 0, sizeof(Elf64_Rela));
    add(".rodata", Section(SHT_PROGBITS, SHF_ALLOC, data_at_, container_bytes_, kDataAlignment), 0, 0, 0);
    add(".data.rel.ro", Section(SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, pair_at_, kPairBytes, 8), 0, 0, 0);
    add(".dynamic", Section(SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, dynamic_at, dynamic_bytes, 8), 3, 0, sizeof(Elf64_Dyn));
    AddSectionNames(dynamic_at + dynamic_bytes);
  }

  void LibraryBack(formats::ByteWriter& back) const {
    back.U64(data_at_);  // the relocation adds the load address
    back.U64(container_bytes_);
    const auto entry = [&](int64_t tag, uint64_t value) { Put(back, Elf64_Dyn{tag, {value}}); };
    entry(DT_SONAME, soname_);
    entry(DT_HASH, hash_at_);
    entry(DT_SYMTAB, symbols_at_);
    entry(DT_SYMENT, sizeof(Elf64_Sym));
    entry(DT_STRTAB, names_at_);
    entry(DT_STRSZ, names_bytes_);
    entry(DT_RELA, relocation_at_);
    entry(DT_RELASZ, sizeof(Elf64_Rela));
    entry(DT_RELAENT, sizeof(Elf64_Rela));
    entry(DT_RELACOUNT, 1);
    entry(DT_NULL, 0);
    PutSections(back);
  }

  // ---- Section headers
  void AddSection(const char* name, Elf64_Shdr section) {
    section.sh_name = section_names_.Add(name);
    sections_.push_back(section);
  }
  void AddSectionNames(uint64_t at) {
    Elf64_Shdr section = Section(SHT_STRTAB, 0, at, 0, 1);
    section.sh_name = section_names_.Add(".shstrtab");
    section.sh_size = section_names_.text().size();
    sections_.push_back(section);
    sections_at_ = AlignedTo(at + section.sh_size, 8);
  }
  void PutSections(formats::ByteWriter& back) const {
    back.Bytes(formats::AsBytes(section_names_.text()));
    back.Zeros(sections_at_ - (pair_at_ + back.size()));
    for (const Elf64_Shdr& section : sections_) Put(back, section);
  }

  const ElfEmbedding& embedding_;
  const Machine& machine_;
  uint64_t container_bytes_;
  // Offsets in the file, in a library addresses too.
  uint64_t data_at_ = 0, pair_at_ = 0, sections_at_ = 0;
  uint64_t hash_at_ = 0, symbols_at_ = 0, names_at_ = 0, names_bytes_ = 0, relocation_at_ = 0;
  uint64_t soname_ = 0;  // offset in the symbol names
  std::vector<Elf64_Shdr> sections_;
  Names section_names_;
};

}  // namespace

Status WriteElfEmbedding(const ElfEmbedding& embedding, const formats::ContainerWriter& container,
                         const std::string& path, formats::FileCalls& calls) {
  for (const Machine& machine : kMachines) {
    if (embedding.architecture != machine.architecture) continue;
    return Writer(embedding, machine, container.FileSize()).Write(container, path, calls);
  }
  return Status(StatusCode::kInvalidArgument, "no object files for the architecture " + embedding.architecture);
}

}  // namespace ingot::driver
