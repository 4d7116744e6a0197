// The reading codec of vm/program/program_fields.h: it reads fields from a section's bytes into rows and checks what
// can be checked of a field alone (form, caps, references to earlier rows). The verifier checks what rows mean
// together. Used by program_decoder.cc alone.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/byte_reader.h"
#include "runtime/utf8.h"
#include "vm/program/limits.h"
#include "vm/program/program_fields.h"
#include "vm/program/reading_heap.h"

namespace ingot::vm {

// A list grows as its items are read, each of one byte at least: what all of them take is bounded by the heap for
// reading the file (vm/program/reading_heap.h), and nothing is counted here but the tables' own bytes.
class Reader {
 public:
  static constexpr uint64_t kMaxOperands = 1 << 16;

  // `file_bytes` is the size of the file.
  Reader(const CheckSet& checks, size_t file_bytes) : checks_(checks), bytes_left_(ReadingHeapBytes(file_bytes)) {}

  // Ends the reading with a failed check; always returns false, which every caller passes on. A check that is left out
  // ends it too, with success.
  [[gnu::noinline]] bool Fail(Check check, ingot::Text message) {
    verdict_ = Verdict::Fail(checks_, check, message);
    return false;
  }
  // The same, with the position in the bytes.
  [[gnu::noinline]] bool Refuse(Check check, ingot::Text message) { return Fail(check, in_->Error(message).message()); }
  // Ends the reading with a failure of another kind than these checks (of the container, or no memory).
  bool Stop(Status status) {
    verdict_ = Verdict::Stop(std::move(status));
    return false;
  }
  // Puts a place in front of the failure's message; always returns false.
  [[gnu::noinline]] bool Inside(const char* what, size_t index) {
    verdict_ = std::move(verdict_).WithContext({what, index});
    return false;
  }
  Verdict TakeVerdict() { return std::move(verdict_); }
  // The bytes that are read from now on.
  formats::ByteReader& in() { return *in_; }
  void Enter(formats::ByteReader& in) { in_ = &in; }

  // ---- fields

  bool Byte(uint8_t& out) { return Fixed(out); }
  bool Word(int32_t& out) { return Fixed(out); }
  template <typename T>
  bool Long(T& out) {
    static_assert(sizeof(T) == 8);
    return Fixed(out);
  }
  template <typename T>
  bool Number(T& out, uint64_t max) {
    uint64_t value = 0;
    if (!Varint(value, max)) return false;
    out = static_cast<T>(value);
    return true;
  }
  bool Signed(int64_t& out) {
    uint64_t bits = 0;
    if (!Varint(bits, UINT64_MAX)) return false;
    out = formats::FromZigzag(bits);
    return true;
  }
  // A 32-bit index; whether it names something is checked later.
  bool Index(uint32_t& out) { return Number(out, UINT32_MAX - 1); }
  // Zero: none; otherwise index + 1.
  template <typename T>
  bool Optional(std::optional<T>& out) {
    uint32_t value = 0;
    if (!Index(value)) return false;
    if (value > 0) out = T(value - 1);
    return true;
  }
  template <typename T>
  bool Named(T& out, int num_values) {
    uint8_t value = 0;
    if (!Fixed(value)) return false;
    if (value >= num_values) return Refuse(Check::kKnownEnum, {"unknown value ", value});
    out = static_cast<T>(value);
    return true;
  }
  template <typename T, typename Fields>
  bool Flagged(std::optional<T>& out, Fields fields) {
    bool is_there = false;
    if (!Named(is_there, 2)) return false;
    return is_there ? fields(out.emplace()) : true;
  }
  template <typename T, typename Fields>
  bool List(std::vector<T>& out, Fields fields) {
    uint64_t count = 0;
    if (!Count(count)) return false;
    for (uint64_t i = 0; i < count; ++i) {
      if (!fields(out.emplace_back())) return false;
    }
    return true;
  }
  // A count of items of one byte at least, all still to come.
  [[gnu::noinline]] bool Count(uint64_t& out) { return Took(out, in_->Count(1)); }

  // Takes a table's bytes from their budget, before they are decompressed.
  bool ChargeTable(uint64_t size) {
    if (size > static_cast<uint64_t>(bytes_left_)) {
      return Fail(Check::kCountCap, {"tables of ", size, " bytes in a file as small as this"});
    }
    bytes_left_ -= static_cast<int64_t>(size);
    return true;
  }

  bool Text(std::string& out) {
    uint64_t index = 0;
    if (!Varint(index, UINT64_MAX)) return false;
    if (index >= strings_.size()) return Refuse(Check::kStringIndex, {"string ", index, " of ", strings_.size()});
    out = strings_[index];
    return true;
  }

