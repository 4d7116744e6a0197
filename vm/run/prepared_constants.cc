// Runs each preparing function once, in a context of its own, under the caller's limits.
#include "vm/run/prepared_constants.h"

#include <algorithm>
#include <chrono>

#include "vm/run/context.h"
#include "vm/run/executable.h"

namespace ingot::vm {

Status PreparedConstants::Compute(const std::shared_ptr<const Executable>& executable, const ContextOptions& limits) {
  const std::vector<Constant>& constants = executable->program().constants;
  const auto is_prepared = [](const Constant& constant) { return constant.prepared_by.has_value(); };
  if (std::none_of(constants.begin(), constants.end(), is_prepared)) return Status();
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  const auto is_late = [] {
    return Status(StatusCode::kDeadlineExceeded, "the deadline has passed while constants were prepared");
  };
  std::unique_lock<std::timed_mutex> lock(mutex_, std::defer_lock);
  if (limits.deadline_seconds <= 0) {
    lock.lock();
  } else if (!lock.try_lock_for(std::chrono::duration<double>(limits.deadline_seconds))) {
    return is_late();
  }
  if (!tensors_.empty()) return Status();
  INGOT_ASSIGN_OR_RETURN(const std::unique_ptr<Context> context, Context::CreateForPreparing(executable, limits));
  std::vector<std::vector<Value>> results(executable->program().functions.size());
  std::vector<Tensor> tensors(constants.size());
  for (size_t i = 0; i < constants.size(); ++i) {
    if (!is_prepared(constants[i])) continue;
    const PreparedBy& by = *constants[i].prepared_by;
    if (results[by.function.value].empty()) {
      if (limits.deadline_seconds > 0) {
        const double spent = std::chrono::duration<double>(Clock::now() - began).count();
        if (spent >= limits.deadline_seconds) return is_late();
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
