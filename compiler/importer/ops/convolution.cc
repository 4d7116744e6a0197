// Convolution, transposed convolution and pooling over one, two or three spatial axes.
#include "compiler/importer/ops/convolution.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/importer/ops/families.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

constexpr int64_t kMaxWindow = int64_t{1} << 31;  // limit of each number, which keeps products inside 64 bits

// The window attributes that convolutions and pools share.
struct Window {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> padding;  // in ONNX's order: before every axis, then behind every axis
  std::vector<SameAxis> same;
  size_t rank() const { return kernel.size(); }
};

Status CheckFigures(const NodeImporter& node, const std::vector<int64_t>& figures, int64_t least, const char* what) {
  for (int64_t figure : figures) {
    if (figure < least || figure > kMaxWindow) {
      return node.Invalid(std::string(what) + (least > 0 ? " must be positive" : " must not be negative") + ", got " +
                          std::to_string(figure));
    }
  }
  return Status();
}

// Returns "1d", "2d" or "3d" for an operator whose data has these dims.
Result<std::string> SpatialSuffix(const NodeImporter& node, std::span<const PrimExpr> dims, const char* what) {
  if (dims.size() < 3 || dims.size() > 5) {
    return node.Unsupported(std::string(what) + " of rank " + std::to_string(dims.size()) + "; 1-D, 2-D and 3-D are");
  }
  return std::to_string(dims.size() - 2) + "d";
}

// Reads everything except the padding.
Result<Window> ReadFigures(const NodeImporter& node, std::vector<int64_t> kernel) {
  Window window;
  window.kernel = std::move(kernel);
  const std::vector<int64_t> ones(window.rank(), 1);
  const auto count = static_cast<int64_t>(window.rank());
  INGOT_ASSIGN_OR_RETURN(window.strides, node.Ints("strides", ones, count));
  INGOT_ASSIGN_OR_RETURN(window.dilations, node.Ints("dilations", ones, count));
  for (const auto* figures : {&window.kernel, &window.strides, &window.dilations}) {
    INGOT_RETURN_IF_ERROR(CheckFigures(node, *figures, 1, "kernel_shape, strides and dilations"));
  }
  return window;
}

// Returns auto_pad, or "" after it stored the pads attribute in window.padding.
Result<std::string> ReadPads(const NodeImporter& node, Window& window) {
  INGOT_ASSIGN_OR_RETURN(const std::string auto_pad, node.String("auto_pad", "NOTSET"));
  window.padding.assign(2 * window.rank(), 0);
  if (auto_pad == "VALID") return std::string();
  if (auto_pad == "NOTSET" || auto_pad.empty()) {
    INGOT_ASSIGN_OR_RETURN(window.padding,
                           node.Ints("pads", window.padding, static_cast<int64_t>(window.padding.size())));
    INGOT_RETURN_IF_ERROR(CheckFigures(node, window.padding, 0, "pads"));
    return std::string();
  }
  if (auto_pad != "SAME_UPPER" && auto_pad != "SAME_LOWER") return node.Invalid("auto_pad is \"" + auto_pad + "\"");
  return auto_pad;
}

// Splits the total in halves; an odd element is padded behind (upper) or before.
void SplitPadding(Window& window, size_t axis, int64_t total, bool upper) {
  window.padding[axis] = upper ? total / 2 : total - total / 2;
  window.padding[axis + window.rank()] = total - window.padding[axis];
}

// For a length n: there are ceil(n / stride) windows, and the padding is what they cover beyond n.
SameAxis MakeSameAxis(size_t axis, const PrimExpr& size, int64_t stride, int64_t reach, bool upper) {
  const PrimExpr out = op::SimplifyDim(ir::FloorDiv(size + (stride - 1), ir::Int64(stride)));
  const PrimExpr total = op::SimplifyDim(ir::Max((out - 1) * stride + reach - size, ir::Int64(0)));
  const PrimExpr half = op::SimplifyDim(ir::FloorDiv(total, ir::Int64(2)));
  return {axis, reach / 2, upper ? half : op::SimplifyDim(total - half), op::SimplifyDim(size + total), out};
}

