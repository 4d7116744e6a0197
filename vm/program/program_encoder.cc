// Writer appends fields in the order of program_fields.h and interns texts, types, signatures and payloads; Encoder
// makes the sections, each after all that it refers to.
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <unordered_map>

#include "formats/byte_writer.h"
#include "formats/file.h"
#include "vm/program/limits.h"
#include "vm/program/program_codec.h"
#include "vm/program/program_fields.h"

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

// The writing codec of vm/program/program_fields.h. Its functions never fail: they return true always.
class Writer {
 public:
  // Takes the bytes that were written since the last call.
  std::vector<std::byte> Take() { return out_->Take(); }
  ByteWriter& out() { return *out_; }

  // ---- fields

  bool Byte(uint8_t value) {
    out_->U8(value);
    return true;
  }
  bool Word(int32_t value) {
    out_->U32(static_cast<uint32_t>(value));
    return true;
  }
  template <typename T>
  bool Long(T value) {
    static_assert(sizeof(T) == 8);
    out_->U64(static_cast<uint64_t>(value));
    return true;
  }
  template <typename T>
  bool Number(T value, uint64_t = 0) {
    out_->Varint(static_cast<uint64_t>(value));
    return true;
  }
  bool Signed(int64_t value) {
    out_->SignedVarint(value);
    return true;
  }
  bool Index(uint32_t value) { return Number(value); }
  bool Optional(const std::optional<uint32_t>& value) { return Number(value ? uint64_t{*value} + 1 : 0); }
  template <typename Tag>
  bool Optional(const std::optional<Id<Tag>>& value) {
    return Number(value ? uint64_t{value->value} + 1 : 0);
  }
  template <typename T>
  bool Named(T value, int) {
    return Byte(static_cast<uint8_t>(value));
  }
  template <typename T, typename Fields>
  bool Flagged(const std::optional<T>& value, Fields fields) {
    out_->U8(value ? 1 : 0);
    return value ? fields(*value) : true;
  }
  template <typename T, typename Fields>
  bool List(std::span<const T> list, Fields fields) {
    out_->Varint(list.size());
    for (const T& item : list)
      if (!fields(item)) return false;
    return true;
  }
  template <typename T, typename Fields>
  bool List(const std::vector<T>& list, Fields fields) {
    return List(std::span<const T>(list), fields);
  }
  bool Text(const std::string& text) { return Number(strings_.Intern(text)); }
  bool Element(DataType dtype) {
    out_->U8(static_cast<uint8_t>(dtype.code));
    out_->U8(dtype.bits);
    out_->U16(dtype.lanes);
    return true;
  }

  // ---- formulas

  bool Dim(const DimCode& code) {
    return List(code.steps(), [&](const DimStep& step) {
      out_->U8(static_cast<uint8_t>(step.op));
      return step.op == DimOp::kConst || step.op == DimOp::kSlot ? Signed(step.value) : true;
    });
  }
  bool Dims(const std::vector<DimCode>& dims) {
    return List(dims, [&](const DimCode& dim) { return Dim(dim); });
  }
  bool TypeDims(const std::vector<vm::Dim>& dims) {
    return List(dims, [&](const vm::Dim& dim) { return dim ? Dim(*dim) : Number(0); });
  }
  bool Extents(const std::vector<int64_t>& extents) {
    return List(extents, [&](int64_t extent) { return Number(extent); });
  }

  // ---- types and signatures: each once in a table; a type's parts come before it, so that a reader never recurses

  bool EarlierTypes(const std::vector<Type>& types) {
    return List(types, [&](const Type& type) { return TypeOf(type); });
  }
  bool TypeOf(const Type& type) {
    return Number(Intern(types_, [&] { return TypeFields(*this, type); }));
  }
  bool SignatureOf(const Signature& signature) {
    return Number(Intern(signatures_, [&] { return SignatureFields(*this, signature); }));
  }
  void WriteTypes() { WriteTable(types_); }
  void WriteSignatures() { WriteTable(signatures_); }
  void WriteStrings() { strings_.Write(*out_); }

  // ---- code

  // The types of the registers behind symbols and parameters.
  bool FrameTypes(const Function& function) {
    const size_t implied =
        std::min(function.registers.size(), function.signature.symbols.size() + function.signature.params.size());
    return List(std::span<const Type>(function.registers).subspan(implied),
                [&](const Type& type) { return TypeOf(type); });
  }
  bool Code(const std::vector<Instruction>& code) {
    ByteWriter bytes;
    ByteWriter* const outer = std::exchange(out_, &bytes);
    for (const Instruction& instruction : code) InstructionFields(*this, instruction);
    out_ = outer;
    out_->Varint(code.size());
    out_->Varint(bytes.size());
    out_->Bytes(bytes.bytes());
    return true;
  }
  bool Opcode(const Instruction& instruction) { return Byte(static_cast<uint8_t>(instruction.opcode)); }
  template <typename T>
  static const T& Part(const Operand& operand) {
    return std::get<T>(operand);
  }
  bool Registers(const RegisterList& list) {
    return List(list, [&](uint32_t index) { return Number(index); });
  }

  // ---- payloads: equal ones are stored once

