#include "runtime/status.h"

#include <new>

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

Status::Status(StatusCode code, std::string message) {
  INGOT_CHECK(code != StatusCode::kOk, "a failure with the code of success");
  rep_ = new Rep{code, std::move(message)};
}

Status Status::OutOfMemory() {
  static Rep rep{StatusCode::kOutOfMemory, "out of memory", true};
  Status status;
  status.rep_ = &rep;
  return status;
}

Status Status::OutOfMemory(std::string message) {
  Rep* rep = new (std::nothrow) Rep{StatusCode::kOutOfMemory, std::move(message)};
  if (rep == nullptr) return OutOfMemory();
  Status status;
  status.rep_ = rep;
  return status;
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

Status::~Status() {
  if (rep_ != nullptr && !rep_->is_static) delete rep_;
}

StatusCode Status::code() const { return rep_ == nullptr ? StatusCode::kOk : rep_->code; }

const std::string& Status::message() const {
  static const std::string empty;
  return rep_ == nullptr ? empty : rep_->message;
}

std::string Status::ToString() const { return ok() ? "ok" : std::string(StatusCodeName(code())) + ": " + message(); }

Status Status::WithContext(std::string_view prefix) && {
  if (ok() || rep_->is_static) return std::move(*this);
  rep_->message = std::string(prefix) + ": " + rep_->message;
  return std::move(*this);
}

}  // namespace ingot
