// The operators' tensor functions through the default schedule for CUDA, lowering and PTX, on the GPU that is not there
// (tests/cuda_standin), against the reference. INGOT_LONG_TESTS=1 takes every case in place of the first of each operator, and all PTX.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "tests/compiler/codegen/ptx_run.h"
#include "tests/compiler/op/cases.h"

namespace ingot::codegen {
namespace {

using op::OpCase;
using op::ReferenceTensor;
using testing::CompileForLater, testing::RunImage, testing::Sm, testing::SourceOf;

// Cases behind an operator's first one that the short form takes, too: bytes at places that no vector access may have,
// elements at places from a table in memory that a thread has for itself, loops of less than no iteration, heads of one
// element, steps of launches whose number an element limits, and what many threads order and add up.
const std::set<std::string> kAlsoTaken = {"cumsum/long",
                                          "scatter_elements/long_add",
                                          "scatter_elements/long_lines_add",
                                          "scatter_elements/long_lines_update",
                                          "scatter_nd/long_add",
                                          "scatter_nd/long_update",
                                          "sort/long",
                                          "sort/specials",
                                          "topk/long",
                                          "topk/long_smallest",
                                          "nn.attention/masked_7_530_bool",
                                          "nn.attention/one_element_float32",
                                          "nn.gru/groups",
                                          "nn.gru/one_sequence_of_a_length",
                                          "nn.linear_attention/empty",
                                          "unique/by_first_place"};

// Of the short form, evenly spread over all.
constexpr size_t kMostForLater = 60;

// The sources that were compiled.
std::vector<KernelSource>& Compiled() {
  static std::vector<KernelSource> sources;
  return sources;
}

Status RunPtx(const ir::PrimFunc& function, op::KernelArguments& arguments) {
  const Target target = Sm("sm_80");
  INGOT_ASSIGN_OR_RETURN(const KernelSource source, SourceOf(function, target));
  INGOT_ASSIGN_OR_RETURN(const PtxImage image, CompilePtx({&source, 1}, target));
  Compiled().push_back(source);
  return RunImage(source, image, arguments).status();
}

bool Check(const OpCase& c, const ir::PrimVar& symbolic) {
  CAPTURE(c.Name());
  const Result<ir::Call> call = op::CallOf(c, symbolic);
  if (!call.ok() || !op::HasImplementation(*call)) return false;
  // Where data decide the shape, the test's results have dims of numbers alone.
  if (symbolic && (!op::UnboundShapeVars(*call).empty() || op::RowOf(*call)->extents.count > 0)) return false;
  const Result<std::vector<ReferenceTensor>> expected = op::EvaluateReference(c);
  REQUIRE(expected.ok());
  std::vector<op::Dims64> dims;
  for (const ReferenceTensor& tensor : *expected) dims.push_back(tensor.dims);
  const Result<std::vector<ReferenceTensor>> got = op::RunImplementations(*call, c.inputs, dims, RunPtx, Sm("sm_80"));
  CHECK_MESSAGE(got.ok(), got.status().message());
  if (!got.ok()) return false;
  for (size_t i = 0; i < got->size(); i += expected->size()) {
    const auto first = got->begin() + static_cast<ptrdiff_t>(i);
    const std::string difference = op::Compare(c, *expected, {first, first + std::ssize(*expected)});
    CHECK_MESSAGE(difference.empty(), difference);
  }
  return true;
}

TEST_CASE("operators on the stand-in GPU agree with the reference") {
  const bool is_long = std::getenv("INGOT_LONG_TESTS") != nullptr;
  const ir::PrimVar n = ir::MakePrimVar("n");
  std::map<std::string, int> taken;
  int evaluated = 0;
  for (const OpCase& c : op::AllCases()) {
    if (!is_long && taken[c.op]++ >= 1 && !kAlsoTaken.contains(c.Name())) continue;
    if (!Check(c, nullptr)) continue;
    evaluated += 1 + (Check(c, n) ? 1 : 0);
  }
  MESSAGE(evaluated, " calls");
  CHECK(evaluated > 100);
}

op::ReferenceTensor Numbers(std::vector<int64_t> dims) {
  op::ReferenceTensor tensor = op::NewReference(DataType::Float(32), dims);
  const int64_t count = op::CountOf(dims);
  for (int64_t i = 0; i < count; ++i) op::SetNumber(tensor, i, static_cast<double>(i * 37 % 101 - 50) / 64);
  return tensor;
}

// Their lengths are multiples of no power of 2. Symbolic ones are what is reduced, or the number of results.
TEST_CASE("long reductions by the threads of a block agree with the reference") {
  const auto reduce = [](const char* op, std::vector<int64_t> dims, std::vector<int64_t> axes) {
    ir::AttrList list(axes.begin(), axes.end());
    return OpCase{op,   "long", {Numbers(std::move(dims))}, {{"axis", std::move(list)}, {"keepdims", false}}, {},
                  1e-5, 1e-4};
  };
  const OpCase cases[] = {reduce("sum", {3, 3001}, {1}), reduce("max", {130, 2}, {0}), reduce("min", {1500}, {0}),
                          reduce("mean", {7, 5, 400}, {0, 2}),
                          OpCase{"matmul", "long", {Numbers({2, 700}), Numbers({700, 3})}, {}, {}, 1e-5, 1e-4}};
  const ir::PrimVar n = ir::MakePrimVar("n");
  for (const OpCase& c : cases) {
    for (const ir::PrimVar& symbolic : {ir::PrimVar(), n}) {
      CAPTURE(symbolic != nullptr);
      const size_t before = Compiled().size();
      CHECK(Check(c, symbolic));
      REQUIRE(Compiled().size() > before);
      const Result<PtxImage> image = CompilePtx({&Compiled().back(), 1}, Sm("sm_80"));
      REQUIRE(image.ok());
      CHECK(image->ptx.find("bar.sync") != std::string::npos);
      CHECK(image->ptx.find("ld.shared") != std::string::npos);
    }
  }
}

// In each of four steps the threads of a block divide by x, or add it, and then read what the others found.
ir::PrimFunc Steps(int64_t count, ir::BinaryOp op) {
  using ir::Int64;
  using ir::PrimExpr;
  using testing::Load, testing::Store;
  const DataType dtype = DataType::Int(32);
  const ir::Buffer in = ir::MakeBuffer("x", dtype, {Int64(count)}), out = ir::MakeBuffer("y", dtype, {Int64(count)});
  const ir::Buffer found = ir::MakeBuffer("found", dtype, {Int64(count)});
  const auto each = [&](const std::function<ir::Stmt(PrimExpr)>& body) { return testing::Loop(Int64(count), body); };
  const ir::Stmt start = each([&](const PrimExpr& i) { return Store(out, ir::MakeConst(dtype, 0), {i}); });
  const ir::Stmt find = each(
      [&](const PrimExpr& i) { return Store(found, ir::MakeBinary(op, Load(out, {i}) + 100, Load(in, {i})), {i}); });
  const ir::Stmt take = each([&](const PrimExpr& i) { return Store(out, Load(found, {Int64(count - 1) - i}), {i}); });
  const ir::Stmt steps = testing::Loop(Int64(4), [&](const PrimExpr&) { return ir::MakeSeq({find, take}); });
  return testing::Function({in, out}, ir::MakeSeq({start, ir::Make<ir::AllocateNode>(found, steps)}));
}

// What it computes on the stand-in with this PTX.
Result<std::vector<int32_t>> RunSteps(const KernelSource& source, const PtxImage& image,
                                      const std::vector<int32_t>& x) {
  std::vector<int32_t> y(x.size());
  const auto bytes = static_cast<int64_t>(x.size() * sizeof(int32_t));
  op::KernelArguments arguments{{}, {}, 1};
  for (const auto* values : {&x, &std::as_const(y)}) {
    arguments.tensors.push_back(op::NewReference(DataType::Int(32), {std::ssize(*values)}));
    arguments.bytes.emplace_back(static_cast<size_t>(bytes));
    std::memcpy(arguments.bytes.back().data(), values->data(), static_cast<size_t>(bytes));
  }
  INGOT_RETURN_IF_ERROR(RunImage(source, image, arguments).status());
  std::memcpy(y.data(), arguments.bytes[1].data(), static_cast<size_t>(bytes));
  return y;
}

struct StepsKernel {
  KernelSource source;
  PtxImage image;
};
StepsKernel CompileSteps(size_t count, ir::BinaryOp op) {
  Result<KernelSource> source = SourceOf(Steps(static_cast<int64_t>(count), op), Sm("sm_80"));
  REQUIRE(source.ok());
  Result<PtxImage> image = CompilePtx({&*source, 1}, Sm("sm_80"));
  REQUIRE(image.ok());
  return {*source, *image};
}

std::vector<int32_t> ExpectedOfSteps(const std::vector<int32_t>& x,
                                     const std::function<int32_t(int32_t, int32_t)>& op) {
  std::vector<int32_t> y(x.size()), found(x.size());
  for (int step = 0; step < 4; ++step) {
    for (size_t i = 0; i < x.size(); ++i) found[i] = op(y[i] + 100, x[i]);
    y.assign(found.rbegin(), found.rend());
  }
  return y;
}

std::vector<int32_t> Divisors() {
  std::vector<int32_t> x(100);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int32_t>(i % 7) + 1;
  return x;
}

TEST_CASE("a thread that fails between barriers ends its block") {
  std::vector<int32_t> x = Divisors();
  const auto [source, image] = CompileSteps(x.size(), ir::BinaryOp::kFloorDiv);
  CHECK(image.ptx.find("bar.red.or.pred") != std::string::npos);
  const Result<std::vector<int32_t>> y = RunSteps(source, image, x);
  REQUIRE_MESSAGE(y.ok(), y.status().message());
  CHECK(*y == ExpectedOfSteps(x, std::divides()));
  x[70] = 0;
  CHECK(RunSteps(source, image, x).status().message() == "the kernel failed");
}

TEST_CASE("threads need every barrier between their loops") {
  const std::vector<int32_t> x = Divisors();
  const auto [source, image] = CompileSteps(x.size(), ir::BinaryOp::kAdd);
  const Result<std::vector<int32_t>> y = RunSteps(source, image, x);
  REQUIRE_MESSAGE(y.ok(), y.status().message());
  CHECK(*y == ExpectedOfSteps(x, std::plus()));
  int barriers = 0;
  const std::string barrier = "bar.sync";
  for (size_t at = image.ptx.find(barrier); at != std::string::npos; at = image.ptx.find(barrier, at + 1)) {
    PtxImage mutant = image;
    mutant.ptx.erase(at, image.ptx.find(';', at) + 1 - at);
    const Result<std::vector<int32_t>> got = RunSteps(source, mutant, x);
    CAPTURE(at);
    CHECK(!got.ok());
    ++barriers;
  }
  CHECK(barriers == 2);
}

// Runs of 32 * 4^round elements become longer until one of them is the row.
TEST_CASE("rows of any length are sorted in as many rounds as they need") {
  const OpCase c{"sort", "rows", {Numbers({200})}, {{"axis", 0}}, {}, 0, 0};
  const Result<ir::Call> call = op::CallOf(c, ir::MakePrimVar("n"));
  REQUIRE_MESSAGE(call.ok(), call.status().message());
  int checked = 0;
  for (const op::Implementation& implementation : op::RowOf(*call)->implementations) {
    if (std::string(implementation.name) != "cuda_ranks") continue;
    const Result<ir::PrimFunc> function = implementation.build(*call, Sm("sm_80"));
    REQUIRE_MESSAGE(function.ok(), function.status().message());
    const Result<KernelSource> source = SourceOf(*function, Sm("sm_80"));
    REQUIRE_MESSAGE(source.ok(), source.status().message());
    const Result<PtxImage> image = CompilePtx({&*source, 1}, Sm("sm_80"));
    REQUIRE_MESSAGE(image.ok(), image.status().message());
    for (const PtxLaunch& launch : image->kernels[0].launches) {
      if (!launch.rounds) continue;
      for (const int64_t length : {int64_t{1}, int64_t{32}, int64_t{33}, int64_t{1} << 31, (int64_t{1} << 31) + 1,
                                   int64_t{1} << 36, int64_t{1} << 37}) {
        CAPTURE(length);
        const int64_t ints[] = {length};
        const int64_t rounds = *launch.rounds->Evaluate(ints);
        const int64_t run = int64_t{32} << (2 * rounds), before = rounds == 0 ? 0 : run / 4;
        CHECK(run >= length);
        if (length <= int64_t{1} << 31) CHECK(before < length);
        ++checked;
      }
    }
  }
  CHECK(checked == 14);  // two launches of a round
}

// It comes behind the tests above, whose kernels it takes.
TEST_CASE("kernels of operators are compiled for later architectures, too") {
  const std::vector<KernelSource>& all = Compiled();
  const bool is_long = std::getenv("INGOT_LONG_TESTS") != nullptr;
  const size_t count = is_long ? all.size() : std::min(all.size(), kMostForLater);
  std::vector<KernelSource> sources;
  for (size_t i = 0; i < count; ++i) sources.push_back(all[i * all.size() / count]);
  CompileForLater(std::move(sources));
}

}  // namespace
}  // namespace ingot::codegen
