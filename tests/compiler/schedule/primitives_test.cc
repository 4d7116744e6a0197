// Single primitives and traces: what they make, what they record, and what a replay on another function does.
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

TEST_CASE("sampling: decisions divide, are recorded, and are taken anew where they do not fit") {
  using ir::Int64;
  Schedule s = Schedule::Create(testing::Transpose(Int64(6), Int64(24))).value();
  const BlockRV block = s.GetBlock("transpose");
  const LoopRVs loops = s.GetLoops(block);
  const IntRVs tile = s.SamplePerfectTile(loops[0], 2, 16, {6, 4});
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
  CHECK(std::get<Decision>(replayed->trace().instructions[2].operands.back()).numbers == std::vector<int64_t>{5, 10});
}

TEST_CASE("schedule: what is made of a void handle may be indexed at any place") {
  static_assert(!std::is_convertible_v<LoopRVs, std::vector<LoopRV>>);
  Schedule s = Schedule::Create(testing::Transpose(ir::Int64(24), ir::Int64(3))).value();
  const PartRVs parts = s.LoopPartition(s.GetLoops(s.GetBlock("transpose"))[0], 16);
  const LoopRVs cut = s.Split(parts.main, {kRest, int64_t{16}});
  CHECK(cut.empty());
  s.Vectorize(cut[1]);
  s.Unroll(s.Split(cut[5], {kRest, int64_t{2}}).back());
  CHECK(s.status().ok());
  CHECK(s.trace().instructions.back().primitive == Primitive::kUnroll);
}

TEST_CASE("schedule: after a refusal nothing happens, and the first reason stays") {
  using ir::Int64;
  Schedule s = Schedule::Create(testing::RowSum(Int64(4), Int64(8))).value();
  const LoopRVs loops = s.GetLoops(s.GetBlock("sum"));
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
