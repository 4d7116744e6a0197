// Normalisations: layer, RMS, group, instance and local response normalisation, and hardmax. The statistics of
// sixteen-bit floats are made in float32. Batch normalisation stands in batch_norm.cc.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/normalization.h"

namespace ingot::op {
namespace {

Result<ir::TensorType> FloatsArg(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  if (x->dtype && !x->dtype->is_floating()) return OpError(call, "expected floats, got " + Describe(x));
  return x;
}

// An argument that scales or shifts has the dims of these axes of the data.
Status CheckParameter(const ir::Call& call, size_t i, const ir::TensorType& x, const std::vector<int>& axes) {
  if (!HasArg(call, i)) return Status();
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType param, TensorArg(call, i));
  if (param->dtype && !param->dtype->is_floating()) return OpError(call, "expected floats, got " + Describe(param));
  bool fits = param->rank < 0 || param->rank == static_cast<int>(axes.size());
  if (fits && param->dims && x->dims) {
    for (size_t k = 0; k < axes.size(); ++k) {
      fits = fits && !DimsDiffer((*param->dims)[k], (*x->dims)[static_cast<size_t>(axes[k])]);
    }
  }
  if (fits) return Status();
  return OpError(call, std::string("argument \"") + RowOf(call)->arg_names[i] +
                           "\": expected the dims of the normalised axes of " + Describe(x) + ", got " +
                           Describe(param));
}

// The scale and the shift of a call as inputs, unless its attributes leave them out.
const te::Tensor* Gamma(const TeArgs& args) { return args.call()->attrs.GetBool("scale") ? &args.input(1) : nullptr; }
const te::Tensor* Beta(const TeArgs& args) {
  return args.inputs().size() > 2 && args.call()->attrs.GetBool("center") ? &args.input(2) : nullptr;
}

// Every element of a group becomes (x - mean) / sqrt(variance + epsilon) * gamma + beta; without `center`, the mean
// counts as 0.
struct Grouping {
  int64_t count;
  std::function<int64_t(const Index&)> group_of;
  std::function<int64_t(const Index&)> param_of;  // the element of gamma and beta
  bool subtracts_mean = true;
};
std::vector<ReferenceTensor> NormalizeGroups(const ReferenceTensor& x, const ReferenceTensor* gamma,
                                             const ReferenceTensor* beta, double epsilon, const Grouping& grouping) {
  std::vector<double> sizes(static_cast<size_t>(grouping.count), 0), means(sizes), squares(sizes);
  ForEachIndex(x.dims, [&](const Index& index, int64_t flat) {
    const auto group = static_cast<size_t>(grouping.group_of(index));
    sizes[group] += 1;
    means[group] += GetNumber(x, flat);
  });
  for (size_t i = 0; i < means.size(); ++i) means[i] = grouping.subtracts_mean ? means[i] / sizes[i] : 0;
  ForEachIndex(x.dims, [&](const Index& index, int64_t flat) {
    const auto group = static_cast<size_t>(grouping.group_of(index));
    squares[group] += std::pow(GetNumber(x, flat) - means[group], 2);
  });
  ReferenceTensor out = NewReference(x.dtype, x.dims);
  ForEachIndex(x.dims, [&](const Index& index, int64_t flat) {
    const auto group = static_cast<size_t>(grouping.group_of(index));
    double value = (GetNumber(x, flat) - means[group]) / std::sqrt(squares[group] / sizes[group] + epsilon);
    if (gamma != nullptr) value *= GetNumber(*gamma, grouping.param_of(index));
    if (beta != nullptr) value += GetNumber(*beta, grouping.param_of(index));
    SetNumber(out, flat, value);
  });
  return {std::move(out)};
}

// Groups of elements whose indices differ only along the given axes.
Grouping GroupsOver(const std::vector<int64_t>& dims, const std::vector<int>& axes,
                    const std::vector<int>& param_axes) {
  std::vector<int64_t> kept = dims;
  for (int axis : axes) kept[static_cast<size_t>(axis)] = 1;
  std::vector<int64_t> param_dims;
  for (int axis : param_axes) param_dims.push_back(dims[static_cast<size_t>(axis)]);
  return {CountOf(kept), [kept](const Index& index) { return FlattenBroadcast(kept, index); },
          [param_dims, param_axes](const Index& index) {
            Index param;
            for (int axis : param_axes) param.push_back(index[static_cast<size_t>(axis)]);
            return Flatten(param_dims, param);
          }};
}

const ReferenceTensor* GammaOf(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  return call->attrs.GetBool("scale") ? &inputs[1] : nullptr;
}
const ReferenceTensor* BetaOf(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  return inputs.size() > 2 && call->attrs.GetBool("center") ? &inputs[2] : nullptr;
}

// The axes that a call normalises over: its attribute, in any order.
Result<std::vector<int>> AxesOf(const ir::Call& call, int rank) {
  return NormalizeAxes(call, call->attrs.GetInts("axes"), rank);
}
Result<int> ChannelAxisOf(const ir::Call& call, int rank) {
  return NormalizeAxis(call, call->attrs.GetInt("channel_axis"), rank);
}

// ---- layer_norm, rms_norm: the parameters have the dims of the normalised axes.
Result<ir::Type> InferOverAxes(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, FloatsArg(call));
  if (x->rank < 0) return ir::Type(x);
  INGOT_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(call, x->rank));
  for (size_t i : {1, 2}) INGOT_RETURN_IF_ERROR(CheckParameter(call, i, x, axes));
  return ir::Type(x);
}