Result<Window> ReadWindow(const NodeImporter& node, std::vector<int64_t> kernel, std::span<const PrimExpr> spatial) {
  INGOT_ASSIGN_OR_RETURN(Window window, ReadFigures(node, std::move(kernel)));
  INGOT_ASSIGN_OR_RETURN(const std::string auto_pad, ReadPads(node, window));
  if (auto_pad.empty()) return window;
  for (size_t i = 0; i < window.rank(); ++i) {
    const int64_t reach = (window.kernel[i] - 1) * window.dilations[i] + 1;
    const auto size = ir::AsConstInt(spatial[i]);
    int64_t total = reach - 1;  // for stride 1, whatever the size
    if (window.strides[i] > 1) {
      if (!size) {
        window.same.push_back(MakeSameAxis(2 + i, spatial[i], window.strides[i], reach, auto_pad == "SAME_UPPER"));
        continue;
      }
      if (*size > kMaxWindow) return node.Invalid("a spatial dimension of " + std::to_string(*size));
      const int64_t out = *size / window.strides[i] + (*size % window.strides[i] != 0 ? 1 : 0);
      total = std::max<int64_t>((out - 1) * window.strides[i] + reach - *size, 0);
    }
    SplitPadding(window, i, total, auto_pad == "SAME_UPPER");
  }
  return window;
}

// Returns the kernel's spatial dims, which the attribute kernel_shape repeats.
Result<std::vector<int64_t>> KernelShape(const NodeImporter& node, std::span<const PrimExpr> data,
                                         std::span<const PrimExpr> weight) {
  if (weight.size() != data.size()) {
    return node.Invalid("weights of rank " + std::to_string(weight.size()) + ", expected " +
                        std::to_string(data.size()));
  }
  std::vector<int64_t> kernel;
  for (size_t i = 2; i < weight.size(); ++i) {
    const auto size = ir::AsConstInt(weight[i]);
    if (!size) return node.Unsupported("a kernel of symbolic size");
    kernel.push_back(*size);
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> stated,
                         node.Ints("kernel_shape", kernel, static_cast<int64_t>(kernel.size())));
  if (stated != kernel) return node.Invalid("kernel_shape differs from the weights' dimensions");
  return kernel;
}

// A part of an axis: `length` places from `begin` on.
struct Trim {
  size_t axis;
  PrimExpr begin;
  int64_t length;
};

Outputs AddChannelBias(const NodeImporter& node, Expr product, size_t rank, const PrimExpr& channels) {
  INGOT_ASSIGN_OR_RETURN(Expr bias, node.Input(2));
  std::vector<PrimExpr> dims(rank, ir::Int64(1));
  dims[1] = channels;
  INGOT_ASSIGN_OR_RETURN(bias, node.Bind("reshape", {bias, ShapeOf(dims)}));
  return One(node.Call("add", {product, bias}));
}

ir::Attrs ConvAttrs(const Window& window, int64_t groups) {
  return {{"strides", AttrValue::Ints(window.strides)},
          {"padding", AttrValue::Ints(window.padding)},
          {"dilation", AttrValue::Ints(window.dilations)},
          {"groups", groups}};
}

}  // namespace

Result<ConvCall> ReadConv(const NodeImporter& node, size_t data, size_t weight) {
  ConvCall conv;
  INGOT_ASSIGN_OR_RETURN(conv.data, StaticRankDims(node, data));
  INGOT_ASSIGN_OR_RETURN(conv.weight, StaticRankDims(node, weight));
  INGOT_ASSIGN_OR_RETURN(const std::string suffix, SpatialSuffix(node, conv.data, "a convolution"));
  INGOT_ASSIGN_OR_RETURN(std::vector<int64_t> kernel, KernelShape(node, conv.data, conv.weight));
  INGOT_ASSIGN_OR_RETURN(const Window window, ReadWindow(node, std::move(kernel), std::span(conv.data).subspan(2)));
  INGOT_ASSIGN_OR_RETURN(const int64_t groups, node.Int("group", 1));
  conv.row = "nn.conv" + suffix;
  conv.attrs = ConvAttrs(window, groups);
  conv.same = window.same;
  return conv;
}

