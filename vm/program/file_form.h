// What the file of an executable holds beside its Program: how sections are stored (compressed or not, with a debug map
// or without), sections that are not made from the program (golden cases, signatures), and the launcher of a packed
// program. In: an opened container. Out: the same file again, from a Program and its form. The bytes are not
// interpreted.
#pragma once

#include <string>
#include <vector>

#include "formats/container.h"
#include "formats/file.h"
#include "runtime/shared_bytes.h"
#include "runtime/status.h"
#include "vm/program/program.h"

namespace ingot::vm {

struct StoredSection {
  formats::Section section;  // its offset has no meaning here
  SharedBytes stored;
};

struct FileForm {
  bool debug_map = true;
  // Ascending by kind and index, none twice: all sections that are not made from the program, and those made from it
  // that are compressed.
  std::vector<StoredSection> sections;
  SharedBytes launcher;  // everything before the container, padding included; may be empty
};

// Whether sections of this kind are made from a Program alone (EncodedProgram), and so have to be made again when the
// Program changes.
bool IsOfTheProgram(formats::SectionKind kind);

// `file` is the whole file that the container was opened from.
FileForm FormOf(const formats::Container& container, const SharedBytes& file);

// Writes a program in this form. Fails with bad_input where a section is malformed, or where a compressed section does
// not hold what the program's encoding holds, because the program was changed.
Status WriteInForm(const Program& program, const FileForm& form, const std::string& path,
                   formats::FileCalls& calls = formats::FileCalls::System());

}  // namespace ingot::vm
