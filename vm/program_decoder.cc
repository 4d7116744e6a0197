#include <algorithm>

#include "formats/byte_reader.h"
#include "runtime/utf8.h"
#include "vm/limits.h"
#include "vm/program_codec.h"

// Reads a field into lhs, or returns the verdict about it from the enclosing function.
#define INGOT_READ(lhs, expression)                                                          \
  {                                                                                          \
    auto ingot_read_ = (expression);                                                         \
    if (!ingot_read_.ok()) return Fail(Check::kFieldBounds, ingot_read_.status().message()); \
    lhs = static_cast<std::decay_t<decltype(lhs)>>(*ingot_read_);                            \
  }

namespace ingot::vm {
namespace {

using formats::ByteReader;
using formats::Section;
using formats::SectionKind;

class Decoder {
 public:
  Decoder(const formats::Container& container, const CheckSet& checks) : container_(container), checks_(checks) {}

  Result<Program> Run() {
    Verdict verdict = Decode();
    Status status = std::move(verdict).status();
    if (!status.ok()) return status;
    return std::move(program_);
  }

 private:
  using Parse = Verdict (Decoder::*)(ByteReader&);

  Verdict Decode() {
    struct Row {
      SectionKind kind;
      bool is_required;
      Parse parse;
    };
    // What refers to another table comes after it.
    constexpr Row kRows[] = {
        {SectionKind::kStrings, true, &Decoder::Strings},
        {SectionKind::kMetadata, true, &Decoder::Metadata},
        {SectionKind::kSignatures, true, &Decoder::Signatures},
        {SectionKind::kFunctions, true, &Decoder::Functions},
        {SectionKind::kKernels, true, &Decoder::Kernels},
        {SectionKind::kMemoryPlans, true, &Decoder::MemoryPlans},
        {SectionKind::kConstants, true, &Decoder::Constants},
        {SectionKind::kDebugMap, false, &Decoder::DebugMap},
    };
    for (const Row& row : kRows) {
      const Section* section = container_.Find(row.kind);
      if (section == nullptr && !row.is_required) continue;
      if (section == nullptr) {
        return Fail(Check::kSectionPresent,
                    "the section \"" + std::string(SectionKindName(row.kind)) + "\" is missing");
      }
      Result<SharedBytes> bytes = container_.Read(*section);
      if (!bytes.ok()) return Stop(std::move(bytes).status());
      const std::string label = "section \"" + section->Label() + "\"";
      ByteReader in(bytes->bytes, label);
      INGOT_RETURN_UNLESS_PASSED((this->*row.parse)(in));
      if (!in.at_end()) {
        return Fail(Check::kTrailingBytes, label + ": " + std::to_string(in.remaining()) + " bytes too many");
      }
    }
    return Verdict();
  }

  Verdict Fail(Check check, std::string message) const { return Verdict::Fail(checks_, check, std::move(message)); }
  // A failure that is none of these checks' (the container's, memory).
  static Verdict Stop(Status status) { return Verdict::Stop(std::move(status)); }

  // ---- small parts

  Verdict Text(ByteReader& in, std::string* out) {
    uint64_t index = 0;
    INGOT_READ(index, in.Varint());
    if (index >= strings_.size()) {
      return Fail(Check::kStringIndex,
                  in.Error("string " + std::to_string(index) + " of " + std::to_string(strings_.size())).message());
    }
    text_left_ -= static_cast<int64_t>(strings_[index].size());
    if (text_left_ < 0) return Fail(Check::kCountCap, in.Error("too much text").message());
    *out = strings_[index];
    return Verdict();
  }

  // A 32-bit index; whether it names something is judged later.
  Verdict Index(ByteReader& in, uint32_t* out) const {
    INGOT_READ(*out, in.VarintUpTo(UINT32_MAX - 1));
    return Verdict();
  }

  // Zero: none; otherwise index + 1.
  Verdict OptionalIndex(ByteReader& in, std::optional<uint32_t>* out) const {
    uint32_t value = 0;
    INGOT_RETURN_UNLESS_PASSED(Index(in, &value));
    if (value > 0) *out = value - 1;
    return Verdict();
  }

