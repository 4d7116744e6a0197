// Damaged executables: every truncation and every byte of small seeds changed, as they are and with the hashes
// recomputed. Opening each takes at most 64 bytes per byte of it and 1 MiB; it is refused, or runs on stub kernels under
// fuel and a memory cap; nothing else may happen (sanitizers watch). INGOT_HOSTILE=long tries every bit and more values
// per byte.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>

#include "formats/container_writer.h"
#include "tests/allocation_counter.h"
#include "tests/formats/recompute_hashes.h"
#include "tests/vm/elf_image.h"
#include "tests/vm/made_arguments.h"
#include "tests/vm/round_trip.h"
#include "vm/program/limits.h"
#include "vm/program/program_codec.h"
#include "vm/run/context.h"

namespace ingot::vm {
namespace {

struct Seed {
  const char* name;
  std::string text;
};

std::vector<Seed> Seeds() {
  return {
      {"native", test::Add16Program()},
      {"symbolic", R"(ingot 1
constant "w" float32[4] = 1, 2, 3, 4
kernel @k {
  int n: int64
  in a: float32[n, 4]
  in b: float32[4]
  out c: float32[n * 4]
  workspace n * 8
}
function @main export [n in 1..8](x: float32[n, 4]) -> (y: float32[n * 4]) {
  register r2: arena float32[n * 4]
  register r3: constant float32[4]
  register r4: float32[n * 4]
  register r5: arena float32[n, 4]
  arena device 0, size (n * 16 + 63) // 64 * 64
  entry 0: arena 0, offset 0, size n * 16, live 0..5
  note "dense"
  plan_view r2, 0, [n * 4]
  const_tensor r3, #0
  call_kernel @k, [r1, r3, r2], [r0]
  view r5, r2, 0, [n, 4]
  alloc_output r4, 0, [n * 4]
  call_kernel @k, [r5, r3, r4], [r0]
  return [r4]
})"},
      {"prepared", R"(ingot 1
constant "w" float32[2, 3] = 1, 2, 3, 4, 5, 6
constant "packed" float32[3, 2] = prepared @prepare 0
function @prepare () -> (p: float32[3, 2]) {
  register r0: constant float32[2, 3]
  register r1: float32[3, 2]
  register r2: shape[?, ?]
  const_tensor r0, #0
  alloc_output r1, 0, [3, 2]
  shape r2, [1, 0]
  call_builtin [], permute, [r1, r0, r2]
  return [r1]
}
function @main export (x: float32[3, 2]) -> (y: float32[3, 2]) {
  register r1: constant float32[3, 2]
  register r2: float32[3, 2]
  const_tensor r1, #1
  alloc_output r2, 0, [3, 2]
  call_builtin [], mul, [r2, r0, r1]
  return [r2]
})"},
      {"cache", R"(ingot 1
state @past int64[] device 0
state @cache float32[2, 4] device 0 grows axis 1 by @past
function @main export [past in 0..4 state #0](x: float32[2, 1]) -> (y: float32[past + 1]) {
  register r2: borrowed_mut float32[2, 4]
  register r3: int
  register r4: borrowed_mut int64[]
  register r5: int
  register r6: borrowed_mut float32[past + 1]
  register r7: float32[past + 1]
  state r2, @cache
  const_int r3, 1
  call_builtin [], cache_append, [r2, r1, r3, r0]
  view r6, r2, 0, [past + 1]
  alloc_output r7, 0, [past + 1]
  copy_into r7, r6
  state r4, @past
  dim r5, past + 1
  call_builtin [], store_int, [r4, r5]
  return [r7]
})"},
      {"values", R"(ingot 1
state @s float32[2] device 0
function @count (n: int, t: float32[2]) -> (m: int) {
  register r2: int
  register r3: bool
  const_int r2, 0
loop:
  dim r2, r2 + 1
  test r3, r2 < r0
  branch r3, loop, done
done:
  return [r2]
}
function @main export (n: int, x: float32[2]) -> (t: tuple(int, string), o: optional(int)) {
  register r2: float32[2]
  register r3: fn(borrowed float32[2]) -> (int)
  register r4: int
  register r5: string
  register r6: tuple(int, string)
  register r7: optional(int)
  register r8: borrowed_mut float32[2]
  register r9: fn(int, borrowed float32[2]) -> (int)
  state r8, @s
  copy_into r8, r1
  copy r2, r8
  call_builtin [], add, [r2, r1, r8]
  make_closure r9, @count, []
  call_closure [r4], r9, [r0, r2]
  const_string r5, "text"
  call_builtin [], print, [r5, r4]
  tuple r6, [r4, r5]
  some r7, r4
  return [r6, r7]
})"},
  };
}

class Hostile {
 public:
  Hostile() {
    InstanceOptions options;
    options.num_threads = 1;
    instance_ = *Instance::Create(options);
  }

  void Try(const std::vector<std::byte>& bytes) {
    // An exact copy of the bytes lets sanitizers see reads beyond their end.
    const SharedBytes shared = SharedBytes::Own(bytes);
    OpenOptions open;
    open.stub_kernels = true;
    const int64_t before = test::LiveBytes();
    test::TakePeakBytes();
    const auto executable = Executable::OpenMemory(instance_, shared, "m", open);
    const int64_t peak = test::TakePeakBytes() - before, size = static_cast<int64_t>(bytes.size());
    CHECK(peak <= kBytesPerByte * size + kFreeBytes);
    most_bytes_per_byte_ = std::max(most_bytes_per_byte_, static_cast<double>(peak) / static_cast<double>(size));
    ++num_tried_;
    if (!executable.ok()) {
      const StatusCode code = executable.status().code();
      CHECK((code == StatusCode::kCorrupt || code == StatusCode::kUnsupportedFile || code == StatusCode::kOutOfMemory));
      return;
    }
    ContextOptions options;
    options.fuel = 10'000;
    options.max_memory_bytes = 16 << 20;
    const auto context = Context::Create(*executable, std::move(options));
    if (!context.ok()) return;
    for (const Function& function : (*executable)->program().functions) {
      if (!function.exported) continue;
      if (const auto arguments = test::MakeArguments(function)) {
        num_ran_ += (*context)->Invoke(function, *arguments).ok() ? 1 : 0;
      }
    }
  }

