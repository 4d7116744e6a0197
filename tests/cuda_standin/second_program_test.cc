// Files with a second program, for GPUs: opened, refused, verified and compared.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "formats/container_writer.h"
#include "runtime/text.h"
#include "tests/cuda_standin/shift_program.h"
#include "vm/api/c_api_types.h"
#include "vm/program/device_program.h"
#include "vm/program/program_codec.h"
#include "vm/run/context.h"
#include "vm/text/assembler.h"
#include "vm/tools/doctor.h"
#include "vm/tools/second_program.h"

namespace ingot::vm {
namespace {

using Bytes = std::vector<std::byte>;

constexpr char kSymbols[] = "[n in 0..1000]";
constexpr char kParams[] = "x: int64[n]";
constexpr char kResults[] = "y: int64[n]";
constexpr char kBody[] = "register r2: owned int64[n]\n alloc_output r2, 0, [n]\n copy_into r2, r1\n return [r2]";

// On the CPU; a copy of x, unless the parts say otherwise.
Program OnCpu(const std::string& name = "main", const std::string& symbols = kSymbols,
              const std::string& params = kParams, const std::string& results = kResults,
              const std::string& body = kBody) {
  Result<Program> program = Assemble(StrCat({"ingot 1\ndevice \"cpu\" 0\nfunction @", name, " export ", symbols, "(",
                                             params, ") -> (", results, ") {\n", body, "\n}\n"}));
  REQUIRE_MESSAGE(program.ok(), program.status().message());
  return *std::move(program);
}

Bytes WithSection(const Program& program, const Bytes& section, formats::Codec codec = formats::Codec::kNone) {
  EncodedProgram encoded = EncodedProgram::Encode(program).value();
  formats::ContainerWriter::Options options;
  options.is_required = false;
  options.codec = codec;
  options.name = kDeviceProgramName;
  REQUIRE(encoded.container().Add(kDeviceProgramSection, 0, {section}, options).ok());
  return encoded.container().ToBytes().value();
}
Bytes Both(const Program& cpu, const Program& gpu) { return WithSection(cpu, EncodeProgram(gpu).value()); }

Result<std::shared_ptr<const Executable>> Open(Bytes bytes, OpenOptions options = {}) {
  options.trust = Trust::kFile;
  return Executable::OpenMemory(Instance::Create({}).value(), SharedBytes::Own(std::move(bytes)), "both", options);
}

Result<std::unique_ptr<Context>> OnGpu(const std::shared_ptr<const Executable>& executable) {
  ContextOptions options;
  options.device = DeviceId{DeviceKind::kCuda, 0};
  options.copies_tensors = true;
  return Context::Create(executable, options);
}

// Of the first context on a GPU.
Status OpenedForGpu(Bytes bytes) {
  INGOT_ASSIGN_OR_RETURN(const std::shared_ptr<const Executable> executable, Open(std::move(bytes)));
  return OnGpu(executable).status();
}

Status Verified(const Bytes& bytes) {
  const formats::Container file = formats::Container::Open(SharedBytes::Own(bytes)).value();
  return VerifySecondProgram(file, DecodeProgram(file).value(), {});
}

// What the doctor says of the second program.
Finding Diagnosed(const Bytes& bytes) {
  const SharedBytes shared = SharedBytes::Own(bytes);
  const formats::Container file = formats::Container::Open(shared).value();
  DoctorOptions options;
  options.file = shared.bytes;
  std::vector<Finding> findings = Diagnose(file, DecodeProgramWithoutWeights(file).value(), options);
  for (Finding& finding : findings)
    if (finding.needs.starts_with("cuda") || finding.needs == kDeviceProgramName) return std::move(finding);
  return {};
}

bool IsRight(Context& context, const Executable& executable, int64_t by, int64_t factor) {
  const Tensor x = *Tensor::Allocate(DataType::Int(64), std::vector<int64_t>{1});
  x.MutableElements<int64_t>()[0] = 5;
  const auto results = context.Invoke(executable.program().functions[0], std::vector<Value>{x});
  REQUIRE_MESSAGE(results.ok(), results.status().message());
  return std::get<Tensor>((*results)[0]).Elements<int64_t>()[0] == (5 + by) * factor;
}

TEST_CASE("second program: contexts for a GPU run it, others the file's own") {
  const Bytes bytes = Both(OnCpu(), MakeProgram("sm_80", "cuda", Form::kOnDevice).value());
  const auto executable = Open(bytes).value();
  CHECK(IsRight(*Context::Create(executable).value(), *executable, 0, 1));
  CHECK(IsRight(*OnGpu(executable).value(), *executable, kBy, Factors()[0]));
  CHECK(Verified(bytes).ok());
  CHECK(Diagnosed(bytes).verdict == StatusCode::kOk);
}

// With a section of this size that nobody reads, and a byte of the first kilobyte changed.
Bytes LargeAndDamaged(size_t size) {
  const Program program = MakeProgram("sm_80", "cuda", Form::kOnDevice).value();  // whose bytes the container refers to
  EncodedProgram encoded = EncodedProgram::Encode(program).value();
  const Bytes unread(size);
  formats::ContainerWriter::Options options;
  options.is_required = false;
  options.name = "unread";
  REQUIRE(encoded.container().Add(formats::SectionKind{60}, 0, {unread}, options).ok());
  const Bytes inner = encoded.container().ToBytes().value();
  Bytes bytes = WithSection(OnCpu(), inner);
  const auto at = std::search(bytes.begin(), bytes.end(), inner.begin(), inner.begin() + 512);
  REQUIRE(at != bytes.end());
  at[100] ^= std::byte{1};
  return bytes;
}

TEST_CASE("second program: nobody reads it who runs on the CPU, damage there harms contexts for a GPU alone") {
  const Bytes bytes = LargeAndDamaged(formats::kUnhashedConstantBytes);
  const auto executable = Open(bytes).value();
  CHECK(IsRight(*Context::Create(executable).value(), *executable, 0, 1));
  for (int i = 0; i < 2; ++i) CHECK(OnGpu(executable).status().code() == StatusCode::kCorrupt);
  CHECK(IsRight(*Context::Create(executable).value(), *executable, 0, 1));
  OpenOptions all;
  all.verify_constants = true;
  CHECK(Open(bytes, all).status().code() == StatusCode::kCorrupt);
  CHECK(Verified(bytes).code() == StatusCode::kCorrupt);
  CHECK(Open(LargeAndDamaged(0)).status().code() == StatusCode::kCorrupt);  // a small one costs nothing to hash
  // Damage that the outer hashes do not show.
  const auto garbage = Open(WithSection(OnCpu(), Bytes(1500, std::byte{42}))).value();
  CHECK(IsRight(*Context::Create(garbage).value(), *garbage, 0, 1));
  CHECK(OnGpu(garbage).status().code() == StatusCode::kCorrupt);
}

TEST_CASE("second program: contexts for a GPU are refused with stub kernels, others are not") {
  OpenOptions stubs;
  stubs.stub_kernels = true;
  const auto executable = Open(Both(OnCpu(), MakeProgram("sm_80", "cuda", Form::kOnDevice).value()), stubs).value();
  CHECK(IsRight(*Context::Create(executable).value(), *executable, 0, 1));
  const Status refused = OnGpu(executable).status();
  CHECK(refused.code() == StatusCode::kUnsupportedFile);
  CHECK(refused.message() == "both: device_program: not with stub kernels");
}

TEST_CASE("second program: it is opened once, by whichever thread comes first") {
  const auto executable = Open(Both(OnCpu(), MakeProgram("sm_80", "cuda", Form::kOnDevice).value())).value();
  const Executable* seen[4] = {};
  std::vector<std::thread> threads;
  for (const Executable*& out : seen)
    threads.emplace_back([&out, &executable] { out = executable->ForGpu().value().get(); });
  for (std::thread& thread : threads) thread.join();
  for (const Executable* const one : seen) CHECK(one == seen[0]);
}

TEST_CASE("second program: functions of other signatures than the file's are refused, by the doctor and --verify too") {
  const Program gpu = MakeProgram("sm_80", "cuda", Form::kOnDevice).value();
  const std::string two = "register r2: owned int64[n]\n alloc_output r2, 0, [n]\n copy_into r2, r1\n return [r2, r2]";
  const std::string scalar = "register r2: int\n const_int r2, 1\n return [r2]";
  const std::string narrow = "register r2: owned int32[n]\n alloc_output r2, 0, [n]\n copy_into r2, r1\n return [r2]";
  const std::string fixed = "register r1: owned int64[9]\n alloc_output r1, 0, [9]\n copy_into r1, r0\n return [r1]";
  struct Case {
    const char* what;
    Program program;
  };
  const std::vector<Case> cases = {
      {"a name", OnCpu("other")},
      {"the number of results", OnCpu("main", kSymbols, kParams, "y: int64[n], z: int64[n]", two)},
      {"a result's kind", OnCpu("main", kSymbols, kParams, "y: int", scalar)},
      {"an element type", OnCpu("main", kSymbols, "x: int32[n]", "y: int32[n]", narrow)},
      {"a parameter's name", OnCpu("main", kSymbols, "z: int64[n]")},
      {"a result's name", OnCpu("main", kSymbols, kParams, "z: int64[n]")},
      {"a symbol's bounds", OnCpu("main", "[n in 0..1001]")},
      {"extents", OnCpu("main", "", "x: int64[9]", "y: int64[9]", fixed)},
      {"a parameter's storage", OnCpu("main", kSymbols, "x: borrowed_mut int64[n]")},
  };
  for (const Case& row : cases) {
    CAPTURE(row.what);
    for (const Bytes& bytes : {Both(row.program, gpu), Both(OnCpu(), row.program)}) {
      const Status refused = OpenedForGpu(bytes);
      CHECK_MESSAGE(refused.code() == StatusCode::kCorrupt, refused.message());
      CHECK_MESSAGE(refused.message().find("device_program: function \"") != std::string::npos, refused.message());
      CHECK(Verified(bytes).code() == StatusCode::kCorrupt);
      CHECK(Diagnosed(bytes).verdict == StatusCode::kCorrupt);
    }
  }
}

TEST_CASE("second program: a section that is not stored raw is refused, whatever would come out of it") {
  const Bytes inner = EncodeProgram(MakeProgram("sm_80", "cuda", Form::kOnDevice).value()).value();
  const Bytes bytes = WithSection(OnCpu(), inner, formats::Codec::kZstd);
  REQUIRE(formats::Container::Open(SharedBytes::Own(bytes))->Find(kDeviceProgramSection)->codec ==
          formats::Codec::kZstd);
  for (const Status& refused : {OpenedForGpu(bytes), Verified(bytes)}) {
    CHECK(refused.code() == StatusCode::kCorrupt);
    CHECK_MESSAGE(refused.message().find("section device_program: is not stored raw") != std::string::npos,
                  refused.message());
  }
  CHECK(Diagnosed(bytes).verdict == StatusCode::kCorrupt);
}

TEST_CASE("second program: --verify finds damage in it, and a diff tells two of them apart") {
  const Bytes sound = Both(OnCpu(), MakeProgram("sm_80", "cuda", Form::kOnDevice).value());
  const Bytes other = Both(OnCpu(), MakeProgram("sm_90", "cuda", Form::kOnDevice).value());
  const Bytes garbage = WithSection(OnCpu(), Bytes(1500, std::byte{42}));
  CHECK(Verified(garbage).message().starts_with("device_program: "));
  CHECK(OpenedForGpu(garbage).message().find("device_program: ") != std::string::npos);
  const auto diff = [](const Bytes& a, const Bytes& b) {
    return DiffSecondPrograms(formats::Container::Open(SharedBytes::Own(a)).value(),
                              formats::Container::Open(SharedBytes::Own(b)).value());
  };
  const Bytes none = EncodeProgram(OnCpu()).value();
  CHECK(diff(sound, sound).empty());
  CHECK(diff(none, none).empty());
  CHECK(diff(none, sound) == std::vector<std::string>{"device_program: only in the second file"});
  CHECK(diff(sound, none) == std::vector<std::string>{"device_program: only in the first file"});
  CHECK(diff(sound, garbage) == std::vector<std::string>{"device_program: the bytes differ"});
  REQUIRE_FALSE(diff(sound, other).empty());
  CHECK_MESSAGE(diff(sound, other)[0].find("sm_90") != std::string::npos, diff(sound, other)[0]);
}

TEST_CASE("second program: results that do not fill the caller's room are not converted") {
  ingot_value room[2] = {};
  const std::vector<Value> values(2, Value(int64_t{1}));
  CHECK(capi::FromValues(values, nullptr, room, 1).code() == StatusCode::kFailed);
  CHECK(room[0].as.i == 0);
  CHECK(capi::FromValues(values, nullptr, room, 2).ok());
  CHECK(room[1].as.i == 1);
}

}  // namespace
}  // namespace ingot::vm
