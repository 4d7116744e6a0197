// Commands are started by posix_spawn; standard error goes to a file in memory, so that nobody has to read it
// meanwhile.
#include "compiler/tune/measure/runner.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "formats/byte_reader.h"
#include "formats/file.h"
#include "formats/hash.h"

extern char** environ;

namespace ingot::tune {
namespace {

constexpr std::string_view kProgramPlace = "{program}";
constexpr off_t kQuotedErrorBytes = 1000;
constexpr int kEndMilliseconds = 300;  // for a command to end by itself
// What the shell prints when it is ready for the worker's bytes; not literally in what it is told.
constexpr std::string_view kSendMark = "ingot-send-now\n";

// One line, so that the shell has read all of it before it runs any of it. What comes next is read by head alone, and
// what comes after that by the worker, since nothing is sent before it has greeted.
std::string ShellScript(size_t worker_bytes) {
  return "umask 077; f=$(mktemp \"${TMPDIR:-/tmp}/ingot-measure.XXXXXX\") && printf 'ingot-%s-now\\n' send && head "
         "-c " +
         std::to_string(worker_bytes) + " >\"$f\" && chmod 700 \"$f\" && exec \"$f\" --remove; rm -f \"$f\"; exit 1\n";
}

std::string ShellQuoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string WithProgram(std::string command, const std::string& program) {
  for (size_t at = 0; (at = command.find(kProgramPlace, at)) != std::string::npos; at += program.size()) {
    command.replace(at, kProgramPlace.size(), program);
  }
  return command;
}

// A record is made of the answer: it has a time for each repeat, of both programs where there are two, or an outcome that
// is none.
Status CheckAnswer(const Measurement& answer, const Candidate& candidate) {
  const bool is_ok = answer.outcome == Outcome::kOk;
  const size_t repeats = is_ok ? static_cast<size_t>(std::max(candidate.options.repeats, 1)) : 0;
  const size_t of_rival = candidate.rival.is_there() ? repeats : 0;
  bool are_times = answer.seconds.size() == repeats && answer.rival_seconds.size() == of_rival;
  for (const auto* times : {&answer.seconds, &answer.rival_seconds}) {
    for (const double seconds : *times) are_times &= std::isfinite(seconds) && seconds > 0;
  }
  return are_times ? Status() : Status(StatusCode::kCorrupt, "its answer does not have the times that were asked for");
}

Status LastError(const char* what) { return Status(StatusCode::kIo, std::string(what) + ": " + std::strerror(errno)); }

// Writes to a command that has gone are errors, not signals: blocked for the thread, and taken back where one came.
class NoBrokenPipe {
 public:
  NoBrokenPipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoBrokenPipe() {
    const timespec now{0, 0};
    while (sigismember(&before_, SIGPIPE) == 0 && sigtimedwait(&pipe_, nullptr, &now) == SIGPIPE) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_, before_;
};

bool EndsWithin(pid_t process, int milliseconds) {
  for (int i = 0; i * 10 <= milliseconds; ++i) {
    if (waitpid(process, nullptr, WNOHANG) != 0) return true;
    const timespec moment{0, 10'000'000};
    nanosleep(&moment, nullptr);
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<CommandProcess>> CommandProcess::Start(const std::string& command) {
  std::unique_ptr<CommandProcess> started(new CommandProcess());
  int input[2] = {-1, -1}, output[2] = {-1, -1};
  if (pipe2(input, O_CLOEXEC) != 0) return LastError("pipe");
  started->input_ = input[1];
  if (pipe2(output, O_CLOEXEC) != 0) {
    close(input[0]);
    return LastError("pipe");
  }
  started->output_ = output[0];
  started->errors_ = memfd_create("ingot-runner", MFD_CLOEXEC);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  if (started->errors_ >= 0) posix_spawn_file_actions_adddup2(&actions, started->errors_, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Ctrl-C on the terminal is for the tool alone, which lets candidates end.
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::string text = command;
  char shell[] = "sh", flag[] = "-c";
  char* const arguments[] = {shell, flag, text.data(), nullptr};
  const int error = posix_spawn(&started->process_, "/bin/sh", &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(input[0]);
  close(output[1]);
  if (error != 0) {
    started->process_ = -1;
    errno = error;
    return LastError("/bin/sh");
  }
  for (const int fd : {started->input_, started->output_}) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  return started;
}

CommandProcess::~CommandProcess() {
  for (const int fd : {input_, output_}) {
    if (fd >= 0) close(fd);
  }
  if (process_ > 0) {
    const bool has_ended = EndsWithin(process_, kEndMilliseconds);
    kill(-process_, SIGKILL);
    if (!has_ended) waitpid(process_, nullptr, 0);
  }
  if (errors_ >= 0) close(errors_);
}

std::string CommandProcess::ErrorText() const {
  const off_t size = errors_ < 0 ? 0 : lseek(errors_, 0, SEEK_END);
  std::string text(static_cast<size_t>(std::clamp<off_t>(size, 0, kQuotedErrorBytes)), '\0');
  const ssize_t count = pread(errors_, text.data(), text.size(), size - static_cast<off_t>(text.size()));
  text.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

Status Runner::Explain(Status status) const {
  const std::string text = process_ == nullptr ? "" : process_->ErrorText();
  if (status.ok() || text.empty()) return status;
  return Status(status.code(), status.message() + "; it says \"" + text + "\"");
}

Result<std::unique_ptr<Runner>> Runner::Start(const std::string& command, const std::string& worker, double seconds,
                                              const std::atomic<bool>* stop) {
  if (command.find(kProgramPlace) == std::string::npos) {
    return Status(StatusCode::kInvalidArgument, "\"" + command + "\" has no {program}, where the worker is named");
  }
  const NoBrokenPipe no_signal;
  const Deadline deadline = Deadline::After(seconds, stop);
  std::unique_ptr<Runner> runner(new Runner(stop));
  const Status direct = runner->Explain(runner->Begin(command, worker, deadline));
  if (direct.ok()) return runner;
  if (direct.code() != StatusCode::kIo) return direct;  // it runs, but says nothing or something else
  const Status by_shell = runner->Explain(runner->BeginByShell(command, worker, deadline));
  if (by_shell.ok()) return runner;
  return Status(by_shell.code(),
                "with the worker: " + direct.message() + "; with a shell that gets it: " + by_shell.message());
}

Status Runner::Begin(const std::string& command, const std::string& path, const Deadline& deadline) {
  INGOT_ASSIGN_OR_RETURN(process_, CommandProcess::Start(WithProgram(command, ShellQuoted(path))));
  return Greet(deadline);
}

Status Runner::BeginByShell(const std::string& command, const std::string& worker, const Deadline& deadline) {
  INGOT_ASSIGN_OR_RETURN(const SharedBytes bytes, formats::MapFile(worker));
  INGOT_ASSIGN_OR_RETURN(process_, CommandProcess::Start(WithProgram(command, "sh")));
  INGOT_RETURN_IF_ERROR(WriteBytes(process_->input(), formats::AsBytes(ShellScript(bytes.size())), deadline));
  INGOT_RETURN_IF_ERROR(ReadUpTo(process_->output(), kSendMark, deadline).status());
  INGOT_RETURN_IF_ERROR(WriteBytes(process_->input(), bytes.bytes, deadline));
  return Greet(deadline);
}

Status Runner::Greet(const Deadline& deadline) {
  INGOT_RETURN_IF_ERROR(ReadUpTo(process_->output(), kGreeting, deadline).status());
  INGOT_ASSIGN_OR_RETURN(const Frame hello, ReadFrame(process_->output(), deadline));
  if (hello.kind != FrameKind::kHello) return Status(StatusCode::kCorrupt, "it begins with another frame than hello");
  INGOT_ASSIGN_OR_RETURN(machine_, DecodeMachine(hello.payload));
  return Status();
}

Result<Measurement> Runner::Measure(const Candidate& candidate, double seconds) {
  const NoBrokenPipe no_signal;
  Result<Measurement> measurement =
      Converse(candidate, Deadline::After(candidate.options.timeout_seconds + seconds, stop_));
  if (!measurement.ok()) return Explain(measurement.status());
  return measurement;
}

Result<Measurement> Runner::Converse(const Candidate& candidate, const Deadline& deadline) {
  uint64_t hash = 0;
  if (candidate.reference.is_there()) {
    hash = formats::Hash(candidate.reference.executable.bytes);
    INGOT_RETURN_IF_ERROR(SendReference(candidate.reference.executable, hash, deadline));
  }
  INGOT_RETURN_IF_ERROR(
      WriteFrame(process_->input(), FrameKind::kCandidate, EncodeCandidate(candidate, hash), deadline));
  INGOT_ASSIGN_OR_RETURN(const Frame answer, ReadFrame(process_->output(), deadline));
  if (answer.kind != FrameKind::kMeasurement) return Status(StatusCode::kCorrupt, "it answers by another frame");
  INGOT_ASSIGN_OR_RETURN(Measurement measurement, DecodeMeasurement(answer.payload));
  if (measurement.id != candidate.id) {
    return Status(StatusCode::kCorrupt, "it answers for candidate " + std::to_string(measurement.id) + " instead of " +
                                            std::to_string(candidate.id));
  }
  INGOT_RETURN_IF_ERROR(CheckAnswer(measurement, candidate));
  return measurement;
}

Status Runner::SendReference(const SharedBytes& reference, uint64_t hash, const Deadline& deadline) {
  if (std::find(kept_references_.begin(), kept_references_.end(), hash) != kept_references_.end()) return Status();
  INGOT_RETURN_IF_ERROR(WriteFrame(process_->input(), FrameKind::kProgram, reference.bytes, deadline));
  kept_references_.push_back(hash);
  if (kept_references_.size() > kKeptReferences) kept_references_.pop_front();
  return Status();
}

}  // namespace ingot::tune
