// States of the context: what a function's parameters and results keep between calls. Reads them where parameters are
// bound, and writes them where the function returns. Owns the registers that show the context's tensors.
#pragma once

#include <unordered_map>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/lower/program_lowering.h"
#include "compiler/lower/register_scope.h"
#include "compiler/lower/value.h"
#include "runtime/status.h"
#include "vm/program/program_builder.h"

namespace ingot::lower {

class StateLowering {
 public:
  StateLowering(ProgramLowering& program, const ir::FunctionNode& function, const std::vector<KeptState>& states,
                vm::FunctionBuilder& builder, RegisterScope& scope)
      : program_(program), function_(function), states_(states), builder_(builder), scope_(scope) {}

  // Returns the value of a parameter that is a state.
  Result<Value> Bind(const ir::Var& param, const KeptState& state);
  Status Store(const std::vector<Value>& results);

 private:
  ProgramLowering& program_;
  const ir::FunctionNode& function_;
  const std::vector<KeptState>& states_;
  vm::FunctionBuilder& builder_;
  RegisterScope& scope_;
  std::unordered_map<const ir::VarNode*, vm::RegisterId> tensors_;  // by parameter
};

}  // namespace ingot::lower
