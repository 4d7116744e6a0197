// tune_templates: a product of matrices and a convolution, each with a schedule that has knobs (templates.cc). With the
// knobs' defaults it is naive loops; the tuner looks for better values, and keeps what it measures. Prints the times on one thread of the naive schedule, of the tuned one, and of the one that the compiler takes by
// itself, and saves the three results.
//
//   tune_templates matmul SIZE TRIALS RECORDS.jsonl RESULTS.npz    SIZE x SIZE matrices
//   tune_templates conv2d SIZE TRIALS RECORDS.jsonl RESULTS.npz    64 channels of SIZE x SIZE to as many, windows of 3
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "apps/examples/tutorials/templates.h"
#include "apps/examples/tutorials/tutorial.h"
#include "compiler/driver/write.h"
#include "compiler/tune/measure/paired_ratio.h"
#include "compiler/tune/measure/runner_pool.h"
#include "compiler/tune/template.h"
#include "compiler/tune/tuner.h"

using namespace ingot;  // NOLINT: an example

namespace {

// Tries schedules of the template on this machine; the records say which one is the best.
void TuneIt(const tune::Template& of, const Target& target, int64_t trials, tune::DatabaseFile& records) {
  tune::RunnerPoolOptions runners;
  runners.worker =
      tutorial::Need(driver::FindLauncher("measure-worker-" + target.triple.substr(0, target.triple.find('-'))));
  const auto pool = tutorial::Need(tune::RunnerPool::Create({"{program}"}, runners));
  tune::TuneOptions options;
  options.target = target;
  options.trials = options.early_stop = options.trials_per_task = trials;
  options.measure.repeats = 3;
  options.measure.flush_bytes = 0;  // in the caches, as they are compared below
  const auto model = tune::LoadXgboostModel();
  if (model.ok()) options.model = model->get();
  const std::atomic<bool> stop{false};
  const auto results =
      tutorial::Need(tune::Tune({tutorial::Need(tune::TaskOfTemplate(of, target))}, options, *pool, records, stop, {}));
  std::printf("%s: %lld schedules measured, %lld failed\n", of.name.c_str(), static_cast<long long>(results[0].trials),
              static_cast<long long>(results[0].failed));
  if (!results[0].note.empty()) tutorial::Die(results[0].note);
}

// As the tuner measures.
std::unique_ptr<driver::JitModule> ForOneThread(const std::string& name, const ir::PrimFunc& function) {
  driver::JitOptions options;
  vm::InstanceOptions instance;
  instance.num_threads = 1;
  options.instance = tutorial::Need(vm::Instance::Create(instance));
  ir::IRModule module;
  module.Add(name, function);
  return tutorial::Need(driver::JitModule::Compile(module, options));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc == 6 ? argv[1] : "";
  if (what != "matmul" && what != "conv2d") {
    tutorial::Die("usage: tune_templates matmul|conv2d SIZE TRIALS RECORDS.jsonl RESULTS.npz");
  }
  const int64_t size = std::atoll(argv[2]), trials = std::atoll(argv[3]);
  if (size < 1 || trials < 1) tutorial::Die("SIZE and TRIALS must be at least 1");
  const bool is_product = what == "matmul";
  const tune::Template of = is_product ? tutorial::ProductTemplate(size) : tutorial::ConvolutionTemplate(size);
  const Target target = tutorial::Need(ParseTarget("cpu:native")).variants.front();
  tune::DatabaseFile records = tutorial::Need(tune::DatabaseFile::Open(argv[4]));
  TuneIt(of, target, trials, records);

  const auto naive = tutorial::Need(tune::ApplyTemplate(of, target));
  const auto tuned = tutorial::Need(tune::ApplyBest(of, target, records.database()));
  for (const schedule::Choice& choice : tuned.choices) {
    std::printf("  %s = %lld\n", choice.name.c_str(), static_cast<long long>(choice.value));
  }
  std::vector<int64_t> dims{size, size}, weights = dims;
  if (!is_product) {
    dims = {1, tutorial::kChannels, size, size};
    weights = {tutorial::kChannels, tutorial::kChannels, tutorial::kWindow, tutorial::kWindow};
  }
  const Tensor a = tutorial::Uniform(dims, 1), b = tutorial::Uniform(weights, 2);
  std::vector<formats::NamedTensor> results{{"a", a}, {"b", b}};
  struct Version {
    const char* name;
    std::unique_ptr<driver::JitModule> jit;
    Tensor c;
    std::vector<double> seconds;
  };
  std::vector<Version> versions;
  versions.push_back({"naive", ForOneThread(what, naive.function), tutorial::Zeros(dims), {}});
  versions.push_back({"tuned", ForOneThread(what, tuned.function), tutorial::Zeros(dims), {}});
  versions.push_back({"default", ForOneThread(what, of.function), tutorial::Zeros(dims), {}});
  constexpr int kTurns = 9;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (Version& version : versions) {
      version.seconds.push_back(tutorial::LeastSeconds([&] {
        tutorial::Need(version.jit->CallInto(what, {a, b}, {version.c}));
      }));
    }
  }
  for (const Version& version : versions) {
    const tune::PairedRatio speed = tune::ComparePaired(versions.back().seconds, version.seconds);
    std::printf("%-8s %10.3f ms, %.2f [%.2f, %.2f] of the default schedule's speed\n", version.name,
                *std::ranges::min_element(version.seconds) * 1e3, speed.median, speed.lower, speed.upper);
    results.push_back({version.name, version.c});
  }
  tutorial::Save(argv[5], results);
  return 0;
}