  int64_t num_tried() const { return num_tried_; }
  int64_t num_ran() const { return num_ran_; }
  double most_bytes_per_byte() const { return most_bytes_per_byte_; }

 private:
  std::shared_ptr<Instance> instance_;
  int64_t num_tried_ = 0;
  int64_t num_ran_ = 0;
  double most_bytes_per_byte_ = 0;
};

bool IsLong() {
  const char* mode = std::getenv("INGOT_HOSTILE");
  return mode != nullptr && std::string(mode) == "long";
}

TEST_CASE("hostile: every truncation is refused") {
  Hostile hostile;
  for (const Seed& seed : Seeds()) {
    const std::vector<std::byte> bytes = *EncodeProgram(test::Assembled(seed.text));
    const size_t step = IsLong() ? 1 : 7;
    for (size_t size = 0; size < bytes.size(); size += step) {
      std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      hostile.Try(cut);
      test::RecomputeContainerHashes(cut);
      hostile.Try(cut);
    }
  }
  CHECK(hostile.num_ran() == 0);
  MESSAGE("truncated executables: ", hostile.num_tried());
}

TEST_CASE("hostile: every byte changed is a refusal or a clean run") {
  Hostile hostile;
  for (const Seed& seed : Seeds()) {
    CAPTURE(seed.name);
    const std::vector<std::byte> bytes = *EncodeProgram(test::Assembled(seed.text));
    hostile.Try(bytes);
    CHECK(hostile.num_ran() > 0);
    for (size_t i = 0; i < bytes.size(); ++i) {
      // A flipped bit and 0xff; the long run tries all bits and more values. Without recomputed hashes the short run
      // tries every 16th byte only.
      std::vector<std::byte> values = {bytes[i] ^ static_cast<std::byte>(1 << (i % 8)), std::byte{0xff}};
      if (IsLong()) {
        values = {std::byte{0}, std::byte{0x7f}, std::byte{0x80}, std::byte{0xff}};
        for (int bit = 0; bit < 8; ++bit) values.push_back(bytes[i] ^ static_cast<std::byte>(1 << bit));
        values.push_back(static_cast<std::byte>(std::to_integer<int>(bytes[i]) + 1));
        values.push_back(static_cast<std::byte>(std::to_integer<int>(bytes[i]) - 1));
      }
      for (std::byte value : values) {
        if (value == bytes[i]) continue;
        std::vector<std::byte> damaged = bytes;
        damaged[i] = value;
        if (IsLong() || i % 16 == 0) hostile.Try(damaged);
        test::RecomputeContainerHashes(damaged);
        hostile.Try(damaged);
      }
    }
  }
  MESSAGE("hostile executables: ", hostile.num_tried(), ", of which calls ran: ", hostile.num_ran(),
          "; opening took at most ", hostile.most_bytes_per_byte(), " bytes per byte");
}

// Whatever stands there, as an integer of that many bytes, becomes one of its neighbours and of the limits of 31 to 64
// bits: where sums and products of counts, offsets and sizes wrap.
std::vector<uint64_t> Limits(uint64_t value, int width) {
  std::vector<uint64_t> limits = {0,
                                  1,
                                  value - 1,
                                  value + 1,
                                  (uint64_t{1} << 31) - 1,
                                  uint64_t{1} << 31,
                                  (uint64_t{1} << 31) + 1,
                                  (uint64_t{1} << 32) - 1};
  if (width == 8) {
    for (const uint64_t large : {uint64_t{1} << 32, (uint64_t{1} << 63) - 1, uint64_t{1} << 63, ~uint64_t{0}}) {
      limits.push_back(large);
    }
  }
  return limits;
}

TEST_CASE("hostile: every integer changed to a limit is a refusal or a clean run") {
  Hostile hostile;
  size_t number = 0;  // the short run takes one of 32
  for (const Seed& seed : Seeds()) {
    CAPTURE(seed.name);
    const std::vector<std::byte> bytes = *EncodeProgram(test::Assembled(seed.text));
    for (const int width : {4, 8}) {
      for (size_t i = 0; i + static_cast<size_t>(width) <= bytes.size(); ++i) {
        uint64_t value = 0;
        std::memcpy(&value, &bytes[i], static_cast<size_t>(width));
        for (const uint64_t limit : Limits(value, width)) {
          if (!IsLong() && ++number % 32 != 0) continue;
          std::vector<std::byte> damaged = bytes;
          std::memcpy(&damaged[i], &limit, static_cast<size_t>(width));
          if (damaged == bytes) continue;
          hostile.Try(damaged);
          test::RecomputeContainerHashes(damaged);
          hostile.Try(damaged);
        }
      }
    }
  }
  CHECK(hostile.num_tried() > 1000);
  MESSAGE("changed integers: ", hostile.num_tried(), ", of which calls ran: ", hostile.num_ran());
}

}  // namespace
}  // namespace ingot::vm
