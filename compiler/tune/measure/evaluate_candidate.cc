// The order matters: results are compared before anything is timed, so that no time of a wrong program counts.
#include "compiler/tune/measure/evaluate_candidate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <thread>

#include "compiler/tune/measure/loaded_program.h"

namespace ingot::tune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMaxFlushBytes = 64 << 20;
constexpr int64_t kUnknownCacheBytes = 32 << 20;
// Calls that are shorter are timed in groups, so that reading the clock stays below a hundredth.
constexpr double kShortestTimedSeconds = 5e-6;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Memory that takes the place of everything else in the caches.
class CacheFlusher {
 public:
  explicit CacheFlusher(int64_t bytes) : memory_(static_cast<size_t>(std::max<int64_t>(bytes, 0))) {}
  bool is_on() const { return !memory_.empty(); }
  void Flush() {
    volatile unsigned char* bytes = memory_.data();
    for (size_t i = 0; i < memory_.size(); i += kCacheLineBytes) bytes[i] = static_cast<unsigned char>(bytes[i] + 1);
  }

 private:
  std::vector<unsigned char> memory_;
};

int64_t FlushBytes(const MeasureOptions& options) {
  if (options.flush_bytes != MeasureOptions::kEveryCache) return options.flush_bytes;
  const int64_t cache = LastLevelCacheBytes();
  return std::min(2 * (cache > 0 ? cache : kUnknownCacheBytes), kMaxFlushBytes);
}

// One of the programs that are measured in turns.
struct Turn {
  LoadedProgram* program;
  std::vector<double>* seconds;
  int64_t calls_per_group = 1;
  double sum = 0;
};

Status WarmUp(std::vector<Turn>& turns, const MeasureOptions& options, bool is_cold) {
  for (Turn& turn : turns) {
    const Clock::time_point start = Clock::now();
    int64_t calls = 0;
    do {
      INGOT_RETURN_IF_ERROR(turn.program->Call());
      ++calls;
    } while (SecondsSince(start) < options.warmup_seconds);
    const double seconds = SecondsSince(start) / static_cast<double>(calls);
    if (!is_cold) turn.calls_per_group = 1 + static_cast<int64_t>(kShortestTimedSeconds / std::max(seconds, 1e-9));
  }
  return Status();
}

// A repeat: groups of calls of all programs in turns, until each was timed for long enough. Which one begins changes
// from group to group.
Status MeasureRepeat(std::vector<Turn>& turns, const MeasureOptions& options, CacheFlusher& flusher) {
  for (Turn& turn : turns) turn.sum = 0;
  const int64_t max_groups = flusher.is_on() ? options.max_cold_calls : options.max_calls;
  int64_t groups = 0;
  const auto is_done = [&] {
    const auto is_long = [&](const Turn& turn) { return turn.sum >= options.repeat_seconds; };
    return groups >= std::max<int64_t>(max_groups, 1) ||
           (groups > 0 && std::all_of(turns.begin(), turns.end(), is_long));
  };
  for (; !is_done(); ++groups) {
    for (size_t i = 0; i < turns.size(); ++i) {
      Turn& turn = turns[(i + static_cast<size_t>(groups)) % turns.size()];
      if (flusher.is_on()) {
        flusher.Flush();
        turn.program->WarmInputs();
      }
      const Clock::time_point start = Clock::now();
      for (int64_t call = 0; call < turn.calls_per_group; ++call) INGOT_RETURN_IF_ERROR(turn.program->Call());
      turn.sum += SecondsSince(start);
    }
  }
  for (Turn& turn : turns) {
    if (turn.sum <= 0) return Status(StatusCode::kFailed, "the clock is too coarse for so short a repeat");
    turn.seconds->push_back(turn.sum / static_cast<double>(groups * turn.calls_per_group));
  }
  return Status();
}

double LargestMagnitude(const Tensor& tensor) {
  double largest = 0;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double magnitude = std::fabs(formats::ElementAsDouble(tensor, i));
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  }
  return largest;
}

// A long sum whose parts cancel is as inexact as its parts are large, and these are about as large as other results:
// the absolute tolerance grows with the largest one. Results of 16 bits may be rounded to neighbours.
Result<formats::Comparison> Compare(const Tensor& actual, const Tensor& expected, formats::Tolerance tolerance) {
  INGOT_ASSIGN_OR_RETURN(const formats::Comparison strict, formats::CompareTensors(actual, expected, tolerance));
  if (strict.equal || !expected.dtype().is_floating()) return strict;
  INGOT_ASSIGN_OR_RETURN(const Tensor compact, expected.Compact());
  tolerance.absolute *= std::max(LargestMagnitude(compact), 1.0);
  const double neighbour = expected.dtype().bits > 16                   ? 0
                           : expected.dtype().code == TypeCode::kBfloat ? 0x1p-7
                                                                        : 0x1p-10;
  tolerance.relative = std::max(tolerance.relative, neighbour);
  return formats::CompareTensors(actual, expected, tolerance);
}

