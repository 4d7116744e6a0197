// One graph function to bytecode. A part of LowerToBytecode, in six files by what they lower: function_lowering.cc
// (bindings, values, results), control_flow_lowering.cc (branches, loops), call_lowering.cc (everything that is
// called), sequence_lowering.cc (sequences), match_lowering.cc (types that are compared when the program runs), and
// state_lowering.cc (states of the context).
//
// A value of the graph is one register, or a tuple that is not built: then it is the values of its fields. Registers
// have one type for the whole function, so where two values meet (the ends of branches, a loop's next turn) they are
// moved into a register whose type takes both. Values that leave an activation are owned; the others are borrowed,
// constant, or in the arena.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/lower/program_lowering.h"
#include "compiler/lower/tail_calls.h"
#include "compiler/op/registry.h"
#include "runtime/status.h"
#include "vm/program/program_builder.h"

namespace ingot::lower {

class FunctionLowering {
 public:
  FunctionLowering(ProgramLowering& program, const std::string& name, const ir::Function& function);
  Result<vm::Function> Run();

 private:
  struct Value {
    std::optional<vm::RegisterId> reg;
    std::vector<Value> fields;
  };

  // ---- Bindings and values (function_lowering.cc)

  Status BindPacked();
  // Finds the allocation behind each result, where there is one: that tensor is allocated as the caller's output.
  void FindOutputs(const ir::SeqExprNode& seq);
  Status LowerBinding(const ir::Binding& binding);
  Status LowerAlloc(const ir::Binding& binding, const ir::CallNode& call);
  // If this allocation is behind a result, emits the allocation of that result's memory and returns its register.
  // Returns nothing if it is behind none, or if that result's dims are not known yet.
  Result<std::optional<vm::RegisterId>> MakeOutput(const ir::VarNode* allocation, const vm::Type& type,
                                                   const std::vector<DimCode>& dims);
  Result<Value> LowerStorage(const ir::CallNode& call);
  Result<Value> LowerPlacedTensor(const ir::CallNode& call);
  Result<Value> LowerView(const ir::CallNode& call);
  Result<Value> LowerRowWrite(const ir::CallNode& call);
  // Lowers an operand or a result: a variable, a constant, a call, or a small value such as a shape.
  Result<Value> LowerValue(const ir::Expr& expr);
  Result<Value> LowerPrimValue(const ir::PrimExpr& value);
  Result<Value> LowerField(const ir::TupleGetItemNode& item);
  Status LowerReturn(const ir::SeqExprNode& seq);
  // Copies the elements of a parameter, a constant, a view, or a tensor that is returned twice into the result's own
  // tensor.
  Result<vm::RegisterId> CopiedToOutput(vm::RegisterId src, int64_t index);
  // Sets the live ranges of the plan: from an entry's plan_view to the last instruction that mentions a register that
  // shows the entry.
  void FinishPlan();

  Result<vm::RegisterId> Register(const ir::Expr& expr);
  Result<std::vector<vm::RegisterId>> Registers(const std::vector<ir::Expr>& exprs);
  // Returns one register for the value; a tuple is built here.
  Result<vm::RegisterId> Materialise(const Value& value);
  // The fields of a value whose type is a tuple.
  std::vector<Value> FieldsOf(const Value& value);
  vm::RegisterId Copied(vm::RegisterId src);
  // Returns an owned tensor, which may leave the activation: src, or a copy of it.
  vm::RegisterId Owned(vm::RegisterId src);
  // Records that `to`, a view or another name of the arena tensor in `from`, belongs to the same plan entry.
  void FollowEntry(vm::RegisterId to, vm::RegisterId from);

  void BindInt(const ir::PrimVar& var, vm::RegisterId reg);
  Result<DimCode> Dim(const ir::PrimExpr& dim);
  Result<std::vector<DimCode>> Dims(const std::vector<ir::PrimExpr>& dims);
  // A register that holds the value of an integer expression.
  Result<vm::RegisterId> IntRegister(const ir::PrimExpr& expr);

