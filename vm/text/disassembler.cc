// Prints each table of a program in turn; operands are printed by the operand kinds of the opcode table.
#include "vm/text/disassembler.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "formats/hash.h"
#include "runtime/check.h"
#include "runtime/utf8.h"
#include "vm/program/builtins.h"
#include "vm/text/text_cursor.h"

namespace ingot::vm {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

std::string Hex(uint64_t value) {
  char buffer[16];
  const auto end = std::to_chars(std::begin(buffer), std::end(buffer), value, 16).ptr;
  return "0x" + std::string(buffer, end);
}

// Plain is what the assembler reads as one word.
std::string PlainOrQuoted(std::string_view name) {
  return !name.empty() && TextCursor(name, "").PeekWord() == name ? std::string(name) : Quote(name);
}

std::string FloatText(int64_t bits) {
  const double value = std::bit_cast<double>(bits);
  if (!std::isfinite(value)) return "bits " + Hex(static_cast<uint64_t>(bits));
  // The shorter of positional and scientific form, of the fewest digits that read back as the same number. (Not
  // std::to_chars, which brings 100 KB of tables.)
  char text[64];
  for (int precision = 0; precision <= 16; ++precision) {
    std::snprintf(text, sizeof text, "%.*e", precision, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  const std::string scientific = text;
  const size_t e = scientific.find('e');
  const int exponent = std::atoi(scientific.c_str() + e + 1);
  const auto digits = static_cast<int>(std::count_if(scientific.begin(), scientific.begin() + static_cast<ptrdiff_t>(e),
                                                     [](char c) { return c >= '0' && c <= '9'; }));
  if (std::abs(exponent) > 20) return scientific;  // positional text is longer
  std::snprintf(text, sizeof text, "%.*f", std::max(digits - 1 - exponent, 0), value);
  return std::strlen(text) <= scientific.size() ? std::string(text) : scientific;
}

std::string JoinDims(const std::vector<DimCode>& dims, std::span<const std::string> names) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i) out += (i ? ", " : "") + dims[i].ToString(names);
  return out + "]";
}

std::string DimsText(std::span<const int64_t> dims) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i) out += (i ? ", " : "") + std::to_string(dims[i]);
  return out + "]";
}

// Names of a function's slots: its symbols, then r<number>.
std::vector<std::string> SlotNames(const Function& function) {
  std::vector<std::string> names = function.signature.symbol_names();
  for (size_t i = names.size(); i < function.registers.size(); ++i) names.push_back("r" + std::to_string(i));
  return names;
}

std::string RegisterText(uint32_t index) { return "r" + std::to_string(index); }

std::string RegistersText(const RegisterList& registers) {
  std::string out = "[";
  for (size_t i = 0; i < registers.size(); ++i) out += (i ? ", " : "") + RegisterText(registers[i]);
  return out + "]";
}

std::string SymbolsText(const Signature& signature) {
  if (signature.symbols.empty()) return "";
  std::string out = "[";
  for (size_t i = 0; i < signature.symbols.size(); ++i) {
    const Symbol& symbol = signature.symbols[i];
    out += (i ? ", " : "") + PlainOrQuoted(symbol.name);
    if (symbol.min != 0 || symbol.max != INT64_MAX) {
      out += " in " + std::to_string(symbol.min) + ".." + std::to_string(symbol.max);
    }
    if (symbol.state) out += " state #" + std::to_string(symbol.state->value);
  }
  return out + "]";
}

std::string NamedTypes(const std::vector<NamedType>& types, Storage usual, std::span<const std::string> names) {
  std::string out = "(";
  for (size_t i = 0; i < types.size(); ++i) {
    Type type = types[i].type;
    if (type.is_tensor() && type.storage == usual) {
      type.storage = Storage::kOwned;  // the default is not printed
    } else if (type.is_tensor() && type.storage == Storage::kOwned) {
      out += (i ? ", " : "") + PlainOrQuoted(types[i].name) + ": owned " + type.ToString(names);
      continue;
    }
    out += (i ? ", " : "") + PlainOrQuoted(types[i].name) + ": " + type.ToString(names);
  }
  return out + ")";
}

std::string SignatureText(const Signature& signature) {
  const std::vector<std::string> names = signature.symbol_names();
  return SymbolsText(signature) + NamedTypes(signature.params, Storage::kBorrowed, names) + " -> " +
         NamedTypes(signature.results, Storage::kOwned, names);
}

class Printer {
 public:
  Printer(const Program& program, const DisassembleOptions& options) : program_(program), options_(options) {}

