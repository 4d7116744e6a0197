// Convolution and pooling over two spatial axes. Layouts are permutations of the letters N, C, H, W (data) and O, I, H,
// W (kernel); padding is [top, left, bottom, right].
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/nn.h"

namespace ingot::op {
namespace {

// [h, w] from a list of one or two numbers.
Result<std::vector<int64_t>> Pair(const std::vector<int64_t>& values, const char* name, int64_t least) {
  const bool fits = (values.size() == 1 || values.size() == 2) && values.front() >= least && values.back() >= least;
  if (fits) return std::vector<int64_t>{values.front(), values.back()};
  return Status(StatusCode::kBadInput, std::string(name) +
                                           ": expected one or two integers >= " + std::to_string(least) + ", got " +
                                           std::to_string(values.size()) + " values");
}
// [top, left, bottom, right] from one, two or four numbers.
Result<std::vector<int64_t>> Padding(const std::vector<int64_t>& values) {
  for (int64_t value : values) {
    if (value < 0)
      return Status(StatusCode::kBadInput, "padding: expected integers >= 0, got " + std::to_string(value));
  }
  switch (values.size()) {
    case 1:
      return std::vector<int64_t>(4, values[0]);
    case 2:
      return std::vector<int64_t>{values[0], values[1], values[0], values[1]};
    case 4:
      return values;
    default:
      return Status(StatusCode::kBadInput,
                    "padding: expected one, two or four integers, got " + std::to_string(values.size()) + " values");
  }
}

Result<CallParts> NormalizeWindow(CallParts parts) {
  for (const char* name : {"pool_size", "strides", "dilation"}) {
    if (parts.attrs.Find(name) == nullptr) continue;
    INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> pair, Pair(parts.attrs.GetInts(name), name, 1));
    parts.attrs = parts.attrs.With(name, ir::AttrValue::Ints(pair));
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> padding, Padding(parts.attrs.GetInts("padding")));
  parts.attrs = parts.attrs.With("padding", ir::AttrValue::Ints(padding));
  if (parts.attrs.Find("out_layout")->is_none()) {
    const char* data_layout = parts.attrs.Find("data_layout") != nullptr ? "data_layout" : "layout";
    parts.attrs = parts.attrs.With("out_layout", parts.attrs.GetString(data_layout));
  }
  return parts;
}

// Where each of four letters stands in a layout.
Result<std::vector<size_t>> LayoutAxes(const ir::Call& call, const char* attr, const char* letters) {
  const std::string& layout = call->attrs.GetString(attr);
  std::vector<size_t> axes;
  for (const char* letter = letters; *letter != '\0'; ++letter) {
    const size_t axis = layout.find(*letter);
    if (axis == std::string::npos || layout.size() != 4) {
      return OpError(call,
                     std::string(attr) + ": expected a permutation of \"" + letters + "\", got \"" + layout + "\"");
    }
    axes.push_back(axis);
  }
  return axes;
}

// How many windows fit: (in + padding - dilation * (window - 1) - 1) / stride + 1, rounded down, or up in ceil mode.
ir::PrimExpr OutputExtent(const ir::PrimExpr& in, const ir::PrimExpr& window, int64_t padding, int64_t dilation,
                          int64_t stride, bool ceil_mode) {
  const ir::PrimExpr slack = in + padding - (window - 1) * dilation - 1 + (ceil_mode ? stride - 1 : 0);
  return SimplifyDim(ir::FloorDiv(slack, ir::Int64(stride)) + 1);
}

Status CheckExtent(const ir::Call& call, const ir::PrimExpr& extent, const char* axis) {
  const int64_t* value = ir::AsConstInt(extent);
  if (value == nullptr || *value >= 0) return Status();
  return OpError(call, std::string("the window is larger than the padded input along ") + axis);
}

// ---- conv2d
Result<ir::Type> InferConv2d(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType data, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType weight, TensorArg(call, 1));
  INGOT_ASSIGN_OR_RETURN(std::optional<DataType> dtype, CommonDataType(call, data, weight));
  if (const std::optional<DataType> out_dtype = DataTypeAttr(call, "out_dtype")) dtype = out_dtype;
  for (const ir::TensorType& tensor : {data, weight}) {
    if (tensor->rank >= 0 && tensor->rank != 4) {
      return OpError(call, "expected tensors of rank 4, got " + Describe(tensor));
    }
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<size_t> in_axes, LayoutAxes(call, "data_layout", "NCHW"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<size_t> kernel_axes, LayoutAxes(call, "kernel_layout", "OIHW"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<size_t> out_axes, LayoutAxes(call, "out_layout", "NCHW"));
  if (!data->dims || !weight->dims) return TensorOfRank(4, dtype, data);
  const Dims& in = *data->dims;
  const Dims& kernel = *weight->dims;
  const int64_t groups = call->attrs.GetInt("groups");
  if (groups < 1) return OpError(call, "groups: expected an integer >= 1, got " + std::to_string(groups));
  if (DimsDiffer(in[in_axes[1]], kernel[kernel_axes[1]] * groups)) {
    return OpError(call, "expected " + Describe(in[in_axes[1]]) + " input channels of " + std::to_string(groups) +
                             " groups in the weight, got " + Describe(data) + " and " + Describe(weight));
  }
  const int64_t* out_channels = ir::AsConstInt(kernel[kernel_axes[0]]);
  if (out_channels != nullptr && *out_channels % groups != 0) {
    return OpError(call,
                   "expected output channels in " + std::to_string(groups) + " equal groups, got " + Describe(weight));
  }
  const std::vector<int64_t> strides = call->attrs.GetInts("strides");
  const std::vector<int64_t> padding = call->attrs.GetInts("padding");
  const std::vector<int64_t> dilation = call->attrs.GetInts("dilation");
  Dims out(4);
  out[out_axes[0]] = in[in_axes[0]];
  out[out_axes[1]] = kernel[kernel_axes[0]];
  for (size_t i : {0, 1}) {
    out[out_axes[2 + i]] = OutputExtent(in[in_axes[2 + i]], kernel[kernel_axes[2 + i]], padding[i] + padding[2 + i],
                                        dilation[i], strides[i], false);
    INGOT_RETURN_IF_ERROR(CheckExtent(call, out[out_axes[2 + i]], i == 0 ? "H" : "W"));
  }
  return TensorOf(std::move(out), dtype, data);
}

Result<std::vector<ReferenceTensor>> ReferenceConv2d(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<size_t> in_axes, LayoutAxes(call, "data_layout", "NCHW"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<size_t> kernel_axes, LayoutAxes(call, "kernel_layout", "OIHW"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<size_t> out_axes, LayoutAxes(call, "out_layout", "NCHW"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  const std::vector<int64_t> strides = call->attrs.GetInts("strides");
  const std::vector<int64_t> padding = call->attrs.GetInts("padding");
  const std::vector<int64_t> dilation = call->attrs.GetInts("dilation");
  const ReferenceTensor& data = inputs[0];
  const ReferenceTensor& weight = inputs[1];
  const int64_t channels_per_group = weight.dims[kernel_axes[1]];
  const int64_t outputs_per_group = weight.dims[kernel_axes[0]] / call->attrs.GetInt("groups");
  ReferenceTensor out = NewReference(*ir::As<ir::TensorTypeNode>(call->type)->dtype, dims);
  ForEachIndex(dims, [&](const Index& at, int64_t flat) {
    const int64_t group = at[out_axes[1]] / outputs_per_group;
    double sum = 0;
    ForEachIndex(weight.dims, [&](const Index& tap, int64_t weight_flat) {
      if (tap[kernel_axes[0]] != at[out_axes[1]]) return;
      Index from(4);
      from[in_axes[0]] = at[out_axes[0]];
      from[in_axes[1]] = group * channels_per_group + tap[kernel_axes[1]];
      for (size_t i : {0, 1}) {
        const int64_t position = at[out_axes[2 + i]] * strides[i] + tap[kernel_axes[2 + i]] * dilation[i] - padding[i];
        if (position < 0 || position >= data.dims[in_axes[2 + i]]) return;
        from[in_axes[2 + i]] = position;
      }
      sum += GetNumber(data, Flatten(data.dims, from)) * GetNumber(weight, weight_flat);
    });
    SetNumber(out, flat, sum);
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}

topi::Window2d WindowOf(const ir::Call& call) {
  return {call->attrs.GetInts("strides"), call->attrs.GetInts("padding"), call->attrs.GetInts("dilation")};
}

bool HasLayout(const ir::Call& call, const char* attr, std::string_view layout) {
  return call->attrs.GetString(attr) == layout;
}
bool IsNchw(const ir::Call& call, const Target&) {
  return HasLayout(call, "data_layout", "NCHW") && HasLayout(call, "kernel_layout", "OIHW") &&
         HasLayout(call, "out_layout", "NCHW");
}

te::Tensor DefineConv2d(const TeArgs& args) {
  return topi::Conv2d(args.input(0), args.input(1), WindowOf(args.call()), args.call()->attrs.GetInt("groups"),
                      args.out_dtype());
}

// A multiplication and an addition per output element and tap.
double Conv2dCost(const ir::Call& call, const Target&) {
  const auto* weight = ir::As<ir::TensorTypeNode>(call->args[1]->type);
  const Dims taps(weight->dims->begin() + 1, weight->dims->end());
  return 2 * EstimateElements(call->type) * EstimateElements(TensorOf(taps, weight->dtype, nullptr));
}

// ---- Pooling
Result<ir::Type> InferPool2d(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType data, TensorArg(call, 0));
  if (data->rank >= 0 && data->rank != 4) return OpError(call, "expected a tensor of rank 4, got " + Describe(data));
  if (data->dtype && data->dtype->is_bool()) return OpError(call, "expected numbers, got " + Describe(data));
  INGOT_ASSIGN_OR_RETURN(const std::vector<size_t> in_axes, LayoutAxes(call, "layout", "NCHW"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<size_t> out_axes, LayoutAxes(call, "out_layout", "NCHW"));
  if (!data->dims) return TensorOfRank(4, data->dtype, data);
  const std::vector<int64_t> window = call->attrs.GetInts("pool_size");
  const std::vector<int64_t> strides = call->attrs.GetInts("strides");
  const std::vector<int64_t> padding = call->attrs.GetInts("padding");
  const std::vector<int64_t> dilation = call->attrs.GetInts("dilation");
  const bool ceil_mode = call->attrs.GetBool("ceil_mode");
  Dims out(4);
  for (size_t i = 0; i < 4; ++i) {
    const ir::PrimExpr& in = (*data->dims)[in_axes[i]];
    const size_t j = i - 2;
    out[out_axes[i]] =
        i < 2 ? in
              : OutputExtent(in, ir::Int64(window[j]), padding[j] + padding[2 + j], dilation[j], strides[j], ceil_mode);
    INGOT_RETURN_IF_ERROR(CheckExtent(call, out[out_axes[i]], i == 2 ? "H" : "W"));
  }
  return TensorOf(std::move(out), data->dtype, data);
}

enum class Pool : uint8_t { kMax, kAverage };

template <Pool pool>
Result<std::vector<ReferenceTensor>> ReferencePool2d(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<size_t> in_axes, LayoutAxes(call, "layout", "NCHW"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<size_t> out_axes, LayoutAxes(call, "out_layout", "NCHW"));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  const std::vector<int64_t> window = call->attrs.GetInts("pool_size");
  const std::vector<int64_t> strides = call->attrs.GetInts("strides");
  const std::vector<int64_t> padding = call->attrs.GetInts("padding");
  const std::vector<int64_t> dilation = call->attrs.GetInts("dilation");
  const bool count_padding = call->attrs.GetBool("count_include_pad");
  const ReferenceTensor& data = inputs[0];
  ReferenceTensor out = NewReference(data.dtype, dims);
  ForEachIndex(dims, [&](const Index& at, int64_t flat) {
    double best = data.dtype.is_floating() ? -std::numeric_limits<double>::infinity()
                                           : -std::ldexp(1.0, data.dtype.is_int() ? data.dtype.bits - 1 : 0);
    double sum = 0;
    int64_t inside = 0;
    int64_t padded = 0;
    ForEachIndex(window, [&](const Index& tap, int64_t) {
      Index from(4);
      bool is_inside = true;
      bool is_padded = true;
      for (size_t i = 0; i < 2; ++i) {
        from[in_axes[i]] = at[out_axes[i]];
        const int64_t extent = data.dims[in_axes[2 + i]];
        const int64_t position = at[out_axes[2 + i]] * strides[i] + tap[i] * dilation[i] - padding[i];
        is_inside = is_inside && position >= 0 && position < extent;
        is_padded = is_padded && position < extent + padding[2 + i];
        from[in_axes[2 + i]] = position;
      }
      padded += is_padded ? 1 : 0;
      if (!is_inside) return;
      const double value = GetNumber(data, Flatten(data.dims, from));
      best = std::isnan(value) || value > best ? value : best;
      sum += value;
      ++inside;
    });
    const double count = static_cast<double>(std::max<int64_t>(count_padding ? padded : inside, 1));
    SetNumber(out, flat, pool == Pool::kMax ? best : sum / count);
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}

template <Pool pool>
te::Tensor DefinePool2d(const TeArgs& args) {
  const std::vector<int64_t> pool_size = args.call()->attrs.GetInts("pool_size");
  const topi::Window2d window = WindowOf(args.call());
  if (pool == Pool::kMax) return topi::MaxPool2d(args.input(0), pool_size, window, args.out_dims());
  return topi::AvgPool2d(args.input(0), pool_size, window, args.out_dims(),
                         args.call()->attrs.GetBool("count_include_pad"));
}

bool IsPoolNchw(const ir::Call& call, const Target&) {
  return HasLayout(call, "layout", "NCHW") && HasLayout(call, "out_layout", "NCHW");
}

double Pool2dCost(const ir::Call& call, const Target&) {
  const std::vector<int64_t> pool_size = call->attrs.GetInts("pool_size");
  return EstimateElements(call->type) * static_cast<double>(pool_size[0]) * static_cast<double>(pool_size[1]);
}

std::vector<AttrSpec> PoolAttrs() {
  const ir::AttrValue ones = ir::AttrValue::Ints({1, 1});
  return {{"pool_size", AttrType::kInts, ones},  {"strides", AttrType::kInts, ones},
          {"dilation", AttrType::kInts, ones},   {"padding", AttrType::kInts, ir::AttrValue::Ints({0, 0, 0, 0})},
          {"ceil_mode", AttrType::kBool, false}, {"count_include_pad", AttrType::kBool, false},
          {"layout", AttrType::kString, "NCHW"}, {"out_layout", AttrType::kString}};
}

}  // namespace

std::vector<OpRow> ConvolutionOps() {
  const DataType f32 = DataType::Float(32);
  const ir::AttrValue ones = ir::AttrValue::Ints({1, 1});
  std::vector<OpRow> rows;
  rows.push_back({.name = "nn.conv2d",
                  .summary = "cross-correlation of images with a kernel per output channel",
                  .arg_names = {"data", "weight"},
                  .attrs = {{"strides", AttrType::kInts, ones},
                            {"padding", AttrType::kInts, ir::AttrValue::Ints({0, 0, 0, 0})},
                            {"dilation", AttrType::kInts, ones},
                            {"groups", AttrType::kInt, 1},
                            {"data_layout", AttrType::kString, "NCHW"},
                            {"kernel_layout", AttrType::kString, "OIHW"},
                            {"out_layout", AttrType::kString},
                            {"out_dtype", AttrType::kDataType}},
                  .fusion = FusionClass::kOutFusible,
                  .normalize = NormalizeWindow,
                  .infer = InferConv2d,
                  .reference = ReferenceConv2d,
                  .implementations = {{"direct", IsNchw, Conv2dCost, {"NCHW", "OIHW", "NCHW"}, Build<DefineConv2d>}},
                  .cases = {.rank0 = false, .dtypes = {f32}}});
  rows.push_back(
      {.name = "nn.max_pool2d",
       .summary = "the greatest value under a window; padding never wins",
       .arg_names = {"data"},
       .attrs = PoolAttrs(),
       .fusion = FusionClass::kOutFusible,
       .normalize = NormalizeWindow,
       .infer = InferPool2d,
       .reference = ReferencePool2d<Pool::kMax>,
       .implementations = {{"direct", IsPoolNchw, Pool2dCost, {"NCHW", "NCHW"}, Build<DefinePool2d<Pool::kMax>>}},
       .cases = {.rank0 = false, .dtypes = {f32, DataType::Int(32)}}});
  rows.push_back(
      {.name = "nn.avg_pool2d",
       .summary = "the mean of the values under a window",
       .arg_names = {"data"},
       .attrs = PoolAttrs(),
       .fusion = FusionClass::kOutFusible,
       .normalize = NormalizeWindow,
       .infer = InferPool2d,
       .reference = ReferencePool2d<Pool::kAverage>,
       .implementations = {{"direct", IsPoolNchw, Pool2dCost, {"NCHW", "NCHW"}, Build<DefinePool2d<Pool::kAverage>>}},
       .cases = {.rank0 = false, .dtypes = {f32}}});
  return rows;
}

}  // namespace ingot::op
