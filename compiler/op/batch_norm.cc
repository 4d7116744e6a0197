// Batch normalisation: nn.batch_norm. At inference the statistics are given, and where they are weights
// unfold_batch_norms makes arithmetic of the call, which folds into what stands before it; this operator
// computes the other calls, and training.
#include <cmath>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/reduction.h"

namespace ingot::op {
namespace {

using ir::PrimExpr;

enum BatchNormArg : size_t { kData, kGamma, kBeta, kMean, kVariance, kNumArgs };

Result<size_t> BatchNormAxisOf(const ir::Call& call, int rank) {
  INGOT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call, call->attrs.GetInt("axis"), rank));
  return static_cast<size_t>(axis);
}
std::vector<int> OtherAxes(int rank, size_t channel) {
  std::vector<int> axes;
  for (int i = 0; i < rank; ++i) {
    if (static_cast<size_t>(i) != channel) axes.push_back(i);
  }
  return axes;
}

// The results are the normalised data and the running statistics, which training moves towards the batch's.
Result<ir::Type> InferBatchNorm(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, kData));
  std::vector<ir::Type> results = {x};
  for (size_t i = 0; i < kNumArgs; ++i) {
    INGOT_ASSIGN_OR_RETURN(const ir::TensorType arg, TensorArg(call, i));
    if (arg->dtype && !arg->dtype->is_floating()) return OpError(call, "expected floats, got " + Describe(arg));
    if (i >= kMean) results.push_back(arg);
    if (i == kData || x->rank < 0) continue;
    INGOT_ASSIGN_OR_RETURN(const size_t channel, BatchNormAxisOf(call, x->rank));
    const bool fits = (arg->rank < 0 || arg->rank == 1) &&
                      (!arg->dims || !x->dims || !DimsDiffer((*arg->dims)[0], (*x->dims)[channel]));
    if (!fits) {
      return OpError(call, std::string("argument \"") + RowOf(call)->arg_names[i] + "\": expected one per channel of " +
                               Describe(x) + ", got " + Describe(arg));
    }
  }
  return ir::Type(ir::Make<ir::TupleTypeNode>(std::move(results)));
}

Result<std::vector<ReferenceTensor>> ReferenceBatchNorm(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[kData];
  INGOT_ASSIGN_OR_RETURN(const size_t axis, BatchNormAxisOf(call, static_cast<int>(x.dims.size())));
  const auto channels = static_cast<size_t>(x.dims[axis]);
  const bool training = call->attrs.GetBool("training");
  std::vector<double> counts(channels, 0), means(channels, 0), variances(channels, 0);
  const auto each = [&](const std::function<void(size_t channel, double value, int64_t flat)>& fn) {
    ForEachIndex(x.dims, [&](const Index& index, int64_t flat) {
      fn(static_cast<size_t>(index[axis]), GetNumber(x, flat), flat);
    });
  };
  each([&](size_t c, double, int64_t) { ++counts[c]; });
  each([&](size_t c, double value, int64_t) { means[c] += value / counts[c]; });
  each([&](size_t c, double value, int64_t) { variances[c] += (value - means[c]) * (value - means[c]) / counts[c]; });
  ReferenceTensor mean = inputs[kMean], variance = inputs[kVariance];
  const double momentum = call->attrs.GetFloat("momentum");
  for (size_t c = 0; c < channels; ++c) {
    const auto i = static_cast<int64_t>(c);
    const double old_mean = GetNumber(mean, i), old_variance = GetNumber(variance, i);
    if (training) {
      SetNumber(mean, i, old_mean * (1 - momentum) + means[c] * momentum);
      SetNumber(variance, i, old_variance * (1 - momentum) + variances[c] * momentum);
    } else {
      means[c] = old_mean;
      variances[c] = old_variance;
    }
  }
  ReferenceTensor out = NewReference(x.dtype, x.dims);
  each([&](size_t c, double value, int64_t flat) {
    double normal = (value - means[c]) / std::sqrt(variances[c] + call->attrs.GetFloat("epsilon"));
    if (call->attrs.GetBool("scale")) normal *= GetNumber(inputs[kGamma], static_cast<int64_t>(c));
    if (call->attrs.GetBool("center")) normal += GetNumber(inputs[kBeta], static_cast<int64_t>(c));
    SetNumber(out, flat, normal);
  });
  return std::vector<ReferenceTensor>{std::move(out), std::move(mean), std::move(variance)};
}

