#include "vm/run/executable.h"

#include <doctest/doctest.h>
#include <elf.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/cpu_features.h"
#include "tests/vm/elf_image.h"
#include "tests/vm/round_trip.h"
#include "vm/program/foreign_image.h"
#include "vm/program/program_codec.h"
#include "vm/run/context.h"

namespace ingot::vm {
namespace {

std::string TemporaryPath(const char* name) {
  return (std::filesystem::temp_directory_path() / (std::string("ingot_") + std::to_string(getpid()) + name)).string();
}

std::shared_ptr<Instance> NewInstance() {
  InstanceOptions options;
  options.num_threads = 1;
  return *Instance::Create(options);
}

std::vector<float> Double(const std::shared_ptr<const Executable>& executable) {
  const auto context = *Context::Create(executable);
  Tensor x = *Tensor::Allocate(DataType::Float(32), std::vector<int64_t>{16});
  for (int i = 0; i < 16; ++i) x.MutableElements<float>()[i] = static_cast<float>(i);
  const Value argument = x;
  const std::vector<Value> results = *context->Invoke(**executable->Find("main"), {&argument, 1});
  const auto y = std::get<Tensor>(results[0]).Elements<float>();
  return {y.begin(), y.end()};
}

std::vector<float> Evens() {
  std::vector<float> out;
  for (int i = 0; i < 16; ++i) out.push_back(static_cast<float>(2 * i));
  return out;
}

#if defined(__x86_64__)
TEST_CASE("native kernels run from a mapped file and from memory, but only when trusted") {
  const Program program = test::Assembled(test::Add16Program());
  const std::string path = TemporaryPath("native.ingot");
  REQUIRE(WriteProgram(program, path).ok());
  OpenOptions trusted;
  trusted.trust = Trust::kFile;

  const auto mapped = Executable::Open(NewInstance(), path, trusted);
  REQUIRE_MESSAGE(mapped.ok(), mapped.status().ToString());
  CHECK((*mapped)->linked().images[0]->is_mapped_file());
  CHECK(Double(*mapped) == Evens());

  const std::vector<std::byte> bytes = *EncodeProgram(program);
  // Bytes in memory may lie anywhere.
  std::vector<std::byte> shifted(bytes.size() + 1);
  std::copy(bytes.begin(), bytes.end(), shifted.begin() + 1);
  const SharedBytes unaligned(nullptr, std::span<const std::byte>(shifted).subspan(1));
  const auto in_memory = Executable::OpenMemory(NewInstance(), unaligned, "m", trusted);
  REQUIRE(in_memory.ok());
  CHECK_FALSE((*in_memory)->linked().images[0]->is_mapped_file());
  CHECK(Double(*in_memory) == Evens());

  const auto refused = Executable::Open(NewInstance(), path, {});
  CHECK(refused.status().code() == StatusCode::kNotTrusted);
  OpenOptions stubs;
  stubs.stub_kernels = true;
  CHECK(Double(*Executable::Open(NewInstance(), path, stubs)).size() == 16);
  std::filesystem::remove(path);
}
#endif

TEST_CASE("the first variant that the CPU covers is taken; none is an error that says what is missing") {
  Program program = test::Assembled(test::Add16Program());
  OpenOptions trusted;
  trusted.trust = Trust::kFile;
  KernelVariant impossible = program.kernels[0].variants[0];
  impossible.required_features = uint64_t{1} << 63;
  program.kernels[0].variants.insert(program.kernels[0].variants.begin(), impossible);
  CHECK(Double(*Executable::FromProgram(NewInstance(), program, "p", trusted)) == Evens());
  program.kernels[0].variants.pop_back();
  const auto none = Executable::FromProgram(NewInstance(), program, "p", trusted);
  CHECK(none.status().code() == StatusCode::kUnsupportedFile);
  CHECK(none.status().message().find("bit63") != std::string::npos);
  program.kernels[0].variants.clear();
  CHECK(Executable::FromProgram(NewInstance(), program, "p", trusted).status().message() ==
        "p: kernel \"add\" has no code; it runs as a stub only");
}

TEST_SUITE("checks") {
  TEST_CASE("an image of any other form is refused") {
    const std::vector<std::byte> good = test::Add16Image();
    CHECK(ReadElfImage(good).ok());
    const auto with = [&](size_t offset, int value) {
      std::vector<std::byte> bytes = good;
      bytes[offset] = static_cast<std::byte>(value);
      return ReadElfImage(bytes).ok();
    };
    CHECK_FALSE(with(0, 0));      // magic
    CHECK_FALSE(with(4, 1));      // 32 bits
    CHECK_FALSE(with(16, 2));     // an executable
    CHECK_FALSE(with(18, 0x28));  // another machine
    CHECK_FALSE(ReadElfImageFor(HostElfMachine() == EM_X86_64 ? "aarch64" : "x86_64", good).ok());
    CHECK(ReadElfImageFor("later", good).ok());  // not known here
    CHECK_FALSE(with(54, 55));                   // size of program headers
    CHECK_FALSE(with(56, 0));                    // none
    CHECK_FALSE(with(64 + 4, 7));                // writable
    CHECK_FALSE(with(64 + 8, 1));                // not from its beginning
    CHECK_FALSE(with(64 + 40, 0));               // more memory than file
    CHECK_FALSE(with(64, 7));                    // thread-local storage
    for (size_t size = 0; size < good.size(); ++size) {
      const std::vector<std::byte> cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
      CHECK_FALSE(ReadElfImage(cut).ok());
    }
  }
}

TEST_CASE("a file that is not there, and one that is none") {
  CHECK(Executable::Open(NewInstance(), "/nonexistent/x.ingot", {}).status().code() == StatusCode::kIo);
  CHECK(Executable::Open(NewInstance(), "/dev/null", {}).status().code() == StatusCode::kIo);
}

TEST_CASE("a kernel without parameters is called") {
  const Program program = test::Assembled(R"(ingot 1
kernel @nothing {
  effects may_fail
}
function @main export () -> () {
  call_kernel @nothing, [], []
  return []
}
)");
  OpenOptions stubs;
  stubs.stub_kernels = true;
  const auto executable = *Executable::FromProgram(NewInstance(), program, "m", stubs);
  const auto context = *Context::Create(executable);
  CHECK(context->Invoke(**executable->Find("main"), {}).ok());
}

TEST_CASE("a device of a negative index is refused") {
  Program program = test::Assembled("ingot 1\nfunction @main export () -> () {\n  return []\n}\n");
  REQUIRE(Executable::FromProgram(NewInstance(), program, "m", {}).ok());
  program.devices[0].index = -1;
  const Status status = Executable::FromProgram(NewInstance(), program, "m", {}).status();
  CHECK(status.code() == StatusCode::kCorrupt);
  CHECK(status.message().ends_with("device \"cpu\" has the index -1 [DeviceId]"));
}

}  // namespace
}  // namespace ingot::vm
