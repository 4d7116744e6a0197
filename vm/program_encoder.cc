#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <unordered_map>

#include "formats/byte_writer.h"
#include "formats/file.h"
#include "vm/limits.h"
#include "vm/program_codec.h"

namespace ingot::vm {
namespace {

using formats::ByteWriter;
using formats::SectionKind;

// Texts by index, in the order of their first use.
class StringTable {
 public:
  uint64_t Intern(const std::string& text) {
    const auto [at, is_new] = indexes_.emplace(text, texts_.size());
    if (is_new) texts_.push_back(&at->first);
    return at->second;
  }
  void Write(ByteWriter& out) const {
    out.Varint(texts_.size());
    for (const std::string* text : texts_) out.String(*text);
  }

 private:
  std::unordered_map<std::string, uint64_t> indexes_;
  std::vector<const std::string*> texts_;
};

void WriteDim(ByteWriter& out, const DimCode& code) {
  out.Varint(code.steps().size());
  for (const DimStep& step : code.steps()) {
    out.U8(static_cast<uint8_t>(step.op));
    if (step.op == DimOp::kConst || step.op == DimOp::kSlot) out.SignedVarint(step.value);
  }
}

void WriteDims(ByteWriter& out, std::span<const DimCode> codes) {
  out.Varint(codes.size());
  for (const DimCode& code : codes) WriteDim(out, code);
}

void WriteDataType(ByteWriter& out, DataType dtype) {
  out.U8(static_cast<uint8_t>(dtype.code));
  out.U8(dtype.bits);
  out.U16(dtype.lanes);
}

class Encoder {
 public:
  explicit Encoder(const Program& program) : program_(program) {}

  std::vector<std::byte> Metadata() {
    ByteWriter out;
    out.Varint(program_.metadata.size());
    for (const auto& [key, value] : program_.metadata) {
      Text(out, key);
      Text(out, value);
    }
    out.Varint(program_.devices.size());
    for (const VirtualDevice& device : program_.devices) {
      Text(out, device.kind);
      out.U32(static_cast<uint32_t>(device.index));
    }
    return out.Take();
  }

  std::vector<std::byte> Functions() {
    ByteWriter out;
    out.Varint(program_.functions.size());
    for (const Function& function : program_.functions) {
      Text(out, function.name);
      out.U8(function.exported ? 1 : 0);
      out.Varint(InternSignature(function.signature));
      const size_t implied =
          std::min(function.registers.size(), function.signature.symbols.size() + function.signature.params.size());
      out.Varint(function.registers.size() - implied);
      for (size_t i = implied; i < function.registers.size(); ++i) out.Varint(InternType(function.registers[i]));
      ByteWriter code;
      for (const Instruction& instruction : function.code) WriteInstruction(code, instruction);
      out.Varint(function.code.size());
      out.Varint(code.size());
      out.Bytes(code.bytes());
    }
    return out.Take();
  }

  std::vector<std::byte> Kernels() {
    ByteWriter out;
    out.Varint(program_.images.size());
    for (const KernelImage& image : program_.images) {
      Text(out, image.name);
      out.U8(static_cast<uint8_t>(image.format));
      Text(out, image.arch);
      out.U64(image.features);
    }
    out.Varint(program_.kernels.size());
    for (const Kernel& kernel : program_.kernels) WriteKernel(out, kernel);
    return out.Take();
  }

  std::vector<std::byte> MemoryPlans() {
    ByteWriter out;
    for (const Function& function : program_.functions) {
      out.Varint(function.plan.arenas.size());
      for (const Arena& arena : function.plan.arenas) {
        out.U8(arena.device);
        WriteDim(out, arena.size);
      }
      out.Varint(function.plan.entries.size());
      for (const PlanEntry& entry : function.plan.entries) {
        out.Varint(entry.arena);
        WriteDim(out, entry.offset);
        WriteDim(out, entry.size);
        out.Varint(entry.first);
        out.Varint(entry.last);
        out.Varint(entry.alias_of ? uint64_t{entry.alias_of->value} + 1 : 0);
      }
    }
    return out.Take();
  }

