// Checks that no assembler text can violate: programs whose files are damaged behind the hashes, section by section,
// and programs that only code can build. One case per check at least, so that leaving a check out is noticed.
#include "vm/program/checks.h"

#include <doctest/doctest.h>

#include <functional>

#include "formats/byte_writer.h"
#include "formats/container_writer.h"
#include "tests/left_out_checks.h"
#include "vm/program/limits.h"
#include "vm/program/program_codec.h"
#include "vm/text/assembler.h"
#include "vm/verify/verifier.h"

namespace ingot::vm {
namespace {

using formats::ByteWriter;
using formats::SectionKind;

// A program as raw sections, so that a test can write any of them.
struct RawSections {
  std::map<SectionKind, std::vector<std::byte>> sections;

  static RawSections Empty() {
    RawSections raw;
    const auto bytes = [](std::initializer_list<int> values) {
      std::vector<std::byte> out;
      for (int value : values) out.push_back(static_cast<std::byte>(value));
      return out;
    };
    raw.sections[SectionKind::kStrings] = bytes({1, 1, 'm'});
    raw.sections[SectionKind::kMetadata] = bytes({0, 0});
    raw.sections[SectionKind::kSignatures] = bytes({0, 1, 0, 0, 0, 0});  // one signature: nothing to nothing
    raw.sections[SectionKind::kFunctions] = bytes({0});
    raw.sections[SectionKind::kKernels] = bytes({0, 0});
    raw.sections[SectionKind::kMemoryPlans] = bytes({});
    raw.sections[SectionKind::kConstants] = bytes({0, 0});
    raw.sections[SectionKind::kConstantData] = bytes({});
    return raw;
  }
  RawSections With(SectionKind kind, std::initializer_list<int> values) && {
    sections[kind].clear();
    for (int value : values) sections[kind].push_back(static_cast<std::byte>(value));
    return std::move(*this);
  }
  RawSections Without(SectionKind kind) && {
    sections.erase(kind);
    return std::move(*this);
  }

