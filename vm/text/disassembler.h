// The text form of a whole Program: what `vm-inspect --disasm` and `vm-compile --emit=bytecode` print and what
// vm/text/assembler.h reads back to equal bytes. It prints any decoded Program, verified or not (ids that name nothing
// appear as #index), and escapes control characters. The grammar stands in vm/text/assembler.h.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "vm/program/file_form.h"
#include "vm/program/program.h"
#include "vm/program/quote.h"

namespace ingot::vm {

// Large bytes (constants, images, stored sections) that are written to a file beside the text, one after the other.
struct BlobsBeside {
  std::string name;                                // of the file, which lies in the text's folder
  std::vector<std::span<const std::byte>> pieces;  // of the program's and the form's bytes
  uint64_t size = 0;
};

struct DisassembleOptions {
  bool blobs = true;  // false: constants and images print as "<N bytes>", which does not assemble: for people
  BlobsBeside* beside = nullptr;   // filled; the caller writes it to a file; null: all bytes are in the text
  const FileForm* form = nullptr;  // what else the file holds; null: the program alone
};

std::string Disassemble(const Program& program, const DisassembleOptions& options = {});
// One function alone.
std::string DisassembleFunction(const Program& program, const Function& function);
// The same for many functions of one program, whose tables of names are made once. The program outlives what is returned.
std::function<std::string(const Function&)> FunctionDisassembler(const Program& program);
// One instruction, without indentation or line end; labels print as L<index>.
std::string DisassembleInstruction(const Program& program, const Function& function, const Instruction& instruction);

}  // namespace ingot::vm
