// vm-bench: times a function of an executable, warm, on inputs as vm-run takes them (random ones by default), and
// prints the distribution of the time of one call. Calls go through ingot_invoke_into, as in a program that embeds the
// VM.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <numeric>
#include <sstream>

#include "apps/common/duration.h"
#include "apps/common/machine_peaks.h"
#include "apps/common/process.h"
#include "apps/common/profile.h"
#include "apps/common/roofline.h"
#include "apps/common/session.h"
#include "apps/common/session_options.h"
#include "apps/common/tool.h"
#include "formats/byte_reader.h"
#include "formats/file.h"

namespace ingot::apps {
namespace {

constexpr const char* kExamples =
    "  vm-bench model.ingot\n"
    "  vm-bench model.ingot --input @inputs.npz --threads 1,2 --percentile 50,99\n"
    "  vm-bench model.ingot --number 10 --repeat 10       # mean, median and deviation of 10 x 10 calls\n"
    "  vm-bench model.ingot --roofline                    # which kernels are far from what the machine can do\n"
    "  vm-bench model.ingot --json new.json --baseline old.json --fail-if-slower 5%";

using Clock = std::chrono::steady_clock;

struct Options {
  SessionOptions session;
  InputArguments inputs;
  std::vector<std::string> input_arguments;
  std::vector<int> threads{1};
  std::string warmup = "200ms", min_time = "3s", baseline, fail_if_slower, state_load;
  std::vector<double> percentiles{50, 95};
  int64_t iterations = 0, number = 0, repeat = 0;
  bool csv = false, markdown = false, profile = false, roofline = false;
};

struct Measurement {
  std::string name;
  int threads = 1;
  std::vector<double> nanoseconds;  // per call, one entry per sample; sorted
  int64_t iterations = 0;
  std::string profile_table;  // of --profile
  Json profile_json;
  std::string roofline_table;  // of --roofline
  Json roofline_json;

  double mean() const {
    return std::accumulate(nanoseconds.begin(), nanoseconds.end(), 0.0) / static_cast<double>(nanoseconds.size());
  }
  // Linear interpolation between the two nearest samples.
  double percentile(double p) const {
    const double position = p / 100 * static_cast<double>(nanoseconds.size() - 1);
    const size_t below = static_cast<size_t>(position);
    const size_t above = std::min(below + 1, nanoseconds.size() - 1);
    return nanoseconds[below] + (nanoseconds[above] - nanoseconds[below]) * (position - static_cast<double>(below));
  }
  double deviation() const {
    const double m = mean();
    double sum = 0;
    for (double x : nanoseconds) sum += (x - m) * (x - m);
    return nanoseconds.size() > 1 ? std::sqrt(sum / static_cast<double>(nanoseconds.size() - 1)) : 0;
  }
  // The middle half of the samples spreads over more than a tenth of the median.
  bool is_unstable() const { return percentile(75) - percentile(25) > 0.1 * percentile(50); }
};

// Profiles as many calls as were measured, for the time of the measurement at most. It runs after the measurement,
// which the profiler's clock readings would distort.
Status AddProfile(Session& session, const Options& options, double seconds, Measurement& result) {
  Profile profile;
  INGOT_RETURN_IF_ERROR(profile.Attach(session.context(), /*keep_trace=*/false));
  const Clock::time_point start = Clock::now();
  int64_t calls = 0;
  do {
    profile.BeginInvocation();
    INGOT_RETURN_IF_ERROR(session.InvokeInto());
    profile.EndInvocation();
  } while (++calls < result.iterations && std::chrono::duration<double>(Clock::now() - start).count() < seconds);
  result.profile_table = profile.ToTable();
  result.profile_json = profile.ToJson();
  if (!options.roofline) return Status();
  INGOT_ASSIGN_OR_RETURN(const MachinePeaks peaks, MeasurePeaks(result.threads));
  result.roofline_table = RooflineTable(profile, peaks);
  result.roofline_json = RooflineJson(profile, peaks);
  return Status();
}

// A sample is `number` calls timed together, so that the clock's own cost stays below a hundredth.
Result<Measurement> Measure(const Options& options, int threads) {
  SessionOptions session_options = options.session;
  session_options.threads = threads;
  INGOT_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Open(session_options));
  INGOT_RETURN_IF_ERROR(session->BindInputs(options.inputs));
  const CancelOnInterrupt interruptible(*session);
  INGOT_ASSIGN_OR_RETURN(const double warmup, ParseDuration(options.warmup));
  INGOT_ASSIGN_OR_RETURN(const double min_time, ParseDuration(options.min_time));

