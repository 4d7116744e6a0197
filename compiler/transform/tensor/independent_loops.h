// IterationsAreIndependent: whether the iterations of a lowered loop may run in any order, at once. Private to the tensor
// passes.
#pragma once

#include "compiler/arith/analyzer.h"
#include "compiler/ir/stmt.h"

namespace ingot::transform {

// True where no iteration reads or writes an element that another one writes. That is proved buffer by buffer: a buffer
// that is allocated inside of the loop belongs to one iteration; every other one that is stored to has a dimension whose
// indices, in all its accesses, lie in a range that moves with the loop's variable by at least its own length. Anything
// else (elements at places from a table, calls of functions) is not proved. `analyzer` knows what stands around the
// loop; what is not bound there is at least 0.
bool IterationsAreIndependent(const ir::ForNode& loop, const arith::Analyzer& analyzer);

}  // namespace ingot::transform