  // ---- Parameters and states of the context (state_lowering.cc)

  Status BindParams();
  Status BindState(const ir::Var& param, const KeptState& state);
  Status StoreStates(const std::vector<Value>& results);
  // An error when the function has states: nothing calls it but the embedding program.
  Status RefuseStates(const ir::Span& span, const std::string& name) const;

  // ---- Control flow (control_flow_lowering.cc)

  // Lowers a sequence whose result is the function's result.
  Status LowerTail(const ir::SeqExprNode& seq);
  Status LowerTailIf(const ir::IfNode& node);
  // Adds registers for the parameters that a self tail call writes anew, and the label that it jumps to.
  Status EnterLoop();
  Status LowerBackEdge(const ir::CallNode& call);
  Result<Value> LowerIf(const ir::IfNode& node, const ir::Type& type);
  Status LowerBranch(const ir::SeqExprNode& seq, const Value& target);
  // Returns a bool register.
  Result<vm::RegisterId> Condition(const ir::Expr& expr);
  // Adds registers that take any value of the type; tuples get them field by field.
  Result<Value> MakeTarget(const ir::Type& type, const ir::Span& span);
  Status Store(const Value& target, const Value& value);
  Status Assign(vm::RegisterId to, vm::RegisterId from);

  // What a branch computes does not exist on other paths: at its end the registers of constants, dims and symbols that
  // it computed are forgotten.
  struct ScopeMark {
    size_t constants, dims, ints;
  };
  ScopeMark EnterScope() const { return {constant_keys_.size(), dim_keys_.size(), int_keys_.size()}; }
  void LeaveScope(const ScopeMark& mark);

  // ---- Types that are compared when the program runs (match_lowering.cc)

  // Checks the type; symbolic variables that it names for the first time get their values from the dims.
  Status LowerMatchCast(const ir::Binding& binding);
  struct Named {
    std::string name;   // of the variable
    std::string field;  // ", element 0, element 1" of its tuple, or nothing
  };
  Result<Value> Matched(const Value& source, const ir::Type& wanted_type, const ir::Span& span, const Named& what);
  Result<Value> MatchedFields(const Value& source, const ir::TupleTypeNode& wanted, const ir::Span& span,
                              const Named& what);
  // Does the same for what a call's check of its arguments leaves: elements of tuples, and scalars that are symbols.
  Status BindParameterDims();
  struct PendingDim {
    ir::PrimExpr expected;
    vm::RegisterId value;
    int64_t axis;  // axis of a tensor or shape; -1: the value is the integer itself
    std::string what;
  };
  void BindDims(const ir::Type& type, const Value& value, const std::string& what, std::vector<PendingDim>& pending);
  Status CompareDims(const std::vector<PendingDim>& pending);
  vm::RegisterId ExtentOf(vm::RegisterId value, int64_t axis);
  // Returns a register of the wanted type: src itself, or the result of a comparison at run time that proves the type.
  Result<vm::RegisterId> Narrowed(vm::RegisterId src, const vm::Type& wanted, const ir::Span& span);

  // ---- Calls (call_lowering.cc)

  Result<Value> LowerCall(const ir::CallNode& call);
  Result<Value> LowerOpCall(const ir::CallNode& call, const op::OpRow& row);
  Result<Value> LowerKernelCall(const ir::CallNode& call, vm::KernelId kernel_id, const std::string& name);
  Result<Value> LowerBuiltinCall(const ir::CallNode& call, std::string_view name);
  Result<Value> LowerFunctionCall(const ir::CallNode& call, const std::string& name);
  Result<Value> LowerExternalCall(const ir::CallNode& call, const std::string& name);
  Result<Value> LowerClosureCall(const ir::CallNode& call, const ir::Expr& callee, const std::vector<ir::Expr>& args);
  Result<Value> LowerMakeClosure(const ir::CallNode& call);
  Result<Value> LowerInvokeClosure(const ir::CallNode& call);
  Result<Value> LowerReport(const ir::CallNode& call, vm::Builtin builtin, std::vector<vm::RegisterId> args,
                            size_t first_value);
  Result<Value> LowerPrint(const ir::CallNode& call);
  Result<Value> LowerAssert(const ir::CallNode& call);
  Result<Value> LowerTensorToShape(const ir::CallNode& call);
  Result<Value> LowerShapeOf(const ir::CallNode& call);