  std::string Run() {
    if (options_.form != nullptr) PrintForm(*options_.form);
    for (const auto& [key, value] : program_.metadata) Line("metadata " + Quote(key) + " = " + Quote(value));
    for (const VirtualDevice& device : program_.devices) {
      Line("device " + Quote(device.kind) + " " + std::to_string(device.index));
    }
    for (const External& external : program_.externals) {
      Line("external @" + PlainOrQuoted(external.name) + SignatureText(external.signature) +
           EffectsText(external.effects));
    }
    for (const WeightFile& file : program_.weight_files) {
      Line("weight_file " + Quote(file.path) + " size " + std::to_string(file.size) + " hash " + Hex(file.hash) +
           " sha256 " + Quote(formats::ToHex(file.sha256)));
    }
    auto weight = program_.weights.begin();
    for (uint32_t i = 0; i < program_.constants.size(); ++i) {
      const bool is_weight = weight != program_.weights.end() && weight->constant.value == i;
      PrintConstant(program_.constants[i], is_weight ? &*weight++ : nullptr);
    }
    for (const vm::State& state : program_.states) {
      Line("state @" + PlainOrQuoted(state.name) + " " + state.dtype.ToString() + DimsText(state.dims) + " device " +
           std::to_string(state.device) +
           (state.growth ? " grows axis " + std::to_string(state.growth->axis) + " by " +
                               Reference(program_.states, state.growth->length.value)
                         : "") +
           (state.initial ? " = #" + std::to_string(state.initial->value) : ""));
    }
    for (const KernelImage& image : program_.images) PrintImage(image);
    for (const vm::Kernel& kernel : program_.kernels) PrintKernel(kernel);
    for (const Function& function : program_.functions) PrintFunction(function);
    std::string head = "ingot 1\n";
    if (const BlobsBeside* beside = options_.beside) {
      head += "blobs " + Quote(beside->name) + " size " + std::to_string(beside->size) + " hash " +
              Hex(formats::Hash(beside->pieces)) + "\n";
    }
    return head + out_;
  }

  std::string RunFunction(const Function& function) {
    PrintFunction(function);
    return std::exchange(out_, {});
  }

  std::string InstructionText(const Function& function, const Instruction& instruction,
                              std::span<const std::string> names) const {
    std::string out = InfoOf(instruction.opcode).name;
    bool first = true;
    for (const auto& [spec, value] : instruction.operands()) {
      if (spec.kind == OperandKind::kStream && std::get<int64_t>(value) == 0) continue;
      out += (first ? " " : ", ") + OperandText(function, spec.kind, value, names);
      first = false;
    }
    return out;
  }

 private:
  void Line(const std::string& text) { out_ += text + "\n"; }

  static std::string EffectsText(uint32_t effects) {
    constexpr const char* kNames[] = {"reads_state", "writes_state", "io", "may_fail"};
    std::string out;
    for (int i = 0; i < 4; ++i) {
      if (effects >> i & 1) out += std::string(" ") + kNames[i];
    }
    return out.empty() ? "" : " effects" + out;
  }

  std::string Blob(const SharedBytes& bytes) {
    if (!options_.blobs) return "<" + std::to_string(bytes.size()) + " bytes>";
    constexpr size_t kMostInText = 64;  // bytes; larger blobs go to the file beside the text
    if (options_.beside != nullptr && bytes.size() > kMostInText) {
      return "blob " + std::to_string(PutBeside(bytes.bytes)) + " size " + std::to_string(bytes.size());
    }
    std::string out = "hex";
    constexpr size_t kPerLine = 48;
    if (bytes.size() == 0) return out + " \"\"";
    for (size_t i = 0; i < bytes.size(); i += kPerLine) {
      out += bytes.size() > kPerLine ? "\n  \"" : " \"";
      for (size_t k = i; k < std::min(i + kPerLine, bytes.size()); ++k) {
        const auto byte = std::to_integer<unsigned>(bytes.bytes[k]);
        out += kHexDigits[byte >> 4];
        out += kHexDigits[byte & 15];
      }
      out += "\"";
    }
    return out;
  }

  // Puts the bytes into the file beside the text, once where several rows share them, and returns their offset there.
  uint64_t PutBeside(std::span<const std::byte> bytes) {
    BlobsBeside& beside = *options_.beside;
    const auto [at, is_new] = offsets_beside_.emplace(std::pair(bytes.data(), bytes.size()), beside.size);
    if (is_new) {
      beside.pieces.push_back(bytes);
      beside.size += bytes.size();
    }
    return at->second;
  }

