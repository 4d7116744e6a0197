// The checks that decoding and verification make, as data, and a set of them. A failed check is a corrupt status;
// the set exists so that tests can leave one out and see that a test notices.
#pragma once

#include <bitset>
#include <span>
#include <string>

#include "runtime/status.h"

namespace ingot::vm {

enum class Check : uint8_t {
#define INGOT_VM_CHECK(Name, proves) k##Name,
#include "vm/program/checks.def"
};

struct CheckInfo {
  const char* name;
  const char* proves;
};
std::span<const CheckInfo> AllChecks();  // indexed by Check

class CheckSet {
 public:
  static CheckSet All() { return CheckSet(); }
  CheckSet Without(Check check) const {
    CheckSet set = *this;
    set.left_out_.set(static_cast<size_t>(check));
    return set;
  }
  bool Has(Check check) const { return !left_out_.test(static_cast<size_t>(check)); }

 private:
  std::bitset<128> left_out_;
};

// Carries the first failed check out of a verifier. A check that is left out ends the verification too, but with
// success: what comes behind a check may rely on it.
class [[nodiscard]] Verdict {
 public:
  Verdict() = default;
  static Verdict Fail(const CheckSet& checks, Check check, Text message);
  // Ends the verification with a failure of another kind than a check (a file that cannot be read, no memory).
  static Verdict Stop(Status status);
  bool passed() const { return status_.ok(); }
  Status status() &&;
  Verdict WithContext(Text prefix) &&;

 private:
  Status status_;
};

}  // namespace ingot::vm

// Returns from the enclosing function, which gives a Verdict, when the expression did not pass.
#define INGOT_RETURN_UNLESS_PASSED(expression)           \
  do {                                                   \
    ::ingot::vm::Verdict ingot_verdict_ = (expression);  \
    if (!ingot_verdict_.passed()) return ingot_verdict_; \
  } while (0)
