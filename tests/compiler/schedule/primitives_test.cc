// Primitives keep the meaning of a function: random sequences of them on the functions of functions.h, run in the
// interpreter before and after, scheduled and lowered. A refusal changes nothing and is no failure; that enough of them
// are accepted is checked.
#include <algorithm>
#include <random>

#include "compiler/ir/structural.h"
#include "compiler/schedule/schedule.h"
#include "compiler/script/printer.h"
#include "compiler/transform/tensor/lowered.h"
#include "doctest/doctest.h"
#include "tests/compiler/schedule/functions.h"

namespace ingot::schedule {
namespace {

using testing::Case;

class RandomPrimitives {
 public:
  explicit RandomPrimitives(uint64_t seed) : generator_(seed) {}

  // Applies one random primitive to random places.
  void Apply(Schedule& s) {
    const std::vector<BlockSite> sites = s.state().Blocks();
    const BlockRV block = s.GetBlock(Pick(sites).block().name);
    const BlockRV other = s.GetBlock(Pick(sites).block().name);
    const std::vector<LoopRV> loops = s.GetLoops(block), other_loops = s.GetLoops(other);
    if (!s.status().ok() || loops.empty()) return;
    const LoopRV loop = Pick(loops);
    const LoopRV target = other_loops.empty() ? LoopRV{} : Pick(other_loops);
    const size_t first = Below(loops.size());
    const int64_t factor = 1 + static_cast<int64_t>(Below(5));
    switch (Below(18)) {
      case 0:
        s.Split(loop, {kRest, factor});
        return;
      case 1:
        s.Split(loop, {kRest, factor, int64_t{2}});
        return;
      case 2:
        s.Fuse({loops.begin() + first, loops.end()});
        return;
      case 3: {
        std::vector<LoopRV> order = loops;
        std::shuffle(order.begin(), order.end(), generator_);
        order.resize(1 + Below(order.size()));
        return s.Reorder(order);
      }
      case 4:
        s.LoopPartition(loop, factor);
        return;
      case 5:
        return s.Parallel(loop);
      case 6:
        return s.Vectorize(loops.back());
      case 7:
        return s.Unroll(loop);
      case 8:
      case 9:
        return target.id < 0 ? void() : s.ComputeAt(block, target);
      case 10:
        return target.id < 0 ? void() : s.ReverseComputeAt(block, target);
      case 11:
        return s.ComputeInline(block);
      case 12:
        return s.ReverseComputeInline(block);
      case 13:
        s.CacheRead(block, 0, Below(2) == 0 ? "global" : "local");
        return;
      case 14:
        s.CacheWrite(block, 0, "global");
        return;
      case 15:
        s.DecomposeReduction(block, loop);
        return;
      case 16:
        s.TransformLayout(block, 0, Below(2) == 0 ? std::vector<int64_t>{1, 0} : std::vector<int64_t>{0, 2, 1});
        return;
      default:
        Below(2) == 0 ? s.RFactor(loop) : s.RecomputeFor(block, other);
        return;
    }
  }

