// tune_replay: repeats searches over spaces that were measured: what a search wants to try is looked up in the records,
// so that searches are compared on equal times, without a machine's noise between them. Tasks are those of the file
// whose default schedule and `fewest` other ones were measured for this CPU, of models and of the tutorials' templates.
// Of a space that was recorded in part, searches draw from that part.
//
//   tune_replay RECORDS.jsonl TRIALS SEEDS [FEWEST]    prints JSON: for each task, search and seed the fastest time so
//                                                      far, trial by trial, as a part of the default's, whose own does
//                                                      not count. tune_replay.py reads it.
//   tune_replay --measure matmul|conv2d SIZE TRIALS RECORDS.jsonl    records schedules of a template, drawn at random
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <random>
#include <span>
#include <string>

#include "apps/examples/tutorials/templates.h"
#include "compiler/driver/write.h"
#include "compiler/kernels/kernel_cache.h"
#include "compiler/tune/database.h"
#include "compiler/tune/measure/runner_pool.h"
#include "compiler/tune/task_search.h"
#include "compiler/tune/template.h"
#include "compiler/tune/tuner.h"

using namespace ingot;  // NOLINT: a program

namespace {

[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "tune_replay: error: %s\n", message.c_str());
  std::exit(1);
}

template <typename T>
T Need(Result<T> result) {
  if (!result.ok()) Die(result.status().message());
  return std::move(result).value();
}

constexpr int64_t kAnySize = 8;  // a template's schedule is the same for all

tune::Template TemplateNamed(const std::string& name, int64_t size) {
  if (name == "matmul") return tutorial::ProductTemplate(size);
  if (name == "conv2d") return tutorial::ConvolutionTemplate(size);
  Die("there is no template " + name);
}

struct RecordedSpace {
  std::string function;
  double default_seconds = 0;
  std::map<std::string, const tune::Record*> records;  // by trace, but for the default's
};

std::map<std::string, RecordedSpace> SpacesOf(const tune::Database& database, const std::string& target,
                                              size_t fewest) {
  std::map<std::string, RecordedSpace> spaces;
  for (const tune::Record& record : database.records()) {
    if (record.kind != tune::Record::Kind::kTrial || record.target != target) continue;
    RecordedSpace& space = spaces[record.task];
    space.function = record.function;
    if (record.choices.empty()) space.default_seconds = record.fastest_seconds();
    if (!record.choices.empty()) space.records.emplace(record.trace, &record);
  }
  std::erase_if(spaces, [&](const auto& entry) {
    return entry.second.default_seconds == 0 || entry.second.records.size() < fewest;
  });
  return spaces;
}

// By the key: of a model, or of a template.
tune::Task TaskOf(const std::string& key, const std::string& function, const Target& target) {
  const size_t colon = key.find(':');
  if (colon != std::string::npos) {
    tune::Template of = TemplateNamed(key.substr(colon + 1), kAnySize);
    of.function = Need(tune::ParseTaskText(function));
    return Need(tune::TaskOfTemplate(of, target));
  }
  tune::Task task;
  task.key = key;
  task.names = {key};
  task.function = Need(tune::ParseTaskText(function));
  return Need(tune::Described(task, target));
}

// A recorded schedule, with all that its rules chose.
struct RecordedPoint {
  tune::Point point;
  double seconds = 0;
  schedule::Chosen chosen;
  tune::Features features;
  std::vector<size_t> neighbours;  // that differ in one choice
};

bool DifferInOne(const schedule::Chosen& a, const schedule::Chosen& b) {
  if (a.size() != b.size()) return false;
  int different = 0;
  for (auto one = a.begin(), other = b.begin(); one != a.end(); ++one, ++other) {
    if (one->first != other->first) return false;
    different += one->second != other->second ? 1 : 0;
  }
  return different == 1;
}

// The last one is the default schedule, which no search draws.
std::vector<RecordedPoint> PointsOf(const tune::Task& task, const Target& target, const RecordedSpace& space) {
  const tune::TaskSearch search(task, target);
  std::vector<RecordedPoint> points;
  const auto add = [&](const tune::Point& at, double seconds) {
    const auto scheduled = task.Scheduled(target, at.choices);
    if (!scheduled.ok() || scheduled->trace.ToString() != at.trace) return;
    RecordedPoint point{at, seconds, {}, search.FeaturesOfPoint(at), {}};
    for (const schedule::Choice& choice : scheduled->choices) point.chosen[choice.name] = choice.value;
    points.push_back(std::move(point));
  };
  for (const auto& [trace, record] : space.records) add({record->choices, trace}, record->fastest_seconds());
  add(Need(search.space().Default()), space.default_seconds);
  for (size_t i = 0; i < points.size(); ++i) {
    for (size_t j = 0; j + 1 < points.size(); ++j) {
      if (DifferInOne(points[i].chosen, points[j].chosen)) points[i].neighbours.push_back(j);
    }
  }
  return points;
}

