// The windows of a resize with antialias along one axis: which elements of the data an element of the result is made
// of, and with what weights. The kernel of the interpolation is stretched where the result is smaller. Positions
// outside of the data get the nearest element's weight added, or have none; the weights of a window add up to 1.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/ir/prim_expr.h"

namespace ingot::op {

// coordinate_transformation_mode of ONNX's Resize: where element i of the result lies in the data.
enum class AntialiasPlaces : uint8_t { kHalfPixel, kPytorchHalfPixel, kHalfPixelSymmetric, kAsymmetric, kAlignCorners };
std::optional<AntialiasPlaces> FindAntialiasPlaces(std::string_view mode);

struct AntialiasFilter {
  bool is_linear;  // a triangle, else the cubic convolution of Keys (1981) with this alpha
  double alpha;
  bool exclude_outside;  // what lies outside of the data has no weight
  AntialiasPlaces places;
};

// The scale of an axis: a number, or, if there are pairs of lengths, the least (or the greatest) of their quotients.
struct AntialiasScale {
  double number = 0;
  std::vector<ir::PrimExpr> ratios = {};
  bool takes_greatest = false;
};

// A bound on the elements of a window that have a weight, of data of this length.
ir::PrimExpr AntialiasTaps(const AntialiasFilter& filter, const AntialiasScale& scale, const ir::PrimExpr& in);

// weights[i * taps + t] is that of element begins[i] + t of the data in element i of the result.
struct AntialiasWindows {
  std::vector<double> weights;
  std::vector<int64_t> begins;
};
AntialiasWindows MakeAntialiasWindows(const AntialiasFilter& filter, double scale, int64_t in, int64_t out,
                                      int64_t taps);

}  // namespace ingot::op
