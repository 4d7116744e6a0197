// Tensor expressions of resampling: resize along axes, and sampling at the places of a grid. Coordinates are computed
// in float64, weights and sums in float32 for narrow floats. The nearest neighbours of scales are found in float32, as
// ONNX Runtime does: a scale of 33/9 is rounded, and in float64 place 11 of the result would lie below 3. Places that
// the rounding leaves next to the middle between two elements (4.5 / 0.3 - 0.5) count as there. Integers are
// interpolated as floats, at the places that ONNX Runtime finds: linear ones lose their fraction, as there, cubic ones
// are rounded and keep to their dtype, as in ONNX's reference.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/op/topi/elementwise.h"

namespace ingot::op::topi {

enum class Interpolation : uint8_t { kNearest, kLinear, kCubic };

// Which place of the input a place of the result stands for (ONNX Resize names them so).
enum class Coordinates : uint8_t {
  kHalfPixel,           // (x + 1/2) / scale - 1/2
  kHalfPixelSymmetric,  // the same, centred when the result's length was rounded
  kPytorchHalfPixel,    // the same, or 0 where the result has one element
  kAlignCorners,        // x (in - 1) / (out - 1)
  kAsymmetric,          // x / scale
  kTfHalfPixelForNn,    // (x + 1/2) / scale
  kTfCropAndResize,     // from roi.begin to roi.end, both in parts of in - 1
};
enum class Rounding : uint8_t {
  kPreferFloor,
  kPreferCeil,
  kFloor,
  kCeil,
  kByScale,  // down, or up along an axis whose scale is less than 1: nearest of ONNX's opset 10
};

// How far from the middle between two elements a place that was found in float32 counts as there.
constexpr double kNarrowSlack = 1e-6;
// What a sum of weighted integers may lack to a whole number that it is.
constexpr double kFractionSlack = 1e-3;

struct ResizeAxis {
  size_t axis;
  std::optional<double> scale;  // out / in where it is not given
  PrimExpr ratio = nullptr;     // the scale, in float64, where run time knows it alone
  bool is_given = false;        // the ratio is a scale that was given, no quotient of lengths
  double roi_begin = 0;
  double roi_end = 1;
  bool takes_all() const { return roi_begin == 0 && roi_end == 1; }
  // Whether the nearest neighbours of places are found in float32.
  bool has_narrow_scale() const { return scale.has_value() || is_given; }
};
struct ResizeMode {
  Interpolation interpolation;
  Coordinates coordinates;
  Rounding rounding;     // of nearest
  double cubic_alpha;    // of cubic
  bool exclude_outside;  // cubic: taps outside have no weight
  double extrapolation;  // of kTfCropAndResize: the value outside of the input
};
// shape is that of the result. One stage per axis that changes.
te::Tensor Resize(const te::Tensor& x, const std::vector<ResizeAxis>& axes, const ResizeMode& mode, const Shape& shape);

enum class GridPadding : uint8_t { kZeros, kBorder, kReflection };
// x [n, c, spatial...], grid [n, out..., rank]: places from -1 to 1, the last axis first.
te::Tensor GridSample(const te::Tensor& x, const te::Tensor& grid, Interpolation interpolation, GridPadding padding,
                      bool align_corners, const Shape& shape);

}  // namespace ingot::op::topi
