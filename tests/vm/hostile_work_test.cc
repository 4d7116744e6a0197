// Small files that ask for much memory or time: both are bounded, and a deadline or Cancel stops them. Files that are
// refused for their bytes alone are in hostile_test.cc.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <thread>

#include "formats/container_writer.h"
#include "runtime/utf8.h"
#include "tests/allocation_counter.h"
#include "tests/processor_time.h"
#include "tests/vm/round_trip.h"
#include "vm/program/device_program.h"
#include "vm/program/golden_cases.h"
#include "vm/program/limits.h"
#include "vm/run/context.h"
#include "vm/verify/flow_verifier.h"
#include "vm/verify/verifier.h"
#include "vm/verify/zeroed_memory.h"

namespace ingot::vm {
namespace {

std::shared_ptr<const Executable> Open(const std::string& text) {
  return *Executable::FromProgram(*Instance::Create({}), test::Assembled(text), "m", {});
}

constexpr const char* kProduct = R"(
  register r0: float32[1500, 1500]
  register r1: float32[1500, 1500]
  alloc r0, [1500, 1500]
  alloc r1, [1500, 1500]
  call_builtin [], matmul, [r1, r0, r0]
  call_builtin [], matmul, [r1, r0, r0]
  call_builtin [], matmul, [r1, r0, r0]
  call_builtin [], matmul, [r1, r0, r0]
  return [r1]
}
)";

// Of the processor, for what ends soon after a deadline, and for what is refused after a bounded search.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kSoon = 10, kBounded = 60;
#else
constexpr double kSoon = 1, kBounded = 6;
#endif

// The first function of the text runs much longer than its deadline, and ends soon after it.
void CheckEndsAtDeadline(const std::string& text) {
  const auto executable = Open(text);
  ContextOptions options;
  options.deadline_seconds = 0.05;
  const auto context = *Context::Create(executable, options);
  const double began = test::ProcessorSeconds();
  const Status status = context->Invoke(executable->program().functions[0], {}).status();
  CHECK(status.code() == StatusCode::kDeadlineExceeded);
  CHECK(test::ProcessorSeconds() - began < kSoon);
}

TEST_CASE("a long builtin ends at the deadline") {
  CheckEndsAtDeadline(std::string("ingot 1\nfunction @main export () -> (y: float32[1500, 1500]) {") + kProduct);
}

std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST_CASE("many instructions in a row that copy or zero much memory end at the deadline") {
  const std::string head = "ingot 1\nfunction @main export () -> () {\n  register r0: int8[67108864]\n";
  const std::string value = "  alloc r0, [67108864]\n  view r1, r0, 1, [67108863]\n";  // not aligned: it is copied
  const auto kept = [](const std::string& type) {
    return "  register r1: int8[67108863]\n  register r2: " + type +
           "(int8[67108863])\n  register r3: int8[67108863]\n";
  };
  for (const std::string& body :
       {Repeated("  alloc r0, [67108864]\n  release r0\n", 1000),
        kept("optional") + value + "  some r2, r1\n" + Repeated("  unwrap r3, r2\n", 300),
        kept("tuple") + value + "  tuple r2, [r1]\n" + Repeated("  tuple_get r3, r2, 0\n", 300)}) {
    CAPTURE(body.substr(0, 300));
    CheckEndsAtDeadline(head + body + "  return []\n}\n");
  }
}

