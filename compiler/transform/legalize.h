// legalize
//   Before: calls of operators have types (type inference has run), their attributes are complete.
//   After:  no call of an operator is left except views (reshape and the like) and primitives (call_tir, shape_of):
//           each other one is R.call_tir of a PrimFunc of the module, built by the operator's cheapest implementation
//           whose predicate holds for the target. Structurally equal PrimFuncs are one function.
//   After the graph passes that know operators (folding, layouts), before those that know PrimFuncs (fusion).
// If no implementation applies, one error lists every such call.
#pragma once

#include "compiler/ir/module.h"
#include "compiler/transform/pass.h"
#include "runtime/status.h"

namespace ingot::transform {

Result<ir::IRModule> Legalize(ir::IRModule module, PassContext& context);

}  // namespace ingot::transform
