// DFT and STFT (fourier.h). The matrix of the mel scale is a constant.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/fourier.h"
#include "compiler/importer/ops/util.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

Status CheckLength(const NodeImporter& node, const PrimExpr& symbol) {
  const auto length = ir::AsConstInt(symbol);
  if (!length) return Status();
  if (*length < 1) return node.Invalid("a transform of " + std::to_string(*length) + " numbers");
  if (*length <= kLongestTransform) return Status();
  return node.Unsupported("a transform of " + std::to_string(*length) + " numbers");
}

PrimExpr HalfOf(const PrimExpr& length) { return op::SimplifyDim(ir::FloorDiv(length, ir::Int64(2)) + 1); }

// What a DFT node asks for.
struct TransformOf {
  int64_t axis;
  PrimExpr length;
  bool is_inverse, is_onesided;
  // The elements that it reads, and that it gives.
  PrimExpr read() const { return is_inverse && is_onesided ? HalfOf(length) : length; }
  PrimExpr bins() const { return !is_inverse && is_onesided ? HalfOf(length) : length; }
};

// The axis is an attribute until opset 19 and an input from 20 on. The last axis holds the components.
Result<TransformOf> ReadTransform(const NodeImporter& node, const std::vector<PrimExpr>& in) {
  INGOT_ASSIGN_OR_RETURN(const int64_t inverse, node.Int("inverse", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t onesided, node.Int("onesided", 0));
  INGOT_ASSIGN_OR_RETURN(int64_t axis, node.Int("axis", node.opset() < 20 ? 1 : -2));
  if (node.HasInput(2)) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> given, node.ConstantInts(2, "the axis"));
    if (given.size() != 1) return node.Invalid("the axis: expected one number");
    axis = given[0];
  }
  const int64_t rank = std::ssize(in);
  INGOT_ASSIGN_OR_RETURN(axis, NormaliseAxis(node, axis, rank));
  if (rank < 2 || axis == rank - 1) return node.Invalid("the last axis holds the components");
  TransformOf t{axis, in[static_cast<size_t>(axis)], inverse != 0, onesided != 0};
  const auto parts = ir::AsConstInt(in.back());
  if (!parts) return node.Unsupported("an unknown number of components");
  if (*parts != 1 && *parts != 2) return node.Invalid("expected one component or two");
  if (t.is_onesided && *parts != (t.is_inverse ? 2 : 1)) {
    return node.Invalid("expected one component, or two of an inverse transform, of what is one-sided");
  }
  if (node.HasInput(1)) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> given, node.DataInts(1, "the transform's length", 1));
    if (given.size() != 1) return node.Invalid("the transform's length: expected one number");
    t.length = given[0];
  } else if (t.is_inverse && t.is_onesided) {
    t.length = op::SimplifyDim((t.length - 1) * int64_t{2});
  }
  INGOT_RETURN_IF_ERROR(CheckLength(node, t.length));
  return t;
}

// The whole of a spectrum [batch, 2, length / 2 + 1] that real numbers have: behind its middle the bins come back,
// conjugated. The imaginary parts of the first bin and of a middle one have no part in the result.
Result<Expr> WholeSpectrum(const NodeImporter& node, const Expr& x, const PrimExpr& length) {
  const PrimExpr mirrored = op::SimplifyDim(ir::FloorDiv(length - 1, ir::Int64(2))), one = ir::Int64(1);
  if (ir::IsConstInt(mirrored, 0)) return WithLength(node, x, length);
  std::vector<PrimExpr> dims = DimsOf(x);
  INGOT_ASSIGN_OR_RETURN(Expr back, LastSlice(node, x, one, op::SimplifyDim(mirrored + 1)));
  dims.back() = mirrored;
  back = WithDims(node, std::move(back), dims);
  INGOT_ASSIGN_OR_RETURN(back, node.Bind("flip", {back}, {{"axis", int64_t{2}}}));
  const Expr signs = ConstantOf(DataType::Float(32), {2, 1}, std::vector<float>{1, -1});
  INGOT_ASSIGN_OR_RETURN(const Expr sign, CastTo(node, signs, DTypeOf(x)));
  INGOT_ASSIGN_OR_RETURN(back, node.Bind("multiply", {back, sign}));
  INGOT_ASSIGN_OR_RETURN(Expr whole, node.Bind("concat", {TupleOf({x, back})}, {{"axis", int64_t{2}}}));
  dims.back() = length;
  return WithDims(node, std::move(whole), std::move(dims));
}