  bool Element(DataType& out) {
    uint8_t code = 0;
    if (!Fixed(code)) return false;
    out.code = static_cast<TypeCode>(code);
    return Fixed(out.bits) && Fixed(out.lanes);
  }

  // ---- formulas

  bool Dim(DimCode& out) {
    vm::Dim dim;
    if (!ReadDim(dim, false)) return false;
    out = std::move(*dim);
    return true;
  }
  bool Dims(std::vector<DimCode>& out) {
    return Ranked(out, [&](DimCode& dim) { return Dim(dim); });
  }
  bool TypeDims(std::vector<vm::Dim>& out) {
    return Ranked(out, [&](vm::Dim& dim) { return ReadDim(dim, true); });
  }
  bool Extents(std::vector<int64_t>& out) {
    return Ranked(out, [&](int64_t& extent) { return Number(extent, UINT64_MAX); });
  }

  // ---- types and signatures: tables of their own, to which everything else refers

  bool ReadType() {
    Type type;
    type_depth_ = 0;
    type_weight_ = 0;
    if (!TypeFields(*this, type)) return false;
    const int64_t weight = WeightOf(type);
    types_.push_back({std::move(type), type_depth_, weight});
    return true;
  }
  bool EarlierTypes(std::vector<Type>& out) {
    return List(out, [&](Type& element) -> bool {
      uint32_t index = 0;
      if (!TypeIndex(index)) return false;
      type_depth_ = std::max(type_depth_, types_[index].depth + 1);
      type_weight_ += types_[index].weight;
      if (type_depth_ > kMaxTypeDepth || type_weight_ > kMaxTypeWeight)
        return Refuse(Check::kTypeDepth, "types nest too deep, or grow too large");
      element = types_[index].type;
      return true;
    });
  }
  bool TypeOf(Type& out) {
    uint32_t index = 0;
    if (!TypeIndex(index)) return false;
    out = types_[index].type;
    return true;
  }
  bool ReadSignature() { return SignatureFields(*this, signatures_.emplace_back()); }
  bool SignatureOf(Signature& out) {
    uint32_t index = 0;
    if (!Index(index)) return false;
    if (index >= signatures_.size()) {
      return Refuse(Check::kTypeIndex, {"signature ", index, " of ", signatures_.size()});
    }
    out = signatures_[index];
    return true;
  }

  // ---- code

  // The types of the registers behind symbols and parameters.
  bool FrameTypes(Function& function) {
    function.registers.assign(function.signature.symbols.size(), Type::Int());
    for (const NamedType& param : function.signature.params) function.registers.push_back(param.type);
    return List(function.registers, [&](Type& type) { return TypeOf(type); });
  }
  bool Code(std::vector<Instruction>& out) {
    uint64_t num_instructions = 0, code_size = 0;
    std::span<const std::byte> bytes;
    if (!(Count(num_instructions) && Varint(code_size, UINT64_MAX) && Bytes(bytes, code_size))) return false;
    formats::ByteReader code(bytes, "code");
    formats::ByteReader* const outer = std::exchange(in_, &code);
    out.reserve(num_instructions);
    bool goes_on = true;
    for (uint64_t i = 0; i < num_instructions && goes_on; ++i) goes_on = InstructionFields(*this, out.emplace_back());
    in_ = outer;
    if (!goes_on) return false;
    if (code.at_end()) return true;
    return Fail(Check::kCodeExtent, code.Error("code goes on behind its last instruction").message());
  }
  bool Opcode(Instruction& out) {
    uint8_t number = 0;
    if (!Fixed(number)) return false;
    const OpcodeInfo* info = FindOpcode(uint64_t{number});
    if (info == nullptr) return Refuse(Check::kKnownOpcode, {"unknown opcode ", number});
    out = Instruction(info->opcode, std::vector<Operand>(info->operands.size()));
    return true;
  }
  template <typename T>
  static T& Part(Operand& operand) {
    return operand.emplace<T>();
  }
  bool Registers(RegisterList& out) {
    uint64_t count = 0;
    if (!Count(count)) return false;
    if (count > kMaxOperands) return Refuse(Check::kCountCap, {count, " registers in one operand are too many"});
    out.resize(count);
    for (uint32_t& index : out) {
      if (!Number(index, UINT32_MAX)) return false;
    }
    return true;
  }

  // ---- payloads