  // ---- Sequences (sequence_lowering.cc)

  Result<Value> LowerSequenceAt(const ir::CallNode& call);
  Result<Value> LowerSequenceConcatShape(const ir::CallNode& call);
  Result<Value> LowerSequenceConstruct(const ir::CallNode& call);
  Result<Value> LowerSequenceErase(const ir::CallNode& call);
  Result<Value> LowerSequenceInsert(const ir::CallNode& call);
  Result<Value> LowerSequenceLength(const ir::CallNode& call);
  // Replaces `count` elements of the sequence from `position` on by the elements of a tuple.
  Result<Value> Splice(const ir::CallNode& call, size_t position, int64_t count, const Value& replacement);

  // Makes a closure of a function of the module over `captures`, which are its first parameters in bytecode.
  Result<Value> MakeClosure(const std::string& name, std::vector<vm::RegisterId> captures, const ir::Span& span);
  // The registers of a call's results, and the types that the graph gives these results.
  struct CallResults {
    std::vector<vm::RegisterId> registers;
    std::vector<vm::Type> wanted;
  };
  Result<CallResults> MakeResults(const ir::CallNode& call, const std::vector<vm::Type>& produced);
  Result<Value> ValueOf(const ir::CallNode& call, const CallResults& results);
  // Converts arguments to objects where the callee's parameter is an object; an error if number or types do not fit.
  Status FitArguments(const ir::CallNode& call, const std::string& callee, const std::vector<vm::Type>& params,
                      std::vector<vm::RegisterId>& args);

  ProgramLowering& program_;
  const ir::Function& function_;
  const std::string& name_;
  const std::vector<ir::PrimVar> symbols_;  // of the signature
  const TailCalls tail_calls_;
  const std::vector<KeptState>& states_;
  std::vector<int64_t> result_index_;  // per result of the body: its index in the signature; -1: a state
  std::optional<vm::FunctionBuilder> builder_;
  std::unordered_map<const ir::VarNode*, Value> values_;
  // By allocation: the result that it becomes, and that result's own type where it is a view of the allocation.
  struct Output {
    int64_t index;
    const ir::TensorTypeNode* viewed_as;  // null: the result is the allocation itself
  };
  std::unordered_map<const ir::VarNode*, Output> output_of_;
  std::unordered_map<uint32_t, int64_t> made_as_output_;  // register -> result that it was allocated as
  std::unordered_map<uint32_t, vm::RegisterId> lies_in_;  // register -> the result's register whose memory it shows
  ir::Attrs size_bounds_;                                 // bounds of symbols, if the plan is made of numbers
  std::unordered_map<uint32_t, uint32_t> entry_of_;       // arena tensors: register -> plan entry
  std::vector<vm::RegisterId> loop_registers_;            // per parameter
  std::optional<vm::LabelId> loop_;
  std::unordered_map<uint32_t, vm::RegisterId> constant_registers_;
  std::unordered_map<ir::PrimVar, vm::RegisterId, ir::RefHash, ir::RefSame> int_registers_;
  std::vector<ir::PrimVar>
      slot_vars_;  // the same the other way round: null where a register holds no symbolic variable
  std::unordered_map<std::string, vm::RegisterId> dim_registers_;
  // Keys of the maps above in order of addition, for leaving a scope.
  std::vector<uint32_t> constant_keys_;
  std::vector<std::string> dim_keys_;
  std::vector<ir::PrimVar> int_keys_;
};

}  // namespace ingot::lower
