// Room for frames, and where a call failed: the function and operation that ran, and who called it.
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

void FrameStack::Grow(size_t num_words) {
  const size_t old_words = words_.size(), old_records = records_.capacity();
  const size_t words =
      num_words <= old_words ? old_words : std::max(num_words, std::min(2 * num_words, size_t{kMaxStackWords}));
  const size_t records = records_.size() < old_records ? old_records : std::max<size_t>(16, 2 * old_records);
  memory_.Set((old_words + words) * sizeof(int64_t) + (old_records + records) * sizeof(CallRecord));
  words_.resize(words);
  records_.reserve(records);
  memory_.Set(words * sizeof(int64_t) + records * sizeof(CallRecord));
}

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
