// Sizes of symbolic dimensions: what a kernel or a model is measured with, and how much each set counts. Times of a
// schedule are means by weight, so that a schedule is judged by all sets together.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/tune/measure/candidate.h"
#include "runtime/status.h"

namespace ingot::tune {

struct Sizes {
  std::map<std::string, int64_t> values;  // by the name of the dimension
  double weight = 1;
  friend bool operator==(const Sizes&, const Sizes&) = default;
};

// "batch=32", "batch=1,steps=128:0.5": the number behind the colon is the weight.
Result<Sizes> ParseSizes(std::string_view text);
std::string SizesText(const Sizes& sizes);

// One way to call a kernel or a model. Of one without symbols: the only one, with no values.
struct MeasuredCase {
  Sizes sizes;
  std::vector<MeasuredInput> inputs;
};

// The sizes of the cases, for a record: none where there is one case without values.
std::vector<Sizes> SizesOf(std::span<const MeasuredCase> cases);

// The inputs that are warm, for a record.
std::vector<int64_t> WarmInputsOf(std::span<const MeasuredCase> cases);

// The measurements of the cases, in their order, as one: repeat by repeat the mean time by weight; the first that is
// not ok where one is not, with its sizes in the error.
Measurement Combined(std::span<const MeasuredCase> cases, std::span<const Measurement> measurements);

}  // namespace ingot::tune
