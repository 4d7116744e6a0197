// The reading codec of vm/program_fields.h: fields of a section's bytes become those of rows, judged as far as a field by
// itself can be (form, caps, references to earlier rows); what rows mean together is the verifier's. Used by
// program_decoder.cc alone.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/byte_reader.h"
#include "runtime/utf8.h"
#include "vm/limits.h"
#include "vm/program_fields.h"

// Reads a field into lhs, or returns the verdict about it from the enclosing function.
#define INGOT_READ(lhs, expression)                                                          \
  {                                                                                          \
    auto ingot_read_ = (expression);                                                         \
    if (!ingot_read_.ok()) return Fail(Check::kFieldBounds, ingot_read_.status().message()); \
    lhs = static_cast<std::decay_t<decltype(lhs)>>(*ingot_read_);                            \
  }

namespace ingot::vm {

// Everything that takes far more memory than bytes counts against a budget for
// the whole file.
class Reader {
 public:
  explicit Reader(const CheckSet& checks) : checks_(checks) {}

  Verdict Fail(Check check, std::string message) const { return Verdict::Fail(checks_, check, std::move(message)); }
  // The bytes that are read from now on.
  formats::ByteReader& in() { return *in_; }
  void Enter(formats::ByteReader& in) { in_ = &in; }

  // ---- fields

  Verdict Byte(uint8_t& out) const {
    INGOT_READ(out, in_->U8());
    return Verdict();
  }
  Verdict Word(int32_t& out) const {
    INGOT_READ(out, in_->U32());
    return Verdict();
  }
  template <typename T>
  Verdict Long(T& out) const {
    static_assert(sizeof(T) == 8);
    INGOT_READ(out, in_->U64());
    return Verdict();
  }
  template <typename T>
  Verdict Number(T& out, uint64_t max) const {
    INGOT_READ(out, in_->VarintUpTo(max));
    return Verdict();
  }
  Verdict Signed(int64_t& out) const {
    INGOT_READ(out, in_->SignedVarint());
    return Verdict();
  }
  // A 32-bit index; whether it names something is judged later.
  Verdict Index(uint32_t& out) const { return Number(out, UINT32_MAX - 1); }
  // Zero: none; otherwise index + 1.
  template <typename T>
  Verdict Optional(std::optional<T>& out) const {
    uint32_t value = 0;
    INGOT_RETURN_UNLESS_PASSED(Index(value));
    if (value > 0) out = T(value - 1);
    return Verdict();
  }
  template <typename T>
  Verdict Named(T& out, int num_values) const {
    uint8_t value = 0;
    INGOT_READ(value, in_->U8());
    if (value >= num_values) {
      return Fail(Check::kKnownEnum, in_->Error("unknown value " + std::to_string(value)).message());
    }
    out = static_cast<T>(value);
    return Verdict();
  }
  template <typename T, typename Fields>
  Verdict Flagged(std::optional<T>& out, Fields fields) const {
    bool is_there = false;
    INGOT_RETURN_UNLESS_PASSED(Named(is_there, 2));
    return is_there ? fields(out.emplace()) : Verdict();
  }
  template <typename T, typename Fields>
  Verdict List(std::vector<T>& out, Fields fields) {
    uint64_t count = 0;
    INGOT_RETURN_UNLESS_PASSED(Count(count));
    for (uint64_t i = 0; i < count; ++i) INGOT_RETURN_UNLESS_PASSED(fields(out.emplace_back()));
    return Verdict();
  }
  // A count of items of one byte at least, for tables whose items take far more memory than bytes: all tables of a
  // sort together stay under the cap.
  Verdict Count(uint64_t& out) {
    INGOT_READ(out, in_->Count(1));
    if (out > static_cast<uint64_t>(items_left_)) {
      return Fail(Check::kCountCap, in_->Error(std::to_string(out) + " items are too many").message());
    }
    items_left_ -= static_cast<int64_t>(out);
    return Verdict();
  }

  Verdict Text(std::string& out) {
    uint64_t index = 0;
    INGOT_READ(index, in_->Varint());
    if (index >= strings_.size()) {
      return Fail(Check::kStringIndex,
                  in_->Error("string " + std::to_string(index) + " of " + std::to_string(strings_.size())).message());
    }
    text_left_ -= static_cast<int64_t>(strings_[index].size());
    if (text_left_ < 0) return Fail(Check::kCountCap, in_->Error("too much text").message());
    out = strings_[index];
    return Verdict();
  }

  Verdict Element(DataType& out) const {
    uint8_t code = 0;
    INGOT_READ(code, in_->U8());
    out.code = static_cast<TypeCode>(code);
    INGOT_READ(out.bits, in_->U8());
    INGOT_READ(out.lanes, in_->U16());
    return Verdict();
  }

  // ---- formulas

