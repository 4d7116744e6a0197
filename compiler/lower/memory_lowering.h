// Memory: allocations, the arena and the tensors that the memory plan places in it, views, and rows that are written.
// Owns the bounds by which sizes of the plan are computed.
#pragma once

#include "compiler/ir/expr.h"
#include "compiler/lower/operands.h"
#include "compiler/lower/output_tensors.h"
#include "compiler/lower/plan_entries.h"
#include "compiler/lower/register_scope.h"
#include "compiler/lower/value.h"
#include "runtime/status.h"
#include "vm/program/program_builder.h"

namespace ingot::lower {

class MemoryLowering {
 public:
  MemoryLowering(const ir::Attrs& function_attrs, vm::FunctionBuilder& builder, const RegisterScope& scope,
                 Operands& operands, OutputTensors& outputs, PlanEntries& plan)
      : function_attrs_(function_attrs),
        builder_(builder),
        scope_(scope),
        operands_(operands),
        outputs_(outputs),
        plan_entries_(plan) {}

  // var: the variable of the allocation's binding.
  Result<Value> LowerAlloc(const ir::VarNode* var, const ir::CallNode& call);
  Result<Value> LowerStorage(const ir::CallNode& call);
  Result<Value> LowerPlacedTensor(const ir::CallNode& call);
  Result<Value> LowerView(const ir::CallNode& call);
  Result<Value> LowerRowWrite(const ir::CallNode& call);

 private:
  const ir::Attrs& function_attrs_;
  vm::FunctionBuilder& builder_;
  const RegisterScope& scope_;
  Operands& operands_;
  OutputTensors& outputs_;
  PlanEntries& plan_entries_;
  ir::Attrs size_bounds_;  // bounds of symbols, if the plan is made of numbers
};

}  // namespace ingot::lower