// Pads by the largest possible padding and cuts off the surplus. The bounds of the cut are new symbols: as expressions,
// they would make the shapes of all that follows long.
Result<Expr> PadSame(const NodeImporter& node, Expr x, const std::vector<SameAxis>& same, double value) {
  if (same.empty()) return x;
  const auto* type = ir::As<ir::TensorTypeNode>(x->type);
  std::vector<PrimExpr> dims = *type->dims, places;
  std::vector<int64_t> widths(2 * dims.size(), 0);
  for (const SameAxis& part : same) {
    widths[2 * part.axis] = widths[2 * part.axis + 1] = part.most;
    places.insert(places.end(), {op::SimplifyDim(ir::Int64(part.most) - part.before), part.padded});
  }
  INGOT_ASSIGN_OR_RETURN(const Expr values, node.Bind("shape_to_tensor", {ShapeOf(std::move(places))}));
  INGOT_ASSIGN_OR_RETURN(places, node.NameElements(values));
  std::vector<PrimExpr> axes, begin, end;
  for (size_t i = 0; i < same.size(); ++i) {
    axes.push_back(ir::Int64(static_cast<int64_t>(same[i].axis)));
    begin.push_back(places[2 * i]);
    end.push_back(op::SimplifyDim(places[2 * i] + places[2 * i + 1]));
    dims[same[i].axis] = places[2 * i + 1];
  }
  INGOT_ASSIGN_OR_RETURN(
      x, node.Bind("nn.pad", {std::move(x)},
                   {{"pad_width", AttrValue::Ints(widths)}, {"pad_value", value}, {"pad_mode", "constant"}}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("strided_slice", {x, PrimTuple(axes), PrimTuple(begin), PrimTuple(end)}));
  return node.Match(x, ir::Make<ir::TensorTypeNode>(std::move(dims), type->dtype));
}

Result<Expr> MatchSame(const NodeImporter& node, Expr result, const std::vector<SameAxis>& same) {
  if (same.empty()) return result;
  const auto* type = ir::As<ir::TensorTypeNode>(result->type);
  std::vector<PrimExpr> dims = *type->dims;
  for (const SameAxis& part : same) dims[part.axis] = part.out;
  return node.Match(result, ir::Make<ir::TensorTypeNode>(std::move(dims), type->dtype));
}

namespace {

// Whether a convolution takes long frames of one channel apart, as a spectrum is spelled out. Those of short frames, or
// of which most elements are read many times, are faster as what they are.
bool IsOfFrames(const ConvCall& conv, const Expr& weight) {
  constexpr int64_t kLeastLength = 128, kLeastOutputs = 32, kMostOverlap = 8;
  if (conv.row != "nn.conv1d" || ir::As<ir::ConstantNode>(weight) == nullptr) return false;
  const auto outputs = ir::AsConstInt(conv.weight[0]), length = ir::AsConstInt(conv.weight[2]);
  return ir::IsConstInt(conv.data[1], 1) && conv.attrs.GetInt("groups") == 1 && *outputs >= kLeastOutputs &&
         conv.attrs.GetInts("dilation")[0] == 1 && *length >= kLeastLength &&
         *length <= kMostOverlap * conv.attrs.GetInts("strides")[0];
}

// The convolution as a product of frames [batch, frames, length] and a matrix.
Result<Expr> ProductOfFrames(const NodeImporter& node, Expr x, Expr weight, const ConvCall& conv) {
  INGOT_ASSIGN_OR_RETURN(const ir::Call call, op::MakeCall(conv.row, {x, weight}, conv.attrs));
  const std::vector<PrimExpr>& out = *ir::As<ir::TensorTypeNode>(call->type)->dims;
  const std::vector<int64_t>& padding = conv.attrs.GetInts("padding");
  if (std::ranges::any_of(padding, [](int64_t width) { return width != 0; })) {
    INGOT_ASSIGN_OR_RETURN(
        x, node.Bind("nn.pad", {std::move(x)},
                     {{"pad_width", AttrValue::Ints({0, 0, 0, 0, padding[0], padding[1]})}, {"pad_value", 0.0}}));
  }
  const PrimExpr& width = (*ir::As<ir::TensorTypeNode>(x->type)->dims)[2];
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {std::move(x), ShapeOf({out[0], width})}));
  INGOT_ASSIGN_OR_RETURN(const Expr places,
                         FramePlaces(node, out[2], ir::Int64(conv.attrs.GetInts("strides")[0]), conv.weight[2]));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("take", {x, places}, {{"axis", int64_t{1}}}));
  INGOT_ASSIGN_OR_RETURN(weight, node.Bind("reshape", {std::move(weight), ShapeOf({conv.weight[0], conv.weight[2]})}));
  INGOT_ASSIGN_OR_RETURN(weight, Permuted(node, std::move(weight), {1, 0}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("matmul", {std::move(x), std::move(weight)}));
  return Permuted(node, std::move(x), {0, 2, 1});
}