  Verdict Dim(DimCode& out) const {
    vm::Dim dim;
    INGOT_RETURN_UNLESS_PASSED(ReadDim(dim, false));
    out = std::move(*dim);
    return Verdict();
  }
  Verdict Dims(std::vector<DimCode>& out) const {
    return Ranked(out, [&](DimCode& dim) { return Dim(dim); });
  }
  Verdict TypeDims(std::vector<vm::Dim>& out) const {
    return Ranked(out, [&](vm::Dim& dim) { return ReadDim(dim, true); });
  }
  Verdict Extents(std::vector<int64_t>& out) const {
    return Ranked(out, [&](int64_t& extent) -> Verdict {
      INGOT_READ(extent, in_->Varint());
      return Verdict();
    });
  }

  // ---- types and signatures: tables of their own, to which everything else refers

  Verdict ReadType() {
    Type type;
    type_depth_ = 0;
    type_weight_ = 0;
    INGOT_RETURN_UNLESS_PASSED(TypeFields(*this, type));
    const int64_t weight = WeightOf(type);
    types_.push_back({std::move(type), type_depth_, weight});
    return Verdict();
  }
  Verdict EarlierTypes(std::vector<Type>& out) {
    return List(out, [&](Type& element) -> Verdict {
      uint32_t index = 0;
      INGOT_RETURN_UNLESS_PASSED(TypeIndex(index));
      type_depth_ = std::max(type_depth_, types_[index].depth + 1);
      type_weight_ += types_[index].weight;
      if (type_depth_ > kMaxTypeDepth || type_weight_ > kMaxTypeWeight) {
        return Fail(Check::kTypeDepth, in_->Error("types nest too deep, or grow too large").message());
      }
      element = types_[index].type;
      return Verdict();
    });
  }
  // A copy of a type of the table; large ones count as many.
  Verdict TypeOf(Type& out) {
    uint32_t index = 0;
    INGOT_RETURN_UNLESS_PASSED(TypeIndex(index));
    items_left_ -= types_[index].weight;
    if (items_left_ < 0) return Fail(Check::kCountCap, in_->Error("too many types").message());
    out = types_[index].type;
    return Verdict();
  }
  Verdict ReadSignature() { return SignatureFields(*this, signatures_.emplace_back()); }
  Verdict SignatureOf(Signature& out) {
    uint32_t index = 0;
    INGOT_RETURN_UNLESS_PASSED(Index(index));
    if (index >= signatures_.size()) {
      return Fail(
          Check::kTypeIndex,
          in_->Error("signature " + std::to_string(index) + " of " + std::to_string(signatures_.size())).message());
    }
    const Signature& signature = signatures_[index];
    for (const Symbol& symbol : signature.symbols) items_left_ -= 1 + static_cast<int64_t>(symbol.name.size() / 16);
    for (const auto* list : {&signature.params, &signature.results}) {
      for (const NamedType& named : *list)
        items_left_ -= WeightOf(named.type) + static_cast<int64_t>(named.name.size() / 16);
    }
    if (items_left_ < 0) return Fail(Check::kCountCap, in_->Error("too many signatures").message());
    out = signature;
    return Verdict();
  }

  // ---- code

  // Registers behind the signature's.
  Verdict FrameTypes(Function& function) {
    function.registers.assign(function.signature.symbols.size(), Type::Int());
    for (const NamedType& param : function.signature.params) function.registers.push_back(param.type);
    return List(function.registers, [&](Type& type) { return TypeOf(type); });
  }
  Verdict Code(std::vector<Instruction>& out) {
    uint64_t num_instructions = 0, code_size = 0;
    INGOT_RETURN_UNLESS_PASSED(Count(num_instructions));
    INGOT_READ(code_size, in_->Varint());
    std::span<const std::byte> bytes;
    INGOT_READ(bytes, in_->Bytes(code_size));
    formats::ByteReader code(bytes, "code");
    formats::ByteReader* const outer = std::exchange(in_, &code);
    out.reserve(num_instructions);
    Verdict verdict;
    for (uint64_t i = 0; i < num_instructions && verdict.passed(); ++i) {
      verdict = InstructionFields(*this, out.emplace_back());
    }
    in_ = outer;
    INGOT_RETURN_UNLESS_PASSED(std::move(verdict));
    if (code.at_end()) return Verdict();
    return Fail(Check::kCodeExtent, code.Error("code goes on behind its last instruction").message());
  }
  Verdict Opcode(Instruction& out) const {
    uint8_t number = 0;
    INGOT_READ(number, in_->U8());
    const OpcodeInfo* info = FindOpcode(uint64_t{number});
    if (info == nullptr) {
      return Fail(Check::kKnownOpcode, in_->Error("unknown opcode " + std::to_string(number)).message());
    }
    out.opcode = info->opcode;
    out.operands.resize(info->operands.size());
    return Verdict();
  }
  template <typename T>
  static T& Part(Operand& operand) {
    return operand.emplace<T>();
  }
  Verdict Registers(RegisterList& out) const {
    uint64_t count = 0;
    INGOT_READ(count, in_->Count(1));
    out.resize(count);
    for (uint32_t& index : out) INGOT_READ(index, in_->VarintUpTo(UINT32_MAX));
    return Verdict();
  }

