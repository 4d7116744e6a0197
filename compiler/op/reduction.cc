// Reductions: sum, prod, max, min, mean, variance, log_sum_exp over axes; softmax and log_softmax along one.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/reduction.h"

namespace ingot::op {
namespace {

enum class Kind : uint8_t { kSum, kProd, kMax, kMin, kMean, kVariance, kLogSumExp };

Result<ir::Type> InferReduction(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  if (x->dtype && x->dtype->is_bool()) return OpError(call, "expected numbers, got " + Describe(x));
  const std::optional<std::vector<int64_t>> axis = IntsAttr(call, "axis");
  const bool keepdims = call->attrs.GetBool("keepdims");
  if (x->rank < 0) return axis || keepdims ? TensorOfRank(-1, x->dtype, x) : TensorOf({}, x->dtype, x);
  INGOT_ASSIGN_OR_RETURN(const std::vector<int> axes, NormalizeAxes(call, axis, x->rank));
  if (!x->dims) return TensorOfRank(keepdims ? x->rank : x->rank - static_cast<int>(axes.size()), x->dtype, x);
  Dims dims;
  for (int i = 0; i < x->rank; ++i) {
    if (std::ranges::find(axes, i) == axes.end()) {
      dims.push_back((*x->dims)[static_cast<size_t>(i)]);
    } else if (keepdims) {
      dims.push_back(ir::Int64(1));
    }
  }
  return TensorOf(std::move(dims), x->dtype, x);
}

// The value of one group of numbers.
double Reduce(Kind kind, const std::vector<double>& values, DataType dtype) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double count = static_cast<double>(values.size());
  if (kind == Kind::kLogSumExp) {
    const double greatest = Reduce(Kind::kMax, values, dtype), shift = std::isfinite(greatest) ? greatest : 0;
    double sum = 0;
    for (const double value : values) sum += std::exp(value - shift);
    return std::log(sum) + shift;
  }
  double result = kind == Kind::kProd ? 1 : kind == Kind::kMax ? -infinity : kind == Kind::kMin ? infinity : 0;
  for (double value : values) {
    switch (kind) {
      case Kind::kSum:
      case Kind::kMean:
      case Kind::kVariance:
      case Kind::kLogSumExp:
        result += value;
        break;
      case Kind::kProd:
        result *= value;
        break;
      case Kind::kMax:
        result = std::isnan(value) || value > result ? value : result;
        break;
      case Kind::kMin:
        result = std::isnan(value) || value < result ? value : result;
        break;
    }
  }
  if (kind == Kind::kMean || kind == Kind::kVariance) result /= count;
  if (kind == Kind::kVariance) {
    double squares = 0;
    for (double value : values) squares += (value - result) * (value - result);
    result = squares / count;
  }
  return dtype.is_floating() ? result : std::trunc(result);
}

template <Kind kind>
Result<std::vector<ReferenceTensor>> ReferenceReduction(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  const int rank = static_cast<int>(x.dims.size());
  INGOT_ASSIGN_OR_RETURN(const std::vector<int> axes, NormalizeAxes(call, IntsAttr(call, "axis"), rank));
  std::vector<int64_t> kept = x.dims;
  for (int axis : axes) kept[static_cast<size_t>(axis)] = 1;
  std::vector<std::vector<double>> groups(static_cast<size_t>(CountOf(kept)));
  ForEachIndex(x.dims, [&](const Index& index, int64_t flat) {
    groups[static_cast<size_t>(FlattenBroadcast(kept, index))].push_back(GetNumber(x, flat));
  });
  INGOT_ASSIGN_OR_RETURN(std::vector<int64_t> dims, ConstantDims(call, call->type));
  ReferenceTensor out = NewReference(x.dtype, std::move(dims));
  for (size_t i = 0; i < groups.size(); ++i) {
    SetNumber(out, static_cast<int64_t>(i), Reduce(kind, groups[i], x.dtype));
  }
  return std::vector<ReferenceTensor>{std::move(out)};
}

te::Tensor DefineReduction(const TeArgs& args, Kind kind) {
  const te::Tensor& x = args.input(0);
  const Result<std::vector<int>> axes = NormalizeAxes(args.call(), IntsAttr(args.call(), "axis"), x.rank());
  const bool keepdims = args.call()->attrs.GetBool("keepdims");
  const std::string name = "x_red";
  switch (kind) {
    case Kind::kSum:
      return topi::Reduce(topi::Reducer::kSum, x, *axes, keepdims, name);
    case Kind::kProd:
      return topi::Reduce(topi::Reducer::kProd, x, *axes, keepdims, name);
    case Kind::kMax:
      return topi::Reduce(topi::Reducer::kMax, x, *axes, keepdims, name);
    case Kind::kMin:
      return topi::Reduce(topi::Reducer::kMin, x, *axes, keepdims, name);
    case Kind::kMean:
      return topi::Mean(x, *axes, keepdims);
    case Kind::kVariance:
      return topi::Variance(x, *axes, keepdims);
    case Kind::kLogSumExp:
      return topi::LogSumExp(x, *axes, keepdims);
  }
  INGOT_UNREACHABLE();
}
template <Kind kind>
te::Tensor DefineReduction(const TeArgs& args) {
  return DefineReduction(args, kind);
}

double ReductionCost(const ir::Call& call, const Target&) { return EstimateElements(call->args[0]->type); }

// A reduction over the height and width of images with blocked channels (NCHW16c), or over all of a volume's places
// (NDCHW16c).
bool IsOverPlaces(const ir::Call& call, const Target&) {
  const Result<ir::TensorType> x = TensorArg(call, 0);
  if (!x.ok() || ((*x)->rank != 5 && (*x)->rank != 6)) return false;
  const Result<std::vector<int>> axes = NormalizeAxes(call, IntsAttr(call, "axis"), (*x)->rank);
  if (!axes.ok()) return false;
  std::vector<int> sorted = *axes;
  std::ranges::sort(sorted);
  return sorted == ((*x)->rank == 5 ? std::vector<int>{2, 3} : std::vector<int>{1, 3, 4});
}

// ---- softmax, log_softmax
Result<ir::Type> InferSoftmax(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  if (x->dtype && !x->dtype->is_floating()) return OpError(call, "expected floats, got " + Describe(x));
  if (x->rank >= 0) INGOT_RETURN_IF_ERROR(NormalizeAxis(call, call->attrs.GetInt("axis"), x->rank).status());
  return ir::Type(x);
}

template <bool logarithm>
Result<std::vector<ReferenceTensor>> ReferenceSoftmax(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  INGOT_ASSIGN_OR_RETURN(const int axis,
                         NormalizeAxis(call, call->attrs.GetInt("axis"), static_cast<int>(x.dims.size())));
  std::vector<int64_t> kept = x.dims;
  kept[static_cast<size_t>(axis)] = 1;
  std::vector<double> greatest(static_cast<size_t>(CountOf(kept)), -std::numeric_limits<double>::infinity());
  std::vector<double> sums(greatest.size(), 0);
  ForEachIndex(x.dims, [&](const Index& index, int64_t flat) {
    double& best = greatest[static_cast<size_t>(FlattenBroadcast(kept, index))];
    const double value = GetNumber(x, flat);
    best = std::isnan(value) || value > best ? value : best;
  });
  ForEachIndex(x.dims, [&](const Index& index, int64_t flat) {
    const auto group = static_cast<size_t>(FlattenBroadcast(kept, index));
    sums[group] += std::exp(GetNumber(x, flat) - greatest[group]);
  });
  ReferenceTensor out = NewReference(x.dtype, x.dims);
  ForEachIndex(x.dims, [&](const Index& index, int64_t flat) {
    const auto group = static_cast<size_t>(FlattenBroadcast(kept, index));
    const double shifted = GetNumber(x, flat) - greatest[group];
    SetNumber(out, flat, logarithm ? shifted - std::log(sums[group]) : std::exp(shifted) / sums[group]);
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}

template <bool logarithm>
te::Tensor DefineSoftmax(const TeArgs& args) {
  const te::Tensor& x = args.input(0);
  const Result<int> axis = NormalizeAxis(args.call(), args.call()->attrs.GetInt("axis"), x.rank());
  return logarithm ? topi::LogSoftmax(x, *axis) : topi::Softmax(x, *axis);
}

template <Kind kind>
OpRow ReductionRow(const char* name, const char* summary, bool takes_integers, SignBit sign_bit = SignBit::kUnknown) {
  OpRow row{.name = name,
            .summary = summary,
            .arg_names = {"x"},
            .attrs = {{"axis", AttrType::kInts}, {"keepdims", AttrType::kBool, false}},
            .fusion = FusionClass::kReduction,
            .sign_bit = sign_bit,
            .infer = InferReduction,
            .reference = ReferenceReduction<kind>,
            .implementations = {
                {"direct", Always, ReductionCost, {}, Build<DefineReduction<kind>>},
                {"blocked", IsOverPlaces, ReductionCost, {"NCHW16c", "NCHW16c"}, Build<DefineReduction<kind>>},
                {"blocked_3d", IsOverPlaces, ReductionCost, {"NDCHW16c", "NDCHW16c"}, Build<DefineReduction<kind>>}}};
  row.cases.dtypes = {DataType::Float(32), DataType::Float(64), DataType::Float(16), DataType::Bfloat16()};
  if (takes_integers) row.cases.dtypes.push_back(DataType::Int(32));
  if (kind == Kind::kMean) row.cases.dtypes.push_back(DataType::Int(8));  // a sum of few of them wraps
  return row;
}

}  // namespace

std::vector<OpRow> ReductionOps() {
  std::vector<OpRow> rows;
  rows.push_back(ReductionRow<Kind::kSum>("sum", "the sum over axes", true, SignBit::kOfFirst));
  rows.push_back(ReductionRow<Kind::kProd>("prod", "the product over axes", true));
  rows.push_back(ReductionRow<Kind::kMax>("max", "the greatest element over axes", true));
  rows.push_back(ReductionRow<Kind::kMin>("min", "the least element over axes", true));
  rows.push_back(ReductionRow<Kind::kMean>("mean", "the mean over axes", true, SignBit::kOfFirst));
  rows.push_back(ReductionRow<Kind::kVariance>("variance", "the mean square distance from the mean over axes", false,
                                               SignBit::kClear));
  rows.push_back(ReductionRow<Kind::kLogSumExp>("log_sum_exp", "the logarithm of the sum of exponentials over axes",
                                                false));
  const CaseTraits softmax{
      .rank0 = false, .dtypes = {DataType::Float(32), DataType::Float(64), DataType::Float(16), DataType::Bfloat16()}};
  rows.push_back({.name = "nn.softmax",
                  .summary = "exp(x) / sum(exp(x)) along an axis",
                  .arg_names = {"data"},
                  .attrs = {{"axis", AttrType::kInt, -1}},
                  .sign_bit = SignBit::kClear,
                  .infer = InferSoftmax,
                  .reference = ReferenceSoftmax<false>,
                  .implementations = {TeImplementation<DefineSoftmax<false>>()},
                  .cases = softmax});
  rows.push_back({.name = "nn.log_softmax",
                  .summary = "the logarithm of softmax",
                  .arg_names = {"data"},
                  .attrs = {{"axis", AttrType::kInt, -1}},
                  .infer = InferSoftmax,
                  .reference = ReferenceSoftmax<true>,
                  .implementations = {TeImplementation<DefineSoftmax<true>>()},
                  .cases = softmax});
  return rows;
}

}  // namespace ingot::op
