// A candidate's process is watched from outside: its result comes through a pipe; its time and memory are looked at
// every few milliseconds. A limit of the address space makes most allocations fail before that (emulators have none).
#include "compiler/tune/measure/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <limits>
#include <utility>

#include "compiler/tune/measure/channel.h"
#include "compiler/tune/measure/evaluate_candidate.h"
#include "formats/byte_reader.h"
#include "formats/hash.h"

namespace ingot::tune {
namespace {

constexpr int kWatchMilliseconds = 20;
constexpr size_t kMaxAnswerBytes = 64 << 20;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kLimitsAddresses = false;  // the sanitizer's shadow takes terabytes of them
#else
constexpr bool kLimitsAddresses = true;
#endif

struct MemoryUse {
  int64_t address_bytes = 0, resident_bytes = 0;
};

MemoryUse MemoryOf(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/statm");
  int64_t size = 0, resident = 0;
  file >> size >> resident;
  const int64_t page = sysconf(_SC_PAGESIZE);
  return {size * page, resident * page};
}

// What a process that uses so much may use in all; the largest number where that is none.
int64_t MostBytes(int64_t used, int64_t more) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  return more > kLargest - used ? kLargest : used + more;
}

RunnerMachine ThisMachine() {
  RunnerMachine machine;
  utsname name{};
  if (uname(&name) == 0) machine.architecture = name.machine;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; machine.cpu.empty() && std::getline(file, line);) {
    if (line.starts_with("model name")) machine.cpu = line.substr(std::min(line.find(": ") + 2, line.size()));
  }
  machine.processors = static_cast<int32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  machine.last_level_cache_bytes = LastLevelCacheBytes();
  return machine;
}

// In the candidate's process: it is a group of its own, dies with the worker, and has nothing of the worker's streams.
void PrepareChild(int64_t max_memory_bytes) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (kLimitsAddresses && max_memory_bytes > 0) {
    const auto most = static_cast<rlim_t>(MostBytes(MemoryOf(getpid()).address_bytes, max_memory_bytes));
    const rlimit limit{most, most};
    setrlimit(RLIMIT_AS, &limit);
  }
  if (const int file = open("/proc/self/oom_score_adj", O_WRONLY); file >= 0) {
    const ssize_t written = write(file, "1000", 4);
    static_cast<void>(written);  // it is a wish
    close(file);
  }
}

class CandidateProcess {
 public:
  CandidateProcess(const Candidate& candidate, int input, int output) : candidate_(candidate), input_(input) {
    Start(output);
  }
  ~CandidateProcess() { Kill(); }

  // The measurement, whatever becomes of the process; fails where the pool has gone.
  Result<Measurement> Watch() {
    if (process_ < 0) return Without(Outcome::kOutOfMemory, std::string("no process for it: ") + std::strerror(errno));
    const Deadline deadline = Deadline::After(candidate_.options.timeout_seconds);
    const int64_t most = MostBytes(MemoryOf(getpid()).resident_bytes, candidate_.options.max_memory_bytes);
    while (true) {
      INGOT_ASSIGN_OR_RETURN(const bool has_ended, ReadAnswer());
      if (has_ended) return Judge(Wait());
      if (deadline.has_passed()) {
        Kill();
        return Without(Outcome::kHung,
                       "not ready after " + std::to_string(candidate_.options.timeout_seconds) + " seconds");
      }
      if (candidate_.options.max_memory_bytes > 0 && MemoryOf(process_).resident_bytes > most) {
        Kill();
        return Without(Outcome::kOutOfMemory, "more memory than it may have");
      }
    }
  }

