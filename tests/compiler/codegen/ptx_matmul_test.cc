// Matrix products by the rules cuda_matmul and cuda_mma on the GPU that is not there, beside the interpreter of the
// function as it was before its schedule: random sizes around those of the tiles, fixed and symbolic, every dtype,
// batches, factors in any order of axes, epilogues. The numbers are small integers, so that sums are exact in any order
// and results equal bit for bit. INGOT_LONG_TESTS=1 takes ten times as many products.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "compiler/schedule/default_schedule.h"
#include "tests/compiler/codegen/ptx_product.h"

namespace ingot::codegen {
namespace {

using namespace testing;  // NOLINT

const Dtypes kTileDtypes = {{kF32, kF32},
                            {kF32, kF32},
                            {kF32, kF32},
                            {kF32, kF32},
                            {kF16, kF16},
                            {kBf16, kBf16},
                            {kF64, kF64},
                            {DataType::Int(8), DataType::Int(32)},
                            {DataType::UInt(8), DataType::Int(32)},
                            {DataType::Int(32), DataType::Int(32)},
                            {DataType::Int(64), DataType::Int(64)},
                            {DataType::Int(16), DataType::Int(16)},
                            {DataType::UInt(32), DataType::UInt(32)}};
const std::vector<int64_t> kTileSizes = {0, 1, 2, 7, 8, 16, 17, 31, 32, 33, 48, 63, 64, 65, 80, 100, 127, 128, 129};

TEST_CASE("matrix products in tiles on the stand-in GPU are those of the interpreter") {
  CheckProducts("cuda_matmul", kTileDtypes, kTileSizes, 8);
}

TEST_CASE("products with a few vectors on the stand-in GPU are those of the interpreter") {
  const size_t count = std::getenv("INGOT_LONG_TESTS") != nullptr ? 200 : 20;
  std::mt19937_64 generator(23);
  std::vector<KernelSource> sources;
  const int64_t rows[] = {1, 1, 2, 5, 7}, columns[] = {8, 16, 33, 100, 129}, depths[] = {64, 65, 128, 300, 700};
  for (size_t i = 0; i < count; ++i) {
    Product p = RandomProduct(generator, kTileDtypes, kTileSizes, 8);
    p.m = rows[generator() % std::size(rows)];
    p.n = columns[generator() % std::size(columns)];
    p.k = depths[generator() % std::size(depths)];
    p.b_turned = p.out_turned = false;
    p.symbolic &= p.b_panels ? 9u : 13u;  // the rows are known to be few
    if (p.b_shared || p.b_panels) {       // rows of all batches would be many
      p.batch = 0;
      p.symbolic &= ~1u;
    }
    CAPTURE(p.Text());
    const SizedFunction built = Build(p);
    CHECK(KeepsAway(built.function, "cuda_vector_product", "matmul") == "");
    const Result<op::Bytes> expected = Expected(p, i);
    REQUIRE_MESSAGE(expected.ok(), expected.status().message());
    CHECK(Wrong(built, SmallIntegers(built, i), *expected, sources) == "");
  }
  CompileForLater(sources);
}

TEST_CASE("matrix products by matrix instructions on the stand-in GPU are those of the interpreter") {
  CheckProducts("cuda_mma", {{kF16, kF32}, {kBf16, kF32}}, kMmaSizes, 9);
}

// How often each warp touches memory, of the default schedule with the rule and without it.
TEST_CASE("tiles read memory less often, and shared memory without conflicts") {
  const auto counts_of = [](const SizedFunction& built, const std::vector<std::string>& without) {
    const Result<ptx::LaunchCounts> counts = CountAccesses(built, without);
    REQUIRE_MESSAGE(counts.ok(), counts.status().message());
    return *counts;
  };
  for (const bool turned : {false, true}) {
    Product p = Plain(256, 256, 64);
    p.b_turned = turned;
    const SizedFunction built = Build(p);
    const ptx::LaunchCounts before = counts_of(built, {"cuda_matmul", "cuda_windows"});
    const ptx::LaunchCounts after = counts_of(built, {});
    MESSAGE(std::string(turned ? "b^T: " : "b: "), before.global_sectors, " sectors before, ", after.global_sectors,
            " after; ", before.warp_instructions, " instructions before, ", after.warp_instructions, " after; ",
            after.shared_requests, " accesses of shared memory in ", after.shared_wavefronts, " passes");
    CHECK(after.global_sectors * 8 < before.global_sectors);
    CHECK(after.warp_instructions * 2 < before.warp_instructions);
    // An access of 16 bytes by each lane takes four passes.
    CHECK(after.shared_wavefronts <= 4 * after.shared_requests);
  }
}

TEST_CASE("a product with a vector reads its matrix once") {
  for (const bool in_panels : {false, true}) {
    Product p = Plain(1, 256, 1024);
    p.b_panels = in_panels;
    const SizedFunction built = Build(p);
    const Result<ptx::LaunchCounts> before =
        CountAccesses(built, {"cuda_matmul", "cuda_vector_product", "cuda_columns"});
    const Result<ptx::LaunchCounts> after = CountAccesses(built, {});
    REQUIRE(before.ok());
    REQUIRE_MESSAGE(after.ok(), after.status().message());
    MESSAGE(before->global_sectors, " sectors before, ", after->global_sectors, " after; ", before->warp_instructions,
            " instructions before, ", after->warp_instructions, " after; ", after->shared_requests,
            " accesses of shared memory in ", after->shared_wavefronts, " passes");
    constexpr int64_t kSectorBytes = 32;
    CHECK(after->global_sectors < p.n * p.k * 4 / kSectorBytes * 3 / 2);
    CHECK(after->warp_instructions * 2 < before->warp_instructions);
  }
}

// Every tile of cuda_mma, on sizes that it does not divide, and what it costs where it does.
TEST_CASE("tiles of matrix instructions read shared memory without conflicts, from registers that suffice") {
  const Target target = Sm("sm_80");
  std::vector<KernelSource> sources;
  const auto run = [&](const Product& p, const schedule::Chosen& chosen) {
    const SizedFunction built = Build(p);
    const Result<schedule::ScheduledFunction> scheduled =
        schedule::ApplyDefaultSchedule(built.function, target, chosen);
    REQUIRE_MESSAGE(scheduled.ok(), scheduled.status().message());
    const Result<KernelSource> source = SourceOf(schedule::MarkScheduled(scheduled->function), target);
    REQUIRE_MESSAGE(source.ok(), source.status().message());
    const Result<PtxImage> image = CompilePtx({&*source, 1}, target);
    REQUIRE_MESSAGE(image.ok(), image.status().message());
    CHECK(image->kernels[0].launches[0].shared_bytes <= 99 << 10);
    sources.push_back(*source);
    op::KernelArguments arguments = SmallIntegers(built, 1);
    const Result<ptx::LaunchCounts> counts =
        RunImage(*source, *image, arguments, {.orders = {ptx::WarpOrder::kLowestFirst}, .count_accesses = true});
    REQUIRE_MESSAGE(counts.ok(), counts.status().message());
    CHECK(std::ranges::equal(arguments.bytes.back(), *Expected(p, 1)));
    return *counts;
  };
  int64_t stages = 2;
  for (const int64_t rows : {16, 32, 64, 128, 256}) {
    for (const int64_t columns : {32, 64, 128, 256}) {
      if (rows == 256 && columns == 256) continue;
      const schedule::Chosen chosen = {
          {"cuda_mma.rows", rows}, {"cuda_mma.columns", columns}, {"cuda_mma.stages", stages}};
      stages = stages == 4 ? 2 : stages + 1;
      Product p = Plain(rows + 9, columns + 22, 70);
      p.dtype = kF16;
      run(p, chosen);
      p = Plain(rows, columns, 64);
      p.dtype = kBf16;
      p.a_turned = sources.size() / 2 % 2 != 0;
      p.b_turned = sources.size() / 2 % 3 == 1;
      p.b_panels = sources.size() / 2 % 3 == 2;
      const ptx::LaunchCounts counts = run(p, chosen);
      CAPTURE(p.Text());
      // An access of 16 bytes by each lane takes four passes; of two matrices, by half of the lanes, two.
      CHECK((columns == 32 ? counts.shared_wavefronts <= 4 * counts.shared_requests
                           : counts.shared_wavefronts == 4 * counts.shared_requests));
      // Sectors of 32 bytes: both factors once, and the result, of which four lanes have the 32 bytes of a row.
      CHECK(counts.global_sectors == ((rows + columns) * p.k * 2 + rows * columns * 4) / 32);
    }
  }
  CompileForLater(sources);
}

// A factor whose rows have no whole chunks, and which many tiles read, is padded by a launch before the product's.
TEST_CASE("factors of matrix instructions without whole chunks are padded first") {
  std::vector<KernelSource> sources;
  for (const bool turned : {false, true}) {
    Product p = Plain(turned ? 27 : 530, turned ? 530 : 27, 43);
    p.dtype = kF16;
    p.out_turned = turned;
    CAPTURE(p.Text());
    const SizedFunction built = Build(p);
    const Result<KernelSource> source = SourceOf(built.function, Sm("sm_80"));
    REQUIRE_MESSAGE(source.ok(), source.status().message());
    const Result<PtxImage> image = CompilePtx({&*source, 1}, Sm("sm_80"));
    REQUIRE_MESSAGE(image.ok(), image.status().message());
    CHECK(image->kernels[0].launches.size() == 2);
    CHECK(Wrong(built, SmallIntegers(built, 1), *Expected(p, 1), sources) == "");
  }
  CompileForLater(sources);
}

TEST_CASE("products by matrix instructions whose sums blocks share are those of the interpreter") {
  std::vector<KernelSource> sources;
  for (int form = 0; form < 5; ++form) {
    Product p = Plain(form == 0 ? 64 : 21, form == 1 ? 32 : 75, form == 2 ? 1030 : 640);
    p.dtype = form == 3 ? kBf16 : kF16;
    p.batch = form == 4 ? 2 : 0;
    p.a_turned = form == 1;
    p.b_turned = form == 2 || form == 4;
    p.out_turned = form == 3;
    p.b_panels = form == 3;
    p.has_epilogue = form != 0;
    CAPTURE(p.Text());
    const SizedFunction built = Build(p);
    const Result<schedule::ScheduledFunction> scheduled =
        schedule::ApplyDefaultSchedule(built.function, Sm("sm_80"), {{"cuda_mma.parts", 4}});
    REQUIRE_MESSAGE(scheduled.ok(), scheduled.status().message());
    SizedFunction parted = built;
    parted.function = schedule::MarkScheduled(scheduled->function);
    CHECK(Wrong(parted, SmallIntegers(built, 1), *Expected(p, 1), sources) == "");
    const Result<PtxImage> image = CompilePtx({&sources.back(), 1}, Sm("sm_80"));
    REQUIRE(image.ok());
    CHECK(image->ptx.find("mma.sync") != std::string::npos);
    CHECK(image->kernels[0].launches.size() == 2);
  }
  CompileForLater(sources);
}

// Tiles that are whole and others, in rows of whole chunks and of any, with one loop over the tiles, several and none.
TEST_CASE("each block of the kernels of products of symbolic sizes runs for some size") {
  struct Form {
    DataType dtype;
    bool a_turned, b_turned, is_vector, rounds = false;
  };
  for (const Form& form :
       {Form{kF16, false, false, false}, Form{kF16, true, false, false}, Form{kF16, false, true, false},
        Form{kF32, false, false, false}, Form{kF32, true, true, false}, Form{kF32, false, false, true},
        Form{kF32, true, false, false, true}}) {
    Product p = Plain(1, 1, 1);
    p.rounds = form.rounds;
    p.dtype = form.dtype;
    p.a_turned = form.a_turned;
    p.b_turned = form.b_turned;
    p.has_epilogue = form.a_turned;
    p.symbolic = form.is_vector ? 12 : 14;
    CAPTURE(p.Text());
    std::mt19937_64 generator(3);
    const auto any = [&](std::initializer_list<int64_t> sizes) {
      return generator() % 2 == 0 ? static_cast<int64_t>(1 + generator() % 150)
                                  : sizes.begin()[generator() % sizes.size()];
    };
    CHECK(BlocksLeftOut(
              [&](size_t i) {
                p.m = form.is_vector ? 1 : any({8, 33, 64, 65, 72, 128, 136, 200});
                p.n = any({8, 33, 64, 65, 72, 128, 136, 200});
                p.k = i < 2 ? 0 : any({1, 7, 8, 32, 33, 64, 65, 72, 128, 200, 256, 320});
                if (i >= 2 && i < 10) {  // rows of whole chunks or others in one factor, in the other one, and in both
                  p.m = form.is_vector ? 1 : i % 2 == 0 ? 72 : 65;
                  p.n = i / 2 % 2 == 0 ? 72 : 65;
                  p.k = i / 4 % 2 == 0 ? 320 : 321;
                }
                return Build(p);
              },
              60) == 0);
  }
}

constexpr const char* kBounds[][2] = {{".lt.", ".le."}, {".le.", ".lt."}, {".gt.", ".ge."}, {".ge.", ".gt."}};

// Without a barrier, or with a bound shifted by one, the kernel is refused by the stand-in or gives another result. Two
// mutants mean the same: they make one more iteration of the steps that are no whole tile, which adds zeros.
constexpr int kEquivalentBounds = 2;
// Behind the sums of those steps, which one iteration makes at most.
constexpr int kEquivalentBarriers = 1;
TEST_CASE("mistakes in the kernel of a matrix product show") {
  // Together they have their last row, column and step in each copy of the unrolled loops; k has no whole tile, or
  // nothing else.
  const Judged judged =
      Judge(Plain(1, 1, 1), {{70, 65, 34}, {87, 82, 39}, {104, 99, 41}, {121, 116, 45}, {66, 67, 7}, {65, 67, 32}});
  Mistakes barriers, bounds;
  ForLines(judged.image.ptx, [&](size_t start, const std::string& line) {
    CAPTURE(line);
    if (line.find("bar.sync") != std::string::npos) barriers.Count(judged.IsCaught(start, line, ""));
    for (const auto& [from, to] : kBounds) {
      if (line.find("setp") == std::string::npos || line.find(from) == std::string::npos) continue;
      const bool is_caught = judged.IsCaught(start, from, to);
      bounds.Count(is_caught);
      if (!is_caught) MESSAGE("means the same with ", std::string(to), ": ", line);
    }
  });
  MESSAGE(barriers.made, " barriers, ", bounds.made, " bounds");
  CHECK(barriers.made == 4);
  CHECK(barriers.unseen == kEquivalentBarriers);
  CHECK(bounds.made >= 8);
  CHECK(bounds.unseen == kEquivalentBounds);
}

// The same for matrix instructions, with groups of copies that are waited for too late or not ended, matrices that are
// turned or not, and fragments in another order. Nothing comes behind the last wait and the barrier there.
constexpr int kIdleWaits = 1, kIdleBarriers = 1;
TEST_CASE("mistakes in the kernel of a matrix product by matrix instructions show") {
  Product p = Plain(1, 1, 1);
  p.dtype = kF16;
  // Rows of whole chunks and others, which have loops of their own; in the last one the rows of one factor are whole.
  const Judged judged = Judge(p, {{70, 72, 232}, {65, 96, 160}, {33, 63, 7}, {66, 72, 231}},
                              {{"cuda_mma.rows", 64}, {"cuda_mma.columns", 64}});
  Mistakes barriers, waits, groups, turns, fragments;
  ForLines(judged.image.ptx, [&](size_t start, const std::string& line) {
    CAPTURE(line);
    const auto has = [&](const char* part) { return line.find(part) != std::string::npos; };
    if (has("bar.sync")) barriers.Count(judged.IsCaught(start, line, ""));
    if (has("cp.async.wait_all")) waits.Count(judged.IsCaught(start, line, ""));
    if (has("cp.async.wait_group")) waits.Count(judged.IsCaught(start, "wait_group 2", "wait_group 3"));
    if (has("cp.async.commit_group")) groups.Count(judged.IsCaught(start, line, ""));
    if (!has("ldmatrix")) return;
    const bool is_turned = has(".trans");
    turns.Count(judged.IsCaught(start, is_turned ? ".x4.trans" : ".x4", is_turned ? ".x4" : ".x4.trans"));
    const size_t first = line.find('{') + 1, second = line.find(',') + 2, third = line.find(',', second) + 2;
    const std::string one = line.substr(first, second - first - 2), other = line.substr(second, third - second - 2);
    fragments.Count(judged.IsCaught(start, one + ", " + other, other + ", " + one));
  });
  MESSAGE(barriers.made, " barriers, ", waits.made, " waits, ", groups.made, " groups, ", turns.made, " matrices");
  CHECK(barriers.made == 4);
  CHECK(barriers.unseen == kIdleBarriers);
  CHECK(waits.made == 4);
  CHECK(waits.unseen == kIdleWaits);
  CHECK(groups.made == 8);
  CHECK(groups.unseen == 0);
  CHECK(turns.made == 36);
  CHECK(turns.unseen == 0);
  CHECK(fragments.made == 36);
  CHECK(fragments.unseen == 0);
}

}  // namespace
}  // namespace ingot::codegen
