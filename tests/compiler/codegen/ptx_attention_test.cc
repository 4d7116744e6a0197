// Attention in one kernel (op/topi/cuda_attention.cc) on the GPU that is not there, beside the reference: every case of
// the operator, and random ones around the sizes of tiles, fixed and symbolic, of every dtype, layout and mask; mutants of
// a kernel, and what ptxas finds for the usual depths. INGOT_LONG_TESTS=1 takes 200 functions in place of 24.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "tests/compiler/codegen/ptx_run.h"
#include "tests/compiler/op/case_builder.h"

namespace ingot::codegen {
namespace {

using op::IntList, op::OpCase, op::ReferenceTensor;
using testing::Assemble, testing::Assembled, testing::HasPtxas, testing::RunImage, testing::Sm, testing::SourceOf;

const op::Implementation& Fused(const ir::Call& call) {
  for (const op::Implementation& implementation : op::RowOf(call)->implementations) {
    if (std::string(implementation.name) == "fused_cuda") return implementation;
  }
  FAIL("there is no fused kernel for CUDA");
  std::abort();
}

struct Kernel {
  KernelSource source;
  PtxImage image;
  op::KernelArguments arguments;
};
// Nothing where the fused kernel does not take the case.
std::optional<Kernel> KernelOf(const OpCase& c, const ir::PrimVar& symbolic) {
  const Result<ir::Call> call = op::CallOf(c, symbolic);
  if (!call.ok() || !Fused(*call).predicate(*call, Sm("sm_80"))) return std::nullopt;
  const Result<ir::PrimFunc> function = Fused(*call).build(*call, Sm("sm_80"));
  REQUIRE_MESSAGE(function.ok(), function.status().message());
  Result<KernelSource> source = SourceOf(*function, Sm("sm_80"));
  REQUIRE_MESSAGE(source.ok(), source.status().message());
  Result<PtxImage> image = CompilePtx({&*source, 1}, Sm("sm_80"));
  REQUIRE_MESSAGE(image.ok(), image.status().message());
  const Result<std::vector<ReferenceTensor>> expected = op::EvaluateReference(c);
  REQUIRE(expected.ok());
  op::KernelArguments arguments{c.inputs, {}, c.inputs.size()};
  arguments.tensors.push_back(expected->at(0));
  for (const ReferenceTensor& tensor : arguments.tensors) {
    const std::vector<std::byte> packed = op::PackReference(tensor);
    arguments.bytes.emplace_back(packed.begin(), packed.end());
  }
  std::ranges::fill(arguments.bytes.back(), std::byte{0xaa});
  return Kernel{*std::move(source), *std::move(image), std::move(arguments)};
}

// What is wrong with the kernel's result; empty: nothing.
std::string Run(const OpCase& c, const Kernel& kernel, const PtxImage& image) {
  op::KernelArguments arguments = kernel.arguments;
  const Result<ptx::LaunchCounts> counts = RunImage(kernel.source, image, arguments);
  if (!counts.ok()) return std::string(counts.status().message());
  const ReferenceTensor& expected = arguments.tensors.back();
  return op::Compare(c, {expected}, {op::UnpackReference(expected.dtype, expected.dims, arguments.bytes.back())});
}

int Check(const OpCase& c) {
  CAPTURE(c.Name());
  int taken = 0;
  for (const ir::PrimVar& symbolic : {ir::PrimVar(), ir::MakePrimVar("n")}) {
    CAPTURE(symbolic != nullptr);
    const std::optional<Kernel> kernel = KernelOf(c, symbolic);
    if (!kernel) continue;
    ++taken;
    const std::string wrong = Run(c, *kernel, kernel->image);
    CHECK_MESSAGE(wrong.empty(), wrong);
  }
  return taken;
}

TEST_CASE("attention in one kernel agrees with the reference") {
  int taken = 0;
  for (const OpCase& c : op::AllCases()) {
    if (c.op == "nn.attention") taken += Check(c);
  }
  CHECK(taken > 30);
}

// Sizes of a call and its mask.
struct Sizes {
  int64_t batch, queries, keys, heads, group, depth, value_depth;
  DataType dtype;
  ir::Attrs attrs;
  std::optional<IntList> bias;
  bool bias_is_bool = false;
};

OpCase CaseOf(const Sizes& s, uint64_t seed, const std::array<std::string, 4>& layouts) {
  const auto dims = [](const std::string& layout, int64_t b, int64_t n, int64_t p, int64_t h) {
    IntList list;
    for (const char axis : layout) list.push_back(axis == 'B' ? b : axis == 'N' ? n : axis == 'S' ? p : h);
    return list;
  };
  const int64_t key_heads = s.heads / s.group;
  std::string label = s.dtype.ToString();
  for (const int64_t size : {s.batch, s.queries, s.keys, s.heads, s.group, s.depth, s.value_depth}) {
    label += " " + std::to_string(size);
  }
  for (const std::string& layout : layouts) label += " " + layout;
  OpCase c{"nn.attention", label, {}, s.attrs, {}, 1e-5, 2e-5};
  if (s.dtype != op::kF32) c.rtol = c.atol = s.dtype == op::kF16 ? 4e-3 : 3e-2;
  c.inputs = {op::Data(s.dtype, dims(layouts[0], s.batch, s.heads, s.queries, s.depth), seed),
              op::Data(s.dtype, dims(layouts[1], s.batch, key_heads, s.keys, s.depth), seed + 1),
              op::Data(s.dtype, dims(layouts[2], s.batch, key_heads, s.keys, s.value_depth), seed + 2)};
  if (s.bias) c.inputs.push_back(op::Data(s.bias_is_bool ? op::kBool : s.dtype, *s.bias, seed + 3));
  c.attrs = c.attrs.With("layouts", ir::AttrList(layouts.begin(), layouts.end()));
  return c;
}

TEST_CASE("attention of random sizes in one kernel agrees with the reference") {
  std::mt19937_64 generator(5);
  const auto any = [&](std::initializer_list<int64_t> values) { return values.begin()[generator() % values.size()]; };
  const int count = std::getenv("INGOT_LONG_TESTS") != nullptr ? 200 : 24;
  const DataType dtypes[] = {op::kF32, op::kF16, op::kBF16};
  const std::array<std::string, 4> all_layouts[] = {{"BSNH", "BSNH", "BSNH", "BSNH"},
                                                    {"BNSH", "BNSH", "BNSH", "BSNH"},
                                                    {"BNSH", "BNHS", "BNSH", "BNSH"},
                                                    {"SBNH", "HNSB", "SBNH", "BNHS"}};
  int taken = 0;
  for (int i = 0; i < count; ++i) {
    Sizes s{};
    s.dtype = dtypes[i % 3];
    s.group = any({1, 1, 2});
    s.heads = s.group * any({1, 2});
    s.batch = any({1, 1, 2});
    s.queries = any({8, 9, 16, 33, 64, 70, 130});
    s.keys = any({1, 7, 32, 33, 64, 65, 100, 130});
    s.depth = any({4, 8, 20, 32, 64, 80, 128});
    s.value_depth = any({3, 16, 32, 64, s.depth});
    if (i % 8 == 7) s.depth = s.value_depth = 256, s.heads = s.group, s.batch = 1;
    switch (generator() % 6) {
      case 0:
        s.attrs = {{"causal_mask", "TopLeft"}};
        break;
      case 1:
        s.attrs = {{"causal_mask", "BottomRight"}, {"stepwise", true}, {"masked_gives_zero", true}};
        break;
      case 2:
        s.bias = IntList{s.batch, 1, s.queries, s.keys};
        s.attrs = {{"stepwise", true}};
        break;
      case 3:
        s.bias = IntList{s.queries, s.keys};
        s.bias_is_bool = true;
        s.attrs = {{"masked_gives_zero", true}};
        break;
      case 4:
        s.attrs = {{"softcap", 3.0}, {"scale", 0.25}};
        break;
      default:
        break;
    }
    taken += Check(CaseOf(s, generator() % 1000, all_layouts[generator() % 4]));
  }
  CHECK(taken > count);
}

// Scores that single steps store as inf or -inf, beside others.
TEST_CASE("attention in one kernel overflows where its steps do") {
  for (const DataType dtype : {op::kF16, op::kBF16}) {
    for (int form = 0; form < 4; ++form) {
      const bool scales_operands = form % 2 != 0, is_causal = form >= 2;
      Sizes s{};
      s.batch = s.heads = s.group = 1;
      s.queries = s.keys = 70;
      s.depth = s.value_depth = 32;
      s.dtype = dtype;
      s.attrs = {{"stepwise", true}, {"scales_operands", scales_operands}};
      if (is_causal) s.attrs = s.attrs.With("causal_mask", "TopLeft");
      OpCase c = CaseOf(s, 7, {"BNSH", "BNSH", "BNSH", "BNSH"});
      const double large = dtype == op::kF16 ? 30000 : 0x1.8p127;
      const double of_rows[] = {0.01, large, -large, 0.5};
      std::vector<double>&queries = c.inputs[0].floats, &keys = c.inputs[1].floats;
      for (size_t i = 0; i < queries.size(); ++i) queries[i] = of_rows[i / 32 % 4];
      for (double& key : keys) key = key > 0 ? 1 : 0.5;
      CHECK(Check(c) > 0);
    }
  }
}

// Several tiles of keys in two stages, all rows in warps of their own.
OpCase SeveralTiles(DataType dtype) {
  Sizes s{};
  s.batch = s.heads = s.group = 1;
  s.queries = 32;
  s.keys = 130;
  s.depth = s.value_depth = 32;
  s.dtype = dtype;
  return CaseOf(s, 3, {"BNSH", "BNSH", "BNSH", "BNSH"});
}

TEST_CASE("attention in one kernel needs each of its barriers and waits") {
  for (const DataType dtype : {op::kF32, op::kF16}) {
    CAPTURE(dtype.ToString());
    const OpCase c = SeveralTiles(dtype);
    const std::optional<Kernel> kernel = KernelOf(c, nullptr);
    REQUIRE(kernel.has_value());
    CHECK(Run(c, *kernel, kernel->image).empty());
    int dropped = 0;
    for (const std::string instruction : {"bar.sync", "cp.async.wait_all"}) {
      const std::string& text = kernel->image.ptx;
      for (size_t at = text.find(instruction); at != std::string::npos; at = text.find(instruction, at + 1)) {
        PtxImage mutant = kernel->image;
        mutant.ptx.erase(at, text.find(';', at) + 1 - at);
        CAPTURE(text.substr(at > 300 ? at - 300 : 0, 600));
        CHECK(!Run(c, *kernel, mutant).empty());
        ++dropped;
      }
    }
    CHECK(dropped > 4);
  }
}

TEST_CASE("ptxas finds registers for attention of the usual depths") {
  if (!HasPtxas()) {
    std::puts("SKIP: attention's registers: no ptxas");
    return;
  }
  for (const DataType dtype : {op::kF32, op::kF16}) {
    for (const int64_t depth : {32, 64, 128, 256}) {
      Sizes s{};
      s.batch = 4;
      s.heads = 16;
      s.group = 1;
      s.queries = s.keys = 1024;
      s.depth = s.value_depth = depth;
      s.dtype = dtype;
      OpCase c{"nn.attention", "large", {}, {}, {}, 0, 0};
      for (int i = 0; i < 3; ++i) c.inputs.push_back(op::NewReference(dtype, {4, 1024, 16, depth}));
      const Result<ir::Call> call = op::CallOf(c);
      REQUIRE(call.ok());
      REQUIRE(Fused(*call).predicate(*call, Sm("sm_80")));
      const Result<ir::PrimFunc> function = Fused(*call).build(*call, Sm("sm_80"));
      REQUIRE(function.ok());
      for (const char* sm : {"sm_80", "sm_90"}) {
        CAPTURE(std::string(sm) + " " + dtype.ToString() + " " + std::to_string(depth));
        const Result<KernelSource> source = SourceOf(*function, Sm(sm));
        REQUIRE_MESSAGE(source.ok(), source.status().message());
        const Result<PtxImage> image = CompilePtx({&*source, 1}, Sm(sm));
        REQUIRE_MESSAGE(image.ok(), image.status().message());
        CHECK(image->kernels[0].launches.size() == 1);
        const Assembled made = Assemble(image->ptx, sm);
        CHECK_MESSAGE(made.is_ok, made.errors);
        CHECK(made.most_spilled == 0);
        MESSAGE(std::string(sm), " ", dtype.ToString(), " ", depth, ": ", made.most_registers, " registers, ",
                image->kernels[0].launches[0].shared_bytes, " bytes of shared memory asked for");
      }
    }
  }
}

}  // namespace
}  // namespace ingot::codegen
