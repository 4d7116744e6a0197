// The operators' tensor functions through the default schedule for CUDA, lowering and PTX, on the GPU that is not there
// (tests/cuda_standin), against the reference; and PTX of them through ptxas, where one is found, for the registers that
// it takes and the spills. INGOT_LONG_TESTS=1 takes every case in place of the first of each operator, and all PTX.
#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "compiler/codegen/ptx.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/schedule/default_schedule.h"
#include "compiler/transform/tensor/lowered.h"
#include "tests/compiler/codegen/jit.h"
#include "tests/compiler/op/cases.h"
#include "tests/compiler/op/run_implementations.h"
#include "tests/cuda_standin/machine.h"

namespace ingot::codegen {
namespace {

using op::OpCase;
using op::ReferenceTensor;

// Cases behind an operator's first one that the short form takes, too: bytes at places that no vector access may have,
// elements at places from a table in memory that a thread has for itself, and loops of less than no iteration.
const std::set<std::string> kAlsoTaken = {"nn.attention/masked_7_530_bool", "nn.linear_attention/empty",
                                          "unique/by_first_place"};

// Of the short form, evenly spread over all; ptxas takes about 50 ms for each.
constexpr size_t kMostAssembled = 60;
// In bytes of a thread. ptxas keeps so much of one launch of 84 in memory for sm_80 while it uses 32 registers of 255:
// its own choice, not a want of registers.
constexpr int kMostSpilled = 16;

// The sources that were compiled, for ptxas.
std::vector<KernelSource>& Compiled() {
  static std::vector<KernelSource> sources;
  return sources;
}

Target Sm(const char* name) { return ParseTarget(std::string("cuda:") + name)->variants.at(0); }

Result<KernelSource> SourceOf(const ir::PrimFunc& function, const Target& target) {
  INGOT_ASSIGN_OR_RETURN(const schedule::ScheduledFunction scheduled, schedule::ApplyDefaultSchedule(function, target));
  INGOT_ASSIGN_OR_RETURN(ir::PrimFunc lowered, transform::LowerPrimFunc(scheduled.function, target));
  INGOT_ASSIGN_OR_RETURN(KernelDescription description, DescribeKernel("kernel", function));
  return KernelSource{"kernel", std::move(lowered), std::move(description)};
}

Result<ptx::LaunchConfig> ConfigOf(const PtxLaunch& launch, const std::vector<int64_t>& ints) {
  ptx::LaunchConfig config;
  for (size_t i = 0; i < 3; ++i) {
    INGOT_ASSIGN_OR_RETURN(config.grid[i], launch.grid[i].Evaluate(ints));
    INGOT_ASSIGN_OR_RETURN(config.block[i], launch.block[i].Evaluate(ints));
  }
  return config;
}

Status RunImage(const KernelSource& source, const PtxImage& image, op::KernelArguments& arguments) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> ints, op::IntsOf(source.lowered, arguments));
  ptx::Machine machine({.sm = 80, .orders = {ptx::WarpOrder::kLowestFirst, ptx::WarpOrder::kRandom}});
  INGOT_ASSIGN_OR_RETURN(const ptx::ModuleId module, machine.LoadModule(image.ptx));
  const auto allocate = [&](int64_t bytes) { return machine.Allocate(std::max<int64_t>(bytes, 1)); };
  ptx::Arguments words;
  std::vector<uint64_t> addresses;
  for (size_t i = 0; i < arguments.bytes.size(); ++i) {
    const op::Bytes& bytes = arguments.bytes[i];
    INGOT_ASSIGN_OR_RETURN(const uint64_t address, allocate(std::ssize(bytes)));
    if (i < arguments.num_inputs) INGOT_RETURN_IF_ERROR(machine.Write(address, bytes.data(), std::ssize(bytes)));
    words.Add(address);
    addresses.push_back(address);
  }
  for (const int64_t value : ints) words.Add(value);
  INGOT_ASSIGN_OR_RETURN(const int64_t workspace_bytes, image.kernels[0].workspace.Evaluate(ints));
  INGOT_ASSIGN_OR_RETURN(const uint64_t workspace, allocate(workspace_bytes));
  const std::array<int64_t, 3> no_failure{};
  INGOT_ASSIGN_OR_RETURN(const uint64_t failure, allocate(sizeof no_failure));
  INGOT_RETURN_IF_ERROR(machine.Write(failure, no_failure.data(), sizeof no_failure));
  words.Add(workspace).Add(failure);
  for (const PtxLaunch& launch : image.kernels[0].launches) {
    INGOT_ASSIGN_OR_RETURN(const ptx::LaunchConfig config, ConfigOf(launch, ints));
    if (std::ranges::find(config.grid, 0) != std::end(config.grid)) continue;
    INGOT_RETURN_IF_ERROR(machine.Launch(module, launch.entry, config, words).status());
  }
  std::array<int64_t, 3> failed{};
  INGOT_RETURN_IF_ERROR(machine.Read(failed.data(), failure, sizeof failed));
  if (failed != no_failure) return Status(StatusCode::kFailed, "the kernel failed");
  for (size_t i = arguments.num_inputs; i < arguments.bytes.size(); ++i) {
    op::Bytes& bytes = arguments.bytes[i];
    INGOT_RETURN_IF_ERROR(machine.Read(bytes.data(), addresses[i], std::ssize(bytes)));
  }
  return Status();
}