Outputs Dft(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const TransformOf t, ReadTransform(node, in));
  const DataType dtype = DTypeOf(x);
  if (!dtype.is_floating()) return node.Invalid("expected floats, got " + dtype.ToString());
  const int64_t rank = std::ssize(in);
  // [batch, components, rows]
  std::vector<int64_t> order, back(in.size());
  for (int64_t i = 0; i + 1 < rank; ++i) {
    if (i != t.axis) order.push_back(i);
  }
  std::vector<PrimExpr> dims;
  for (const int64_t axis : order) dims.push_back(in[static_cast<size_t>(axis)]);
  const PrimExpr batch = Product(dims);
  order.insert(order.end(), {rank - 1, t.axis});
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, x, dtype == DataType::Float(64) ? dtype : DataType::Float(32)));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("permute_dims", {x}, {{"axes", AttrValue::Ints(order)}}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {x, ShapeOf({batch, in.back(), in[static_cast<size_t>(t.axis)]})}));
  const int sign = t.is_inverse ? 1 : -1;
  const PrimExpr bins = t.bins();
  INGOT_ASSIGN_OR_RETURN(x, WithLength(node, std::move(x), t.read()));
  if (t.is_inverse && t.is_onesided) {
    INGOT_ASSIGN_OR_RETURN(x, WholeSpectrum(node, x, t.length));
  }
  INGOT_ASSIGN_OR_RETURN(x, FourierTransform(node, x, t.length, bins, sign));
  int64_t parts = 2;
  if (t.is_inverse) {
    Expr share;
    if (const auto length = ir::AsConstInt(t.length)) {
      INGOT_ASSIGN_OR_RETURN(share, node.Scalar(1 / static_cast<double>(*length), DTypeOf(x)));
    } else {
      INGOT_ASSIGN_OR_RETURN(const Expr number, node.Bind("shape_to_tensor", {ShapeOf({t.length})}));
      INGOT_ASSIGN_OR_RETURN(const Expr wide, CastTo(node, number, DataType::Float(64)));
      INGOT_ASSIGN_OR_RETURN(share, node.Bind("divide", {ConstantOf<double>(DataType::Float(64), {}, {1.0}), wide}));
      INGOT_ASSIGN_OR_RETURN(share, CastTo(node, share, DTypeOf(x)));
    }
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("multiply", {x, share}));
    if (t.is_onesided) {
      const auto list = [](int64_t number) { return TupleOf({Number(ir::Int64(number))}); };
      INGOT_ASSIGN_OR_RETURN(x, node.Bind("strided_slice", {x, list(1), list(0), list(1)}));
      parts = 1;
    }
  }
  dims.push_back(ir::Int64(parts));
  dims.push_back(bins);
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {x, ShapeOf(std::move(dims))}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("permute_dims", {x}, {{"axes", AttrValue::Ints(back)}}));
  return One(CastTo(node, std::move(x), dtype));
}

