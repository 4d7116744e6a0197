// The verifier of the graph level, and of modules.
#include "compiler/ir/verifier.h"

#include <unordered_set>

#include "compiler/op/registry.h"

namespace ingot::ir {

bool IsLeaf(const Expr& expr) {
  switch (expr->kind) {
    case ExprKind::kVar:
    case ExprKind::kConstant:
    case ExprKind::kShapeExpr:
    case ExprKind::kPrimValue:
    case ExprKind::kStringValue:
    case ExprKind::kDataTypeValue:
    case ExprKind::kOp:
    case ExprKind::kGlobalVar:
    case ExprKind::kExternFunc:
      return true;
    case ExprKind::kTuple:
      for (const Expr& field : static_cast<const TupleNode&>(*expr).fields) {
        if (!IsLeaf(field)) return false;
      }
      return true;
    case ExprKind::kCall:
    case ExprKind::kTupleGetItem:
    case ExprKind::kIf:
    case ExprKind::kSeqExpr:
    case ExprKind::kFunction:
    case ExprKind::kPrimFunc:
      return false;
  }
  INGOT_UNREACHABLE("ExprKind");
}

namespace {

class FunctionVerifier {
 public:
  FunctionVerifier(const IRModule& module, bool require_types) : module_(module), require_types_(require_types) {}

  Status Verify(const FunctionNode& function) {
    std::vector<Var> added;
    for (const Var& param : function.params) {
      if (param->is_dataflow) return Fail("parameter " + param->name + " is a dataflow variable");
      INGOT_RETURN_IF_ERROR(Define(param, added));
    }
    if (require_types_ && !function.result_type) return Fail("has no result type");
    INGOT_RETURN_IF_ERROR(VerifySeq(*function.body, function.is_pure));
    for (const Var& var : added) scope_.erase(var);
    return {};
  }

 private:
  static Status Fail(std::string message) { return Status(StatusCode::kBadInput, std::move(message)); }

  Status Define(const Var& var, std::vector<Var>& added) {
    if (!scope_.insert(var).second) return Fail("variable " + var->name + " is defined twice");
    if (require_types_ && !var->type) return Fail("variable " + var->name + " has no type");
    added.push_back(var);
    return {};
  }

  // Recursion follows nested scopes alone; bindings are iterated.
  Status VerifySeq(const SeqExprNode& seq, bool must_be_pure) {
    std::vector<Var> added;
    for (const BindingBlock& block : seq.blocks) {
      std::vector<Var> dataflow;
      for (const Binding& binding : block.bindings) {
        if (binding.var->is_dataflow && !block.is_dataflow) {
          return Fail("binding " + binding.var->name + ": a dataflow variable outside a dataflow block");
        }
        // A closure may call itself by its variable.
        const bool is_closure = binding.value->kind == ExprKind::kFunction;
        std::vector<Var>& list = binding.var->is_dataflow ? dataflow : added;
        if (is_closure) INGOT_RETURN_IF_ERROR(Define(binding.var, list));
        Status status = VerifyValue(binding.value, block.is_dataflow, must_be_pure);
        if (!status.ok()) return std::move(status).WithContext("binding " + binding.var->name);
        if (!is_closure) INGOT_RETURN_IF_ERROR(Define(binding.var, list));
      }
      for (const Var& var : dataflow) scope_.erase(var);
    }
    if (!IsLeaf(seq.body)) return Fail("the result of a sequence is no variable, constant, tuple or shape");
    Status status = VerifyLeaf(seq.body);
    if (!status.ok()) return std::move(status).WithContext("the result");
    for (const Var& var : added) scope_.erase(var);
    return {};
  }

