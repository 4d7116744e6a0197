// Gives every file of tests/data/fuzz/TARGET to its target, without libFuzzer: what was once found stays mended. Each
// file gets a process of its own, which has to end normally within 2 seconds of the processor and 256 MB of memory
// (under a sanitizer 20 seconds, and whatever memory that takes; with --no-limits, for valgrind, whatever it takes).
// usage: fuzz_corpora [--no-limits] FOLDER [TARGET...]
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#define INGOT_TARGET(name) extern "C" int Fuzz_##name(const uint8_t* data, size_t size);
INGOT_FUZZ_TARGETS
#undef INGOT_TARGET

namespace {

struct Target {
  const char* name;
  int (*run)(const uint8_t* data, size_t size);
};
constexpr Target kTargets[] = {
#define INGOT_TARGET(name) {#name, Fuzz_##name},
    INGOT_FUZZ_TARGETS
#undef INGOT_TARGET
};

struct Limits {
#ifdef INGOT_REPLAY_SANITIZED
  double seconds = 20;
  double megabytes = 1e9;
#else
  double seconds = 2;
  double megabytes = 256;
#endif
};
constexpr Limits kNoLimits = {1e6, 1e9};

struct Outcome {
  int status = 0;  // as waitpid gives it
  double seconds = 0;
  double megabytes = 0;
};

Outcome Replay(const Target& target, const std::filesystem::path& path, const Limits& limits) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const auto cpu = static_cast<rlim_t>(2 * limits.seconds);
    const rlimit limit = {cpu, cpu};
    setrlimit(RLIMIT_CPU, &limit);
    alarm(static_cast<unsigned>(60 * limits.seconds));  // for what waits and takes no time of the processor
    target.run(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    std::exit(0);
  }
  Outcome outcome;
  rusage usage{};
  if (child < 0 || wait4(child, &outcome.status, 0, &usage) != child) std::abort();
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + time.tv_usec * 1e-6; };
  outcome.seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  outcome.megabytes = static_cast<double>(usage.ru_maxrss) / 1024;
  return outcome;
}

// The number of files that failed.
int ReplayFolder(const Target& target, const std::filesystem::path& folder, const Limits& limits) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  int num_failed = 0;
  Outcome most;
  for (const auto& path : paths) {
    const Outcome outcome = Replay(target, path, limits);
    if (outcome.status != 0 || outcome.seconds > limits.seconds || outcome.megabytes > limits.megabytes) {
      std::printf("%s: status %#x, %.2f s, %.0f MB\n", path.c_str(), static_cast<unsigned>(outcome.status),
                  outcome.seconds, outcome.megabytes);
      ++num_failed;
    }
    most.seconds = std::max(most.seconds, outcome.seconds);
    most.megabytes = std::max(most.megabytes, outcome.megabytes);
  }
  std::printf("%s: %zu files, %d failed, at most %.2f s and %.0f MB\n", target.name, paths.size(), num_failed,
              most.seconds, most.megabytes);
  return paths.empty() ? 1 : num_failed;  // a target without a corpus is one that nothing tests
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  Limits limits;
  if (!arguments.empty() && arguments[0] == "--no-limits") {
    limits = kNoLimits;
    arguments.erase(arguments.begin());
  }
  if (arguments.empty()) {
    std::fprintf(stderr, "usage: fuzz_corpora [--no-limits] FOLDER [TARGET...]\n");
    return 2;
  }
  int num_failed = 0;
  for (const Target& target : kTargets) {
    const bool is_wanted =
        arguments.size() == 1 || std::find(arguments.begin() + 1, arguments.end(), target.name) != arguments.end();
    if (is_wanted) num_failed += ReplayFolder(target, std::filesystem::path(arguments[0]) / target.name, limits);
  }
  return num_failed == 0 ? 0 : 1;
}
