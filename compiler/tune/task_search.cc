// Drawing points, and the gain that is expected of the next one.
#include "compiler/tune/task_search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "compiler/transform/tensor/lowered.h"
#include "compiler/tune/features.h"

namespace ingot::tune {

TaskSearch::TaskSearch(const Task& task, const Target& target)
    : TaskSearch(task, target,
                 {[this](std::mt19937_64& random) { return space_.Random(random); },
                  [this](const Point& parent, std::mt19937_64& random) { return space_.Mutate(parent, random); },
                  [this](const Point& point) { return FeaturesOfPoint(point); }}) {}

TaskSearch::TaskSearch(const Task& task, const Target& target, PointSource source)
    : task_(task), space_(task, target), target_(target), source_(std::move(source)) {}

int64_t TaskSearch::num_failed() const {
  return std::ranges::count_if(trials_, [](const Trial& trial) { return trial.seconds == 0; });
}

double TaskSearch::best_seconds() const { return best_after_.empty() ? default_seconds_ : best_after_.back(); }

double TaskSearch::SecondsOf(const Point& point) const {
  const auto found = std::ranges::find(trials_, point.trace, [](const Trial& trial) { return trial.point.trace; });
  return found == trials_.end() ? 0 : found->seconds;
}

void TaskSearch::SetDefault(const Trial& trial) {
  seen_.insert(trial.point.trace);
  default_ = trial;
  default_seconds_ = trial.seconds;
}

void TaskSearch::Add(Trial trial) {
  seen_.insert(trial.point.trace);
  const double before = best_seconds();
  const bool is_better = trial.seconds > 0 && (before == 0 || trial.seconds < before);
  best_after_.push_back(is_better ? trial.seconds : before);
  since_better_ = is_better ? 0 : since_better_ + 1;
  trials_.push_back(std::move(trial));
}

std::vector<const Trial*> TaskSearch::Leaders() const {
  std::vector<const Trial*> leaders;
  for (const Trial& trial : trials_) {
    if (trial.seconds > 0 && trial.seconds < default_seconds_) leaders.push_back(&trial);
  }
  std::ranges::stable_sort(leaders, {}, [](const Trial* trial) { return trial->seconds; });
  return leaders;
}

std::optional<Point> TaskSearch::Draw(Search search, int64_t grid_limit, std::mt19937_64& random) {
  constexpr size_t kParents = 8, kFreeDraws = 8;
  if (search == Search::kGrid) {
    if (!grid_) {
      grid_ = space_.Grid(grid_limit);
      std::ranges::reverse(*grid_);
    }
    if (grid_->empty()) return std::nullopt;
    Point point = std::move(grid_->back());
    grid_->pop_back();
    return point;
  }
  std::vector<const Trial*> parents;
  if (default_.seconds > 0) parents.push_back(&default_);
  for (const Trial& trial : trials_) {
    if (trial.seconds > 0) parents.push_back(&trial);
  }
  const size_t count = std::min(kParents, parents.size());
  std::ranges::partial_sort(parents, parents.begin() + static_cast<std::ptrdiff_t>(count), {},
                            [](const Trial* trial) { return trial->seconds; });
  // The first draws are free, so that they tell of the whole space, and a quarter of the others, so that what no
  // neighbour leads to is found as well.
  const bool mutates = search == Search::kEvolution && trials_.size() >= kFreeDraws && random() % 4 != 0;
  return mutates ? source_.mutate(parents[random() % count]->point, random) : source_.random(random);
}

std::optional<Point> TaskSearch::Next(Search search, int64_t grid_limit, std::mt19937_64& random) {
  while (!ranked_.empty()) {
    Point point = std::move(ranked_.back());
    ranked_.pop_back();
    if (seen_.insert(point.trace).second) return point;
  }
  constexpr int kDraws = 50;
  // A grid that goes on where it was begins with what was measured.
  for (int draw = 0; search == Search::kGrid || draw < kDraws; ++draw) {
    std::optional<Point> point = Draw(search, grid_limit, random);
    if (point && seen_.insert(point->trace).second) return point;
    if (!point && search == Search::kGrid) break;
  }
  return std::nullopt;
}

bool TaskSearch::WantsRanking() const {
  constexpr int64_t kFewest = 8;
  return ranked_.empty() && num_trials() - num_failed() >= kFewest;
}

namespace {

// The first choices of a schedule, in the order of its rules; what is not there is no number, which trees know about.
void AddChoices(const std::vector<schedule::Choice>& choices, Features& features) {
  constexpr size_t kChoices = 12;
  for (size_t i = 0; i < kChoices; ++i) {
    const bool is_there = i < choices.size();
    features.push_back(is_there ? static_cast<float>(std::log2(1 + std::max<double>(choices[i].value, 0)))
                                : std::numeric_limits<float>::quiet_NaN());
  }
}

}  // namespace

Features TaskSearch::FeaturesOfPoint(const Point& point) const {
  const auto scheduled = task_.Scheduled(target_, point.choices);
  if (!scheduled.ok()) return {};
  const auto lowered = transform::LowerPrimFunc(scheduled->function, target_);
  if (!lowered.ok()) return {};
  Features features = FeaturesOf(*lowered, target_, task_.bytes);
  AddChoices(scheduled->choices, features);
  return features;
}

CostModel::Group TaskSearch::Measured() {
  CostModel::Group group;
  const auto add = [&](Trial& trial) {
    if (trial.seconds == 0) return;
    if (trial.features.empty()) trial.features = source_.features(trial.point);
    if (trial.features.empty()) return;
    group.features.push_back(trial.features);
    group.seconds.push_back(trial.seconds);
  };
  add(default_);
  for (Trial& trial : trials_) add(trial);
  return group;
}

Status TaskSearch::Rank(const CostModel& model, std::mt19937_64& random) {
  constexpr size_t kPopulation = 32, kTaken = 4;
  std::vector<Point> points;
  std::vector<Features> features;
  std::set<std::string> drawn;
  for (size_t draw = 0; draw < 2 * kPopulation && points.size() < kPopulation; ++draw) {
    std::optional<Point> point = Draw(Search::kEvolution, 0, random);
    if (!point || seen_.contains(point->trace) || !drawn.insert(point->trace).second) continue;
    Features of_point = source_.features(*point);
    if (of_point.empty()) continue;
    points.push_back(*std::move(point));
    features.push_back(std::move(of_point));
  }
  if (points.empty()) return Status();
  INGOT_ASSIGN_OR_RETURN(const std::vector<double> scores, model.Scores(features));
  std::vector<size_t> order(points.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return scores[i]; });
  for (size_t i = std::min(kTaken, order.size()); i-- > 0;) ranked_.push_back(std::move(points[order[i]]));
  return Status();
}

// What a trial brought lately, and a share of what is left above the roofline, which shrinks with the number of trials
// that did not find it (the task scheduler of Ansor weighs the same two).
double TaskSearch::ExpectedGain() const {
  constexpr size_t kLately = 8;
  constexpr double kHope = 0.1, kLeastPotential = 0.05;
  const double now = best_seconds();
  double slope = 0;
  if (!best_after_.empty()) {
    const size_t count = std::min(kLately, best_after_.size());
    const size_t before = best_after_.size() - count;
    slope = ((before == 0 ? default_seconds_ : best_after_[before - 1]) - now) / static_cast<double>(count);
  }
  const double potential = std::max(now - RooflineSeconds(task_, target_), kLeastPotential * now);
  const double hope = kHope * potential / static_cast<double>(1 + trials_.size());
  return static_cast<double>(task_.weight) * (slope + hope);
}

}  // namespace ingot::tune