  void PrintForm(const FileForm& form) {
    if (!form.debug_map) Line("stripped");
    for (const auto& [section, stored] : form.sections) {
      const std::string_view known = formats::SectionKindName(section.kind);
      Line("section " +
           (known.empty() ? std::to_string(static_cast<uint32_t>(section.kind)) + " " + Quote(section.name)
                          : std::string(known)) +
           "[" + std::to_string(section.index) + "]" + (section.is_required ? " required" : " optional") + " align " +
           std::to_string(uint64_t{1} << section.alignment_log2) +
           (section.codec == formats::Codec::kZstd ? " zstd " + std::to_string(section.size) : "") + " = " +
           Blob(stored));
    }
    if (form.launcher.size() > 0) Line("launcher = " + Blob(form.launcher));
  }

  void PrintConstant(const Constant& constant, const Weight* weight) {
    const std::optional<PreparedBy>& prepared = constant.prepared_by;
    std::string content;
    if (prepared) {
      content = "prepared " + Reference(program_.functions, prepared->function.value) + " " +
                std::to_string(prepared->result);
    } else if (weight != nullptr && weight->file) {
      content = "file " + std::to_string(*weight->file) + " offset " + std::to_string(weight->offset);
    } else {
      content = Blob(constant.bytes);
    }
    Line("constant " + Quote(constant.name) + " " + constant.dtype.ToString() + DimsText(constant.dims) +
         (weight != nullptr ? " weight" : "") + " = " + content);
  }

  void PrintImage(const KernelImage& image) {
    constexpr const char* kFormats[] = {" elf ", " ptx ", " cubin "};
    Line("image " + Quote(image.name) + kFormats[static_cast<size_t>(image.format)] + Quote(image.arch) + " features " +
         Hex(image.features) + " = " + Blob(image.bytes));
  }

  void PrintKernel(const vm::Kernel& kernel) {
    std::vector<std::string> names;
    for (const KernelInt& scalar : kernel.ints) names.push_back(scalar.name);
    Line("kernel @" + PlainOrQuoted(kernel.name) + " {");
    for (const KernelInt& scalar : kernel.ints)
      Line("  int " + PlainOrQuoted(scalar.name) + ": " + scalar.dtype.ToString());
    for (const KernelParam& param : kernel.params) {
      Line("  " + std::string(ParamRoleName(param.role)) + " " + PlainOrQuoted(param.name) + ": " +
           param.dtype.ToString() + JoinDims(param.extents, names) + " align " + std::to_string(param.alignment) +
           (param.in_place ? " in_place " + std::to_string(*param.in_place) : ""));
    }
    Line("  device " + std::to_string(kernel.device));
    Line("  workspace " + kernel.workspace.ToString(names));
    Line("  flops " + kernel.flops.ToString(names));
    Line("  bytes " + kernel.bytes.ToString(names));
    if (kernel.effects != 0) Line(" " + EffectsText(kernel.effects));
    for (const LaunchRecord& launch : kernel.launches) {
      const auto sizes = [&](size_t first) {
        const auto begin = launch.sizes.begin() + static_cast<std::ptrdiff_t>(first);
        return JoinDims({begin, begin + 3}, names);
      };
      const std::string rounds =
          launch.sizes.size() > kNumLaunchSizes
              ? " rounds " + JoinDims({launch.sizes.begin() + kNumLaunchSizes, launch.sizes.end()}, names)
              : "";
      Line("  launch variant " + std::to_string(launch.variant) + " entry " + Quote(launch.entry) + " grid " +
           sizes(0) + " block " + sizes(3) + rounds + " shared " + launch.sizes[6].ToString(names));
    }
    for (const KernelVariant& variant : kernel.variants) {
      Line("  variant image " + std::to_string(variant.image) + " offset " + Hex(variant.offset) + " entry " +
           Quote(variant.entry) + " features " + Hex(variant.required_features));
    }
    for (ExternalId id : kernel.externals) Line("  external " + Reference(program_.externals, id.value));
    for (const std::string& message : kernel.messages) Line("  message " + Quote(message));
    Line("}");
  }

