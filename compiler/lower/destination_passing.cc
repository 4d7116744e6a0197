#include "compiler/lower/destination_passing.h"

#include <utility>
#include <vector>

#include "compiler/ir/visitor.h"
#include "compiler/op/registry.h"
#include "compiler/transform/graph_util.h"

namespace ingot::lower {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

class Rewriter : public ExprMutator {
 public:
  // A function that prepares weights calls builtins; any other one, tensor functions.
  Rewriter(const IRModule& module, bool is_prepare) : module_(module), is_prepare_(is_prepare) {}
  Status status() && { return std::move(status_); }

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
    if (row == nullptr || row != op::FindOp("call_tir")) {
      Emit({Rename(binding.var), MutateExpr(binding.value), binding.match_cast, binding.span});
      return;
    }
    // Several outputs are listed one by one, or as one tuple.
    const TupleTypeNode* tuple = As<TupleTypeNode>(call->type_args.at(0));
    const bool is_single = call->type_args.size() == 1 && tuple == nullptr;
    const std::vector<Type>& outs = tuple == nullptr ? call->type_args : tuple->fields;
    std::vector<Expr> args = Inputs(MutateExpr(call->args.at(1)));
    std::vector<Expr> results;
    for (size_t i = 0; i < outs.size(); ++i) {
      results.push_back(
          Allocate(outs[i], binding.var->name + (is_single ? "" : "_" + std::to_string(i)), binding.span));
    }
    args.insert(args.end(), results.begin(), results.end());
    if (call->args.size() > 2) {  // symbolic variables that no buffer binds
      const ShapeExprNode* dims = As<ShapeExprNode>(call->args[2]);
      if (dims == nullptr) return Fail(call->span, "R.call_tir: tir_vars must be written as R.shape([...])");
      for (const PrimExpr& dim : dims->dims) args.push_back(Make<PrimValueNode>(dim));
    }
    const GlobalVar callee = AsRef<GlobalVarNode>(call->args[0]);
    const PrimFunc function = callee == nullptr ? nullptr : module_.FindPrimFunc(callee->name);
    if (function == nullptr || function->params.size() != args.size()) return FailArity(*call, function, args.size());
    auto kernel_call = CallNode(call->args[0], std::move(args), {}, {}, Make<TupleTypeNode>(std::vector<Type>{}));
    kernel_call.span = call->span;
    Emit({Make<VarNode>("_", kernel_call.type), Make<CallNode>(std::move(kernel_call)), nullptr, binding.span});
    // A tuple of outputs is never made: whoever takes it apart finds its fields.
    var_map_[binding.var] =
        is_single ? results[0] : Expr(Make<TupleNode>(std::move(results), Make<TupleTypeNode>(outs)));
  }

  Expr Mutate(const Ref<TupleGetItemNode>& item) override {
    const Expr tuple = MutateExpr(item->tuple);
    if (const TupleNode* made = As<TupleNode>(tuple)) return made->fields.at(static_cast<size_t>(item->index));
    return ExprMutator::Mutate(item);
  }

 private:
  // R.call_packed("vm.builtin.NAME", result, arguments...): what bytecode calls by number.
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
    const Type nothing = Make<TupleTypeNode>(std::vector<Type>{});
    CallNode builtin(Make<ExternFuncNode>(std::string(kBuiltinPrefix) + std::string(prepare->builtin)), std::move(args),
                     {}, {nothing}, nothing);
    builtin.span = call->span;
    Emit({Make<VarNode>("_", nothing), Make<CallNode>(std::move(builtin)), nullptr, binding.span});
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

  // The tensors of call_tir's tuple of arguments, one by one.
  std::vector<Expr> Inputs(const Expr& tuple) {
    if (const TupleNode* made = As<TupleNode>(tuple)) return made->fields;
    std::vector<Expr> fields;
    const std::vector<Type>& types = Downcast<TupleTypeNode>(tuple->type)->fields;
    for (size_t i = 0; i < types.size(); ++i) {
      fields.push_back(EmitValue(Make<TupleGetItemNode>(tuple, static_cast<int64_t>(i), types[i]), "field"));
    }
    return fields;
  }

  // An ordinary variable in the place of a dataflow one.
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
        op::GetOp("builtin.alloc_tensor"),
        {Make<ShapeExprNode>(*tensor->dims), Make<DataTypeValueNode>(*tensor->dtype), Make<PrimValueNode>(Int64(0))},
        {}, {}, type);
    call.span = span;
    Emit({var, Make<CallNode>(std::move(call)), nullptr, span});
    return var;
  }

  const IRModule& module_;
  const bool is_prepare_;
  Status status_;
};

}  // namespace

Result<IRModule> DestinationPassing(IRModule module, transform::PassContext&) {
  const IRModule original = module;
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const IRModule::Entry& entry : entries) {
    Function function = AsRef<FunctionNode>(entry.function);
    if (!function) continue;
    Rewriter rewriter(original, function->attrs.Find(transform::kPrepareAttr) != nullptr);
    auto rewritten = FunctionNode(*rewriter.MutateFunction(function));
    rewritten.is_pure = false;  // it writes buffers, if only its own
    INGOT_RETURN_IF_ERROR(std::move(rewriter).status().WithContext("function \"" + entry.var->name + "\""));
    module.Set(entry.var, Make<FunctionNode>(std::move(rewritten)));
  }
  return module;
}

}  // namespace ingot::lower
