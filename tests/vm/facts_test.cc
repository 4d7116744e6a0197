// Formulas over registers become formulas over symbols: the value stays the same, whatever the formulas are.
#include "vm/verify/facts.h"

#include <doctest/doctest.h>

#include <random>

namespace ingot::vm {
namespace {

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

TEST_CASE("formulas that are put in place of slots do not change a value") {
  std::mt19937 random(18);
  int num_known = 0, num_too_long = 0, num_values = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<Dim> replacements(kSlots);
    bool has_all = true;
    for (Dim& replacement : replacements) {
      if (random() % 16 != 0) replacement = RandomFormula(random, 1 + random() % 20);
      has_all &= replacement.has_value();
    }
    const DimCode code = RandomFormula(random, 1 + random() % 40);
    const Dim substituted = SubstituteSlots(code, replacements);
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
}  // namespace ingot::vm