  // The table of constants, and what their data section is made of: equal payloads are stored once.
  std::vector<std::byte> Constants(std::vector<std::span<const std::byte>>* pieces) {
    static constexpr std::byte kZeros[kPlanAlignment] = {};
    ByteWriter out;
    std::unordered_multimap<std::string_view, uint64_t> offsets;
    uint64_t end = 0;
    out.Varint(program_.constants.size());
    for (const Constant& constant : program_.constants) {
      Text(out, constant.name);
      WriteDataType(out, constant.dtype);
      out.Varint(constant.dims.size());
      for (int64_t dim : constant.dims) out.Varint(static_cast<uint64_t>(dim));
      out.Varint(constant.prepared_by ? uint64_t{constant.prepared_by->function.value} + 1 : 0);
      if (constant.prepared_by) {
        out.Varint(constant.prepared_by->result);
        continue;
      }
      const std::string_view content(reinterpret_cast<const char*>(constant.bytes.data()), constant.bytes.size());
      uint64_t offset = end;
      if (const auto known = offsets.find(content); known != offsets.end()) {
        offset = known->second;
      } else if (!content.empty()) {
        offsets.emplace(content, end);
        pieces->push_back(constant.bytes.bytes);
        end += content.size();
        if (const uint64_t padding = (kPlanAlignment - end % kPlanAlignment) % kPlanAlignment; padding > 0) {
          pieces->emplace_back(kZeros, padding);
          end += padding;
        }
      }
      out.Varint(offset / kPlanAlignment);
      out.Varint(content.size());
    }
    out.Varint(program_.states.size());
    for (const State& state : program_.states) {
      Text(out, state.name);
      WriteDataType(out, state.dtype);
      out.Varint(state.dims.size());
      for (int64_t dim : state.dims) out.Varint(static_cast<uint64_t>(dim));
      out.U8(state.device);
      out.Varint(state.initial ? uint64_t{state.initial->value} + 1 : 0);
    }
    return out.Take();
  }

  std::vector<std::byte> DebugMap() {
    ByteWriter out;
    for (const Function& function : program_.functions) {
      out.Varint(function.notes.size());
      for (const DebugNote& note : function.notes) {
        out.Varint(note.instruction);
        Text(out, note.text);
      }
    }
    return out.Take();
  }

  // Types, signatures, externals; after everything that refers to them.
  std::vector<std::byte> Signatures() {
    ByteWriter externals;
    externals.Varint(program_.externals.size());
    for (const External& external : program_.externals) {
      Text(externals, external.name);
      externals.Varint(InternSignature(external.signature));
      externals.Varint(external.effects);
    }
    ByteWriter out;
    out.Varint(num_types_);
    out.Bytes(types_.bytes());
    out.Varint(num_signatures_);
    out.Bytes(signatures_.bytes());
    out.Bytes(externals.bytes());
    return out.Take();
  }

  // After everything else.
  std::vector<std::byte> Strings() {
    ByteWriter out;
    strings_.Write(out);
    return out.Take();
  }

 private:
  void Text(ByteWriter& out, const std::string& text) { out.Varint(strings_.Intern(text)); }

  // A type's parts come before it, so that a reader never recurses.
  uint64_t InternType(const Type& type) {
    ByteWriter out;
    const auto list = [&](const std::vector<Type>& types) {
      out.Varint(types.size());
      for (const Type& element : types) out.Varint(InternType(element));
    };
    const auto dims = [&] {
      out.Varint(type.dims.size());
      for (const vm::Dim& dim : type.dims) {
        if (dim) {
          WriteDim(out, *dim);
        } else {
          out.Varint(0);
        }
      }
    };
    out.U8(static_cast<uint8_t>(type.kind));
    switch (type.kind) {
      case ValueKind::kInt:
      case ValueKind::kFloat:
      case ValueKind::kBool:
      case ValueKind::kString:
      case ValueKind::kDataType:
        break;
      case ValueKind::kShape:
        dims();
        break;
      case ValueKind::kTensor:
        WriteDataType(out, type.dtype);
        out.U8(static_cast<uint8_t>(type.storage));
        out.U8(type.device);
        dims();
        break;
      case ValueKind::kTuple:
      case ValueKind::kOptional:
        list(type.elements);
        break;
      case ValueKind::kClosure:
        list(type.elements);
        list(type.results);
        break;
      case ValueKind::kObject:
        Text(out, type.class_name);
        break;
    }
    return Intern(out, types_, num_types_, known_types_);
  }

