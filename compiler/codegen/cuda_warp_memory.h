// Buffers of the scope "warp": the lanes of a warp have one together, as registers that are the first factor of its matrix
// instructions. Each store becomes one to the lane's own part, in the order in which mma.sync takes it.
#pragma once

#include "compiler/ir/stmt.h"
#include "runtime/status.h"

namespace ingot::codegen {

// Of a launch's statements. A buffer [rows, columns] has the rows of its warps one after the other; warp w stores the
// element [w * R + 8 * i + lane / 4, 8 * n + lane % 4 * 2 + y] from this lane, for constants i, n and y. What is stored
// elsewhere is an error. Loads are of the nests of products, which read the registers (CudaTiles).
Result<ir::Stmt> KeepInFragments(const ir::Stmt& body);

}  // namespace ingot::codegen
