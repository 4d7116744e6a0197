// Cost models: features tell schedules apart, XGBoost learns from them, and the search tries what a model prefers.
#include "compiler/tune/cost_model.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <set>

#include "compiler/kernels/kernel_sources.h"
#include "compiler/schedule/default_schedule.h"
#include "compiler/transform/tensor/lowered.h"
#include "compiler/tune/features.h"
#include "compiler/tune/task_search.h"
#include "tests/compiler/schedule/functions.h"

namespace ingot::tune {
namespace {

const Target& Avx2() {
  static const Target target = ParseTarget("cpu:x86-64-v3")->variants.front();
  return target;
}

Features Of(const ir::PrimFunc& function, const schedule::Chosen& chosen) {
  const auto scheduled = schedule::ApplyDefaultSchedule(function, Avx2(), chosen);
  REQUIRE(scheduled.ok());
  const auto lowered = transform::LowerPrimFunc(scheduled->function, Avx2());
  REQUIRE(lowered.ok());
  return FeaturesOf(*lowered, Avx2(), 1e5);
}

TEST_CASE("cost models: features are finite numbers, as many for every function") {
  const ir::PrimFunc dense = schedule::testing::Dense(ir::Int64(96), ir::Int64(64), ir::Int64(128), true);
  const size_t count = Of(dense, {}).size();
  for (const schedule::testing::Case& c : schedule::testing::AllCases()) {
    INFO(c.name);
    const Features features = Of(c.function, {});
    CHECK(features.size() == count);
    for (const float value : features) CHECK(std::isfinite(value));
  }
}

TEST_CASE("cost models: features are the same for the same schedule, and others for another one") {
  const ir::PrimFunc dense = schedule::testing::Dense(ir::Int64(96), ir::Int64(64), ir::Int64(128), true);
  const Features usual = Of(dense, {});
  CHECK(Of(dense, {}) == usual);
  const auto scheduled = schedule::ApplyDefaultSchedule(dense, Avx2());
  int others = 0;
  for (const schedule::Choice& choice : scheduled->choices) {
    for (const int64_t value : choice.candidates) {
      if (value == choice.usual) continue;
      const auto other = schedule::ApplyDefaultSchedule(dense, Avx2(), {{choice.name, value}});
      if (!other.ok() || other->trace.ToString() == scheduled->trace.ToString()) continue;
      INFO(choice.name, "=", value);
      CHECK(Of(dense, {{choice.name, value}}) != usual);
      ++others;
    }
  }
  CHECK(others > 10);
}

TEST_CASE("cost models: XGBoost ranks what it has not seen, and the same each time") {
  Result<std::unique_ptr<CostModel>> model = LoadXgboostModel();
  if (!model.ok()) {
    MESSAGE("SKIP: no XGBoost: ", model.status().message());
    return;
  }
  std::mt19937_64 random(5);
  const auto draw = [&](CostModel::Group& group, double scale) {
    const float x = static_cast<float>(random() % 1000) / 1000, y = static_cast<float>(random() % 1000) / 1000;
    group.features.push_back({y, x, 1});
    group.seconds.push_back(scale * (1 + 4 * std::abs(x - 0.3)));  // the same shape in all tasks, whatever their times
  };
  std::vector<CostModel::Group> groups(2);
  for (int i = 0; i < 60; ++i) draw(groups[0], 1e-3);
  for (int i = 0; i < 60; ++i) draw(groups[1], 1);
  CostModel::Group unseen;
  for (int i = 0; i < 100; ++i) draw(unseen, 1);
  const auto scores = [&] {
    const Status fitted = (*model)->Fit(groups);
    REQUIRE_MESSAGE(fitted.ok(), fitted.message());
    return *(*model)->Scores(unseen.features);
  };
  const std::vector<double> first = scores();
  REQUIRE(first.size() == 100);
  CHECK(scores() == first);
  int right = 0, pairs = 0;
  for (size_t i = 0; i < 100; ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (std::abs(unseen.seconds[i] - unseen.seconds[j]) < 0.1) continue;
      ++pairs;
      right += (unseen.seconds[i] < unseen.seconds[j]) == (first[i] > first[j]);
    }
  }
  CHECK(right > 0.9 * pairs);
}

// Prefers what has more of one feature.
class OneFeatureModel : public CostModel {
 public:
  Status Fit(const std::vector<Group>& groups) override {
    num_groups = groups.size();
    return Status();
  }
  Result<std::vector<double>> Scores(const std::vector<Features>& features) const override {
    std::vector<double> scores;
    for (const Features& each : features) scores.push_back(each[0]);
    return scores;
  }
  size_t num_groups = 0;
};

TEST_CASE("cost models: the search tries new points, in the order in which the model prefers them") {
  Task task;
  task.function =
      kernels::WithParamsByPlace(schedule::testing::Dense(ir::Int64(96), ir::Int64(64), ir::Int64(128), true));
  task.bytes = 1e5;
  TaskSearch search(task, Avx2());
  const Space space(task, Avx2());
  search.SetDefault({*space.Default(), 1e-3});
  std::mt19937_64 random(9);
  std::set<std::string> seen;
  CHECK_FALSE(search.WantsRanking());
  while (!search.WantsRanking()) {
    const std::optional<Point> point = search.Next(Search::kEvolution, 0, random);
    REQUIRE(point.has_value());
    CHECK(seen.insert(point->trace).second);
    search.Add({*point, 1e-3});
  }
  CHECK(search.Measured().seconds.size() == static_cast<size_t>(search.num_trials() + 1));
  REQUIRE(search.Rank(OneFeatureModel(), random).ok());
  CHECK_FALSE(search.WantsRanking());
  float before = 1e9F;
  int ranked = 0;
  for (; !search.WantsRanking(); ++ranked) {
    const std::optional<Point> point = search.Next(Search::kEvolution, 0, random);
    REQUIRE(point.has_value());
    CHECK(seen.insert(point->trace).second);
    const float score = Of(task.function, point->choices)[0];
    CHECK(score <= doctest::Approx(before));
    before = score;
  }
  CHECK(ranked == 4);
}

}  // namespace
}  // namespace ingot::tune