  Status VerifyValue(const Expr& value, bool in_dataflow, bool must_be_pure) {
    switch (value->kind) {
      case ExprKind::kCall: {
        const auto& call = static_cast<const CallNode&>(*value);
        INGOT_RETURN_IF_ERROR(VerifyLeaf(call.callee));
        for (const Expr& arg : call.args) INGOT_RETURN_IF_ERROR(VerifyLeaf(arg));
        INGOT_RETURN_IF_ERROR(VerifyArity(call));
        if ((in_dataflow || must_be_pure) && !IsPure(call)) {
          return Fail(in_dataflow ? "a call with effects in a dataflow block"
                                  : "a call with effects in a pure function");
        }
        return {};
      }
      case ExprKind::kTupleGetItem:
        return VerifyLeaf(static_cast<const TupleGetItemNode&>(*value).tuple);
      case ExprKind::kIf: {
        if (in_dataflow) return Fail("a branch in a dataflow block");
        const auto& branch = static_cast<const IfNode&>(*value);
        INGOT_RETURN_IF_ERROR(VerifyLeaf(branch.condition));
        INGOT_RETURN_IF_ERROR(VerifySeq(*branch.then_branch, must_be_pure));
        return VerifySeq(*branch.else_branch, must_be_pure);
      }
      case ExprKind::kFunction:
        return Verify(static_cast<const FunctionNode&>(*value));
      case ExprKind::kSeqExpr:
      case ExprKind::kPrimFunc:
        return Fail("the value is not in A-normal form");
      case ExprKind::kVar:
      case ExprKind::kConstant:
      case ExprKind::kTuple:
      case ExprKind::kShapeExpr:
      case ExprKind::kPrimValue:
      case ExprKind::kStringValue:
      case ExprKind::kDataTypeValue:
      case ExprKind::kOp:
      case ExprKind::kGlobalVar:
      case ExprKind::kExternFunc:
        return VerifyLeaf(value);
    }
    INGOT_UNREACHABLE("ExprKind");
  }

  Status VerifyLeaf(const Expr& expr) {
    if (!IsLeaf(expr)) return Fail("an argument that needs a binding of its own (A-normal form)");
    if (const auto var = AsRef<VarNode>(expr)) {
      if (!scope_.contains(var)) return Fail("variable " + var->name + " is not defined here");
    } else if (const auto global = AsRef<GlobalVarNode>(expr)) {
      if (!module_.FindGlobalVar(global->name).same_as(global))
        return Fail("no function " + global->name + " in the module");
    } else if (const auto* tuple = As<TupleNode>(expr)) {
      for (const Expr& field : tuple->fields) INGOT_RETURN_IF_ERROR(VerifyLeaf(field));
    }
    return {};
  }

  Status VerifyArity(const CallNode& call) const {
    const size_t got = call.args.size();
    if (const auto* op = As<OpNode>(call.callee)) {
      const size_t most = op->row->arg_names.size();
      const size_t least = most - static_cast<size_t>(op->row->num_optional_args);
      if (got >= least && (got <= most || op->row->variadic)) return {};
      return Fail(op->name + " takes " + std::to_string(most) + " arguments, got " + std::to_string(got));
    }
    size_t expected = got;
    if (const auto* global = As<GlobalVarNode>(call.callee)) {
      if (const Function function = module_.FindFunction(global->name)) {
        expected = function->params.size();
      } else if (const PrimFunc prim = module_.FindPrimFunc(global->name)) {
        expected = prim->params.size();  // called as it is: it writes the buffers that it is given
      } else {
        return Fail("no function " + global->name + " in the module");
      }
    } else if (const auto* callable = As<CallableTypeNode>(call.callee->type)) {
      if (callable->params.has_value()) expected = callable->params->size();
    }
    if (got == expected) return {};
    return Fail("the function takes " + std::to_string(expected) + " arguments, got " + std::to_string(got));
  }

  bool IsPure(const CallNode& call) const {
    if (const auto* op = As<OpNode>(call.callee)) return op->row->effect != op::Effect::kEffect;
    if (const auto* global = As<GlobalVarNode>(call.callee)) {
      const Function function = module_.FindFunction(global->name);
      return function && function->is_pure;  // a prim function writes
    }
    const auto* callable = As<CallableTypeNode>(call.callee->type);
    return callable != nullptr && callable->is_pure;
  }

  const IRModule& module_;
  const bool require_types_;
  std::unordered_set<Var, RefHash, RefSame> scope_;
};

}  // namespace

Status VerifyFunction(const IRModule& module, const Function& function, bool require_types) {
  return FunctionVerifier(module, require_types).Verify(*function);
}

Status VerifyModule(const IRModule& module, bool require_types) {
  for (const IRModule::Entry& entry : module.functions()) {
    Status status;
    if (const auto function = AsRef<FunctionNode>(entry.function)) {
      status = VerifyFunction(module, function, require_types);
    } else if (const auto prim_func = AsRef<PrimFuncNode>(entry.function)) {
      status = VerifyPrimFunc(prim_func);
    } else {
      status = Status(StatusCode::kBadInput, "neither a graph function nor a prim function");
    }
    if (!status.ok()) return std::move(status).WithContext("function " + entry.var->name);
  }
  return {};
}

}  // namespace ingot::ir
