// Convolution, transposed convolution and pooling over one, two or three spatial axes. Layouts are permutations of N, C
// and the spatial letters (data), of O, I and these (kernel; I, O of transposed ones): W, HW or DHW. Padding is the
// number of elements before each spatial axis, then after each.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "compiler/op/blocked.h"
#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/nn.h"
#include "compiler/op/window_cost.h"

namespace ingot::op {
namespace {

// The default layouts, by the number of spatial axes.
constexpr const char* kDataLayouts[] = {"", "NCW", "NCHW", "NCDHW"};
constexpr const char* kKernelLayouts[] = {"", "OIW", "OIHW", "OIDHW"};
constexpr const char* kTransposedKernelLayouts[] = {"", "IOW", "IOHW", "IODHW"};

// One value per spatial axis, from that many values or from one for all axes.
Result<std::vector<int64_t>> PerAxis(const std::vector<int64_t>& values, size_t rank, const char* name, int64_t least) {
  const bool fits = (values.size() == 1 || values.size() == rank) &&
                    std::ranges::all_of(values, [&](int64_t value) { return value >= least; });
  if (fits) return values.size() == rank ? values : std::vector<int64_t>(rank, values[0]);
  const std::string count = rank == 1 ? "one integer" : rank == 2 ? "one or two integers" : "one or three integers";
  return Status(StatusCode::kBadInput, std::string(name) + ": expected " + count + " >= " + std::to_string(least) +
                                           ", got " + std::to_string(values.size()) + " values");
}
// The padding before each axis, then after each axis, from all of these values, from one value per axis for both sides,
// or from one value.
Result<std::vector<int64_t>> Padding(const std::vector<int64_t>& values, size_t rank) {
  for (int64_t value : values) {
    if (value < 0)
      return Status(StatusCode::kBadInput, "padding: expected integers >= 0, got " + std::to_string(value));
  }
  if (values.size() == 2 * rank) return values;
  if (values.size() == 1) return std::vector<int64_t>(2 * rank, values[0]);
  if (values.size() == rank) {
    std::vector<int64_t> both = values;
    both.insert(both.end(), values.begin(), values.end());
    return both;
  }
  const char* count = rank == 1 ? "one or two" : rank == 2 ? "one, two or four" : "one, three or six";
  return Status(StatusCode::kBadInput, std::string("padding: expected ") + count + " integers, got " +
                                           std::to_string(values.size()) + " values");
}

Result<CallParts> NormalizeWindow(CallParts parts, size_t rank) {
  for (const char* name : {"pool_size", "strides", "dilation", "output_padding"}) {
    if (parts.attrs.Find(name) == nullptr) continue;
    const int64_t least = name == std::string_view("output_padding") ? 0 : 1;
    INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> values, PerAxis(parts.attrs.GetInts(name), rank, name, least));
    parts.attrs = parts.attrs.With(name, ir::AttrValue::Ints(values));
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> padding, Padding(parts.attrs.GetInts("padding"), rank));
  parts.attrs = parts.attrs.With("padding", ir::AttrValue::Ints(padding));
  if (parts.attrs.Find("out_layout")->is_none()) {
    const char* data_layout = parts.attrs.Find("data_layout") != nullptr ? "data_layout" : "layout";
    parts.attrs = parts.attrs.With("out_layout", parts.attrs.GetString(data_layout));
  }
  return parts;
}
template <size_t rank>
Result<CallParts> NormalizeWindow(CallParts parts) {
  return NormalizeWindow(std::move(parts), rank);
}

// The position of each of the letters in the layout that the attribute names.
Result<std::vector<size_t>> LayoutAxes(const ir::Call& call, const char* attr, std::string_view letters) {
  const std::string& layout = call->attrs.GetString(attr);
  std::vector<size_t> axes;
  for (char letter : letters) {
    const size_t axis = layout.find(letter);
    if (axis == std::string::npos || layout.size() != letters.size()) {
      return OpError(call, std::string(attr) + ": expected a permutation of \"" + std::string(letters) + "\", got \"" +
                               layout + "\"");
    }
    axes.push_back(axis);
  }
  return axes;
}

// The attributes of a window, and where the axes of each tensor stand: n, channels, spatial; or output channels, input
// channels, spatial for the kernel (input channels first when it is transposed).
struct Windows {
  std::vector<int64_t> strides, padding, dilation;
  std::vector<size_t> in, kernel, out;
};
Result<Windows> ReadWindows(const ir::Call& call, size_t rank, const char* const* kernel_layouts) {
  Windows windows{
      call->attrs.GetInts("strides"), call->attrs.GetInts("padding"), call->attrs.GetInts("dilation"), {}, {}, {}};
  const char* data_layout = kernel_layouts != nullptr ? "data_layout" : "layout";
  INGOT_ASSIGN_OR_RETURN(windows.in, LayoutAxes(call, data_layout, kDataLayouts[rank]));
  INGOT_ASSIGN_OR_RETURN(windows.out, LayoutAxes(call, "out_layout", kDataLayouts[rank]));
  if (kernel_layouts != nullptr) {
    INGOT_ASSIGN_OR_RETURN(windows.kernel, LayoutAxes(call, "kernel_layout", kernel_layouts[rank]));
  }
  return windows;
}

topi::Window WindowOf(const ir::Call& call) {
  return {call->attrs.GetInts("strides"), call->attrs.GetInts("padding"), call->attrs.GetInts("dilation")};
}

// How many windows fit: (in + padding - dilation * (window - 1) - 1) / stride + 1, rounded down, or up in ceil mode,
// where a window that would start after the end of the data does not count (ONNX, PyTorch).
ir::PrimExpr OutputExtent(const ir::PrimExpr& in, const ir::PrimExpr& window, int64_t before, int64_t behind,
                          int64_t dilation, int64_t stride, bool ceil_mode) {
  const ir::PrimExpr reach = SimplifyDim((window - 1) * dilation + 1);
  const ir::PrimExpr slack = in + (before + behind) - reach + (ceil_mode ? stride - 1 : 0);
  const ir::PrimExpr windows = SimplifyDim(ir::FloorDiv(slack, ir::Int64(stride)) + 1);
  const auto constant_reach = ir::AsConstInt(reach);
  if (!ceil_mode || (constant_reach && behind + stride <= *constant_reach)) return windows;
  return SimplifyDim(ir::Min(windows, ir::FloorDiv(in + (before - 1), ir::Int64(stride)) + 1));
}

Status CheckExtent(const ir::Call& call, const ir::PrimExpr& extent, size_t rank, size_t axis) {
  const auto value = ir::AsConstInt(extent);
  if (!value || *value >= 0) return Status();
  return OpError(call, std::string("the window is larger than the padded input along ") + kDataLayouts[rank][2 + axis]);
}

// ---- Convolution
// Checks what both kinds of convolution need, ranks and channels in groups, and returns the result's dtype.
Result<std::optional<DataType>> CheckOperands(const ir::Call& call, size_t rank) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType data, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType weight, TensorArg(call, 1));
  INGOT_ASSIGN_OR_RETURN(std::optional<DataType> dtype, CommonDataType(call, data, weight));
  if (const std::optional<DataType> out_dtype = DataTypeAttr(call, "out_dtype")) dtype = out_dtype;
  for (const ir::TensorType& tensor : {data, weight}) {
    if (tensor->rank >= 0 && tensor->rank != static_cast<int>(rank) + 2) {
      return OpError(call, "expected tensors of rank " + std::to_string(rank + 2) + ", got " + Describe(tensor));
    }
  }
  const int64_t groups = call->attrs.GetInt("groups");
  if (groups < 1) return OpError(call, "groups: expected an integer >= 1, got " + std::to_string(groups));
  return dtype;
}

