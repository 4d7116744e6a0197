// Destination passing: one analysis of the function (which tensors nobody else can read, so that they may be written in
// place) and one rewrite, with a method for each kind of call that gets a destination.
#include "compiler/memory/destination_passing.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/ir/visitor.h"
#include "compiler/memory/tail_calls.h"
#include "compiler/op/names.h"
#include "compiler/op/registry.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/states.h"

namespace ingot::memory {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

// Says which tensors may be written in place: those that an operation of this function made, a loop's parameter to which
// every self tail call passes such a tensor, and caches of states, provided that nobody reads what was written over: other
// uses come before, and are reads by tensor functions, which leave no other name for the memory.
class Owners {
 public:
  Owners(std::string_view name, const Function& function, const std::vector<transform::StateParam>& states) {
    Visit(*function->body);
    for (const transform::StateParam& state : states) {
      if (state.growth) made_.insert(function->params[state.param].get());
    }
    const TailCalls jumps = FindTailCalls(name, function);
    for (size_t i = 0; i < function->params.size(); ++i) {
      const auto is_handed_over = [&](const CallNode* call) { return MayWrite(call->args[i], *call); };
      if (jumps.is_carried[i] && std::ranges::all_of(jumps.calls, is_handed_over)) {
        made_.insert(function->params[i].get());
      }
    }
  }

  // Whether the call may write over this argument of its own.
  bool MayWrite(const Expr& tensor, const CallNode& call) const {
    const VarNode* var = As<VarNode>(tensor);
    if (var == nullptr || !made_.contains(var)) return false;
    const int64_t place = places_.at(&call);
    const std::vector<Use>& uses = uses_.at(var);
    const auto others = std::ranges::count_if(
        uses, [&](const Use& use) { return use.place != place && (use.place > place || !use.is_read); });
    return others == 0 && std::ranges::count(uses, place, &Use::place) == 1;
  }

 private:
  struct Use {
    int64_t place;  // of the binding
    bool is_read;   // by a tensor function, which leaves no other name for the memory
  };

  void Visit(const SeqExprNode& seq) {
    for (const BindingBlock& block : seq.blocks) {
      for (const Binding& binding : block.bindings) {
        if (const IfNode* branch = As<IfNode>(binding.value)) {
          AddUses(branch->condition, false);
          Visit(*branch->then_branch);
          Visit(*branch->else_branch);
          continue;
        }
        const CallNode* call = As<CallNode>(binding.value);
        const op::OpRow* row = call == nullptr ? nullptr : op::RowOf(Ref<CallNode>(call));
        const bool is_kernel = row != nullptr && (op::IsCallOf(*call, op::names::kCallTir) ||
                                                  op::IsCallOf(*call, op::names::kCallTirInplace));
        const bool is_made = is_kernel || (row != nullptr && (op::IsCallOf(*call, op::names::kCallDpsPacked) ||
                                                              op::IsCallOf(*call, op::names::kAppendToCache) ||
                                                              row->effect == op::Effect::kWritesInPlace));
        if (is_made && !binding.is_match_cast()) made_.insert(binding.var.get());
        if (call != nullptr) places_.emplace(call, place_);
        AddUses(binding.value, is_kernel);
      }
    }
    AddUses(seq.body, false);
  }

  void AddUses(const Expr& expr, bool is_read) {
    transform::ForEachUse(expr, [&](const Var& var) { uses_[var.get()].push_back({place_, is_read}); });
    ++place_;
  }

  int64_t place_ = 0;
  std::unordered_map<const CallNode*, int64_t> places_;
  std::unordered_map<const VarNode*, std::vector<Use>> uses_;
  std::unordered_set<const VarNode*> made_;
};

class DestinationRewriter : public ExprMutator {
 public:
  DestinationRewriter(const IRModule& module, std::string_view name, const Function& function,
                      const std::vector<transform::StateParam>& states)
      : module_(module),
        is_prepare_(function->attrs.Find(transform::kPrepareAttr) != nullptr),
        owners_(name, function, states) {}
  Status status() && { return std::move(status_); }
  // Tensor functions that were called in place -> the parameters (buffers) that they both read and write.
  const std::map<std::string, std::set<int64_t>>& in_place() const { return in_place_; }

