#include "vm/checks.h"

#include "vm/program.h"

namespace ingot::vm {
namespace {

constexpr CheckInfo kCheckRows[] = {
#define INGOT_VM_CHECK(Name, proves) {#Name, proves},
#include "vm/checks.def"
};

// Apart from the rows, which only tests and documents look at: the linker drops them from what ships.
constexpr const char* kNames[] = {
#define INGOT_VM_CHECK(Name, proves) #Name,
#include "vm/checks.def"
};

// Inside a Verdict only, where nothing else has this code.
constexpr StatusCode kLeftOut = StatusCode::kCancelled;

}  // namespace

std::span<const CheckInfo> AllChecks() { return kCheckRows; }

Verdict Verdict::Fail(const CheckSet& checks, Check check, Text message) {
  if (!checks.Has(check)) return Stop(Status(kLeftOut, "the check is left out"));
  return Stop(Status(StatusCode::kCorrupt, {message, " [", kNames[static_cast<size_t>(check)], "]"}));
}

Status Verdict::status() && { return status_.code() == kLeftOut ? Status() : std::move(status_); }

Verdict Verdict::Stop(Status status) {
  Verdict verdict;
  verdict.status_ = std::move(status);
  return verdict;
}

Verdict Verdict::WithContext(Text prefix) && {
  status_ = std::move(status_).WithContext(prefix);
  return std::move(*this);
}

}  // namespace ingot::vm