  // A count of items of one byte at least, for tables whose items take far more memory than bytes: all tables of a
  // sort together stay under the cap.
  Verdict Count(ByteReader& in, uint64_t* out) {
    INGOT_READ(*out, in.Count(1));
    if (*out > static_cast<uint64_t>(items_left_)) {
      return Fail(Check::kCountCap, in.Error(std::to_string(*out) + " items are too many").message());
    }
    items_left_ -= static_cast<int64_t>(*out);
    return Verdict();
  }

  template <typename Enum>
  Verdict Named(ByteReader& in, int num_values, Enum* out) const {
    uint8_t value = 0;
    INGOT_READ(value, in.U8());
    if (value >= num_values)
      return Fail(Check::kKnownEnum, in.Error("unknown value " + std::to_string(value)).message());
    *out = static_cast<Enum>(value);
    return Verdict();
  }

  Verdict ReadDataType(ByteReader& in, DataType* out) const {
    uint8_t code = 0;
    INGOT_READ(code, in.U8());
    out->code = static_cast<TypeCode>(code);
    INGOT_READ(out->bits, in.U8());
    INGOT_READ(out->lanes, in.U16());
    return Verdict();
  }

  // An unknown dim, where one is allowed, has no steps.
  Verdict ReadDim(ByteReader& in, Dim* out, bool may_be_unknown) const {
    uint64_t num_steps = 0;
    INGOT_READ(num_steps, in.Count(1));
    if (num_steps == 0 && may_be_unknown) {
      out->reset();
      return Verdict();
    }
    if (num_steps > DimCode::kMaxSteps)
      return Fail(Check::kDimCodeForm, in.Error("too many steps of dimension code").message());
    std::vector<DimStep> steps(num_steps);
    for (DimStep& step : steps) {
      uint8_t op = 0;
      INGOT_READ(op, in.U8());
      step.op = static_cast<DimOp>(op);
      if (step.op == DimOp::kConst || step.op == DimOp::kSlot) INGOT_READ(step.value, in.SignedVarint());
    }
    Result<DimCode> code = DimCode::FromSteps(std::move(steps), INT64_MAX);
    if (!code.ok()) return Fail(Check::kDimCodeForm, in.Error(code.status().message()).message());
    *out = std::move(*code);
    return Verdict();
  }

  Verdict ReadDim(ByteReader& in, DimCode* out) const {
    Dim dim;
    INGOT_RETURN_UNLESS_PASSED(ReadDim(in, &dim, false));
    *out = std::move(*dim);
    return Verdict();
  }

  Verdict ReadDims(ByteReader& in, std::vector<DimCode>* out) const {
    uint64_t count = 0;
    INGOT_READ(count, in.Count(1));
    if (count > kMaxTensorRank)
      return Fail(Check::kTensorRank, in.Error("a rank of " + std::to_string(count)).message());
    for (uint64_t i = 0; i < count; ++i) INGOT_RETURN_UNLESS_PASSED(ReadDim(in, &out->emplace_back()));
    return Verdict();
  }

  Verdict ReadExtents(ByteReader& in, std::vector<int64_t>* out) const {
    uint64_t count = 0;
    INGOT_READ(count, in.Count(1));
    if (count > kMaxTensorRank)
      return Fail(Check::kTensorRank, in.Error("a rank of " + std::to_string(count)).message());
    for (uint64_t i = 0; i < count; ++i) INGOT_READ(out->emplace_back(), in.Varint());
    return Verdict();
  }

  // ---- sections

  Verdict Strings(ByteReader& in) {
    uint64_t count = 0;
    INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
    strings_.reserve(count);
    for (uint64_t i = 0; i < count; ++i) {
      std::string_view text;
      INGOT_READ(text, in.String());
      if (!IsUtf8(text))
        return Fail(Check::kStringEncoding, in.Error("string " + std::to_string(i) + " is no UTF-8").message());
      strings_.emplace_back(text);
    }
    return Verdict();
  }