 protected:
  using ExprMutator::Mutate;

  // One ordinary block per scope; dataflow variables become ordinary ones.
  Expr Mutate(const Ref<SeqExprNode>& seq) override {
    BindingBlock block;
    BindingBlock* outer = std::exchange(current_block_, &block);
    for (const BindingBlock& old : seq->blocks) {
      for (const Binding& binding : old.bindings) MutateBinding(binding);
    }
    Expr body = MutateExpr(seq->body);
    current_block_ = outer;
    std::vector<BindingBlock> blocks;
    if (!block.bindings.empty()) blocks.push_back(std::move(block));
    return Make<SeqExprNode>(std::move(blocks), std::move(body), seq->type);
  }

  void MutateBinding(const Binding& binding) override {
    const CallNode* call = As<CallNode>(binding.value);
    const op::OpRow* row = call == nullptr ? nullptr : op::RowOf(Ref<CallNode>(call));
    if (is_prepare_ && row != nullptr && row->prepare != nullptr && !row->is_view) {
      return CallBuiltin(binding, Ref<CallNode>(call), *row);
    }
    const auto is = [call](std::string_view name) { return call != nullptr && op::IsCallOf(*call, name); };
    if (is(op::names::kCallTir)) return CallKernel(binding, *call);
    if (is(op::names::kCallTirInplace)) return CallInPlace(binding, *call);
    if (is(op::names::kWriteRow)) return WriteRow(binding, *call);
    if (is(op::names::kAppendToCache)) return AppendInPlace(binding, *call);
    if (is(op::names::kSequenceConcat)) return ConcatSequence(binding, *call);
    if (is(op::names::kCallDpsPacked)) return CallDpsPacked(binding, *call);
    if (is(op::names::kCallPurePacked)) return CallPurePacked(binding, *call);
    Emit({Rename(binding.var), MutateExpr(binding.value), binding.match_cast, binding.span});
  }

  Expr Mutate(const Ref<TupleGetItemNode>& item) override {
    const Expr tuple = MutateExpr(item->tuple);
    if (const TupleNode* made = As<TupleNode>(tuple)) return made->fields.at(static_cast<size_t>(item->index));
    return ExprMutator::Mutate(item);
  }

  Expr Mutate(const Ref<FunctionNode>& function) override {
    if (status_.ok()) {
      status_ = transform::UnmetPrecondition(function->span.ToString() +
                                             ": no functions in functions; lambda_lift makes them the module's");
    }
    return function;
  }

 private:
  static std::vector<Type> OutTypes(const CallNode& call) {
    const TupleTypeNode* tuple = As<TupleTypeNode>(call.type_args.at(0));
    return tuple == nullptr ? call.type_args : tuple->fields;
  }

  // Defines a call's results: listed one by one, or as one tuple. The tuple is never built: the mutator replaces every
  // access to one of its fields by that field.
  void DefineResults(const Binding& binding, const CallNode& call, std::vector<Expr> results) {
    const bool is_single = call.type_args.size() == 1 && As<TupleTypeNode>(call.type_args[0]) == nullptr;
    var_map_[binding.var] =
        is_single ? results.at(0) : Expr(Make<TupleNode>(std::move(results), Make<TupleTypeNode>(OutTypes(call))));
  }

  Expr AllocateResult(const Binding& binding, const std::vector<Type>& types, size_t i) {
    const std::string suffix = types.size() == 1 ? "" : "_" + std::to_string(i);
    return Allocate(types[i], binding.var->name + suffix, binding.span);
  }

