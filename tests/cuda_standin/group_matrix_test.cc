// wgmma beside sums of the host: every number of columns, both types, both orders of each factor; and what is said of a
// kernel that does not order it with the rest.
#include <doctest/doctest.h>

#include <cstring>
#include <numeric>
#include <random>

#include "tests/cuda_standin/float_formats.h"
#include "tests/cuda_standin/instruction_table.h"
#include "tests/cuda_standin/machine.h"
#include "tests/cuda_standin/ptx_bodies.h"

namespace ingot::ptx {
namespace {

constexpr int kRows = 64, kDepth = 16, kThreads = 128;
constexpr int kSharedBytes = 40 << 10, kBytesOfA = 8 << 10;

struct Form {
  int columns;
  bool is_bfloat, a_turned, b_turned, adds = true;
  int sign_a = 1, sign_b = 1;
};

// A factor in shared memory: rows of 128 bytes along k, or along the side in panels of 64, whose 16-byte parts are
// swapped by the row's number.
size_t PlaceOf(bool is_turned, int side, int k) {
  const int row = is_turned ? side / 64 * kDepth + k : side, column = is_turned ? side % 64 : k;
  return static_cast<size_t>(row * 128 + ((column / 8) ^ (row % 8)) * 16 + column % 8 * 2);
}
uint64_t DescriptorOf(bool is_turned, int byte) {
  const uint64_t leading = is_turned ? kDepth * 128 : 16;
  return uint64_t{1} << 62 | uint64_t{1024 >> 4} << 32 | (leading >> 4) << 16 | static_cast<uint64_t>(byte >> 4);
}

// D += A B of what `shared` has, in one block of four warps.
std::string KernelOf(const Form& form) {
  const int registers = form.columns / 2;
  const char* type = form.is_bfloat ? "bf16" : "f16";
  std::string sums;
  for (int r = 0; r < registers; ++r) sums += StrCat({r > 0 ? ", %f" : "%f", r});
  std::string text = StrCat(
      {".version 8.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n"
       ".visible .entry k(.param .u64 x, .param .u64 y)\n{\n.reg .b64 %d<9>;\n.reg .b32 %r<9>;\n.reg .pred %p<3>;\n"
       ".reg .f32 %f<",
       registers,
       ">;\nld.param.u64 %d0, [x];\nld.param.u64 %d1, [y];\nmov.u32 %r0, %tid.x;\nmul.wide.u32 %d2, %r0, 4;\n"
       "add.s64 %d3, %d0, %d2;\nmov.u64 %d4, smem;\nadd.s64 %d4, %d4, %d2;\nmov.u32 %r1, 0;\n"
       "fill: ld.global.u32 %r2, [%d3];\nst.shared.u32 [%d4], %r2;\nadd.s64 %d3, %d3, 512;\nadd.s64 %d4, %d4, 512;\n"
       "add.s32 %r1, %r1, 512;\nsetp.lt.s32 %p0, %r1, ",
       kSharedBytes, ";\n@%p0 bra fill;\nadd.s64 %d1, %d1, %d2;\n"});
  for (int r = 0; r < registers; ++r) text += StrCat({"ld.global.f32 %f", r, ", [%d1+", r * kThreads * 4, "];\n"});
  text += StrCat({"fence.proxy.async;\nbar.sync 0;\nmov.u64 %d5, ",
                  DescriptorOf(form.a_turned, 0),
                  ";\nmov.u64 %d6, ",
                  DescriptorOf(form.b_turned, kBytesOfA),
                  ";\nsetp.eq.s32 %p1, %r1, ",
                  form.adds ? kSharedBytes : 0,
                  ";\nwgmma.fence.sync.aligned;\n",
                  "wgmma.mma_async.sync.aligned.m64n",
                  form.columns,
                  "k16.f32.",
                  type,
                  ".",
                  type,
                  " {",
                  sums,
                  "}, %d5, %d6, %p1, ",
                  form.sign_a,
                  ", ",
                  form.sign_b,
                  ", ",
                  form.a_turned ? 1 : 0,
                  ", ",
                  form.b_turned ? 1 : 0,
                  ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"});
  for (int r = 0; r < registers; ++r) text += StrCat({"st.global.f32 [%d1+", r * kThreads * 4, "], %f", r, ";\n"});
  return text + "ret;\n}\n";
}

// Runs the kernel on the bytes of shared memory and the sums, which it replaces.
Status Run(const std::string& text, const std::vector<uint8_t>& shared, std::vector<float>& sums) {
  Machine machine({.sm = 90});
  INGOT_ASSIGN_OR_RETURN(const ModuleId module, machine.LoadModule(text));
  const auto bytes = static_cast<int64_t>(sums.size() * 4);
  INGOT_ASSIGN_OR_RETURN(const uint64_t x, machine.Allocate(kSharedBytes));
  INGOT_ASSIGN_OR_RETURN(const uint64_t y, machine.Allocate(bytes));
  INGOT_RETURN_IF_ERROR(machine.Write(x, shared.data(), kSharedBytes));
  INGOT_RETURN_IF_ERROR(machine.Write(y, sums.data(), bytes));
  INGOT_RETURN_IF_ERROR(
      machine.Launch(module, "k", {{1, 1, 1}, {kThreads, 1, 1}, kSharedBytes}, Arguments().Add(x).Add(y)).status());
  return machine.Read(sums.data(), y, bytes);
}

TEST_CASE("ptx wgmma: every number of columns, beside sums of the host") {
  std::mt19937_64 random(5);
  for (const char* opcode : {"wgmma.fence.sync.aligned", "wgmma.commit_group.sync.aligned",
                             "wgmma.wait_group.sync.aligned", "fence.proxy.async"}) {
    Instruction ignored;
    CoveredRows().insert(FindRow(opcode, ignored));
  }
  for (int columns = 8; columns <= 256; columns += 8) {
    for (const bool is_bfloat : {false, true}) {
      const int number = columns / 8 + (is_bfloat ? 1 : 0);
      const Form form{columns,         is_bfloat,           number % 2 != 0,    number / 2 % 2 != 0,
                      number % 5 != 0, number % 3 ? 1 : -1, number % 7 ? 1 : -1};
      CAPTURE(columns);
      CAPTURE(is_bfloat);
      Instruction ignored;
      CoveredRows().insert(FindRow(
          StrCat({"wgmma.mma_async.sync.aligned.m64n", columns, "k16.f32.", is_bfloat ? "bf16.bf16" : "f16.f16"}),
          ignored));
      std::vector<uint8_t> shared(kSharedBytes);
      std::vector<int> a(kRows * kDepth), b(static_cast<size_t>(columns * kDepth));
      const auto fill = [&](std::vector<int>& values, bool is_turned, size_t base) {
        for (size_t i = 0; i < values.size(); ++i) {
          values[i] = static_cast<int>(random() % 9) - 4;
          const auto value = static_cast<float>(values[i]);
          uint32_t word = 0;
          std::memcpy(&word, &value, 4);
          const uint16_t bits = is_bfloat ? static_cast<uint16_t>(word >> 16)
                                          : static_cast<uint16_t>(RoundTo(kHalfFormat, value, Rounding::kNearest));
          std::memcpy(
              shared.data() + base + PlaceOf(is_turned, static_cast<int>(i) / kDepth, static_cast<int>(i) % kDepth),
              &bits, 2);
        }
      };
      fill(a, form.a_turned, 0);
      fill(b, form.b_turned, kBytesOfA);
      // Of thread t, register r: row 16 (t / 32) + t % 32 / 4 + 8 (r / 2 % 2), column 8 (r / 4) + 2 (t % 4) + r % 2.
      std::vector<float> sums(static_cast<size_t>(columns / 2 * kThreads)), expected(sums.size());
      for (int t = 0; t < kThreads; ++t) {
        for (int r = 0; r < columns / 2; ++r) {
          const int row = 16 * (t / 32) + t % 32 / 4 + 8 * (r / 2 % 2), column = 8 * (r / 4) + 2 * (t % 4) + r % 2;
          const auto at = static_cast<size_t>(r * kThreads + t);
          sums[at] = static_cast<float>(random() % 100);
          int sum = 0;
          for (int k = 0; k < kDepth; ++k) {
            sum += a[static_cast<size_t>(row * kDepth + k)] * b[static_cast<size_t>(column * kDepth + k)];
          }
          expected[at] = static_cast<float>(sum * form.sign_a * form.sign_b) + (form.adds ? sums[at] : 0);
        }
      }
      const Status status = Run(KernelOf(form), shared, sums);
      REQUIRE_MESSAGE(status.ok(), status.message());
      CHECK(sums == expected);
    }
  }
}

TEST_CASE("ptx wgmma: what is not ordered, or means nothing, is said") {
  const std::string right = KernelOf({16, false, false, false});
  const std::vector<uint8_t> shared(kSharedBytes);
  std::vector<float> sums(8 * kThreads);
  std::iota(sums.begin(), sums.end(), 0.0f);
  const auto said = [&](const char* from, const std::string& to) {
    std::string text = right;
    REQUIRE(text.find(from) != std::string::npos);
    std::vector<float> own = sums;
    return std::string(Run(text.replace(text.find(from), std::strlen(from), to), shared, own).message());
  };
  CHECK(said("ret;", "ret;") == "");
  constexpr struct {
    const char *from, *to, *message;
  } kWrong[] = {
      {"wgmma.fence.sync.aligned;", "", "the registers of a wgmma were not fenced"},
      {"fence.proxy.async;", "", "did not make it visible"},
      {"fence.proxy.async;", "setp.ge.s32 %p2, %r0, 32;\n@%p2 fence.proxy.async;", "did not make it visible"},
      {"bar.sync 0;", "", "shared memory"},
      {"wgmma.commit_group.sync.aligned;", "", "stores a value that was never computed"},
      {"wgmma.wait_group.sync.aligned 0;", "", "stores a value that was never computed"},
      {"wgmma.wait_group.sync.aligned 0;", "mov.f32 %f0, %f1;\nwgmma.wait_group.sync.aligned 0;",
       "a register was written while a wgmma had it"},
      {"wgmma.wait_group.sync.aligned 0;", "mov.f32 %f0, 0f00000000;\nwgmma.wait_group.sync.aligned 0;",
       "a register was written while a wgmma had it"},
      {"wgmma.wait_group.sync.aligned 0;", "st.shared.u32 [smem], %r0;\nwgmma.wait_group.sync.aligned 0;",
       "writes shared memory that a wgmma may still read"},
      {"ret;", "st.shared.u32 [%d2], %r0;\nret;", "a race"},
      {"ld.global.f32 %f0, [%d1+0];", "", "a fragment that was never computed"},
      {"%d5, %d6, %p1, 1", "%d5, %d6, %p1, 2", "signs are 1 or -1"},
      {"%d5, %d6", "%d7, %d6", "a matrix descriptor that was never computed"},
      {"wgmma.fence", "add.s64 %d5, %d5, %d2;\nwgmma.fence", "lanes have different matrix descriptors"},
      {"wgmma.fence", "shr.u32 %r3, %r0, 5;\nmul.wide.u32 %d7, %r3, 64;\nadd.s64 %d5, %d5, %d7;\nwgmma.fence",
       "the warps of a group of four give different products"},
      {"wgmma.fence", "add.s64 %d5, %d5, 8;\nwgmma.fence", "does not begin where its swizzling pattern does"},
      {"wgmma.fence", "xor.b64 %d5, %d5, 16384;\nwgmma.fence", "has bits that mean nothing"},
      {"wgmma.fence", "shl.b64 %d5, %d5, 1;\nwgmma.fence", "128-byte swizzling"},
      {"wgmma.fence", "add.s64 %d5, %d5, 8192;\nwgmma.fence", "shared memory"},
      {"setp.eq.s32 %p1, %r1, 40960", "setp.eq.s32 %p1, %r0, 5", "lanes differ in whether they add"},
      {".target sm_90a", ".target sm_90", "needs .target sm_90a"},
  };
  for (const auto& wrong : kWrong) {
    CAPTURE(std::string(wrong.to));
    const std::string message = said(wrong.from, wrong.to);
    CHECK_MESSAGE(message.find(wrong.message) != std::string::npos, message);
  }
  // One warp of the four runs none.
  std::string text = right;
  const size_t begin = text.find("wgmma.fence"), end = text.find("st.global.f32");
  text.insert(end, "done:\n").insert(begin, "setp.lt.s32 %p2, %r0, 32;\n@%p2 bra done;\n");
  std::vector<float> own = sums;
  const std::string alone(Run(text, shared, own).message());
  CHECK_MESSAGE(alone.find("ran another wgmma") != std::string::npos, alone);
}

}  // namespace
}  // namespace ingot::ptx