Outputs Conv(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr weight, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const ConvCall conv, ReadConv(node, 0, 1));
  const bool is_of_frames = IsOfFrames(conv, weight);
  if (!node.HasInput(2) && conv.same.empty() && !is_of_frames) {
    return One(node.Call(conv.row, {x, weight}, conv.attrs));
  }
  INGOT_ASSIGN_OR_RETURN(x, PadSame(node, std::move(x), conv.same));
  INGOT_ASSIGN_OR_RETURN(Expr product, is_of_frames ? ProductOfFrames(node, x, weight, conv)
                                                    : node.Bind(conv.row, {x, weight}, conv.attrs));
  INGOT_ASSIGN_OR_RETURN(product, MatchSame(node, std::move(product), conv.same));
  if (!node.HasInput(2)) return std::vector<Expr>{std::move(product)};
  return AddChannelBias(node, std::move(product), conv.data.size(), conv.weight[0]);
}

// Along symbolic axes with an output_shape the padding depends on the length. There the product is computed without
// padding, and a part of the wanted length is taken: it begins at half of the surplus. Its length is checked at run
// time.
Result<Expr> Trimmed(const NodeImporter& node, Expr product, const std::vector<Trim>& trims) {
  if (trims.empty()) return product;
  const auto tuple = [&](const auto& of) {
    std::vector<PrimExpr> values;
    for (const Trim& trim : trims) values.push_back(of(trim));
    return PrimTuple(values);
  };
  const Expr axes = tuple([](const Trim& trim) { return ir::Int64(static_cast<int64_t>(trim.axis)); });
  const Expr begin = tuple([](const Trim& trim) { return trim.begin; });
  const Expr end = tuple([](const Trim& trim) { return op::SimplifyDim(trim.begin + trim.length); });
  INGOT_ASSIGN_OR_RETURN(product, node.Bind("strided_slice", {std::move(product), axes, begin, end}));
  const auto* type = ir::As<ir::TensorTypeNode>(product->type);
  std::vector<PrimExpr> dims = *type->dims;
  for (const Trim& trim : trims) dims[trim.axis] = ir::Int64(trim.length);
  return node.Match(product, ir::Make<ir::TensorTypeNode>(std::move(dims), type->dtype));
}