  Verdict Metadata(ByteReader& in) {
    uint64_t count = 0;
    INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
    std::string previous;
    for (uint64_t i = 0; i < count; ++i) {
      std::string key, value;
      INGOT_RETURN_UNLESS_PASSED(Text(in, &key));
      INGOT_RETURN_UNLESS_PASSED(Text(in, &value));
      if (i > 0 && key <= previous)
        return Fail(Check::kMetadataOrder, in.Error("key \"" + key + "\" is out of order").message());
      previous = key;
      program_.metadata.emplace_hint(program_.metadata.end(), std::move(key), std::move(value));
    }
    INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
    program_.devices.clear();
    for (uint64_t i = 0; i < count; ++i) {
      VirtualDevice& device = program_.devices.emplace_back();
      INGOT_RETURN_UNLESS_PASSED(Text(in, &device.kind));
      INGOT_READ(device.index, in.U32());
    }
    return Verdict();
  }

  Verdict Signatures(ByteReader& in) {
    uint64_t count = 0;
    INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
    types_.reserve(count);
    for (uint64_t i = 0; i < count; ++i) INGOT_RETURN_UNLESS_PASSED(ReadType(in));
    INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
    signatures_.reserve(count);
    for (uint64_t i = 0; i < count; ++i) INGOT_RETURN_UNLESS_PASSED(ReadSignature(in));
    INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
    for (uint64_t i = 0; i < count; ++i) {
      External& external = program_.externals.emplace_back();
      INGOT_RETURN_UNLESS_PASSED(Text(in, &external.name));
      INGOT_RETURN_UNLESS_PASSED(PickSignature(in, &external.signature));
      INGOT_READ(external.effects, in.VarintUpTo(UINT32_MAX));
    }
    return Verdict();
  }

  Verdict ReadType(ByteReader& in) {
    Type type;
    int depth = 0;
    int64_t weight = 0;  // of the parts
    const auto dims = [&]() -> Verdict {
      uint64_t rank = 0;
      INGOT_READ(rank, in.Count(1));
      if (rank > kMaxTensorRank)
        return Fail(Check::kTensorRank, in.Error("a rank of " + std::to_string(rank)).message());
      for (uint64_t i = 0; i < rank; ++i) INGOT_RETURN_UNLESS_PASSED(ReadDim(in, &type.dims.emplace_back(), true));
      return Verdict();
    };
    const auto list = [&](std::vector<Type>* out) -> Verdict {
      uint64_t count = 0;
      INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
      for (uint64_t i = 0; i < count; ++i) {
        uint32_t index = 0;
        INGOT_RETURN_UNLESS_PASSED(PickTypeIndex(in, &index));
        depth = std::max(depth, types_[index].depth + 1);
        weight += types_[index].weight;
        if (depth > kMaxTypeDepth || weight > kMaxTypeWeight) {
          return Fail(Check::kTypeDepth, in.Error("types nest too deep, or grow too large").message());
        }
        out->push_back(types_[index].type);
      }
      return Verdict();
    };
    INGOT_RETURN_UNLESS_PASSED(Named(in, kNumValueKinds, &type.kind));
    switch (type.kind) {
      case ValueKind::kInt:
      case ValueKind::kFloat:
      case ValueKind::kBool:
      case ValueKind::kString:
      case ValueKind::kDataType:
        break;
      case ValueKind::kShape:
        INGOT_RETURN_UNLESS_PASSED(dims());
        break;
      case ValueKind::kTensor:
        INGOT_RETURN_UNLESS_PASSED(ReadDataType(in, &type.dtype));
        INGOT_RETURN_UNLESS_PASSED(Named(in, kNumStorages, &type.storage));
        INGOT_READ(type.device, in.U8());
        INGOT_RETURN_UNLESS_PASSED(dims());
        break;
      case ValueKind::kTuple:
      case ValueKind::kOptional:
        INGOT_RETURN_UNLESS_PASSED(list(&type.elements));
        break;
      case ValueKind::kClosure:
        INGOT_RETURN_UNLESS_PASSED(list(&type.elements));
        INGOT_RETURN_UNLESS_PASSED(list(&type.results));
        break;
      case ValueKind::kObject:
        INGOT_RETURN_UNLESS_PASSED(Text(in, &type.class_name));
        break;
    }
    weight = WeightOf(type);
    types_.push_back({std::move(type), depth, weight});
    return Verdict();
  }