std::vector<te::Tensor> DefineBatchNorm(const TeArgs& args) {
  const ir::Attrs& attrs = args.call()->attrs;
  const te::Tensor& x = args.input(kData);
  const size_t channel = *BatchNormAxisOf(args.call(), x.rank());
  const std::vector<int> others = OtherAxes(x.rank(), channel);
  const bool training = attrs.GetBool("training");
  const te::Tensor batch_mean = training ? topi::WideMean(x, others, false) : te::Tensor();
  const te::Tensor batch_variance = training ? topi::WideVariance(x, batch_mean, others, false) : te::Tensor();
  const DataType wide = topi::WideType(x.dtype());
  // A parameter, or a statistic of the batch, at a channel.
  const auto at = [&](size_t i, const PrimExpr& c) { return ir::Cast(wide, args.input(i)(c)); };
  const auto mean = [&](const PrimExpr& c) { return training ? batch_mean(c) : at(kMean, c); };
  const auto variance = [&](const PrimExpr& c) { return training ? batch_variance(c) : at(kVariance, c); };
  const te::Tensor factor = te::Compute(
      {x.shape()[channel]},
      [&](const te::Indices& c) {
        const PrimExpr spread = variance(c[0]) + ir::MakeConst(wide, attrs.GetFloat("epsilon"));
        const PrimExpr scale = ir::CallIntrinsic(ir::Intrinsic::kRsqrt, {spread});
        return attrs.GetBool("scale") ? scale * at(kGamma, c[0]) : scale;
      },
      "T_factor");
  const te::Tensor out = te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        const PrimExpr& c = i[channel];
        const PrimExpr scaled = (ir::Cast(wide, x(i)) - mean(c)) * factor(c);
        return ir::Cast(x.dtype(), attrs.GetBool("center") ? scaled + at(kBeta, c) : scaled);
      },
      "T_batch_norm");
  const double momentum = attrs.GetFloat("momentum");
  const auto moved = [&](size_t i, const te::Tensor& batch, const char* name) {
    return te::Compute(
        args.input(i).shape(),
        [&](const te::Indices& c) {
          if (!training) return args.input(i)(c);
          const PrimExpr kept = at(i, c[0]) * ir::MakeConst(wide, 1 - momentum);
          return ir::Cast(args.input(i).dtype(), kept + batch(c) * ir::MakeConst(wide, momentum));
        },
        name);
  };
  return {out, moved(kMean, batch_mean, "T_mean"), moved(kVariance, batch_variance, "T_variance")};
}

double BatchNormCost(const ir::Call& call, const Target&) { return 5 * EstimateElements(call->type); }

}  // namespace

std::vector<OpRow> BatchNormOps() {
  std::vector<OpRow> rows;
  rows.push_back(
      {.name = "nn.batch_norm",
       .summary = "(x - mean) / sqrt(variance + epsilon) * gamma + beta per channel; the running statistics",
       .arg_names = {"data", "gamma", "beta", "moving_mean", "moving_var"},
       .attrs = {{"axis", AttrType::kInt, {}, true},
                 {"epsilon", AttrType::kFloat, 1e-5},
                 {"center", AttrType::kBool, true},
                 {"scale", AttrType::kBool, true},
                 {"momentum", AttrType::kFloat, 0.1},
                 {"training", AttrType::kBool, true}},
       .infer = InferBatchNorm,
       .reference = ReferenceBatchNorm,
       .implementations = {{"direct", Always, BatchNormCost, {}, BuildMany<DefineBatchNorm>}},
       .cases = {.rank0 = false,
                 .dtypes = {DataType::Float(32), DataType::Float(16), DataType::Bfloat16(), DataType::Float(64)}}});
  return rows;
}

}  // namespace ingot::op
