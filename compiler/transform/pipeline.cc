// The graph passes and their pipelines: a table of the default pipeline, of the passes that are not in it, and of the
// pipelines; and the loop that runs a list of passes. Every pass takes and returns a verified module.
#include <algorithm>
#include <chrono>

#include "compiler/transform/legalize.h"
#include "compiler/transform/pass.h"
#include "compiler/transform/passes.h"
#include "compiler/transform/share_depths.h"
#include "compiler/transform/transposed_factor.h"
#include "runtime/suggest.h"

namespace ingot::transform {

namespace {

// The default pipeline: these passes in this order. Columns: name, what it does, least -O level, function.
const std::vector<Pass>& DefaultPasses() {
  static const std::vector<Pass> table = {
      {"normalize", "infer every type; A-normal form", 0, Normalize},
      {"lambda_lift", "functions in functions become functions of the module", 0, LambdaLift},
      {"convert_to_dataflow", "straight-line computations without effects become dataflow blocks", 1,
       ConvertToDataflow},
      {"unfold_batch_norms", "batch normalisations of weights become arithmetic that folds", 1, UnfoldBatchNorms},
      {"fold_quantised_weights", "weights that the graph quantises become bytes", 1, FoldQuantisedWeights},
      {"quantised_products", "products of dequantised bytes become products of the bytes", 1, RewriteQuantisedProducts},
      {"fit_windows", "convolutions without taps that see padding alone, groups of int16 in whole blocks", 1,
       FitWindows},
      {"fold_constants", "evaluate calls over constants", 1, FoldConstants},
      {"eliminate_common_subexpressions", "merge equal pure computations, aliases and projections", 1,
       EliminateCommonSubexpressions},
      {"rewrite_patterns", "name what exporters spelled out: normalisations, activations, attention", 1,
       RewritePatterns},
      {"merge_after_rewrites", "merge what rewriting made equal", 1, EliminateCommonSubexpressions},
      {"fold_scales", "scales and shifts behind convolutions become part of their weights", 1, FoldScales},
      {"eliminate_dead_code", "drop unused pure bindings and unused private functions", 1, EliminateDeadCode},
      {"keep_states", "inputs and outputs that are one state of the context; caches are appended to", 0, KeepStates},
      {"split_by_size", "networks that are best computed otherwise for small pictures have a copy for them", 1,
       SplitBySize},
      {"convert_layout", "convolutional regions in blocks of channels", 1, ConvertLayout},
      {"tabulate_bytes", "bytes that take long to compute from bytes are looked up", 1, TabulateBytes},
      // Before operators become tensor functions: weights are packed and prepared by operators only.
      {"pack_weights", "give weights the layout that kernels read", 1, PackWeights},
      {"lift_params", "gather what depends on weights alone and prepare it", 1, LiftParams},
      {"legalize", "turn operator calls into calls of tensor functions", 0, Legalize},
      {"split_signed_scalars", "numbers that may be below 0 are given to tensor functions as differences", 0,
       SplitSignedScalars},
      {"bind_scalars", "constants of one number are immediates of what reads them", 1, BindScalars},
      {"annotate_fusion_class", "find how each tensor function may be fused", 1, AnnotateFusionClass},
      {"mark_transpositions", "transpositions may join the products that read them", 1, MarkTranspositions},
      {"fuse_ops", "group calls of tensor functions that run as one", 1, FuseOps},
      {"fuse_tir", "merge each group into one tensor function", 1, FuseTir},
      {"read_caches_in_place", "read caches themselves, not copies of what is filled", 0, ReadCachesInPlace},
      {"append_by_kernels", "where kernels run on a GPU, one of them appends to a cache", 0, AppendByKernels},
      {"join_sizes", "copies for small and large pictures become branches of one function", 1, JoinSizes},
      {"eliminate_dead_code_after_fusion", "drop the tensor functions that fusion took over", 1, EliminateDeadCode},
      {"name_long_dims", "dims of tensor functions that are long formulas become symbols", 0, NameLongDims},
      {"share_depths", "tensor functions that differ in the length of a sum alone become one", 1, ShareDepths},
      {"permit_tf32", "where it is permitted, products of float32 may be those of tf32 on a GPU", 0, PermitTf32},
  };
  return table;
}

// Passes that only other pipelines have, with the same columns.
const std::vector<Pass>& OtherPasses() {
  static const std::vector<Pass> table = {
      // Without it, kernels are scheduled for each record of the target when they are compiled.
      {"default_schedule", "schedule tensor functions for the target's first variant by an ordered list of rules", 0,
       DefaultSchedule},
  };
  return table;
}

const std::vector<Pass>& PassTable() {
  static const std::vector<Pass> table = [] {
    std::vector<Pass> passes = DefaultPasses();
    passes.insert(passes.end(), OtherPasses().begin(), OtherPasses().end());
    return passes;
  }();
  return table;
}

std::vector<std::string> NamesOf(std::span<const Pass> passes) {
  std::vector<std::string> names;
  for (const Pass& pass : passes) names.push_back(pass.name);
  return names;
}

const std::vector<PipelineRow>& PipelineTable() {
  static const std::vector<PipelineRow> table = {
      {"default", "what vm-compile does", NamesOf(DefaultPasses())},
      {"zero",
       "operators become tensor functions, fused; nothing is rewritten before (TVM's pipeline of this name)",
       {"normalize", "lambda_lift", "convert_to_dataflow", "keep_states", "legalize", "split_signed_scalars",
        "annotate_fusion_class", "fold_constants", "fuse_ops", "fuse_tir", "read_caches_in_place", "append_by_kernels",
        "eliminate_dead_code_after_fusion", "name_long_dims"}},
  };
  return table;
}

bool Contains(std::span<const std::string> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<ir::IRModule> RunPass(ir::IRModule module, const Pass& pass, PassContext& context) {
  const std::vector<PassInstrument*>& instruments = context.instruments;
  for (PassInstrument* instrument : instruments) {
    if (!instrument->ShouldRun(pass, module)) return module;
  }
  for (PassInstrument* instrument : instruments) INGOT_RETURN_IF_ERROR(instrument->BeforePass(pass, module));
  const RewriteLog before = context.rewrites;
  const auto start = std::chrono::steady_clock::now();
  INGOT_ASSIGN_OR_RETURN(module, pass.run(std::move(module), context));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Exactness loosest = context.rewrites.LoosestSince(before);
  for (PassInstrument* instrument : instruments) {
    instrument->Rewritten(pass, loosest);
    INGOT_RETURN_IF_ERROR(instrument->AfterPass(pass, module, seconds));
  }
  return module;
}

}  // namespace

bool PassInstrument::ShouldRun(const Pass&, const ir::IRModule&) { return true; }
Status PassInstrument::BeforePass(const Pass&, const ir::IRModule&) { return Status(); }
void PassInstrument::Rewritten(const Pass&, Exactness) {}
Status PassInstrument::AfterPass(const Pass&, const ir::IRModule&, double) { return Status(); }

int64_t PassContext::Choose(const std::string& name, int64_t usual, std::vector<int64_t> candidates) {
  const auto chosen = options.graph_choices.find(name);
  const bool is_chosen = chosen != options.graph_choices.end() && std::ranges::count(candidates, chosen->second) > 0;
  const int64_t value = is_chosen ? chosen->second : usual;
  const auto asked = std::ranges::find(choices, name, [](const GraphChoice& each) { return each.choice.name; });
  if (asked == choices.end()) {
    choices.push_back({{name, value, usual, std::move(candidates)}, 1});
  } else {
    ++asked->calls;
  }
  return value;
}

std::span<const Pass> GraphPasses() { return PassTable(); }

const Pass* FindPass(std::string_view name) {
  for (const Pass& pass : PassTable()) {
    if (name == pass.name) return &pass;
  }
  return nullptr;
}

std::span<const PipelineRow> Pipelines() { return PipelineTable(); }

Result<std::vector<Pass>> FindPipeline(std::string_view name) {
  std::vector<std::string_view> known;
  for (const PipelineRow& row : PipelineTable()) {
    if (name == row.name) return FindPasses(row.passes);
    known.emplace_back(row.name);
  }
  return Status(StatusCode::kNotFound, "there is no pipeline \"" + std::string(name) + "\"" + DidYouMean(name, known));
}

Result<std::vector<Pass>> FindPasses(std::span<const std::string> names) {
  std::vector<Pass> passes;
  for (const std::string& name : names) {
    const Pass* pass = FindPass(name);
    if (pass != nullptr) {
      passes.push_back(*pass);
      continue;
    }
    std::vector<std::string_view> known;
    for (const Pass& row : PassTable()) known.push_back(row.name);
    return Status(StatusCode::kNotFound, "there is no pass \"" + name + "\"" + DidYouMean(name, known));
  }
  return passes;
}

Result<ir::IRModule> RunPasses(ir::IRModule module, std::span<const Pass> passes, PassContext& context) {
  INGOT_RETURN_IF_ERROR(CheckPermissions(context.options.rewrites));
  for (const Pass& pass : passes) {
    if (context.options.opt_level < pass.min_opt_level) continue;
    if (Contains(context.options.disabled_passes, pass.name)) continue;
    Result<ir::IRModule> result = RunPass(std::move(module), pass, context);
    if (!result.ok()) return std::move(result).status().WithContext(pass.name);
    module = *std::move(result);
  }
  return module;
}

Status UnmetPrecondition(std::string_view what) {
  return Status(StatusCode::kInvalidArgument, "unmet precondition: " + std::string(what));
}

}  // namespace ingot::transform
