#include "runtime/dim_code.h"

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <optional>
#include <random>

namespace ingot {
namespace {

const std::vector<std::string> kNames = {"n", "m"};
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

Result<int64_t> Eval(const char* text, std::vector<int64_t> slots = {7, -3}) {
  INGOT_ASSIGN_OR_RETURN(DimCode code, DimCode::Parse(text, kNames));
  return code.Evaluate(slots);
}

TEST_CASE("dimension code evaluates with floor division as in Python") {
  CHECK(Eval("n * 64 + 32").value() == 480);
  CHECK(Eval("m // 2").value() == -2);
  CHECK(Eval("m % 2").value() == 1);
  CHECK(Eval("n // -2").value() == -4);
  CHECK(Eval("n % -2").value() == -1);
  CHECK(Eval("-9223372036854775808 % -1").value() == 0);
  CHECK(Eval("min(n, m) - max(n, m)").value() == -10);
  CHECK(Eval("select(n < m, 1, 2)").value() == 2);
  CHECK(Eval("select(m <= n, n, m) * 2").value() == 14);
  CHECK(Eval("(n == 7) + (n != 7) * 10").value() == 1);
  CHECK(Eval("s1").value() == -3);
  CHECK(Eval("n - -3").value() == 10);
}

TEST_CASE("overflow and division by zero fail at every step") {
  CHECK(Eval("n + 9223372036854775807").status().message() ==
        "dimension s0 + 9223372036854775807: 7 + 9223372036854775807 overflows 64 bits");
  CHECK(Eval("n // (n - 7)").status().message() == "dimension s0 // (s0 - 7): 7 // 0 divides by zero");
  CHECK_FALSE(Eval("n % 0").ok());
  CHECK_FALSE(Eval("-9223372036854775808 - n").ok());
  CHECK_FALSE(Eval("s0 // -1", {kMin, 0}).ok());
  CHECK_FALSE(Eval("s0 * s0 - s0 * s0", {kMax, 0}).ok());
}

TEST_CASE("text reads back to equal steps") {
  for (const char* text : {"n", "n - (m - 1)", "n - m - 1", "(n + 1) * m", "n // 2 * 2", "n * (m // 2)", "2 + 3",
                           "(n < m) == (m < n)", "min(n + 1, select(n, m, -4)) % 16", "s7 + n", "-5 * n"}) {
    CAPTURE(text);
    CHECK(DimCode::Parse(text, kNames).value().ToString(kNames) == text);
  }
  // Names that would not read back print as slots.
  const std::vector<std::string> odd = {"min", "s3", "0_x", "n", "n"};
  for (int slot = 0; slot < 5; ++slot) {
    const DimCode code = DimCode::Slot(slot);
    CHECK(DimCode::Parse(code.ToString(odd), odd).value() == code);
  }
}

TEST_CASE("random code reads back and evaluates to the same value") {
  std::mt19937_64 random(1);
  const std::vector<int64_t> slots = {5, 12};
  for (int round = 0; round < 2000; ++round) {
    std::vector<DimStep> steps;
    int depth = 0;
    while (steps.size() < 40 && (depth != 1 || steps.size() < 9 || random() % 4 != 0)) {
      const int op = depth >= 3   ? 2 + random() % 12
                     : depth >= 2 ? static_cast<int>(random() % 13)
                                  : static_cast<int>(random() % 2);
      if (op == 0)
        steps.push_back({DimOp::kConst, static_cast<int64_t>(random() % 64) - 20});
      else if (op == 1)
        steps.push_back({DimOp::kSlot, static_cast<int64_t>(random() % 2)});
      else
        steps.push_back({static_cast<DimOp>(op), 0});
      depth += op < 2 ? 1 : op == 13 ? -2 : -1;
    }
    while (depth-- > 1) steps.push_back({DimOp::kAdd, 0});
    const DimCode code = DimCode::FromSteps(steps, 2).value();
    const DimCode again = DimCode::Parse(code.ToString(kNames), kNames).value();
    CHECK(again == code);
    const Result<int64_t> a = code.Evaluate(slots), b = again.Evaluate(slots);
    REQUIRE(a.ok() == b.ok());
    if (a.ok()) CHECK(*a == *b);
  }
}

TEST_CASE("malformed code is refused") {
  const auto refused = [](std::vector<DimStep> steps) { return !DimCode::FromSteps(std::move(steps), 2).ok(); };
  CHECK(refused({}));
  CHECK(refused({{DimOp::kAdd, 0}}));
  CHECK(refused({{DimOp::kConst, 1}, {DimOp::kConst, 1}}));
  CHECK(refused({{DimOp::kConst, 1}, {DimOp::kConst, 1}, {DimOp::kSelect, 0}}));
  CHECK(refused({{DimOp::kSlot, 2}}));
  CHECK(refused({{DimOp::kSlot, -1}}));
  CHECK(refused({{static_cast<DimOp>(14), 0}}));
  CHECK(refused({{DimOp::kConst, 1}, {DimOp::kConst, 1}, {DimOp::kAdd, 5}}));
  CHECK(refused(std::vector<DimStep>(65, DimStep{DimOp::kConst, 1})));
  std::vector<DimStep> longest(32, DimStep{DimOp::kConst, 1});
  longest.insert(longest.end(), 31, DimStep{DimOp::kAdd, 0});
  CHECK_FALSE(refused(longest));
}

TEST_CASE("malformed text is refused with its column") {
  CHECK(DimCode::Parse("n + q", kNames).status().message() == "dimension \"n + q\", column 5: unknown name \"q\"");
  for (const char* text : {"", "n +", "(n", "n)", "min(n)", "min n", "select(1, 2)", "3n", "9223372036854775808",
                           "n $ 2", "--3", "- 3", "n < m < n"}) {
    CAPTURE(text);
    CHECK_FALSE(DimCode::Parse(text, kNames).ok());
  }
  CHECK_FALSE(DimCode::Parse(std::string(100000, '('), kNames).ok());
  std::string sum = "1";
  for (int i = 0; i < 32; ++i) sum += " + 1";
  CHECK_FALSE(DimCode::Parse(sum, kNames).ok());
}

TEST_CASE("building folds constants, and code that grew too long is refused when used") {
  CHECK(DimCode::Binary(DimOp::kMul, DimCode(6), DimCode(7)).constant() == 42);
  CHECK_FALSE(DimCode::Binary(DimOp::kMul, DimCode(kMax), DimCode(7)).is_constant());
  CHECK(DimCode::Select(DimCode(0), DimCode(1), DimCode::Slot(4)).num_slots() == 5);
  DimCode sum = DimCode::Slot(0);
  for (int i = 0; i < 40; ++i) sum = DimCode::Binary(DimOp::kAdd, sum, DimCode::Slot(0));
  CHECK_FALSE(sum.fits());
  CHECK_FALSE(sum.Evaluate(std::vector<int64_t>{1}).ok());
}

constexpr int kSlots = 4;

// A random formula of about `length` steps over slots and small constants.
DimCode RandomFormula(std::mt19937& random, size_t length) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<DimStep> steps;
  int depth = 0;
  while (steps.size() < length || depth > 1) {
    const int choice = below(10);
    if (depth == 0 || (choice < 5 && steps.size() < length)) {
      if (below(2) == 0) {
        steps.push_back({DimOp::kConst, below(5) - 1});
      } else {
        steps.push_back({DimOp::kSlot, below(kSlots)});
      }
      ++depth;
    } else if (depth >= 3 && choice < 7) {
      steps.push_back({DimOp::kSelect, 0});
      depth -= 2;
    } else if (depth >= 2) {
      steps.push_back({static_cast<DimOp>(static_cast<int>(DimOp::kAdd) + below(11)), 0});
      --depth;
    } else {
      break;
    }
  }
  const Result<DimCode> code = DimCode::FromSteps(std::move(steps), kSlots);
  return code.ok() ? *code : DimCode(1);
}

// What Substitute has to give, made operator by operator.
std::optional<DimCode> Composed(const DimCode& code, const std::vector<std::optional<DimCode>>& slots) {
  std::vector<DimCode> stack;
  for (const DimStep& step : code.steps()) {
    if (step.op == DimOp::kConst) {
      stack.emplace_back(step.value);
    } else if (step.op == DimOp::kSlot) {
      if (!slots[static_cast<size_t>(step.value)]) return std::nullopt;
      stack.push_back(*slots[static_cast<size_t>(step.value)]);
    } else {
      const DimCode last = stack.back();
      stack.pop_back();
      if (step.op == DimOp::kSelect) {
        const DimCode if_true = stack.back();
        stack.pop_back();
        stack.back() = DimCode::Select(stack.back(), if_true, last);
      } else {
        stack.back() = DimCode::Binary(step.op, stack.back(), last);
      }
    }
    if (!stack.back().fits()) return std::nullopt;
  }
  return stack.back();
}

TEST_CASE("formulas that are put in place of slots do not change a value") {
  std::mt19937 random(18);
  int num_known = 0, num_too_long = 0, num_values = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::optional<DimCode>> replacements(kSlots);
    bool has_all = true;
    for (std::optional<DimCode>& replacement : replacements) {
      if (random() % 16 != 0) replacement = RandomFormula(random, 1 + random() % 20);
      has_all &= replacement.has_value();
    }
    const DimCode code = RandomFormula(random, 1 + random() % 40);
    const std::optional<DimCode> substituted = code.Substitute(replacements);
    REQUIRE(substituted == Composed(code, replacements));
    if (!substituted) {
      num_too_long += has_all ? 1 : 0;
      continue;
    }
    ++num_known;
    REQUIRE(substituted->fits());
    std::array<int64_t, kSlots> symbols, registers{};
    for (int64_t& symbol : symbols) symbol = static_cast<int64_t>(random() % 9) - 2;
    bool has_values = true;
    for (size_t i = 0; i < kSlots; ++i) {
      const Result<int64_t> value = replacements[i] ? replacements[i]->Evaluate(symbols) : Result<int64_t>(0);
      has_values &= value.ok();
      if (value.ok()) registers[i] = *value;
    }
    const Result<int64_t> expected = code.Evaluate(registers), got = substituted->Evaluate(symbols);
    if (!has_values || !expected.ok()) continue;  // a division by zero
    REQUIRE(got.ok());
    CHECK(*got == *expected);
    ++num_values;
  }
  CHECK(num_known > 1000);
  CHECK(num_too_long > 100);
  CHECK(num_values > 1000);
}

}  // namespace
}  // namespace ingot
