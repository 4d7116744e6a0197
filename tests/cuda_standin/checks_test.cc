// Each thing that is checked of a launch, in a kernel that does it wrong, and beside it one that is right.
#include <doctest/doctest.h>

#include "tests/cuda_standin/ptx_bodies.h"

namespace ingot::ptx {
namespace {

struct Wrong {
  const char *body, *message;
  int threads = 32, blocks = 1;
};
constexpr Wrong kWrong[] = {
    {"add.s64 %d0, %y, 2048;\nst.global.u32 [%d0], %t;", "out of bounds"},
    {"ld.global.u32 %r0, [%x+-4];", "in no block of device memory"},
    {"add.s64 %d0, %in, 2;\nld.global.u32 %r0, [%d0];", "misaligned: 4 bytes"},
    {"ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%in+8];", "misaligned: 16 bytes"},
    {"mov.u64 %d0, 0;\nld.global.u32 %r0, [%d0];", "is null"},
    {"mov.u64 %d0, 0x7fff12345678;\nld.global.u32 %r0, [%d0];", "a host pointer?"},
    {"mov.u64 %d0, smem;\ncvta.shared.u64 %d0, %d0;\nst.global.u32 [%d0], %t;", "an address of another space"},
    {"mov.u64 %d0, 4096;\nst.shared.u32 [%d0], %t;", "is in no variable"},
    {"mov.u32 %r0, 100000;\nst.shared.u32 [%r0], %t;", "of shared memory, which has"},
    {"ld.shared.u32 %r0, [smem];", "reads shared memory at byte 0x0 that was never written"},
    {"ld.local.u32 %r0, [depot];", "reads local memory that was never written"},
    {"mov.u64 %d0, depot;\nst.local.u32 [%d0+64], %t;", "of local memory"},
    {"st.const.u32 [table], %t;", "unknown instruction \"st.const.u32\""},
    {"mov.u64 %d0, table;\nst.global.u32 [%d0], %t;", "writes constant memory"},
    {"ld.global.u32 %r0, [%d5];", "an address that was never computed"},
    {"@%p5 mov.u32 %r0, 1;", "a guard that was never computed"},
    {"add.s32 %r0, %r1, %t;\nst.global.u32 [%out], %r0;", "stores a value that was never computed"},
    {"mov.u32 %r1, 0;\ndiv.u32 %r0, %t, %r1;\nst.global.u32 [%out], %r0;", "stores a value that was never computed"},
    {"setp.eq.s32 %p0, %t, 5;\n@%p0 mov.u32 %r0, 1;\nst.global.u32 [%out], %r0;",
     "stores a value that was never computed"},
    // A neighbour's word of shared memory, without a barrier: of another warp, and of the same one.
    {"shl.b32 %r0, %t, 2;\nst.shared.u32 [%r0], %t;\nxor.b32 %r1, %r0, 128;\nld.shared.u32 %r2, [%r1];",
     "that was never written", 64},
    {"shl.b32 %r0, %t, 2;\nst.shared.u32 [%r0], %t;\nxor.b32 %r1, %r0, 4;\nld.shared.u32 %r2, [%r1];", "a race"},
    {"st.shared.u32 [smem], %t;", "a race: writes shared memory"},
    // One barrier lets the writers go on while others still read.
    {"shl.b32 %r0, %t, 2;\nst.shared.u32 [%r0], %t;\nbar.sync 0;\nxor.b32 %r1, %r0, 128;\nld.shared.u32 %r2, "
     "[%r1];\nst.shared.u32 [%r0], %r2;",
     "a race", 64},
    {"st.global.u32 [%y], %t;", "a race: writes global memory", 1, 2},
    {"setp.eq.s32 %p0, %c, 0;\n@%p0 st.global.u32 [%y], %c;\n@!%p0 ld.global.u32 %r0, [%y];",
     "a race: reads global memory", 1, 2},
    {"atom.global.add.u32 %r0, [%y], 1;\nsetp.eq.s32 %p0, %t, 0;\n@%p0 st.global.u32 [%y], %t;", "a race"},
    {"setp.lt.s32 %p0, %t, 16;\n@%p0 bra L;\nbar.sync 0;\nL:", "a divergent barrier"},
    {"setp.lt.s32 %p0, %t, 32;\n@%p0 bra L;\nbar.sync 1;\nL: bar.sync 0;", "waits for ever at barrier", 64},
    {"setp.lt.s32 %p0, %t, 16;\n@%p0 shfl.sync.idx.b32 %r0, %t, 0, 31, -1;", "a lane of the member mask is elsewhere"},
    {"shfl.sync.idx.b32 %r0, %t, 0, 31, 0xffff;", "a lane that is not in its member mask"},
    {"shfl.sync.idx.b32 %r0, %t, 20, 31, %r1;", "a member mask that was never computed"},
    // A value from a lane that does not take part.
    {"setp.lt.s32 %p0, %t, 16;\n@%p0 shfl.sync.idx.b32 %r0, %t, 20, 31, 0xffff;\n@%p0 st.global.u32 [%out], %r0;",
     "stores a value that was never computed"},
    {"mov.f32 %f0, 0f00000000;\nmov.u32 %r0, 0;\nsetp.lt.s32 %p0, %t, 31;\n@%p0 "
     "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
     "{%f0,%f0,%f0,%f0}, {%r0,%r0}, {%r0}, {%f0,%f0,%f0,%f0};",
     "an instruction of the whole warp"},
    {"shl.b32 %r0, %t, 4;\ncp.async.cg.shared.global [%r0], [%in], 16;\ncp.async.commit_group;\nld.shared.u32 %r1, "
     "[%r0];",
     "that a cp.async is still writing"},
    {"shl.b32 %r0, %t, 4;\ncp.async.cg.shared.global [%r0], [%in], 16;\ncp.async.commit_group;\ncp.async.wait_group "
     "1;\nld.shared.u32 %r1, [%r0];",
     "that a cp.async is still writing"},
    // Waited for, but another thread's.
    {"shl.b32 %r0, %t, 4;\ncp.async.cg.shared.global [%r0], [%in], 16;\ncp.async.wait_all;\nxor.b32 %r0, %r0, "
     "16;\nld.shared.u32 %r1, [%r0];",
     "a race"},
    {"L: bra L;", "runs without end"},
    {"trap;", "gives up (trap)"},
    {"atom.global.add.u32 %r0, [%y], 1;\nmul.wide.u32 %d0, %r0, 4;\nadd.s64 %d1, %y, %d0;\nst.global.u32 [%d1+4], %t;",
     "depend on the order of warps", 64},
    {"add.u33 %r0, %t, 1;", "unknown instruction \"add.u33\""},
    {"add.s32 %d0, %t, 1;", "where s32 is expected"},
    {"add.s32 %r0, %t;", "too few operands"},
    {"bra nowhere;", "no label nowhere"},
    {"mov.u64 %d0, %clock64;", "unknown special register %clock64"},
};

TEST_CASE("ptx checks: what a kernel does wrong is said") {
  for (const Wrong& wrong : kWrong) {
    CAPTURE(std::string(wrong.body));
    BodyOptions options;
    options.threads = wrong.threads, options.blocks = wrong.blocks;
    const Status status = RunBody(wrong.body, {}, options).status();
    CHECK_FALSE(status.ok());
    CHECK_MESSAGE(status.message().find(wrong.message) != std::string::npos, status.message());
  }
}

TEST_CASE("ptx checks: what is right passes") {
  const Wrong right[] = {
      {"shl.b32 %r0, %t, 2;\nst.shared.u32 [%r0], %t;\nbar.sync 0;\nxor.b32 %r1, %r0, 128;\nld.shared.u32 %r2, "
       "[%r1];\nbar.sync 0;\nst.shared.u32 [%r0], %r2;",
       "", 64},
      {"shl.b32 %r0, %t, 2;\nst.shared.u32 [%r0], %t;\nbar.warp.sync -1;\nxor.b32 %r1, %r0, 4;\nld.shared.u32 %r2, "
       "[%r1];",
       ""},
      {"shl.b32 %r0, %t, 4;\ncp.async.cg.shared.global [%r0], [%in], 16;\ncp.async.wait_all;\nbar.sync 0;\nxor.b32 "
       "%r0, %r0, 16;\nld.shared.u32 %r1, [%r0];",
       ""},
      {"setp.lt.s32 %p0, %t, 16;\n@%p0 bra L;\nmov.u32 %r0, 1;\nL: bar.sync 0;", ""},
      {"setp.lt.s32 %p0, %t, 16;\n@%p0 shfl.sync.idx.b32 %r0, %t, 3, 31, 0xffff;\n@%p0 st.global.u32 [%out], %r0;", ""},
      // Lanes that have left are no part of a barrier or of a member mask.
      {"setp.ge.s32 %p0, %t, 16;\n@%p0 ret;\nbar.sync 0;\nshfl.sync.idx.b32 %r0, %t, 3, 31, -1;\nst.global.u32 [%out], "
       "%r0;",
       ""},
      {"atom.global.add.u32 %r0, [%y], 1;", "", 64, 2},
      // A barrier of one warp of two.
      {"setp.lt.s32 %p0, %t, 32;\n@%p0 bra L;\nbar.sync 1, 32;\nL: bar.sync 0;", "", 64},
  };
  for (const Wrong& body : right) {
    CAPTURE(std::string(body.body));
    BodyOptions options;
    options.threads = body.threads, options.blocks = body.blocks;
    const Status status = RunBody(body.body, {}, options).status();
    CHECK_MESSAGE(status.ok(), status.message());
  }
}

TEST_CASE("ptx checks: a fault names kernel, line, instruction, block and thread") {
  BodyOptions options;
  options.threads = 64, options.blocks = 2;
  const Status status = RunBody("setp.eq.s32 %p0, %g, 101;\n@%p0 ld.global.u32 %r0, [%y+-8];", {}, options).status();
  CHECK(status.message().find("kernel \"k\", line ") != std::string::npos);
  CHECK(status.message().find("\"@%p0 ld.global.u32 %r0, [%y+-8];\", block (1, 0, 0), thread (37, 0, 0): ") !=
        std::string::npos);
}

TEST_CASE("ptx checks: limits of launches and modules") {
  const auto message = [](const BodyOptions& options) { return RunBody("", {}, options).status().message(); };
  BodyOptions options;
  options.threads = 1025;
  CHECK(message(options).find("1025 threads along an axis") != std::string::npos);
  options.threads = 32, options.dynamic_shared = 49152 - 4160 + 1;
  CHECK(message(options).find("bytes of shared memory, of ") != std::string::npos);
  options.dynamic_shared = 49152 - 4160;
  CHECK(message(options).empty());

  Machine machine({.sm = 80});
  const std::string kernel =
      ".version 7.8\n.target sm_80\n.address_size 64\n.entry k(.param .u32 n) .maxntid 64, 1, 1 { ret; }\n";
  const ModuleId module = machine.LoadModule(kernel).value();
  CHECK(machine.Launch(module, "k", {{1, 1, 1}, {64, 1, 1}}, Arguments().Add(1)).ok());
  CHECK_FALSE(machine.Launch(module, "k", {{1, 1, 1}, {65, 1, 1}}, Arguments().Add(1)).ok());
  CHECK_FALSE(machine.Launch(module, "k", {{1, 1, 1}, {64, 1, 1}}, Arguments()).ok());
  CHECK_FALSE(machine.Launch(module, "k", {{1, 1, 1}, {64, 1, 1}}, Arguments().Add(int64_t{1})).ok());
  CHECK(machine.Launch(module, "none", {}, Arguments()).status().code() == StatusCode::kNotFound);
  // A kernel has the module's variables that it names, and where it calls functions, all of them.
  const std::string several =
      ".version 7.8\n.target sm_80\n.address_size 64\n.shared .align 16 .b8 a[32768];\n.shared .align 16 .b8 "
      "b[16384];\n"
      ".func f() { ret; }\n.entry k(.param .u32 n) { .reg .b32 %r<2>; mov.u32 %r1, a; ret; }\n"
      ".entry calls(.param .u32 n) { call f; ret; }\n";
  const ModuleId shared = machine.LoadModule(several).value();
  CHECK(machine.Facts(shared, "k")->static_shared_bytes == 32768);
  CHECK(machine.Facts(shared, "calls")->static_shared_bytes == 49152);
  const auto launch = [&](const char* name, int64_t bytes) {
    return machine.Launch(shared, name, {{1, 1, 1}, {32, 1, 1}, bytes}, Arguments().Add(1)).ok();
  };
  CHECK(launch("k", 16384));
  CHECK_FALSE(launch("k", 16385));
  CHECK_FALSE(launch("calls", 1));
  for (const char* target : {"sm_90", "sm_90a"}) {
    std::string newer = kernel;
    newer.replace(newer.find("sm_80"), 5, target);
    CHECK(machine.LoadModule(newer).status().code() == StatusCode::kUnsupportedFile);
  }
}

}  // namespace
}  // namespace ingot::ptx
