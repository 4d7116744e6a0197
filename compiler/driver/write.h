// Writes a compiled program: as an executable, as a native program (launcher and executable in one file), or inside an
// ELF object or shared library that an application links, with a C header beside it. No compiler or linker is started
// for any of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/file.h"
#include "runtime/status.h"
#include "vm/program/golden_cases.h"
#include "vm/program/program.h"
#include "vm/program/program_codec.h"

namespace ingot::driver {

enum class FileKind { kExecutable, kProgram, kObject, kShared };

struct WriteOptions {
  FileKind kind = FileKind::kExecutable;
  vm::EncodeOptions encoding;
  std::string architecture = "x86_64";   // of the launcher, the object or the library: as KernelImage::arch
  const vm::Program* for_gpu = nullptr;  // borrowed; the same functions, with kernels for GPUs; null: none
  std::string launcher;                  // a launcher's path; empty: FindLauncher
  std::vector<vm::GoldenCase> golden_cases;
  formats::FileCalls* calls = &formats::FileCalls::System();  // borrowed; write the files
  std::string secret_key;                                     // a file of a key to sign with; empty: not signed
};

// Parses the argument of --compress, which says how constants are stored: "none", "zstd:1" to "zstd:19".
Result<vm::EncodeOptions> ParseCompression(std::string_view text);

// Writes the file; errors: kUnsupportedModel if the loader would refuse it, kInvalidArgument for kernels of another
// architecture. For kObject and kShared, symbol and header are named after the file: "out/model.o" gives `model` and
// out/model.h.
Status WriteProgramAs(const vm::Program& program, const std::string& path, const WriteOptions& options);

// "launcher-ARCH" is fully static. "launcher-ARCH-dynamic" links the C library, for executables that use other devices
// than the CPU: their drivers are shared libraries, and a static program that loads one crashes.
std::string LauncherName(const vm::Program& program, const std::string& architecture);

// Returns the path of the launcher that belongs to this build: ../libexec/ingot/NAME as seen from the folder (or the
// one above it) of the running program or of the library that holds this code. A failure names the places that were
// tried.
Result<std::string> FindLauncher(const std::string& name);

// The file's name without folder and extension, as a C identifier.
std::string SymbolFor(std::string_view path);

}  // namespace ingot::driver
