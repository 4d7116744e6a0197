// Computes the weights in double, on the compiler's side where lengths and scales are constants, as a float32 matrix
// per axis, and multiplies the data by it.
#include "compiler/importer/ops/antialias.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

// The kernel at a distance: a triangle, or the cubic convolution of Keys (1981).
double Kernel(const AntialiasOptions& options, double distance) {
  const double x = std::fabs(distance), a = options.cubic_alpha;
  if (options.method == "linear") return std::max(1 - x, 0.0);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// The position in the data of element i of the result; nothing for a coordinate mode that is not supported here.
std::optional<double> PlaceOf(const std::string& mode, double i, double in, double out, double scale) {
  const double scaled = in * scale;
  if (mode == "half_pixel") return (i + 0.5) / scale - 0.5;
  if (mode == "pytorch_half_pixel") return out > 1 ? (i + 0.5) / scale - 0.5 : -0.5;
  if (mode == "half_pixel_symmetric") return in / 2 * (1 - out / scaled) + (i + 0.5) / scale - 0.5;
  if (mode == "asymmetric") return i / scale;
  if (mode == "align_corners") return scaled == 1 ? 0 : i * (in - 1) / (scaled - 1);
  return std::nullopt;
}

// Returns weights[k * out + i]: the weight of element k of the data in element i of the result. Positions outside of
// the data get the nearest element's value, or have no weight.
std::vector<float> Weights(int64_t in, int64_t out, double scale, const AntialiasOptions& options) {
  std::vector<float> weights(static_cast<size_t>(in * out), 0.0f);
  const double shrink = std::min(scale, 1.0);
  const double support = (options.method == "linear" ? 1 : 2) / shrink;
  for (int64_t i = 0; i < out; ++i) {
    const double place = PlaceOf(options.coordinates, static_cast<double>(i), static_cast<double>(in),
                                 static_cast<double>(out), scale)
                             .value_or(0);
    const auto first = static_cast<int64_t>(std::floor(place - support)),
               last = static_cast<int64_t>(std::ceil(place + support));
    std::vector<double> row(static_cast<size_t>(in), 0.0);
    double sum = 0;
    for (int64_t k = first; k <= last; ++k) {
      if (options.exclude_outside && (k < 0 || k >= in)) continue;
      const double weight = Kernel(options, (static_cast<double>(k) - place) * shrink);
      row[static_cast<size_t>(std::clamp<int64_t>(k, 0, in - 1))] += weight;
      sum += weight;
    }
    for (int64_t k = 0; k < in; ++k) {
      weights[static_cast<size_t>(k * out + i)] = static_cast<float>(row[static_cast<size_t>(k)] / sum);
    }
  }
  return weights;
}

// Multiplies each row of x along the axis by a matrix [in, out].
Result<Expr> MultiplyAxis(const NodeImporter& node, Expr x, int64_t axis, const Expr& matrix, size_t rank) {
  const auto last = static_cast<int64_t>(rank) - 1;
  if (axis == last) return node.Bind("matmul", {x, matrix});
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<size_t>(axis)], order[rank - 1]);
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("permute_dims", {x}, {{"axes", AttrValue::Ints(order)}}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("matmul", {x, matrix}));
  return node.Bind("permute_dims", {x}, {{"axes", AttrValue::Ints(order)}});
}

// The weights of an axis whose length run time knows alone.
Result<Expr> ComputedWeights(const NodeImporter& node, const PrimExpr& in, const PrimExpr& out,
                             std::optional<double> scale, const AntialiasOptions& options) {
  ir::Attrs attrs = {{"method", options.method},
                     {"coordinate_transformation_mode", options.coordinates},
                     {"cubic_alpha", options.cubic_alpha},
                     {"cubic_exclude", options.exclude_outside}};
  std::vector<PrimExpr> ratios;
  if (scale) {
    attrs = attrs.With("scale", *scale);
  } else if (options.ratios.empty()) {
    ratios = {out, in};
  } else {
    ratios = options.ratios;
    attrs = attrs.With("policy", options.policy);
  }
  return node.Bind("image.resize_weights", {ShapeOf({in, out}), ShapeOf(std::move(ratios))}, attrs);
}

}  // namespace

Result<Expr> ResizeAntialiased(const NodeImporter& node, Expr x, const std::vector<int64_t>& axes,
                               const std::vector<double>& scales, const std::vector<PrimExpr>& dims,
                               const AntialiasOptions& options) {
  constexpr int64_t kMostWeights = int64_t{1} << 24;
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  const std::vector<PrimExpr> from = *type->dims;
  const DataType dtype = *type->dtype;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    const auto in = ir::AsConstInt(from[axis]);
    const auto out = ir::AsConstInt(dims[axis]);
    const bool has_scale_of_one = options.ratios.empty() && (scales.empty() || scales[i] == 1);
    if (op::DimsEqual(from[axis], dims[axis]) && has_scale_of_one) continue;
    if (!PlaceOf(options.coordinates, 0, 1, 1, 1)) {
      return node.Unsupported("antialias with the places of " + options.coordinates);
    }
    Expr matrix;
    if (!in || !out || !options.ratios.empty()) {
      const std::optional<double> scale = scales.empty() ? std::nullopt : std::optional(scales[i]);
      INGOT_ASSIGN_OR_RETURN(matrix, ComputedWeights(node, from[axis], dims[axis], scale, options));
    } else {
      if (*in < 1 || *out < 1) return node.Invalid("a dimension of " + std::to_string(*in) + " elements");
      if (*out > kMostWeights / *in) return node.Unsupported("antialias between lengths whose product is so large");
      const double scale = scales.empty() ? static_cast<double>(*out) / static_cast<double>(*in) : scales[i];
      matrix = ConstantOf(DataType::Float(32), {*in, *out}, Weights(*in, *out, scale, options));
    }
    if (dtype != DataType::Float(32)) {
      INGOT_ASSIGN_OR_RETURN(matrix, node.Bind("astype", {matrix}, {{"dtype", dtype}}));
    }
    INGOT_ASSIGN_OR_RETURN(x, MultiplyAxis(node, std::move(x), axes[i], matrix, from.size()));
  }
  return x;
}

}  // namespace ingot::importer
