// The rows of checks.def as data, and Verdict: a failed check that is left out travels as a status of its own until the
// verification ends, and becomes success there.
#include "vm/program/checks.h"

#include "vm/program/program.h"
#include "vm/program/reading_heap.h"

namespace ingot::vm {
namespace {

constexpr CheckInfo kCheckRows[] = {
#define INGOT_VM_CHECK(Name, proves) {#Name, proves},
#include "vm/program/checks.def"
};

// The names stand apart from the rows, which only tests read, so that the linker drops the rows from shipped programs.
constexpr const char* kNames[] = {
#define INGOT_VM_CHECK(Name, proves) #Name,
#include "vm/program/checks.def"
};

// The status of a check that is left out. It stays inside of a Verdict, where no other failure has this code.
constexpr StatusCode kLeftOut = StatusCode::kCancelled;

}  // namespace

std::span<const CheckInfo> AllChecks() { return kCheckRows; }

Verdict Verdict::Fail(const CheckSet& checks, Check check, Text message) {
  if (!checks.Has(check)) return Stop(Status(kLeftOut, "the check is left out"));
  return Stop(Status(StatusCode::kCorrupt, {message, " [", kNames[static_cast<size_t>(check)], "]"}));
}

Status AsksForTooMuchHeap(const CheckSet& checks, const std::string& name, size_t file_bytes) {
  return Verdict::Fail(checks, Check::kHeapCap,
                       {name, name.empty() ? "" : ": ", "takes more than ", ReadingHeapBytes(file_bytes),
                        " bytes of memory to read"})
      .status();
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
