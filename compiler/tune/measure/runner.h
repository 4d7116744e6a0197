// A runner: the process of a command with a worker at its other end, and the conversation with it. After any failure
// the runner is of no use.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <deque>
#include <memory>
#include <string>

#include "compiler/tune/measure/candidate.h"
#include "compiler/tune/measure/channel.h"
#include "runtime/status.h"

namespace ingot::tune {

// A process of its own process group, whose standard streams are ours.
class CommandProcess {
 public:
  // By `sh -c`.
  static Result<std::unique_ptr<CommandProcess>> Start(const std::string& command);
  // Closes the streams; a command that does not end by itself then is killed, with what it has started.
  ~CommandProcess();
  CommandProcess(const CommandProcess&) = delete;
  CommandProcess& operator=(const CommandProcess&) = delete;

  int input() const { return input_; }    // what is written there, the command reads
  int output() const { return output_; }  // what the command writes
  std::string ErrorText() const;          // the end of what it wrote to its standard error

 private:
  CommandProcess() = default;
  pid_t process_ = -1;
  int input_ = -1, output_ = -1, errors_ = -1;
};

class Runner {
 public:
  // `command` has {program} in it; runner_pool.h says what becomes of that. `stop` ends every wait.
  static Result<std::unique_ptr<Runner>> Start(const std::string& command, const std::string& worker, double seconds,
                                               const std::atomic<bool>* stop);

  const RunnerMachine& machine() const { return machine_; }
  // `seconds` beyond the candidate's timeout for the answer.
  Result<Measurement> Measure(const Candidate& candidate, double seconds);

 private:
  explicit Runner(const std::atomic<bool>* stop) : stop_(stop) {}
  // Begins with the worker at `path`, as the command sees it.
  Status Begin(const std::string& command, const std::string& path, const Deadline& deadline);
  // Begins with a shell, which gets the worker's bytes.
  Status BeginByShell(const std::string& command, const std::string& worker, const Deadline& deadline);
  Status Greet(const Deadline& deadline);
  Result<Measurement> Converse(const Candidate& candidate, const Deadline& deadline);
  Status SendReference(const SharedBytes& reference, uint64_t hash, const Deadline& deadline);
  // With what the command wrote to its standard error.
  Status Explain(Status status) const;

  const std::atomic<bool>* stop_;
  std::unique_ptr<CommandProcess> process_;
  RunnerMachine machine_;
  std::deque<uint64_t> kept_references_;  // hashes of those that the worker has, as it keeps them
};

}  // namespace ingot::tune
