// The C API, asynchronous invocations: a task is an invocation on a thread of its own. It uses the context from its
// start until it is waited for or released; other threads may poll it, wait for its end, and cancel it.
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "vm/api/c_api_types.h"

struct ingot_task {
  // For the thread that owns the context alone.
  ingot_context* context = nullptr;
  const ingot_function* function = nullptr;
  std::thread thread;
  // For the invocation's thread, and after its end for the owner. Where there are outputs, it is an InvokeInto.
  std::vector<ingot::vm::Value> arguments, results;
  std::vector<ingot::TensorView> inputs;
  std::optional<std::vector<ingot::TensorView>> outputs;
  ingot::Status status;
  // For all threads.
  std::atomic<bool> cancelled{false};
  std::atomic<bool> has_ended{false};  // nothing is left to cancel
  std::atomic<int> num_cancelling{0};  // threads and signal handlers that may be about to
  mutable std::mutex mutex;
  mutable std::condition_variable ended;
  bool is_done = false;  // under the mutex
};

namespace ingot::capi {
namespace {

void RunTask(ingot_task& task) {
  const vm::Function& function = *task.function->function;
  vm::Context& context = *task.context->context;
  try {
    if (task.outputs) {
      task.status = context.InvokeInto(function, task.inputs, *task.outputs, &task.cancelled);
    } else {
      Result<std::vector<vm::Value>> results = context.Invoke(function, task.arguments, &task.cancelled);
      if (results.ok()) {
        task.results = *std::move(results);
      } else {
        task.status = std::move(results).status();
      }
    }
  } catch (...) {
    task.status = CaughtStatus();
  }
  // The end is reported only when no thread is about to cancel, so that a late cancel cannot hit the context's next
  // invocation.
  task.has_ended.store(true);
  while (task.num_cancelling.load() != 0) std::this_thread::yield();
  const std::lock_guard lock(task.mutex);
  task.is_done = true;
  task.ended.notify_all();
}

// Signals belong to the embedder's threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

Status Start(std::unique_ptr<ingot_task> made, ingot_task** task) {
  ingot_task* const raw = made.get();
  raw->context->task = raw;  // before there is a thread, whose external functions may look
  try {
    const SignalsBlocked blocked;
    raw->thread = std::thread([raw] { RunTask(*raw); });
  } catch (const std::exception&) {  // also where std::thread finds no memory for itself
    raw->context->task = nullptr;
    return Status::OutOfMemory("the system gives no thread for an asynchronous invocation");
  }
  *task = made.release();
  return Status();
}

std::unique_ptr<ingot_task> MakeTask(ingot_context* context, const ingot_function* function) {
  auto task = std::make_unique<ingot_task>();
  task->context = context;
  task->function = function;
  return task;
}

// Whether the caller is an external function, log or observer of the task's own invocation, which cannot wait for itself.
bool IsInside(const ingot_task& task) { return task.thread.get_id() == std::this_thread::get_id(); }

// Gives the context back.
void Join(ingot_task& task) {
  if (!task.thread.joinable()) return;
  task.thread.join();
  task.context->task = nullptr;
}

}  // namespace
}  // namespace ingot::capi

using namespace ingot;        // NOLINT: this file implements a C header
using namespace ingot::capi;  // NOLINT

extern "C" {

ingot_status* ingot_invoke_async(ingot_context* context, const ingot_function* function, const ingot_value* arguments,
                                 size_t num_arguments, ingot_task** task) {
  GiveNull(task);
  return GuardCall(context, function, [&]() -> Status {
    if (task == nullptr) return NullArgument("task");
    std::unique_ptr<ingot_task> made = MakeTask(context, function);
    INGOT_ASSIGN_OR_RETURN(made->arguments, ToValues(arguments, num_arguments));
    return Start(std::move(made), task);
  });
}

ingot_status* ingot_invoke_into_async(ingot_context* context, const ingot_function* function,
                                      const ingot_dl_tensor* const* inputs, size_t num_inputs,
                                      ingot_dl_tensor* const* outputs, size_t num_outputs, ingot_task** task) {
  GiveNull(task);
  return GuardCall(context, function, [&]() -> Status {
    if (task == nullptr) return NullArgument("task");
    std::unique_ptr<ingot_task> made = MakeTask(context, function);
    INGOT_RETURN_IF_ERROR(ViewTensors(inputs, num_inputs, "input", &made->inputs));
    INGOT_RETURN_IF_ERROR(ViewTensors(outputs, num_outputs, "output", &made->outputs.emplace()));
    return Start(std::move(made), task);
  });
}

int32_t ingot_task_is_done(const ingot_task* task) { return ingot_task_wait_for(task, 0); }

int32_t ingot_task_wait_for(const ingot_task* task, double seconds) {
  if (task == nullptr) return 1;
  constexpr double kLongest = 1e9;  // the clock's own range is not far above
  std::unique_lock lock(task->mutex);
  const auto is_done = [task] { return task->is_done; };
  if (seconds >= 0 && seconds < kLongest) {
    return task->ended.wait_for(lock, std::chrono::duration<double>(seconds), is_done) ? 1 : 0;
  }
  task->ended.wait(lock, is_done);
  return 1;
}

void ingot_task_cancel(ingot_task* task) {
  if (task == nullptr) return;
  task->cancelled.store(true);  // for an invocation that has not begun
  // No lock is taken: this may run in a signal handler, which may have interrupted the holder of the lock.
  task->num_cancelling.fetch_add(1);
  if (!task->has_ended.load()) task->context->context->Cancel();
  task->num_cancelling.fetch_sub(1);
}

ingot_status* ingot_task_wait(ingot_task* task, ingot_value* results, size_t num_results) {
  if (task == nullptr) return Guard([] { return NullArgument("task"); });
  ingot_status* refused = Guard([&]() -> Status {
    if (!task->thread.joinable()) return Status(StatusCode::kInvalidArgument, "the task was waited for already");
    if (IsInside(*task)) return Status(StatusCode::kInvalidArgument, "the task's invocation waits for itself");
    if (!task->outputs) return CheckResultCount(task->function, results, num_results);
    if (num_results == 0) return Status();
    return Status(StatusCode::kInvalidArgument, "the results are in the outputs that the task was started with");
  });
  if (refused != nullptr) return refused;
  Join(*task);
  if (!task->status.ok()) return ToStatus(std::move(task->status), &task->context->context->failure_place());
  return GuardCall(task->context, task->function, [&]() -> Status {
    const std::vector<vm::Value> values = std::move(task->results);
    vm::Context& invoked = *task->context->context;
    return FromValues(values, invoked.executable().instance(), results, num_results, &invoked);
  });
}

void ingot_task_release(ingot_task* task) {
  if (task == nullptr) return;
  if (task->thread.joinable()) ingot_task_cancel(task);
  if (IsInside(*task)) return;
  Join(*task);
  delete task;
}

}  // extern "C"
