// One thread per runner takes candidates out of a queue. A candidate whose runner is lost goes back to its front.
#include "compiler/tune/measure/runner_pool.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "compiler/tune/measure/runner.h"

namespace ingot::tune {

class RunnerPool::State {
 public:
  State(std::vector<std::string> commands, RunnerPoolOptions options) : options_(std::move(options)) {
    for (std::string& command : commands) entries_.emplace_back().command = std::move(command);
  }

  ~State() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (Entry& entry : entries_) {
      if (entry.thread.joinable()) entry.thread.join();
    }
  }

  Status Start() {
    num_starting_ = num_live_ = static_cast<int32_t>(entries_.size());
    for (size_t i = 0; i < entries_.size(); ++i) entries_[i].thread = std::thread([this, i] { Serve(i); });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return num_starting_ == 0; });
    return num_live_ > 0 ? Status() : AllLost();
  }

  void Submit(Candidate candidate) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back({std::move(candidate), 0});
      ++num_pending_;
    }
    changed_.notify_all();
  }

  Result<Measurement> Next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !results_.empty() || num_live_ == 0 || num_pending_ == 0; });
    if (num_pending_ == 0) return Status(StatusCode::kInvalidArgument, "no candidate is pending");
    if (results_.empty()) return AllLost();
    Measurement measurement = std::move(results_.front());
    results_.pop_front();
    if (--num_pending_ == 0) changed_.notify_all();  // others that wait are told
    return measurement;
  }

  int64_t num_pending() const {
    const std::lock_guard lock(mutex_);
    return num_pending_;
  }
  int32_t num_runners() const {
    const std::lock_guard lock(mutex_);
    return num_live_;
  }
  const std::string& command(int32_t runner) const { return entries_[static_cast<size_t>(runner)].command; }
  RunnerMachine machine(int32_t runner) const {
    const std::lock_guard lock(mutex_);
    return entries_[static_cast<size_t>(runner)].machine;
  }
  std::string loss(int32_t runner) const {
    const std::lock_guard lock(mutex_);
    return entries_[static_cast<size_t>(runner)].loss;
  }

 private:
  struct Entry {
    std::string command;
    RunnerMachine machine;
    std::string loss;
    std::thread thread;
  };
  struct Waiting {
    Candidate candidate;
    int32_t num_lost_runners;
  };

  // A runner's thread.
  void Serve(size_t index) {
    Result<std::unique_ptr<Runner>> started =
        Runner::Start(entries_[index].command, options_.worker, options_.start_seconds, &stop_);
    Begun(index, started);
    while (started.ok()) {
      Waiting taken;
      if (!Take(taken)) return;
      Result<Measurement> measured = (*started)->Measure(taken.candidate, options_.answer_seconds);
      if (measured.ok()) {
        measured->runner = static_cast<int32_t>(index);
        Finish(*std::move(measured));
      } else {
        Lose(index, std::move(taken), measured.status());
        return;
      }
    }
  }

  void Begun(size_t index, const Result<std::unique_ptr<Runner>>& started) {
    {
      const std::lock_guard lock(mutex_);
      --num_starting_;
      if (started.ok()) {
        entries_[index].machine = (*started)->machine();
      } else {
        --num_live_;
        entries_[index].loss = started.status().message();
      }
    }
    changed_.notify_all();
  }

  bool Take(Waiting& taken) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
    if (stop_) return false;
    taken = std::move(waiting_.front());
    waiting_.pop_front();
    return true;
  }

  void Finish(Measurement measurement) {
    {
      const std::lock_guard lock(mutex_);
      results_.push_back(std::move(measurement));
    }
    changed_.notify_all();
  }

  void Lose(size_t index, Waiting taken, const Status& why) {
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
      --num_live_;
      entries_[index].loss = why.message();
      if (++taken.num_lost_runners < options_.max_lost_runners) {
        waiting_.push_front(std::move(taken));
      } else {
        Measurement measurement;
        measurement.id = taken.candidate.id;
        measurement.runner = static_cast<int32_t>(index);
        measurement.error = why.message();
        results_.push_back(std::move(measurement));
      }
    }
    changed_.notify_all();
  }

  // With the lock held.
  Status AllLost() const {
    std::string text = entries_.empty() ? "no runner is named" : "all runners are lost";
    for (const Entry& entry : entries_) text += "\n  " + entry.command + ": " + entry.loss;
    return Status(StatusCode::kIo, text);
  }

  const RunnerPoolOptions options_;
  std::deque<Entry> entries_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> stop_{false};
  std::deque<Waiting> waiting_;
  std::deque<Measurement> results_;
  int64_t num_pending_ = 0;
  int32_t num_starting_ = 0, num_live_ = 0;
};

RunnerPool::RunnerPool(std::unique_ptr<State> state) : state_(std::move(state)) {}
RunnerPool::~RunnerPool() = default;

Result<std::unique_ptr<RunnerPool>> RunnerPool::Create(std::vector<std::string> commands, RunnerPoolOptions options) {
  auto state = std::make_unique<State>(std::move(commands), std::move(options));
  INGOT_RETURN_IF_ERROR(state->Start());
  return std::unique_ptr<RunnerPool>(new RunnerPool(std::move(state)));
}

void RunnerPool::Submit(Candidate candidate) { state_->Submit(std::move(candidate)); }
Result<Measurement> RunnerPool::Next() { return state_->Next(); }
int64_t RunnerPool::num_pending() const { return state_->num_pending(); }
int32_t RunnerPool::num_runners() const { return state_->num_runners(); }
const std::string& RunnerPool::command(int32_t runner) const { return state_->command(runner); }
RunnerMachine RunnerPool::machine(int32_t runner) const { return state_->machine(runner); }
std::string RunnerPool::loss(int32_t runner) const { return state_->loss(runner); }

}  // namespace ingot::tune
