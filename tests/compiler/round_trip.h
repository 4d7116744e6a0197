// Checks that every test makes of its modules and tensor functions: their text reads back structurally equal, and
// prints the same again.
#pragma once

#include <string>

#include "compiler/ir/module.h"
#include "compiler/script/printer.h"
#include "compiler/transform/pass.h"

namespace ingot::script::testing {

// Empty when the text reads back; else the difference, and the text.
std::string ReadBackDifference(const ir::IRModule& module, const PrintOptions& options = {});
std::string ReadBackDifference(const ir::PrimFunc& function);

// Fails after a pass whose module does not read back.
class ReadBackPasses : public transform::PassInstrument {
 public:
  Status AfterPass(const transform::Pass& pass, const ir::IRModule& module, double seconds) override;
};

}  // namespace ingot::script::testing