// The fastest time after each trial, as a part of the default's.
std::vector<double> Replay(const tune::Task& task, const Target& target, const std::vector<RecordedPoint>& points,
                           tune::Search search, tune::CostModel* model, int64_t trials, uint64_t seed) {
  const double default_seconds = points.back().seconds;
  std::map<std::string, size_t> by_trace;
  for (size_t i = 0; i < points.size(); ++i) by_trace.emplace(points[i].point.trace, i);
  const auto find = [&](const tune::Point& point) -> const RecordedPoint& { return points[by_trace.at(point.trace)]; };
  tune::PointSource source;
  source.random = [&](std::mt19937_64& random) { return std::optional(points[random() % (points.size() - 1)].point); };
  source.mutate = [&](const tune::Point& parent, std::mt19937_64& random) {
    const std::vector<size_t>& neighbours = find(parent).neighbours;
    if (neighbours.empty()) return source.random(random);
    return std::optional(points[neighbours[random() % neighbours.size()]].point);
  };
  source.features = [&](const tune::Point& point) { return find(point).features; };
  tune::TaskSearch state(task, target, source);
  state.SetDefault({points.back().point, default_seconds});
  std::mt19937_64 random(seed);
  std::vector<double> curve;
  double fastest = std::numeric_limits<double>::infinity();
  while (static_cast<int64_t>(curve.size()) < trials) {
    if (model != nullptr && state.WantsRanking()) {
      Status status = model->Fit({state.Measured()});
      if (status.ok()) status = state.Rank(*model, random);
      if (!status.ok()) Die(status.message());
    }
    const std::optional<tune::Point> point = state.Next(search, trials, random);
    if (!point) break;
    const double seconds = find(*point).seconds;
    state.Add({*point, seconds});
    if (seconds > 0) fastest = std::min(fastest, seconds);
    curve.push_back(fastest / default_seconds);
  }
  // What comes before the first schedule that ran counts as that one.
  for (size_t i = curve.size(); i-- > 1;) curve[i - 1] = std::isfinite(curve[i - 1]) ? curve[i - 1] : curve[i];
  return curve;
}

int Measure(const std::string& name, int64_t size, int64_t trials, const std::string& path) {
  const Target target = Need(ParseTarget("cpu:native")).variants.front();
  tune::DatabaseFile records = Need(tune::DatabaseFile::Open(path));
  tune::RunnerPoolOptions runners;
  runners.worker = Need(driver::FindLauncher("measure-worker-" + target.triple.substr(0, target.triple.find('-'))));
  const auto pool = Need(tune::RunnerPool::Create({"{program}"}, runners));
  tune::TuneOptions options;
  options.target = target;
  options.search = tune::Search::kRandom;
  options.trials = options.early_stop = options.trials_per_task = trials;
  options.leaders = 0;
  options.measure.repeats = 10;
  options.measure.repeat_seconds = 2e-4;
  options.measure.warmup_seconds = 1e-3;
  options.measure.flush_bytes = 0;
  const std::atomic<bool> stop{false};
  const auto results = Need(
      tune::Tune({Need(tune::TaskOfTemplate(TemplateNamed(name, size), target))}, options, *pool, records, stop, {}));
  std::printf("%s of %lld: %lld schedules measured, %lld failed\n", name.c_str(), static_cast<long long>(size),
              static_cast<long long>(results[0].trials), static_cast<long long>(results[0].failed));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 6 && std::string(argv[1]) == "--measure") {
    return Measure(argv[2], std::atoll(argv[3]), std::atoll(argv[4]), argv[5]);
  }
  if (argc != 4 && argc != 5) Die("usage: tune_replay RECORDS.jsonl TRIALS SEEDS [FEWEST]");
  const size_t fewest = argc == 5 ? static_cast<size_t>(std::atoll(argv[4])) : 8;
  const int64_t trials = std::atoll(argv[2]), seeds = std::atoll(argv[3]);
  const tune::Database database = Need(tune::Database::Load(argv[1]));
  const Target target = Need(ParseTarget("cpu:native")).variants.front();
  const auto xgboost = tune::LoadXgboostModel();
  if (!xgboost.ok()) std::fprintf(stderr, "tune_replay: %s\n", xgboost.status().message().c_str());
  struct Kind {
    const char* name;
    tune::Search search;
    tune::CostModel* model;
  };
  std::vector<Kind> kinds{{"random", tune::Search::kRandom, nullptr}, {"evolution", tune::Search::kEvolution, nullptr}};
  if (xgboost.ok()) kinds.push_back({"xgboost", tune::Search::kEvolution, xgboost->get()});
  std::printf("[");
  const char* separator = "\n";
  for (const auto& [key, space] : SpacesOf(database, kernels::TargetText(target), fewest)) {
    const tune::Task task = TaskOf(key, space.function, target);
    const std::vector<RecordedPoint> points = PointsOf(task, target, space);
    double least = std::numeric_limits<double>::infinity();
    const size_t recorded = points.size() - 1;
    for (const RecordedPoint& point : std::span(points).first(recorded))
      least = point.seconds > 0 ? std::min(least, point.seconds) : least;
    if (recorded < fewest || !std::isfinite(least)) continue;
    for (const Kind& kind : kinds) {
      for (int64_t seed = 1; seed <= seeds; ++seed) {
        std::printf(
            "%s{\"task\": \"%s\", \"schedules\": %.0f, \"recorded\": %zu, \"least\": %.6g, \"search\": \"%s\", "
            "\"seed\": %lld, \"curve\": [",
            separator, key.c_str(), task.num_schedules(), recorded, least / space.default_seconds, kind.name,
            static_cast<long long>(seed));
        separator = ",\n";
        const char* comma = "";
        const auto curve = Replay(task, target, points, kind.search, kind.model, trials, static_cast<uint64_t>(seed));
        for (const double ratio : curve) {
          std::printf("%s%.6g", comma, ratio);
          comma = ", ";
        }
        std::printf("]}");
        std::fflush(stdout);
      }
    }
  }
  std::printf("\n]\n");
  return 0;
}