Result<ir::Type> InferConv(const ir::Call& call, size_t rank) {
  INGOT_ASSIGN_OR_RETURN(const std::optional<DataType> dtype, CheckOperands(call, rank));
  INGOT_ASSIGN_OR_RETURN(const Windows windows, ReadWindows(call, rank, kKernelLayouts));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType data, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType weight, TensorArg(call, 1));
  if (!data->dims || !weight->dims) return TensorOfRank(static_cast<int>(rank) + 2, dtype, data);
  const Dims& in = *data->dims;
  const Dims& kernel = *weight->dims;
  const int64_t groups = call->attrs.GetInt("groups");
  if (DimsDiffer(in[windows.in[1]], kernel[windows.kernel[1]] * groups)) {
    return OpError(call, "expected " + Describe(in[windows.in[1]]) + " input channels of " + std::to_string(groups) +
                             " groups in the weight, got " + Describe(data) + " and " + Describe(weight));
  }
  const auto out_channels = ir::AsConstInt(kernel[windows.kernel[0]]);
  if (out_channels && *out_channels % groups != 0) {
    return OpError(call,
                   "expected output channels in " + std::to_string(groups) + " equal groups, got " + Describe(weight));
  }
  Dims out(rank + 2);
  out[windows.out[0]] = in[windows.in[0]];
  out[windows.out[1]] = kernel[windows.kernel[0]];
  for (size_t i = 0; i < rank; ++i) {
    ir::PrimExpr& extent = out[windows.out[2 + i]];
    extent = OutputExtent(in[windows.in[2 + i]], kernel[windows.kernel[2 + i]], windows.padding[i],
                          windows.padding[rank + i], windows.dilation[i], windows.strides[i], false);
    INGOT_RETURN_IF_ERROR(CheckExtent(call, extent, rank, i));
  }
  return TensorOf(std::move(out), dtype, data);
}
template <size_t rank>
Result<ir::Type> InferConv(const ir::Call& call) {
  if (rank >= 2 && HasBlocks(call)) return InferBlocked(call, InferConv<rank>);
  return InferConv(call, rank);
}

