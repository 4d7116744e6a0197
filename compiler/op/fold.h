// Constant folding of one call. OpRow::prepare names the builtin that computes an operator's call; folding runs the
// host routine behind that builtin on the constants, so folding and a kept `prepare` function in the VM compute the
// same bytes.
#pragma once

#include <memory>
#include <span>

#include "compiler/op/registry.h"

namespace ingot::op {

using ConstantPtr = std::shared_ptr<const ir::ConstantData>;

// OpRow::fold of every operator that has `prepare`.
Result<ConstantPtr> FoldByPrepare(const ir::Call& call, std::span<const ConstantPtr> inputs);
// Runs one host routine by the name of its builtin; the result has the type of the call.
Result<ConstantPtr> RunHostRoutine(const ir::Call& call, const PrepareCall& prepare,
                                   std::span<const ConstantPtr> inputs);
// OpRow::fold of operators that move elements: the reference evaluation.
Result<ConstantPtr> FoldByReference(const ir::Call& call, std::span<const ConstantPtr> inputs);
// The same of those that compare elements, or whose results are exact. Unsigned integers from 2^63 on are left: the
// reference has integers as signed ones.
Result<ConstantPtr> FoldExact(const ir::Call& call, std::span<const ConstantPtr> inputs);
// A constant of the call's type with every element equal to value.
Result<ConstantPtr> FilledConstant(const ir::Call& call, double value);
// A constant without dimensions.
ir::Expr NumberConstant(double value, DataType dtype);

}  // namespace ingot::op
