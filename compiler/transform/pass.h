// Passes: IRModule -> IRModule on verified input. The pipeline is one readable table (pipeline.cc); a pass is its file
// and one row there. Diagnostics go to the context's log; results depend on the module and the options alone.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/target/target.h"
#include "runtime/status.h"

namespace ingot::transform {

struct PassOptions {
  int opt_level = 2;
  TargetFamily target;
  int64_t fold_max_bytes = int64_t{256} << 20;     // of one folded result
  int64_t fold_max_operations = int64_t{4} << 30;  // of one folding run
  bool keep_prepare = false;                       // weights stay external: prepare() stays in the file
};
struct PassContext {
  PassOptions options;
  std::function<void(std::string_view)> log;  // notes, such as what folding left unfolded; may be null
  // Called after each pass with its name; used by --print-after, --dump-dir and --time-passes. May be null.
  std::function<Status(std::string_view pass, const ir::IRModule& module, double seconds)> after_pass;
};
struct PassRow {
  const char* name;
  const char* summary;
  int min_opt_level;
  Result<ir::IRModule> (*run)(ir::IRModule module, PassContext& context);
};

// Every pass in the order of the default pipeline.
std::span<const PassRow> Pipeline();
const PassRow* FindPass(std::string_view name);
// Runs the rows whose level allows, verifying the module after each.
Result<ir::IRModule> RunPasses(ir::IRModule module, std::span<const PassRow> passes, PassContext& context);

}  // namespace ingot::transform
