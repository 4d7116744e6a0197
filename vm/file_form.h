// What the file of an executable holds beside its Program: how sections are stored (compressed or not, with a debug
// map or without), sections that are none of the program's own (golden cases, signatures), the launcher of a packed
// program. In: an opened container. Out: the same file again, from a Program and its form. It understands none of
// these bytes.
#pragma once

#include <string>
#include <vector>

#include "formats/container.h"
#include "runtime/shared_bytes.h"
#include "runtime/status.h"
#include "vm/program.h"

namespace ingot::vm {

struct StoredSection {
  formats::Section section;  // its offset has no meaning here
  SharedBytes stored;
};

struct FileForm {
  bool debug_map = true;
  // Ascending by kind and index, none twice: those that are none of the program's own, and of the program's own those
  // that are compressed.
  std::vector<StoredSection> sections;
  SharedBytes launcher;  // all that stands before the container, padding included; empty: nothing
};

// Is this section made from a Program alone (EncodedProgram), so that whoever changes the Program makes it anew?
bool IsOfTheProgram(formats::SectionKind kind);

// `file` is the whole file that the container was opened from.
FileForm FormOf(const formats::Container& container, const SharedBytes& file);

// Writes a program in this form. Bad_input where a section is none that a reader accepts, or where a compressed one
// does not hold what the program's encoding holds: then the program was changed, and those bytes are no longer its own.
Status WriteInForm(const Program& program, const FileForm& form, const std::string& path);

}  // namespace ingot::vm
