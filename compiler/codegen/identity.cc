// The build ids are notes in the memory of the files that are loaded: of the one that holds this function, and of the
// one that holds LLVM's.
#include <elf.h>
#include <link.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/MC/TargetRegistry.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "compiler/codegen/codegen.h"
#include "formats/sha256.h"
#include "runtime/version.h"

namespace ingot::codegen {
namespace {

struct FileOfAddress {
  uintptr_t address;
  std::string build_id;  // in hexadecimal; empty when there is none
};

// The build id among the notes of a segment, or nothing.
std::string BuildIdAmong(std::span<const std::byte> notes) {
  constexpr auto kPadded = [](size_t size) { return (size + 3) / 4 * 4; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes.data(), sizeof note);
    notes = notes.subspan(sizeof note);
    const size_t name_bytes = kPadded(note.n_namesz), text_bytes = kPadded(note.n_descsz);
    if (name_bytes > notes.size() || note.n_descsz > notes.size() - name_bytes) return {};
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes.data(), "GNU", 4) == 0) {
      const auto* id = reinterpret_cast<const uint8_t*>(notes.data() + name_bytes);
      return formats::ToHex({id, note.n_descsz});
    }
    notes = notes.subspan(std::min(notes.size(), name_bytes + text_bytes));
  }
  return {};
}

// Called for each loaded file; stops at the one that holds the address.
int FindBuildId(dl_phdr_info* file, size_t, void* found) {
  auto& wanted = *static_cast<FileOfAddress*>(found);
  const std::span segments(file->dlpi_phdr, file->dlpi_phnum);
  bool holds = false;
  for (const ElfW(Phdr) & segment : segments) {
    const uintptr_t begin = file->dlpi_addr + segment.p_vaddr;
    holds |= segment.p_type == PT_LOAD && wanted.address >= begin && wanted.address - begin < segment.p_memsz;
  }
  if (!holds) return 0;
  for (const ElfW(Phdr) & segment : segments) {
    if (segment.p_type != PT_NOTE || !wanted.build_id.empty()) continue;
    const auto* notes = reinterpret_cast<const std::byte*>(file->dlpi_addr + segment.p_vaddr);
    wanted.build_id = BuildIdAmong({notes, segment.p_memsz});
  }
  return 1;
}

}  // namespace

Result<std::string> CodegenIdentity() {
  std::string identity = std::string("ingot ") + kVersion + ", LLVM " + LLVM_VERSION_STRING;
  const uintptr_t places[] = {
      reinterpret_cast<uintptr_t>(&CodegenIdentity),
      reinterpret_cast<uintptr_t>(static_cast<const llvm::Target* (*)(llvm::StringRef, std::string&)>(
          &llvm::TargetRegistry::lookupTarget)),
  };
  for (const uintptr_t place : places) {
    FileOfAddress file{place, {}};
    dl_iterate_phdr(FindBuildId, &file);
    if (file.build_id.empty()) {
      return Status(StatusCode::kNotFound, "this build has no build id, which tells it from others");
    }
    identity += ", " + file.build_id;
  }
  return identity;
}

}  // namespace ingot::codegen