  Verdict PickTypeIndex(ByteReader& in, uint32_t* out) const {
    INGOT_RETURN_UNLESS_PASSED(Index(in, out));
    if (*out < types_.size()) return Verdict();
    return Fail(Check::kTypeIndex,
                in.Error("type " + std::to_string(*out) + " of " + std::to_string(types_.size())).message());
  }

  // A copy of a type of the table; large ones count as many.
  Verdict PickType(ByteReader& in, Type* out) {
    uint32_t index = 0;
    INGOT_RETURN_UNLESS_PASSED(PickTypeIndex(in, &index));
    items_left_ -= types_[index].weight;
    if (items_left_ < 0) return Fail(Check::kCountCap, in.Error("too many types").message());
    *out = types_[index].type;
    return Verdict();
  }

  Verdict ReadSignature(ByteReader& in) {
    Signature signature;
    uint64_t count = 0;
    INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
    for (uint64_t i = 0; i < count; ++i) {
      Symbol& symbol = signature.symbols.emplace_back();
      INGOT_RETURN_UNLESS_PASSED(Text(in, &symbol.name));
      INGOT_READ(symbol.min, in.SignedVarint());
      INGOT_READ(symbol.max, in.SignedVarint());
    }
    for (auto* list : {&signature.params, &signature.results}) {
      INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
      for (uint64_t i = 0; i < count; ++i) {
        NamedType& named = list->emplace_back();
        INGOT_RETURN_UNLESS_PASSED(Text(in, &named.name));
        INGOT_RETURN_UNLESS_PASSED(PickType(in, &named.type));
      }
    }
    signatures_.push_back(std::move(signature));
    return Verdict();
  }

  Verdict PickSignature(ByteReader& in, Signature* out) {
    uint32_t index = 0;
    INGOT_RETURN_UNLESS_PASSED(Index(in, &index));
    if (index >= signatures_.size()) {
      return Fail(
          Check::kTypeIndex,
          in.Error("signature " + std::to_string(index) + " of " + std::to_string(signatures_.size())).message());
    }
    const Signature& signature = signatures_[index];
    for (const Symbol& symbol : signature.symbols) items_left_ -= 1 + static_cast<int64_t>(symbol.name.size() / 16);
    for (const auto* list : {&signature.params, &signature.results}) {
      for (const NamedType& named : *list)
        items_left_ -= WeightOf(named.type) + static_cast<int64_t>(named.name.size() / 16);
    }
    if (items_left_ < 0) return Fail(Check::kCountCap, in.Error("too many signatures").message());
    *out = signature;
    return Verdict();
  }

  // What a copy of a type costs, in items.
  static int64_t WeightOf(const Type& type) {
    size_t steps = type.class_name.size();
    for (const Dim& dim : type.dims) steps += dim ? dim->steps().size() : 0;
    int64_t weight = 1 + static_cast<int64_t>(steps / 4);
    for (const Type& element : type.elements) weight += WeightOf(element);
    for (const Type& result : type.results) weight += WeightOf(result);
    return weight;
  }

  Verdict Functions(ByteReader& in) {
    uint64_t count = 0;
    INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
    for (uint64_t i = 0; i < count; ++i) {
      Function& function = program_.functions.emplace_back();
      INGOT_RETURN_UNLESS_PASSED(ReadFunction(in, function).WithContext("function " + std::to_string(i)));
    }
    return Verdict();
  }