// output_shape, if it is given, decides the padding; so does auto_pad SAME, whose result is `stride` times as long.
Outputs ConvTranspose(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr weight, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> w, StaticRankDims(node, 1));
  INGOT_ASSIGN_OR_RETURN(const std::string suffix, SpatialSuffix(node, in, "a transposed convolution"));
  INGOT_ASSIGN_OR_RETURN(std::vector<int64_t> kernel, KernelShape(node, in, w));
  INGOT_ASSIGN_OR_RETURN(Window window, ReadFigures(node, std::move(kernel)));
  INGOT_ASSIGN_OR_RETURN(const std::string auto_pad, ReadPads(node, window));
  INGOT_ASSIGN_OR_RETURN(const int64_t groups, node.Int("group", 1));
  const std::vector<int64_t> zeros(window.rank(), 0);
  const auto count = static_cast<int64_t>(window.rank());
  INGOT_ASSIGN_OR_RETURN(std::vector<int64_t> extra, node.Ints("output_padding", zeros, count));
  INGOT_RETURN_IF_ERROR(CheckFigures(node, extra, 0, "output_padding"));
  INGOT_ASSIGN_OR_RETURN(std::vector<int64_t> shape, node.Ints("output_shape", {}));
  if (shape.size() == window.rank() + 2) shape.erase(shape.begin(), shape.begin() + 2);  // with n and channels
  if (!shape.empty() && shape.size() != window.rank()) return node.Invalid("output_shape of another rank");
  std::vector<Trim> trims;
  for (size_t i = 0; i < window.rank() && (!shape.empty() || !auto_pad.empty()); ++i) {
    const int64_t reach = (window.kernel[i] - 1) * window.dilations[i] + 1;
    int64_t total = reach - window.strides[i] + extra[i];
    if (!shape.empty()) {
      const auto size = ir::AsConstInt(in[2 + i]);
      if (!size) {
        const PrimExpr excess = (in[2 + i] - 1) * window.strides[i] + (extra[i] + reach - shape[i]);
        const int64_t rounds_up = auto_pad == "SAME_UPPER" ? 0 : 1;  // the rounding of SplitPadding
        const PrimExpr before = ir::FloorDiv(excess + rounds_up, ir::Int64(2));
        trims.push_back({2 + i, op::SimplifyDim(ir::Max(before, ir::Int64(0))), shape[i]});
        // the largest number of zeros that may be needed behind
        extra[i] = std::max(window.strides[i], window.dilations[i]) - 1;
        window.padding[i] = window.padding[i + window.rank()] = 0;
        continue;
      }
      if (*size > kMaxWindow) return node.Invalid("a spatial dimension of " + std::to_string(*size));
      total = window.strides[i] * (*size - 1) + extra[i] + reach - shape[i];
    }
    if (total < 0) {  // the output is longer than the kernel reaches: zeros behind
      extra[i] -= total;
      total = 0;
    }
    SplitPadding(window, i, total, auto_pad == "SAME_UPPER");
  }
  const ir::Attrs attrs = ConvAttrs(window, groups).With("output_padding", AttrValue::Ints(extra));
  const std::string row = "nn.conv" + suffix + "_transpose";
  if (!node.HasInput(2) && trims.empty()) return One(node.Call(row, {x, weight}, attrs));
  INGOT_ASSIGN_OR_RETURN(Expr product, node.Bind(row, {x, weight}, attrs));
  INGOT_ASSIGN_OR_RETURN(product, Trimmed(node, std::move(product), trims));
  if (!node.HasInput(2)) return std::vector<Expr>{std::move(product)};
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> bias, StaticRankDims(node, 2));
  if (bias.size() != 1) return node.Invalid("a bias of rank " + std::to_string(bias.size()) + ", expected 1");
  return AddChannelBias(node, std::move(product), in.size(), bias[0]);
}

// The least element of a dtype, which pads a maximum.
double LeastOf(DataType dtype) {
  if (dtype.is_floating()) return -std::numeric_limits<double>::infinity();
  return dtype.is_uint() ? 0 : -std::ldexp(1.0, dtype.bits - 1);
}

