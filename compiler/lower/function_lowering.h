// One graph function to bytecode: a part of LowerToBytecode. This class walks the function's body (parameters,
// bindings, branches, the return) and owns the parts that each keep one kind of state:
//
//   register_scope      constants, integers and symbolic variables that have registers, scope by scope
//   operands            values of variables; leaves of the graph as registers
//   type_matching       values brought to wanted types, and the dims that are compared when the program runs
//   plan_entries        places in the arena, and how long each is alive
//   output_tensors      results, and the allocations that become them
//   memory_lowering     allocations, views, rows that are written
//   call_lowering       everything that is called; sequence_lowering for the operators of sequences
//   state_lowering      states of the context
//   tail_loop           self tail calls
//
// Registers have one type for the whole function, so where two values meet (the ends of branches, a loop's next turn)
// they are moved into a register whose type takes both. Values that leave an activation are owned; the others are
// borrowed, constant, or in the arena.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/lower/call_lowering.h"
#include "compiler/lower/memory_lowering.h"
#include "compiler/lower/operands.h"
#include "compiler/lower/output_tensors.h"
#include "compiler/lower/plan_entries.h"
#include "compiler/lower/program_lowering.h"
#include "compiler/lower/register_scope.h"
#include "compiler/lower/state_lowering.h"
#include "compiler/lower/tail_loop.h"
#include "compiler/lower/type_matching.h"
#include "compiler/lower/value.h"
#include "runtime/status.h"
#include "vm/program/program_builder.h"

namespace ingot::lower {

class FunctionLowering {
 public:
  // name: of the function in its module. Both outlive this object.
  FunctionLowering(ProgramLowering& program, const std::string& name, const ir::Function& function);
  FunctionLowering(const FunctionLowering&) = delete;
  FunctionLowering& operator=(const FunctionLowering&) = delete;

  // Called once.
  Result<vm::Function> Run();

 private:
  Status BindParams();
  // Parameters that are results of the function that prepares weights.
  Status BindPacked();
  // Binds and compares what a call's check of its arguments leaves: elements of tuples, and scalars that are symbols.
  Status BindParameterDims();

  Status LowerBinding(const ir::Binding& binding);
  Result<Value> LowerBound(const ir::Binding& binding);
  // Checks the type; symbolic variables that it names for the first time get their values from the dims.
  Status LowerMatchCast(const ir::Binding& binding);

  // Lowers a sequence whose result is the function's result.
  Status LowerTail(const ir::SeqExprNode& seq);
  Status LowerTailIf(const ir::IfNode& node);
  Result<Value> LowerIf(const ir::IfNode& node, const ir::Type& type);
  Status LowerBranch(const ir::SeqExprNode& seq, const Value& target);
  Status LowerReturn(const ir::SeqExprNode& seq);

  ProgramLowering& program_;
  const std::string& name_;
  const ir::FunctionNode& function_;
  const vm::Signature& signature_;
  const std::vector<KeptState>& states_;
  vm::FunctionBuilder builder_;
  RegisterScope scope_;
  PlanEntries plan_entries_;
  Operands operands_;
  TypeMatching matching_;
  OutputTensors outputs_;
  MemoryLowering memory_;
  CallLowering calls_;
  StateLowering state_lowering_;
  TailLoop loop_;
};

}  // namespace ingot::lower