Result<std::vector<ReferenceTensor>> ReferenceLayerNorm(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(call, static_cast<int>(inputs[0].dims.size())));
  return NormalizeGroups(inputs[0], GammaOf(call, inputs), BetaOf(call, inputs), call->attrs.GetFloat("epsilon"),
                         GroupsOver(inputs[0].dims, axes, axes));
}

te::Tensor DefineLayerNorm(const TeArgs& args) {
  const std::vector<int> axes = *AxesOf(args.call(), args.input(0).rank());
  return topi::Normalize(args.input(0), Gamma(args), Beta(args), axes, axes, args.call()->attrs.GetFloat("epsilon"));
}

Result<std::vector<ReferenceTensor>> ReferenceRmsNorm(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(call, static_cast<int>(inputs[0].dims.size())));
  Grouping grouping = GroupsOver(inputs[0].dims, axes, axes);
  grouping.subtracts_mean = false;
  return NormalizeGroups(inputs[0], &inputs[1], nullptr, call->attrs.GetFloat("epsilon"), grouping);
}

te::Tensor DefineRmsNorm(const TeArgs& args) {
  const std::vector<int> axes = *AxesOf(args.call(), args.input(0).rank());
  return topi::RmsNorm(args.input(0), args.input(1), axes, args.call()->attrs.GetFloat("epsilon"));
}

// ---- group_norm, instance_norm: one parameter per channel.
Result<ir::Type> InferPerChannel(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, FloatsArg(call));
  if (x->rank < 0) return ir::Type(x);
  INGOT_ASSIGN_OR_RETURN(const int channel_axis, ChannelAxisOf(call, x->rank));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(call, x->rank));
  if (std::ranges::find(axes, channel_axis) != axes.end()) {
    return OpError(call, "axes: expected axes other than the channels', got " + std::to_string(channel_axis));
  }
  for (size_t i : {1, 2}) INGOT_RETURN_IF_ERROR(CheckParameter(call, i, x, {channel_axis}));
  if (call->attrs.Find("num_groups") == nullptr) return ir::Type(x);
  const int64_t groups = call->attrs.GetInt("num_groups");
  const std::optional<int64_t> channels =
      x->dims ? ir::AsConstInt((*x->dims)[static_cast<size_t>(channel_axis)]) : std::nullopt;
  if (groups < 1 || (channels && *channels % groups != 0)) {
    return OpError(
        call, "num_groups: expected a divisor of the channels, got " + std::to_string(groups) + " of " + Describe(x));
  }
  return ir::Type(x);
}

Result<std::vector<ReferenceTensor>> ReferenceGroupNorm(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  const int rank = static_cast<int>(x.dims.size());
  INGOT_ASSIGN_OR_RETURN(const int channel_axis, ChannelAxisOf(call, rank));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(call, rank));
  Grouping grouping = GroupsOver(x.dims, axes, {channel_axis});
  const auto channel = static_cast<size_t>(channel_axis);
  std::vector<int64_t> kept = x.dims;
  for (int axis : axes) kept[static_cast<size_t>(axis)] = 1;
  kept[channel] = call->attrs.GetInt("num_groups");
  const int64_t per_group = x.dims[channel] / kept[channel];
  grouping.count = CountOf(kept);
  grouping.group_of = [kept, channel, per_group](Index index) {
    index[channel] /= per_group;
    return FlattenBroadcast(kept, index);
  };
  return NormalizeGroups(x, GammaOf(call, inputs), BetaOf(call, inputs), call->attrs.GetFloat("epsilon"), grouping);
}

