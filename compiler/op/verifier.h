// The verifiers of the graph level and of whole modules. They hold before and after every pass; a message names the
// function, the binding, and what is wrong. Effects are what operators declare.
#pragma once

#include "compiler/ir/module.h"
#include "runtime/status.h"

namespace ingot::op {

// Whether an expression may be an argument of a call: a variable, a constant or another value that needs no binding of
// its own, or a tuple of such.
bool IsLeaf(const ir::Expr& expr);

// Graph level: A-normal form, every variable defined once before its use, dataflow variables inside their block,
// dataflow blocks pure, GlobalVars present, types present (when require_types) and arity as declared.
Status VerifyFunction(const ir::IRModule& module, const ir::Function& function, bool require_types = true);
// Both levels (ir/verify_prim_func.h), every function.
Status VerifyModule(const ir::IRModule& module, bool require_types = true);

}  // namespace ingot::op