// Indices of elements of data of the dims `in`, out of those in the padded data. An element of the padding, which is
// the greatest where all data of a window are the dtype's least number, stands for the data's element beside it.
Result<Expr> IndicesBeforePadding(const NodeImporter& node, Expr index, const std::vector<PrimExpr>& padded,
                                  const std::vector<PrimExpr>& in, const std::vector<SameAxis>& same) {
  std::vector<PrimExpr> numbers;  // padded lengths, begins, last places and weights of the axes
  const size_t rank = in.size();
  for (size_t axis = 0; axis < rank; ++axis) {
    PrimExpr before = ir::Int64(0);
    for (const SameAxis& part : same) before = part.axis == axis ? part.before : before;
    const PrimExpr weight = Product(std::span(in).subspan(axis + 1));
    numbers.insert(numbers.end(), {padded[axis], before, op::SimplifyDim(in[axis] - 1), weight});
  }
  INGOT_ASSIGN_OR_RETURN(const Expr values, node.Bind("shape_to_tensor", {ShapeOf(std::move(numbers))}));
  const auto number = [&](size_t axis, size_t which) -> Result<Expr> {
    const auto at = static_cast<int64_t>(4 * axis + which);
    return node.Bind("strided_slice", {values, PrimTuple(std::vector<int64_t>{0}), PrimTuple(std::vector<int64_t>{at}),
                                       PrimTuple(std::vector<int64_t>{at + 1})});
  };
  Expr result;
  for (size_t axis = rank; axis-- > 0;) {
    INGOT_ASSIGN_OR_RETURN(const Expr length, number(axis, 0));
    INGOT_ASSIGN_OR_RETURN(const Expr before, number(axis, 1));
    INGOT_ASSIGN_OR_RETURN(const Expr last, number(axis, 2));
    INGOT_ASSIGN_OR_RETURN(const Expr weight, number(axis, 3));
    INGOT_ASSIGN_OR_RETURN(Expr place, node.Bind("floor_mod", {index, length}));
    INGOT_ASSIGN_OR_RETURN(index, node.Bind("floor_divide", {index, length}));
    INGOT_ASSIGN_OR_RETURN(place, node.Bind("subtract", {place, before}));
    INGOT_ASSIGN_OR_RETURN(place, node.Bind("nn.relu", {place}));
    INGOT_ASSIGN_OR_RETURN(place, node.Bind("minimum", {place, last}));
    INGOT_ASSIGN_OR_RETURN(place, node.Bind("multiply", {place, weight}));
    if (result == nullptr) {
      result = place;
    } else {
      INGOT_ASSIGN_OR_RETURN(result, node.Bind("add", {result, place}));
    }
  }
  return result;
}

enum class PoolKind : uint8_t { kMax, kAverage, kLp };