  if (!options.state_load.empty()) INGOT_RETURN_IF_ERROR(session->LoadStates(options.state_load));
  INGOT_RETURN_IF_ERROR(session->InvokeInto());
  int64_t warm_calls = 0;
  const Clock::time_point warm_start = Clock::now();
  double elapsed = 0;
  do {
    INGOT_RETURN_IF_ERROR(session->RestartStates());
    INGOT_RETURN_IF_ERROR(session->InvokeInto());
    ++warm_calls;
    elapsed = std::chrono::duration<double>(Clock::now() - warm_start).count();
  } while (elapsed < warmup);
  const double seconds_per_call = elapsed / static_cast<double>(warm_calls);
  const int64_t number = options.number > 0
                             ? options.number
                             : std::max<int64_t>(1, static_cast<int64_t>(5e-6 / std::max(seconds_per_call, 1e-9)));

  Measurement result;
  result.name = std::filesystem::path(options.session.path).stem().string() + "/" + options.session.entry;
  result.threads = threads;
  const Clock::time_point start = Clock::now();
  auto is_done = [&](int64_t samples) {
    if (options.repeat > 0) return samples >= options.repeat;
    if (options.iterations > 0) return samples * number >= options.iterations;
    return samples >= 5 && std::chrono::duration<double>(Clock::now() - start).count() >= min_time;
  };
  for (int64_t samples = 0; !is_done(samples); ++samples) {
    INGOT_RETURN_IF_ERROR(session->RestartStates());  // otherwise a cache would be full at some time
    const Clock::time_point t0 = Clock::now();
    for (int64_t i = 0; i < number; ++i) INGOT_RETURN_IF_ERROR(session->InvokeInto());
    result.nanoseconds.push_back(std::chrono::duration<double, std::nano>(Clock::now() - t0).count() /
                                 static_cast<double>(number));
    result.iterations += number;
  }
  std::sort(result.nanoseconds.begin(), result.nanoseconds.end());
  if (options.profile || options.roofline) INGOT_RETURN_IF_ERROR(AddProfile(*session, options, min_time, result));
  return result;
}

// "50", "99.9".
std::string PercentileName(double p) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", p);
  return text;
}

Json ToJson(const Options& options, const Measurement& m) {
  Json percentiles = Json::Object();
  for (double p : options.percentiles) percentiles[PercentileName(p)] = m.percentile(p);
  Json json{{"name", m.name},
            {"threads", m.threads},
            {"iterations", m.iterations},
            {"time_unit", "ns"},
            {"real_time", m.percentile(50)},
            {"min_time", m.nanoseconds.front()},
            {"mean_time", m.mean()},
            {"stddev_time", m.deviation()},
            {"percentiles", percentiles},
            {"unstable", m.is_unstable()}};
  if (options.profile) json["profile"] = m.profile_json;
  if (options.roofline) json["roofline"] = m.roofline_json;
  return json;
}

std::string Milliseconds(double nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", nanoseconds * 1e-6);
  return text;
}

void Print(const Tool& tool, const Options& options, const std::vector<Measurement>& measurements) {
  const char* separator = options.csv ? "," : options.markdown ? " | " : "  ";
  std::string header = std::string("name") + separator + "threads" + separator + "calls" + separator + "min_ms" +
                       separator + "mean_ms" + separator + "median_ms" + separator + "std_ms";
  for (double p : options.percentiles) header += separator + ("p" + PercentileName(p)) + "_ms";
  std::cout << (options.markdown ? "| " + header + " |\n|" : header + "\n");
  if (options.markdown) {
    for (size_t i = 0; i < 7 + options.percentiles.size(); ++i) std::cout << "---|";
    std::cout << "\n";
  }
  for (const Measurement& m : measurements) {
    std::string line = m.name + separator + std::to_string(m.threads) + separator + std::to_string(m.iterations) +
                       separator + Milliseconds(m.nanoseconds.front()) + separator + Milliseconds(m.mean()) +
                       separator + Milliseconds(m.percentile(50)) + separator + Milliseconds(m.deviation());
    for (double p : options.percentiles) line += separator + Milliseconds(m.percentile(p));
    std::cout << (options.markdown ? "| " + line + " |\n" : line + "\n");
    if (m.is_unstable())
      tool.Note(m.name + ", " + std::to_string(m.threads) +
                " threads: the time is unstable; measure again on a quiet machine");
  }
  for (const Measurement& m : measurements) {
    if (options.profile) std::cout << "\n" << m.name << ", " << m.threads << " threads:\n" << m.profile_table;
    if (options.roofline) std::cout << "\n" << m.name << ", " << m.threads << " threads:\n" << m.roofline_table;
  }
}

