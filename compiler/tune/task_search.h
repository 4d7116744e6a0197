// TaskSearch: what the search knows of one task: its trials, and what it expects of further ones.
#pragma once

#include <functional>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "compiler/tune/cost_model.h"
#include "compiler/tune/measure/candidate.h"
#include "compiler/tune/space.h"
#include "compiler/tune/tuner.h"

namespace ingot::tune {

// A schedule that was tried, and its time, or 0 where it has none.
struct Trial {
  Point point;
  double seconds = 0;
  Features features = {};  // once somebody has asked for them; empty: nobody has, or there are none
};

// Where points come from, and what a model is told of them: of the task's space, unless a replay draws from records.
struct PointSource {
  std::function<std::optional<Point>(std::mt19937_64& random)> random;
  std::function<std::optional<Point>(const Point& parent, std::mt19937_64& random)> mutate;
  std::function<Features(const Point& point)> features;  // empty where it is not lowered
};

class TaskSearch {
 public:
  TaskSearch(const Task& task, const Target& target);
  TaskSearch(const Task& task, const Target& target, PointSource source);
  TaskSearch(const TaskSearch&) = delete;
  TaskSearch& operator=(const TaskSearch&) = delete;

  const Task& task() const { return task_; }
  const Space& space() const { return space_; }
  int64_t num_trials() const { return static_cast<int64_t>(trials_.size()); }  // beside the default
  int64_t num_failed() const;
  int64_t since_better() const { return since_better_; }
  double default_seconds() const { return default_seconds_; }  // 0: not measured, or it failed
  double best_seconds() const;                                 // of the default and all trials

  double SecondsOf(const Point& point) const;  // of a trial; 0: there is none, or it failed

  void SetDefault(const Trial& trial);
  void Add(Trial trial);
  // The trials that are faster than the default was, fastest first.
  std::vector<const Trial*> Leaders() const;
  // A point that was not drawn before, first of all those that Rank has left; none when many draws in a row give
  // nothing new.
  std::optional<Point> Next(Search search, int64_t grid_limit, std::mt19937_64& random);
  // The model has had no say about the next point, and enough was measured to ask it.
  bool WantsRanking() const;
  // Draws many points, and keeps the few that the model takes for the fastest.
  Status Rank(const CostModel& model, std::mt19937_64& random);
  // What was measured, for the model.
  CostModel::Group Measured();
  Features FeaturesOfPoint(const Point& point) const;  // empty where it is not lowered
  // Seconds of a run of the model that the next trial is expected to save.
  double ExpectedGain() const;

  MeasuredProgram default_program;
  std::vector<MeasuredCase> cases;
  std::string note;  // why nothing more is tried; empty: the search goes on
  int64_t new_trials = 0;

 private:
  std::optional<Point> Draw(Search search, int64_t grid_limit, std::mt19937_64& random);

  const Task& task_;
  const Space space_;
  const Target& target_;
  const PointSource source_;
  std::vector<Trial> trials_;
  std::vector<double> best_after_;          // each trial: the best time so far
  std::set<std::string> seen_;              // traces of points that were drawn or are in the database
  std::optional<std::vector<Point>> grid_;  // what is left of it, last first
  std::vector<Point> ranked_;               // likely faster ones last
  Trial default_;
  int64_t since_better_ = 0;
  double default_seconds_ = 0;
};

}  // namespace ingot::tune
