// Passes: IRModule -> IRModule on verified input. A pass accepts every legal module, in any order and repeatedly, or
// names the precondition that is not met. The built-in passes are in one table, and pipelines are lists of their names
// (pipeline.cc); a program that embeds the compiler makes passes and pipelines of its own from the same types. Notes go
// to the context's log; results depend on the module and the options only.
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
#include "compiler/schedule/choices.h"
#include "compiler/target/target.h"
#include "compiler/transform/rewrite_table.h"
#include "runtime/status.h"

namespace ingot::transform {

// Options of passes. Those of single passes can be set by name, too (pass_options.h).
struct PassOptions {
  int opt_level = 2;
  TargetFamily target;
  int64_t fold_max_bytes = int64_t{256} << 20;     // size of one folded result
  int64_t fold_max_operations = int64_t{4} << 30;  // cost of one folding run
  int64_t fold_max_steps = int64_t{16} << 20;      // statements of tensor functions that one folding run interprets
  bool keep_prepare = false;                       // weights stay external: prepare() stays in the file
  int64_t fuse_max_group = 64;                     // calls that fuse_ops puts into one function
  std::vector<std::string> schedule_rules;         // of default_schedule, in this order; empty: all
  std::vector<std::string> disabled_passes;        // passes that are left out
  RewritePermissions rewrites;                     // --strict-math, --fast-math
  schedule::Chosen graph_choices;                  // by PassContext::Choose's names, what is not to be the usual
};

struct Pass;

// Watches passes from outside. The methods' defaults let every pass run and do nothing.
class PassInstrument {
 public:
  virtual ~PassInstrument() = default;
  // Returns false to leave the pass out.
  virtual bool ShouldRun(const Pass& pass, const ir::IRModule& module);
  virtual Status BeforePass(const Pass& pass, const ir::IRModule& module);
  // Called before AfterPass with the loosest exactness class of the rewrites (rewrites.def) that the pass applied.
  virtual void Rewritten(const Pass& pass, Exactness loosest);
  virtual Status AfterPass(const Pass& pass, const ir::IRModule& module, double seconds);
};

// A number that passes choose for the whole file, that is, for all CPUs of its target, and that tuning may choose
// otherwise (driver/tune_graph.h).
struct GraphChoice {
  schedule::Choice choice;  // its usual value is that of the first who asked
  int64_t calls = 0;        // how many asked
};

struct PassContext {
  PassOptions options;
  // Receive notes for the user (such as an exhausted folding budget), and notes that only explain the result. May be
  // null.
  std::function<void(std::string_view)> log, detail;
  std::vector<PassInstrument*> instruments;  // called in order; borrowed
  RewriteLog rewrites;                       // rewrites applied so far
  std::vector<GraphChoice> choices;          // asked for so far, in order

  // The usual value, or the one that the options have under this name, if it is a candidate. Candidates ascend.
  int64_t Choose(const std::string& name, int64_t usual, std::vector<int64_t> candidates);

  // Whether the options permit a rewrite of the call; if so, it is logged, so ask only where it is applied.
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
const Pass* FindPass(std::string_view name);  // null if there is none
std::span<const PipelineRow> Pipelines();
// Errors suggest a similar name.
Result<std::vector<Pass>> FindPipeline(std::string_view name);
Result<std::vector<Pass>> FindPasses(std::span<const std::string> names);

// Runs the passes that the options' level allows; a failure begins with the pass's name.
Result<ir::IRModule> RunPasses(ir::IRModule module, std::span<const Pass> passes, PassContext& context);

// Returns the error of a pass that cannot take this module: "unmet precondition: WHAT".
Status UnmetPrecondition(std::string_view what);

}  // namespace ingot::transform
