// Passes: IRModule -> IRModule on verified input. A pass takes every legal module, in any order and repeatedly, or
// names the precondition that is not met. The built-in ones stand in one table, pipelines are lists of their names
// (pipeline.cc); a program that embeds the compiler makes passes and pipelines of its own from the same types. Notes go
// to the context's log; results depend on the module and the options alone.
//
//     transform::PassContext context;
//     INGOT_ASSIGN_OR_RETURN(auto passes, transform::FindPipeline("zero"));
//     passes.push_back({"mine", "what it does", 0, MyPass});
//     transform::TimePasses times;
//     context.instruments = {&times};
//     INGOT_ASSIGN_OR_RETURN(module, transform::RunPasses(module, passes, context));
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/target/target.h"
#include "compiler/transform/rewrite_table.h"
#include "runtime/status.h"

namespace ingot::transform {

// What passes are told. The fields that belong to one pass can be set by name, too (pass_options.h).
struct PassOptions {
  int opt_level = 2;
  TargetFamily target;
  int64_t fold_max_bytes = int64_t{256} << 20;     // of one folded result
  int64_t fold_max_operations = int64_t{4} << 30;  // of one folding run
  int64_t fold_max_steps = int64_t{16} << 20;      // statements of tensor functions that one folding run interprets
  bool keep_prepare = false;                       // weights stay external: prepare() stays in the file
  int64_t fuse_max_group = 64;                     // calls that fuse_ops puts into one function
  std::vector<std::string> schedule_rules;         // of default_schedule, in this order; empty: all
  std::vector<std::string> disabled_passes;        // are left out
  RewritePermissions rewrites;                     // --strict-math, --fast-math
};

struct Pass;

// Watches passes from outside. All may be left as they are.
class PassInstrument {
 public:
  virtual ~PassInstrument() = default;
  // False: the pass is left out.
  virtual bool ShouldRun(const Pass& pass, const ir::IRModule& module);
  virtual Status BeforePass(const Pass& pass, const ir::IRModule& module);
  // The loosest class of what the pass applied of rewrites.def; asked before AfterPass.
  virtual void Rewritten(const Pass& pass, Exactness loosest);
  virtual Status AfterPass(const Pass& pass, const ir::IRModule& module, double seconds);
};

struct PassContext {
  PassOptions options;
  // Notes for the user, such as that a budget of folding is used up, and what only explains the result. May be null.
  std::function<void(std::string_view)> log, detail;
  std::vector<PassInstrument*> instruments;  // asked in order; borrowed
  RewriteLog rewrites;                       // what was applied so far

  // Whether the options permit a rewrite of the call; if so, it is logged: to be asked where it is applied.
  template <typename Operation>  // a call, or a name
  bool Apply(RewriteId id, const Operation& operation, const ir::Span& span) {
    if (!IsPermitted(id, options.rewrites)) return false;
    rewrites.Count(id, operation, span);
    return true;
  }
};

struct Pass {
  std::string name;
  std::string summary;
  int min_opt_level = 0;
  std::function<Result<ir::IRModule>(ir::IRModule module, PassContext& context)> run;
};

// A list of passes by name.
struct PipelineRow {
  const char* name;
  const char* summary;
  std::vector<std::string> passes;
};

// Every graph pass, the default pipeline's first, in its order.
std::span<const Pass> GraphPasses();
const Pass* FindPass(std::string_view name);  // null when there is none
std::span<const PipelineRow> Pipelines();
// Errors suggest a name.
Result<std::vector<Pass>> FindPipeline(std::string_view name);
Result<std::vector<Pass>> FindPasses(std::span<const std::string> names);

// Runs the passes that the options' level allows; a failure begins with the pass's name.
Result<ir::IRModule> RunPasses(ir::IRModule module, std::span<const Pass> passes, PassContext& context);

// For a pass that cannot take this module: "unmet precondition: WHAT".
Status UnmetPrecondition(std::string_view what);

}  // namespace ingot::transform