  bool Payload(const Constant& constant) {
    static constexpr std::byte kZeros[kPlanAlignment] = {};
    out_->Varint(constant.prepared_by ? uint64_t{constant.prepared_by->function.value} + 1 : 0);
    if (constant.prepared_by) return Index(constant.prepared_by->result);
    const std::string_view content(reinterpret_cast<const char*>(constant.bytes.data()), constant.bytes.size());
    uint64_t offset = payload_end_;
    if (const auto known = payload_offsets_.find(content); known != payload_offsets_.end()) {
      offset = known->second;
    } else if (!content.empty()) {
      payload_offsets_.emplace(content, payload_end_);
      payloads_.push_back(constant.bytes.bytes);
      payload_end_ += content.size();
      if (const uint64_t padding = (kPlanAlignment - payload_end_ % kPlanAlignment) % kPlanAlignment; padding > 0) {
        payloads_.emplace_back(kZeros, padding);
        payload_end_ += padding;
      }
    }
    out_->Varint(offset / kPlanAlignment);
    out_->Varint(content.size());
    return true;
  }
  std::vector<std::span<const std::byte>> TakePayloads() { return std::move(payloads_); }

 private:
  struct Table {
    ByteWriter bytes;
    uint64_t count = 0;
    std::map<std::vector<std::byte>, uint64_t> known;
  };
  // The index of a row in its table.
  template <typename Fields>
  uint64_t Intern(Table& table, Fields fields) {
    ByteWriter row;
    ByteWriter* const outer = std::exchange(out_, &row);
    INGOT_CHECK(fields());
    out_ = outer;
    const auto [at, is_new] = table.known.emplace(row.Take(), table.count);
    if (is_new) {
      table.bytes.Bytes(at->first);
      ++table.count;
    }
    return at->second;
  }
  void WriteTable(const Table& table) {
    out_->Varint(table.count);
    out_->Bytes(table.bytes.bytes());
  }

  ByteWriter whole_;
  ByteWriter* out_ = &whole_;
  StringTable strings_;
  Table types_;
  Table signatures_;
  std::vector<std::span<const std::byte>> payloads_;
  std::unordered_map<std::string_view, uint64_t> payload_offsets_;
  uint64_t payload_end_ = 0;
};

// Makes the sections. The order of calls is such that a table is complete when it is written.
class Encoder {
 public:
  explicit Encoder(const Program& program) : program_(program) {}

  std::vector<std::byte> Metadata() {
    writer_.out().Varint(program_.metadata.size());
    for (const auto& [key, value] : program_.metadata) {
      Done(writer_.Text(key));
      Done(writer_.Text(value));
    }
    return Table(program_.devices, [&](const VirtualDevice& device) { return DeviceFields(writer_, device); });
  }

  std::vector<std::byte> Functions() {
    return Table(program_.functions, [&](const Function& function) { return FunctionFields(writer_, function); });
  }

  std::vector<std::byte> Kernels() {
    Done(writer_.List(program_.images, [&](const KernelImage& image) { return ImageFields(writer_, image); }));
    return Table(program_.kernels, [&](const Kernel& kernel) { return KernelFields(writer_, kernel); });
  }

  std::vector<std::byte> MemoryPlans() {
    for (const Function& function : program_.functions) Done(PlanFields(writer_, function.plan));
    return writer_.Take();
  }

  std::vector<std::byte> Constants() {
    Done(writer_.List(program_.constants, [&](const Constant& constant) { return ConstantFields(writer_, constant); }));
    return Table(program_.states, [&](const State& state) { return StateFields(writer_, state); });
  }
  std::vector<std::byte> Weights() {
    Done(writer_.List(program_.weight_files, [&](const WeightFile& file) { return WeightFileFields(writer_, file); }));
    return Table(program_.weights, [&](const Weight& weight) { return WeightFields(writer_, weight); });
  }
  // The pieces of the section with the constants' elements.
  std::vector<std::span<const std::byte>> TakePayloads() { return writer_.TakePayloads(); }

  std::vector<std::byte> DebugMap() {
    for (const Function& function : program_.functions) Done(NotesFields(writer_, function.notes));
    return writer_.Take();
  }

  // Types, signatures, externals; after everything that refers to them.
  std::vector<std::byte> Signatures() {
    const std::vector<std::byte> externals =
        Table(program_.externals, [&](const External& external) { return ExternalFields(writer_, external); });
    writer_.WriteTypes();
    writer_.WriteSignatures();
    writer_.out().Bytes(externals);
    return writer_.Take();
  }

  // Called last.
  std::vector<std::byte> Strings() {
    writer_.WriteStrings();
    return writer_.Take();
  }

 private:
  static void Done(bool done) { INGOT_CHECK(done); }

  template <typename Row, typename Fields>
  std::vector<std::byte> Table(const std::vector<Row>& rows, Fields fields) {
    Done(writer_.List(rows, fields));
    return writer_.Take();
  }

  const Program& program_;
  Writer writer_;
};

// Images are mapped from the file, so they begin at a multiple of the largest page size of their machine.
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
  INGOT_RETURN_IF_ERROR(add(SectionKind::kMetadata, encoder.Metadata()));
  INGOT_RETURN_IF_ERROR(add(SectionKind::kFunctions, encoder.Functions()));
  INGOT_RETURN_IF_ERROR(add(SectionKind::kKernels, encoder.Kernels()));
  INGOT_RETURN_IF_ERROR(add(SectionKind::kMemoryPlans, encoder.MemoryPlans()));
  INGOT_RETURN_IF_ERROR(add(SectionKind::kConstants, encoder.Constants()));
  if (!program.weights.empty()) {
    // Required when weights are in files: a reader that ignores the section would find constants without bytes.
    INGOT_RETURN_IF_ERROR(add(SectionKind::kWeights, encoder.Weights(), !program.weight_files.empty()));
  }
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
  INGOT_RETURN_IF_ERROR(encoded.container_->Add(SectionKind::kConstantData, 0, encoder.TakePayloads(), section));
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
