// The graph passes by name, for the table in pipeline.cc. Each is in the file of its name; the comment at its top says
// what holds before and after it, and why it has its place in the pipeline.
#pragma once

#include "compiler/ir/module.h"
#include "compiler/transform/pass.h"
#include "runtime/status.h"

namespace ingot::transform {

Result<ir::IRModule> Normalize(ir::IRModule module, PassContext& context);
Result<ir::IRModule> LambdaLift(ir::IRModule module, PassContext& context);
Result<ir::IRModule> ConvertToDataflow(ir::IRModule module, PassContext& context);
Result<ir::IRModule> UnfoldBatchNorms(ir::IRModule module, PassContext& context);
Result<ir::IRModule> FoldQuantisedWeights(ir::IRModule module, PassContext& context);
Result<ir::IRModule> RewriteQuantisedProducts(ir::IRModule module, PassContext& context);
Result<ir::IRModule> FitWindows(ir::IRModule module, PassContext& context);
Result<ir::IRModule> FoldConstants(ir::IRModule module, PassContext& context);
Result<ir::IRModule> EliminateCommonSubexpressions(ir::IRModule module, PassContext& context);
Result<ir::IRModule> FoldScales(ir::IRModule module, PassContext& context);
Result<ir::IRModule> RewritePatterns(ir::IRModule module, PassContext& context);
Result<ir::IRModule> EliminateDeadCode(ir::IRModule module, PassContext& context);
Result<ir::IRModule> KeepStates(ir::IRModule module, PassContext& context);
Result<ir::IRModule> SplitBySize(ir::IRModule module, PassContext& context);
Result<ir::IRModule> JoinSizes(ir::IRModule module, PassContext& context);
Result<ir::IRModule> ConvertLayout(ir::IRModule module, PassContext& context);
Result<ir::IRModule> TabulateBytes(ir::IRModule module, PassContext& context);
Result<ir::IRModule> PackWeights(ir::IRModule module, PassContext& context);
Result<ir::IRModule> LiftParams(ir::IRModule module, PassContext& context);
Result<ir::IRModule> SplitSignedScalars(ir::IRModule module, PassContext& context);
Result<ir::IRModule> BindScalars(ir::IRModule module, PassContext& context);
Result<ir::IRModule> AnnotateFusionClass(ir::IRModule module, PassContext& context);
Result<ir::IRModule> FuseOps(ir::IRModule module, PassContext& context);
Result<ir::IRModule> FuseTir(ir::IRModule module, PassContext& context);
Result<ir::IRModule> NameLongDims(ir::IRModule module, PassContext& context);
Result<ir::IRModule> ReadCachesInPlace(ir::IRModule module, PassContext& context);
Result<ir::IRModule> AppendByKernels(ir::IRModule module, PassContext& context);
Result<ir::IRModule> PermitTf32(ir::IRModule module, PassContext& context);
Result<ir::IRModule> DefaultSchedule(ir::IRModule module, PassContext& context);

}  // namespace ingot::transform
