// Status and Result<T>: how everything that can fail on bad input says so. A Status is one pointer: null is success;
// a failure carries a code and a message that says where, what, expected and got. Making the out-of-memory status
// allocates nothing. Nothing here throws.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "runtime/check.h"
#include "runtime/text.h"

namespace ingot {

// The values are part of the C API (ingot_status_code) and only grow.
enum class StatusCode : int32_t {
  kOk = 0,
  kInvalidArgument = 1,   // a call breaks the contract of the API or of the command line
  kNotFound = 2,          // a name that does not exist
  kBadInput = 3,          // an input file or tensor is malformed or does not fit the signature
  kCorrupt = 4,           // the executable fails verification
  kUnsupportedFile = 5,   // the executable needs a version, feature or CPU that is not here
  kNotTrusted = 6,        // native code refused by the trust policy
  kOutOfMemory = 7,       // the allocator, or a cap set by the user
  kDeadlineExceeded = 8,  // deadline or fuel used up
  kUnsupportedModel = 9,  // the model uses something that the compiler does not support
  kCancelled = 10,        // stopped from outside
  kFailed = 11,           // a kernel or external function reported failure
  kIo = 12,               // the operating system refused to read or write
};

// The stable lower-case name of a code, such as "out_of_memory".
const char* StatusCodeName(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // success
  Status(StatusCode code, Text message);
  static Status OutOfMemory();              // allocates nothing
  static Status OutOfMemory(Text message);  // falls back to the plain one when memory for the text is short

  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&& other) noexcept : rep_(std::exchange(other.rep_, nullptr)) {}
  Status& operator=(Status&& other) noexcept {
    std::swap(rep_, other.rep_);
    return *this;
  }
  ~Status() {
    if (rep_ != nullptr) [[unlikely]]
      Delete(rep_);
  }

  bool ok() const { return rep_ == nullptr; }
  StatusCode code() const;
  const std::string& message() const;
  // "CODE: message", or "ok".
  std::string ToString() const;
  // The same failure with "prefix: " in front of its message (a file, a function, a parameter).
  Status WithContext(Text prefix) &&;

 private:
  struct Rep;
  static void Delete(Rep* rep);
  Rep* rep_ = nullptr;
};

[[noreturn]] void NoValue(const Status& status);  // the value of a failure is asked for
[[noreturn]] void SuccessWithoutValue();          // a Result is made from a success

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::in_place, std::move(value)) {}  // NOLINT: implicit on purpose, as all of these
  Result(Status status) : status_(std::move(status)) {          // NOLINT
    if (status_.ok()) SuccessWithoutValue();
  }
  template <typename U, typename = std::enable_if_t<
                            std::is_convertible_v<U, T> && !std::is_same_v<std::decay_t<U>, T> &&
                            !std::is_same_v<std::decay_t<U>, Status> && !std::is_same_v<std::decay_t<U>, Result>>>
  Result(U&& value) : value_(std::in_place, std::forward<U>(value)) {}  // NOLINT

  bool ok() const { return value_.has_value(); }
  const Status& status() const& { return status_; }
  Status status() && { return std::move(status_); }
  T& value() & { return Checked(), *value_; }
  const T& value() const& { return Checked(), *value_; }
  T&& value() && { return Checked(), *std::move(value_); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  void Checked() const {
    if (!ok()) NoValue(status_);
  }
  Status status_;
  std::optional<T> value_;
};

}  // namespace ingot

#define INGOT_CONCAT_INNER(a, b) a##b
#define INGOT_CONCAT(a, b) INGOT_CONCAT_INNER(a, b)
// Returns from the enclosing function when the expression (a Status) failed.
#define INGOT_RETURN_IF_ERROR(expression)          \
  do {                                             \
    ::ingot::Status ingot_status_ = (expression);  \
    if (!ingot_status_.ok()) return ingot_status_; \
  } while (0)
// `INGOT_ASSIGN_OR_RETURN(auto x, F());` with Result<X> F().
#define INGOT_ASSIGN_OR_RETURN(lhs, expression) \
  INGOT_ASSIGN_OR_RETURN_INNER(INGOT_CONCAT(ingot_result_, __LINE__), lhs, expression)
#define INGOT_ASSIGN_OR_RETURN_INNER(result, lhs, expression) \
  auto result = (expression);                                 \
  if (!result.ok()) return std::move(result).status();        \
  lhs = std::move(result).value()
