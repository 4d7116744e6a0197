// Tensor expressions of reductions. A reduction over nothing (no axes, or an extent that is known to be 0) is spelled
// without a reduction axis, so that its result is defined. Sums and products of sixteen-bit floats are made in float32
// and rounded by a stage of their own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/op/topi/elementwise.h"

namespace ingot::op::topi {

enum class Reducer : uint8_t { kSum, kProd, kMax, kMin };
// The identity of a reducer: 0, 1, minus or plus infinity (integers: the least or greatest value).
PrimExpr Identity(Reducer reducer, DataType dtype);
// The reduction of source over axes; it must be the whole body of a stage.
PrimExpr ReduceOver(Reducer reducer, PrimExpr source, const std::vector<ir::IterVar>& axes);

// out[kept] = the reduction of fn(x[i], i) over axes.
te::Tensor Reduce(Reducer reducer, const te::Tensor& x, const std::vector<int>& axes, bool keepdims,
                  const std::function<PrimExpr(PrimExpr, const te::Indices&)>& fn, std::string name);
te::Tensor Reduce(Reducer reducer, const te::Tensor& x, const std::vector<int>& axes, bool keepdims, std::string name);
te::Tensor Mean(const te::Tensor& x, const std::vector<int>& axes, bool keepdims);
te::Tensor Variance(const te::Tensor& x, const std::vector<int>& axes, bool keepdims);
// The same, not rounded to x's dtype, of integers as 64 bits; mean was made with or without keepdims.
te::Tensor WideMean(const te::Tensor& x, const std::vector<int>& axes, bool keepdims);
te::Tensor WideMeanSquare(const te::Tensor& x, const std::vector<int>& axes, bool keepdims);
te::Tensor WideVariance(const te::Tensor& x, const te::Tensor& mean, const std::vector<int>& axes, bool keepdims);
// log(sum(exp(x - m))) + m, where m is the greatest element, or 0 if that is infinite.
te::Tensor LogSumExp(const te::Tensor& x, const std::vector<int>& axes, bool keepdims);
// The indices without those of the given axes.
te::Indices Without(const te::Indices& index, const std::vector<int>& axes);

// Stable: the maximum is subtracted first. Stages: maximum, exponentials, their sum, quotient.
te::Tensor Softmax(const te::Tensor& x, int axis);
te::Tensor LogSoftmax(const te::Tensor& x, int axis);

}  // namespace ingot::op::topi