Result<std::vector<ReferenceTensor>> ReferenceConv(const ir::Call& call, std::span<const ReferenceTensor> inputs,
                                                   size_t rank) {
  INGOT_ASSIGN_OR_RETURN(const Windows windows, ReadWindows(call, rank, kKernelLayouts));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  const ReferenceTensor& data = inputs[0];
  const ReferenceTensor& weight = inputs[1];
  const int64_t channels_per_group = weight.dims[windows.kernel[1]];
  const int64_t outputs_per_group = weight.dims[windows.kernel[0]] / call->attrs.GetInt("groups");
  ReferenceTensor out = NewReference(*ir::As<ir::TensorTypeNode>(call->type)->dtype, dims);
  ForEachIndex(dims, [&](const Index& at, int64_t flat) {
    const int64_t group = at[windows.out[1]] / outputs_per_group;
    double sum = 0;
    ForEachIndex(weight.dims, [&](const Index& tap, int64_t weight_flat) {
      if (tap[windows.kernel[0]] != at[windows.out[1]]) return;
      Index from(rank + 2);
      from[windows.in[0]] = at[windows.out[0]];
      from[windows.in[1]] = group * channels_per_group + tap[windows.kernel[1]];
      for (size_t i = 0; i < rank; ++i) {
        const int64_t position = at[windows.out[2 + i]] * windows.strides[i] +
                                 tap[windows.kernel[2 + i]] * windows.dilation[i] - windows.padding[i];
        if (position < 0 || position >= data.dims[windows.in[2 + i]]) return;
        from[windows.in[2 + i]] = position;
      }
      sum += GetNumber(data, Flatten(data.dims, from)) * GetNumber(weight, weight_flat);
    });
    SetNumber(out, flat, sum);
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}
template <size_t rank>
Result<std::vector<ReferenceTensor>> ReferenceConv(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  if (rank >= 2 && HasBlocks(call)) return ReferenceBlocked(call, inputs, InferConv<rank>, ReferenceConv<rank>);
  return ReferenceConv(call, inputs, rank);
}

bool HasLayout(const ir::Call& call, const char* attr, std::string_view layout) {
  return call->attrs.GetString(attr) == layout;
}
template <size_t rank>
bool IsPlainConv(const ir::Call& call, const Target&) {
  return HasLayout(call, "data_layout", kDataLayouts[rank]) && HasLayout(call, "kernel_layout", kKernelLayouts[rank]) &&
         HasLayout(call, "out_layout", kDataLayouts[rank]);
}

// The kernel's layouts for GPUs (packing.cc), by the number of spatial axes: output channels are the last axis.
constexpr const char* kTapsFirstLayouts[] = {"", "WIO", "HWIO", "DHWIO"};
template <size_t rank>
bool IsTapsFirstConv(const ir::Call& call, const Target&) {
  return HasLayout(call, "data_layout", kDataLayouts[rank]) &&
         HasLayout(call, "kernel_layout", kTapsFirstLayouts[rank]) && HasLayout(call, "out_layout", kDataLayouts[rank]);
}
te::Tensor DefineTapsFirstConv(const TeArgs& args) {
  const te::Tensor& weight = args.input(1);
  const size_t rank = weight.shape().size() - 2;
  topi::Shape shape = {weight.shape()[rank + 1], weight.shape()[rank]};
  shape.insert(shape.end(), weight.shape().begin(), weight.shape().end() - 2);
  const te::Tensor kernel = te::Compute(
      shape,
      [&](const te::Indices& i) {
        te::Indices from(i.begin() + 2, i.end());
        from.insert(from.end(), {i[1], i[0]});
        return weight(from);
      },
      "kernel");
  return topi::Conv(args.input(0), kernel, WindowOf(args.call()), args.call()->attrs.GetInt("groups"),
                    args.out_dtype());
}
// Calls in this layout have no other implementation.
double OnlyCost(const ir::Call& call, const Target&) { return EstimateElements(call->type); }

te::Tensor DefineConv(const TeArgs& args) {
  return topi::Conv(args.input(0), args.input(1), WindowOf(args.call()), args.call()->attrs.GetInt("groups"),
                    args.out_dtype());
}

// Of tensors in canonical layouts; only such calls have another implementation.
WindowExtents WindowExtentsOf(const ir::Call& call, double taps, bool is_one_tap) {
  WindowExtents window{EstimateElements(call->type), EstimateElements(call->args[0]->type), taps};
  const Dims& out = *ir::As<ir::TensorTypeNode>(call->type)->dims;
  const double image = EstimateElements(TensorOf(Dims(out.begin() + 2, out.end()), std::nullopt, nullptr));
  window.row = static_cast<double>(ir::AsConstInt(out.back()).value_or(1));
  // One column is computed as one row, and so is an image of which every element is a window.
  const Dims& in = *ir::As<ir::TensorTypeNode>(call->args[0]->type)->dims;
  if (window.row == 1 || (is_one_tap && DimsEqual(out.back(), in.back()))) window.row = image;
  window.is_strided = std::ranges::any_of(call->attrs.GetInts("strides"), [](int64_t stride) { return stride > 1; });
  return window;
}

double TapsOf(const ir::Call& call) {
  const auto* weight = ir::As<ir::TensorTypeNode>(call->args[1]->type);
  return EstimateElements(TensorOf(Dims(weight->dims->begin() + 1, weight->dims->end()), weight->dtype, nullptr));
}

double ConvCost(const ir::Call& call, const Target&) {
  const auto* weight = ir::As<ir::TensorTypeNode>(call->args[1]->type);
  const bool is_one_tap = std::ranges::all_of(weight->dims->begin() + 2, weight->dims->end(),
                                              [](const ir::PrimExpr& extent) { return ir::IsConstInt(extent, 1); });
  const WindowExtents window = WindowExtentsOf(call, TapsOf(call), is_one_tap);
  const bool is_depthwise = ir::IsConstInt((*weight->dims)[1], 1) && call->attrs.GetInt("groups") > 1;
  const double cost = is_depthwise ? PlainChannelwiseCost(window) : PlainConvCost(window);
  // Of each product's operands to 32 bits; and integers are multiplied slowly.
  constexpr double kWideningOfIntegers = 4, kWidening = 1.5;
  const bool is_narrow = weight->dtype && weight->dtype->is_floating() && weight->dtype->bits < 32;
  return cost * (weight->dtype == DataType::Int(16) ? kWideningOfIntegers : is_narrow ? kWidening : 1);
}

double ConvTransposeCost(const ir::Call& call, const Target&) {
  return 2 * EstimateElements(call->type) * TapsOf(call);
}

// ---- Transposed convolution: every element of the data adds the kernel, scaled, to the result.
Result<ir::Type> InferConvTranspose(const ir::Call& call, size_t rank) {
  INGOT_ASSIGN_OR_RETURN(const std::optional<DataType> dtype, CheckOperands(call, rank));
  INGOT_ASSIGN_OR_RETURN(const Windows windows, ReadWindows(call, rank, kTransposedKernelLayouts));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType data, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType weight, TensorArg(call, 1));
  const std::vector<int64_t> extra = call->attrs.GetInts("output_padding");
  for (size_t i = 0; i < rank; ++i) {
    if (extra[i] >= std::max(windows.strides[i], windows.dilation[i])) {
      return OpError(
          call, "output_padding: expected integers below the stride or the dilation, got " + std::to_string(extra[i]));
    }
  }
  if (!data->dims || !weight->dims) return TensorOfRank(static_cast<int>(rank) + 2, dtype, data);
  const Dims& in = *data->dims;
  const Dims& kernel = *weight->dims;
  const int64_t groups = call->attrs.GetInt("groups");
  const auto channels = ir::AsConstInt(kernel[windows.kernel[0]]);
  if (DimsDiffer(in[windows.in[1]], kernel[windows.kernel[0]]) || (channels && *channels % groups != 0)) {
    return OpError(call, "expected " + Describe(in[windows.in[1]]) + " input channels in " + std::to_string(groups) +
                             " equal groups in the weight, got " + Describe(data) + " and " + Describe(weight));
  }
  Dims out(rank + 2);
  out[windows.out[0]] = in[windows.in[0]];
  out[windows.out[1]] = SimplifyDim(kernel[windows.kernel[1]] * groups);
  for (size_t i = 0; i < rank; ++i) {
    const ir::PrimExpr reach = (kernel[windows.kernel[2 + i]] - 1) * windows.dilation[i] + 1;
    const int64_t cut = windows.padding[i] + windows.padding[rank + i];
    ir::PrimExpr& extent = out[windows.out[2 + i]];
    extent = SimplifyDim((in[windows.in[2 + i]] - 1) * windows.strides[i] + reach + (extra[i] - cut));
    INGOT_RETURN_IF_ERROR(CheckExtent(call, extent, rank, i));
  }
  return TensorOf(std::move(out), dtype, data);
}
template <size_t rank>
Result<ir::Type> InferConvTranspose(const ir::Call& call) {
  return InferConvTranspose(call, rank);
}

Result<std::vector<ReferenceTensor>> ReferenceConvTranspose(const ir::Call& call,
                                                            std::span<const ReferenceTensor> inputs, size_t rank) {
  INGOT_ASSIGN_OR_RETURN(const Windows windows, ReadWindows(call, rank, kTransposedKernelLayouts));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  const ReferenceTensor& data = inputs[0];
  const ReferenceTensor& weight = inputs[1];
  const int64_t channels_per_group = weight.dims[windows.kernel[0]] / call->attrs.GetInt("groups");
  const int64_t outputs_per_group = weight.dims[windows.kernel[1]];
  std::vector<double> sums(static_cast<size_t>(CountOf(dims)), 0);
  ForEachIndex(data.dims, [&](const Index& from, int64_t data_flat) {
    ForEachIndex(weight.dims, [&](const Index& tap, int64_t weight_flat) {
      if (tap[windows.kernel[0]] != from[windows.in[1]]) return;
      Index at(rank + 2);
      at[windows.out[0]] = from[windows.in[0]];
      at[windows.out[1]] = from[windows.in[1]] / channels_per_group * outputs_per_group + tap[windows.kernel[1]];
      for (size_t i = 0; i < rank; ++i) {
        const int64_t position = from[windows.in[2 + i]] * windows.strides[i] +
                                 tap[windows.kernel[2 + i]] * windows.dilation[i] - windows.padding[i];
        if (position < 0 || position >= dims[windows.out[2 + i]]) return;
        at[windows.out[2 + i]] = position;
      }
      sums[static_cast<size_t>(Flatten(dims, at))] += GetNumber(data, data_flat) * GetNumber(weight, weight_flat);
    });
  });
  ReferenceTensor out = NewReference(*ir::As<ir::TensorTypeNode>(call->type)->dtype, dims);
  for (size_t i = 0; i < sums.size(); ++i) SetNumber(out, static_cast<int64_t>(i), sums[i]);
  return std::vector<ReferenceTensor>{std::move(out)};
}
template <size_t rank>
Result<std::vector<ReferenceTensor>> ReferenceConvTranspose(const ir::Call& call,
                                                            std::span<const ReferenceTensor> inputs) {
  return ReferenceConvTranspose(call, inputs, rank);
}

template <size_t rank>
bool IsPlainConvTranspose(const ir::Call& call, const Target&) {
  return HasLayout(call, "data_layout", kDataLayouts[rank]) &&
         HasLayout(call, "kernel_layout", kTransposedKernelLayouts[rank]) &&
         HasLayout(call, "out_layout", kDataLayouts[rank]);
}

te::Tensor DefineConvTranspose(const TeArgs& args) {
  return topi::ConvTranspose(args.input(0), args.input(1), WindowOf(args.call()), args.call()->attrs.GetInt("groups"),
                             args.out_dims(), args.out_dtype());
}

// ---- Pooling
enum class Pool : uint8_t { kMax, kAverage, kLp };

Result<ir::Type> InferPool(const ir::Call& call, size_t rank) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType data, TensorArg(call, 0));
  if (data->rank >= 0 && data->rank != static_cast<int>(rank) + 2) {
    return OpError(call, "expected a tensor of rank " + std::to_string(rank + 2) + ", got " + Describe(data));
  }
  const bool is_lp = call->attrs.Find("p") != nullptr;
  if (data->dtype && (data->dtype->is_bool() || (is_lp && !data->dtype->is_floating()))) {
    return OpError(call, std::string(is_lp ? "expected floats" : "expected numbers") + ", got " + Describe(data));
  }
  INGOT_ASSIGN_OR_RETURN(const Windows windows, ReadWindows(call, rank, nullptr));
  if (is_lp && call->attrs.GetInt("p") < 1) {
    return OpError(call, "p: expected an integer >= 1, got " + std::to_string(call->attrs.GetInt("p")));
  }
  if (!data->dims) return TensorOfRank(static_cast<int>(rank) + 2, data->dtype, data);
  const std::vector<int64_t> window = call->attrs.GetInts("pool_size");
  const bool ceil_mode = call->attrs.GetBool("ceil_mode");
  Dims out(rank + 2);
  for (size_t i : {0, 1}) out[windows.out[i]] = (*data->dims)[windows.in[i]];
  for (size_t i = 0; i < rank; ++i) {
    ir::PrimExpr& extent = out[windows.out[2 + i]];
    extent = OutputExtent((*data->dims)[windows.in[2 + i]], ir::Int64(window[i]), windows.padding[i],
                          windows.padding[rank + i], windows.dilation[i], windows.strides[i], ceil_mode);
    INGOT_RETURN_IF_ERROR(CheckExtent(call, extent, rank, i));
  }
  return TensorOf(std::move(out), data->dtype, data);
}
template <size_t rank>
Result<ir::Type> InferPool(const ir::Call& call) {
  if (rank >= 2 && HasBlocks(call)) return InferBlocked(call, InferPool<rank>);
  return InferPool(call, rank);
}

