// Calls of very many tensors. A kernel takes a limited number of them (vm::kMaxKernelParams), and takes long to compile
// when there are many: what goes in is a call of any number of tensors, what comes out takes kMaxTensorsOfCall at most
// where the operator can be computed from intermediate results.
#pragma once

#include <functional>

#include "compiler/op/registry.h"

namespace ingot::op {

inline constexpr size_t kMaxTensorsOfCall = 32;

// The call that takes the place of this one, of the same type; `bind` gives calls before it a name. The same call where
// it has few tensors, or needs them all at once.
Result<ir::Call> NarrowCall(const ir::Call& call, const std::function<ir::Expr(const ir::Call&)>& bind);

}  // namespace ingot::op