  Verdict ReadFunction(ByteReader& in, Function& function) {
    INGOT_RETURN_UNLESS_PASSED(Text(in, &function.name));
    INGOT_RETURN_UNLESS_PASSED(Named(in, 2, &function.exported));
    INGOT_RETURN_UNLESS_PASSED(PickSignature(in, &function.signature));
    function.registers.assign(function.signature.symbols.size(), Type::Int());
    for (const NamedType& param : function.signature.params) function.registers.push_back(param.type);
    uint64_t num_registers = 0, num_instructions = 0, code_size = 0;
    INGOT_RETURN_UNLESS_PASSED(Count(in, &num_registers));
    for (uint64_t i = 0; i < num_registers; ++i) {
      INGOT_RETURN_UNLESS_PASSED(PickType(in, &function.registers.emplace_back()));
    }
    INGOT_RETURN_UNLESS_PASSED(Count(in, &num_instructions));
    INGOT_READ(code_size, in.Varint());
    std::span<const std::byte> code;
    INGOT_READ(code, in.Bytes(code_size));
    ByteReader code_in(code, "code");
    function.code.reserve(num_instructions);
    for (uint64_t i = 0; i < num_instructions; ++i) {
      INGOT_RETURN_UNLESS_PASSED(ReadInstruction(code_in, function.code.emplace_back()));
    }
    if (!code_in.at_end())
      return Fail(Check::kCodeExtent, code_in.Error("code goes on behind its last instruction").message());
    return Verdict();
  }

  Verdict ReadInstruction(ByteReader& in, Instruction& out) {
    uint8_t number = 0;
    INGOT_READ(number, in.U8());
    const OpcodeInfo* info = FindOpcode(uint64_t{number});
    if (info == nullptr)
      return Fail(Check::kKnownOpcode, in.Error("unknown opcode " + std::to_string(number)).message());
    out.opcode = info->opcode;
    out.operands.reserve(info->operands.size());
    for (const OperandSpec& spec : info->operands) INGOT_RETURN_UNLESS_PASSED(ReadOperand(in, spec.kind, out));
    return Verdict();
  }

  Verdict ReadOperand(ByteReader& in, OperandKind kind, Instruction& out) {
    int64_t scalar = 0;
    switch (kind) {
      case OperandKind::kDefList:
      case OperandKind::kUseList: {
        uint64_t count = 0;
        INGOT_READ(count, in.Count(1));
        RegisterList list(count);
        for (uint32_t& index : list) INGOT_READ(index, in.VarintUpTo(UINT32_MAX));
        out.operands.emplace_back(std::move(list));
        return Verdict();
      }
      case OperandKind::kDim: {
        DimCode code;
        INGOT_RETURN_UNLESS_PASSED(ReadDim(in, &code));
        out.operands.emplace_back(std::move(code));
        return Verdict();
      }
      case OperandKind::kDimList: {
        std::vector<DimCode> codes;
        INGOT_RETURN_UNLESS_PASSED(ReadDims(in, &codes));
        out.operands.emplace_back(std::move(codes));
        return Verdict();
      }
      case OperandKind::kText: {
        std::string text;
        INGOT_RETURN_UNLESS_PASSED(Text(in, &text));
        out.operands.emplace_back(std::move(text));
        return Verdict();
      }
      case OperandKind::kInt:
        INGOT_READ(scalar, in.SignedVarint());
        break;
      case OperandKind::kFloat:
        INGOT_READ(scalar, in.I64());
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
        INGOT_READ(scalar, in.VarintUpTo(UINT32_MAX));
        break;
    }
    out.operands.emplace_back(scalar);
    return Verdict();
  }

  Verdict Kernels(ByteReader& in) {
    uint64_t count = 0;
    INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
    for (uint64_t i = 0; i < count; ++i) {
      INGOT_RETURN_UNLESS_PASSED(ReadImage(in, static_cast<uint32_t>(i)));
    }
    INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
    for (uint64_t i = 0; i < count; ++i) {
      Kernel& kernel = program_.kernels.emplace_back();
      INGOT_RETURN_UNLESS_PASSED(ReadKernel(in, kernel).WithContext("kernel " + std::to_string(i)));
    }
    return Verdict();
  }

