// The verifier of the graph level, and of modules. Bindings are walked in order with the set of variables that are in
// scope; recursion follows nested functions and branches alone.
#include "compiler/op/verifier.h"

#include <algorithm>
#include <unordered_set>

#include "compiler/ir/verify_prim_func.h"
#include "compiler/op/registry.h"

namespace ingot::op {

using namespace ir;  // NOLINT

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

// TVM's attribute of a function all of whose calls count as pure.
bool IsForcedPure(const FunctionNode& function) {
  const AttrValue* forced = function.attrs.Find("relax.force_pure");
  if (forced == nullptr) return false;
  const bool* flag = forced->get<bool>();
  const int64_t* number = forced->get<int64_t>();
  return flag != nullptr ? *flag : number != nullptr && *number != 0;
}

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
    INGOT_RETURN_IF_ERROR(VerifySeq(*function.body, function.is_pure && !IsForcedPure(function)));
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
      if (got < least || (got > most && !op->row->variadic)) {
        return Fail(op->name + " takes " + std::to_string(most) + " arguments, got " + std::to_string(got));
      }
      return op->name == "call_tir" || op->name == "call_tir_inplace" ? VerifyDestinationPassing(call) : Status();
    }
    size_t expected = got;
    if (const auto* global = As<GlobalVarNode>(call.callee)) {
      if (const Function function = module_.FindFunction(global->name)) {
        expected = function->params.size();
      } else if (const PrimFunc prim = module_.FindPrimFunc(global->name)) {
        expected = prim->params.size();  // a direct call: the function writes the buffers that it is given
      } else {
        return Fail("no function " + global->name + " in the module");
      }
    } else if (const auto* callable = As<CallableTypeNode>(call.callee->type)) {
      if (callable->params.has_value()) expected = callable->params->size();
    }
    if (got == expected) return {};
    return Fail("the function takes " + std::to_string(expected) + " arguments, got " + std::to_string(got));
  }

  // The tensor function's parameters are the inputs, then the outputs that are no input, then the numbers.
  Status VerifyDestinationPassing(const CallNode& call) const {
    const auto* global = As<GlobalVarNode>(call.args[0]);
    const PrimFunc function = global != nullptr ? module_.FindPrimFunc(global->name) : PrimFunc();
    if (!function) return Fail("call_tir of what is no tensor function of the module");
    const size_t expected = function->params.size();
    const auto* inputs = As<TupleTypeNode>(call.args[1]->type);
    if (inputs == nullptr) return require_types_ ? Fail("call_tir of arguments that are no tuple") : Status();
    if (call.type_args.empty()) return Fail("call_tir without out_ty");
    const auto* outputs = As<TupleTypeNode>(call.type_args[0]);
    std::vector<int64_t> inplace;
    if (call.attrs.Find("inplace_indices") != nullptr) inplace = call.attrs.GetInts("inplace_indices");
    size_t got = inputs->fields.size();
    if (!inplace.empty()) {
      got += static_cast<size_t>(std::count(inplace.begin(), inplace.end(), -1));
    } else {
      got += outputs != nullptr ? outputs->fields.size() : call.type_args.size();
    }
    if (call.args.size() > 2) {
      const auto* numbers = As<ShapeTypeNode>(call.args[2]->type);
      if (numbers == nullptr || !numbers->dims) return Status();  // a shape whose values are not known here
      got += numbers->dims->size();
    }
    if (got == expected) return Status();
    return Fail(global->name + " has " + std::to_string(expected) + " parameters, the call gives " +
                std::to_string(got));
  }

  bool IsPure(const CallNode& call) const {
    if (const auto* op = As<OpNode>(call.callee)) return op->row->effect != Effect::kEffect;
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

}  // namespace ingot::op