  uint64_t InternSignature(const Signature& signature) {
    ByteWriter out;
    out.Varint(signature.symbols.size());
    for (const Symbol& symbol : signature.symbols) {
      Text(out, symbol.name);
      out.SignedVarint(symbol.min);
      out.SignedVarint(symbol.max);
    }
    for (const auto* list : {&signature.params, &signature.results}) {
      out.Varint(list->size());
      for (const NamedType& named : *list) {
        Text(out, named.name);
        out.Varint(InternType(named.type));
      }
    }
    return Intern(out, signatures_, num_signatures_, known_signatures_);
  }

  using Known = std::map<std::vector<std::byte>, uint64_t>;
  static uint64_t Intern(ByteWriter& entry, ByteWriter& table, uint64_t& count, Known& known) {
    std::vector<std::byte> bytes = entry.Take();
    const auto [at, is_new] = known.emplace(std::move(bytes), count);
    if (is_new) {
      table.Bytes(at->first);
      ++count;
    }
    return at->second;
  }

  void WriteInstruction(ByteWriter& out, const Instruction& instruction) {
    const std::span<const OperandSpec> specs = InfoOf(instruction.opcode).operands;
    out.U8(static_cast<uint8_t>(instruction.opcode));
    for (size_t i = 0; i < specs.size(); ++i) {
      switch (specs[i].kind) {
        case OperandKind::kDefList:
        case OperandKind::kUseList:
          out.Varint(instruction.registers(i).size());
          for (uint32_t index : instruction.registers(i)) out.Varint(index);
          break;
        case OperandKind::kInt:
          out.SignedVarint(instruction.scalar(i));
          break;
        case OperandKind::kFloat:
          out.I64(instruction.scalar(i));
          break;
        case OperandKind::kText:
          Text(out, instruction.text(i));
          break;
        case OperandKind::kDim:
          WriteDim(out, instruction.dim(i));
          break;
        case OperandKind::kDimList:
          WriteDims(out, instruction.dims(i));
          break;
        case OperandKind::kDef:
        case OperandKind::kUse:
        case OperandKind::kBool:
        case OperandKind::kDType:
        case OperandKind::kLabel:
        case OperandKind::kKernel:
        case OperandKind::kBuiltin:
        case OperandKind::kFunction:
        case OperandKind::kExternal:
        case OperandKind::kConstant:
        case OperandKind::kState:
        case OperandKind::kPlanEntry:
        case OperandKind::kStream:
          out.Varint(static_cast<uint64_t>(instruction.scalar(i)));
          break;
      }
    }
  }

  void WriteKernel(ByteWriter& out, const Kernel& kernel) {
    Text(out, kernel.name);
    out.U8(kernel.device);
    out.Varint(kernel.ints.size());
    for (const KernelInt& scalar : kernel.ints) {
      Text(out, scalar.name);
      WriteDataType(out, scalar.dtype);
    }
    out.Varint(kernel.params.size());
    for (const KernelParam& param : kernel.params) {
      Text(out, param.name);
      out.U8(static_cast<uint8_t>(param.role));
      WriteDataType(out, param.dtype);
      WriteDims(out, param.extents);
      out.Varint(static_cast<uint64_t>(param.alignment));
      out.Varint(param.in_place ? uint64_t{*param.in_place} + 1 : 0);
    }
    WriteDim(out, kernel.workspace);
    WriteDim(out, kernel.flops);
    WriteDim(out, kernel.bytes);
    out.Varint(kernel.effects);
    out.U8(kernel.launch ? 1 : 0);
    if (kernel.launch) {
      for (const DimCode& size : kernel.launch->grid) WriteDim(out, size);
      for (const DimCode& size : kernel.launch->block) WriteDim(out, size);
      WriteDim(out, kernel.launch->shared_bytes);
    }
    out.Varint(kernel.variants.size());
    for (const KernelVariant& variant : kernel.variants) {
      out.Varint(variant.image);
      out.Varint(variant.offset);
      Text(out, variant.entry);
      out.U64(variant.required_features);
    }
    out.Varint(kernel.externals.size());
    for (ExternalId id : kernel.externals) out.Varint(id.value);
    out.Varint(kernel.messages.size());
    for (const std::string& message : kernel.messages) Text(out, message);
  }

