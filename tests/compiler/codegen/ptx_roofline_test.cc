// The roofline of what the GPU that is not there counts ranks schedules as one would: what moves less comes first, and
// what the rules choose by default is not far behind the best of what they may choose.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/schedule/default_schedule.h"
#include "tests/compiler/codegen/ptx_product.h"
#include "tests/cuda_standin/roofline.h"

namespace ingot::codegen {
namespace {

using namespace testing;  // NOLINT

// Of all launches of the function together, under these rules and choices.
ptx::Roofline Estimate(const SizedFunction& sized, const schedule::Chosen& chosen, const std::string& without = "") {
  const Target target = Sm("sm_80");
  std::vector<schedule::ScheduleRule> rules;
  for (const schedule::ScheduleRule& each : schedule::DefaultRules(Target::Kind::kCuda)) {
    if (each.name != without) rules.push_back(each);
  }
  const Result<schedule::ScheduledFunction> scheduled = schedule::ApplySchedule(sized.function, target, rules, chosen);
  REQUIRE_MESSAGE(scheduled.ok(), scheduled.status().message());
  const Result<KernelSource> source = SourceOf(schedule::MarkScheduled(scheduled->function), target);
  REQUIRE_MESSAGE(source.ok(), source.status().message());
  const Result<PtxImage> image = CompilePtx({&*source, 1}, target);
  REQUIRE_MESSAGE(image.ok(), image.status().message());
  REQUIRE(image->kernels[0].launches.size() == 1);
  int64_t blocks = 1, bytes = 0;
  for (const DimCode& axis : image->kernels[0].launches[0].grid) blocks *= axis.constant();
  op::KernelArguments arguments = SmallIntegers(sized, 1);
  for (const op::Bytes& each : arguments.bytes) bytes += std::ssize(each);
  const Result<ptx::LaunchCounts> counts =
      RunImage(*source, *image, arguments, {.orders = {ptx::WarpOrder::kLowestFirst}, .count_accesses = true});
  REQUIRE_MESSAGE(counts.ok(), counts.status().message());
  return ptx::EstimateClocks(*counts, blocks, bytes, 80);
}

Product Of16(int64_t m, int64_t n, int64_t k) {
  Product p = Plain(m, n, k);
  p.dtype = kF16;
  return p;
}

schedule::Chosen Tile(int64_t rows, int64_t columns) {
  return {{"cuda_mma.rows", rows}, {"cuda_mma.columns", columns}, {"cuda_mma.parts", 1}};
}

TEST_CASE("the roofline's parts are what they say") {
  ptx::LaunchCounts counts;
  counts.global_sectors = 1600;
  counts.shared_wavefronts = 1080;
  counts.matrix_work = 108 * 2048;
  counts.warp_instructions = 108 * 40;
  ptx::Roofline all = ptx::EstimateClocks(counts, 108, 11000, 80);
  CHECK(all.memory == 10);
  CHECK(all.cache == 10);
  CHECK(all.shared == 10);
  CHECK(all.matrix == 2);
  CHECK(all.instructions == 10);
  CHECK(all.Bound() == 10);
  // One block more, and a multiprocessor has two.
  all = ptx::EstimateClocks(counts, 109, 11000, 80);
  CHECK(all.shared > 19);
  CHECK(all.memory == 10);
}

TEST_CASE("the roofline ranks tiles of a product by what they move") {
  const SizedFunction built = Build(Of16(256, 256, 64));
  const ptx::Roofline large = Estimate(built, Tile(128, 128)), middle = Estimate(built, Tile(64, 64)),
                      flat = Estimate(built, Tile(32, 64)), threads = Estimate(built, {}, "cuda_mma");
  // Each factor is read once for each row or column of tiles; a multiprocessor has few tiles at most.
  CHECK(large.cache < middle.cache);
  CHECK(middle.cache < flat.cache);
  // The same matrix instructions, spread over more multiprocessors.
  CHECK(large.matrix == doctest::Approx(4 * middle.matrix));
  CHECK(middle.matrix == doctest::Approx(2 * flat.matrix));
  // Without matrix instructions there is none of their work, and much more of all else.
  CHECK(threads.matrix == 0);
  CHECK(threads.Bound() > 2 * middle.Bound());
  CHECK(large.memory == middle.memory);
}

// Sizes of one tile and of many.
TEST_CASE("the tiles that are chosen by default are near the best of the roofline") {
  struct Size {
    int64_t m, n, k;
  };
  for (const Size& size : {Size{128, 512, 64}, Size{512, 512, 64}, Size{64, 64, 256}}) {
    const SizedFunction built = Build(Of16(size.m, size.n, size.k));
    const double usual = Estimate(built, {{"cuda_mma.parts", 1}}).Bound();
    double best = usual;
    std::string which = "usual";
    for (const int64_t rows : {32, 64, 128}) {
      for (const int64_t columns : {64, 128}) {
        const double bound = Estimate(built, Tile(rows, columns)).Bound();
        if (bound < best) best = bound, which = std::to_string(rows) + " x " + std::to_string(columns);
      }
    }
    CAPTURE(which);
    CAPTURE(size.m);
    CHECK(usual <= best * 1.5);
  }
}

}  // namespace
}  // namespace ingot::codegen