  // ---- payloads

  void SetPayloads(SharedBytes data) { payloads_ = std::move(data); }
  Verdict Payload(Constant& constant) const {
    std::optional<uint32_t> function;
    INGOT_RETURN_UNLESS_PASSED(Optional(function));
    if (function) {
      constant.prepared_by = PreparedBy{FunctionId(*function), 0};
      return Index(constant.prepared_by->result);
    }
    uint64_t block = 0, size = 0;
    INGOT_READ(block, in_->Varint());
    INGOT_READ(size, in_->Varint());
    const uint64_t available = payloads_.size();
    if (block > available / kPlanAlignment || size > available - block * kPlanAlignment) {
      return Fail(Check::kBlobExtent,
                  in_->Error("constant \"" + constant.name + "\" is not inside the constant data").message());
    }
    constant.bytes = SharedBytes(payloads_.owner, payloads_.bytes.subspan(block * kPlanAlignment, size));
    return Verdict();
  }

  // ---- strings

  Verdict Strings() {
    return List(strings_, [&](std::string& out) -> Verdict {
      std::string_view text;
      INGOT_READ(text, in_->String());
      if (!IsUtf8(text)) {
        return Fail(Check::kStringEncoding,
                    in_->Error("string " + std::to_string(strings_.size() - 1) + " is no UTF-8").message());
      }
      out = text;
      return Verdict();
    });
  }

 private:
  template <typename T, typename Fields>
  Verdict Ranked(std::vector<T>& out, Fields fields) const {
    uint64_t count = 0;
    INGOT_READ(count, in_->Count(1));
    if (count > kMaxTensorRank)
      return Fail(Check::kTensorRank, in_->Error("a rank of " + std::to_string(count)).message());
    for (uint64_t i = 0; i < count; ++i) INGOT_RETURN_UNLESS_PASSED(fields(out.emplace_back()));
    return Verdict();
  }

  // An unknown dim, where one is allowed, has no steps.
  Verdict ReadDim(vm::Dim& out, bool may_be_unknown) const {
    uint64_t num_steps = 0;
    INGOT_READ(num_steps, in_->Count(1));
    if (num_steps == 0 && may_be_unknown) {
      out.reset();
      return Verdict();
    }
    if (num_steps > DimCode::kMaxSteps)
      return Fail(Check::kDimCodeForm, in_->Error("too many steps of dimension code").message());
    std::vector<DimStep> steps(num_steps);
    for (DimStep& step : steps) {
      uint8_t op = 0;
      INGOT_READ(op, in_->U8());
      step.op = static_cast<DimOp>(op);
      if (step.op == DimOp::kConst || step.op == DimOp::kSlot) INGOT_READ(step.value, in_->SignedVarint());
    }
    Result<DimCode> code = DimCode::FromSteps(std::move(steps), INT64_MAX);
    if (!code.ok()) return Fail(Check::kDimCodeForm, in_->Error(code.status().message()).message());
    out = std::move(*code);
    return Verdict();
  }

  Verdict TypeIndex(uint32_t& out) const {
    INGOT_RETURN_UNLESS_PASSED(Index(out));
    if (out < types_.size()) return Verdict();
    return Fail(Check::kTypeIndex,
                in_->Error("type " + std::to_string(out) + " of " + std::to_string(types_.size())).message());
  }

  // What a copy of a type costs, in items.
  static int64_t WeightOf(const Type& type) {
    size_t steps = type.class_name.size();
    for (const vm::Dim& dim : type.dims) steps += dim ? dim->steps().size() : 0;
    int64_t weight = 1 + static_cast<int64_t>(steps / 4);
    for (const Type& element : type.elements) weight += WeightOf(element);
    for (const Type& result : type.results) weight += WeightOf(result);
    return weight;
  }

  // With how deep it nests and what a copy of it costs: the table is small, copies may not be.
  struct TableType {
    Type type;
    int depth;
    int64_t weight;
  };

  const CheckSet& checks_;
  formats::ByteReader* in_ = nullptr;
  std::vector<std::string> strings_;
  std::vector<TableType> types_;
  std::vector<Signature> signatures_;
  SharedBytes payloads_;
  int type_depth_ = 0;  // of the type that is being read
  int64_t type_weight_ = 0;
  int64_t items_left_ = kMaxDecodedItems;
  int64_t text_left_ = kMaxDecodedText;
};

}  // namespace ingot::vm
#undef INGOT_READ