  void EmitKernelCall(const Binding& binding, const CallNode& call, std::vector<Expr> args) {
    if (call.args.size() > 2) {  // symbolic variables that no buffer's shape binds
      const ShapeExprNode* dims = As<ShapeExprNode>(call.args[2]);
      if (dims == nullptr) return Fail(call.span, "R.call_tir: tir_vars must be written as R.shape([...])");
      for (const PrimExpr& dim : dims->dims) args.push_back(Make<PrimValueNode>(dim));
    }
    const GlobalVar callee = AsRef<GlobalVarNode>(call.args[0]);
    const PrimFunc function = callee == nullptr ? nullptr : module_.FindPrimFunc(callee->name);
    if (function == nullptr || function->params.size() != args.size()) return FailArity(call, function, args.size());
    CallNode kernel_call(call.args[0], std::move(args), {}, {}, Nothing());
    kernel_call.span = call.span;
    Emit({Make<VarNode>("_", Nothing()), Make<CallNode>(std::move(kernel_call)), nullptr, binding.span});
  }

  void CallKernel(const Binding& binding, const CallNode& call) {
    const std::vector<Type> outs = OutTypes(call);
    std::vector<Expr> args = Inputs(MutateExpr(call.args.at(1)));
    std::vector<Expr> results;
    for (size_t i = 0; i < outs.size(); ++i) results.push_back(AllocateResult(binding, outs, i));
    args.insert(args.end(), results.begin(), results.end());
    EmitKernelCall(binding, call, std::move(args));
    DefineResults(binding, call, std::move(results));
  }

  // An in-place output is the argument itself, or a copy of it where something else may still read what is written.
  void CallInPlace(const Binding& binding, const CallNode& call) {
    const TupleNode* inputs = As<TupleNode>(call.args.at(1));
    if (inputs == nullptr) return Fail(call.span, "R.call_tir_inplace: expected its arguments as a list");
    const std::vector<Type> outs = OutTypes(call);
    const std::vector<int64_t> indices = call.attrs.GetInts("inplace_indices");
    std::vector<Expr> args = Inputs(MutateExpr(call.args[1])), results, fresh;
    for (size_t i = 0; i < outs.size(); ++i) {
      if (indices[i] < 0) {
        fresh.push_back(AllocateResult(binding, outs, i));
        results.push_back(fresh.back());
        continue;
      }
      const auto index = static_cast<size_t>(indices[i]);
      if (!owners_.MayWrite(inputs->fields[index], call)) args[index] = CopyOf(args[index], binding);
      in_place_[As<GlobalVarNode>(call.args[0])->name].insert(indices[i]);
      results.push_back(args[index]);
    }
    args.insert(args.end(), fresh.begin(), fresh.end());
    EmitKernelCall(binding, call, std::move(args));
    DefineResults(binding, call, std::move(results));
  }

  void WriteRow(const Binding& binding, const CallNode& call) {
    CallNode write = *Downcast<CallNode>(MutateExpr(binding.value));
    if (!owners_.MayWrite(call.args[0], call)) write.args[0] = CopyOf(write.args[0], binding);
    Emit({Rename(binding.var), Make<CallNode>(std::move(write)), nullptr, binding.span});
  }

  // Calls a function of the embedding program; the outputs are its last arguments.
  void CallDpsPacked(const Binding& binding, const CallNode& call) {
    const std::vector<Type> outs = OutTypes(call);
    std::vector<Expr> args = Inputs(MutateExpr(call.args.at(1)));
    std::vector<Expr> results;
    for (size_t i = 0; i < outs.size(); ++i) results.push_back(AllocateResult(binding, outs, i));
    args.insert(args.end(), results.begin(), results.end());
    const Attrs attrs({{kNumOutputsAttr, static_cast<int64_t>(results.size())}, {kPureAttr, true}});
    CallNode external(call.args[0], std::move(args), attrs, {Nothing()}, Nothing());
    external.span = call.span;
    Emit({Make<VarNode>("_", Nothing()), Make<CallNode>(std::move(external)), nullptr, binding.span});
    DefineResults(binding, call, std::move(results));
  }

