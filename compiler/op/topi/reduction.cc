// Reductions as stages over reduction axes; means, variances and softmax are composed of several such stages.
#include "compiler/op/topi/reduction.h"

#include <algorithm>
#include <limits>

#include "runtime/check.h"

namespace ingot::op::topi {
namespace {

bool Contains(const std::vector<int>& axes, size_t axis) {
  return std::ranges::find(axes, static_cast<int>(axis)) != axes.end();
}

// The dtype of the sums whose quotient by a count is a mean or a variance. Integers of up to 32 bits are summed in
// 64 bits: neither the sum nor the count of elements may wrap before they are divided.
DataType SumType(DataType dtype) {
  const bool is_narrow = dtype.is_integral() && dtype.bits < 64;
  return is_narrow ? DataType::Int(64, dtype.lanes) : WideType(dtype);
}

// The product of the extents of axes as a number of the dtype of such a sum; of integers at least 1, so that the mean
// of none is 0.
PrimExpr CountOf(const te::Tensor& x, const std::vector<int>& axes) {
  PrimExpr count = ir::Int64(1);
  for (int axis : axes) count = count * x.shape()[static_cast<size_t>(axis)];
  if (x.dtype().is_integral()) count = ir::Max(count, ir::Int64(1));
  return ir::Cast(SumType(x.dtype()), count);
}

PrimExpr Summand(PrimExpr e) {
  const DataType dtype = SumType(e->dtype);
  return ir::Cast(dtype, std::move(e));
}

PrimExpr WideElement(PrimExpr e, const te::Indices&) { return Wide(std::move(e)); }

// The index of a tensor whose reduced axes were kept as 1.
te::Indices KeptIndices(const te::Indices& index, const std::vector<int>& axes) {
  te::Indices kept = index;
  for (int axis : axes) kept[static_cast<size_t>(axis)] = ir::Int64(0);
  return kept;
}

PrimExpr Exponential(PrimExpr x) { return ir::CallIntrinsic(ir::Intrinsic::kExp, {std::move(x)}); }

}  // namespace

te::Indices Without(const te::Indices& index, const std::vector<int>& axes) {
  te::Indices rest;
  for (size_t i = 0; i < index.size(); ++i) {
    if (!Contains(axes, i)) rest.push_back(index[i]);
  }
  return rest;
}

PrimExpr Identity(Reducer reducer, DataType dtype) {
  const double infinity = std::numeric_limits<double>::infinity();
  switch (reducer) {
    case Reducer::kSum:
      return ir::MakeConst(dtype, 0);
    case Reducer::kProd:
      return ir::MakeConst(dtype, 1);
    case Reducer::kMax:
      return dtype.is_floating() ? ir::MakeConst(dtype, -infinity) : ir::MinValue(dtype);
    case Reducer::kMin:
      return dtype.is_floating() ? ir::MakeConst(dtype, infinity) : ir::MaxValue(dtype);
  }
  INGOT_UNREACHABLE();
}

PrimExpr ReduceOver(Reducer reducer, PrimExpr source, const std::vector<ir::IterVar>& axes) {
  if (axes.empty()) return source;
  const DataType dtype = source->dtype;
  for (const ir::IterVar& axis : axes) {
    if (ir::IsConstInt(axis->domain.extent, 0)) return Identity(reducer, dtype);
  }
  const auto combine = [&](const te::Indices& lhs, const te::Indices& rhs) -> std::vector<PrimExpr> {
    switch (reducer) {
      case Reducer::kSum:
        return {lhs[0] + rhs[0]};
      case Reducer::kProd:
        return {lhs[0] * rhs[0]};
      case Reducer::kMax:
        return {ir::Max(lhs[0], rhs[0])};
      case Reducer::kMin:
        return {ir::Min(lhs[0], rhs[0])};
    }
    INGOT_UNREACHABLE();
  };
  return te::Reduce({std::move(source)}, axes, combine, {Identity(reducer, dtype)})[0];
}

te::Tensor Reduce(Reducer reducer, const te::Tensor& x, const std::vector<int>& axes, bool keepdims,
                  const std::function<PrimExpr(PrimExpr, const te::Indices&)>& fn, std::string name) {
  std::vector<ir::IterVar> reduced;
  std::vector<ir::IterVar> of_axis(x.shape().size());
  Shape shape;
  for (size_t i = 0; i < x.shape().size(); ++i) {
    if (Contains(axes, i)) {
      of_axis[i] = te::ReduceAxis(x.shape()[i], "k" + std::to_string(reduced.size()));
      reduced.push_back(of_axis[i]);
      if (keepdims) shape.push_back(ir::Int64(1));
    } else {
      shape.push_back(x.shape()[i]);
    }
  }
  return te::Compute(
      shape,
      [&](const te::Indices& out) {
        te::Indices index;
        size_t next = 0;
        for (size_t i = 0; i < x.shape().size(); ++i) {
          if (of_axis[i] == nullptr) {
            index.push_back(out[next++]);
          } else {
            index.push_back(of_axis[i]->var);
            next += keepdims ? 1 : 0;
          }
        }
        return ReduceOver(reducer, fn(x(index), index), reduced);
      },
      std::move(name));
}

te::Tensor Reduce(Reducer reducer, const te::Tensor& x, const std::vector<int>& axes, bool keepdims, std::string name) {
  if (reducer == Reducer::kSum || reducer == Reducer::kProd) {
    return CastTo(Reduce(reducer, x, axes, keepdims, WideElement, std::move(name)), x.dtype());
  }
  return Reduce(
      reducer, x, axes, keepdims, [](PrimExpr e, const te::Indices&) { return e; }, std::move(name));
}

te::Tensor WideMean(const te::Tensor& x, const std::vector<int>& axes, bool keepdims) {
  const te::Tensor sum = Reduce(
      Reducer::kSum, x, axes, keepdims, [](PrimExpr e, const te::Indices&) { return Summand(std::move(e)); },
      x->name + "_red");
  return Map(
      sum, [&](PrimExpr e) { return e / CountOf(x, axes); }, "T_divide");
}

te::Tensor WideMeanSquare(const te::Tensor& x, const std::vector<int>& axes, bool keepdims) {
  const auto square = [](const PrimExpr& e, const te::Indices&) { return Summand(e) * Summand(e); };
  const te::Tensor sum = Reduce(Reducer::kSum, x, axes, keepdims, square, x->name + "_square");
  return Map(
      sum, [&](PrimExpr e) { return e / CountOf(x, axes); }, "T_divide");
}

te::Tensor Mean(const te::Tensor& x, const std::vector<int>& axes, bool keepdims) {
  return CastTo(WideMean(x, axes, keepdims), x.dtype());
}

te::Tensor WideVariance(const te::Tensor& x, const te::Tensor& mean, const std::vector<int>& axes, bool keepdims) {
  const te::Tensor squares = Reduce(
      Reducer::kSum, x, axes, keepdims,
      [&](PrimExpr e, const te::Indices& index) {
        const bool is_kept = mean.shape().size() == index.size();
        const PrimExpr distance = Summand(e) - mean(is_kept ? KeptIndices(index, axes) : Without(index, axes));
        return distance * distance;
      },
      x->name + "_sqdiff");
  return Map(
      squares, [&](PrimExpr e) { return e / CountOf(x, axes); }, "T_variance");
}

te::Tensor Variance(const te::Tensor& x, const std::vector<int>& axes, bool keepdims) {
  return CastTo(WideVariance(x, WideMean(x, axes, true), axes, keepdims), x.dtype());
}

te::Tensor LogSumExp(const te::Tensor& x, const std::vector<int>& axes, bool keepdims) {
  const te::Tensor greatest = Reduce(Reducer::kMax, x, axes, keepdims, "greatest");
  const auto shift = [&](const te::Indices& i) {
    const PrimExpr m = Wide(greatest(i));
    const PrimExpr infinity = ir::MakeConst(m->dtype, std::numeric_limits<double>::infinity());
    return ir::Select(ir::And(m < infinity, ir::MakeConst(m->dtype, -std::numeric_limits<double>::infinity()) < m), m,
                      ir::MakeConst(m->dtype, 0));
  };
  const te::Tensor sum = Reduce(
      Reducer::kSum, x, axes, keepdims,
      [&](PrimExpr e, const te::Indices& i) {
        return Exponential(Wide(std::move(e)) - shift(keepdims ? KeptIndices(i, axes) : Without(i, axes)));
      },
      "sum");
  return te::Compute(
      sum.shape(),
      [&](const te::Indices& i) {
        return ir::Cast(x.dtype(), ir::CallIntrinsic(ir::Intrinsic::kLog, {sum(i)}) + shift(i));
      },
      "log_sum");
}

te::Tensor Softmax(const te::Tensor& x, int axis) {
  const te::Tensor greatest = Reduce(Reducer::kMax, x, {axis}, false, "T_softmax_maxelem");
  const te::Tensor exponentials = te::Compute(
      x.shape(), [&](const te::Indices& i) { return Exponential(Wide(x(i)) - Wide(greatest(Without(i, {axis})))); },
      "T_softmax_exp");
  const te::Tensor sum = Reduce(Reducer::kSum, exponentials, {axis}, false, "T_softmax_expsum");
  return te::Compute(
      x.shape(),
      [&](const te::Indices& i) {  // one division a row
        const PrimExpr total = sum(Without(i, {axis}));
        return ir::Cast(x.dtype(), exponentials(i) * (ir::MakeConst(total->dtype, 1) / total));
      },
      "T_softmax_norm");
}

te::Tensor LogSoftmax(const te::Tensor& x, int axis) {
  const te::Tensor greatest = Reduce(Reducer::kMax, x, {axis}, false, "T_softmax_maxelem");
  const auto shifted = [&](const PrimExpr& e, const te::Indices& i) {
    return Wide(e) - Wide(greatest(Without(i, {axis})));
  };
  const te::Tensor sum = Reduce(
      Reducer::kSum, x, {axis}, false, [&](PrimExpr e, const te::Indices& i) { return Exponential(shifted(e, i)); },
      "T_softmax_expsum");
  return te::Compute(
      x.shape(),
      [&](const te::Indices& i) {
        const PrimExpr log_sum = ir::CallIntrinsic(ir::Intrinsic::kLog, {sum(Without(i, {axis}))});
        return ir::Cast(x.dtype(), shifted(x(i), i) - log_sum);
      },
      "compute");
}

}  // namespace ingot::op::topi
