// Operators that ONNX had for some time, without a version of their own, and that ONNX Runtime still runs until opset 9:
// what converters of Caffe2's and Core ML's models wrote.
#include <limits>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/contrib.h"
#include "compiler/importer/ops/families.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

Result<Expr> Times(const NodeImporter& node, const Expr& x, double factor) {
  if (factor == 1) return x;
  INGOT_ASSIGN_OR_RETURN(const Expr number, node.Scalar(factor, DTypeOf(x)));
  return node.Bind("multiply", {x, number});
}

// An attribute that has to be there.
Result<double> Required(const NodeImporter& node, const char* name) {
  if (!node.HasAttr(name)) return node.Invalid("the attribute \"" + std::string(name) + "\" is missing");
  return node.Float(name, 0);
}

// alpha * x + beta
Outputs Affine(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const double alpha, node.Float("alpha", 1));
  INGOT_ASSIGN_OR_RETURN(const double beta, node.Float("beta", 0));
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(x, Times(node, x, alpha));
  INGOT_ASSIGN_OR_RETURN(const Expr offset, node.Scalar(beta, DTypeOf(x)));
  return One(node.Call("add", {x, offset}));
}

Outputs Scale(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const double scale, node.Float("scale", 1));
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const Expr factor, node.Scalar(scale, DTypeOf(x)));
  return One(node.Call("multiply", {x, factor}));
}

// alpha * f(beta * x)
template <const auto& kOp>
Outputs Parametric(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const double alpha, Required(node, "alpha"));
  INGOT_ASSIGN_OR_RETURN(const double beta, Required(node, "beta"));
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(x, Times(node, x, beta));
  INGOT_ASSIGN_OR_RETURN(x, Apply(node, kOp, {x}));
  return One(Times(node, x, alpha));
}
constexpr char kSoftplus[] = "Softplus";
constexpr char kTanh[] = "Tanh";

Result<std::vector<PrimExpr>> PictureDims(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  if (dims.size() != 4) return node.Invalid("expected a picture of rank 4, got " + std::to_string(dims.size()));
  return dims;
}

// scale * x, plus a number for each channel.
Outputs ImageScaler(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const double scale, node.Float("scale", 1));
  const OnnxAttribute* attribute = node.FindAttr("bias");
  const auto* bias = attribute == nullptr ? nullptr : std::get_if<std::vector<float>>(&attribute->value);
  if (bias == nullptr) return node.Invalid("attribute \"bias\": expected floats");
  INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> dims, PictureDims(node));
  const auto channels = std::ssize(*bias);
  if (op::DimsDiffer(dims[1], ir::Int64(channels))) return node.Invalid("expected a bias for each channel");
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  dims[1] = ir::Int64(channels);
  x = WithDims(node, std::move(x), std::move(dims));
  INGOT_ASSIGN_OR_RETURN(x, Times(node, x, scale));
  INGOT_ASSIGN_OR_RETURN(const Expr numbers,
                         CastTo(node, ConstantOf(DataType::Float(32), {channels, 1, 1}, *bias), DTypeOf(x)));
  return One(node.Call("add", {x, numbers}));
}

// A picture without its borders [left, top, right, bottom]; or what of it, of this height and width, lies right of the
// left border and below the top one.
Outputs Crop(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> border, node.Ints("border", {}, 4));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> size, node.Ints("scale", {}));
  if (!size.empty() && size.size() != 2) return node.Invalid("expected a height and a width as scale");
  constexpr int64_t kLongest = int64_t{1} << 40;
  std::vector<int64_t> given = border;
  given.insert(given.end(), size.begin(), size.end());
  for (const int64_t length : given) {
    if (length < 0 || length > kLongest) return node.Invalid("a border or a length of " + std::to_string(length));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> dims, PictureDims(node));
  const std::vector<PrimExpr> axes = {ir::Int64(2), ir::Int64(3)};
  std::vector<PrimExpr> begins, ends;
  for (size_t i : {0, 1}) {
    const PrimExpr begin = ir::Int64(border[1 - i]);
    PrimExpr& dim = dims[i + 2];
    const PrimExpr end = op::SimplifyDim(size.empty() ? dim - ir::Int64(border[3 - i]) : begin + ir::Int64(size[i]));
    const auto whole = ir::AsConstInt(dim), last = ir::AsConstInt(end);
    if (whole && last && (*last < border[1 - i] || *last > *whole)) {
      return node.Invalid("a picture of " + std::to_string(*whole) + " elements is smaller than what is cut off");
    }
    begins.push_back(begin);
    ends.push_back(end);
    dim = op::SimplifyDim(end - begin);
  }
  INGOT_ASSIGN_OR_RETURN(const Expr cut,
                         node.Bind("strided_slice", {x, PrimTuple(axes), PrimTuple(begins), PrimTuple(ends)}));
  return One(WithDims(node, cut, std::move(dims)));
}

constexpr OnnxOpRow kEarlyRows[] = {
    {"Affine", nullptr, Affine},
    {"Crop", nullptr, Crop},
    {"ImageScaler", nullptr, ImageScaler},
    {"ParametricSoftplus", nullptr, Parametric<kSoftplus>},
    {"Scale", nullptr, Scale},
    {"ScaledTanh", nullptr, Parametric<kTanh>},
};

}  // namespace

std::span<const OnnxOpRow> EarlyOnnxOps() { return kEarlyRows; }

}  // namespace ingot::importer
