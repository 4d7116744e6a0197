// window_sum: an axis becomes sums over windows that lie anywhere on it, as pools whose windows are not all alike and
// resizes with antialias have them. It takes memory and time for the windows alone, where a product with a matrix
// [in, out] would take both for all elements, and would multiply infinities of other windows by 0.
#include <algorithm>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/indexing.h"
#include "compiler/op/topi/reduction.h"

namespace ingot::op {
namespace {

enum WindowSumArg : size_t { kWindowed, kWindowWeights, kWindowBegins };

Result<ir::Type> InferWindowSum(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, kWindowed));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType weights, TensorArg(call, kWindowWeights));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType begins, TensorArg(call, kWindowBegins));
  for (const ir::TensorType& floats : {x, weights}) {
    if (floats->dtype && !floats->dtype->is_floating())
      return OpError(call, "expected floats, got " + Describe(floats));
  }
  if (begins->dtype && *begins->dtype != DataType::Int(64)) {
    return OpError(call, "begins: expected int64, got " + Describe(begins));
  }
  const bool fits = (weights->rank < 0 || weights->rank == 2) && (begins->rank < 0 || begins->rank == 1);
  if (!fits || (weights->dims && begins->dims && DimsDiffer((*weights->dims)[0], (*begins->dims)[0]))) {
    return OpError(call, "expected weights [windows, taps] and begins [windows], got " + Describe(weights) + " and " +
                             Describe(begins));
  }
  if (x->rank < 0) return TensorOfRank(-1, x->dtype, x);
  INGOT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call, call->attrs.GetInt("axis"), x->rank));
  if (!x->dims || !weights->dims) return TensorOfRank(x->rank, x->dtype, x);
  Dims dims = *x->dims;
  dims[static_cast<size_t>(axis)] = (*weights->dims)[0];
  return TensorOf(std::move(dims), x->dtype, x);
}

Result<std::vector<ReferenceTensor>> ReferenceWindowSum(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor &x = inputs[kWindowed], &weights = inputs[kWindowWeights], &begins = inputs[kWindowBegins];
  INGOT_ASSIGN_OR_RETURN(const int axis,
                         NormalizeAxis(call, call->attrs.GetInt("axis"), static_cast<int>(x.dims.size())));
  const auto at = static_cast<size_t>(axis);
  const int64_t taps = weights.dims[1], extent = x.dims[at];
  std::vector<int64_t> dims = x.dims;
  dims[at] = weights.dims[0];
  ReferenceTensor out = NewReference(x.dtype, dims);
  ForEachIndex(dims, [&](const Index& index, int64_t flat) {
    double sum = 0;
    for (int64_t tap = 0; tap < taps && extent > 0; ++tap) {
      const double weight = GetNumber(weights, index[at] * taps + tap);
      if (weight == 0) continue;
      Index from = index;
      from[at] = std::clamp<int64_t>(begins.ints[static_cast<size_t>(index[at])] + tap, 0, extent - 1);
      sum += weight * GetNumber(x, Flatten(x.dims, from));
    }
    SetNumber(out, flat, sum);
  });
  return OneReference(std::move(out));
}

te::Tensor DefineWindowSum(const TeArgs& args) {
  const te::Tensor &x = args.input(kWindowed), &weights = args.input(kWindowWeights);
  const int axis = *NormalizeAxis(args.call(), args.call()->attrs.GetInt("axis"), x.rank());
  const auto at = static_cast<size_t>(axis);
  const ir::IterVar tap = te::ReduceAxis(weights.shape()[1], "tap");
  const ir::PrimExpr nothing = ir::MakeConst(topi::WideType(x.dtype()), 0);
  const te::Tensor sum = te::Compute(
      args.out_dims(),
      [&](const te::Indices& out) {
        const ir::PrimExpr weight = ir::Cast(nothing->dtype, weights({out[at], tap->var}));
        te::Indices from = out;
        const ir::PrimExpr place = args.input(kWindowBegins)({out[at]}) + tap->var;
        from[at] = topi::PlaceOf(place, x.shape()[at], false);
        const ir::PrimExpr element = topi::Wide(topi::ReadUnlessEmpty(x, std::move(from), {axis}));
        const ir::PrimExpr term = ir::Select(ir::NotEqual(weight, nothing), weight * element, nothing);
        return topi::ReduceOver(topi::Reducer::kSum, term, {tap});
      },
      "window_sum");
  return topi::CastTo(sum, x.dtype());
}

double WindowSumCost(const ir::Call& call, const Target&) {
  const auto* weights = ir::As<ir::TensorTypeNode>(call->args[kWindowWeights]->type);
  const auto taps = weights->dims ? ir::AsConstInt((*weights->dims)[1]) : std::nullopt;
  return EstimateElements(call->type) * static_cast<double>(taps.value_or(1));
}

}  // namespace

std::vector<OpRow> WindowSumOps() {
  return {{.name = "window_sum",
           .summary = "sums of windows of an axis, times weights; what has the weight 0 has no part in a sum",
           .arg_names = {"x", "weights", "begins"},
           .attrs = {{"axis", AttrType::kInt, -1}},
           .infer = InferWindowSum,
           .reference = ReferenceWindowSum,
           .implementations = {{"te", Always, WindowSumCost, {}, Build<DefineWindowSum>}},
           .cases = {.rank0 = false, .dtypes = FloatDataTypes()}}};
}

}  // namespace ingot::op
