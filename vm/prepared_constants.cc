#include "vm/prepared_constants.h"

#include <algorithm>

#include "vm/context.h"
#include "vm/executable.h"

namespace ingot::vm {

Status PreparedConstants::Compute(const std::shared_ptr<const Executable>& executable, int64_t max_memory_bytes) {
  const std::vector<Constant>& constants = executable->program().constants;
  const auto is_prepared = [](const Constant& constant) { return constant.prepared_by.has_value(); };
  if (std::none_of(constants.begin(), constants.end(), is_prepared)) return Status();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!tensors_.empty()) return Status();
  INGOT_ASSIGN_OR_RETURN(const std::unique_ptr<Context> context,
                         Context::CreateForPreparing(executable, max_memory_bytes));
  std::vector<std::vector<Value>> results(executable->program().functions.size());
  std::vector<Tensor> tensors(constants.size());
  for (size_t i = 0; i < constants.size(); ++i) {
    if (!is_prepared(constants[i])) continue;
    const PreparedBy& by = *constants[i].prepared_by;
    if (results[by.function.value].empty()) {
      INGOT_ASSIGN_OR_RETURN(results[by.function.value],
                             context->Invoke(executable->program().functions[by.function.value], {}));
    }
    tensors[i] = std::get<Tensor>(results[by.function.value][by.result]);
  }
  tensors_ = std::move(tensors);
  return Status();
}

}  // namespace ingot::vm
