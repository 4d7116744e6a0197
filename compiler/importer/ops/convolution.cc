// Convolution and pooling.
#include "compiler/importer/ops/families.h"

#include <algorithm>

#include "compiler/importer/ops/util.h"

namespace ingot::importer {
namespace {

// The window attributes that Conv and the pools share, for two spatial dimensions.
struct Window {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> padding;  // top, left, bottom, right: ONNX's order of pads
};

constexpr int64_t kMaxWindow = int64_t{1} << 31;  // of each figure; keeps their products inside 64 bits

Result<Window> ReadWindow(const NodeImporter& node, std::vector<int64_t> kernel, std::span<const PrimExpr> spatial) {
  Window window;
  window.kernel = std::move(kernel);
  INGOT_ASSIGN_OR_RETURN(window.strides, node.Ints("strides", {1, 1}, 2));
  INGOT_ASSIGN_OR_RETURN(window.dilations, node.Ints("dilations", {1, 1}, 2));
  INGOT_ASSIGN_OR_RETURN(const std::string auto_pad, node.String("auto_pad", "NOTSET"));
  for (const auto* figures : {&window.kernel, &window.strides, &window.dilations}) {
    for (int64_t figure : *figures) {
      if (figure < 1 || figure > kMaxWindow) {
        return node.Invalid("kernel_shape, strides and dilations must be positive, got " + std::to_string(figure));
      }
    }
  }
  if (auto_pad == "NOTSET") {
    INGOT_ASSIGN_OR_RETURN(window.padding, node.Ints("pads", {0, 0, 0, 0}, 4));
    for (int64_t pad : window.padding) {
      if (pad < 0 || pad > kMaxWindow) return node.Invalid("pads must not be negative, got " + std::to_string(pad));
    }
    return window;
  }
  window.padding = {0, 0, 0, 0};
  if (auto_pad == "VALID") return window;
  if (auto_pad != "SAME_UPPER" && auto_pad != "SAME_LOWER") return node.Invalid("auto_pad is \"" + auto_pad + "\"");
  for (size_t i = 0; i < 2; ++i) {
    const int64_t* size = ir::AsConstInt(spatial[i]);
    if (size == nullptr) return node.Unsupported("auto_pad " + auto_pad + " with a symbolic height or width");
    if (*size > kMaxWindow) return node.Invalid("a spatial dimension of " + std::to_string(*size));
    const int64_t out = *size / window.strides[i] + (*size % window.strides[i] != 0 ? 1 : 0);
    const int64_t needed = (out - 1) * window.strides[i] + (window.kernel[i] - 1) * window.dilations[i] + 1;
    const int64_t total = std::max<int64_t>(needed - *size, 0);
    const int64_t less = total / 2;
    window.padding[i] = auto_pad == "SAME_UPPER" ? less : total - less;
    window.padding[i + 2] = total - window.padding[i];
  }
  return window;
}

Outputs Conv(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr weight, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> w, StaticRankDims(node, 1));
  if (in.size() != 4) return node.Unsupported("a convolution of rank " + std::to_string(in.size()) + "; only 2-D is");
  if (w.size() != 4) return node.Invalid("weights of rank " + std::to_string(w.size()) + ", expected 4");
  std::vector<int64_t> kernel;
  for (size_t i = 2; i < 4; ++i) {
    const int64_t* size = ir::AsConstInt(w[i]);
    if (size == nullptr) return node.Unsupported("a kernel of symbolic size");
    kernel.push_back(*size);
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> stated, node.Ints("kernel_shape", kernel, 2));
  if (stated != kernel) return node.Invalid("kernel_shape differs from the weights' dimensions");
  INGOT_ASSIGN_OR_RETURN(const Window window, ReadWindow(node, kernel, std::span(in).subspan(2)));
  INGOT_ASSIGN_OR_RETURN(const int64_t groups, node.Int("group", 1));
  const ir::Attrs attrs = {{"strides", AttrValue::Ints(window.strides)},
                           {"padding", AttrValue::Ints(window.padding)},
                           {"dilation", AttrValue::Ints(window.dilations)},
                           {"groups", groups}};
  if (!node.HasInput(2)) return One(node.Call("nn.conv2d", {x, weight}, attrs));
  INGOT_ASSIGN_OR_RETURN(Expr product, node.Bind("nn.conv2d", {x, weight}, attrs));
  INGOT_ASSIGN_OR_RETURN(Expr bias, node.Input(2));
  INGOT_ASSIGN_OR_RETURN(bias, node.Bind("reshape", {bias, ShapeOf({ir::Int64(1), w[0], ir::Int64(1), ir::Int64(1)})}));
  return One(node.Call("add", {product, bias}));
}

template <const auto& kRow>
Outputs Pool(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  if (in.size() != 4) return node.Unsupported("a pool of rank " + std::to_string(in.size()) + "; only 2-D is");
  if (node.node().outputs.size() > 1 && !node.node().outputs[1].empty()) {
    return node.Unsupported("the indices output of a pool");
  }
  INGOT_ASSIGN_OR_RETURN(std::vector<int64_t> kernel, node.Ints("kernel_shape", {}, 2));
  INGOT_ASSIGN_OR_RETURN(const Window window, ReadWindow(node, std::move(kernel), std::span(in).subspan(2)));
  INGOT_ASSIGN_OR_RETURN(const int64_t ceil_mode, node.Int("ceil_mode", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t count_include_pad, node.Int("count_include_pad", 0));
  return One(node.Call(kRow, {x},
                       {{"pool_size", AttrValue::Ints(window.kernel)},
                        {"strides", AttrValue::Ints(window.strides)},
                        {"dilation", AttrValue::Ints(window.dilations)},
                        {"padding", AttrValue::Ints(window.padding)},
                        {"ceil_mode", ceil_mode != 0},
                        {"count_include_pad", count_include_pad != 0}}));
}
constexpr char kAveragePool[] = "nn.avg_pool2d";
constexpr char kMaxPool[] = "nn.max_pool2d";

constexpr OnnxOpRow kRows[] = {
    {"AveragePool", nullptr, Pool<kAveragePool>},
    {"Conv", nullptr, Conv},
    {"MaxPool", nullptr, Pool<kMaxPool>},
};

}  // namespace

std::span<const OnnxOpRow> ConvolutionOnnxOps() { return kRows; }

}  // namespace ingot::importer
