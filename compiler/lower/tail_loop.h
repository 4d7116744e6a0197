// The loop that a function's self tail calls make (tail_calls.h). Owns the calls, the registers of the parameters that
// they write anew, and the label that they jump to.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/lower/operands.h"
#include "compiler/lower/type_matching.h"
#include "compiler/memory/tail_calls.h"
#include "runtime/status.h"
#include "vm/program/program_builder.h"

namespace ingot::lower {

class TailLoop {
 public:
  TailLoop(const std::string& name, const ir::Function& function, vm::FunctionBuilder& builder, Operands& operands,
           TypeMatching& matching)
      : function_(*function),
        builder_(builder),
        operands_(operands),
        matching_(matching),
        tail_calls_(memory::FindTailCalls(name, function)) {}

  // Whether there is a loop.
  bool is_needed() const { return !tail_calls_.calls.empty(); }
  bool IsBackEdge(const ir::Expr& value) const { return tail_calls_.Contains(value); }
  // Moves the parameters that change into registers of the loop, and binds the label.
  void Enter();
  Status LowerBackEdge(const ir::CallNode& call);

 private:
  const ir::FunctionNode& function_;
  vm::FunctionBuilder& builder_;
  Operands& operands_;
  TypeMatching& matching_;
  const memory::TailCalls tail_calls_;
  std::vector<vm::RegisterId> loop_registers_;  // per parameter
  std::optional<vm::LabelId> loop_;
};

}  // namespace ingot::lower
