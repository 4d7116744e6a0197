// The space of a task: all schedules that the default rules, or its template, make of its function when their choices
// are free (schedule/choices.h). Later choices depend on earlier ones (a tile's rows on its panels), so that a point is drawn
// choice by choice, with the rules asked in between. What the schedule refuses is no point.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "compiler/schedule/choices.h"
#include "compiler/target/target.h"
#include "compiler/tune/task.h"

namespace ingot::tune {

struct Point {
  schedule::Chosen choices;  // those that differ from the rules' own
  std::string trace;
};

class Space {
 public:
  Space(const Task& task, const Target& target) : task_(task), target_(target) {}

  Result<Point> Default() const { return PointOf({}); }
  // The point of these choices, or why the schedule refuses them.
  Result<Point> PointOf(const schedule::Chosen& choices) const;
  // Every choice at random. Nothing where the schedule refuses what was drawn.
  std::optional<Point> Random(std::mt19937_64& random) const;
  // A neighbour: one choice anew, and where that changes what the others may be, those too.
  std::optional<Point> Mutate(const Point& parent, std::mt19937_64& random) const;
  // The first `limit` points, choice by choice in ascending order, the last choice fastest.
  std::vector<Point> Grid(int64_t limit) const;

 private:
  // Asks the rules for one choice after the other; `decide` gives the number for each.
  std::optional<Point> Walk(const std::function<int64_t(const schedule::Choice&)>& decide) const;

  const Task task_;
  const Target target_;
};

}  // namespace ingot::tune
