// Resize with antialias: along each axis that becomes shorter, the interpolation's kernel is stretched by the inverse
// scale, so that every element has a weight. Weights depend only on lengths; each axis is a product with a constant
// matrix.
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
};
// Resizes x along the axes to these lengths; scales are those for the coordinates (empty: quotients of the lengths).
// Unsupported for axes of symbolic length that change.
Result<Expr> ResizeAntialiased(const NodeImporter& node, Expr x, const std::vector<int64_t>& axes,
                               const std::vector<double>& scales, const std::vector<PrimExpr>& dims,
                               const AntialiasOptions& options);

}  // namespace ingot::importer