Status RunPtx(const ir::PrimFunc& function, op::KernelArguments& arguments) {
  const Target target = Sm("sm_80");
  INGOT_ASSIGN_OR_RETURN(const KernelSource source, SourceOf(function, target));
  INGOT_ASSIGN_OR_RETURN(const PtxImage image, CompilePtx({&source, 1}, target));
  Compiled().push_back(source);
  return RunImage(source, image, arguments);
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
  const Result<std::vector<ReferenceTensor>> got = op::RunImplementations(*call, c.inputs, dims, RunPtx);
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
                          reduce("mean", {7, 5, 40}, {0, 2}),
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
  INGOT_RETURN_IF_ERROR(RunImage(source, image, arguments));
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

std::string PtxasPath() {
  for (const char* path : {"/usr/local/cuda/bin/ptxas", "/usr/bin/ptxas"}) {
    if (access(path, X_OK) == 0) return path;
  }
  return "";
}

// It comes behind the test above, whose kernels it takes.
TEST_CASE("ptxas takes the kernels of operators, and finds registers for them") {
  const std::string ptxas = PtxasPath();
  if (ptxas.empty() || Compiled().empty()) {
    std::puts("SKIP: ptxas takes the kernels of operators: no ptxas, or no kernels");
    return;
  }
  const std::vector<KernelSource>& all = Compiled();
  const bool is_long = std::getenv("INGOT_LONG_TESTS") != nullptr;
  const size_t count = is_long ? all.size() : std::min(all.size(), kMostAssembled);
  std::vector<KernelSource> sources;
  for (size_t i = 0; i < count; ++i) {
    sources.push_back(all[i * all.size() / count]);
    sources.back().name = "k" + std::to_string(i);
  }
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("ingot_ptx_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  for (const char* sm : {"sm_80", "sm_90"}) {
    CAPTURE(std::string(sm));
    const Result<PtxImage> image = CompilePtx(sources, Sm(sm));
    REQUIRE_MESSAGE(image.ok(), image.status().message());
    std::ofstream(folder / "kernels.ptx") << image->ptx;
    const std::string log = (folder / "log").string();
    const std::string command = ptxas + " -v -arch=" + sm + " " + (folder / "kernels.ptx").string() + " -o " +
                                (folder / "cubin").string() + " >" + log + " 2>&1";
    const int code = std::system(command.c_str());
    std::ifstream file(log);
    std::string line, errors;
    int kernels = 0, most_spilled = 0, most_registers = 0;
    while (std::getline(file, line)) {
      if (line.find("error") != std::string::npos || line.find("fatal") != std::string::npos) errors += line + "\n";
      if (line.find("spill stores") != std::string::npos) {
        most_spilled = std::max(most_spilled, std::atoi(line.c_str() + line.find(',') + 1));
      }
      const size_t used = line.find("Used ");
      if (used == std::string::npos) continue;
      ++kernels;
      most_registers = std::max(most_registers, std::atoi(line.c_str() + used + 5));
    }
    CHECK_MESSAGE(code == 0, errors);
    CHECK(kernels >= std::ssize(sources));
    CHECK(most_spilled <= kMostSpilled);
    MESSAGE(std::string(sm), ": ", kernels, " launches, at most ", most_registers, " registers, ", most_spilled,
            " bytes spilled");
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ingot::codegen