template <PoolKind kind>
Outputs Pool(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::string suffix, SpatialSuffix(node, in, "a pool"));
  INGOT_ASSIGN_OR_RETURN(std::vector<int64_t> kernel,
                         node.Ints("kernel_shape", {}, static_cast<int64_t>(in.size()) - 2));
  INGOT_ASSIGN_OR_RETURN(const Window window, ReadWindow(node, std::move(kernel), std::span(in).subspan(2)));
  INGOT_ASSIGN_OR_RETURN(const int64_t ceil_mode, node.Int("ceil_mode", 0));
  const std::optional<DataType> known = ir::As<ir::TensorTypeNode>(x->type)->dtype;
  if (!known) return node.Unsupported("data of unknown dtype");
  const DataType dtype = *known;
  const bool has_indices = kind == PoolKind::kMax && node.node().outputs.size() > 1;
  const Expr unpadded = x;
  INGOT_ASSIGN_OR_RETURN(x, PadSame(node, std::move(x), window.same, kind == PoolKind::kMax ? LeastOf(dtype) : 0));
  const auto pool = [&](const char* row, const Expr& data, const ir::Attrs& attrs) -> Result<Expr> {
    if (window.same.empty()) return node.Call(row + suffix, {data}, attrs);
    INGOT_ASSIGN_OR_RETURN(Expr pooled, node.Bind(row + suffix, {data}, attrs));
    return MatchSame(node, std::move(pooled), window.same);
  };
  ir::Attrs attrs = {{"pool_size", AttrValue::Ints(window.kernel)},
                     {"strides", AttrValue::Ints(window.strides)},
                     {"dilation", AttrValue::Ints(window.dilations)},
                     {"padding", AttrValue::Ints(window.padding)},
                     {"ceil_mode", ceil_mode != 0 && window.same.empty()}};
  if (kind == PoolKind::kLp) {
    INGOT_ASSIGN_OR_RETURN(const int64_t p, node.Int("p", 2));
    return One(pool("nn.lp_pool", x, attrs.With("p", p)));
  }
  if (kind == PoolKind::kMax) {
    if (!has_indices) return One(pool("nn.max_pool", x, attrs));
    INGOT_ASSIGN_OR_RETURN(const int64_t order, node.Int("storage_order", 0));
    if (order != 0 && !window.same.empty()) {
      return node.Unsupported("indices by columns by auto_pad SAME with strides over a symbolic dimension");
    }
    INGOT_ASSIGN_OR_RETURN(Expr pooled, node.Bind("nn.max_pool" + suffix, {x}, attrs));
    const ir::Attrs places = {{"pool_size", AttrValue::Ints(window.kernel)},
                              {"strides", AttrValue::Ints(window.strides)},
                              {"dilation", AttrValue::Ints(window.dilations)},
                              {"padding", AttrValue::Ints(window.padding)},
                              {"column_major", order != 0}};
    if (window.same.empty()) {
      INGOT_ASSIGN_OR_RETURN(const Expr indices, node.Call("nn.max_pool_indices", {x, pooled}, places));
      return std::vector<Expr>{pooled, indices};
    }
    INGOT_ASSIGN_OR_RETURN(Expr indices, node.Bind("nn.max_pool_indices", {x, pooled}, places));
    INGOT_ASSIGN_OR_RETURN(indices, IndicesBeforePadding(node, indices, DimsOf(x), in, window.same));
    INGOT_ASSIGN_OR_RETURN(pooled, MatchSame(node, std::move(pooled), window.same));
    INGOT_ASSIGN_OR_RETURN(indices, MatchSame(node, std::move(indices), window.same));
    return std::vector<Expr>{pooled, indices};
  }
  INGOT_ASSIGN_OR_RETURN(const int64_t count_include_pad, node.Int("count_include_pad", 0));
  attrs = attrs.With("count_include_pad", count_include_pad != 0);
  if (window.same.empty() || count_include_pad != 0) return One(pool("nn.avg_pool", x, attrs));
  // The mean over a window with its padding, divided by the fraction of the window that is data.
  std::vector<PrimExpr> dims = *ir::As<ir::TensorTypeNode>(unpadded->type)->dims;
  dims[0] = dims[1] = ir::Int64(1);
  INGOT_ASSIGN_OR_RETURN(Expr ones, node.Bind("ones", {ShapeOf(std::move(dims))}, {{"dtype", dtype}}));
  INGOT_ASSIGN_OR_RETURN(ones, PadSame(node, std::move(ones), window.same));
  attrs = attrs.With("count_include_pad", true);
  INGOT_ASSIGN_OR_RETURN(const Expr share, pool("nn.avg_pool", ones, attrs));
  INGOT_ASSIGN_OR_RETURN(const Expr mean, pool("nn.avg_pool", x, attrs));
  return One(node.Call("divide", {mean, share}));
}