// Inputs: the signal [batch, length] or [batch, length, 1], the step from frame to frame, the window, and the frames'
// length, which the window has if it is left out.
Outputs Stft(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t onesided, node.Int("onesided", 1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> steps, node.DataInts(1, "the step", 1));
  if (in.size() != 2 && in.size() != 3) return node.Invalid("expected a signal of rank 2 or 3");
  const bool is_complex = in.size() == 3 && !ir::IsConstInt(in[2], 1);
  const PrimExpr parts = ir::Int64(is_complex ? 2 : 1);
  if (is_complex && !ir::AsConstInt(in[2])) return node.Unsupported("an unknown number of components");
  if (is_complex && !ir::IsConstInt(in[2], 2)) return node.Invalid("expected one component or two");
  if (is_complex && onesided != 0 && node.HasAttr("onesided")) {
    return node.Invalid("a one-sided transform of complex numbers");
  }
  const DataType dtype = DTypeOf(x), wide = dtype == DataType::Float(64) ? dtype : DataType::Float(32);
  if (!dtype.is_floating()) return node.Invalid("expected floats, got " + dtype.ToString());
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, x, wide));
  if (steps.size() != 1) return node.Invalid("the step: expected one number");
  const PrimExpr &step = steps[0], zero = ir::Int64(0), one = ir::Int64(1);
  if (const auto number = ir::AsConstInt(step); number && *number < 1) return node.Invalid("the step is no length");
  if (!ir::AsConstInt(step)) {
    node.Match(ShapeOf({ir::Max(step, one)}), ir::Make<ir::ShapeTypeNode>(std::vector<PrimExpr>{step}));
  }
  PrimExpr length;
  Expr window;
  if (node.HasInput(2)) {
    INGOT_ASSIGN_OR_RETURN(window, node.Input(2));
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> own, StaticRankDims(node, 2));
    if (own.size() != 1) return node.Invalid("expected a window of rank 1");
    length = own[0];
  }
  if (node.HasInput(3)) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> given, node.DataInts(3, "the frames' length", 1));
    if (given.size() != 1 || (window != nullptr && op::DimsDiffer(given[0], length))) {
      return node.Invalid("the frames are not the window's");
    }
    if (window == nullptr || !ir::AsConstInt(length)) length = given[0];
    if (window != nullptr) window = WithDims(node, std::move(window), {length});
  }
  if (length == nullptr) return node.Invalid("neither a window nor the frames' length is given");
  INGOT_RETURN_IF_ERROR(CheckLength(node, length));
  const PrimExpr frames = op::SimplifyDim(ir::FloorDiv(ir::Max(in[1] - length + step, zero), step));
  INGOT_ASSIGN_OR_RETURN(const Expr places, FramePlaces(node, frames, step, length));
  // [batch, components, length] -> [batch, components, frames, wide] -> [batch * frames, components, wide]
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {x, ShapeOf({in[0], in[1], parts})}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("permute_dims", {x}, {{"axes", AttrValue::Ints({0, 2, 1})}}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("take", {x, places}, {{"axis", int64_t{2}}}));
  if (window != nullptr) {
    INGOT_ASSIGN_OR_RETURN(window, CastTo(node, window, wide));
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("multiply", {x, window}));
  }
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("permute_dims", {x}, {{"axes", AttrValue::Ints({0, 2, 1, 3})}}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {x, ShapeOf({op::SimplifyDim(in[0] * frames), parts, length})}));
  const PrimExpr bins = onesided != 0 && !is_complex ? HalfOf(length) : length;
  INGOT_ASSIGN_OR_RETURN(x, FourierTransform(node, x, length, bins, -1));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("permute_dims", {x}, {{"axes", AttrValue::Ints({0, 2, 1})}}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {x, ShapeOf({in[0], frames, bins, ir::Int64(2)})}));
  return One(CastTo(node, std::move(x), dtype));
}

// ---- MelWeightMatrix