  void CallPurePacked(const Binding& binding, const CallNode& call) {
    std::vector<Expr> args;
    for (size_t i = 1; i < call.args.size(); ++i) args.push_back(MutateExpr(call.args[i]));
    CallNode external(call.args[0], std::move(args), Attrs({{kPureAttr, true}}), call.type_args, call.type);
    external.span = call.span;
    Emit({Rename(binding.var), Make<CallNode>(std::move(external)), nullptr, binding.span});
  }

  static Type Nothing() { return Make<TupleTypeNode>(std::vector<Type>{}); }

  // Emits R.call_packed("vm.builtin.NAME", arguments...), which bytecode calls by the builtin's number.
  void EmitBuiltin(std::string_view name, std::vector<Expr> args, const Span& place, const Span& span) {
    CallNode builtin(Make<ExternFuncNode>(std::string(kBuiltinPrefix) + std::string(name)), std::move(args), {},
                     {Nothing()}, Nothing());
    builtin.span = span;
    Emit({Make<VarNode>("_", Nothing()), Make<CallNode>(std::move(builtin)), nullptr, place});
  }

  Expr CopyOf(const Expr& tensor, const Binding& binding) {
    Expr copy = Allocate(tensor->type, binding.var->name, binding.span);
    EmitBuiltin("reshape", {copy, tensor}, binding.span, binding.value->span);
    return copy;
  }

  // Calls the builtin that computes this operator when weights are prepared, with the result as its first argument.
  void CallBuiltin(const Binding& binding, const Ref<CallNode>& call, const op::OpRow& row) {
    Result<op::PrepareCall> prepare = row.prepare(call);
    if (!prepare.ok()) {
      if (status_.ok()) status_ = std::move(prepare).status();
      return;
    }
    const std::vector<Expr> inputs = op::InputTensors(call);
    const Expr result = Allocate(call->type, binding.var->name, binding.span);
    std::vector<Expr> args{result};
    for (const op::PrepareArgument& argument : prepare->arguments) {
      if (const auto* input = std::get_if<op::InputIndex>(&argument)) {
        args.push_back(MutateExpr(inputs.at(input->index)));
      } else if (const auto* number = std::get_if<int64_t>(&argument)) {
        args.push_back(Make<PrimValueNode>(Int64(*number)));
      } else if (const auto* value = std::get_if<double>(&argument)) {
        args.push_back(Make<PrimValueNode>(FloatImm(DataType::Float(64), *value)));
      } else {
        std::vector<PrimExpr> extents;
        for (int64_t extent : std::get<std::vector<int64_t>>(argument)) extents.push_back(Int64(extent));
        args.push_back(Make<ShapeExprNode>(std::move(extents)));
      }
    }
    EmitBuiltin(prepare->builtin, std::move(args), binding.span, call->span);
    var_map_[binding.var] = result;
  }

  // Writes the new positions into the cache's own memory, or into a copy where something else may still read it.
  void AppendInPlace(const Binding& binding, const CallNode& call) {
    Expr cache = MutateExpr(call.args.at(0));
    if (!owners_.MayWrite(call.args.at(0), call)) cache = CopyOf(cache, binding);
    const Expr axis = Make<PrimValueNode>(Int64(call.attrs.GetInt("axis")));
    EmitBuiltin("cache_append", {cache, MutateExpr(call.args.at(1)), axis, call.args.at(2)}, binding.span, call.span);
    var_map_[binding.var] = cache;
  }

  void ConcatSequence(const Binding& binding, const CallNode& call) {
    const Expr result = Allocate(call.type, binding.var->name, binding.span);
    const Expr axis = Make<PrimValueNode>(Int64(call.attrs.GetInt("axis")));
    const Expr new_axis = Make<PrimValueNode>(BoolImm(call.attrs.GetBool("new_axis")));
    EmitBuiltin("sequence_concat", {result, MutateExpr(call.args.at(0)), axis, new_axis}, binding.span, call.span);
    var_map_[binding.var] = result;
  }

  void Fail(const Span& span, const std::string& message) {
    if (status_.ok()) status_ = Status(StatusCode::kUnsupportedModel, span.ToString() + ": " + message);
  }

