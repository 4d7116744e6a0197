// Calls of very many tensors. A kernel takes a limited number of them (vm::kMaxKernelParams), and takes long to compile
// when there are many, or when their dims have many symbols: NarrowCall turns a call of any number of tensors into calls
// of at most kMaxTensorsOfCall where the operator can be computed from intermediate results.
#pragma once

#include <functional>

#include "compiler/op/registry.h"

namespace ingot::op {

inline constexpr size_t kMaxTensorsOfCall = 32;

// The call that takes the place of this one, of the same type; `bind` emits a call before it and gives its
// variable. A call of few tensors, or of an operator that needs all of them at once, comes back as it is.
Result<ir::Call> NarrowCall(const ir::Call& call, const std::function<ir::Expr(const ir::Call&)>& bind);

}  // namespace ingot::op
