// The audit of PTX sees what it is there for: in code that is right, one mistake of each kind is a fault.
#include "tests/compiler/codegen/ptx_audit.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/schedule/default_schedule.h"
#include "compiler/schedule/schedule.h"
#include "compiler/te/tensor.h"
#include "tests/compiler/codegen/ptx_product.h"

namespace ingot::codegen {
namespace {

using namespace testing;  // NOLINT

struct Compiled {
  std::vector<KernelSource> sources;
  Target target;
  PtxImage image;
  std::vector<std::string> Faults() const { return FaultsOf(sources, target, image); }
};

Compiled Compile(const ir::PrimFunc& function, const Target& target) {
  const Result<KernelSource> source = SourceOf(function, target);
  REQUIRE_MESSAGE(source.ok(), source.status().message());
  Result<PtxImage> image = CompilePtx({&*source, 1}, target, {.emit_llvm = true});
  REQUIRE_MESSAGE(image.ok(), image.status().message());
  Compiled compiled{{*source}, target, *std::move(image)};
  CHECK(compiled.Faults().empty());
  return compiled;
}

// Sums of rows, which lanes exchange and warps leave in shared memory, of numbers that are rounded and scaled.
ir::PrimFunc Rows() {
  const te::Tensor x = te::Placeholder({ir::Int64(48), ir::Int64(768)}, kF32, "x");
  const ir::IterVar k = te::ReduceAxis(ir::Int64(768), "k");
  const te::Tensor sum = te::Compute(
      {ir::Int64(48)},
      [&](const te::Indices& i) {
        return te::Sum(x({i[0], k->var}), {k});
      },
      "sum");
  const te::Tensor out = te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        return (x(i) + sum({i[0]})) * x({i[0], ir::FloorMod(i[1] * 5, ir::Int64(768))}) + ir::MakeConst(kF32, 1);
      },
      "out");
  return te::CreatePrimFunc({x, out});
}

ir::PrimFunc ProductOf16() {
  Product p = Plain(128, 128, 128);
  p.dtype = kF16;
  return Build(p).function;
}

// Whether the text, changed where it first stands, is a fault whose words have `words`.
bool IsSeen(Compiled compiled, std::string PtxImage::*text, const std::string& from, const std::string& to,
            const std::string& words) {
  std::string& changed = compiled.image.*text;
  const size_t at = changed.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, from);
  changed.replace(at, from.size(), to);
  return std::ranges::any_of(compiled.Faults(),
                             [&](const std::string& fault) { return fault.find(words) != std::string::npos; });
}

TEST_CASE("each mistake in the text of a kernel is a fault") {
  const Compiled rows = Compile(Rows(), Sm("sm_80"));
  const auto in_ptx = [&](const char* from, const char* to, const char* words) {
    return IsSeen(rows, &PtxImage::ptx, from, to, words);
  };
  CHECK(in_ptx(".version 7.0", ".version 7.1", "no line .version 7.0"));
  CHECK(in_ptx(".target sm_80", ".target sm_86", "no line .target sm_80"));
  CHECK(in_ptx("add.rn.f32", "add.f32", "without its rounding"));
  CHECK(in_ptx("add.rn.f32", "mad.f32", "mad.f32"));
  CHECK(in_ptx("add.rn.f32", "fma.rn.f32", "fma instructions"));
  CHECK(in_ptx("\tret;", "\tcall.uni foo;\n\tret;", "a call"));
  CHECK(in_ptx("\tret;", "\tdiv.u64 %rd1, %rd1, 3;\n\tret;", "no index of 64 bits"));
  CHECK(in_ptx(".maxntid ", ".minnctapersm ", "how many threads"));
  CHECK(in_ptx(".maxntid ", ".maxntid 2, ", "another number of threads"));
  CHECK(IsSeen(rows, &PtxImage::llvm, "fadd float", "fadd contract float", "LLVM may change"));
  Compiled large = rows;
  large.image.kernels[0].launches[0].shared_bytes = 99 << 10;
  CHECK(std::ranges::any_of(large.Faults(), [](const std::string& fault) {
    return fault.find("bytes of shared memory") != std::string::npos;
  }));
}

// Each attribute that says so, of a call or of what is called, is needed.
TEST_CASE("barriers, exchanges of lanes and matrix instructions that LLVM may move are faults") {
  for (const char* sm : {"sm_80", "sm_90a"}) {
    for (const bool is_product : {false, true}) {
      Compiled compiled = Compile(is_product ? ProductOf16() : Rows(), Sm(sm));
      std::string& text = compiled.image.llvm;
      int marks = 0;
      for (size_t at = text.find(" convergent "); at != std::string::npos; at = text.find(" convergent ", at)) {
        text.replace(at, 12, " ");
        ++marks;
      }
      CHECK(marks > 0);
      size_t moved = 0;
      for (const std::string& fault : compiled.Faults()) moved += fault.starts_with("not convergent: ") ? 1 : 0;
      CHECK(moved >= (is_product ? 10 : 5));
    }
  }
}

// Under a schedule of the user's a block may have as many threads as an argument says: registers for all of them.
TEST_CASE("blocks of symbolic numbers of threads have a bound") {
  const ir::PrimVar n = ir::MakePrimVar("n");
  const te::Tensor x = te::Placeholder({ir::Int64(7), ir::PrimExpr(n), ir::Int64(4)}, kF32, "x");
  const te::Tensor out = te::Compute(
      x.shape(), [&](const te::Indices& i) { return x(i) + ir::MakeConst(kF32, 1); }, "out");
  schedule::Schedule s = *schedule::Schedule::Create(te::CreatePrimFunc({x, out}));
  const schedule::LoopRVs loops = s.GetLoops(s.GetBlock("out"));
  s.Bind(loops[0], "blockIdx.x");
  s.Bind(loops[1], "threadIdx.x");
  s.Bind(loops[2], "threadIdx.y");
  REQUIRE(s.status().ok());
  const Compiled compiled = Compile(schedule::MarkScheduled(s.function()), Sm("sm_80"));
  CHECK(compiled.image.ptx.find(".maxntid 256, 4, 1") != std::string::npos);
  SizedFunction sized{schedule::MarkScheduled(s.function()), {{7, 33, 4}, {7, 33, 4}}, {kF32, kF32}};
  std::vector<KernelSource> sources;
  CHECK(WrongBesideInterpreter(sized, 1, sources) == "");
}

// Older versions of PTX do not know the architecture.
TEST_CASE("the version of PTX is the lowest that ptxas takes for the architecture") {
  if (!HasPtxas()) {
    std::puts("SKIP: the lowest versions of PTX: no ptxas");
    return;
  }
  constexpr const char* kVersions[] = {"6.5", "7.0", "7.1", "7.2", "7.3", "7.4",
                                       "7.5", "7.6", "7.7", "7.8", "8.0", "8.1"};
  for (const std::string name : {"sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a"}) {
    CAPTURE(name);
    const Compiled compiled = Compile(Rows(), Sm(name.c_str()));
    const std::string line = ".version ";
    const size_t at = compiled.image.ptx.find(line) + line.size();
    const std::string version = compiled.image.ptx.substr(at, 3);
    const auto own = std::ranges::find(kVersions, version);
    REQUIRE(own != std::end(kVersions));
    std::string older = compiled.image.ptx;
    older.replace(at, 3, *(own - 1));
    CHECK(Assemble(compiled.image.ptx, name).is_ok);
    CHECK(!Assemble(older, name).is_ok);
  }
}

}  // namespace
}  // namespace ingot::codegen
