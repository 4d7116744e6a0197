// DFT and STFT: products with matrices of cosines and sines, which are constants. A transform of n numbers takes n * n
// products; lengths up to 4,096 are taken. The matrix of the mel scale is a constant, too.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/util.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

constexpr int64_t kLongestTransform = 4096;

// The transform of `rows` numbers of `parts` components (1: real, 2: complex) into `bins` complex ones, as a matrix
// [rows * parts, bins * 2]. Numbers behind `length` do not count.
struct Transform {
  int64_t rows, parts, length, bins;
};
Expr MatrixOf(const Transform& t) {
  std::vector<float> values(static_cast<size_t>(t.rows * t.parts * t.bins * 2));
  for (int64_t j = 0; j < std::min(t.rows, t.length); ++j) {
    for (int64_t k = 0; k < t.bins; ++k) {
      const double angle =
          -2 * 3.14159265358979323846 * static_cast<double>(j * k % t.length) / static_cast<double>(t.length);
      float* real = values.data() + (j * t.parts * t.bins + k) * 2;
      real[0] = static_cast<float>(std::cos(angle));
      real[1] = static_cast<float>(std::sin(angle));
      if (t.parts == 1) continue;
      float* imaginary = real + t.bins * 2;
      imaginary[0] = -real[1];
      imaginary[1] = real[0];
    }
  }
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return ir::Make<ir::ConstantNode>(
      ir::ConstantData::FromBytes(DataType::Float(32), {t.rows * t.parts, t.bins * 2}, std::move(bytes)));
}

Status CheckLength(const NodeImporter& node, int64_t length) {
  if (length < 1) return node.Invalid("a transform of " + std::to_string(length) + " numbers");
  if (length <= kLongestTransform) return Status();
  return node.Unsupported("a transform of " + std::to_string(length) + " numbers");
}

// The axis is an attribute until opset 19 and an input from 20 on. The last axis holds the components.
Outputs Dft(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
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
  if (DTypeOf(x) != DataType::Float(32)) return node.Unsupported("a transform of " + DTypeOf(x).ToString());
  const auto rows = ir::AsConstInt(in[static_cast<size_t>(axis)]), parts = ir::AsConstInt(in.back());
  if (!rows || !parts) return node.Unsupported("a transform along an axis of unknown length");
  if (*parts != 1 && *parts != 2) return node.Invalid("expected one component or two");
  if (inverse != 0) return node.Unsupported("an inverse transform");
  int64_t length = *rows;
  if (node.HasInput(1)) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> given, node.ConstantInts(1, "the transform's length"));
    if (given.size() != 1) return node.Invalid("the transform's length: expected one number");
    length = given[0];
  }
  INGOT_RETURN_IF_ERROR(CheckLength(node, length));
  INGOT_RETURN_IF_ERROR(CheckLength(node, *rows));
  const int64_t bins = onesided != 0 ? length / 2 + 1 : length;
  std::vector<int64_t> order, back(in.size());
  for (int64_t i = 0; i + 1 < rank; ++i) {
    if (i != axis) order.push_back(i);
  }
  order.insert(order.end(), {axis, rank - 1});
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  const bool moves = axis != rank - 2;
  if (moves) {
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("permute_dims", {x}, {{"axes", AttrValue::Ints(order)}}));
  }
  std::vector<PrimExpr> dims = DimsOf(x);
  dims.resize(dims.size() - 2);
  dims.push_back(ir::Int64(*rows * *parts));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {x, ShapeOf(dims)}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("matmul", {x, MatrixOf({*rows, *parts, length, bins})}));
  dims.back() = ir::Int64(bins);
  dims.push_back(ir::Int64(2));
  if (!moves) return One(ReshapeTo(node, std::move(x), std::move(dims)));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {x, ShapeOf(dims)}));
  return One(node.Call("permute_dims", {x}, {{"axes", AttrValue::Ints(back)}}));
}