  void PrintFunction(const Function& function) {
    const std::vector<std::string> symbols = function.signature.symbol_names();
    const std::vector<std::string> names = SlotNames(function);
    Line("function @" + PlainOrQuoted(function.name) + (function.exported ? " export " : " ") +
         SignatureText(function.signature) + " {");
    const size_t implied = symbols.size() + function.signature.params.size();
    for (size_t i = implied; i < function.registers.size(); ++i) {
      Line("  register " + RegisterText(static_cast<uint32_t>(i)) + ": " + function.registers[i].ToString(symbols));
    }
    for (const Arena& arena : function.plan.arenas) {
      Line("  arena device " + std::to_string(arena.device) + ", size " + arena.size.ToString(symbols));
    }
    for (size_t i = 0; i < function.plan.entries.size(); ++i) {
      const PlanEntry& entry = function.plan.entries[i];
      Line("  entry " + std::to_string(i) + ": arena " + std::to_string(entry.arena) + ", offset " +
           entry.offset.ToString(symbols) + ", size " + entry.size.ToString(symbols) + ", live " +
           std::to_string(entry.first) + ".." + std::to_string(entry.last) +
           (entry.alias_of ? ", alias " + std::to_string(entry.alias_of->value) : ""));
    }
    std::set<size_t> targets;
    for (const Instruction& instruction : function.code) {
      ForEachLabel(instruction, [&](uint32_t target) { targets.insert(target); });
    }
    auto note = function.notes.begin();
    const size_t end = function.code.size();
    for (size_t i = 0; i <= end; ++i) {  // at the end is no instruction: a label or note there is unsound, but shown
      if (targets.contains(i)) Line("L" + std::to_string(i) + ":");
      for (; note != function.notes.end() && (note->instruction <= i || i == end); ++note) {
        Line("  note " + Quote(note->text));
      }
      if (i < end) Line("  " + InstructionText(function, function.code[i], names));
    }
    Line("}");
  }

  // "@name" where the name refers to this row (the first of that name), "#index" otherwise.
  template <typename Row>
  std::string Reference(const std::vector<Row>& rows, int64_t index) const {
    if (index >= 0 && static_cast<size_t>(index) < rows.size()) {
      const auto [table, is_new] = named_rows_.try_emplace(&rows);
      for (size_t i = 0; is_new && i < rows.size(); ++i) table->second.emplace(rows[i].name, i);
      const std::string& name = rows[static_cast<size_t>(index)].name;
      if (table->second.at(name) == static_cast<size_t>(index)) return "@" + PlainOrQuoted(name);
    }
    return "#" + std::to_string(index);
  }

  std::string OperandText(const Function& function, OperandKind kind, const Operand& operand,
                          std::span<const std::string> names) const {
    const auto scalar = [&] { return std::get<int64_t>(operand); };
    switch (kind) {
      case OperandKind::kDef:
      case OperandKind::kUse:
        return RegisterText(static_cast<uint32_t>(scalar()));
      case OperandKind::kDefList:
      case OperandKind::kUseList:
        return RegistersText(std::get<RegisterList>(operand));
      case OperandKind::kInt:
      case OperandKind::kPlanEntry:
        return std::to_string(scalar());
      case OperandKind::kFloat:
        return FloatText(scalar());
      case OperandKind::kBool:
        return scalar() ? "true" : "false";
      case OperandKind::kText:
        return Quote(std::get<std::string>(operand));
      case OperandKind::kDType:
        return UnpackDataType(scalar()).ToString();
      case OperandKind::kDim:
        return std::get<DimCode>(operand).ToString(names);
      case OperandKind::kDimList:
        return JoinDims(std::get<std::vector<DimCode>>(operand), names);
      case OperandKind::kLabel:
        return "L" + std::to_string(scalar());
      case OperandKind::kKernel:
        return Reference(program_.kernels, scalar());
      case OperandKind::kBuiltin: {
        const BuiltinInfo* builtin = FindBuiltin(static_cast<uint64_t>(scalar()));
        return builtin ? builtin->name : "#" + std::to_string(scalar());
      }
      case OperandKind::kFunction:
        return Reference(program_.functions, scalar());
      case OperandKind::kExternal:
        return Reference(program_.externals, scalar());
      case OperandKind::kConstant:
        return "#" + std::to_string(scalar());
      case OperandKind::kState:
        return Reference(program_.states, scalar());
      case OperandKind::kStream:
        return "stream " + std::to_string(scalar());
    }
    (void)function;
    INGOT_UNREACHABLE();
  }

  const Program& program_;
  DisassembleOptions options_;
  std::map<std::pair<const std::byte*, size_t>, uint64_t> offsets_beside_;
  // Per table that something has referred to, the first row of each name.
  mutable std::map<const void*, std::unordered_map<std::string_view, size_t>> named_rows_;
  std::string out_;
};

}  // namespace

std::string Disassemble(const Program& program, const DisassembleOptions& options) {
  return Printer(program, options).Run();
}

std::string DisassembleFunction(const Program& program, const Function& function) {
  return Printer(program, {}).RunFunction(function);
}

std::function<std::string(const Function&)> FunctionDisassembler(const Program& program) {
  return [printer = std::make_shared<Printer>(program, DisassembleOptions())](const Function& function) {
    return printer->RunFunction(function);
  };
}

std::string DisassembleInstruction(const Program& program, const Function& function, const Instruction& instruction) {
  return Printer(program, {}).InstructionText(function, instruction, SlotNames(function));
}

}  // namespace ingot::vm
