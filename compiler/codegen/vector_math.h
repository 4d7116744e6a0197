// EmitVectorMath: the elementary functions as LLVM IR, for scalars and for vectors of any number of lanes, so that
// kernels need no math library. float32: at most 4 ULP over all arguments, sin, cos and tan of huge ones included.
// float64: a few ULP; sin, cos and tan lose accuracy beyond |x| = 2^30. NaN, infinities, signed zeros and denormal
// arguments and results come out as C's functions have them. Results do not depend on the number of lanes.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "compiler/ir/prim_expr.h"

namespace ingot::codegen {

// True for the intrinsics that EmitVectorMath expands.
bool IsVectorMath(ir::Intrinsic op);
// arguments: float or double, or vectors of one of them, as many as the intrinsic takes. May add basic blocks.
llvm::Value* EmitVectorMath(llvm::IRBuilderBase& builder, ir::Intrinsic op, llvm::ArrayRef<llvm::Value*> arguments);

}  // namespace ingot::codegen
