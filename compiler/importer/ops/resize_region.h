// Resize of a region of the data that data give: a part of each axis, as coordinate_transformation_mode
// "tf_crop_and_resize" has it.
#pragma once

#include <string>
#include <vector>

#include "compiler/importer/ops/util.h"

namespace ingot::importer {

struct RegionOptions {
  std::string method;    // "nearest", "linear" or "cubic"
  std::string rounding;  // nearest_mode
  double cubic_alpha;
  bool exclude_outside;  // what lies outside of the data has no weight
  double outside;        // the value of what lies outside
};
// Resizes the first input to these dims. `region`: the beginnings and then the ends along `region_axes`, as parts of the
// axes; the axes among these that are resized are `axes`.
Result<Expr> ResizeRegion(const NodeImporter& node, const std::vector<int64_t>& axes, const std::vector<PrimExpr>& dims,
                          Expr region, const std::vector<int64_t>& region_axes, const RegionOptions& options);

}  // namespace ingot::importer
