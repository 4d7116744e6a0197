// The linked image: deterministic, small, without imports; and what cannot be compiled is refused by name.
#include <doctest/doctest.h>

#include "compiler/codegen/link_image.h"
#include "tests/compiler/codegen/jit.h"

namespace ingot::codegen::testing {
namespace {

const DataType kF32 = DataType::Float(32);

std::vector<KernelSource> SomeKernels() {
  std::vector<KernelSource> sources;
  for (int i = 0; i < 9; ++i) {
    sources.push_back(
        Source("kernel" + std::to_string(i), Elementwise({kF32}, kF32, 8 * (i + 1), 8, [&](const auto& x) {
                 return ir::CallIntrinsic(i % 2 == 0 ? ir::Intrinsic::kExp : ir::Intrinsic::kErf, {x[0]});
               })));
  }
  return sources;
}

TEST_CASE("equal sources give equal bytes, whatever the number of threads") {
  for (const char* name : {"x86-64-v3", "x86-64-v4"}) {
    const std::vector<KernelSource> sources = SomeKernels();
    CodegenOptions options;
    Result<KernelImage> one = CompileKernels(sources, TargetNamed(name), options);
    options.num_threads = 4;
    Result<KernelImage> four = CompileKernels(SomeKernels(), TargetNamed(name), options);
    REQUIRE(one.ok());
    REQUIRE(four.ok());
    CHECK(one->elf == four->elf);
    for (size_t i = 0; i < sources.size(); ++i) CHECK(one->kernels[i].offset == four->kernels[i].offset);
  }
}

TEST_CASE("a kernel of one addition is an image of about a kilobyte") {
  Kernel kernel(Elementwise({kF32, kF32}, kF32, 16, 8, [](const auto& x) { return x[0] + x[1]; }));
  CHECK(kernel.image_bytes < 1800);
  CHECK(kernel.compiled.stack_bytes == 0);
}

TEST_CASE("the image check sees what a loader could not load") {
  const std::vector<KernelSource> sources = SomeKernels();
  Result<KernelImage> image = CompileKernels(sources, TargetNamed("x86-64-v3"));
  REQUIRE(image.ok());
  const std::vector<std::string> entries = {"kernel0", "kernel8"};
  REQUIRE(CheckImage(image->elf, entries).ok());
  CHECK(!CheckImage(image->elf, std::vector<std::string>{"kernel9"}).ok());
  for (size_t length = 0; length < image->elf.size(); length += 37) {
    (void)CheckImage(std::span(image->elf).first(length), entries);  // reads nothing behind the end
  }
  // Program headers start at 64: the flags of the second one (the segment).
  std::vector<std::byte> writable = image->elf;
  bool found = false;
  for (size_t header = 64; header < 64 + 56 * 4; header += 56) {
    if (writable[header] != std::byte{1}) continue;  // PT_LOAD
    writable[header + 4] |= std::byte{2};            // PF_W
    found = true;
  }
  REQUIRE(found);
  const Result<std::vector<uint64_t>> checked = CheckImage(writable, entries);
  REQUIRE(!checked.ok());
  CHECK(checked.status().message() ==
        "the linked kernel image has a segment that is not exactly readable and executable");
}

Status ErrorOf(const ir::PrimFunc& function) {
  const KernelSource source = Source("bad_kernel", function);
  return CompileKernels({&source, 1}, TargetNamed("x86-64-v3")).status();
}

TEST_CASE("what cannot be compiled is refused, and the message names the kernel") {
  const auto same = [](const auto& x) { return x[0]; };
  CHECK(ErrorOf(Elementwise({DataType::Int(4)}, DataType::Int(4), 4, 1, same)).message() ==
        "kernel \"bad_kernel\": parameter \"in0\" is int4, which kernels do not support yet");
  const ir::Buffer big = ir::MakeBuffer("big", kF32, {ir::Int64(20000)}, "local");
  const ir::Buffer out = ir::MakeBuffer("out", kF32, {ir::Int64(1)});
  const ir::Stmt use = Store(out, Load(big, {ir::Int64(0)}), {ir::Int64(0)});
  CHECK(
      ErrorOf(Function({out}, ir::Make<ir::AllocateNode>(big, use))).message() ==
      "kernel \"bad_kernel\": local buffer \"big\" does not fit the 49152 bytes of stack that local buffers may take");
  CHECK(ErrorOf(Function({out}, Store(out, ir::FloatImm(kF32, 0), {ir::MakePrimVar("lost")}))).message() ==
        "kernel \"bad_kernel\": the variable \"lost\" is bound by no argument, loop or let");
  CHECK(ErrorOf(Function({out}, Loop(
                                    ir::Int64(4), [&](const ir::PrimExpr&) { return use; }, ir::ForKind::kUnrolled)))
            .message() == "kernel \"bad_kernel\": loop \"i\" was not lowered");

  // Without SSE4.1 LLVM rounds by a call of the C library.
  Target old = TargetNamed("x86-64-v2");
  old.llvm_features = {"+sse3"};
  const KernelSource rounds = Source("rounds", Elementwise({kF32}, kF32, 4, 1, [](const auto& x) {
                                       return ir::CallIntrinsic(ir::Intrinsic::kFloor, {x[0]});
                                     }));
  const Status undefined = CompileKernels({&rounds, 1}, old).status();
  CHECK(undefined.code() == StatusCode::kUnsupportedModel);
  CHECK(undefined.message() == "kernel \"rounds\": it needs the undefined symbol \"floorf\"");
  CHECK(CompileKernels({&rounds, 1}, TargetNamed("x86-64-v2")).ok());

  const ir::PrimFunc copy = Elementwise({kF32}, kF32, 4, 1, same);
  KernelSource twice[] = {Source("k", copy), Source("k", copy)};
  CHECK(CompileKernels(twice, TargetNamed("x86-64-v3")).status().message() == "two kernels are named \"k\"");
  KernelSource odd[] = {Source("memcpy", copy)};
  CHECK(!CompileKernels(odd, TargetNamed("x86-64-v3")).ok());
}

}  // namespace
}  // namespace ingot::codegen::testing
