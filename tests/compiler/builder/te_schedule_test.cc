// Schedules by stages: the loops that each call makes, that the order of calls does not matter, that results stay the
// same, and refusals.
#include "compiler/builder/te_schedule.h"

#include <doctest/doctest.h>

#include <functional>

#include "compiler/ir/structural.h"
#include "compiler/schedule/default_schedule.h"
#include "compiler/script/printer.h"
#include "tests/compiler/schedule/functions.h"

namespace ingot::te {
namespace {

using ir::FloatImm;
using ir::Int64;
using ir::PrimExpr;
using schedule::testing::Compare;
using schedule::testing::RunOnRandom;

const DataType kF32 = DataType::Float(32);

// c = (a * 2) + 1 in two stages, and the product of c with itself summed over columns.
struct Chain {
  Tensor a, b, c, d;
  ir::IterVar k;
  Chain(PrimExpr rows, PrimExpr columns) {
    a = Placeholder({rows, columns}, kF32, "A");
    b = Compute(a.shape(), [&](const Indices& i) { return a(i) * FloatImm(kF32, 2); }, "B", {"i", "j"});
    c = Compute(a.shape(), [&](const Indices& i) { return b(i) + FloatImm(kF32, 1); }, "C", {"i", "j"});
    k = ReduceAxis(columns, "k");
    d = Compute({rows}, [&](const Indices& i) { return Sum(c(i[0], k->var) * c(i[0], k->var), {k}); }, "D", {"i"});
  }
  Schedule CreateSchedule() const { return te::CreateSchedule({d}); }
};

// The scheduled function's body as text; its results are those of the unscheduled one.
std::string Scheduled(const Chain& chain, const Schedule& s, const std::vector<std::vector<int64_t>>& dims) {
  const ir::PrimFunc plain = CreatePrimFunc({chain.a, chain.d});
  const Result<schedule::Schedule> result = s.Apply({chain.a, chain.d});
  REQUIRE_MESSAGE(result.ok(), result.status().message());
  const auto expected = RunOnRandom(plain, dims, 1, 1, false);
  const auto got = RunOnRandom(result->function(), dims, 1, 1, true);
  REQUIRE(expected.ok());
  REQUIRE_MESSAGE(got.ok(), got.status().message());
  CHECK(Compare(*expected, *got) == "");
  const Result<schedule::Schedule> replayed = schedule::Replay(result->trace(), plain);
  REQUIRE_MESSAGE(replayed.ok(), replayed.status().message());
  CHECK(ir::StructuralEqual(ir::Expr(replayed->function()), ir::Expr(result->function()), true));
  return script::PrintFunction("f", result->function());
}

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("stages: axes, splits, tiles, fusion, order and kinds become loops") {
  const Chain chain(Int64(8), Int64(12));
  Schedule s = chain.CreateSchedule();
  const auto [i_outer, i_inner] = s[chain.d].Split(AxesOf(chain.d)[0], 4);
  const auto [k_outer, k_inner] = s[chain.d].SplitIntoParts(ReduceAxesOf(chain.d)[0], 3);
  s[chain.d].Reorder({i_outer, k_outer, k_inner, i_inner});
  s[chain.d].Vectorize(i_inner);
  s[chain.d].Unroll(k_inner);
  s[chain.d].Parallel(i_outer);
  const Stage::Tiles tiles = s[chain.b].Tile(AxesOf(chain.b)[0], AxesOf(chain.b)[1], 2, 3);
  s[chain.b].Fuse(tiles.x_outer, tiles.y_outer);
  const std::string text = Scheduled(chain, s, {{8, 12}, {8}});
  CAPTURE(text);
  CHECK(Has(text, "for i_0 in T.parallel(T.int64(2)):"));
  CHECK(Has(text, "for k_0 in range(T.int64(3)):"));
  CHECK(Has(text, "for k_1 in T.unroll(T.int64(4)):"));
  CHECK(Has(text, "for i_1 in T.vectorized(T.int64(4)):"));
  CHECK(Has(text, "for i_0_j_0_fused, i_1, j_1 in T.grid(T.int64(16), T.int64(2), T.int64(3)):"));
}

TEST_CASE("stages: computed under another one, in its place, and in a nest of its own") {
  for (int64_t columns : {12, 7}) {
    const Chain chain(Int64(8), Int64(columns));
    Schedule s = chain.CreateSchedule();
    // The axis exists only after a later call.
    s[chain.b].ComputeInline();
    s[chain.c].Vectorize(s[chain.c].Split(AxesOf(chain.c)[1], 4).second);
    const auto [outer, inner] = s[chain.d].Split(AxesOf(chain.d)[0], 2);
    s[chain.c].ComputeAt(s[chain.d], outer);
    s[chain.d].Parallel(outer);
    const std::string text = Scheduled(chain, s, {{8, columns}, {8}});
    CAPTURE(text);
    CHECK_FALSE(Has(text, "sblock(\"B\")"));
    CHECK(text.find("T.parallel") < text.find("sblock(\"C\")"));
    s[chain.c].ComputeRoot();
    s[chain.b].ComputeRoot();
    const std::string root = Scheduled(chain, s, {{8, columns}, {8}});
    CHECK(Has(root, "sblock(\"B\")"));
    CHECK(root.find("T.parallel") > root.find("sblock(\"C\")"));
  }
}

TEST_CASE("stages: a copy of an input where it is read, and of a copy") {
  const Chain chain(Int64(8), Int64(12));
  Schedule s = chain.CreateSchedule();
  s[chain.b].ComputeInline();
  Stage& rows = s.CacheRead(chain.a, "global", {s[chain.b]});
  Stage& row = s.CacheRead(rows, "local", {s[chain.b]});
  s[chain.c].ComputeRoot();
  const auto [outer, inner] = s[chain.c].Split(AxesOf(chain.c)[0], 4);
  rows.Vectorize(rows.Split(rows.Axes()[1], 4).second);
  row.ComputeAt(s[chain.c], outer);
  s[chain.c].Parallel(outer);
  CHECK(row.name() == "A_global_local");
  const std::string text = Scheduled(chain, s, {{8, 12}, {8}});
  CAPTURE(text);
  CHECK(text.find("T.vectorized(T.int64(4))") < text.find("T.parallel(T.int64(2))"));
  CHECK(text.find("T.parallel(T.int64(2))") < text.find("sblock(\"A_global_local\")"));
  CHECK(Has(text, "C[v_i, v_j] = A_global_local[v_i, v_j] * T.float32(2.0) + T.float32(1.0)"));
}

TEST_CASE("stages: two stages read one copy") {
  const Tensor a = Placeholder({Int64(4)}, kF32, "A");
  const Tensor b = Compute(
      a.shape(), [&](const Indices& i) { return a(i) * FloatImm(kF32, 2); }, "B");
  const Tensor c = Compute(
      a.shape(), [&](const Indices& i) { return a(i) + b(i); }, "C");
  Schedule s = CreateSchedule({c});
  s.CacheRead(a, "global", {s[b], s[c]});
  const Result<schedule::Schedule> result = s.Apply({a, c});
  REQUIRE_MESSAGE(result.ok(), result.status().message());
  const std::string text = script::PrintFunction("f", result->function());
  CHECK(Has(text, "B[v_i0] = A_global[v_i0] * T.float32(2.0)"));
  CHECK(Has(text, "C[v_i0] = A_global[v_i0] + B[v_i0]"));
}

TEST_CASE("stages: sums in memory of their own, written out where a tile ends") {
  const Chain chain(Int64(8), Int64(12));
  Schedule s = chain.CreateSchedule();
  Stage& sums = s.CacheWrite(chain.d, "local");
  const auto [outer, inner] = s[chain.d].Split(s[chain.d].Axes()[0], 4);
  CHECK(s[chain.d].ReduceAxes().empty());
  sums.ComputeAt(s[chain.d], outer);
  const auto [k_outer, k_inner] = sums.Split(sums.ReduceAxes()[0], 3);
  sums.Reorder({k_outer, sums.Axes()[0], k_inner});
  sums.Unroll(k_inner);
  s[chain.d].Vectorize(inner);
  const std::string text = Scheduled(chain, s, {{8, 12}, {8}});
  CAPTURE(text);
  CHECK(Has(text, "D_local[v_i] = D_local[v_i] + "));
  CHECK(Has(text, "D[v0] = D_local[v0]"));
  CHECK(Has(text, "T.unroll(T.int64(3))"));
}

TEST_CASE("stages: partial results, summed afterwards") {
  for (const int64_t columns : {12, 13}) {
    const Chain chain(Var("n"), Int64(columns));
    Schedule s = chain.CreateSchedule();
    s[chain.b].ComputeInline();
    s[chain.c].ComputeInline();
    const auto [k_outer, k_inner] = s[chain.d].Split(chain.k, 4);
    Stage& partial = s.RFactor(chain.d, k_inner);
    REQUIRE(partial.Axes().size() == 2);
    REQUIRE(partial.ReduceAxes().size() == 1);
    REQUIRE(s[chain.d].ReduceAxes().size() == 1);
    const auto [i_outer, i_inner] = s[chain.d].Split(AxesOf(chain.d)[0], 2);
    partial.ComputeAt(s[chain.d], i_outer);
    partial.Reorder({partial.ReduceAxes()[0], partial.Axes()[1]});
    partial.Vectorize(partial.Axes()[1]);
    s[chain.d].Unroll(s[chain.d].ReduceAxes()[0]);
    s[chain.d].Parallel(i_outer);
    const std::string text = Scheduled(chain, s, {{8, columns}, {8}});
    CAPTURE(text);
    CHECK(Has(text, "T.vectorized(T.int64(4))"));
    CHECK(Has(text, "D[v_i] = D[v_i] + D_rf[v_i, vk_1]"));
  }
}

TEST_CASE("stages: partial results twice") {
  const Chain chain(Int64(8), Int64(12));
  Schedule s = chain.CreateSchedule();
  s.RFactor(chain.d, s[chain.d].Split(chain.k, 6).second);
  s.RFactor(chain.d, s[chain.d].Split(s[chain.d].ReduceAxes()[0], 2).second);
  const std::string text = Scheduled(chain, s, {{8, 12}, {8}});
  CHECK(Has(text, "sblock(\"D_rf_1\")"));
}

TEST_CASE("stages: threads are interpreted one after the other") {
  const Chain chain(ir::MakePrimVar("n"), Int64(6));
  Schedule s = chain.CreateSchedule();
  const auto [block, thread] = s[chain.d].Split(AxesOf(chain.d)[0], 4);
  s[chain.d].Bind(block, ThreadAxis("blockIdx.x"));
  s[chain.d].Bind(thread, ThreadAxis("threadIdx.x"));
  s[chain.c].ComputeInline();
  s[chain.b].ComputeAt(s[chain.d], thread);
  const std::string text = Scheduled(chain, s, {{9, 6}, {9}});
  CAPTURE(text);
  CHECK(Has(text, "T.thread_binding((n + T.int64(3)) // T.int64(4), thread=\"blockIdx.x\")"));
  CHECK(Has(text, "T.thread_binding(T.int64(4), thread=\"threadIdx.x\")"));
}

TEST_CASE("stages: a scalar's stage has no axes, and names that repeat are told apart") {
  const Tensor a = Placeholder({Int64(5)}, kF32, "A");
  const ir::IterVar k = ReduceAxis(Int64(5), "k");
  const Tensor sum = Compute(
      {}, [&](const Indices&) { return Sum(a(k->var), {k}); }, "T");
  const Tensor twice = Compute(
      {}, [&](const Indices&) { return sum(Indices{}) * FloatImm(kF32, 2); }, "T");
  Schedule s = CreateSchedule({twice});
  CHECK(AxesOf(twice).empty());
  s[sum].Split(k, 2);
  const Result<schedule::Schedule> result = s.Apply({a, twice});
  REQUIRE_MESSAGE(result.ok(), result.status().message());
  CHECK(Has(script::PrintFunction("f", result->function()), "sblock(\"T_1\")"));
}

TEST_CASE("stages: what is refused, and where") {
  const Chain chain(Int64(8), Int64(12));
  const auto message = [&](const std::function<void(Schedule&)>& change) {
    Schedule s = chain.CreateSchedule();
    change(s);
    return s.Apply({chain.a, chain.d}).status().message();
  };
  const ir::IterVar i = AxesOf(chain.d)[0], k = chain.k;
  CHECK(message([&](Schedule& s) {
          s[chain.d].Split(i, 2);
          s[chain.d].Parallel(i);
        }) == "stage \"D\": axis i is no loop: it was split, fused or inlined, or is another stage's");
  CHECK(message([&](Schedule& s) { s[chain.d].Parallel(k); }) ==
        "parallel: loop k (12) around block \"D\": it reduces in block \"D\"; iterations depend on each other");
  CHECK(message([&](Schedule& s) { s[chain.d].ComputeInline(); }) ==
        "compute_inline: block \"D\" under loops i (8), k (12): its body is not one plain store");
  CHECK(Has(message([&](Schedule& s) { s[chain.b].ComputeAt(s[chain.d], i); }),
            "block \"C\" reads it outside of loop i"));
  CHECK(message([&](Schedule& s) {
          s[chain.d].Unroll(k);
          s.RFactor(chain.d, k);
        }) == "stage \"D\": before rfactor, reduction axes alone are split, and nothing else is done; here k");
  CHECK(message([&](Schedule& s) { s.RFactor(chain.d, i); }) ==
        "rfactor: block \"D\" under loops i (8), k (12): loop i is not a reduction loop");
  CHECK(message([&](Schedule& s) {
          s.CacheWrite(chain.d, "local");
          s[chain.d].Unroll(k);
        }) == "stage \"D\": axis k is no loop: it was split, fused or inlined, or is another stage's");
  CHECK(message([&](Schedule& s) { s.CacheRead(chain.a, "local", {s[chain.d]}); }) ==
        "stage \"A_local\": stage \"D\" does not read what is copied");
  CHECK(Has(message([&](Schedule& s) { s.CacheRead(chain.a, "moon", {s[chain.b]}); }), "unknown scope \"moon\""));
}

TEST_CASE("stages: a lowered function is marked, so that no default schedule changes it") {
  const Chain chain(Int64(8), Int64(12));
  Schedule s = chain.CreateSchedule();
  s[chain.d].Parallel(AxesOf(chain.d)[0]);
  const Result<ir::PrimFunc> function = s.Lower({chain.a, chain.d});
  REQUIRE(function.ok());
  CHECK((*function)->attrs.GetBool(schedule::kIsScheduledAttr));
}

}  // namespace
}  // namespace ingot::te