  void SetPayloads(SharedBytes data) { payloads_ = std::move(data); }
  bool Payload(Constant& constant) {
    std::optional<uint32_t> function;
    if (!Optional(function)) return false;
    if (function) {
      constant.prepared_by = PreparedBy{FunctionId(*function), 0};
      return Index(constant.prepared_by->result);
    }
    uint64_t block = 0, size = 0;
    if (!(Varint(block, UINT64_MAX) && Varint(size, UINT64_MAX))) return false;
    const uint64_t available = payloads_.size();
    if (block > available / kPlanAlignment || size > available - block * kPlanAlignment)
      return Refuse(Check::kBlobExtent, {"constant \"", constant.name, "\" is not inside the constant data"});
    constant.bytes = SharedBytes(payloads_.owner, payloads_.bytes.subspan(block * kPlanAlignment, size));
    return true;
  }

  // ---- strings

  bool Strings() {
    return List(strings_, [&](std::string& out) -> bool {
      uint64_t size = 0;
      std::span<const std::byte> bytes;
      if (!(Varint(size, UINT64_MAX) && Bytes(bytes, size))) return false;
      const std::string_view text = formats::AsText(bytes);
      if (!IsUtf8(text)) return Refuse(Check::kStringEncoding, {"string ", strings_.size() - 1, " is no UTF-8"});
      out = text;
      return true;
    });
  }

 private:
  // ---- from the bytes; out of line, since there are many fields

  [[gnu::noinline]] bool FixedBytes(uint64_t& out, uint64_t num_bytes) {
    std::span<const std::byte> bytes;
    if (!Bytes(bytes, num_bytes)) return false;
    out = 0;
    for (size_t i = 0; i < bytes.size(); ++i) out |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
    return true;
  }
  template <typename T>
  bool Fixed(T& out) {
    uint64_t value = 0;
    if (!FixedBytes(value, sizeof(T))) return false;
    out = static_cast<T>(value);
    return true;
  }
  [[gnu::noinline]] bool Varint(uint64_t& out, uint64_t max) { return Took(out, in_->VarintUpTo(max)); }
  [[gnu::noinline]] bool Bytes(std::span<const std::byte>& out, uint64_t size) { return Took(out, in_->Bytes(size)); }
  template <typename T>
  bool Took(T& out, const Result<T>& field) {
    if (!field.ok()) return Fail(Check::kFieldBounds, field.status().message());
    out = *field;
    return true;
  }

  template <typename T, typename Fields>
  bool Ranked(std::vector<T>& out, Fields fields) {
    uint64_t count = 0;
    if (!Count(count)) return false;
    if (count > kMaxTensorRank) return Refuse(Check::kTensorRank, {"a rank of ", count});
    for (uint64_t i = 0; i < count; ++i) {
      if (!fields(out.emplace_back())) return false;
    }
    return true;
  }

  // An unknown dim, where one is allowed, has no steps.
  bool ReadDim(vm::Dim& out, bool may_be_unknown) {
    uint64_t num_steps = 0;
    if (!Count(num_steps)) return false;
    if (num_steps == 0 && may_be_unknown) {
      out.reset();
      return true;
    }
    if (num_steps > DimCode::kMaxSteps) return Refuse(Check::kDimCodeForm, "too many steps of dimension code");
    std::vector<DimStep> steps(num_steps);
    for (DimStep& step : steps) {
      uint8_t op = 0;
      if (!Fixed(op)) return false;
      step.op = static_cast<DimOp>(op);
      if (step.op == DimOp::kConst || step.op == DimOp::kSlot) {
        if (!Signed(step.value)) return false;
      }
    }
    Result<DimCode> code = DimCode::FromSteps(std::move(steps), INT64_MAX);
    if (!code.ok()) return Refuse(Check::kDimCodeForm, code.status().message());
    out = std::move(*code);
    return true;
  }

  bool TypeIndex(uint32_t& out) {
    if (!Index(out)) return false;
    if (out < types_.size()) return true;
    return Refuse(Check::kTypeIndex, {"type ", out, " of ", types_.size()});
  }

  // The types and formula steps that a type is made of.
  static int64_t WeightOf(const Type& type) {
    size_t steps = type.class_name.size();
    for (const vm::Dim& dim : type.dims) steps += dim ? dim->steps().size() : 0;
    int64_t weight = 1 + static_cast<int64_t>(steps / 4);
    for (const Type& element : type.elements) weight += WeightOf(element);
    for (const Type& result : type.results) weight += WeightOf(result);
    return weight;
  }

  // A type with its depth and the weight of a copy: the table is small, but copies of its types may not be.
  struct TableType {
    Type type;
    int depth;
    int64_t weight;
  };

  const CheckSet& checks_;
  Verdict verdict_;
  formats::ByteReader* in_ = nullptr;
  std::vector<std::string> strings_;
  std::vector<TableType> types_;
  std::vector<Signature> signatures_;
  SharedBytes payloads_;
  int type_depth_ = 0;  // of the type that is being read
  int64_t type_weight_ = 0;
  int64_t bytes_left_;  // of tables, decompressed
};

}  // namespace ingot::vm
