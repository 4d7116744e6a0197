// Destination passing: `y = R.call_tir(cls.f, (a, b), out_ty=T)` becomes an allocation and a plain call,
//     y: T = R.builtin.alloc_tensor(R.shape([...]), R.dtype("..."), R.prim_value(0))
//     cls.f(a, b, y)
// Before: every operator is legalised and fused; values stand in dataflow blocks. After: no call_tir is left, every
// buffer that a kernel writes has a binding of its own, and blocks and functions are not pure any more, since they
// hold calls that write. It stands after the graph passes, which want purity, and before memory planning, which wants buffers.
#pragma once

#include "compiler/ir/module.h"
#include "compiler/transform/pass.h"
#include "runtime/status.h"

namespace ingot::lower {

Result<ir::IRModule> DestinationPassing(ir::IRModule module, transform::PassContext& context);

}  // namespace ingot::lower