te::Tensor DefineGroupNorm(const TeArgs& args) {
  const ir::Call& call = args.call();
  const int rank = args.input(0).rank();
  return topi::GroupNorm(args.input(0), Gamma(args), Beta(args), call->attrs.GetInt("num_groups"),
                         *ChannelAxisOf(call, rank), *AxesOf(call, rank), call->attrs.GetFloat("epsilon"));
}

Result<std::vector<ReferenceTensor>> ReferenceInstanceNorm(const ir::Call& call,
                                                           std::span<const ReferenceTensor> inputs) {
  const int rank = static_cast<int>(inputs[0].dims.size());
  INGOT_ASSIGN_OR_RETURN(const int channel_axis, ChannelAxisOf(call, rank));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(call, rank));
  return NormalizeGroups(inputs[0], GammaOf(call, inputs), BetaOf(call, inputs), call->attrs.GetFloat("epsilon"),
                         GroupsOver(inputs[0].dims, axes, {channel_axis}));
}

te::Tensor DefineInstanceNorm(const TeArgs& args) {
  const ir::Call& call = args.call();
  const int rank = args.input(0).rank();
  return topi::Normalize(args.input(0), Gamma(args), Beta(args), *AxesOf(call, rank), {*ChannelAxisOf(call, rank)},
                         call->attrs.GetFloat("epsilon"));
}

// ---- lrn, hardmax: along one axis.
Result<ir::Type> InferAlongAxis(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, FloatsArg(call));
  if (x->rank >= 0) INGOT_RETURN_IF_ERROR(NormalizeAxis(call, call->attrs.GetInt("axis"), x->rank).status());
  if (call->attrs.Find("size") != nullptr && call->attrs.GetInt("size") < 1) {
    return OpError(call, "size: expected an integer >= 1, got " + std::to_string(call->attrs.GetInt("size")));
  }
  return ir::Type(x);
}

