// The passes of the tensor level, in the order of tensor_pipeline.cc, one file each. The top of each file says what
// holds before and after its pass.
#pragma once

#include "compiler/arith/analyzer.h"
#include "compiler/ir/expr.h"
#include "compiler/target/target.h"
#include "runtime/status.h"

namespace ingot::transform {

Result<ir::PrimFunc> SeparateInits(const ir::PrimFunc& function, const Target& target);
Result<ir::PrimFunc> LowerBlocks(const ir::PrimFunc& function, const Target& target);
Result<ir::PrimFunc> FuseParallelLoops(const ir::PrimFunc& function, const Target& target);
Result<ir::PrimFunc> BindThreads(const ir::PrimFunc& function, const Target& target);
Result<ir::PrimFunc> PlaceBuffers(const ir::PrimFunc& function, const Target& target);
Result<ir::PrimFunc> JamLoops(const ir::PrimFunc& function, const Target& target);
Result<ir::PrimFunc> PartitionLoops(const ir::PrimFunc& function, const Target& target);
Result<ir::PrimFunc> FlattenAccesses(const ir::PrimFunc& function, const Target& target);
Result<ir::PrimFunc> VectorizeLoops(const ir::PrimFunc& function, const Target& target);
Result<ir::PrimFunc> LoadFirst(const ir::PrimFunc& function, const Target& target);
Result<ir::PrimFunc> UnrollLoops(const ir::PrimFunc& function, const Target& target);
Result<ir::PrimFunc> ChunkTasks(const ir::PrimFunc& function, const Target& target);
Result<ir::PrimFunc> UnfuseLoops(const ir::PrimFunc& function, const Target& target);
Result<ir::PrimFunc> HoistConditions(const ir::PrimFunc& function, const Target& target);
Result<ir::PrimFunc> SplitBroadcasts(const ir::PrimFunc& function, const Target& target);
Result<ir::PrimFunc> SimplifyTensor(const ir::PrimFunc& function, const Target& target);

// Returns the function with another body.
ir::PrimFunc WithBody(const ir::PrimFunc& function, ir::Stmt body);
// Whether the statement does nothing.
bool IsEmptyStmt(const ir::Stmt& stmt);
// Whether a divisor in it may be 0, which fails where it is evaluated, and not before.
bool MayDivideByZero(const ir::PrimExpr& expr, arith::Analyzer& analyzer);

}  // namespace ingot::transform