  Verdict ReadImage(ByteReader& in, uint32_t index) {
    KernelImage& image = program_.images.emplace_back();
    INGOT_RETURN_UNLESS_PASSED(Text(in, &image.name));
    INGOT_RETURN_UNLESS_PASSED(Named(in, 2, &image.format));
    INGOT_RETURN_UNLESS_PASSED(Text(in, &image.arch));
    INGOT_READ(image.features, in.U64());
    const Section* section = container_.Find(SectionKind::kKernelImage, index);
    if (section == nullptr) {
      return Fail(Check::kSectionPresent, "the section of kernel image " + std::to_string(index) + " is missing");
    }
    Result<SharedBytes> bytes = container_.Read(*section);
    if (!bytes.ok()) return Stop(std::move(bytes).status());
    image.bytes = std::move(*bytes);
    if (section->codec == formats::Codec::kNone) image.file_offset = container_.start_offset() + section->offset;
    return Verdict();
  }

  Verdict ReadKernel(ByteReader& in, Kernel& kernel) {
    INGOT_RETURN_UNLESS_PASSED(Text(in, &kernel.name));
    INGOT_READ(kernel.device, in.U8());
    uint64_t count = 0;
    INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
    for (uint64_t i = 0; i < count; ++i) {
      KernelInt& scalar = kernel.ints.emplace_back();
      INGOT_RETURN_UNLESS_PASSED(Text(in, &scalar.name));
      INGOT_RETURN_UNLESS_PASSED(ReadDataType(in, &scalar.dtype));
    }
    INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
    for (uint64_t i = 0; i < count; ++i) {
      KernelParam& param = kernel.params.emplace_back();
      INGOT_RETURN_UNLESS_PASSED(Text(in, &param.name));
      INGOT_RETURN_UNLESS_PASSED(Named(in, 3, &param.role));
      INGOT_RETURN_UNLESS_PASSED(ReadDataType(in, &param.dtype));
      INGOT_RETURN_UNLESS_PASSED(ReadDims(in, &param.extents));
      INGOT_READ(param.alignment, in.VarintUpTo(UINT32_MAX));
      INGOT_RETURN_UNLESS_PASSED(OptionalIndex(in, &param.in_place));
    }
    for (DimCode* formula : {&kernel.workspace, &kernel.flops, &kernel.bytes}) {
      INGOT_RETURN_UNLESS_PASSED(ReadDim(in, formula));
    }
    INGOT_READ(kernel.effects, in.VarintUpTo(UINT32_MAX));
    bool has_launch = false;
    INGOT_RETURN_UNLESS_PASSED(Named(in, 2, &has_launch));
    if (has_launch) {
      LaunchRecord& launch = kernel.launch.emplace();
      for (DimCode& size : launch.grid) INGOT_RETURN_UNLESS_PASSED(ReadDim(in, &size));
      for (DimCode& size : launch.block) INGOT_RETURN_UNLESS_PASSED(ReadDim(in, &size));
      INGOT_RETURN_UNLESS_PASSED(ReadDim(in, &launch.shared_bytes));
    }
    INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
    for (uint64_t i = 0; i < count; ++i) {
      KernelVariant& variant = kernel.variants.emplace_back();
      INGOT_RETURN_UNLESS_PASSED(Index(in, &variant.image));
      INGOT_READ(variant.offset, in.Varint());
      INGOT_RETURN_UNLESS_PASSED(Text(in, &variant.entry));
      INGOT_READ(variant.required_features, in.U64());
    }
    INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
    for (uint64_t i = 0; i < count; ++i) {
      INGOT_RETURN_UNLESS_PASSED(Index(in, &kernel.externals.emplace_back().value));
    }
    INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
    for (uint64_t i = 0; i < count; ++i) INGOT_RETURN_UNLESS_PASSED(Text(in, &kernel.messages.emplace_back()));
    return Verdict();
  }

  Verdict MemoryPlans(ByteReader& in) {
    for (Function& function : program_.functions) {
      uint64_t count = 0;
      INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
      for (uint64_t i = 0; i < count; ++i) {
        Arena& arena = function.plan.arenas.emplace_back();
        INGOT_READ(arena.device, in.U8());
        INGOT_RETURN_UNLESS_PASSED(ReadDim(in, &arena.size));
      }
      INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
      for (uint64_t i = 0; i < count; ++i) {
        PlanEntry& entry = function.plan.entries.emplace_back();
        INGOT_RETURN_UNLESS_PASSED(Index(in, &entry.arena));
        INGOT_RETURN_UNLESS_PASSED(ReadDim(in, &entry.offset));
        INGOT_RETURN_UNLESS_PASSED(ReadDim(in, &entry.size));
        INGOT_RETURN_UNLESS_PASSED(Index(in, &entry.first));
        INGOT_RETURN_UNLESS_PASSED(Index(in, &entry.last));
        std::optional<uint32_t> alias;
        INGOT_RETURN_UNLESS_PASSED(OptionalIndex(in, &alias));
        if (alias) entry.alias_of = PlanEntryId(*alias);
      }
    }
    return Verdict();
  }

