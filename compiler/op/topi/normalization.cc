// The stages of each normalisation: sums and means in the wider dtype (reduction.h), then the result by element.
#include "compiler/op/topi/normalization.h"

#include <algorithm>
#include <functional>

#include "compiler/op/infer.h"
#include "compiler/op/topi/reduction.h"

namespace ingot::op::topi {
namespace {

PrimExpr Rsqrt(PrimExpr x) { return ir::CallIntrinsic(ir::Intrinsic::kRsqrt, {std::move(x)}); }
PrimExpr Constant(const PrimExpr& like, double value) { return ir::MakeConst(like->dtype, value); }

te::Indices Select(const te::Indices& index, const std::vector<int>& axes) {
  te::Indices chosen;
  for (int axis : axes) chosen.push_back(index[static_cast<size_t>(axis)]);
  return chosen;
}

PrimExpr ScaleAndShift(PrimExpr x, const te::Tensor* gamma, const te::Tensor* beta, const te::Indices& param) {
  if (gamma != nullptr) x = x * ir::Cast(x->dtype, (*gamma)(param));
  if (beta != nullptr) x = x + ir::Cast(x->dtype, (*beta)(param));
  return x;
}

}  // namespace

te::Tensor Normalize(const te::Tensor& x, const te::Tensor* gamma, const te::Tensor* beta, const std::vector<int>& axes,
                     const std::vector<int>& param_axes, double epsilon) {
  const te::Tensor mean = WideMean(x, axes, false);
  const te::Tensor variance = WideVariance(x, mean, axes, false);
  return te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        const te::Indices kept = Without(i, axes);
        const PrimExpr spread = variance(kept);
        const PrimExpr normal = (Wide(x(i)) - mean(kept)) * Rsqrt(spread + Constant(spread, epsilon));
        return ir::Cast(x.dtype(), ScaleAndShift(normal, gamma, beta, Select(i, param_axes)));
      },
      "T_norm");
}

te::Tensor GroupNorm(const te::Tensor& x, const te::Tensor* gamma, const te::Tensor* beta, int64_t num_groups,
                     int channel_axis, const std::vector<int>& axes, double epsilon) {
  const auto channel = static_cast<size_t>(channel_axis);
  const PrimExpr per_group = SimplifyDim(ir::FloorDiv(x.shape()[channel], ir::Int64(num_groups)));
  // The sums of fn(element, indices of the result) over each group. Their dims are those of x without the reduced axes,
  // with groups in place of channels.
  const auto sum_groups = [&](const std::function<PrimExpr(PrimExpr, const te::Indices&)>& fn, std::string name) {
    std::vector<ir::IterVar> reduced = {te::ReduceAxis(per_group, "k0")};
    te::Indices from(x.shape().size());
    Shape shape;
    for (size_t i = 0; i < from.size(); ++i) {
      if (std::ranges::find(axes, static_cast<int>(i)) == axes.end()) {
        shape.push_back(i == channel ? ir::Int64(num_groups) : x.shape()[i]);
      } else {
        reduced.push_back(te::ReduceAxis(x.shape()[i], "k" + std::to_string(reduced.size())));
        from[i] = reduced.back()->var;
      }
    }
    return te::Compute(
        shape,
        [&](const te::Indices& out) {
          size_t next = 0;
          te::Indices index = from;
          for (size_t i = 0; i < index.size(); ++i) {
            if (from[i] == nullptr) index[i] = out[next++];
            if (i == channel) index[i] = index[i] * per_group + reduced[0]->var;
          }
          return ReduceOver(Reducer::kSum, fn(Wide(x(index)), out), reduced);
        },
        std::move(name));
  };
  PrimExpr count = per_group;
  for (int axis : axes) count = count * x.shape()[static_cast<size_t>(axis)];
  const auto divide = [&](PrimExpr e) { return e / ir::Cast(WideType(x.dtype()), count); };
  const auto same = [](PrimExpr e, const te::Indices&) { return e; };
  const te::Tensor mean = Map(sum_groups(same, x->name + "_red"), divide, "T_divide");
  const auto square = [&](const PrimExpr& e, const te::Indices& out) { return (e - mean(out)) * (e - mean(out)); };
  const te::Tensor variance = Map(sum_groups(square, x->name + "_sqdiff"), divide, "T_variance");
  return te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        te::Indices index = i;
        index[channel] = ir::FloorDiv(i[channel], per_group);
        const te::Indices kept = Without(index, axes);
        const PrimExpr spread = variance(kept);
        const PrimExpr normal = (Wide(x(i)) - mean(kept)) * Rsqrt(spread + Constant(spread, epsilon));
        return ir::Cast(x.dtype(), ScaleAndShift(normal, gamma, beta, {i[channel]}));
      },
      "T_norm");
}

te::Tensor RmsNorm(const te::Tensor& x, const te::Tensor& weight, const std::vector<int>& axes, double epsilon) {
  const te::Tensor mean = WideMeanSquare(x, axes, false);
  return te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        const PrimExpr square = mean(Without(i, axes));
        const PrimExpr normal = Wide(x(i)) * Rsqrt(square + Constant(square, epsilon));
        return ir::Cast(x.dtype(), ScaleAndShift(normal, &weight, nullptr, Select(i, axes)));
      },
      "T_norm");
}

te::Tensor LocalResponseNorm(const te::Tensor& x, int64_t size, int axis, double alpha, double beta, double bias) {
  const auto at = static_cast<size_t>(axis);
  const ir::IterVar tap = te::ReduceAxis(ir::Int64(size), "k");
  const te::Tensor sum = te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        te::Indices index = i;
        index[at] = i[at] + tap->var - (size - 1) / 2;
        const PrimExpr inside = ir::And(index[at] >= ir::Int64(0), index[at] < x.shape()[at]);
        const PrimExpr e = Wide(x(index));
        return ReduceOver(Reducer::kSum, ir::IfThenElse(inside, e * e, Constant(e, 0)), {tap});
      },
      "T_neighbours");
  return te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        const PrimExpr e = Wide(x(i));
        const PrimExpr base = Constant(e, bias) + Constant(e, alpha / static_cast<double>(size)) * sum(i);
        return ir::Cast(x.dtype(), e / ir::CallIntrinsic(ir::Intrinsic::kPow, {base, Constant(e, beta)}));
      },
      "T_lrn");
}

te::Tensor Hardmax(const te::Tensor& x, int axis) {
  const auto at = static_cast<size_t>(axis);
  const te::Tensor greatest = Reduce(Reducer::kMax, x, {axis}, false, "T_maxelem");
  const te::Tensor first = Reduce(
      Reducer::kMin, x, {axis}, false,
      [&](const PrimExpr& e, const te::Indices& i) {
        return ir::Select(ir::Equal(e, greatest(Without(i, {axis}))), i[at], x.shape()[at]);
      },
      "T_first");
  return te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        return ir::Select(ir::Equal(i[at], first(Without(i, {axis}))), ir::MakeConst(x.dtype(), 1),
                          ir::MakeConst(x.dtype(), 0));
      },
      "T_hardmax");
}

}  // namespace ingot::op::topi
