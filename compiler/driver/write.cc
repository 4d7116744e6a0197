// Checks that the loader will accept the program, encodes it with golden cases and signature, and writes it in the form
// that is asked for; finding the launcher and naming the symbol are here, too.
#include "compiler/driver/write.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <vector>

#include "compiler/driver/elf_embedding.h"
#include "formats/file.h"
#include "formats/packed_program.h"
#include "formats/signing.h"
#include "vm/program/device_program.h"
#include "vm/program/program_codec.h"
#include "vm/verify/verifier.h"

namespace ingot::driver {
namespace {

namespace fs = std::filesystem;

// The folders that hold this code: that of the running program, and that of the shared library if the code is in one.
std::vector<fs::path> OwnFolders() {
  std::vector<fs::path> folders;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) folders.push_back(program.parent_path());
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&FindLauncher), &info) != 0 && info.dli_fname != nullptr) {
    const fs::path library = fs::canonical(info.dli_fname, error);
    if (!error) folders.push_back(library.parent_path());
  }
  return folders;
}

// The text of the header that an application includes to refer to the executable inside it.
std::string Header(const std::string& symbol, const vm::Program& program) {
  std::string functions;
  for (const vm::Function& function : program.functions) {
    if (function.exported) functions += "\n *     " + function.name + function.signature.ToString();
  }
  // A function name from a model may contain the end of a comment.
  for (size_t at; (at = functions.find("*/")) != std::string::npos;) functions.insert(at + 1, " ");
  return "/* An Ingot executable inside of this program:" + functions +
         "\n *\n *     ingot_executable_open_memory(instance, " + symbol + ".data, " + symbol + ".size, \"" + symbol +
         "\", &options, &executable)\n */\n#ifndef INGOT_EMBEDDED_" + symbol + "\n#define INGOT_EMBEDDED_" + symbol +
         "\n#include <stddef.h>\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n#ifndef INGOT_EMBEDDED\n#define "
         "INGOT_EMBEDDED\nstruct ingot_embedded {\n  const void* data;\n  size_t size; /* bytes */\n};\n#endif\nextern "
         "const struct ingot_embedded " +
         symbol + ";\n#ifdef __cplusplus\n}\n#endif\n#endif\n";
}

// A launcher, an object or a library is machine code of one architecture: kernels of another could never run there.
Status CheckArchitecture(const vm::Program& program, const std::string& architecture) {
  for (const vm::KernelImage& image : program.images) {
    if (image.format != vm::ImageFormat::kElf) continue;
    if (image.format != vm::ImageFormat::kElf || image.arch == architecture) continue;
    return Status(StatusCode::kInvalidArgument,
                  "a program, an object or a library is of one architecture; the kernels "
                  "are for " +
                      architecture + " and " + image.arch);
  }
  return Status();
}

// Checks what the loader requires of every file, before anything is written: the verifier's proofs, and its caps on
// tables. Constants and images are left out: they are bytes behind the tables, and decoding does not look at them.
Status CheckLoads(const vm::Program& program) {
  const auto check = [&]() -> Status {
    INGOT_RETURN_IF_ERROR(vm::Verify(program));
    vm::Program tables = program;
    tables.constants.clear();
    tables.images.clear();
    INGOT_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, vm::EncodeProgram(tables));
    INGOT_ASSIGN_OR_RETURN(const formats::Container container,
                           formats::Container::Open(SharedBytes::Own(std::move(bytes))));
    return vm::DecodeProgram(container).status();
  };
  Status status = check();
  if (status.ok()) return status;
  return Status(StatusCode::kUnsupportedModel, "the executable would not load: " + status.message());
}

// A container of its own, in a section that readers for the CPU alone pass over.
Status AddProgramForGpu(const vm::Program& program, const WriteOptions& options, formats::ContainerWriter& writer) {
  INGOT_RETURN_IF_ERROR(CheckLoads(program));
  INGOT_ASSIGN_OR_RETURN(vm::EncodedProgram encoded, vm::EncodedProgram::Encode(program, options.encoding));
  formats::ContainerWriter::Options section;
  section.is_required = false;
  section.alignment = encoded.container().Alignment();
  section.name = vm::kDeviceProgramName;
  INGOT_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, encoded.container().ToBytes());
  return writer.AddOwned(vm::kDeviceProgramSection, 0, std::move(bytes), section);
}

}  // namespace

