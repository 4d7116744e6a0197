// Names of status codes, and what a failed Status points to: code and message on the heap, or the one static
// out-of-memory failure.
#include "runtime/status.h"

#include <new>

#include "runtime/check.h"

namespace ingot {

struct Status::Rep {
  StatusCode code;
  std::string message;
  bool is_static = false;  // the one out-of-memory failure that nobody owns
};

namespace {
constexpr const char* kCodeNames[] = {
    "ok",          "invalid_argument", "not_found",         "bad_input",         "corrupt",   "unsupported_file",
    "not_trusted", "out_of_memory",    "deadline_exceeded", "unsupported_model", "cancelled", "failed",
    "io"};
}  // namespace

const char* StatusCodeName(StatusCode code) {
  const auto index = static_cast<size_t>(code);
  return index < std::size(kCodeNames) ? kCodeNames[index] : "unknown";
}

Status::Status(StatusCode code, Text message) {
  INGOT_CHECK(code != StatusCode::kOk, "a failure with the code of success");
  rep_ = new Rep{code, message.ToString()};
}

Status Status::OutOfMemory() {
  static Rep rep{StatusCode::kOutOfMemory, "out of memory", true};
  Status status;
  status.rep_ = &rep;
  return status;
}

Status Status::OutOfMemory(Text message) {
  try {
    return Status(StatusCode::kOutOfMemory, message);
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

Status::Status(const Status& other) {
  if (other.rep_ == nullptr) return;
  rep_ = other.rep_->is_static ? other.rep_ : new Rep(*other.rep_);
}

Status& Status::operator=(const Status& other) {
  Status copy(other);
  std::swap(rep_, copy.rep_);
  return *this;
}

[[gnu::cold]] void Status::Delete(Rep* rep) {
  if (!rep->is_static) delete rep;
}

StatusCode Status::code() const { return rep_ == nullptr ? StatusCode::kOk : rep_->code; }

const std::string& Status::message() const {
  static const std::string empty;
  return rep_ == nullptr ? empty : rep_->message;
}

std::string Status::ToString() const { return ok() ? "ok" : StrCat({StatusCodeName(code()), ": ", message()}); }

Status Status::WithContext(Text prefix) && {
  if (ok() || rep_->is_static) return std::move(*this);
  rep_->message = StrCat({prefix, ": ", rep_->message});
  return std::move(*this);
}

void NoValue(const Status& status) { CheckFailed(__FILE__, __LINE__, "Result::ok()", status.message().c_str()); }

void SuccessWithoutValue() { INGOT_UNREACHABLE("a Result made from a success without a value"); }

}  // namespace ingot
