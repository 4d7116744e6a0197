// Matrix products by the rule cuda_wgmma on the GPU that is not there, beside the interpreter: whole tiles and padding,
// factors in any order of axes, batches, epilogues, both tiles; mistakes in their kernels, which are all refused or give
// another result; what ptxas says of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "compiler/schedule/default_schedule.h"
#include "compiler/schedule/rules/rules.h"
#include "compiler/te/tensor.h"
#include "tests/compiler/codegen/ptx_audit.h"
#include "tests/compiler/codegen/ptx_run.h"

namespace ingot::codegen {
namespace {

using ir::Int64;
using ir::PrimExpr;
using testing::Assemble, testing::Assembled, testing::HasPtxas, testing::InterpretedResult, testing::RunImage,
    testing::SizedFunction, testing::Sm, testing::SmallIntegers, testing::SourceOf;

struct GroupProduct {
  int64_t m, n, k, batch = 0;  // 0: there is none
  bool is_bfloat = false, a_turned = false, b_turned = false, has_epilogue = false;
  bool b_panels = false;                          // b[n / 16, k, n % 16], of all batches
  int64_t rows = 128, columns = 128, stages = 4;  // of the tile
  std::string Text() const {
    std::string text = is_bfloat ? "bfloat16" : "float16";
    for (const int64_t number : {batch, m, n, k, rows, columns, stages}) text += " " + std::to_string(number);
    return text + (a_turned ? " a^T" : "") + (b_turned ? " b^T" : "") + (b_panels ? " b in panels" : "") +
           (has_epilogue ? " epilogue" : "");
  }
};

SizedFunction BuildGroup(const GroupProduct& p) {
  const DataType dtype = p.is_bfloat ? DataType::Bfloat16() : DataType::Float(16), sums = DataType::Float(32);
  const auto in_order = [&](auto x, auto y, auto batch, bool turned) {
    std::vector<decltype(x)> all{turned ? y : x, turned ? x : y};
    if (p.batch > 0) all.insert(all.begin(), batch);
    return all;
  };
  const auto placeholder = [&](int64_t x, int64_t y, bool turned, const char* name) {
    return te::Placeholder(in_order(Int64(x), Int64(y), Int64(p.batch), turned), dtype, name);
  };
  constexpr int64_t kPanel = 16;
  const std::vector<int64_t> panels = {(p.n + kPanel - 1) / kPanel, p.k, kPanel};
  const te::Tensor a = placeholder(p.m, p.k, p.a_turned, "A");
  const te::Tensor b = p.b_panels ? te::Placeholder({Int64(panels[0]), Int64(panels[1]), Int64(kPanel)}, dtype, "B")
                                  : placeholder(p.k, p.n, p.b_turned, "B");
  const te::Tensor bias = te::Placeholder({Int64(p.n)}, sums, "bias");
  const ir::IterVar r = te::ReduceAxis(Int64(p.k), "k");
  const std::vector<PrimExpr> shape = in_order(Int64(p.m), Int64(p.n), Int64(p.batch), false);
  const size_t at = p.batch > 0 ? 1 : 0;
  const te::Tensor product = te::Compute(
      shape,
      [&](const te::Indices& i) {
        const PrimExpr rk = r->var, column = i[at + 1];
        const PrimExpr factor = p.b_panels
                                    ? b({ir::FloorDiv(column, Int64(kPanel)), rk, ir::FloorMod(column, Int64(kPanel))})
                                    : b(in_order(rk, column, i[0], p.b_turned));
        return te::Sum(ir::Cast(sums, a(in_order(i[at], rk, i[0], p.a_turned))) * ir::Cast(sums, factor), {r});
      },
      "matmul");
  const te::Tensor out = !p.has_epilogue ? product
                                         : te::Compute(
                                               shape,
                                               [&](const te::Indices& i) {
                                                 const PrimExpr biased = product(i) + bias({i[at + 1]});
                                                 return ir::Cast(dtype, ir::Max(biased, ir::MakeConst(sums, 0)));
                                               },
                                               "clipped");
  SizedFunction built{
      nullptr,
      {in_order(p.m, p.k, p.batch, p.a_turned), p.b_panels ? panels : in_order(p.k, p.n, p.batch, p.b_turned)},
      {dtype, dtype}};
  std::vector<te::Tensor> args{a, b};
  if (p.has_epilogue) {
    args.push_back(bias);
    built.dims.push_back({p.n});
    built.dtypes.push_back(sums);
  }
  args.push_back(out);
  built.dims.push_back(in_order(p.m, p.n, p.batch, false));
  built.dtypes.push_back(out.dtype());
  built.function = te::CreatePrimFunc(args);
  return built;
}

// A product of few tiles, by the rule for many of them.
struct Made {
  SizedFunction built;
  KernelSource source;
  PtxImage image;
};
Made MakeGroup(const GroupProduct& p) {
  const Target target = Sm("sm_90a");
  std::vector<schedule::ScheduleRule> rules;
  for (schedule::ScheduleRule rule : schedule::DefaultRules(Target::Kind::kCuda)) {
    if (std::string(rule.name) == "cuda_wgmma") rule.matches = schedule::MatchesAnyCudaWgmma;
    rules.push_back(rule);
  }
  SizedFunction built = BuildGroup(p);
  const Result<schedule::ScheduledFunction> scheduled = schedule::ApplySchedule(
      built.function, target, rules,
      {{"cuda_wgmma.rows", p.rows}, {"cuda_wgmma.columns", p.columns}, {"cuda_wgmma.stages", p.stages}});
  REQUIRE_MESSAGE(scheduled.ok(), scheduled.status().message());
  Result<KernelSource> source = SourceOf(schedule::MarkScheduled(scheduled->function), target);
  REQUIRE_MESSAGE(source.ok(), source.status().message());
  Result<PtxImage> image = CompilePtx({&*source, 1}, target);
  REQUIRE_MESSAGE(image.ok(), image.status().message());
  CHECK(image->ptx.find("wgmma.mma_async") != std::string::npos);
  return {std::move(built), *std::move(source), *std::move(image)};
}

const ptx::MachineOptions kOn90 = {.sm = 90, .orders = {ptx::WarpOrder::kLowestFirst, ptx::WarpOrder::kRandom}};

TEST_CASE("matrix products by wgmma on the stand-in GPU are those of the interpreter") {
  const GroupProduct products[] = {
      {.m = 128, .n = 128, .k = 72},
      {.m = 128, .n = 256, .k = 320, .columns = 256},
      {.m = 128, .n = 128, .k = 128, .is_bfloat = true, .b_turned = true, .stages = 3},
      {.m = 128, .n = 256, .k = 128, .a_turned = true, .b_turned = true, .columns = 256},
      {.m = 256, .n = 128, .k = 192, .a_turned = true, .rows = 256},
      {.m = 128, .n = 192, .k = 200, .b_turned = true, .columns = 192},
      {.m = 199, .n = 200, .k = 72, .has_epilogue = true, .columns = 192},
      {.m = 128, .n = 384, .k = 96, .columns = 192},
      {.m = 121, .n = 263, .k = 200, .is_bfloat = true, .b_turned = true, .has_epilogue = true, .columns = 256},
      {.m = 72, .n = 40, .k = 96, .batch = 2, .is_bfloat = true, .a_turned = true},
      {.m = 128, .n = 256, .k = 192, .b_panels = true, .columns = 256},
      {.m = 250, .n = 199, .k = 136, .batch = 2, .has_epilogue = true, .b_panels = true, .columns = 192},
  };
  for (const GroupProduct& p : products) {
    CAPTURE(p.Text());
    const Made made = MakeGroup(p);
    op::KernelArguments arguments = SmallIntegers(made.built, 1);
    const Result<op::Bytes> expected = InterpretedResult(made.built, arguments);
    REQUIRE_MESSAGE(expected.ok(), expected.status().message());
    const Result<ptx::LaunchCounts> counts = RunImage(made.source, made.image, arguments, kOn90);
    REQUIRE_MESSAGE(counts.ok(), counts.status().message());
    CHECK(std::ranges::equal(arguments.bytes.back(), *expected));
    for (const std::string& block : testing::BlocksNotRun(made.image.ptx)) CHECK_MESSAGE(false, "not run: ", block);
    if (!HasPtxas()) continue;
    const Assembled assembled = Assemble(made.image.ptx, "sm_90a");
    CHECK_MESSAGE(assembled.is_ok, assembled.errors);
    CHECK(assembled.most_spilled == 0);
    CHECK(assembled.remarks == "");  // such as: wgmma.mma_async instructions are serialized
    MESSAGE(p.Text(), ": ", assembled.most_registers, " registers");
  }
}

// Why the rule does not take the product; empty: it does.
std::string Declines(const GroupProduct& p, const char* sm) {
  const Result<schedule::ScheduledFunction> scheduled = schedule::ApplyDefaultSchedule(BuildGroup(p).function, Sm(sm));
  REQUIRE_MESSAGE(scheduled.ok(), scheduled.status().message());
  for (const schedule::RuleAnswer& answer : scheduled->answers) {
    if (answer.rule == std::string("cuda_wgmma") && answer.block == "matmul") {
      return answer.is_scheduled() ? "" : answer.why_not();
    }
  }
  return "nobody asked it";
}

TEST_CASE("wgmma is for products of many full tiles, on sm_90a") {
  CHECK(Declines({.m = 2048, .n = 2048, .k = 128}, "sm_90a") == "");
  CHECK(Declines({.m = 1024, .n = 1024, .k = 4096}, "sm_90a") == "");
  CHECK(Declines({.m = 2000, .n = 2048, .k = 2040}, "sm_90a") == "");
  CHECK(Declines({.m = 512, .n = 512, .k = 128, .batch = 16}, "sm_90a") == "");
  CHECK(Declines({.m = 2048, .n = 2048, .k = 128, .b_panels = true}, "sm_90a") == "");
  CHECK(Declines({.m = 2048, .n = 2048, .k = 128}, "sm_90") == "the target has no matrix instructions of four warps");
  const std::string few = "tiles of single warps are likely to be as fast";
  CHECK(Declines({.m = 128, .n = 1024, .k = 1024}, "sm_90a") == few);
  CHECK(Declines({.m = 80, .n = 4096, .k = 128}, "sm_90a") == few);
  CHECK(Declines({.m = 2048, .n = 2047, .k = 128}, "sm_90a") == "rows of one of its factors are not aligned");
  CHECK(Declines({.m = 2048, .n = 2048, .k = 64}, "sm_90a") ==
        "its summands are one tile, so that nothing is copied ahead");
}

// As the default rules have it, of sizes that are too large to run here. INGOT_LONG_TESTS=1 takes ten times as many.
TEST_CASE("large products of any size become wgmma that ptxas takes") {
  const size_t count = std::getenv("INGOT_LONG_TESTS") != nullptr ? 50 : 5;
  std::mt19937_64 generator(3);
  const auto size = [&](int64_t most) { return 8 * (1 + static_cast<int64_t>(generator() % (most / 8))); };
  for (size_t made = 0; made < count;) {
    const auto flip = [&] { return generator() % 2 == 0; };
    GroupProduct p{.m = size(4096), .n = size(4096), .k = 64 + size(2048)};
    p.batch = flip() ? 0 : 1 + static_cast<int64_t>(generator() % 70);
    p.is_bfloat = flip();
    p.a_turned = flip();
    p.b_turned = flip();
    p.has_epilogue = flip();
    if (!p.a_turned) p.m -= static_cast<int64_t>(generator() % 8);
    p.b_panels = generator() % 3 == 0;
    if (p.b_turned || p.b_panels) p.n -= static_cast<int64_t>(generator() % 8);
    if (!Declines(p, "sm_90a").empty()) continue;
    ++made;
    CAPTURE(p.Text());
    const Result<KernelSource> source = SourceOf(BuildGroup(p).function, Sm("sm_90a"));
    REQUIRE_MESSAGE(source.ok(), source.status().message());
    const Result<PtxImage> image = CompilePtx({&*source, 1}, Sm("sm_90a"));
    REQUIRE_MESSAGE(image.ok(), image.status().message());
    CHECK(image->ptx.find("wgmma.mma_async") != std::string::npos);
    if (!HasPtxas()) continue;
    const Assembled assembled = Assemble(image->ptx, "sm_90a");
    CHECK_MESSAGE(assembled.is_ok, assembled.errors);
    CHECK(assembled.most_spilled == 0);
    CHECK(assembled.remarks == "");
  }
}

// Instructions left out, waits for one group less, and what is in another place or form.
TEST_CASE("mistakes in the kernel of a matrix product by wgmma show") {
  const Made made = MakeGroup({.m = 128, .n = 128, .k = 328, .stages = 3});
  const op::KernelArguments arguments = SmallIntegers(made.built, 1);
  const Result<op::Bytes> expected = InterpretedResult(made.built, arguments);
  REQUIRE(expected.ok());
  const auto what_is_wrong = [&](const std::string& text) -> std::string {
    PtxImage mutant = made.image;
    mutant.ptx = text;
    op::KernelArguments own = arguments;
    const Status status =
        RunImage(made.source, mutant, own, {.sm = 90, .orders = {ptx::WarpOrder::kLowestFirst}}).status();
    if (!status.ok()) return std::string(status.message());
    return std::ranges::equal(own.bytes.back(), *expected) ? "" : "another result";
  };
  const std::string& text = made.image.ptx;
  REQUIRE(what_is_wrong(text) == "");
  struct Mistake {
    const char *line, *from, *to, *message;  // in each line that has the first
    int made, unseen = 0;
  };
  const Mistake mistakes[] = {
      {"wgmma.fence", "wgmma.fence.sync.aligned;", "", "the registers of a wgmma were not fenced", 1},
      {"wgmma.commit_group", "wgmma.commit_group.sync.aligned;", "", "that a wgmma may still read", 1},
      {"wgmma.wait_group.sync.aligned 1", "aligned 1", "aligned 2", "that a wgmma may still read", 1},
      {"wgmma.wait_group.sync.aligned 0", "aligned 0", "aligned 1", "never computed", 1},
      {"fence.proxy.async", "fence.proxy.async.shared::cta;", "", "did not make it visible", 1},
      {"cp.async.wait_group", "wait_group 0", "wait_group 1", "that a cp.async is still writing", 1},
      // The last one, of the epilogue, waits for nothing.
      {"bar.sync", "bar.sync", "//", "", 2, 1},
      {"wgmma.mma_async", "1, 1, 1, 0, 1;", "1, 1, 1, 1, 1;", "", 4},
      {"wgmma.mma_async", "1, 1, 1, 0, 1;", "1, 1, 1, 0, 0;", "", 4},
      {"wgmma.mma_async", "1, 1, 1, 0, 1;", "0, 1, 1, 0, 1;", "", 4},
      {"wgmma.mma_async", "1, 1, 1, 0, 1;", "1, 1, -1, 0, 1;", "", 4},
  };
  for (const Mistake& mistake : mistakes) {
    CAPTURE(std::string(mistake.from));
    int count = 0, unseen = 0;
    for (size_t at = text.find(mistake.line); at != std::string::npos; at = text.find(mistake.line, at + 1)) {
      const size_t place = text.find(mistake.from, at);
      if (place == std::string::npos || place > text.find('\n', at)) continue;
      const std::string wrong =
          what_is_wrong(std::string(text).replace(place, std::string(mistake.from).size(), mistake.to));
      ++count;
      unseen += wrong.empty() ? 1 : 0;
      if (!wrong.empty()) CHECK_MESSAGE(wrong.find(mistake.message) != std::string::npos, wrong);
    }
    CHECK(count == mistake.made);
    CHECK(unseen == mistake.unseen);
  }
  // Parts of rows that are not swapped, and descriptors that begin 16 bytes later: their constants are those that say how
  // the matrix is swizzled.
  int moved = 0, swapped = 0;
  for (size_t start = 0; start < text.size(); start = text.find('\n', start) + 1) {
    const std::string line = text.substr(start, text.find('\n', start) - start);
    CAPTURE(line);
    const size_t constant = line.find(" 46116862");
    if (constant != std::string::npos) {
      ++moved;
      const std::string later = std::to_string(std::strtoull(line.c_str() + constant, nullptr, 10) + 1);
      CHECK(what_is_wrong(std::string(text).replace(start + constant + 1, later.size(), later)) != "");
    }
    if (line.find("xor.b64") != std::string::npos) {
      ++swapped;
      std::string other = line.substr(0, line.rfind(','));
      other.replace(other.find("xor.b64"), 7, "mov.b64");
      CHECK(what_is_wrong(std::string(text).replace(start, line.size() - 1, other)) != "");
    }
  }
  MESSAGE(moved, " descriptors moved, ", swapped, " parts of rows not swapped");
  CHECK(moved >= 6);
  CHECK(swapped >= 1);
}

}  // namespace
}  // namespace ingot::codegen
