#include "vm/checks.h"

#include "vm/program.h"

namespace ingot::vm {
namespace {

constexpr CheckInfo kRows[] = {
#define INGOT_VM_CHECK(Name, proves) {#Name, proves},
#include "vm/checks.def"
};

// Apart from the rows, which only tests and documents look at: the linker drops them from what ships.
constexpr const char* kNames[] = {
#define INGOT_VM_CHECK(Name, proves) #Name,
#include "vm/checks.def"
};

}  // namespace

std::span<const CheckInfo> AllChecks() { return kRows; }

Verdict Verdict::Fail(const CheckSet& checks, Check check, Text message) {
  Verdict verdict;
  verdict.stopped_ = true;
  if (checks.Has(check)) {
    verdict.status_ = Status(StatusCode::kCorrupt, {message, " [", kNames[static_cast<size_t>(check)], "]"});
  }
  return verdict;
}

Verdict Verdict::Stop(Status status) {
  Verdict verdict;
  verdict.stopped_ = true;
  verdict.status_ = std::move(status);
  return verdict;
}

Verdict Verdict::WithContext(Text prefix) && {
  status_ = std::move(status_).WithContext(prefix);
  return std::move(*this);
}

}  // namespace ingot::vm
