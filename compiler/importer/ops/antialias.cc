// Each axis becomes sums of windows (window_sum), whose weights are computed here where lengths and scales are
// constants, and when the model runs where they are not, or are many.
#include "compiler/importer/ops/antialias.h"

#include <algorithm>
#include <cmath>

#include "compiler/importer/build.h"
#include "compiler/op/antialias.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

constexpr int64_t kMostWeights = int64_t{1} << 20;  // that are computed here

struct Windows {
  Expr weights, begins;
};

Windows ConstantWindows(const op::AntialiasFilter& filter, double scale, int64_t in, int64_t out, int64_t taps,
                        DataType dtype) {
  const op::AntialiasWindows made = op::MakeAntialiasWindows(filter, scale, in, out, taps);
  const Expr begins = ConstantOf(DataType::Int(64), {out}, made.begins);
  if (dtype == DataType::Float(64)) return {ConstantOf(dtype, {out, taps}, made.weights), begins};
  const std::vector<float> narrow(made.weights.begin(), made.weights.end());
  return {ConstantOf(DataType::Float(32), {out, taps}, narrow), begins};
}

// The windows of an axis whose lengths run time knows alone, as the length of the longest one.
Result<Windows> ComputedWindows(const NodeImporter& node, const PrimExpr& in, const PrimExpr& out, PrimExpr taps,
                                const op::AntialiasScale& scale, const AntialiasOptions& options) {
  if (!ir::AsConstInt(taps)) {
    INGOT_ASSIGN_OR_RETURN(const Expr value, node.Bind("shape_to_tensor", {ShapeOf({taps})}));
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> named, node.NameElements(value));
    taps = named[0];
  }
  ir::Attrs attrs = {{"method", options.method},
                     {"coordinate_transformation_mode", options.coordinates},
                     {"cubic_alpha", options.cubic_alpha},
                     {"cubic_exclude", options.exclude_outside}};
  if (scale.ratios.empty()) attrs = attrs.With("scale", scale.number);
  if (!options.ratios.empty()) attrs = attrs.With("policy", options.policy);
  INGOT_ASSIGN_OR_RETURN(
      const std::vector<Expr> fields,
      Fields(node.Bind("image.resize_weights", {ShapeOf({in, out, std::move(taps)}), ShapeOf(scale.ratios)}, attrs)));
  return Windows{node.BindValue(fields[0], "weights"), node.BindValue(fields[1], "begins")};
}

// Sums over windows along an axis. Those of many rows go along the first axis of the rows and back: there the elements
// that windows of one place share lie side by side.
Result<Expr> SumWindows(const NodeImporter& node, Expr x, const Windows& windows, int64_t axis) {
  constexpr int64_t kFewRows = 8;
  const std::vector<PrimExpr> dims = DimsOf(x);
  const std::vector<PrimExpr> other(dims.begin(), dims.end() - 1);
  const PrimExpr rows = Product(other);
  const auto count = ir::AsConstInt(rows);
  const bool lies_across = axis == std::ssize(other) && (!count || *count >= kFewRows);
  const auto sum = [&](int64_t along) {
    return node.Bind("window_sum", {x, windows.weights, windows.begins}, {{"axis", along}});
  };
  if (!lies_across) return sum(axis);
  INGOT_ASSIGN_OR_RETURN(x, ReshapeTo(node, std::move(x), {rows, dims.back()}));
  INGOT_ASSIGN_OR_RETURN(x, Permuted(node, std::move(x), {1, 0}));
  INGOT_ASSIGN_OR_RETURN(x, sum(0));
  std::vector<PrimExpr> resized = other;
  resized.push_back(DimsOf(x)[0]);
  INGOT_ASSIGN_OR_RETURN(x, Permuted(node, std::move(x), {1, 0}));
  return ReshapeTo(node, std::move(x), std::move(resized));
}

}  // namespace

Result<Expr> ResizeAntialiased(const NodeImporter& node, const std::vector<int64_t>& axes,
                               const std::vector<double>& scales, const std::vector<PrimExpr>& dims,
                               const AntialiasOptions& options) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  const std::vector<PrimExpr> from = *type->dims;
  const DataType own = *type->dtype;
  const auto is_empty = [&](int64_t axis) { return ir::IsConstInt(dims[static_cast<size_t>(axis)], 0); };
  if (std::ranges::any_of(axes, is_empty)) return node.Bind("zeros", {ShapeOf(dims)}, {{"dtype", own}});
  const DataType dtype = own.is_floating() ? own : DataType::Float(own.bits > 16 ? 64 : 32);
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, std::move(x), dtype));
  for (size_t i = 0; i < axes.size(); ++i) {
    const PrimExpr &in = from[static_cast<size_t>(axes[i])], &out = dims[static_cast<size_t>(axes[i])];
    const auto length = ir::AsConstInt(in), wanted = ir::AsConstInt(out);
    const bool has_scale_of_one = options.ratios.empty() && options.parts.empty() && (scales.empty() || scales[i] == 1);
    if (op::DimsEqual(in, out) && has_scale_of_one) continue;
    const auto places = op::FindAntialiasPlaces(options.coordinates);
    if (!places) return node.Unsupported("antialias with the places of " + options.coordinates);
    const op::AntialiasFilter filter{options.method == "linear", options.cubic_alpha, options.exclude_outside, *places};
    op::AntialiasScale scale{scales.empty() ? 0 : scales[i], options.ratios, options.policy == "not_smaller"};
    if (!options.parts.empty()) scale.ratios = {options.parts[i], ir::Int64(kPartsOfScale)};
    if (scales.empty() && scale.ratios.empty()) scale.ratios = {out, in};
    const bool is_constant = length && wanted && options.ratios.empty() && options.parts.empty();
    if (is_constant && *length < 1) {
      return node.Invalid("a resize of " + std::to_string(*length) + " elements to " + std::to_string(*wanted));
    }
    const PrimExpr taps = op::AntialiasTaps(filter, scale, in);
    Windows windows;
    if (is_constant && *wanted <= kMostWeights / *ir::AsConstInt(taps)) {
      const double number = scales.empty() ? static_cast<double>(*wanted) / static_cast<double>(*length) : scale.number;
      windows = ConstantWindows(filter, number, *length, *wanted, *ir::AsConstInt(taps), dtype);
    } else {
      INGOT_ASSIGN_OR_RETURN(windows, ComputedWindows(node, in, out, taps, scale, options));
    }
    INGOT_ASSIGN_OR_RETURN(x, SumWindows(node, std::move(x), windows, axes[i]));
  }
  if (own == dtype) return x;
  // Halves go away from zero, as in ONNX Runtime.
  INGOT_ASSIGN_OR_RETURN(const Expr sign, node.Bind("sign", {x}));
  INGOT_ASSIGN_OR_RETURN(const Expr half, node.Scalar(0.5, dtype));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("abs", {x}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("add", {x, half}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("floor", {x}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("multiply", {x, sign}));
  const double high = std::ldexp(1.0, own.is_int() ? own.bits - 1 : own.bits);
  const double greatest = own.bits < 64 ? high - 1 : std::nextafter(high, 0);
  const auto bound = [&](double value) { return ir::Make<ir::PrimValueNode>(ir::FloatImm(dtype, value)); };
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("clip", {x, bound(own.is_int() ? -high : 0), bound(greatest)}));
  return CastTo(node, x, own);
}

}  // namespace ingot::importer
