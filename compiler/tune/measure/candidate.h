// What is measured, and what comes of it. In: an executable in memory, one of its functions with its inputs, results to
// compare with, and how to measure. Out: seconds of one call, repeat by repeat, or why there are none. Plain data,
// which protocol.h sends to a runner and back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tensor_compare.h"
#include "runtime/shared_bytes.h"
#include "runtime/status.h"

namespace ingot::tune {

// One function of an executable (an .ingot container).
struct MeasuredProgram {
  SharedBytes executable;
  std::string entry = "main";
  bool is_there() const { return executable.size() > 0; }
};

// An input of the function; its dtype is the signature's. `spec` is rand, randint:lo,hi, zeros, ones or elements, as
// formats/tensor_spec.h has them; for an input that is an integer, a float or a bool, its value.
struct MeasuredInput {
  std::vector<int64_t> dims;  // of a tensor: all of them, with symbols bound
  std::string spec = "rand";
  // Where caches are flushed before a call: whether the tensor is read and written after that, so that it is in the
  // caches as far as it fits, as what another kernel has just written.
  bool is_warm = false;
};

// What goes wrong on purpose, after the first call, in tests of the one who measures.
enum class TestFault : uint8_t { kNone = 0, kCrash = 1, kHang = 2, kEatMemory = 3, kWrongResult = 4 };

struct MeasureOptions {
  int32_t threads = 1;            // of the virtual machine's pool
  double warmup_seconds = 0.02;   // untimed calls, at least one
  double repeat_seconds = 0.005;  // a repeat goes on until its timed calls took so long, ...
  int64_t max_calls = 1000;       // ... or were so many,
  int64_t max_cold_calls = 10;    // or so many where caches are flushed before each, which takes longer than most calls
  int32_t repeats = 5;
  // Bytes of other memory that are read and written before each timed call, which so finds all tensors but the warm ones
  // out of the caches: kEveryCache is twice the last level (at most 64 MiB), 0 leaves them hot. One thread does that, so
  // that caches of other cores stay as they are.
  static constexpr int64_t kEveryCache = -1;
  int64_t flush_bytes = kEveryCache;
  double timeout_seconds = 10;           // of the whole candidate; then it is killed: kHung
  int64_t max_memory_bytes = 4LL << 30;  // that the candidate's process may add; beyond: kOutOfMemory; 0: any
  TestFault fault = TestFault::kNone;
};

struct Candidate {
  uint64_t id = 0;  // the caller's; comes back in the measurement
  MeasuredProgram program;
  // Where it is there, both are measured in turns, call by call or group by group (A B A B ...), in one process.
  MeasuredProgram rival;
  // Its results on the same inputs are what those of the program (and of the rival) are compared with, within the
  // tolerance (the absolute one of results up to 1, and of larger ones as many times as large; of the dtype, where that
  // is coarser); a runner gets the same reference once. Where it is not there, results are not compared.
  MeasuredProgram reference;
  formats::Tolerance tolerance{1e-4, 1e-5};
  std::vector<MeasuredInput> inputs;  // in order, those that the function writes too (zeros as a rule)
  uint64_t seed = 0;                  // of random inputs, which are the same on every machine
  MeasureOptions options;
};

enum class Outcome : uint8_t {
  kOk = 0,
  kWrongResult = 1,  // results differ from the reference's
  kCrashed = 2,      // by a signal
  kHung = 3,         // killed at the timeout
  kOutOfMemory = 4,
  kRefused = 5,     // by the virtual machine: it did not load or failed, or an input does not fit
  kLostRunner = 6,  // so many runners were lost with it that no other one gets it
};
// "ok", "wrong result", "crashed", "hung", "out of memory", "refused", "lost runner".
std::string_view OutcomeName(Outcome outcome);

struct Measurement {
  uint64_t id = 0;
  int32_t runner = -1;  // its number in the pool
  Outcome outcome = Outcome::kLostRunner;
  int32_t signal = 0;  // of kCrashed
  // Of one call of the program, one entry per repeat; of the rival, in the same repeats. Empty unless kOk.
  std::vector<double> seconds, rival_seconds;
  std::string error;  // empty when kOk
};

// The machine that a runner is on.
struct RunnerMachine {
  std::string architecture;  // as uname has it
  std::string cpu;           // its name, where the system tells it
  int32_t processors = 0;
  int64_t last_level_cache_bytes = 0;  // 0: not known
};

}  // namespace ingot::tune
