// Destination passing: `y = R.call_tir(cls.f, (a, b), out_ty=T)` becomes an allocation and a plain call,
//     y: T = R.builtin.alloc_tensor(R.shape([...]), R.dtype("..."), R.prim_value(0))
//     cls.f(a, b, y)
// and, in a function that prepares weights, a call of an operator becomes one of the VM's builtins in the same way,
//     R.call_packed("vm.builtin.permute", y, a, R.shape([1, 0]), out_ty=R.Tuple)
// and R.kv_cache.append becomes such a call that writes into the cache itself.
// That and call_tir_inplace write the argument itself where it is the function's own, or a state's cache, and nobody reads
// it later, and a copy of it elsewhere, so that values keep their meaning, whatever a module claims. Calls of the
// embedding program's functions become R.call_packed, with the attribute "num_outputs" when their last arguments are
// outputs.
// Before: every operator is legalised and fused; values stand in dataflow blocks. After: no call_tir is left, every
// buffer that a kernel writes has a binding of its own, and blocks and functions are not pure any more, since they hold
// calls that write. It runs after the graph passes, which need pure functions, and before memory planning, which needs
// buffers.
#pragma once

#include <cstdint>
#include <string_view>

#include "compiler/ir/expr.h"
#include "compiler/ir/module.h"
#include "compiler/transform/pass.h"
#include "runtime/status.h"

namespace ingot::memory {

inline constexpr std::string_view kBuiltinPrefix = "vm.builtin.";  // before a name of vm/program/builtins.def

// A call of a function of the embedding program has these attributes: the last num_outputs arguments are tensors that
// it writes.
inline constexpr const char* kNumOutputsAttr = "num_outputs";
inline constexpr const char* kPureAttr = "pure";  // it has no effects
int64_t NumWrittenArguments(const ir::CallNode& call);

Result<ir::IRModule> DestinationPassing(ir::IRModule module, transform::PassContext& context);

}  // namespace ingot::memory