 private:
  size_t Below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(generator_); }
  template <typename T>
  const T& Pick(const std::vector<T>& items) {
    return items[Below(items.size())];
  }
  std::mt19937_64 generator_;
};

TEST_CASE("primitives: random sequences keep what a function computes") {
  const Target target = ParseTarget("cpu")->variants[0];
  const std::vector<Case> cases = testing::AllCases();
  int accepted = 0;
  constexpr int kSequences = 171, kAttempts = 14;
  for (int seed = 0; seed < kSequences; ++seed) {
    const Case& c = cases[seed % cases.size()];
    RandomPrimitives random(seed);
    Schedule schedule = Schedule::Create(c.function).value();
    for (int i = 0; i < kAttempts; ++i) {
      Schedule attempt = schedule;
      random.Apply(attempt);
      if (!attempt.status().ok()) continue;
      schedule = std::move(attempt);
      ++accepted;
    }
    CAPTURE(seed);
    CAPTURE(c.name);
    CAPTURE(schedule.trace().ToString());
    const std::string text = script::PrintFunction("f", schedule.function());
    CAPTURE(text);
    const auto& dims = c.shapes[seed / cases.size() % c.shapes.size()];
    const auto expected = testing::RunOnRandom(c.function, dims, c.num_outputs, seed, false);
    REQUIRE(expected.ok());
    const auto got = testing::RunOnRandom(schedule.function(), dims, c.num_outputs, seed, false);
    REQUIRE_MESSAGE(got.ok(), got.status().message());
    REQUIRE(testing::Compare(*expected, *got) == "");
    // A local buffer may be too large or of symbolic size: then the lowering makes it workspace, or says why not.
    const Result<ir::PrimFunc> lowered = transform::LowerPrimFunc(schedule.function(), target);
    REQUIRE_MESSAGE(lowered.ok(), lowered.status().message());
    const std::string lowered_text = script::PrintFunction("f", *lowered);
    CAPTURE(lowered_text);
    const auto ran = testing::RunOnRandom(*lowered, dims, c.num_outputs, seed, true);
    REQUIRE_MESSAGE(ran.ok(), ran.status().message());
    REQUIRE(testing::Compare(*expected, *ran) == "");
    // The trace alone makes the same function again.
    const Result<Schedule> replayed = Replay(schedule.trace(), c.function);
    REQUIRE_MESSAGE(replayed.ok(), replayed.status().message());
    REQUIRE(ir::StructuralEqual(ir::Expr(replayed->function()), ir::Expr(schedule.function()), true));
  }
  CHECK(accepted > kSequences * 5);
}

TEST_CASE("sampling: decisions divide, are recorded, and are taken anew where they do not fit") {
  using ir::Int64;
  Schedule s = Schedule::Create(testing::Transpose(Int64(6), Int64(24))).value();
  const BlockRV block = s.GetBlock("transpose");
  const std::vector<LoopRV> loops = s.GetLoops(block);
  const std::vector<IntRV> tile = s.SamplePerfectTile(loops[0], 2, 16, {6, 4});
  const IntRV unroll = s.SampleCategorical({1, 2, 4}, 2);
  CHECK(s.Int(tile[0]) == 6);
  CHECK(s.Int(tile[1]) == 4);
  CHECK(s.Int(unroll) == 4);
  s.Split(loops[0], {tile[0], tile[1]});
  REQUIRE(s.status().ok());
  CHECK(s.trace().ToString() ==
        "b0 = sch.get_block(\"transpose\")\n"
        "l1, l2 = sch.get_loops(b0)\n"
        "v3, v4 = sch.sample_perfect_tile(l1, n=2, max_innermost_factor=16, decision=[6, 4])\n"
        "v5 = sch.sample_categorical(candidates=[1, 2, 4], decision=[2])\n"
        "l6, l7 = sch.split(l1, factors=[v3, v4])\n");
  const Result<Schedule> replayed = Replay(s.trace(), testing::Transpose(Int64(6), Int64(50)));
  REQUIRE(replayed.ok());
  CHECK(replayed->trace().instructions[2].decision == std::vector<int64_t>{5, 10});
}

TEST_CASE("schedule: after a refusal nothing happens, and the first reason stays") {
  using ir::Int64;
  Schedule s = Schedule::Create(testing::RowSum(Int64(4), Int64(8))).value();
  const std::vector<LoopRV> loops = s.GetLoops(s.GetBlock("sum"));
  s.Parallel(loops[1]);
  const std::string reason = s.status().message();
  CHECK(reason ==
        "parallel: loop k (8) around block \"sum\": it reduces in block \"sum\"; iterations depend on each other");
  s.Parallel(loops[0]);
  CHECK(s.status().message() == reason);
  CHECK(s.trace().instructions.size() == 2);
}

}  // namespace
}  // namespace ingot::schedule