  Verdict Constants(ByteReader& in) {
    const Section* section = container_.Find(SectionKind::kConstantData);
    if (section == nullptr) return Fail(Check::kSectionPresent, "the section \"constant_data\" is missing");
    Result<SharedBytes> data = container_.Read(*section);
    if (!data.ok()) return Stop(std::move(data).status());
    uint64_t count = 0;
    INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
    for (uint64_t i = 0; i < count; ++i) {
      Constant& constant = program_.constants.emplace_back();
      INGOT_RETURN_UNLESS_PASSED(Text(in, &constant.name));
      INGOT_RETURN_UNLESS_PASSED(ReadDataType(in, &constant.dtype));
      INGOT_RETURN_UNLESS_PASSED(ReadExtents(in, &constant.dims));
      std::optional<uint32_t> function;
      INGOT_RETURN_UNLESS_PASSED(OptionalIndex(in, &function));
      if (function) {
        constant.prepared_by = PreparedBy{FunctionId(*function), 0};
        INGOT_RETURN_UNLESS_PASSED(Index(in, &constant.prepared_by->result));
        continue;
      }
      uint64_t block = 0, size = 0;
      INGOT_READ(block, in.Varint());
      INGOT_READ(size, in.Varint());
      const uint64_t available = data->size();
      if (block > available / kPlanAlignment || size > available - block * kPlanAlignment) {
        return Fail(Check::kBlobExtent,
                    in.Error("constant " + std::to_string(i) + " is not inside the constant data").message());
      }
      constant.bytes = SharedBytes(data->owner, data->bytes.subspan(block * kPlanAlignment, size));
    }
    INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
    for (uint64_t i = 0; i < count; ++i) {
      State& state = program_.states.emplace_back();
      INGOT_RETURN_UNLESS_PASSED(Text(in, &state.name));
      INGOT_RETURN_UNLESS_PASSED(ReadDataType(in, &state.dtype));
      INGOT_RETURN_UNLESS_PASSED(ReadExtents(in, &state.dims));
      INGOT_READ(state.device, in.U8());
      std::optional<uint32_t> initial;
      INGOT_RETURN_UNLESS_PASSED(OptionalIndex(in, &initial));
      if (initial) state.initial = ConstantId(*initial);
    }
    return Verdict();
  }

  Verdict DebugMap(ByteReader& in) {
    for (Function& function : program_.functions) {
      uint64_t count = 0;
      INGOT_RETURN_UNLESS_PASSED(Count(in, &count));
      for (uint64_t i = 0; i < count; ++i) {
        DebugNote& note = function.notes.emplace_back();
        INGOT_RETURN_UNLESS_PASSED(Index(in, &note.instruction));
        INGOT_RETURN_UNLESS_PASSED(Text(in, &note.text));
      }
    }
    return Verdict();
  }

  // With how deep it nests and what a copy of it costs: the table is small, copies may not be.
  struct TableType {
    Type type;
    int depth;
    int64_t weight;
  };

  const formats::Container& container_;
  const CheckSet& checks_;
  Program program_;
  std::vector<std::string> strings_;
  std::vector<TableType> types_;
  std::vector<Signature> signatures_;
  int64_t items_left_ = kMaxDecodedItems;
  int64_t text_left_ = kMaxDecodedText;
};

}  // namespace

Result<Program> DecodeProgram(const formats::Container& container, const CheckSet& checks) {
  return Decoder(container, checks).Run();
}

}  // namespace ingot::vm
#undef INGOT_READ
