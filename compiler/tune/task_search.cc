// Drawing points, and the gain that is expected of the next one.
#include "compiler/tune/task_search.h"

#include <algorithm>
#include <utility>

namespace ingot::tune {

int64_t TaskSearch::num_failed() const {
  return std::ranges::count_if(trials_, [](const Trial& trial) { return trial.seconds == 0; });
}

double TaskSearch::best_seconds() const { return best_after_.empty() ? default_seconds_ : best_after_.back(); }

void TaskSearch::SetDefault(const Trial& trial) {
  seen_.insert(trial.point.trace);
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
  constexpr size_t kParents = 8;
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
  for (const Trial& trial : trials_) {
    if (trial.seconds > 0) parents.push_back(&trial);
  }
  const size_t count = std::min(kParents, parents.size());
  std::ranges::partial_sort(parents, parents.begin() + static_cast<std::ptrdiff_t>(count), {},
                            [](const Trial* trial) { return trial->seconds; });
  // A quarter of the draws is free, so that what no neighbour leads to is found as well.
  const bool mutates = search == Search::kEvolution && count > 1 && random() % 4 != 0;
  return mutates ? space_.Mutate(parents[random() % count]->point, random) : space_.Random(random);
}

std::optional<Point> TaskSearch::Next(Search search, int64_t grid_limit, std::mt19937_64& random) {
  constexpr int kDraws = 50;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::optional<Point> point = Draw(search, grid_limit, random);
    if (point && seen_.insert(point->trace).second) return point;
    if (!point && search == Search::kGrid) break;
  }
  return std::nullopt;
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