  const Program& program_;
  StringTable strings_;
  ByteWriter types_;
  ByteWriter signatures_;
  uint64_t num_types_ = 0;
  uint64_t num_signatures_ = 0;
  Known known_types_;
  Known known_signatures_;
};

// Images are mapped where they lie: page boundaries of the largest pages of their machine.
uint64_t ImageAlignment(const KernelImage& image) { return image.arch == "aarch64" ? 65536 : 4096; }

}  // namespace

Result<EncodedProgram> EncodedProgram::Encode(const Program& program, const EncodeOptions& options) {
  EncodedProgram encoded;
  encoded.container_ = std::make_unique<formats::ContainerWriter>();
  const auto add = [&](SectionKind kind, std::vector<std::byte> bytes, bool is_required = true) {
    encoded.buffers_.push_back(std::make_unique<std::vector<std::byte>>(std::move(bytes)));
    formats::ContainerWriter::Options section;
    section.is_required = is_required;
    section.alignment = 8;
    return encoded.container_->Add(kind, 0, {std::span<const std::byte>(*encoded.buffers_.back())}, section);
  };
  Encoder encoder(program);
  std::vector<std::span<const std::byte>> payloads;
  INGOT_RETURN_IF_ERROR(add(SectionKind::kMetadata, encoder.Metadata()));
  INGOT_RETURN_IF_ERROR(add(SectionKind::kFunctions, encoder.Functions()));
  INGOT_RETURN_IF_ERROR(add(SectionKind::kKernels, encoder.Kernels()));
  INGOT_RETURN_IF_ERROR(add(SectionKind::kMemoryPlans, encoder.MemoryPlans()));
  INGOT_RETURN_IF_ERROR(add(SectionKind::kConstants, encoder.Constants(&payloads)));
  if (options.debug_map) INGOT_RETURN_IF_ERROR(add(SectionKind::kDebugMap, encoder.DebugMap(), false));
  INGOT_RETURN_IF_ERROR(add(SectionKind::kSignatures, encoder.Signatures()));
  INGOT_RETURN_IF_ERROR(add(SectionKind::kStrings, encoder.Strings()));
  for (uint32_t i = 0; i < program.images.size(); ++i) {
    formats::ContainerWriter::Options section;
    section.alignment = ImageAlignment(program.images[i]);
    INGOT_RETURN_IF_ERROR(
        encoded.container_->Add(SectionKind::kKernelImage, i, {program.images[i].bytes.bytes}, section));
  }
  formats::ContainerWriter::Options section;
  section.codec = options.constants_codec;
  section.zstd_level = options.zstd_level;
  INGOT_RETURN_IF_ERROR(encoded.container_->Add(SectionKind::kConstantData, 0, std::move(payloads), section));
  return encoded;
}

Result<std::vector<std::byte>> EncodeProgram(const Program& program, const EncodeOptions& options) {
  INGOT_ASSIGN_OR_RETURN(const EncodedProgram encoded, EncodedProgram::Encode(program, options));
  return encoded.container().ToBytes();
}

Status WriteProgram(const Program& program, const std::string& path, const EncodeOptions& options) {
  INGOT_ASSIGN_OR_RETURN(const EncodedProgram encoded, EncodedProgram::Encode(program, options));
  return encoded.container().WriteFile(path);
}

}  // namespace ingot::vm