// The difference of results, or nothing.
Result<std::string> DifferenceOf(const LoadedProgram& program, const LoadedProgram& reference,
                                 const formats::Tolerance& tolerance) {
  const std::vector<LoadedProgram::Output> actual = program.outputs(), expected = reference.outputs();
  if (actual.size() != expected.size()) {
    return "expected " + std::to_string(expected.size()) + " results, got " + std::to_string(actual.size());
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    const Result<formats::Comparison> compared = Compare(actual[i].tensor, expected[i].tensor, tolerance);
    const std::string name = "\"" + actual[i].name + "\": ";
    if (!compared.ok()) return name + compared.status().message();
    if (!compared->equal) return name + compared->ToString();
  }
  return std::string();
}

void CommitFault(TestFault fault, LoadedProgram& program) {
  switch (fault) {
    case TestFault::kNone:
      return;
    case TestFault::kCrash:
      std::signal(SIGSEGV, SIG_DFL);  // as without a sanitizer's handler
      raise(SIGSEGV);
      return;
    case TestFault::kHang:
      while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
    case TestFault::kEatMemory:
      while (true) {
        constexpr size_t kPiece = 16 << 20;
        void* piece = std::malloc(kPiece);  // lost on purpose
        if (piece == nullptr) throw std::bad_alloc();
        std::memset(piece, 1, kPiece);
      }
    case TestFault::kWrongResult:
      for (const LoadedProgram::Output& output : program.outputs()) {
        std::memset(output.tensor.data(), 0x5a, static_cast<size_t>(output.tensor.size_bytes()));
      }
      return;
  }
}

// Null where the candidate's part is not there.
Result<std::unique_ptr<LoadedProgram>> OpenAndPrepare(const MeasuredProgram& program, const Candidate& candidate,
                                                      const char* what) {
  if (!program.is_there()) return std::unique_ptr<LoadedProgram>();
  Result<std::unique_ptr<LoadedProgram>> loaded = LoadedProgram::Open(program, candidate);
  if (!loaded.ok()) return std::move(loaded).status().WithContext(what);
  INGOT_RETURN_IF_ERROR((*loaded)->Prepare().WithContext(what));
  return loaded;
}

Status Evaluate(const Candidate& candidate, Measurement& measurement) {
  if (!candidate.program.is_there()) return Status(StatusCode::kBadInput, "the candidate has no program");
  INGOT_ASSIGN_OR_RETURN(const auto reference, OpenAndPrepare(candidate.reference, candidate, "the reference"));
  INGOT_ASSIGN_OR_RETURN(const auto program, OpenAndPrepare(candidate.program, candidate, "the program"));
  INGOT_ASSIGN_OR_RETURN(const auto rival, OpenAndPrepare(candidate.rival, candidate, "the rival"));
  CommitFault(candidate.options.fault, *program);
  std::vector<Turn> turns{{program.get(), &measurement.seconds}};
  if (rival != nullptr) turns.push_back({rival.get(), &measurement.rival_seconds});
  for (const Turn& turn : turns) {
    if (reference == nullptr) break;
    INGOT_ASSIGN_OR_RETURN(const std::string difference, DifferenceOf(*turn.program, *reference, candidate.tolerance));
    if (difference.empty()) continue;
    measurement.outcome = Outcome::kWrongResult;
    measurement.error = (turn.program == program.get() ? "the program: " : "the rival: ") + difference;
    return Status();
  }
  const int64_t flush_bytes = FlushBytes(candidate.options), most = candidate.options.max_memory_bytes;
  if (most > 0 && flush_bytes > most) return Status::OutOfMemory();
  CacheFlusher flusher(flush_bytes);
  INGOT_RETURN_IF_ERROR(WarmUp(turns, candidate.options, flusher.is_on()));
  for (int32_t i = 0; i < std::max(candidate.options.repeats, 1); ++i) {
    INGOT_RETURN_IF_ERROR(MeasureRepeat(turns, candidate.options, flusher));
  }
  measurement.outcome = Outcome::kOk;
  return Status();
}

}  // namespace

Measurement EvaluateCandidate(const Candidate& candidate) {
  Measurement measurement;
  Status status;
  try {
    status = Evaluate(candidate, measurement);
  } catch (const std::bad_alloc&) {
    status = Status::OutOfMemory();
  }
  measurement.id = candidate.id;
  if (status.ok()) return measurement;
  measurement.seconds.clear();
  measurement.rival_seconds.clear();
  measurement.outcome = status.code() == StatusCode::kOutOfMemory ? Outcome::kOutOfMemory : Outcome::kRefused;
  measurement.error = status.message();
  return measurement;
}

int64_t LastLevelCacheBytes() {
  int64_t largest = 0;
  for (int i = 0; i < 8; ++i) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/size");
    int64_t size = 0;
    char unit = 0;
    if (file >> size >> unit) largest = std::max(largest, size * (unit == 'K' ? 1 << 10 : unit == 'M' ? 1 << 20 : 1));
  }
  return largest;
}

}  // namespace ingot::tune
