// Sizes as text, and measurements at several of them as one.
#include "compiler/tune/sizes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace ingot::tune {
namespace {

template <typename Number>
bool ReadAll(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// Sums of weights, and of what they are multiplied with, stay numbers.
constexpr double kLeastWeight = 1e-9, kGreatestWeight = 1e9;

// Adds the weighted times of a case to the sums.
void AddTimes(const std::vector<double>& seconds, double weight, std::vector<double>& sums) {
  sums.resize(seconds.size());
  for (size_t i = 0; i < seconds.size(); ++i) sums[i] += weight * seconds[i];
}

}  // namespace

Result<Sizes> ParseSizes(std::string_view text) {
  const auto refuse = [&] {
    return Status(StatusCode::kInvalidArgument,
                  "sizes \"" + std::string(text) + "\": expected NAME=SIZE,NAME=SIZE:WEIGHT, such as batch=32:0.5");
  };
  Sizes sizes;
  std::string_view rest = text;
  if (const size_t colon = rest.rfind(':'); colon != std::string_view::npos) {
    if (!ReadAll(rest.substr(colon + 1), sizes.weight)) return refuse();
    if (!(sizes.weight >= kLeastWeight && sizes.weight <= kGreatestWeight)) return refuse();
    rest = rest.substr(0, colon);
  }
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view one = rest.substr(0, comma);
    const size_t equals = one.rfind('=');
    int64_t size = 0;
    if (equals == std::string_view::npos || equals == 0) return refuse();
    if (!ReadAll(one.substr(equals + 1), size) || size < 1) return refuse();
    if (!sizes.values.emplace(one.substr(0, equals), size).second) return refuse();
    if (comma == std::string_view::npos) return sizes;
    rest = rest.substr(comma + 1);
  }
}

std::string SizesText(const Sizes& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes.values) text += (text.empty() ? "" : ",") + name + "=" + std::to_string(size);
  if (sizes.weight == 1) return text;
  char weight[32];
  const std::to_chars_result end = std::to_chars(weight, weight + sizeof weight, sizes.weight);
  return text + ":" + std::string(weight, end.ptr);
}

std::vector<Sizes> SizesOf(std::span<const MeasuredCase> cases) {
  std::vector<Sizes> sizes;
  for (const MeasuredCase& one : cases) {
    if (!one.sizes.values.empty()) sizes.push_back(one.sizes);
  }
  return sizes;
}

std::vector<int64_t> WarmInputsOf(std::span<const MeasuredCase> cases) {
  std::vector<int64_t> warm;
  if (cases.empty()) return warm;
  const std::vector<MeasuredInput>& inputs = cases.front().inputs;  // the same of all cases
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_warm) warm.push_back(static_cast<int64_t>(i));
  }
  return warm;
}

Measurement Combined(std::span<const MeasuredCase> cases, std::span<const Measurement> measurements) {
  Measurement combined = measurements[0];
  combined.seconds.clear();
  combined.rival_seconds.clear();
  double weights = 0;
  for (const MeasuredCase& one : cases) weights += one.sizes.weight;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (measurements[i].outcome != Outcome::kOk) {
      combined = measurements[i];
      if (!cases[i].sizes.values.empty()) combined.error = SizesText(cases[i].sizes) + ": " + combined.error;
      return combined;
    }
    AddTimes(measurements[i].seconds, cases[i].sizes.weight / weights, combined.seconds);
    AddTimes(measurements[i].rival_seconds, cases[i].sizes.weight / weights, combined.rival_seconds);
  }
  return combined;
}

}  // namespace ingot::tune