 private:
  void Start(int output) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    process_ = fork();
    if (process_ == 0) {
      close(ends[0]);
      close(input_);
      close(output);
      PrepareChild(candidate_.options.max_memory_bytes);
      const std::vector<std::byte> answer = EncodeMeasurement(EvaluateCandidate(candidate_));
      const Status status = WriteFrame(ends[1], FrameKind::kMeasurement, answer, Deadline::Never());
      _exit(status.ok() ? 0 : 1);
    }
    close(ends[1]);
    answer_fd_ = ends[0];
  }

  // Takes what there is of the answer, or waits a moment; true when the process has closed its end.
  Result<bool> ReadAnswer() {
    pollfd polled[] = {{answer_fd_, POLLIN, 0}, {input_, POLLIN, 0}};
    if (poll(polled, 2, kWatchMilliseconds) < 0) return false;
    // The pool says nothing before it has the measurement: either it has gone, or something else speaks.
    if (polled[1].revents != 0) return Status(StatusCode::kCancelled, "the pool has gone");
    if (polled[0].revents == 0) return false;
    std::byte piece[4096];
    const ssize_t count = read(answer_fd_, piece, sizeof piece);
    if (count > 0 && answer_.size() < kMaxAnswerBytes) answer_.insert(answer_.end(), piece, piece + count);
    return count == 0;
  }

  int Wait() {
    int state = 0;
    while (waitpid(process_, &state, 0) < 0 && errno == EINTR) {
    }
    kill(-process_, SIGKILL);  // what it may have started
    process_ = -1;
    return state;
  }

  void Kill() {
    if (process_ > 0) {
      kill(process_, SIGKILL);
      Wait();
    }
    if (answer_fd_ >= 0) close(std::exchange(answer_fd_, -1));
  }

  Measurement Judge(int state) const {
    if (WIFSIGNALED(state)) {
      const int signal = WTERMSIG(state);
      if (signal == SIGKILL) return Without(Outcome::kOutOfMemory, "killed by the system, as when memory is short");
      Measurement crashed = Without(Outcome::kCrashed, strsignal(signal));
      crashed.signal = signal;
      return crashed;
    }
    Result<Measurement> answer = Decode();
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0 && answer.ok()) return *std::move(answer);
    return Without(Outcome::kCrashed, "its process ended with status " +
                                          std::to_string(WIFEXITED(state) ? WEXITSTATUS(state) : -1) +
                                          " and without a result");
  }

  Result<Measurement> Decode() const {
    if (answer_.size() < kFrameHeadBytes) return Status(StatusCode::kCorrupt, "no answer");
    const std::span<const std::byte> bytes(answer_);
    INGOT_ASSIGN_OR_RETURN(const FrameHead head, DecodeFrameHead(bytes.first(kFrameHeadBytes)));
    INGOT_RETURN_IF_ERROR(CheckFrame(head, bytes.subspan(kFrameHeadBytes)));
    return DecodeMeasurement(bytes.subspan(kFrameHeadBytes));
  }

  Measurement Without(Outcome outcome, std::string error) const {
    Measurement measurement;
    measurement.id = candidate_.id;
    measurement.outcome = outcome;
    measurement.error = std::move(error);
    return measurement;
  }

  const Candidate& candidate_;
  const int input_;
  pid_t process_ = -1;
  int answer_fd_ = -1;
  std::vector<std::byte> answer_;
};

class Worker {
 public:
  Worker(int input, int output) : input_(input), output_(output) {}

  Status Run() {
    INGOT_RETURN_IF_ERROR(WriteBytes(output_, formats::AsBytes(kGreeting), Deadline::Never()));
    INGOT_RETURN_IF_ERROR(WriteFrame(output_, FrameKind::kHello, EncodeMachine(ThisMachine()), Deadline::Never()));
    while (true) {
      Result<Frame> read = ReadFrame(input_, Deadline::Never());
      if (!read.ok() && read.status().code() == StatusCode::kNotFound) return Status();
      INGOT_ASSIGN_OR_RETURN(Frame frame, std::move(read));
      if (frame.kind == FrameKind::kProgram) {
        Keep(std::move(frame.payload));
      } else if (frame.kind == FrameKind::kCandidate) {
        INGOT_RETURN_IF_ERROR(Measure(frame.payload));
      } else {
        return Status(StatusCode::kCorrupt, "a frame of a kind that a pool does not send");
      }
    }
  }

 private:
  void Keep(std::vector<std::byte> bytes) {
    const uint64_t hash = formats::Hash(bytes);
    references_.emplace_back(hash, SharedBytes::Own(std::move(bytes)));
    if (references_.size() > kKeptReferences) references_.pop_front();
  }

  Status Measure(std::span<const std::byte> payload) {
    INGOT_ASSIGN_OR_RETURN(ReceivedCandidate received, DecodeCandidate(payload));
    if (received.reference_hash != 0) {
      for (const auto& [hash, bytes] : references_) {
        if (hash == received.reference_hash) received.candidate.reference.executable = bytes;
      }
      if (!received.candidate.reference.is_there()) {
        return Status(StatusCode::kCorrupt, "a candidate whose reference did not come");
      }
    }
    INGOT_ASSIGN_OR_RETURN(const Measurement measurement,
                           CandidateProcess(received.candidate, input_, output_).Watch());
    return WriteFrame(output_, FrameKind::kMeasurement, EncodeMeasurement(measurement), Deadline::Never());
  }

  const int input_, output_;
  std::deque<std::pair<uint64_t, SharedBytes>> references_;
};

}  // namespace

Status RunWorker(int input, int output) { return Worker(input, output).Run(); }

}  // namespace ingot::tune
