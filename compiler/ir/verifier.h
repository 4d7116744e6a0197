// The verifiers of the IR: one per level. They hold before and after every pass; a message names the function, the
// binding or statement, and what is wrong.
#pragma once

#include "compiler/ir/module.h"
#include "runtime/status.h"

namespace ingot::ir {

// What may be an argument: anything that is evaluated without a step of its own, tuples of such included.
bool IsLeaf(const Expr& expr);

// Graph level: A-normal form, every variable defined once before its use, dataflow variables inside their block,
// dataflow blocks pure, GlobalVars present, types present (when require_types) and arity as declared.
Status VerifyFunction(const IRModule& module, const Function& function, bool require_types = true);
// Tensor level: scopes of variables and buffers, dtypes of operands, rank of accesses, block bindings, nesting.
Status VerifyPrimFunc(const PrimFunc& function);
Status VerifyModule(const IRModule& module, bool require_types = true);

}  // namespace ingot::ir