// x with zeros behind, up to dims of which some are symbols; none may be below that of x, which is checked when the
// program runs.
Result<Expr> FilledUp(const NodeImporter& node, Expr x, const std::vector<PrimExpr>& shape) {
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    std::vector<PrimExpr> dims = DimsOf(x);
    if (op::DimsEqual(dims[axis], shape[axis])) continue;
    const PrimExpr whole = shape[axis];
    dims[axis] = op::SimplifyDim(ir::Max(whole - dims[axis], ir::Int64(0)));
    INGOT_ASSIGN_OR_RETURN(const Expr zeros, node.Bind("zeros", {ShapeOf(dims)}, {{"dtype", DTypeOf(x)}}));
    const Expr parts = ir::Make<ir::TupleNode>(
        std::vector<Expr>{x, zeros}, ir::Make<ir::TupleTypeNode>(std::vector<ir::Type>{x->type, zeros->type}));
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("concat", {parts}, {{"axis", static_cast<int64_t>(axis)}}));
    dims[axis] = whole;
    x = WithDims(node, std::move(x), std::move(dims));
  }
  return x;
}

// Zeros, except that each element of x is at its index in the tensor to which a pool with this window was applied; a
// larger output_shape adds zeros behind.
Outputs MaxUnpool(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr indices, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  const std::vector<PrimExpr>& in = *type->dims;
  INGOT_RETURN_IF_ERROR(SpatialSuffix(node, in, "a pool").status());
  INGOT_ASSIGN_OR_RETURN(std::vector<int64_t> kernel,
                         node.Ints("kernel_shape", {}, static_cast<int64_t>(in.size()) - 2));
  INGOT_ASSIGN_OR_RETURN(const Window window, ReadWindow(node, std::move(kernel), std::span(in).subspan(2)));
  if (!window.same.empty()) return node.Unsupported("auto_pad SAME with strides over a symbolic dimension");
  std::vector<PrimExpr> dims = {in[0], in[1]};
  for (size_t i = 0; i < window.rank(); ++i) {
    const int64_t more = window.kernel[i] - window.padding[i] - window.padding[window.rank() + i];
    dims.push_back(op::SimplifyDim((in[2 + i] - 1) * window.strides[i] + more));
  }
  indices = WithDims(node, std::move(indices), in);
  const PrimExpr count = Product(dims);
  INGOT_ASSIGN_OR_RETURN(Expr flat, node.Bind("zeros", {ShapeOf({count})}, {{"dtype", *type->dtype}}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {x, ShapeOf({Product(in)})}));
  INGOT_ASSIGN_OR_RETURN(indices, node.Bind("reshape", {indices, ShapeOf({Product(in)})}));
  INGOT_ASSIGN_OR_RETURN(flat, node.Bind("scatter_elements", {flat, indices, x}, {{"axis", int64_t{0}}}));
  INGOT_ASSIGN_OR_RETURN(Expr unpooled, node.Bind("reshape", {flat, ShapeOf(dims)}));
  if (!node.HasInput(2)) return std::vector<Expr>{unpooled};
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> shape, node.DataInts(2, "the output's shape", std::ssize(dims)));
  if (shape.size() != dims.size()) return node.Invalid("the output's shape is of another rank");
  std::vector<int64_t> widths;
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto dim = ir::AsConstInt(dims[i]), wanted = ir::AsConstInt(shape[i]);
    if (!dim || !wanted) return One(FilledUp(node, std::move(unpooled), shape));
    if (*wanted < *dim) return node.Invalid("the output's shape is too small");
    widths.insert(widths.end(), {0, *wanted - *dim});
  }
  return One(node.Call("nn.pad", {unpooled},
                       {{"pad_width", AttrValue::Ints(widths)}, {"pad_value", 0.0}, {"pad_mode", "constant"}}));
}

constexpr OnnxOpRow kConvolutionRows[] = {
    {"AveragePool", nullptr, Pool<PoolKind::kAverage>}, {"Conv", nullptr, Conv},
    {"ConvTranspose", nullptr, ConvTranspose},          {"LpPool", nullptr, Pool<PoolKind::kLp>},
    {"MaxPool", nullptr, Pool<PoolKind::kMax>},         {"MaxUnpool", nullptr, MaxUnpool},
};

}  // namespace

std::span<const OnnxOpRow> ConvolutionOnnxOps() { return kConvolutionRows; }

}  // namespace ingot::importer
