// Runs each preparing function once, in a context of its own, under the caller's limits.
#include "vm/run/prepared_constants.h"

#include <algorithm>
#include <chrono>

#include "vm/run/context.h"
#include "vm/run/executable.h"

namespace ingot::vm {
namespace {

using Clock = std::chrono::steady_clock;

bool IsPrepared(const Constant& constant) { return constant.prepared_by.has_value(); }

Status IsLate() {
  return Status(StatusCode::kDeadlineExceeded, "the deadline has passed while constants were prepared");
}

}  // namespace

Status PreparedConstants::Compute(const std::shared_ptr<const Executable>& executable, const ContextOptions& limits) {
  if (std::ranges::none_of(executable->program().constants, IsPrepared)) return Status();
  const Clock::time_point began = Clock::now();
  std::unique_lock lock(mutex_);
  const auto is_free = [this] { return !is_computing_; };
  if (limits.deadline_seconds <= 0) {
    ended_.wait(lock, is_free);
  } else if (!ended_.wait_for(lock, std::chrono::duration<double>(limits.deadline_seconds), is_free)) {
    return IsLate();
  }
  if (!tensors_.empty()) return Status();
  is_computing_ = true;
  lock.unlock();
  const std::unique_ptr<PreparedConstants, void (*)(PreparedConstants*)> end(this, [](PreparedConstants* self) {
    const std::lock_guard held(self->mutex_);
    self->is_computing_ = false;
    self->ended_.notify_all();
  });
  return ComputeAll(executable, limits, began);
}

// For one context at a time.
Status PreparedConstants::ComputeAll(const std::shared_ptr<const Executable>& executable, const ContextOptions& limits,
                                     Clock::time_point began) {
  const std::vector<Constant>& constants = executable->program().constants;
  INGOT_ASSIGN_OR_RETURN(const std::unique_ptr<Context> context, Context::CreateForPreparing(executable, limits));
  std::vector<std::vector<Value>> results(executable->program().functions.size());
  std::vector<Tensor> tensors(constants.size());
  for (size_t i = 0; i < constants.size(); ++i) {
    if (!IsPrepared(constants[i])) continue;
    const PreparedBy& by = *constants[i].prepared_by;
    if (results[by.function.value].empty()) {
      if (limits.deadline_seconds > 0) {
        const double spent = std::chrono::duration<double>(Clock::now() - began).count();
        if (spent >= limits.deadline_seconds) return IsLate();
        context->set_deadline(limits.deadline_seconds - spent);
      }
      INGOT_ASSIGN_OR_RETURN(results[by.function.value],
                             context->Invoke(executable->program().functions[by.function.value], {}));
    }
    tensors[i] = std::get<Tensor>(results[by.function.value][by.result]);
  }
  tensors_ = std::move(tensors);
  return Status();
}

}  // namespace ingot::vm
