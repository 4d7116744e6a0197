// Templates: knobs are choices whose values stand in the trace; candidates replay and compute what the function does;
// what a primitive refuses is no candidate; the best record is taken where it fits.
#include "compiler/tune/template.h"

#include <doctest/doctest.h>

#include <random>
#include <set>

#include "compiler/ir/structural.h"
#include "compiler/kernels/kernel_cache.h"
#include "compiler/transform/tensor/lowered.h"
#include "compiler/tune/space.h"
#include "compiler/tune/task_program.h"
#include "tests/compiler/schedule/functions.h"

namespace ingot::tune {
namespace {

using schedule::BlockRV;
using schedule::LoopRVs;

const Target& Avx2() {
  static const Target target = ParseTarget("cpu:x86-64-v3")->variants.front();
  return target;
}

ir::PrimFunc Product(ir::PrimExpr rows = ir::Int64(12)) {
  return schedule::testing::Dense(std::move(rows), ir::Int64(18), ir::Int64(16), false);
}

std::string BlockOf(const ir::PrimFunc& function) {
  return schedule::Schedule::Create(function)->state().Blocks().front().block().name;
}

// Tiles of rows and of columns, in either order. With "vectorize", the sum's loop is run in vectors, which is illegal.
Template Tiles(ir::PrimFunc function = Product()) {
  const std::string block = BlockOf(function);
  return {"tiles", std::move(function), [block](schedule::Schedule& s, Knobs& knobs) {
            const LoopRVs ijk = s.GetLoops(s.GetBlock(block));
            const LoopRVs i = knobs.DefineSplit("tile_i", ijk[0], 3, 4).Apply(s, ijk[0]);
            const LoopRVs j = knobs.DefineSplit("tile_j", ijk[1], 2).Apply(s, ijk[1]);
            if (knobs.DefineKnob("order", {4, 2}) == 4) {
              s.Reorder({i[0], j[0], i[1], ijk[2], i[2], j[1]});
            } else {
              s.Reorder({j[0], i[0], i[1], ijk[2], i[2], j[1]});
            }
            if (knobs.DefineKnob("vectorize", {0, 1}) == 1) s.Vectorize(ijk[2]);
          }};
}

std::vector<int64_t> CandidatesOf(const schedule::ScheduledFunction& scheduled, const std::string& name) {
  for (const schedule::Choice& choice : scheduled.choices) {
    if (choice.name == name) return choice.candidates;
  }
  return {};
}

TEST_CASE("templates: knobs are choices, whose defaults leave loops whole") {
  const Result<schedule::ScheduledFunction> naive = ApplyTemplate(Tiles(), Avx2());
  REQUIRE_MESSAGE(naive.ok(), naive.status().message());
  CHECK(CandidatesOf(*naive, "tile_i.2") == std::vector<int64_t>{1, 2, 3, 4});
  CHECK(CandidatesOf(*naive, "tile_i.1") == std::vector<int64_t>{1, 2, 3, 4, 6, 12});
  CHECK(CandidatesOf(*naive, "tile_j.1") == std::vector<int64_t>{1, 2, 4, 8, 16});
  CHECK(CandidatesOf(*naive, "order") == std::vector<int64_t>{2, 4});
  CHECK(naive->trace.ToString().find("sample_perfect_tile(l1, n=3, max_innermost_factor=4, decision=[12, 1, 1])") !=
        std::string::npos);
  CHECK(naive->trace.ToString().find("sample_categorical(candidates=[4, 2], decision=[0])") != std::string::npos);
  CHECK(schedule::IsScheduled(naive->function));

  const auto tiled = ApplyTemplate(Tiles(), Avx2(), {{"tile_i.2", 3}, {"tile_i.1", 2}, {"order", 2}});
  REQUIRE_MESSAGE(tiled.ok(), tiled.status().message());
  CHECK(CandidatesOf(*tiled, "tile_i.1") == std::vector<int64_t>{1, 2, 4});  // of what the inner part leaves
  CHECK(tiled->trace.ToString().find("decision=[2, 2, 3])") != std::string::npos);
  CHECK(tiled->trace.ToString().find("candidates=[4, 2], decision=[1])") != std::string::npos);
}

TEST_CASE("templates: what a primitive or a knob refuses is no candidate") {
  const auto refusal = [](const Template& of, const schedule::Chosen& chosen) {
    return ApplyTemplate(of, Avx2(), chosen).status().message();
  };
  CHECK(refusal(Tiles(), {{"tile_k", 2}}) == "template tiles has no knob tile_k");
  CHECK(refusal(Tiles(), {{"tile_i.2", 5}}).find("tile_i.2: 5 is none of the numbers") != std::string::npos);
  CHECK(refusal(Tiles(), {{"tile_i.2", 4}, {"tile_i.1", 4}}).find("tile_i.1: 4 is none of") != std::string::npos);
  CHECK(refusal(Tiles(), {{"vectorize", 1}}).find("vectorize") == 0);
  CHECK(refusal(Tiles(Product(schedule::testing::N())), {}).find("sample_perfect_tile") == 0);
  Template unnamed = Tiles();
  for (const char* name : {"", "a template", "a/b"}) {
    unnamed.name = name;
    CHECK(TaskOfTemplate(unnamed, Avx2()).status().code() == StatusCode::kInvalidArgument);
  }
  const Template empty{"empty", Product(), [](schedule::Schedule&, Knobs& knobs) { knobs.DefineKnob("none", {}); }};
  CHECK(refusal(empty, {}).find("no candidates") != std::string::npos);
}

TEST_CASE("templates: points of the space replay from their traces and compute what the function does") {
  const Template of = Tiles();
  const Result<Task> task = TaskOfTemplate(of, Avx2());
  REQUIRE_MESSAGE(task.ok(), task.status().message());
  CHECK(task->key == TaskKey(of.function) + ":tiles");
  CHECK(task->flops == 2.0 * 12 * 18 * 16);
  CHECK(task->choices.size() == 5);
  const Space space(*task, Avx2());
  CHECK(space.Default()->choices.empty());
  const std::vector<std::vector<int64_t>> dims{{12, 18}, {18, 16}, {12, 16}};
  const auto expected = schedule::testing::RunOnRandom(of.function, dims, 1, 1, false);
  REQUIRE(expected.ok());
  std::mt19937_64 random(22);
  std::set<std::string> traces;
  int refused = 0;
  for (int i = 0; i < 40; ++i) {
    const std::optional<Point> point = space.Random(random);
    if (!point) {
      ++refused;
      continue;
    }
    if (!traces.insert(point->trace).second || traces.size() > 6) continue;
    const auto scheduled = ApplyTemplate(of, Avx2(), point->choices);
    REQUIRE(scheduled.ok());
    CHECK(scheduled->trace.ToString() == point->trace);
    const auto replayed = schedule::Replay(scheduled->trace, of.function);
    REQUIRE_MESSAGE(replayed.ok(), replayed.status().message());
    CHECK(ir::StructuralEqual(ir::Expr(schedule::MarkScheduled(replayed->function())), ir::Expr(scheduled->function),
                              true));
    const auto lowered = transform::LowerPrimFunc(scheduled->function, Avx2());
    REQUIRE(lowered.ok());
    const auto got = schedule::testing::RunOnRandom(*lowered, dims, 1, 1, true);
    REQUIRE_MESSAGE(got.ok(), got.status().message());
    CHECK(schedule::testing::Compare(*expected, *got) == "");
  }
  CHECK(traces.size() > 6);
  CHECK(refused > 5);  // vectors along the sum
}

TEST_CASE("templates: the program of a point is its schedule's, and always the same") {
  const Result<Task> task = TaskOfTemplate(Tiles(), Avx2());
  REQUIRE(task.ok());
  const auto hash = [&](const schedule::Chosen& chosen) {
    const auto program = KernelProgram(*task, Avx2(), 1, chosen);
    REQUIRE_MESSAGE(program.ok(), program.status().message());
    return ProgramHash(*program);
  };
  CHECK(hash({}) != hash({{"tile_j.1", 8}}));
  CHECK(hash({{"tile_j.1", 8}}) == hash({{"tile_j.1", 8}}));
  CHECK_FALSE(KernelProgram(*task, Avx2(), 1, {{"vectorize", 1}}).ok());
}

// A comparison that says that vectors of columns take half of the naive schedule's time.
Record Compared(const Template& of) {
  Record record;
  record.kind = Record::Kind::kComparison;
  record.task = TaskOfTemplate(of, Avx2())->key;
  record.function = TaskText(of.function);
  record.target = kernels::TargetText(Avx2());
  record.choices = {{"tile_j.1", 8}};
  record.trace = ApplyTemplate(of, Avx2(), record.choices)->trace.ToString();
  record.default_seconds.assign(20, 1e-3);
  record.seconds.assign(20, 5e-4);
  return record;
}

TEST_CASE("templates: the best record is taken where it fits, and refused where it does not") {
  const Template of = Tiles();
  const auto best = [&](const std::vector<Record>& records) {
    Database database;
    for (const Record& record : records) database.Add(*ParseRecord(RecordLine(record)));
    return ApplyBest(of, Avx2(), database);
  };
  const std::string naive = ApplyTemplate(of, Avx2())->trace.ToString();
  CHECK(best({})->trace.ToString() == naive);
  const Record record = Compared(of);
  const auto tuned = best({record});
  REQUIRE_MESSAGE(tuned.ok(), tuned.status().message());
  CHECK(tuned->trace.ToString() == record.trace);
  CHECK(tuned->trace.ToString() != naive);
  // No model takes it: there is no such task in one.
  Database database;
  database.Add(record);
  CHECK(database.Best(TaskKey(of.function), record.target) == nullptr);

  Record other = record;
  other.function = TaskText(Product(ir::Int64(24)));
  CHECK(best({other}).status().message().find("it is of another function") != std::string::npos);
  other = record;
  other.trace = naive;
  CHECK(best({other}).status().message().find("another schedule than was measured") != std::string::npos);
  other.choices = {{"tile_k.1", 2}};
  CHECK(best({other}).status().message().find("has no knob tile_k.1") != std::string::npos);
}

}  // namespace
}  // namespace ingot::tune