Result<std::vector<ReferenceTensor>> ReferenceLrn(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  INGOT_ASSIGN_OR_RETURN(const int axis, AxisOf(call, static_cast<int>(x.dims.size())));
  const auto at = static_cast<size_t>(axis);
  const int64_t size = call->attrs.GetInt("size");
  ReferenceTensor out = NewReference(x.dtype, x.dims);
  ForEachIndex(x.dims, [&](const Index& index, int64_t flat) {
    double sum = 0;
    Index neighbour = index;
    const int64_t first = index[at] - (size - 1) / 2;
    for (neighbour[at] = std::max<int64_t>(first, 0); neighbour[at] < std::min(first + size, x.dims[at]);
         ++neighbour[at]) {
      sum += std::pow(GetNumber(x, Flatten(x.dims, neighbour)), 2);
    }
    const double base = call->attrs.GetFloat("bias") + call->attrs.GetFloat("alpha") * sum / static_cast<double>(size);
    SetNumber(out, flat, GetNumber(x, flat) / std::pow(base, call->attrs.GetFloat("beta")));
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}

te::Tensor DefineLrn(const TeArgs& args) {
  const ir::Attrs& attrs = args.call()->attrs;
  return topi::LocalResponseNorm(args.input(0), attrs.GetInt("size"), *AxisOf(args.call(), args.input(0).rank()),
                                 attrs.GetFloat("alpha"), attrs.GetFloat("beta"), attrs.GetFloat("bias"));
}

// NaN is equal to nothing: a row that holds one has no first place.
Result<std::vector<ReferenceTensor>> ReferenceHardmax(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  INGOT_ASSIGN_OR_RETURN(const int axis, AxisOf(call, static_cast<int>(x.dims.size())));
  const auto at = static_cast<size_t>(axis);
  ReferenceTensor out = NewReference(x.dtype, x.dims);
  std::vector<int64_t> kept = x.dims;
  kept[at] = 1;
  ForEachIndex(kept, [&](const Index& start, int64_t) {
    Index index = start, best = start;
    bool has_nan = false;
    for (index[at] = 0; index[at] < x.dims[at]; ++index[at]) {
      const double value = GetNumber(x, Flatten(x.dims, index));
      has_nan = has_nan || std::isnan(value);
      if (value > GetNumber(x, Flatten(x.dims, best))) best = index;
    }
    if (!has_nan && x.dims[at] > 0) SetNumber(out, Flatten(x.dims, best), 1);
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}

te::Tensor DefineHardmax(const TeArgs& args) {
  return topi::Hardmax(args.input(0), *AxisOf(args.call(), args.input(0).rank()));
}

// Five operations per element: sum, distance, square, scale, shift.
double NormCost(const ir::Call& call, const Target&) { return 5 * EstimateElements(call->type); }

template <te::Tensor (*define)(const TeArgs&)>
OpRow NormRow(const char* name, const char* summary, std::vector<const char*> arg_names, std::vector<AttrSpec> attrs) {
  OpRow row{.name = name,
            .summary = summary,
            .arg_names = std::move(arg_names),
            .attrs = std::move(attrs),
            .implementations = {{"direct", Always, NormCost, {}, Build<define>}},
            .cases = {.rank0 = false}};
  row.cases.dtypes = FloatDataTypes();
  return row;
}

}  // namespace

std::vector<OpRow> NormalizationOps() {
  const AttrSpec axes{"axes", AttrType::kInts, {}, true};
  const AttrSpec channel_axis{"channel_axis", AttrType::kInt, 1};
  const AttrSpec epsilon{"epsilon", AttrType::kFloat, 1e-5};
  const AttrSpec center{"center", AttrType::kBool, true};
  const AttrSpec scale{"scale", AttrType::kBool, true};
  std::vector<OpRow> rows;
  rows.push_back(NormRow<DefineLayerNorm>("nn.layer_norm",
                                          "(x - mean) / sqrt(variance + epsilon) * gamma + beta over axes",
                                          {"data", "gamma", "beta"}, {axes, epsilon, center, scale}));
  rows.back().num_optional_args = 1;
  rows.back().infer = InferOverAxes;
  rows.back().reference = ReferenceLayerNorm;
  rows.push_back(NormRow<DefineRmsNorm>("nn.rms_norm", "x / sqrt(mean(x^2) + epsilon) * weight over axes",
                                        {"data", "weight"}, {axes, epsilon}));
  rows.back().infer = InferOverAxes;
  rows.back().reference = ReferenceRmsNorm;
  rows.push_back(NormRow<DefineGroupNorm>(
      "nn.group_norm", "(x - mean) / sqrt(variance + epsilon) * gamma + beta over axes and groups of channels",
      {"data", "gamma", "beta"},
      {{"num_groups", AttrType::kInt, {}, true}, channel_axis, axes, epsilon, center, scale}));
  rows.back().infer = InferPerChannel;
  rows.back().reference = ReferenceGroupNorm;
  rows.push_back(NormRow<DefineInstanceNorm>(
      "nn.instance_norm", "(x - mean) / sqrt(variance + epsilon) * gamma + beta over axes, gamma and beta per channel",
      {"data", "gamma", "beta"}, {channel_axis, axes, epsilon, center, scale}));
  rows.back().infer = InferPerChannel;
  rows.back().reference = ReferenceInstanceNorm;
  rows.push_back(NormRow<DefineLrn>("nn.lrn", "x / (bias + alpha * the mean of size neighbours' squares)^beta", {"x"},
                                    {{"size", AttrType::kInt, {}, true},
                                     {"axis", AttrType::kInt, 1},
                                     {"alpha", AttrType::kFloat, 1e-4},
                                     {"beta", AttrType::kFloat, 0.75},
                                     {"bias", AttrType::kFloat, 1.0}}));
  rows.back().infer = InferAlongAxis;
  rows.back().reference = ReferenceLrn;
  rows.push_back(NormRow<DefineHardmax>("nn.hardmax", "1 at the first greatest element along an axis, else 0", {"x"},
                                        {{"axis", AttrType::kInt, -1}}));
  rows.back().infer = InferAlongAxis;
  rows.back().reference = ReferenceHardmax;
  return rows;
}

}  // namespace ingot::op
