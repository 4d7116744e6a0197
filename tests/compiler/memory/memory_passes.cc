// Parses, types, and runs a part of the table, verified after every pass.
#include "tests/compiler/memory/memory_passes.h"

#include <utility>
#include <vector>

#include "compiler/memory/passes.h"
#include "compiler/script/parser.h"
#include "compiler/transform/instruments.h"
#include "compiler/transform/passes.h"

namespace ingot::memory::testing {

Result<ir::IRModule> ModuleAfter(std::string_view last_pass, const std::string& text) {
  transform::PassContext context;
  INGOT_ASSIGN_OR_RETURN(ir::IRModule module, script::ParseModule(text, "input.py"));
  INGOT_ASSIGN_OR_RETURN(module, transform::Normalize(std::move(module), context));
  std::vector<transform::Pass> passes;
  for (const transform::Pass& pass : MemoryPasses()) {
    passes.push_back(pass);
    if (pass.name == last_pass) break;
  }
  transform::VerifyPasses verify;
  context.instruments = {&verify};
  return transform::RunPasses(std::move(module), passes, context);
}

}  // namespace ingot::memory::testing
