// CopyFresh: a second copy of a statement, in which everything that is bound is new, so that each variable of a
// function is bound once. Used wherever code is repeated.
#pragma once

#include "compiler/ir/stmt.h"

namespace ingot::ir {

// The statement with new loop variables, lets and buffers.
Stmt CopyFresh(const Stmt& stmt);
PrimExpr CopyFresh(const PrimExpr& expr);

}  // namespace ingot::ir
