// tune_replay: repeats searches over spaces that were measured: what a search wants to try is looked up in the records,
// so that searches are compared on equal times, without a machine's noise between them. Tasks are those of the file
// whose default schedule and 8 other ones were measured for this CPU; what a search draws that was not recorded costs it
// nothing, but a search ends where such draws are 16 times its trials.
//
//   tune_replay RECORDS.jsonl TRIALS SEEDS    prints JSON: for each task, search and seed the fastest time so far, trial
//                                             by trial, as a part of the default's, whose own does not count.
//                                             tune_replay.py reads it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <random>
#include <string>

#include "compiler/kernels/kernel_cache.h"
#include "compiler/tune/database.h"
#include "compiler/tune/task_search.h"

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

struct RecordedSpace {
  std::string function;
  double default_seconds = 0;
  std::map<std::string, double> seconds;  // by trace; 0: it failed
};

std::map<std::string, RecordedSpace> SpacesOf(const tune::Database& database, const std::string& target) {
  std::map<std::string, RecordedSpace> spaces;
  for (const tune::Record& record : database.records()) {
    if (record.kind != tune::Record::Kind::kTrial || record.target != target) continue;
    if (record.task.find(':') != std::string::npos) continue;  // of a template, which is not known here
    RecordedSpace& space = spaces[record.task];
    space.function = record.function;
    if (record.choices.empty()) space.default_seconds = record.fastest_seconds();
    if (!record.choices.empty()) space.seconds.emplace(record.trace, record.fastest_seconds());
  }
  const size_t fewest = 8;
  std::erase_if(spaces, [&](const auto& entry) {
    return entry.second.default_seconds == 0 || entry.second.seconds.size() < fewest;
  });
  return spaces;
}

// The fastest time after each trial, as a part of the default's.
std::vector<double> Replay(const tune::Task& task, const Target& target, const RecordedSpace& space,
                           tune::Search search, tune::CostModel* model, int64_t trials, uint64_t seed) {
  tune::TaskSearch state(task, target);
  const tune::Point usual = Need(state.space().Default());
  state.SetDefault({usual, space.default_seconds});
  std::mt19937_64 random(seed);
  std::vector<double> curve;
  double fastest = std::numeric_limits<double>::infinity();
  for (int64_t unknown = 0; static_cast<int64_t>(curve.size()) < trials && unknown < 16 * trials;) {
    if (model != nullptr && state.WantsRanking()) {
      Status status = model->Fit({state.Measured()});
      if (status.ok()) status = state.Rank(*model, random);
      if (!status.ok()) Die(status.message());
    }
    const std::optional<tune::Point> point = state.Next(search, trials, random);
    if (!point) break;
    const auto found = space.seconds.find(point->trace);
    if (found == space.seconds.end()) {
      ++unknown;
      continue;
    }
    state.Add({*point, found->second});
    if (found->second > 0) fastest = std::min(fastest, found->second);
    if (std::isfinite(fastest)) curve.push_back(fastest / space.default_seconds);
  }
  return curve;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) Die("usage: tune_replay RECORDS.jsonl TRIALS SEEDS");
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
  for (const auto& [key, space] : SpacesOf(database, kernels::TargetText(target))) {
    tune::Task task;
    task.key = key;
    task.names = {key};
    task.function = Need(tune::ParseTaskText(space.function));
    task = Need(tune::Described(task, target));
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [trace, seconds] : space.seconds) least = seconds > 0 ? std::min(least, seconds) : least;
    if (!std::isfinite(least)) continue;
    for (const Kind& kind : kinds) {
      for (int64_t seed = 1; seed <= seeds; ++seed) {
        std::printf(
            "%s{\"task\": \"%s\", \"schedules\": %.0f, \"recorded\": %zu, \"least\": %.6g, \"search\": \"%s\", "
            "\"seed\": %lld, \"curve\": [",
            separator, key.c_str(), task.num_schedules(), space.seconds.size(), least / space.default_seconds,
            kind.name, static_cast<long long>(seed));
        separator = ",\n";
        const char* comma = "";
        const auto curve = Replay(task, target, space, kind.search, kind.model, trials, static_cast<uint64_t>(seed));
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
