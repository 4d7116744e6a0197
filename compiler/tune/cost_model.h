// CostModel: says which of several schedules of a task are likely the faster ones, learnt from those that were
// measured.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/status.h"

namespace ingot::tune {

using Features = std::vector<float>;  // of a schedule (features.h); all of one length

class CostModel {
 public:
  // Measured schedules of one task. Times of different tasks are not compared.
  struct Group {
    std::vector<Features> features;
    std::vector<double> seconds;
  };
  virtual ~CostModel() = default;
  // Forgets what it was fitted to before.
  virtual Status Fit(const std::vector<Group>& groups) = 0;
  // Larger ones are likely faster.
  virtual Result<std::vector<double>> Scores(const std::vector<Features>& features) const = 0;
};

// Trees that are boosted for pairwise ranking, by libxgboost, which is loaded when this is called (no build needs it).
// kNotFound, and why, where it is not installed.
Result<std::unique_ptr<CostModel>> LoadXgboostModel();

}  // namespace ingot::tune