TEST_CASE("the text of a message is bounded") {
  // A sequence of 32,768 integers, a text of a thousand characters of two bytes, and a tensor, very often.
  const std::string text = R"(ingot 1
function @main export (fails: bool) -> () {
  register r1: object("any")
  register r2: int
  register r3: tuple(int)
  register r4: string
  register r5: float32[2]
  const_int r2, 1
  tuple r3, [r2]
  move r1, r3
  const_string r4, ")" + Repeated("\u00e4", 1000) +
                           "\"\n  alloc r5, [2]\n" +
                           Repeated("  const_int r2, 0\n  call_builtin [r1], sequence_splice, [r1, r2, r2, r1]\n", 15) +
                           "  branch r0, fail, show\nshow:\n  call_builtin [], print, [r4" +
                           Repeated(", r1, r4, r5, r2", 10'000) + "]\n  return []\nfail:\n  const_bool r0, false\n" +
                           "  call_builtin [], assert, [r0, r4" + Repeated(", r4, r1", 10'000) + "]\n  return []\n}\n";
  std::string printed;
  InstanceOptions options;
  options.log = [&](std::string_view message) { printed += message; };
  const auto executable = *Executable::FromProgram(*Instance::Create(options), test::Assembled(text), "m", {});
  const auto context = *Context::Create(executable);
  const double began = test::ProcessorSeconds();
  CHECK(context->Invoke(executable->program().functions[0], std::vector<Value>{false}).ok());
  const Status failed = context->Invoke(executable->program().functions[0], std::vector<Value>{true}).status();
  CHECK(failed.code() == StatusCode::kFailed);
  CHECK(test::ProcessorSeconds() - began < kSoon);
  CHECK(printed.find("tuple(int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, ...)") !=
        std::string::npos);
  for (const std::string& shown : {printed, failed.message()}) {
    CHECK(shown.size() > 60'000);
    CHECK(shown.size() < 70'000);
    CHECK(shown.find("...", shown.size() - 200) != std::string::npos);
    CHECK(IsUtf8(shown));
  }
}

std::shared_ptr<const Executable> OpenPrepared() {
  return Open(std::string("ingot 1\nconstant \"w\" float32[1500, 1500] = prepared @p 0\n"
                          "function @p () -> (y: float32[1500, 1500]) {") +
              kProduct + "function @main export () -> () {\n  return []\n}\n");
}

TEST_CASE("what prepares constants ends at the deadline and with the fuel") {
  const auto executable = OpenPrepared();
  ContextOptions options;
  options.deadline_seconds = 0.05;
  const double began = test::ProcessorSeconds();
  CHECK(Context::Create(executable, options).status().code() == StatusCode::kDeadlineExceeded);
  CHECK(test::ProcessorSeconds() - began < kSoon);
  ContextOptions fuel;
  fuel.fuel = 1;
  fuel.deadline_seconds = 60;
  CHECK(Context::Create(executable, fuel).status().code() == StatusCode::kDeadlineExceeded);
}

TEST_CASE("a context does not wait beyond its deadline for another that prepares constants") {
  const auto executable = OpenPrepared();
  ContextOptions longer;
  longer.deadline_seconds = 2;
  std::atomic<bool> has_ended = false;
  std::thread other([&] {
    CHECK(Context::Create(executable, longer).status().code() == StatusCode::kDeadlineExceeded);
    has_ended = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ContextOptions options;
  options.deadline_seconds = 0.05;
  CHECK(Context::Create(executable, options).status().code() == StatusCode::kDeadlineExceeded);
  CHECK_FALSE(has_ended);
  other.join();
}

TEST_CASE("a file that is not trusted sees no byte that nobody wrote") {
  // Fills host memory with a secret and frees it, so that an allocation that is not zeroed would show the secret.
  for (int i = 0; i < 8; ++i) {
    const auto secret = std::make_unique<std::array<char, 4200>>();
    secret->fill('S');
    CHECK((*secret)[4000] == 'S');
  }
  const auto executable = Open(R"(ingot 1
function @main export () -> (y: uint8[4096], z: uint8[4096]) {
  register r0: uint8[4096]
  register r1: arena uint8[4096]
  register r2: uint8[4096]
  arena device 0, size 4096
  entry 0: arena 0, offset 0, size 4096, live 0..2
  alloc r0, [4096]
  plan_view r1, 0, [4096]
  copy r2, r1
  return [r0, r2]
}
)");
  const auto context = *Context::Create(executable);
  const std::vector<Value> results = *context->Invoke(executable->program().functions[0], {});
  for (const Value& result : results) {
    for (const uint8_t byte : std::get<Tensor>(result).Elements<uint8_t>()) REQUIRE(byte == 0);
  }
}

TEST_CASE("much memory that is zeroed takes none until it is written") {
  const auto executable = Open(R"(ingot 1
function @main export () -> (n: int) {
  register r0: int8[4294967296]
  register r1: int
  alloc r0, [4294967296]
  const_int r1, 1
  return [r1]
}
function @again export () -> (y: int64[16777216]) {
  register r0: int64[16777216]
  register r1: int
  register r2: int64[16777216]
  alloc r0, [16777216]
  const_int r1, 7
  call_builtin [], store_int, [r0, r1]
  release r0
  alloc r2, [16777216]
  return [r2]
}
)");
  const auto resident = [] {
    std::ifstream file("/proc/self/statm");
    int64_t size = 0, pages = 0;
    file >> size >> pages;
    return pages * sysconf(_SC_PAGESIZE);
  };
  const int64_t before = resident();
  const auto context = *Context::Create(executable);
  const auto results = context->Invoke(executable->program().functions[0], {});
  if (!results.ok()) REQUIRE(results.status().code() == StatusCode::kOutOfMemory);  // the system does not lend so much
  CHECK(resident() - before < int64_t{1} << 30);

  const std::vector<Value> again = *context->Invoke(executable->program().functions[1], {});
  const auto elements = std::get<Tensor>(again[0]).Elements<int64_t>();
  CHECK(std::all_of(elements.begin(), elements.end(), [](int64_t element) { return element == 0; }));
}

TEST_CASE("what is proved to be written first need not be zeroed") {
  const Program program = test::Assembled(R"(ingot 1
kernel @fill {
  out y: float32[4]
}
kernel @change {
  inout y: float32[4]
}
function @written () -> (y: float32[4], z: float32[4]) {
  register r0: float32[4]
  register r1: float32[4]
  alloc_output r0, 0, [4]
  alloc r1, [4]
  call_kernel @fill, [r0], []
  copy_into r1, r0
  return [r0, r1]
}
function @changed () -> (y: float32[4]) {
  register r0: float32[4]
  alloc r0, [4]
  call_kernel @change, [r0], []
  return [r0]
}
function @sometimes (b: bool) -> (y: float32[4]) {
  register r1: float32[4]
  alloc r1, [4]
  branch r0, left, right
left:
  call_kernel @fill, [r1], []
  jump right
right:
  return [r1]
}
function @gone (b: bool) -> () {
  register r1: float32[4]
again:
  alloc r1, [4]
  branch r0, again, out
out:
  release r1
  return []
}
function @viewed [n] (x: float32[n, 2, 2], z: float32[2]) -> (y: float32[n * 4]) {
  register r3: float32[n * 4]
  register r4: float32[n, 2, 2]
  alloc_output r3, 0, [n * 4]
  view r4, r3, 0, [n, 2, 2]
  copy_into r4, r1
  return [r3]
}
function @viewed_in_part [n] (x: float32[n, 2], z: float32[2]) -> (y: float32[n * 4]) {
  register r3: float32[n * 4]
  register r4: float32[n, 2]
  alloc_output r3, 0, [n * 4]
  view r4, r3, 0, [n, 2]
  copy_into r4, r1
  return [r3]
}
function @view_released [n] (x: float32[n]) -> (y: float32[n]) {
  register r2: float32[n]
  register r3: float32[n]
  alloc_output r2, 0, [n]
  view r3, r2, 0, [n]
  release r3
  return [r2]
}
)");
  const auto unproved = [&](size_t i) { return FindUnproved(program, program.functions[i]); };
  CHECK(unproved(0).empty());
  CHECK(unproved(1) == std::vector<uint32_t>{0});
  CHECK(unproved(2) == std::vector<uint32_t>{0});
  CHECK(unproved(3).empty());
  CHECK(unproved(4).empty());
  CHECK(unproved(5) == std::vector<uint32_t>{0});
  CHECK(unproved(6) == std::vector<uint32_t>{0});
}

TEST_CASE("operands of a tuple are compared one by one with its type") {
  Program program = test::Assembled(
      "ingot 1\nfunction @main export (x: int) -> (t: tuple(int)) {\n  register r1: tuple(int)\n  tuple r1, [r0]\n"
      "  return [r1]\n}\n");
  REQUIRE(Verify(program).ok());
  std::get<RegisterList>(program.functions[0].code[0].operands()[1].value).assign(60'000, 0);
  CHECK(Verify(program).message().ends_with("is tuple(int), but gets 60000 elements [DefinedType]"));
}

TEST_CASE("all functions together have one budget for the analysis of their flow") {
  const Program program = test::Assembled(R"(ingot 1
function @main export (b: bool) -> () {
loop:
  branch r0, loop, out
out:
  return []
}
)");
  int64_t work_left = 1000;
  REQUIRE(VerifyFlow(program.functions[0], CheckSet::All(), work_left).passed());
  CHECK(work_left < 1000);
  work_left = 1000 - work_left;
  CHECK(VerifyFlow(program.functions[0], CheckSet::All(), work_left).passed());
  CHECK(work_left == 0);
  CHECK(VerifyFlow(program.functions[0], CheckSet::All(), work_left).status().message().ends_with("[FlowWork]"));
}

TEST_CASE("calls share a budget for what is proved of them") {
  // Each call takes some bytes and asks for thousands of formulas to be put in terms of the caller's symbols.
  std::string extent = "n", kernel, parameters, arguments, results, registers;
  for (int i = 0; i < 31; ++i) extent += " + n";
  const std::string type = "float32[" + extent + ", " + extent + ", " + extent + ", " + extent + "]";
  for (int i = 0; i < 200; ++i) {
    const std::string number = std::to_string(i);
    kernel += "  in a" + number + ": " + type + "\n";
    parameters += ", a" + number + ": " + type;
    arguments += i == 0 ? "r1" : ", r1";
  }
  const std::string unknown = "float32[?, ?, ?, ?]";
  const std::string text = "ingot 1\nkernel @k {\n  int n: int64\n" + kernel + "}\nfunction @f [n](x: float32[n]" +
                           parameters + ") -> () {\n  return []\n}\nfunction @main export [n](x: " + unknown +
                           ", y: float32[n]) -> () {\n";
  for (const std::string& call :
       {"  call_kernel @k, [" + arguments + "], [r0]\n", "  call_function [], @f, [r2, " + arguments + "]\n"}) {
    CAPTURE(call);
    Program program = test::Assembled(text + call + "  return []\n}\n");
    std::vector<Instruction>& code = program.functions[1].code;
    code.insert(code.begin(), 20, code[0]);
    CHECK(Verify(program).ok());
    code.insert(code.begin(), 2000, code[0]);
    const double began = test::ProcessorSeconds();
    CHECK(Verify(program).message().ends_with("the functions together are too complex [FlowWork]"));
    CHECK(test::ProcessorSeconds() - began < kBounded);
  }
}

TEST_CASE("inputs and outputs that may share memory are looked for in bounded time and memory") {
  constexpr size_t kCount = 2000, kRegisters = 60'000;
  const Type input = Type::Tensor(DataType::Float(32), {DimCode(1)}, Storage::kBorrowed);
  const Type output = Type::Tensor(DataType::Float(32), {DimCode(1)});
  Program program = test::Assembled("ingot 1\nfunction @main export () -> () {\n  return []\n}\n");
  Function& main = program.functions[0];
  main.signature.params.assign(kCount, {"x", input});
  main.signature.results.assign(kCount, {"y", output});
  main.registers.assign(kCount, input);
  main.registers.insert(main.registers.end(), kCount, output);
  main.registers.insert(main.registers.end(), kRegisters, Type::Int());
  main.code.clear();
  RegisterList results;
  for (size_t i = 0; i < kCount; ++i) {
    const auto made = static_cast<int64_t>(kCount + i);
    main.code.emplace_back(Opcode::kAllocOutput, std::vector<Operand>{made, int64_t(i), std::vector{DimCode(1)}});
    results.push_back(static_cast<uint32_t>(made));
  }
  main.code.emplace_back(Opcode::kReturn, std::vector<Operand>{results});
  const int64_t before = test::LiveBytes();
  test::TakePeakBytes();
  const double began = test::ProcessorSeconds();
  const auto opened = Executable::FromProgram(*Instance::Create({}), std::move(program), "m", {});
  REQUIRE_MESSAGE(opened.ok(), opened.status().message());
  CHECK(test::ProcessorSeconds() - began < kBounded);
  CHECK(test::TakePeakBytes() - before < 32 << 20);
}

TEST_CASE("the functions of a second program are looked for in bounded time") {
  constexpr size_t kCount = 100'000;
  const Program one = test::Assembled("ingot 1\nfunction @main export () -> () {\n  return []\n}\n");
  Program program = one, backwards = one;
  program.functions.assign(kCount, one.functions[0]);
  for (size_t i = 0; i < kCount; ++i) program.functions[i].name = std::string(100, 'f') + std::to_string(i);
  backwards.functions.assign(program.functions.rbegin(), program.functions.rend());
  const double began = test::ProcessorSeconds();
  CHECK(CheckSameFunctions(program, program).ok());
  CHECK(CheckSameFunctions(program, backwards).code() == StatusCode::kCorrupt);
  CHECK(test::ProcessorSeconds() - began < kBounded);
  // A few may stand in any order.
  program.functions.resize(1000);
  backwards.functions.assign(program.functions.rbegin(), program.functions.rend());
  CHECK(CheckSameFunctions(program, backwards).ok());
}

TEST_CASE("golden cases of more tensors than anybody compares are refused") {
  GoldenCase golden{"main", GoldenOrigin::kFile, 0, 0, {}, {}};
  const Tensor tensor = *Tensor::FromBytes(DataType::Int(8), std::vector<int64_t>{}, std::vector<uint8_t>{0});
  golden.inputs.assign(1 << 16, {"x", tensor});
  EncodedProgram encoded =
      *EncodedProgram::Encode(test::Assembled("ingot 1\nfunction @main export () -> () {\n  return []\n}\n"));
  formats::ContainerWriter::Options options;
  options.is_required = false;
  REQUIRE(encoded.container()
              .AddOwned(formats::SectionKind::kGoldenCases, 0, EncodeGoldenCases({&golden, 1}), options)
              .ok());
  const formats::Container container = *formats::Container::Open(SharedBytes::Own(*encoded.container().ToBytes()));
  const Status status = DecodeGoldenCases(container).status();
  CHECK(status.code() == StatusCode::kCorrupt);
  CHECK(status.message().ends_with("too many tensors"));
}

TEST_CASE("what a file may ask for grows with its size") {
  // Compressed, a table of very many equal registers takes some hundred bytes: too much memory, then too many bytes.
  for (const size_t num_registers : {100'000, 1'500'000}) {
    Program program = test::Assembled("ingot 1\nfunction @main export () -> () {\n  return []\n}\n");
    program.functions[0].registers.assign(num_registers, Type::Int());
    const formats::Container raw = *formats::Container::Open(SharedBytes::Own(*EncodeProgram(program)));
    formats::ContainerWriter writer;
    formats::ContainerWriter::Options options;
    options.codec = formats::Codec::kZstd;
    for (const formats::Section& section : raw.sections()) {
      REQUIRE(writer.Add(section.kind, section.index, {raw.Read(section)->bytes}, options).ok());
    }
    const SharedBytes bytes = SharedBytes::Own(*writer.ToBytes());
    CHECK(bytes.size() < 4096);
    const Status status = DecodeProgram(*formats::Container::Open(bytes)).status();
    CHECK(status.code() == StatusCode::kCorrupt);
    CHECK(status.message().ends_with(num_registers > 1'000'000 ? "[CountCap]" : "[HeapCap]"));
  }
}

TEST_CASE("many blocks of many registers are refused before they take the memory") {
  // The analysis of flow keeps a bit for each register at each block.
  Program program = test::Assembled("ingot 1\nfunction @main export () -> () {\n  return []\n}\n");
  Function& function = program.functions[0];
  constexpr int64_t kBlocks = 12'000;
  function.registers.assign(60'000, Type::Int());
  for (int64_t i = 0; i < kBlocks; ++i) {
    function.code.insert(function.code.end() - 1, Instruction(Opcode::kJump, {Operand(i + 1)}));
  }
  REQUIRE(Verify(program).ok());
  const SharedBytes bytes = SharedBytes::Own(*EncodeProgram(program));
  const int64_t before = test::LiveBytes();
  test::TakePeakBytes();
  const auto opened = Executable::OpenMemory(*Instance::Create({}), bytes, "m", {});
  CHECK(test::TakePeakBytes() - before <= kBytesPerByte * static_cast<int64_t>(bytes.size()) + kFreeBytes);
  CHECK(opened.status().code() == StatusCode::kCorrupt);
  CHECK(opened.status().message().starts_with("m: takes more than "));
  CHECK(opened.status().message().ends_with("[HeapCap]"));
}

TEST_CASE("types that copy each other are refused before they take the memory") {
  // Each tuple holds the one before it twice: few bytes in the file, many types in memory.
  Type wide = Type::Tuple(std::vector<Type>(250, Type::Int()));
  Program program = test::Assembled("ingot 1\nfunction @main export () -> () {\n  return []\n}\n");
  for (int i = 0; i < 20'000; ++i) {
    Type type = Type::Tuple({wide, Type::Shape({DimCode(i)})});
    program.functions[0].registers.push_back(std::move(type));
  }
  const formats::Container container = *formats::Container::Open(SharedBytes::Own(*EncodeProgram(program)));
  const Status status = DecodeProgram(container).status();
  CHECK(status.code() == StatusCode::kCorrupt);
  CHECK(status.message().ends_with("[HeapCap]"));
}

}  // namespace
}  // namespace ingot::vm
