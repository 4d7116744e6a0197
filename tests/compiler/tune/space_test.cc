// Choices of rules: numbers given from outside make other schedules that compute the same, and what is not legal is
// refused; points of a task's space.
#include "compiler/tune/space.h"

#include <algorithm>
#include <random>
#include <set>

#include "compiler/schedule/default_schedule.h"
#include "compiler/transform/tensor/lowered.h"
#include "compiler/tune/task.h"
#include "doctest/doctest.h"
#include "tests/compiler/schedule/functions.h"

namespace ingot::tune {
namespace {

using schedule::testing::Case;

const Target& Avx2() {
  static const Target target = ParseTarget("cpu:x86-64-v3")->variants.front();
  return target;
}

TEST_CASE("choices: the usual ones are the default schedule, in every function of the rules' tests") {
  for (const Case& c : schedule::testing::AllCases()) {
    INFO(c.name);
    const auto plain = schedule::ApplyDefaultSchedule(c.function, Avx2());
    REQUIRE(plain.ok());
    schedule::Chosen usual;
    for (const schedule::Choice& choice : plain->choices) {
      CHECK(choice.value == choice.usual);
      CHECK(std::ranges::binary_search(choice.candidates, choice.usual));
      usual[choice.name] = choice.usual;
    }
    const auto named = schedule::ApplyDefaultSchedule(c.function, Avx2(), usual);
    REQUIRE(named.ok());
    CHECK(named->trace.ToString() == plain->trace.ToString());
  }
}

TEST_CASE("choices: one that no rule asks for, and a number that its rule does not take, are refused") {
  const ir::PrimFunc dense = schedule::testing::Dense(ir::Int64(24), ir::Int64(32), ir::Int64(64), true);
  const auto unknown = schedule::ApplyDefaultSchedule(dense, Avx2(), {{"conv.strip", 2}});
  REQUIRE(!unknown.ok());
  CHECK(unknown.status().message() == "choice conv.strip=2: no rule asks for it");
  const auto high = schedule::ApplyDefaultSchedule(dense, Avx2(), {{"gemm.rows", 1000}});
  REQUIRE(!high.ok());
  CHECK(high.status().message().find("gemm.rows: 1000 is none of the numbers") != std::string::npos);
}

TEST_CASE("spaces: random points, neighbours and grids are other schedules that compute the same") {
  std::mt19937_64 random(7);
  std::set<std::string> rules_with_choices;
  for (const Case& c : schedule::testing::AllCases()) {
    INFO(c.name);
    const auto plain = schedule::ApplyDefaultSchedule(c.function, Avx2());
    REQUIRE(plain.ok());
    if (plain->choices.empty()) continue;
    for (const schedule::Choice& choice : plain->choices) {
      rules_with_choices.insert(choice.name.substr(0, choice.name.find('.')));
    }
    Task task;
    task.function = c.function;
    const Space space(task, Avx2());
    const auto start = space.Default();
    REQUIRE(start.ok());
    CHECK(start->choices.empty());
    std::vector<Point> points = space.Grid(2);
    for (int i = 0; i < 2; ++i) {
      if (auto point = space.Random(random)) points.push_back(*point);
      if (auto point = space.Mutate(*start, random)) points.push_back(*point);
    }
    CHECK(points.size() >= 2);
    for (const Point& point : points) {
      const auto scheduled = schedule::ApplyDefaultSchedule(c.function, Avx2(), point.choices);
      REQUIRE(scheduled.ok());
      CHECK(scheduled->trace.ToString() == point.trace);
      const auto lowered = transform::LowerPrimFunc(scheduled->function, Avx2());
      if (!lowered.ok()) continue;
      const auto expected = schedule::testing::RunOnRandom(c.function, c.shapes[0], c.num_outputs, 1, false);
      const auto got = schedule::testing::RunOnRandom(*lowered, c.shapes[0], c.num_outputs, 1, true);
      REQUIRE(expected.ok());
      REQUIRE_MESSAGE(got.ok(), got.status().message());
      CHECK(schedule::testing::Compare(*expected, *got) == "");
    }
  }
  CHECK(rules_with_choices == std::set<std::string>{"conv", "elementwise", "gemm", "parallel", "rows", "tile"});
}

TEST_CASE("spaces: how large the tasks of parallel loops are is chosen where there are several threads") {
  Task task;
  task.function = schedule::testing::Dense(ir::Int64(512), ir::Int64(512), ir::Int64(512), true);
  const auto scheduled = schedule::ApplyDefaultSchedule(task.function, Avx2());
  REQUIRE(scheduled.ok());
  const auto chunk = std::ranges::find(scheduled->choices, std::string("parallel.chunk"), &schedule::Choice::name);
  REQUIRE(chunk != scheduled->choices.end());
  CHECK(chunk->candidates.size() > 1);
  for (const int64_t candidate : chunk->candidates) {
    const auto other = schedule::ApplyDefaultSchedule(task.function, Avx2(), {{"parallel.chunk", candidate}});
    REQUIRE_MESSAGE(other.ok(), other.status().message());
    CHECK((other->trace.ToString() == scheduled->trace.ToString()) == (candidate == chunk->usual));
  }
  const auto draws_chunks = [&](int threads) {
    task.threads = threads;
    const Space space(task, Avx2());
    std::mt19937_64 random(3);
    bool is_drawn = false;
    for (int i = 0; i < 20; ++i) {
      const std::optional<Point> point = space.Random(random);
      if (!point) continue;
      const auto drawn = schedule::ApplyDefaultSchedule(task.function, Avx2(), point->choices);
      REQUIRE(drawn.ok());
      for (const schedule::Choice& choice : drawn->choices) {
        is_drawn |= choice.name.starts_with("parallel.") && choice.value != choice.usual;
      }
    }
    return is_drawn;
  };
  CHECK(draws_chunks(2));
  CHECK_FALSE(draws_chunks(1));
}

TEST_CASE("spaces: the same seed draws the same points") {
  Task task;
  task.function = schedule::testing::Dense(ir::Int64(96), ir::Int64(64), ir::Int64(128), false);
  const Space space(task, Avx2());
  std::set<std::string> traces;
  std::mt19937_64 one(3), other(3);
  for (int i = 0; i < 20; ++i) {
    const auto a = space.Random(one), b = space.Random(other);
    REQUIRE(a.has_value() == b.has_value());
    if (!a) continue;
    CHECK(a->trace == b->trace);
    traces.insert(a->trace);
  }
  CHECK(traces.size() > 5);
}

}  // namespace
}  // namespace ingot::tune
