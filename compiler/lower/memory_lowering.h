// Memory: allocations, the arena and the tensors that the memory plan places in it, views, and rows that are written.
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
  MemoryLowering(vm::FunctionBuilder& builder, RegisterScope& scope, Operands& operands, OutputTensors& outputs,
                 PlanEntries& plan)
      : builder_(builder), scope_(scope), operands_(operands), outputs_(outputs), plan_entries_(plan) {}

  // var: the variable of the allocation's binding.
  Result<Value> LowerAlloc(const ir::VarNode* var, const ir::CallNode& call);
  Result<Value> LowerStorage(const ir::CallNode& call);
  Result<Value> LowerPlacedTensor(const ir::CallNode& call);
  Result<Value> LowerView(const ir::CallNode& call);
  Result<Value> LowerRowWrite(const ir::CallNode& call);

 private:
  vm::FunctionBuilder& builder_;
  RegisterScope& scope_;
  Operands& operands_;
  OutputTensors& outputs_;
  PlanEntries& plan_entries_;
};

}  // namespace ingot::lower