// Inputs: the signal [batch, length] or [batch, length, 1], the step from frame to frame, the window, and the frames'
// length, which the window has if it is left out.
Outputs Stft(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t onesided, node.Int("onesided", 1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> step, node.ConstantInts(1, "the step"));
  if (in.size() != 2 && in.size() != 3) return node.Invalid("expected a signal of rank 2 or 3");
  if (in.size() == 3 && !ir::IsConstInt(in[2], 1)) return node.Unsupported("a complex signal");
  if (DTypeOf(x) != DataType::Float(32)) return node.Unsupported("a transform of " + DTypeOf(x).ToString());
  if (step.size() != 1 || step[0] < 1) return node.Invalid("the step is no length");
  std::optional<int64_t> length;
  Expr window;
  if (node.HasInput(2)) {
    INGOT_ASSIGN_OR_RETURN(window, node.Input(2));
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> own, StaticRankDims(node, 2));
    if (own.size() != 1) return node.Invalid("expected a window of rank 1");
    length = ir::AsConstInt(own[0]);
  }
  if (node.HasInput(3)) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> given, node.ConstantInts(3, "the frames' length"));
    if (given.size() != 1 || (length && given[0] != *length)) return node.Invalid("the frames are not the window's");
    length = given[0];
  }
  if (!length) return node.Unsupported("frames of unknown length");
  INGOT_RETURN_IF_ERROR(CheckLength(node, *length));
  const PrimExpr zero = ir::Int64(0), one = ir::Int64(1), wide = ir::Int64(*length);
  const PrimExpr frames = op::SimplifyDim(ir::FloorDiv(ir::Max(in[1] - wide + step[0], zero), ir::Int64(step[0])));
  const auto range = [&](const PrimExpr& count, std::vector<PrimExpr> dims) -> Result<Expr> {
    INGOT_ASSIGN_OR_RETURN(const Expr numbers, node.Bind("arange", {Number(zero), Number(count), Number(one)},
                                                         {{"dtype", DataType::Int(64)}}));
    return node.Bind("reshape", {numbers, ShapeOf(std::move(dims))});
  };
  INGOT_ASSIGN_OR_RETURN(Expr begins, range(frames, {frames, one}));
  INGOT_ASSIGN_OR_RETURN(const Expr stride, node.Scalar(static_cast<double>(step[0]), DataType::Int(64)));
  INGOT_ASSIGN_OR_RETURN(begins, node.Bind("multiply", {begins, stride}));
  INGOT_ASSIGN_OR_RETURN(const Expr inside, range(wide, {one, wide}));
  INGOT_ASSIGN_OR_RETURN(const Expr places, node.Bind("add", {begins, inside}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {x, ShapeOf({in[0], in[1]})}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("take", {x, places}, {{"axis", int64_t{1}}}));
  if (window != nullptr) {
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("multiply", {x, window}));
  }
  const int64_t bins = onesided != 0 ? *length / 2 + 1 : *length;
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("matmul", {x, MatrixOf({*length, 1, *length, bins})}));
  return One(ReshapeTo(node, std::move(x), {in[0], frames, ir::Int64(bins), ir::Int64(2)}));
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

// A triangle over the bins of a transform for each bin of the mel scale, computed here: all inputs are constants.
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
  const int64_t columns = num_bins[0], rows = length[0] / 2 + 1;
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> bins, TriangleBins(node, columns, length[0]));
  std::vector<double> values(static_cast<size_t>(rows * columns), 0);
  for (int64_t i = 0; i < columns; ++i) {
    const int64_t begin = bins[static_cast<size_t>(i)], peak = bins[static_cast<size_t>(i) + 1],
                  end = bins[static_cast<size_t>(i) + 2];
    const auto set = [&](int64_t row, double value) { values[static_cast<size_t>(row * columns + i)] = value; };
    if (begin == peak) set(peak, 1);
    for (int64_t j = begin; begin < peak && j <= peak; ++j) {
      set(j, static_cast<double>(j - begin) / static_cast<double>(peak - begin));
    }
    for (int64_t j = peak; j < end; ++j) set(j, static_cast<double>(end - j) / static_cast<double>(end - peak));
  }
  return One(CastTo(node, ConstantOf(DataType::Float(64), {rows, columns}, values), dtype));
}

constexpr OnnxOpRow kSignalRows[] = {
    {"DFT", nullptr, Dft},
    {"MelWeightMatrix", nullptr, MelWeightMatrix},
    {"STFT", nullptr, Stft},
};

}  // namespace

std::span<const OnnxOpRow> SignalOnnxOps() { return kSignalRows; }

}  // namespace ingot::importer
