// The assembler: the text form of a whole executable to a Program. Disassemble() prints this form; assembling what it
// prints and encoding the result gives the same bytes. It resolves names and labels and nothing else: the
// verifier proves that a program is sound, so tests can write unsound ones.
//
//   ingot 1                                   ; the first line; this is a comment
//   blobs "f.ingotasm.blobs" size 4096 hash 0x1   ; a file beside this one: `= blob OFFSET size N` for `= hex ...`
//   stripped                                ; these three describe the file, not the program: it has no debug map,
//   section constant_data[0] required align 64 zstd 4096 = hex "28b52ffd..."   ; a section as it is stored,
//   launcher = hex "7f454c46..."            ; and it is a packed program
//   metadata "producer" = "ingot 0.1.0"
//   device "cpu" 0                            ; virtual devices; none: one cpu
//   external @log(x: float32[4]) -> () effects io
//   constant "w" float32[2, 2] = 1, 2, 3, 4   ; or: = hex "0000803f...", or: = zeros
//   weight_file "w.safetensors" size 4096 hash 0x1 sha256 "00..."
//   constant "w2" float32[2] weight = file 0 offset 64   ; replaceable by its name; `weight = 1, 2` where it is in here
//   state @k float32[1, 64] device 0 = #0     ; initial constant; left out: zeros
//   image "x86-64-v3" elf "x86_64" features 0x1 = hex "7f454c46..."
//   kernel @add {                             ; without a variant: a stub
//     int n: int64                            ; slots of the formulas below
//     in a: float32[n] align 64
//     out b: float32[n] align 64 in_place 0
//     device 0                                ; these four default to 0
//     workspace 0
//     flops n
//     bytes n * 8
//     effects may_fail
//     launch variant 1 entry "add_0" grid [n, 1, 1] block [256, 1, 1] shared 0
//     variant image 0 offset 0x1000 entry "add" features 0x1
//     external @log
//     message "x must be positive"
//   }
//   function @main export [n in 1..64](x: float32[n]) -> (y: float32[n]) {
//     register r2: arena float32[n]           ; r0 is n, r1 is x; types as Type::ToString prints them
//     arena device 0, size n * 4
//     entry 0: arena 0, offset 0, size n * 4, live 0..1
//     note "add"
//     plan_view r2, 0, [n]                    ; operands in the order of vm/program/opcodes.def
//   L0:
//     call_kernel @add, [r1, r2], [r0]
//     ...
//   }
// Things are named @name, @"any name", or by index: #3. A stream operand that is 0 is left out.
#pragma once

#include <string>
#include <string_view>

#include "runtime/status.h"
#include "vm/program/file_form.h"
#include "vm/program/program.h"

namespace ingot::vm {

struct AssembledFile {
  Program program;
  FileForm form;
};

// A failure has line, column, the line with a caret, and a suggestion where a word is misspelt:
// "f.ingotasm:3:5: error: unknown opcode "jmp", did you mean "jump"?". `directory` is where `blobs` are looked for, and
// beneath which they must lie; without one the text may have none.
Result<AssembledFile> AssembleFile(std::string_view text, std::string_view file_name, const std::string& directory);

// The program alone, of a text without blobs.
Result<Program> Assemble(std::string_view text, std::string_view file_name = "<text>");

}  // namespace ingot::vm