  void FailArity(const CallNode& call, const PrimFunc& function, size_t got) {
    if (!status_.ok()) return;
    const std::string expected = function == nullptr ? "a tensor function of the module"
                                                     : "inputs, outputs and tir_vars for its " +
                                                           std::to_string(function->params.size()) +
                                                           " parameters, got " + std::to_string(got);
    status_ = transform::UnmetPrecondition(call.span.ToString() + ": R.call_tir: expected " + expected);
  }

  // The tensors in the tuple of arguments of a call_tir, one by one.
  std::vector<Expr> Inputs(const Expr& tuple) {
    if (const TupleNode* made = As<TupleNode>(tuple)) return made->fields;
    std::vector<Expr> fields;
    const std::vector<Type>& types = Downcast<TupleTypeNode>(tuple->type)->fields;
    for (size_t i = 0; i < types.size(); ++i) {
      fields.push_back(EmitValue(Make<TupleGetItemNode>(tuple, static_cast<int64_t>(i), types[i]), "field"));
    }
    return fields;
  }

  // Returns an ordinary variable that replaces a dataflow variable.
  Var Rename(const Var& var) {
    if (!var->is_dataflow) return var;
    Var renamed = Make<VarNode>(var->name, var->type);
    var_map_[var] = renamed;
    return renamed;
  }

  Expr Allocate(const Type& type, const std::string& name, const Span& span) {
    const TensorTypeNode* tensor = As<TensorTypeNode>(type);
    if (tensor == nullptr || !tensor->dims || !tensor->dtype) {
      Fail(span, "the result \"" + name + "\" of a tensor function has no known shape");
      return Make<TupleNode>(std::vector<Expr>{});
    }
    Var var = Make<VarNode>(name, type);
    auto call = CallNode(
        op::GetOp(op::names::kAllocTensor),
        {Make<ShapeExprNode>(*tensor->dims), Make<DataTypeValueNode>(*tensor->dtype), Make<PrimValueNode>(Int64(0))},
        {}, {}, type);
    call.span = span;
    Emit({var, Make<CallNode>(std::move(call)), nullptr, span});
    return var;
  }

  const IRModule& module_;
  const bool is_prepare_;  // prepare functions call builtins, all others call tensor functions
  const Owners owners_;
  std::map<std::string, std::set<int64_t>> in_place_;
  Status status_;
};

}  // namespace

int64_t NumWrittenArguments(const CallNode& call) {
  return call.attrs.Find(kNumOutputsAttr) == nullptr ? 0 : call.attrs.GetInt(kNumOutputsAttr);
}

Result<IRModule> DestinationPassing(IRModule module, transform::PassContext&) {
  const IRModule original = module;
  const std::vector<IRModule::Entry> entries = module.functions();
  std::map<std::string, std::set<int64_t>> in_place;
  for (const IRModule::Entry& entry : entries) {
    Function function = AsRef<FunctionNode>(entry.function);
    if (!function) continue;
    INGOT_ASSIGN_OR_RETURN(const std::vector<transform::StateParam> states, transform::StateParamsOf(function));
    DestinationRewriter rewriter(original, entry.var->name, function, states);
    auto rewritten = FunctionNode(*rewriter.MutateFunction(function));
    rewritten.is_pure = false;  // it writes buffers, even if only its own
    for (const auto& [name, params] : rewriter.in_place()) in_place[name].insert(params.begin(), params.end());
    INGOT_RETURN_IF_ERROR(std::move(rewriter).status().WithContext("function \"" + entry.var->name + "\""));
    module.Set(entry.var, Make<FunctionNode>(std::move(rewritten)));
  }
  for (const auto& [name, params] : in_place) {
    PrimFuncNode prim = *module.FindPrimFunc(name);
    prim.attrs = prim.attrs.With("ingot.in_out", AttrList(params.begin(), params.end()));
    module.Set(module.FindGlobalVar(name), Make<PrimFuncNode>(std::move(prim)));
  }
  return module;
}

}  // namespace ingot::memory