// Compares medians with an earlier --json file. False when one is slower by more than the given share.
Result<bool> CompareWithBaseline(const Tool& tool, const Options& options,
                                 const std::vector<Measurement>& measurements) {
  INGOT_ASSIGN_OR_RETURN(const SharedBytes bytes, formats::MapFile(options.baseline));
  std::istringstream file{std::string(formats::AsText(bytes.bytes))};
  const Json old = Json::Parse(file).value_or(Json());
  if (!old.contains("benchmarks") || !old["benchmarks"].is_array()) {
    return Status(StatusCode::kBadInput, options.baseline + ": expected the JSON of an earlier vm-bench");
  }
  double allowed = INFINITY;
  if (!options.fail_if_slower.empty()) {
    char* end = nullptr;
    allowed = std::strtod(options.fail_if_slower.c_str(), &end) / 100;
    if (std::string_view(end) != "%" || !(allowed >= 0)) {
      return Status(StatusCode::kInvalidArgument, "--fail-if-slower: expected a percentage such as 5%");
    }
  }
  bool fine = true;
  for (const Measurement& m : measurements) {
    bool found = false;
    for (const Json& entry : old["benchmarks"]) {
      if (entry.ValueOr("name", "") != m.name || entry.ValueOr("threads", 0) != m.threads) continue;
      found = true;
      const double before = entry.ValueOr("real_time", 0.0);
      const double ratio = before > 0 ? m.percentile(50) / before : INFINITY;
      char text[96];
      std::snprintf(text, sizeof text, ", %d threads: %.3f x the baseline's median", m.threads, ratio);
      tool.Note(m.name + text);
      fine &= ratio <= 1 + allowed;
    }
    if (!found)
      return Status(StatusCode::kBadInput,
                    options.baseline + ": holds no \"" + m.name + "\" with " + std::to_string(m.threads) + " threads");
  }
  return fine;
}

Result<int> Run(Tool& tool, Options& options) {
  // Files bind by name (or in order), everything else is a SPEC.
  for (const std::string& argument : options.input_arguments) {
    if (argument.starts_with("@") && argument.find(':') == std::string::npos) {
      options.inputs.files.push_back(argument.substr(1));
    } else {
      options.inputs.specs.push_back(argument);
    }
  }
  options.inputs.missing_spec = "rand";
  std::vector<Measurement> measurements;
  for (int threads : options.threads) {
    INGOT_ASSIGN_OR_RETURN(Measurement measurement, Measure(options, threads));
    measurements.push_back(std::move(measurement));
  }
  if (tool.wants_json()) {
    Json benchmarks = Json::Array();
    for (const Measurement& m : measurements) benchmarks.push_back(ToJson(options, m));
    INGOT_RETURN_IF_ERROR(
        tool.WriteJson(1, {{"context", {{"executable", options.session.path}, {"entry", options.session.entry}}},
                           {"benchmarks", benchmarks}}));
  }
  if (!tool.json_to_stdout()) Print(tool, options, measurements);
  if (options.baseline.empty()) return int{kExitOk};
  INGOT_ASSIGN_OR_RETURN(const bool fine, CompareWithBaseline(tool, options, measurements));
  return fine ? int{kExitOk} : int{kExitDiffers};
}

}  // namespace
}  // namespace ingot::apps

int main(int argc, char** argv) {
  using namespace ingot::apps;  // NOLINT: the tool's own names
  PrepareProcess("vm-bench");
  Tool tool("vm-bench", "Times a function of an executable.", kExamples);
  Options options;
  CommandLine& line = tool.command_line();
  AddSessionOptions(line, options.session);
  line.Add("--input", options.input_arguments, "@FILE by name, or [NAME=]SPEC as in vm-run (default: rand)");
  line.Add("--state-load", options.state_load, "Begin each sample with the states of this file (default: initial ones)")
      .Type("FILE");
  line.Add("--seed", options.inputs.seed, "Of random inputs").ShowDefault();
  line.Add("--threads", options.threads, "Thread counts to measure").SplitAt(',').ShowDefault();
  line.Add("--warmup", options.warmup, "Untimed calls for so long").ShowDefault();
  line.Add("--min-time", options.min_time, "Measure at least so long").ShowDefault();
  line.Add("--iters", options.iterations, "Measure so many calls instead");
  line.Add("--number", options.number, "Calls per sample (default: chosen from the call's time)");
  line.Add("--repeat", options.repeat, "Samples, instead of --min-time");
  line.Add("--percentile", options.percentiles, "Percentiles to print").SplitAt(',').Between(0.0, 100.0).ShowDefault();
  line.AddFlag("--profile", options.profile, "Then as many calls again, and their times by instruction");
  line.AddFlag("--roofline", options.roofline,
               "Then as many calls again, and the rates of kernels beside this machine's peaks, which it measures: "
               "multiply-adds, and reading memory");
  line.AddFlag("--csv", options.csv, "Print comma-separated values");
  line.AddFlag("--md", options.markdown, "Print a Markdown table");
  line.Add("--baseline", options.baseline, "JSON of an earlier run to compare with").Type("FILE");
  line.Add("--fail-if-slower", options.fail_if_slower,
           "Exit 1 when slower than the baseline by more than this, such as 5%");
  return tool.Run(argc, argv, [&] { return Run(tool, options); });
}
