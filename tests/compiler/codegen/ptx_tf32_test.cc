// Matrix products of float32 by matrix instructions, where it is permitted that factors are rounded to tf32: beside the
// interpreter on factors that become small integers, beside float64 on any, with mistakes in their kernels, and what they
// cost of shared memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "compiler/schedule/default_schedule.h"
#include "tests/compiler/codegen/ptx_product.h"

namespace ingot::codegen {
namespace {

using namespace testing;  // NOLINT

TEST_CASE("products of float32 that may be rounded to tf32 are those of the rounded factors") {
  CheckProducts("cuda_mma", {{kF32, kF32}}, kMmaSizes, 9, 12);
}

// Float32 where it may be rounded: fragments in another order, and factors that are cut off.
TEST_CASE("mistakes in the kernel of a matrix product by tf32 show") {
  Product p = Plain(1, 1, 1);
  p.rounds = true;
  const Judged judged = Judge(p, {{70, 72, 36}, {66, 70, 35}}, {{"cuda_mma.rows", 64}, {"cuda_mma.columns", 64}});
  Mistakes barriers, roundings, fragments;
  int number = 0;
  ForLines(judged.image.ptx, [&](size_t start, const std::string& line) {
    CAPTURE(line);
    const auto has = [&](const char* part) { return line.find(part) != std::string::npos; };
    if (has("bar.sync")) barriers.Count(judged.IsCaught(start, line, ""));
    if (!has("cvt.rna.tf32") && !has("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")) return;
    if (++number % 8 != 0) return;
    if (has("cvt.rna.tf32")) return roundings.Count(judged.IsCaught(start, "cvt.rna.tf32.f32", "mov.b32"));
    // Of the second list, which is A's: the upper and the lower row.
    const std::string& ptx = judged.image.ptx;
    const size_t list = ptx.find('{', ptx.find('}', start)) + 1, second = ptx.find(',', list) + 2;
    const size_t third = ptx.find(',', second) + 2;
    const std::string one = ptx.substr(list, second - list - 2), other = ptx.substr(second, third - second - 2);
    fragments.Count(judged.IsCaught(list - 1, "{" + one + ", " + other, "{" + other + ", " + one));
  });
  MESSAGE(barriers.made, " barriers, ", roundings.made, " roundings, ", fragments.made, " fragments");
  CHECK(barriers.made == 4);
  CHECK(barriers.unseen == 1);  // nothing comes behind the last one
  CHECK(roundings.made >= 8);
  CHECK(roundings.unseen == 0);
  CHECK(fragments.made >= 8);
  CHECK(fragments.unseen == 0);
}

// Of any numbers: each factor is off by 2^-11 at most, and sums are those of float32.
TEST_CASE("products by tf32 are within their bound, and what is not finite stays so") {
  Product p = Plain(40, 48, 200);
  p.rounds = p.b_turned = true;
  const SizedFunction built = Build(p);
  op::KernelArguments arguments = SmallIntegers(built, 1);
  std::mt19937_64 generator(5);
  std::vector<std::vector<float>> factors;
  for (size_t i = 0; i < 2; ++i) {
    std::vector<float> values(arguments.bytes[i].size() / 4);
    for (float& value : values) value = std::ldexp(static_cast<float>(generator() % (1 << 24)) - (1 << 23), -20);
    factors.push_back(values);
  }
  factors[0][3] = std::nanf("");                               // row 0
  factors[0][static_cast<size_t>(p.k)] = HUGE_VALF;            // row 1
  factors[0][static_cast<size_t>(2 * p.k)] = 0x1.fffffep127F;  // row 2: rounded up
  for (size_t i = 0; i < 2; ++i) std::memcpy(arguments.bytes[i].data(), factors[i].data(), arguments.bytes[i].size());
  const Result<KernelSource> source = SourceOf(built.function, Sm("sm_80"));
  REQUIRE_MESSAGE(source.ok(), source.status().message());
  const Result<PtxImage> image = CompilePtx({&*source, 1}, Sm("sm_80"));
  REQUIRE_MESSAGE(image.ok(), image.status().message());
  REQUIRE(RunImage(*source, *image, arguments).ok());
  const auto* results = reinterpret_cast<const float*>(arguments.bytes.back().data());
  double greatest = 0;
  for (int64_t m = 0; m < p.m; ++m) {
    for (int64_t n = 0; n < p.n; ++n) {
      const float result = results[m * p.n + n];
      if (m < 3) {
        CHECK((m == 0 ? std::isnan(result) : std::isinf(result)));
        continue;
      }
      double sum = 0, of_magnitudes = 0;
      for (int64_t k = 0; k < p.k; ++k) {
        const double product = static_cast<double>(factors[0][static_cast<size_t>(m * p.k + k)]) *
                               factors[1][static_cast<size_t>(n * p.k + k)];
        sum += product;
        of_magnitudes += std::fabs(product);
      }
      greatest = std::max(greatest, std::fabs(result - sum) / of_magnitudes);
    }
  }
  MESSAGE("at most ", greatest, " of the sum of magnitudes");
  CHECK(greatest <= 0x1p-10 + static_cast<double>(p.k) * 0x1p-23);
  CHECK(greatest > 0x1p-18);  // they are rounded
}

// As tiles of 16-bit floats above; words are loaded where rows run along their own side.
TEST_CASE("tiles of tf32 read shared memory without conflicts, from registers that suffice") {
  const Target target = Sm("sm_80");
  std::vector<KernelSource> sources;
  constexpr int64_t kTiles[][2] = {{32, 128}, {64, 64}, {128, 64}, {64, 256}, {256, 128}};
  for (const auto& [rows, columns] : kTiles) {
    Product p = Plain(rows, columns, 64);
    p.rounds = true;
    p.a_turned = sources.size() % 2 != 0;
    p.b_turned = sources.size() % 3 == 1;
    CAPTURE(p.Text());
    const SizedFunction built = Build(p);
    const Result<schedule::ScheduledFunction> scheduled = schedule::ApplyDefaultSchedule(
        built.function, target, {{"cuda_mma.rows", rows}, {"cuda_mma.columns", columns}});
    REQUIRE_MESSAGE(scheduled.ok(), scheduled.status().message());
    const Result<KernelSource> source = SourceOf(schedule::MarkScheduled(scheduled->function), target);
    REQUIRE_MESSAGE(source.ok(), source.status().message());
    const Result<PtxImage> image = CompilePtx({&*source, 1}, target);
    REQUIRE_MESSAGE(image.ok(), image.status().message());
    sources.push_back(*source);
    op::KernelArguments arguments = ArgumentsOf(p, built, 1);
    const Result<ptx::LaunchCounts> counts =
        RunImage(*source, *image, arguments, {.orders = {ptx::WarpOrder::kLowestFirst}, .count_accesses = true});
    REQUIRE_MESSAGE(counts.ok(), counts.status().message());
    CHECK(std::ranges::equal(arguments.bytes.back(), *Expected(p, 1)));
    // Passes of 128 bytes: each tile is stored once, and loaded by the warps that share its rows or columns; in the last
    // iteration they may load the first step once more.
    const int64_t warps_of_rows = rows == 256 ? 4 : rows > 32 ? 2 : 1;
    const int64_t warps_of_columns = columns == 256 ? 4 : std::max<int64_t>(4 / warps_of_rows, columns / 64);
    const int64_t stores = (rows + columns) * p.k * 4 / 128;
    const int64_t loads = (rows * warps_of_columns + columns * warps_of_rows) * p.k * 4 / 128;
    CHECK(counts->shared_wavefronts >= stores + loads);
    CHECK(counts->shared_wavefronts <= stores + loads + loads * 8 / p.k);
    CHECK(counts->global_sectors == ((rows + columns) * p.k + rows * columns) * 4 / 32);
  }
  CompileForLater(sources);
}

}  // namespace
}  // namespace ingot::codegen