  Status Decode() const {
    formats::ContainerWriter writer;
    for (const auto& [kind, bytes] : sections) {
      INGOT_RETURN_IF_ERROR(writer.Add(kind, 0, {std::span<const std::byte>(bytes)}));
    }
    INGOT_ASSIGN_OR_RETURN(std::vector<std::byte> file, writer.ToBytes());
    INGOT_ASSIGN_OR_RETURN(const formats::Container container,
                           formats::Container::Open(SharedBytes::Own(std::move(file))));
    return DecodeProgram(container, test::VmChecks()).status();
  }
};

void ExpectFailure(const Status& status, const char* check) {
  const std::string suffix = std::string("[") + check + "]";
  CHECK(status.code() == StatusCode::kCorrupt);
  CHECK_MESSAGE(status.message().ends_with(suffix), check << ": " << status.ToString());
}

// One function "m" of no parameters, with this code of one instruction.
RawSections Code(std::initializer_list<int> code, int stated_size = -1, int num_registers = 0) {
  RawSections raw = RawSections::Empty();
  ByteWriter out;
  out.Varint(1);
  out.Varint(0);  // name
  out.U8(1);
  out.Varint(0);  // signature
  out.Varint(static_cast<uint64_t>(num_registers));
  out.Varint(1);
  out.Varint(stated_size < 0 ? code.size() : static_cast<uint64_t>(stated_size));
  for (int byte : code) out.U8(static_cast<uint8_t>(byte));
  raw.sections[SectionKind::kFunctions] = out.Take();
  raw.sections[SectionKind::kMemoryPlans] = {std::byte{0}, std::byte{0}};
  return raw;
}

TEST_SUITE("checks") {
  TEST_CASE("decoding refuses damaged sections, each by its check") {
    CHECK(RawSections::Empty().Decode().ok());
    CHECK(Code({7, 0}).Decode().ok());  // return []
    struct Row {
      const char* check;
      RawSections raw;
    };
    const Row rows[] = {
        {"SectionPresent", RawSections::Empty().Without(SectionKind::kKernels)},
        {"SectionPresent", RawSections::Empty().Without(SectionKind::kConstantData)},
        {"SectionPresent", RawSections::Empty().With(SectionKind::kKernels, {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})},
        {"FieldBounds", RawSections::Empty().With(SectionKind::kStrings, {1, 5, 'm'})},
        {"FieldBounds", RawSections::Empty().With(SectionKind::kStrings, {0x81, 0, 1, 'm'})},
        {"FieldBounds", Code({7, 0}, 3)},
        {"TrailingBytes", RawSections::Empty().With(SectionKind::kMetadata, {0, 0, 0})},
        {"StringIndex", RawSections::Empty().With(SectionKind::kMetadata, {1, 0, 1, 0})},
        {"StringEncoding", RawSections::Empty().With(SectionKind::kStrings, {1, 1, 0xff})},
        {"MetadataOrder", RawSections::Empty().With(SectionKind::kMetadata, {2, 0, 0, 0, 0, 0})},
        {"TypeIndex", RawSections::Empty().With(SectionKind::kSignatures, {1, 7, 1, 0, 0, 0})},
        {"KnownEnum", RawSections::Empty().With(SectionKind::kSignatures, {1, 11, 0, 0})},
        {"KnownEnum", RawSections::Empty().With(SectionKind::kSignatures, {1, 6, 2, 32, 1, 0, 5, 0, 0, 0, 0})},
        {"DimCodeForm", RawSections::Empty().With(SectionKind::kSignatures, {1, 5, 1, 1, 2, 0, 0})},
        {"KnownOpcode", Code({0})},
        {"KnownOpcode", Code({250})},
        {"CodeExtent", Code({7, 0, 0})},
        {"BlobExtent", RawSections::Empty().With(SectionKind::kConstants, {1, 0, 2, 32, 1, 0, 0, 0, 0, 4, 0})},
        {"BlobExtent", RawSections::Empty().With(SectionKind::kConstants, {1, 0, 2, 32, 1, 0, 0, 0, 1, 0, 0})},
        {"TensorRank", RawSections::Empty().With(SectionKind::kSignatures, {1, 5, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})},
    };
    for (const Row& row : rows) ExpectFailure(row.raw.Decode(), row.check);
  }

  TEST_CASE("decoding refuses types that nest too deep, and tables that grow too large") {
    ByteWriter types;
    types.Varint(18);
    types.U8(0);  // int
    for (int i = 0; i < 17; ++i) {
      types.U8(7);  // tuple of the one before
      types.Varint(1);
      types.Varint(static_cast<uint64_t>(i));
    }
    types.Varint(0);
    types.Varint(0);
    RawSections deep = RawSections::Empty();
    deep.sections[SectionKind::kSignatures] = types.Take();
    ExpectFailure(deep.Decode(), "TypeDepth");

    if (!test::IsWorthTesting("vm.CountCap")) return;
    constexpr uint64_t kOperands = (1 << 16) + 1;
    ByteWriter many;
    for (const int value : {1, 0, 1, 0, 0, 1}) many.U8(static_cast<uint8_t>(value));
    many.Varint(kOperands + 4);
    many.U8(7);  // return
    many.Varint(kOperands);
    many.Zeros(kOperands);
    RawSections operands = Code({7, 0});
    operands.sections[SectionKind::kFunctions] = many.Take();
    ExpectFailure(operands.Decode(), "CountCap");
  }

  TEST_CASE("decoding refuses tables whose rows take more memory than a file of this size may have") {
    if (!test::IsWorthTesting("vm.HeapCap")) return;
    ByteWriter functions;
    for (const int value : {1, 0, 1, 0}) functions.U8(static_cast<uint8_t>(value));
    functions.Varint(15'000);
    functions.Zeros(15'000);
    for (const int value : {1, 2, 7, 0}) functions.U8(static_cast<uint8_t>(value));
    RawSections large = Code({7, 0});
    large.sections[SectionKind::kFunctions] = functions.Take();
    large = std::move(large).With(SectionKind::kSignatures, {1, 0, 1, 0, 0, 0, 0});  // with the type int
    ExpectFailure(large.Decode(), "HeapCap");
  }

  TEST_CASE("verifying refuses programs that only code can build") {
    const auto check = [](const char* name, const std::function<void(Program&)>& damage) {
      if (!test::IsWorthTesting(std::string("vm.") + name)) return;
      Program program = *Assemble(R"(ingot 1
kernel @k {
}
function @main export (n: int) -> () {
  register r1: bool
  const_bool r1, true
  return []
})");
      damage(program);
      ExpectFailure(Verify(program, test::VmChecks()), name);
    };
    check("KernelEffects", [](Program& p) { p.kernels[0].effects = 16; });
    check("OperandForm", [](Program& p) { p.functions[0].code[1] = Instruction(Opcode::kReturn, {}); });
    check("OperandForm", [](Program& p) { p.functions[0].code[1].operands()[0].value = int64_t{0}; });
    check("OperandForm", [](Program& p) { p.functions[0].code[0].operands()[1].value = int64_t{2}; });
    check("FrameHead", [](Program& p) { p.functions[0].registers[0] = Type::Float(); });
    check("FrameHead", [](Program& p) { p.functions[0].registers.clear(); });
    check("FrameSize", [](Program& p) { p.functions[0].registers.resize(kMaxRegisters + 1); });
    check("FrameSize", [](Program& p) {
      p.functions[0].registers.resize(kMaxFrameWords / 9, Type::Tensor(DataType(), std::vector<Dim>(8)));
    });
    check("KnownDataType",
          [](Program& p) { p.functions[0].registers[1] = Type::Tensor(DataType(TypeCode::kFloat, 33), {}); });
    check("FlowWork", [](Program& p) {
      p.functions[0].registers.resize(kMaxRegisters / 2);
      Instruction jump{Opcode::kBranch, {int64_t{1}, int64_t{0}, int64_t{0}}};
      p.functions[0].code.insert(p.functions[0].code.end(), 10'000, jump);
    });
  }
}

}  // namespace
}  // namespace ingot::vm
