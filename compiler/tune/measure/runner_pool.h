// A pool of runners, which measure candidates side by side, each one at a time. A runner is a command: any that runs a
// program and passes its standard input and output on, on this machine or another:
//
//   {program}                        this machine
//   qemu-aarch64 {program}           an emulator
//   srun -N1 {program}               a node of a cluster that sees this machine's files
//   ssh -oBatchMode=yes board {program}    another machine, which needs nothing installed but sh, head and chmod
//
// A shell runs the command with the worker's path for {program}. Where that does not start the worker, the command is
// run once more with `sh` for {program}, and that shell is told to write the worker, which comes through its standard
// input, to a temporary file, and to become it; the worker removes the file. Text that a login prints before the worker
// begins is passed over. From then on anything but whole frames (protocol.h), the end of the command, or no answer in
// time is the loss of the runner: it is killed and dropped, and its candidate goes to another one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/tune/measure/candidate.h"

namespace ingot::tune {

struct RunnerPoolOptions {
  std::string worker;            // the path of the program apps/measure_worker.cc, for the runners' architecture
  double start_seconds = 30;     // for a runner to begin
  double answer_seconds = 20;    // beyond a candidate's timeout, for sending it and the way back
  int32_t max_lost_runners = 2;  // with one candidate; then it is kLostRunner
};

class RunnerPool {
 public:
  // Starts a runner for each command. Fails where not a single one begins, and says why for each.
  static Result<std::unique_ptr<RunnerPool>> Create(std::vector<std::string> commands, RunnerPoolOptions options);
  ~RunnerPool();  // ends the runners, also in the middle of a candidate

  // Puts a candidate into the queue. A pool takes as many as there is memory for; num_runners() of them beyond those
  // that wait for Next keep all runners busy.
  void Submit(Candidate candidate);
  // Waits for a result, in the order in which candidates end. Fails when all runners are lost, with each one's reason,
  // or when nothing was submitted that has not been returned. Submit and Next may be called by several threads.
  Result<Measurement> Next();

  // Candidates submitted whose results Next has not returned.
  int64_t num_pending() const;
  int32_t num_runners() const;  // that are not lost
  // By the number of the runner, lost ones too.
  const std::string& command(int32_t runner) const;
  RunnerMachine machine(int32_t runner) const;
  std::string loss(int32_t runner) const;  // why it is lost; empty when it is not

 private:
  class State;
  explicit RunnerPool(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ingot::tune
