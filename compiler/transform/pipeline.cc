// The graph pipeline: one table, and the loop that runs it. Every pass takes and gives a verified module.
#include <chrono>

#include "compiler/ir/verifier.h"
#include "compiler/transform/legalize.h"
#include "compiler/transform/pass.h"
#include "compiler/transform/passes.h"

namespace ingot::transform {
namespace {

// In order. Columns: name, what it does, least -O level, function.
constexpr PassRow kPipeline[] = {
    {"normalize", "infer every type; A-normal form", 0, Normalize},
    {"fold_constants", "evaluate calls over constants by the rows' host routines", 1, FoldConstants},
    {"eliminate_common_subexpressions", "merge equal pure computations, aliases and projections", 1,
     EliminateCommonSubexpressions},
    {"rewrite_patterns", "name what exporters spelled out: normalisations, activations, attention", 1, RewritePatterns},
    {"merge_after_rewrites", "merge what rewriting made equal", 1, EliminateCommonSubexpressions},
    {"fold_scales", "scales and shifts behind convolutions become part of their weights", 1, FoldScales},
    {"eliminate_dead_code", "drop unused pure bindings and unused private functions", 1, EliminateDeadCode},
    {"convert_layout", "convolutional regions in blocks of channels", 1, ConvertLayout},
    // Before operators become tensor functions: weights are packed and prepared by rows alone.
    {"pack_weights", "give weights the layout that kernels read", 1, PackWeights},
    {"lift_params", "gather what depends on weights alone and prepare it", 1, LiftParams},
    {"legalize", "turn operator calls into calls of tensor functions", 0, Legalize},
    {"bind_scalars", "constants of one number are immediates of what reads them", 1, BindScalars},
    {"annotate_fusion_class", "find how each tensor function may be fused", 1, AnnotateFusionClass},
    {"fuse_ops", "group calls of tensor functions that run as one", 1, FuseOps},
    {"fuse_tir", "merge each group into one tensor function", 1, FuseTir},
    {"eliminate_dead_code_after_fusion", "drop the tensor functions that fusion took over", 1, EliminateDeadCode},
};

}  // namespace

std::span<const PassRow> Pipeline() { return kPipeline; }

const PassRow* FindPass(std::string_view name) {
  for (const PassRow& row : kPipeline) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

Result<ir::IRModule> RunPasses(ir::IRModule module, std::span<const PassRow> passes, PassContext& context) {
  for (const PassRow& pass : passes) {
    if (context.options.opt_level < pass.min_opt_level) continue;
    const auto start = std::chrono::steady_clock::now();
    Result<ir::IRModule> result = pass.run(std::move(module), context);
    if (!result.ok()) return std::move(result).status().WithContext(pass.name);
    module = *std::move(result);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    Status valid = ir::VerifyModule(module);
    if (!valid.ok()) return std::move(valid).WithContext("after " + std::string(pass.name));
    if (context.after_pass) INGOT_RETURN_IF_ERROR(context.after_pass(pass.name, module, seconds));
  }
  return module;
}

}  // namespace ingot::transform