std::string LauncherName(const vm::Program& program, const std::string& architecture) {
  const bool needs_drivers = std::any_of(program.devices.begin(), program.devices.end(),
                                         [](const vm::VirtualDevice& device) { return device.kind != "cpu"; });
  return "launcher-" + architecture + (needs_drivers ? "-dynamic" : "");
}

Result<vm::EncodeOptions> ParseCompression(std::string_view text) {
  vm::EncodeOptions encoding;
  if (text == "none") return encoding;
  constexpr std::string_view kZstd = "zstd:";
  if (text.starts_with(kZstd)) {
    const std::string_view level = text.substr(kZstd.size());
    const auto [end, error] = std::from_chars(level.data(), level.data() + level.size(), encoding.zstd_level);
    const bool is_number = error == std::errc() && end == level.data() + level.size();
    if (is_number && encoding.zstd_level >= 1 && encoding.zstd_level <= 19) {
      encoding.constants_codec = formats::Codec::kZstd;
      return encoding;
    }
  }
  return Status(StatusCode::kInvalidArgument, "compression \"" + std::string(text) + "\": expected none or zstd:1..19");
}

Result<std::string> FindLauncher(const std::string& name) {
  std::string tried;
  for (const fs::path& folder : OwnFolders()) {
    for (const fs::path& base : {folder.parent_path(), folder.parent_path().parent_path()}) {
      const fs::path candidate = base / "libexec/ingot" / name;
      if (access(candidate.c_str(), R_OK) == 0) return candidate.string();
      tried += (tried.empty() ? "" : ", ") + candidate.string();
    }
  }
  return Status(StatusCode::kIo, "there is no " + name + " (tried " + tried + ")");
}

std::string SymbolFor(std::string_view path) {
  std::string symbol = fs::path(path).stem().string();
  for (char& c : symbol) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!is_letter && !(c >= '0' && c <= '9')) c = '_';
  }
  if (symbol.empty() || (symbol[0] >= '0' && symbol[0] <= '9')) symbol.insert(0, "_");
  return symbol;
}

Status WriteProgramAs(const vm::Program& program, const std::string& path, const WriteOptions& options) {
  INGOT_RETURN_IF_ERROR(CheckLoads(program));
  INGOT_ASSIGN_OR_RETURN(vm::EncodedProgram encoded, vm::EncodedProgram::Encode(program, options.encoding));
  if (!options.golden_cases.empty()) {
    formats::ContainerWriter::Options section;
    section.is_required = false;
    INGOT_RETURN_IF_ERROR(encoded.container().AddOwned(formats::SectionKind::kGoldenCases, 0,
                                                       vm::EncodeGoldenCases(options.golden_cases), section));
  }
  if (options.for_gpu != nullptr)
    INGOT_RETURN_IF_ERROR(AddProgramForGpu(*options.for_gpu, options, encoded.container()));
  if (!options.secret_key.empty()) {
    INGOT_RETURN_IF_ERROR(formats::SignContainer(encoded.container(), options.secret_key));
  }
  if (options.kind == FileKind::kExecutable) return encoded.container().WriteFile(path, *options.calls);
  INGOT_RETURN_IF_ERROR(CheckArchitecture(program, options.architecture));
  if (options.kind == FileKind::kProgram) {
    std::string launcher = options.launcher;
    if (launcher.empty()) {
      INGOT_ASSIGN_OR_RETURN(
          launcher,
          FindLauncher(LauncherName(options.for_gpu != nullptr ? *options.for_gpu : program, options.architecture)));
    }
    INGOT_ASSIGN_OR_RETURN(const SharedBytes bytes, formats::MapFile(launcher));
    return formats::WritePackedProgram(bytes.bytes, encoded.container(), path, *options.calls);
  }
  const ElfEmbedding embedding{SymbolFor(path), options.architecture, options.kind == FileKind::kShared,
                               fs::path(path).filename().string()};
  INGOT_RETURN_IF_ERROR(WriteElfEmbedding(embedding, encoded.container(), path, *options.calls));
  const std::string header = Header(embedding.symbol, program);
  return formats::WriteFileAtomically(fs::path(path).replace_extension(".h").string(), std::as_bytes(std::span(header)),
                                      *options.calls);
}

}  // namespace ingot::driver
