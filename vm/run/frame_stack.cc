// Where a call failed: the function and operation that ran, and who called it.
#include "vm/run/frame_stack.h"

#include "vm/verify/failure_text.h"

namespace ingot::vm {
namespace {

// Names the operation that a function is executing.
std::string OperationAt(const CallRecord& record) {
  // The loop leaves pc behind the instruction that runs.
  const size_t at = record.pc > 0 && record.pc <= record.linked->code.size() ? record.pc - 1 : 0;
  const uint32_t source = record.linked->code.empty() ? 0 : record.linked->code[at].source;
  return DescribeInstruction(*record.linked->function, source);
}

}  // namespace

Status FrameStack::AtPlace(Status status, FailurePlace& innermost) const {
  constexpr size_t kNearest = 3;
  if (records_.empty()) return status;
  const CallRecord& record = records_.back();
  const std::string operation = OperationAt(record);
  innermost = {record.linked->function->name, operation};
  std::string place = StrCat({"function \"", record.linked->function->name, "\", ", operation});
  const size_t callers = records_.size() - 1;
  for (size_t i = 0; i < callers; ++i) {
    if (i == kNearest && callers > kNearest + 1) {
      StrAppend(place, {" <- ", callers - kNearest - 1, " more calls"});
      i = callers - 1;
    }
    const CallRecord& caller = records_[callers - 1 - i];
    StrAppend(place, {" <- \"", caller.linked->function->name, "\", ", OperationAt(caller)});
  }
  return std::move(status).WithContext(place);
}

}  // namespace ingot::vm
