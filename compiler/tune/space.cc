// Walks from choice to choice: the rules are applied with the numbers so far, and tell what may come next.
#include "compiler/tune/space.h"

#include <algorithm>
#include <utility>

namespace ingot::tune {

Result<Point> Space::PointOf(const schedule::Chosen& choices) const {
  INGOT_ASSIGN_OR_RETURN(const schedule::ScheduledFunction scheduled, task_.Scheduled(target_, choices));
  Point point;
  for (const schedule::Choice& choice : scheduled.choices) {
    if (choice.value != choice.usual) point.choices[choice.name] = choice.value;
  }
  // What is usual can depend on other choices; then it is as well to name all of them.
  if (point.choices.size() != choices.size()) {
    const auto again = task_.Scheduled(target_, point.choices);
    if (!again.ok() || again->trace.ToString() != scheduled.trace.ToString()) point.choices = choices;
  }
  point.trace = scheduled.trace.ToString();
  return point;
}

std::optional<Point> Space::Walk(const std::function<int64_t(const schedule::Choice&)>& decide) const {
  schedule::Chosen chosen;
  for (size_t next = 0;; ++next) {
    const auto scheduled = task_.Scheduled(target_, chosen);
    if (!scheduled.ok()) return std::nullopt;
    if (next >= scheduled->choices.size()) break;
    const schedule::Choice& choice = scheduled->choices[next];
    const bool is_idle = task_.threads == 1 && choice.name.starts_with("parallel.");
    chosen[choice.name] = is_idle ? choice.usual : decide(choice);
  }
  Result<Point> point = PointOf(chosen);
  return point.ok() ? std::optional<Point>(*std::move(point)) : std::nullopt;
}

namespace {

int64_t Draw(const schedule::Choice& choice, std::mt19937_64& random) {
  return choice.candidates[random() % choice.candidates.size()];
}

}  // namespace

std::optional<Point> Space::Random(std::mt19937_64& random) const {
  return Walk([&](const schedule::Choice& choice) { return Draw(choice, random); });
}

std::optional<Point> Space::Mutate(const Point& parent, std::mt19937_64& random) const {
  const auto scheduled = task_.Scheduled(target_, parent.choices);
  if (!scheduled.ok() || scheduled->choices.empty()) return std::nullopt;
  const std::string changed = scheduled->choices[random() % scheduled->choices.size()].name;
  schedule::Chosen before;
  for (const schedule::Choice& choice : scheduled->choices) before[choice.name] = choice.value;
  return Walk([&](const schedule::Choice& choice) {
    const auto old = before.find(choice.name);
    const bool stays =
        choice.name != changed && old != before.end() && std::ranges::binary_search(choice.candidates, old->second);
    return stays ? old->second : Draw(choice, random);
  });
}

std::vector<Point> Space::Grid(int64_t limit) const {
  std::vector<Point> points;
  std::vector<size_t> digits;  // of the next point: the index of each choice's candidate
  for (bool is_over = false; !is_over && static_cast<int64_t>(points.size()) < limit;) {
    std::vector<size_t> sizes;
    std::optional<Point> point = Walk([&](const schedule::Choice& choice) {
      if (digits.size() == sizes.size()) digits.push_back(0);
      sizes.push_back(choice.candidates.size());
      return choice.candidates[std::min(digits[sizes.size() - 1], choice.candidates.size() - 1)];
    });
    if (point && std::ranges::find(points, point->trace, &Point::trace) == points.end()) {
      points.push_back(*std::move(point));
    }
    digits.resize(sizes.size());
    while (!digits.empty() && digits.back() + 1 >= sizes[digits.size() - 1]) digits.pop_back();
    is_over = digits.empty();
    if (!is_over) ++digits.back();
  }
  return points;
}

}  // namespace ingot::tune
