// Resize with antialias: along each axis that becomes shorter, the interpolation's kernel is stretched by the inverse
// scale, so that every element has a weight. Weights depend only on lengths and scales; each axis becomes sums of
// windows.
#pragma once

#include <string>
#include <vector>

#include "compiler/importer/ops/util.h"

namespace ingot::importer {

struct AntialiasOptions {
  std::string method;       // "linear" or "cubic"
  std::string coordinates;  // coordinate_transformation_mode
  double cubic_alpha;
  bool exclude_outside;
  // Where run time alone knows the scale of all axes: pairs of lengths, of whose quotients it is the least or, by the
  // policy "not_smaller", the greatest.
  std::vector<PrimExpr> ratios = {};
  std::string policy = {};
  // Where data give the scale of each axis: how many of these parts of 1 it has.
  std::vector<PrimExpr> parts = {};
};
constexpr int64_t kPartsOfScale = int64_t{1} << 30;
// Resizes the first input along the axes to these lengths; scales are those for the coordinates (empty: quotients of the
// lengths). Weights between lengths that are symbols are computed when the model runs. Integers are resized as floats,
// whose sums are rounded and keep to the dtype.
Result<Expr> ResizeAntialiased(const NodeImporter& node, const std::vector<int64_t>& axes,
                               const std::vector<double>& scales, const std::vector<PrimExpr>& dims,
                               const AntialiasOptions& options);

}  // namespace ingot::importer
