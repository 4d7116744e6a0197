// Symbolic shape formulas, from text or from steps. What is accepted prints as a text that reads back to equal steps,
// and evaluates as plain arithmetic does that is wide enough.
#include "runtime/dim_code.h"

#include <array>
#include <optional>
#include <string>

#include "tests/fuzz_targets/target.h"

namespace ingot::fuzz {
namespace {

using Wide = __int128;

// Nothing where a result does not fit in 64 bits, or a divisor is zero.
std::optional<int64_t> Apply(DimOp op, Wide a, Wide b, Wide c) {
  const auto floor_div = [](Wide x, Wide y) { return x / y - ((x % y != 0 && (x % y < 0) != (y < 0)) ? 1 : 0); };
  Wide result = 0;
  switch (op) {
    case DimOp::kConst:
    case DimOp::kSlot:
      return std::nullopt;
    case DimOp::kAdd:
      result = a + b;
      break;
    case DimOp::kSub:
      result = a - b;
      break;
    case DimOp::kMul:
      result = a * b;
      break;
    case DimOp::kFloorDiv:
      if (b == 0) return std::nullopt;
      result = floor_div(a, b);
      break;
    case DimOp::kFloorMod:
      if (b == 0) return std::nullopt;
      result = a - b * floor_div(a, b);
      break;
    case DimOp::kMin:
      result = a < b ? a : b;
      break;
    case DimOp::kMax:
      result = a < b ? b : a;
      break;
    case DimOp::kEq:
      result = a == b;
      break;
    case DimOp::kNe:
      result = a != b;
      break;
    case DimOp::kLt:
      result = a < b;
      break;
    case DimOp::kLe:
      result = a <= b;
      break;
    case DimOp::kSelect:
      result = a != 0 ? b : c;
      break;
  }
  if (result < INT64_MIN || result > INT64_MAX) return std::nullopt;
  return static_cast<int64_t>(result);
}

std::optional<int64_t> EvaluateWide(const DimCode& code, std::span<const int64_t> slots) {
  std::vector<Wide> stack;
  const auto pop = [&] {
    const Wide value = stack.back();
    stack.pop_back();
    return value;
  };
  for (const DimStep& step : code.steps()) {
    if (step.op == DimOp::kConst) {
      stack.push_back(step.value);
    } else if (step.op == DimOp::kSlot) {
      stack.push_back(slots[static_cast<size_t>(step.value)]);
    } else {
      const Wide c = step.op == DimOp::kSelect ? pop() : 0;
      const Wide b = pop(), a = pop();
      const std::optional<int64_t> result = Apply(step.op, a, b, c);
      if (!result) return std::nullopt;
      stack.push_back(*result);
    }
  }
  return static_cast<int64_t>(stack.back());
}

void Try(const DimCode& code) {
  const std::array<std::string, 4> names = {"n", "m", "batch", "k"};
  const auto again = DimCode::Parse(code.ToString(names), names);
  if (code.fits()) {
    INGOT_CHECK(again.ok(), again.status().message().c_str());
    INGOT_CHECK(*again == code, code.ToString(names).c_str());
  }
  for (const std::array<int64_t, 4>& slots :
       {std::array<int64_t, 4>{1, 2, 3, 4}, {0, -1, 7, 64}, {INT64_MAX, INT64_MIN, -5, 1 << 20}}) {
    const Result<int64_t> value = code.Evaluate(slots);
    const std::optional<int64_t> expected = code.fits() ? EvaluateWide(code, slots) : std::nullopt;
    INGOT_CHECK(value.ok() == expected.has_value(), code.ToString(names).c_str());
    INGOT_CHECK(!value.ok() || *value == *expected, code.ToString(names).c_str());
  }
}

// Nine bytes per step: the operation and its value.
std::vector<DimStep> StepsOf(const uint8_t* data, size_t size) {
  std::vector<DimStep> steps;
  for (; size >= 9; data += 9, size -= 9) {
    uint64_t value = 0;
    for (int i = 8; i > 0; --i) value = value << 8 | data[i];
    steps.push_back({static_cast<DimOp>(data[0]), static_cast<int64_t>(value)});
  }
  return steps;
}

}  // namespace
}  // namespace ingot::fuzz

// The first byte is 's' for steps; otherwise it belongs to a text.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ingot;  // NOLINT: a function of C's has no namespace
  if (size > 0 && data[0] == 's') {
    const auto code = DimCode::FromSteps(fuzz::StepsOf(data + 1, size - 1), 4);
    if (code.ok()) fuzz::Try(*code);
    return 0;
  }
  const std::array<std::string, 4> names = {"n", "m", "batch", "k"};
  const auto code = DimCode::Parse(fuzz::TextOf(data, size), names);
  if (code.ok() && code->num_slots() <= std::ssize(names)) fuzz::Try(*code);  // "s9" names a slot, too
  return 0;
}
