// DimCode: a dimension, extent, size, offset or launch size as checked 64-bit integer postfix code over numbered
// integer slots (a function's symbols and integer registers, or a kernel's integer arguments). One representation
// in the file, one evaluator. At most 64 steps; every step that overflows, or divides by zero, fails.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/status.h"

namespace ingot {

enum class DimOp : uint8_t {
  kConst = 0,     // push value
  kSlot = 1,      // push slots[value]
  kAdd = 2,       // pop b, a; push a + b
  kSub = 3,       // a - b
  kMul = 4,       // a * b
  kFloorDiv = 5,  // floor(a / b); b != 0
  kFloorMod = 6,  // a - b * floor(a / b); b != 0
  kMin = 7,
  kMax = 8,
  kEq = 9,  // 1 or 0
  kNe = 10,
  kLt = 11,
  kLe = 12,
  kSelect = 13,  // pop c, b, a; push a != 0 ? b : c
};

struct DimStep {
  DimOp op = DimOp::kConst;
  int64_t value = 0;  // of kConst and kSlot; 0 otherwise
  friend bool operator==(const DimStep&, const DimStep&) = default;
};

class DimCode {
 public:
  static constexpr int kMaxSteps = 64;

  DimCode() : DimCode(0) {}
  explicit DimCode(int64_t constant) : steps_{{DimOp::kConst, constant}} {}
  static DimCode Slot(int64_t slot) { return DimCode(std::vector<DimStep>{{DimOp::kSlot, slot}}, 0); }
  // Folds constants where nothing overflows. The result may be too long (see fits()); then Evaluate and FromSteps
  // refuse it.
  static DimCode Binary(DimOp op, const DimCode& a, const DimCode& b);
  static DimCode Select(const DimCode& condition, const DimCode& if_true, const DimCode& if_false);
  // Refuses code that is empty, longer than kMaxSteps, under- or overflows its stack, leaves other than one value,
  // has an unknown op, or names a slot >= num_slots.
  static Result<DimCode> FromSteps(std::vector<DimStep> steps, int64_t num_slots);

  std::span<const DimStep> steps() const { return steps_; }
  bool is_constant() const { return steps_.size() == 1 && steps_[0].op == DimOp::kConst; }
  int64_t constant() const { return steps_[0].value; }  // only when is_constant()
  bool fits() const { return steps_.size() <= kMaxSteps; }
  // The largest slot named plus one; 0 when constant.
  int64_t num_slots() const;
  // The code with each slot s replaced by slots[s]; unknown when a replacement is unknown, or when a value on the way
  // has more than kMaxSteps steps.
  std::optional<DimCode> Substitute(std::span<const std::optional<DimCode>> slots) const;
  // Never allocates on success. The slots must cover num_slots().
  Result<int64_t> Evaluate(std::span<const int64_t> slots) const;
  // Infix text, such as "n * 64 + 32", with Python's "//" and "%", min, max and select(condition, a, b). A slot prints
  // as its name, or as "s0", "s1", ... where no name is given or the name would not read back; of more than 256 names
  // none may stand there twice. Parse reads the text to equal steps.
  std::string ToString(std::span<const std::string> slot_names = {}) const;
  static Result<DimCode> Parse(std::string_view text, std::span<const std::string> slot_names);

  friend bool operator==(const DimCode&, const DimCode&) = default;

 private:
  DimCode(std::vector<DimStep> steps, int) : steps_(std::move(steps)) {}
  std::vector<DimStep> steps_;
};

}  // namespace ingot
