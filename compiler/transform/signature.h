// What the parameters of a graph function say of a call of it: how many the caller passes, and which symbols they bind.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "compiler/ir/expr.h"

namespace ingot::transform {

// The number of parameters that the caller passes. Those behind them are results of the function that prepares weights.
size_t NumInputs(const ir::FunctionNode& function);

// The variables that these parameters bind when the function is called: those that stand alone as a dim of a tensor or
// shape, by first occurrence.
std::vector<ir::PrimVar> SignatureSymbols(std::span<const ir::Var> params);

}  // namespace ingot::transform