double ToMel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double ToHertz(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

// The bins of a transform where the triangles begin, peak and end: num_bins + 2 of them.
Result<std::vector<int64_t>> TriangleBins(const NodeImporter& node, int64_t num_bins, int64_t length) {
  INGOT_ASSIGN_OR_RETURN(const double rate, node.ConstantNumber(2, "the sample rate", 0));
  INGOT_ASSIGN_OR_RETURN(const double lower, node.ConstantNumber(3, "the lower edge", 0));
  INGOT_ASSIGN_OR_RETURN(const double upper, node.ConstantNumber(4, "the upper edge", 0));
  if (!(rate >= 1) || !(lower >= 0) || !(upper >= lower) || !std::isfinite(rate + upper)) {
    return node.Invalid("expected a sample rate above 0, and edges from 0 on in order");
  }
  const double step = (ToMel(upper) - ToMel(lower)) / static_cast<double>(num_bins + 2);
  std::vector<int64_t> bins;
  for (int64_t i = 0; i < num_bins + 2; ++i) {
    const double hertz = ToHertz(static_cast<double>(i) * step + ToMel(lower));
    const double bin = std::floor(static_cast<double>(length + 1) * hertz / rate);
    if (bin > static_cast<double>(length / 2)) return node.Invalid("the upper edge is above half of the sample rate");
    bins.push_back(static_cast<int64_t>(bin));
  }
  return bins;
}

// A triangle over the bins of a transform for each bin of the mel scale. Inputs are constants, but the matrix may be
// large: it is spelled out as operations, which are folded where it is small. Bin j of a triangle is on its falling side
// from the peak to before the end, and on its rising side from the beginning to the peak.
Outputs MelWeightMatrix(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> num_bins, node.ConstantInts(0, "the number of bins"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> length, node.ConstantInts(1, "the transform's length"));
  INGOT_ASSIGN_OR_RETURN(const int64_t number, node.Int("output_datatype", 1));
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, OnnxDataType(number));
  constexpr int64_t kMostBins = 1 << 16;
  if (num_bins.size() != 1 || length.size() != 1) return node.Invalid("expected scalars");
  if (num_bins[0] < 1 || num_bins[0] > kMostBins || length[0] < 1 || length[0] > kMostBins) {
    return node.Unsupported("a matrix of " + std::to_string(num_bins[0]) + " bins and a transform of " +
                            std::to_string(length[0]) + " numbers");
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> bins, TriangleBins(node, num_bins[0], length[0]));
  std::vector<double> foot, rise, peak, fall, end;  // (j - foot) / rise, (end - j) / fall
  for (size_t i = 0; i + 2 < bins.size(); ++i) {
    const int64_t up = bins[i + 1] - bins[i], down = bins[i + 2] - bins[i + 1];
    foot.push_back(static_cast<double>(up > 0 ? bins[i] : bins[i] - 1));  // (a side of no length: 1 at the peak)
    rise.push_back(static_cast<double>(std::max<int64_t>(up, 1)));
    peak.push_back(static_cast<double>(bins[i + 1]));
    fall.push_back(static_cast<double>(std::max<int64_t>(down, 1)));
    end.push_back(static_cast<double>(bins[i + 2]));
  }
  const DataType wide = DataType::Float(64);
  const auto row = [&](const std::vector<double>& values) { return ConstantOf(wide, {1, num_bins[0]}, values); };
  const PrimExpr rows = ir::Int64(length[0] / 2 + 1);
  INGOT_ASSIGN_OR_RETURN(Expr j, node.Bind("arange", {Number(ir::Int64(0)), Number(rows), Number(ir::Int64(1))},
                                           {{"dtype", DataType::Int(64)}}));
  INGOT_ASSIGN_OR_RETURN(j, CastTo(node, j, wide));
  INGOT_ASSIGN_OR_RETURN(j, node.Bind("reshape", {j, ShapeOf({rows, ir::Int64(1)})}));
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, wide));
  INGOT_ASSIGN_OR_RETURN(Expr up, node.Bind("subtract", {j, row(foot)}));
  INGOT_ASSIGN_OR_RETURN(up, node.Bind("divide", {up, row(rise)}));
  INGOT_ASSIGN_OR_RETURN(up, node.Bind("maximum", {up, zero}));
  INGOT_ASSIGN_OR_RETURN(const Expr rises, node.Bind("less_equal", {j, row(peak)}));
  INGOT_ASSIGN_OR_RETURN(up, node.Bind("where", {rises, up, zero}));
  INGOT_ASSIGN_OR_RETURN(Expr down, node.Bind("subtract", {row(end), j}));
  INGOT_ASSIGN_OR_RETURN(down, node.Bind("divide", {down, row(fall)}));
  INGOT_ASSIGN_OR_RETURN(const Expr is_before, node.Bind("less", {j, row(end)}));
  INGOT_ASSIGN_OR_RETURN(const Expr is_behind, node.Bind("greater_equal", {j, row(peak)}));
  INGOT_ASSIGN_OR_RETURN(const Expr falls, node.Bind("logical_and", {is_before, is_behind}));
  INGOT_ASSIGN_OR_RETURN(const Expr weights, node.Bind("where", {falls, down, up}));
  return One(CastTo(node, weights, dtype));
}

constexpr OnnxOpRow kSignalRows[] = {
    {"DFT", nullptr, Dft},
    {"MelWeightMatrix", nullptr, MelWeightMatrix},
    {"STFT", nullptr, Stft},
};

}  // namespace

std::span<const OnnxOpRow> SignalOnnxOps() { return kSignalRows; }

}  // namespace ingot::importer