Result<std::vector<ReferenceTensor>> ReferencePool(const ir::Call& call, std::span<const ReferenceTensor> inputs,
                                                   Pool pool, size_t rank) {
  INGOT_ASSIGN_OR_RETURN(const Windows windows, ReadWindows(call, rank, nullptr));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  const std::vector<int64_t> window = call->attrs.GetInts("pool_size");
  const bool count_padding = pool == Pool::kAverage && call->attrs.GetBool("count_include_pad");
  const double p = pool == Pool::kLp ? static_cast<double>(call->attrs.GetInt("p")) : 1;
  const ReferenceTensor& data = inputs[0];
  ReferenceTensor out = NewReference(data.dtype, dims);
  ForEachIndex(dims, [&](const Index& at, int64_t flat) {
    double best = data.dtype.is_floating() ? -std::numeric_limits<double>::infinity()
                                           : -std::ldexp(1.0, data.dtype.is_int() ? data.dtype.bits - 1 : 0);
    double sum = 0;
    int64_t inside = 0;
    int64_t padded = 0;
    ForEachIndex(window, [&](const Index& tap, int64_t) {
      Index from(rank + 2);
      bool is_inside = true;
      bool is_padded = true;
      for (size_t i : {0, 1}) from[windows.in[i]] = at[windows.out[i]];
      for (size_t i = 0; i < rank; ++i) {
        const int64_t extent = data.dims[windows.in[2 + i]];
        const int64_t position =
            at[windows.out[2 + i]] * windows.strides[i] + tap[i] * windows.dilation[i] - windows.padding[i];
        is_inside = is_inside && position >= 0 && position < extent;
        is_padded = is_padded && position < extent + windows.padding[rank + i];
        from[windows.in[2 + i]] = position;
      }
      padded += is_padded ? 1 : 0;
      if (!is_inside) return;
      const double value = GetNumber(data, Flatten(data.dims, from));
      best = std::isnan(value) || value > best ? value : best;
      sum += pool == Pool::kLp ? std::pow(std::fabs(value), p) : value;
      ++inside;
    });
    const double count = static_cast<double>(std::max<int64_t>(count_padding ? padded : inside, 1));
    const double result = pool == Pool::kMax ? best : pool == Pool::kLp ? std::pow(sum, 1 / p) : sum / count;
    SetNumber(out, flat, result);
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}

template <Pool pool, size_t rank>
Result<std::vector<ReferenceTensor>> ReferencePool(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  if (rank >= 2 && HasBlocks(call)) return ReferenceBlocked(call, inputs, InferPool<rank>, ReferencePool<pool, rank>);
  return ReferencePool(call, inputs, pool, rank);
}

template <Pool pool>
te::Tensor DefinePool(const TeArgs& args) {
  const ir::Attrs& attrs = args.call()->attrs;
  const std::vector<int64_t> pool_size = attrs.GetInts("pool_size");
  const topi::Window window = WindowOf(args.call());
  switch (pool) {
    case Pool::kMax:
      return topi::MaxPool(args.input(0), pool_size, window, args.out_dims());
    case Pool::kAverage:
      return topi::AvgPool(args.input(0), pool_size, window, args.out_dims(), attrs.GetBool("count_include_pad"));
    case Pool::kLp:
      return topi::LpPool(args.input(0), pool_size, window, args.out_dims(), attrs.GetInt("p"));
  }
  INGOT_UNREACHABLE();
}

template <size_t rank>
bool IsPlainPool(const ir::Call& call, const Target&) {
  return HasLayout(call, "layout", kDataLayouts[rank]) && HasLayout(call, "out_layout", kDataLayouts[rank]);
}

template <Pool pool>
double PoolCost(const ir::Call& call, const Target&) {
  const std::vector<int64_t> pool_size = call->attrs.GetInts("pool_size");
  double taps = 1;
  for (const int64_t extent : pool_size) taps *= static_cast<double>(extent);
  // Maxima are taken along one axis after the other.
  const bool is_separate = pool == Pool::kMax && std::ranges::all_of(pool_size, [](int64_t extent) {
                             return extent <= topi::kMaxPoolTapsAtOnce;
                           });
  if (is_separate) taps = static_cast<double>(std::accumulate(pool_size.begin(), pool_size.end(), int64_t{0}));
  return PlainChannelwiseCost(WindowExtentsOf(call, taps, /*is_one_tap=*/false));
}

// On a GPU, small windows of several axes: one launch, instead of one for each axis and a tensor between them.
template <size_t rank>
bool ComparesAtOnce(const ir::Call& call, const Target& target) {
  constexpr int64_t kMostTaps = 64;
  int64_t taps = 1;
  for (const int64_t extent : call->attrs.GetInts("pool_size")) {
    if (__builtin_mul_overflow(taps, extent, &taps)) return false;
  }
  return target.kind == Target::Kind::kCuda && taps <= kMostTaps && IsPlainPool<rank>(call, target);
}
double CostAtOnce(const ir::Call& call, const Target& target) { return PoolCost<Pool::kMax>(call, target) / 2; }
te::Tensor DefineMaxPoolAtOnce(const TeArgs& args) {
  return topi::MaxPoolAtOnce(args.input(0), args.call()->attrs.GetInts("pool_size"), WindowOf(args.call()),
                             args.out_dims());
}

ir::AttrValue Each(size_t count, int64_t value) { return ir::AttrValue::Ints(std::vector<int64_t>(count, value)); }

template <size_t rank>
OpRow ConvRow(const char* name) {
  OpRow row{.name = name,
            .summary = "cross-correlation of images with a kernel per output channel",
            .arg_names = {"data", "weight"},
            .attrs = {{"strides", AttrType::kInts, Each(rank, 1)},
                      {"padding", AttrType::kInts, Each(2 * rank, 0)},
                      {"dilation", AttrType::kInts, Each(rank, 1)},
                      {"groups", AttrType::kInt, 1},
                      {"data_layout", AttrType::kString, kDataLayouts[rank]},
                      {"kernel_layout", AttrType::kString, kKernelLayouts[rank]},
                      {"out_layout", AttrType::kString},
                      {"out_dtype", AttrType::kDataType}},
            .fusion = FusionClass::kOutFusible,
            .normalize = NormalizeWindow<rank>,
            .infer = InferConv<rank>,
            .reference = ReferenceConv<rank>,
            .implementations = {{"direct",
                                 IsPlainConv<rank>,
                                 ConvCost,
                                 {kDataLayouts[rank], kKernelLayouts[rank], kDataLayouts[rank]},
                                 Build<DefineConv>},
                                {"taps_first", IsTapsFirstConv<rank>, OnlyCost, {}, Build<DefineTapsFirstConv>}},
            .cases = {.rank0 = false}};
  row.cases.dtypes = FloatDataTypes();
  if (rank >= 2) {
    for (Implementation& blocked : BlockedConv(rank)) row.implementations.push_back(std::move(blocked));
  }
  return row;
}

template <size_t rank>
OpRow ConvTransposeRow(const char* name) {
  OpRow row{.name = name,
            .summary = "the gradient of a convolution: every element adds its multiple of the kernel to the result",
            .arg_names = {"data", "weight"},
            .attrs = {{"strides", AttrType::kInts, Each(rank, 1)},
                      {"padding", AttrType::kInts, Each(2 * rank, 0)},
                      {"output_padding", AttrType::kInts, Each(rank, 0)},
                      {"dilation", AttrType::kInts, Each(rank, 1)},
                      {"groups", AttrType::kInt, 1},
                      {"data_layout", AttrType::kString, kDataLayouts[rank]},
                      {"kernel_layout", AttrType::kString, kTransposedKernelLayouts[rank]},
                      {"out_layout", AttrType::kString},
                      {"out_dtype", AttrType::kDataType}},
            .fusion = FusionClass::kOutFusible,
            .normalize = NormalizeWindow<rank>,
            .infer = InferConvTranspose<rank>,
            .reference = ReferenceConvTranspose<rank>,
            .implementations = {{"direct",
                                 IsPlainConvTranspose<rank>,
                                 ConvTransposeCost,
                                 {kDataLayouts[rank], kTransposedKernelLayouts[rank], kDataLayouts[rank]},
                                 Build<DefineConvTranspose>}},
            .cases = {.rank0 = false}};
  row.cases.dtypes = FloatDataTypes();
  return row;
}

template <Pool pool, size_t rank>
OpRow PoolRow(const char* name, const char* summary) {
  OpRow row{.name = name,
            .summary = summary,
            .arg_names = {"data"},
            .attrs = {{"pool_size", AttrType::kInts, Each(rank, 1)},
                      {"strides", AttrType::kInts, Each(rank, 1)},
                      {"dilation", AttrType::kInts, Each(rank, 1)},
                      {"padding", AttrType::kInts, Each(2 * rank, 0)},
                      {"ceil_mode", AttrType::kBool, false}},
            .fusion = FusionClass::kOutFusible,
            .normalize = NormalizeWindow<rank>,
            .infer = InferPool<rank>,
            .reference = ReferencePool<pool, rank>,
            .implementations = {{"direct",
                                 IsPlainPool<rank>,
                                 PoolCost<pool>,
                                 {kDataLayouts[rank], kDataLayouts[rank]},
                                 Build<DefinePool<pool>>}},
            .cases = {.rank0 = false}};
  row.attrs.push_back(pool == Pool::kLp ? AttrSpec{"p", AttrType::kInt, 2}
                                        : AttrSpec{"count_include_pad", AttrType::kBool, false});
  row.attrs.push_back({"layout", AttrType::kString, kDataLayouts[rank]});
  row.attrs.push_back({"out_layout", AttrType::kString});
  row.cases.dtypes = FloatDataTypes();
  if (pool == Pool::kMax) row.cases.dtypes.push_back(DataType::Int(32));
  if (rank >= 2 && pool == Pool::kMax) {
    row.implementations.push_back(BlockedMaxPool(rank));
    row.implementations.push_back({"cuda_at_once",
                                   ComparesAtOnce<rank>,
                                   CostAtOnce,
                                   {kDataLayouts[rank], kDataLayouts[rank]},
                                   Build<DefineMaxPoolAtOnce>});
  }
  if (rank >= 2 && pool == Pool::kAverage) row.implementations.push_back(BlockedAvgPool(rank));
  return row;
}

constexpr char kMaxSummary[] = "the greatest value under a window; padding never wins";
constexpr char kAverageSummary[] = "the mean of the values under a window";
constexpr char kLpSummary[] = "the p-norm of the values under a window";

}  // namespace

std::vector<OpRow> ConvolutionOps() {
  return {ConvRow<1>("nn.conv1d"),
          ConvRow<2>("nn.conv2d"),
          ConvRow<3>("nn.conv3d"),
          ConvTransposeRow<1>("nn.conv1d_transpose"),
          ConvTransposeRow<2>("nn.conv2d_transpose"),
          ConvTransposeRow<3>("nn.conv3d_transpose"),
          PoolRow<Pool::kMax, 1>("nn.max_pool1d", kMaxSummary),
          PoolRow<Pool::kMax, 2>("nn.max_pool2d", kMaxSummary),
          PoolRow<Pool::kMax, 3>("nn.max_pool3d", kMaxSummary),
          PoolRow<Pool::kAverage, 1>("nn.avg_pool1d", kAverageSummary),
          PoolRow<Pool::kAverage, 2>("nn.avg_pool2d", kAverageSummary),
          PoolRow<Pool::kAverage, 3>("nn.avg_pool3d", kAverageSummary),
          PoolRow<Pool::kLp, 1>("nn.lp_pool1d", kLpSummary),
          PoolRow<Pool::kLp, 2>("nn.lp_pool2d", kLpSummary),
          PoolRow<Pool::kLp, 3>("nn.lp_pool3d", kLpSummary)};
}

}  // namespace ingot::op
