// The builder's stack of scopes, the normalisation to A-normal form (Normalize, Atom), and tensor expressions as
// private functions of the module.
#include "compiler/builder/block_builder.h"

#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/structural.h"
#include "compiler/ir/type_join.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/infer.h"
#include "compiler/op/registry.h"
#include "compiler/op/verifier.h"
#include "runtime/suggest.h"

namespace ingot::builder {

using ir::As;
using ir::Expr;
using ir::Type;
using ir::Var;

namespace {

Type CallableOf(const std::vector<Var>& params, Type result, bool is_pure) {
  std::vector<Type> types;
  for (const Var& param : params) types.push_back(param->type);
  return ir::Make<ir::CallableTypeNode>(std::move(types), std::move(result), is_pure);
}

// Replaces variables by others.
class Renamer : public ir::ExprMutator {
 public:
  bool empty() const { return var_map_.empty(); }
  void Rename(const Var& from, const Var& to) { var_map_[from] = to; }
  Expr Apply(const Expr& expr) { return MutateExpr(expr); }
};

// Drops bindings `out = lv` whose lv is computed in the same block: lv's binding binds out instead.
void MergeOutputs(ir::BindingBlock& block) {
  std::unordered_map<const ir::VarNode*, size_t> defined;  // by a binding whose variable was not replaced yet
  std::vector<bool> is_alias(block.bindings.size());
  Renamer renamer;
  for (size_t i = 0; i < block.bindings.size(); ++i) {
    ir::Binding& binding = block.bindings[i];
    if (binding.var->is_dataflow) {
      defined.emplace(binding.var.get(), i);
      continue;
    }
    const auto it = binding.is_match_cast() ? defined.end() : defined.find(As<ir::VarNode>(binding.value));
    if (it == defined.end()) continue;
    renamer.Rename(block.bindings[it->second].var, binding.var);
    block.bindings[it->second].var = binding.var;
    defined.erase(it);
    is_alias[i] = true;
  }
  if (renamer.empty()) return;
  std::vector<ir::Binding> kept;
  for (size_t i = 0; i < block.bindings.size(); ++i) {
    if (is_alias[i]) continue;
    kept.push_back(std::move(block.bindings[i]));
    kept.back().value = renamer.Apply(kept.back().value);
  }
  block.bindings = std::move(kept);
}

}  // namespace

Var TensorVar(std::string name, std::vector<ir::PrimExpr> dims, DataType dtype) {
  return ir::Make<ir::VarNode>(std::move(name), ir::Make<ir::TensorTypeNode>(std::move(dims), dtype));
}

// ---- failures

Var BlockBuilder::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
  return ir::Make<ir::VarNode>("failed", ir::Make<ir::ObjectTypeNode>());
}
Var BlockBuilder::Fail(std::string message) { return Fail(Status(StatusCode::kInvalidArgument, std::move(message))); }

bool BlockBuilder::CanEmit(const char* what) {
  if (!status_.ok()) return false;
  if (scopes_.empty()) Fail(std::string(what) + " outside of a function");
  return status_.ok();
}

Result<ir::IRModule> BlockBuilder::Finish() const {
  if (!status_.ok()) return status_;
  if (!scopes_.empty()) return Status(StatusCode::kInvalidArgument, "Finish within a function");
  INGOT_RETURN_IF_ERROR(op::VerifyModule(module_));
  return module_;
}

// ---- scopes

ir::SeqExpr BlockBuilder::RunBody(const Body& body) {
  if (!status_.ok()) return nullptr;
  scopes_.emplace_back();
  const Expr value = body();
  if (status_.ok() && value == nullptr) Fail("a body gave no result");
  Result<Expr> result = status_.ok() ? Atom(value) : Result<Expr>(status_);
  Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  if (!result.ok()) {
    Fail(std::move(result).status());
    return nullptr;
  }
  return ir::Make<ir::SeqExprNode>(std::move(scope.blocks), *result);
}

ir::Function BlockBuilder::MakeFunction(std::vector<Var> params, const Body& body, FunctionOptions options) {
  const ir::SeqExpr seq = RunBody(body);
  if (seq == nullptr) return nullptr;
  Type result = options.result_type != nullptr ? options.result_type : seq->type;
  return ir::Make<ir::FunctionNode>(std::move(params), seq, std::move(result), options.is_pure, options.is_private,
                                    std::move(options.attrs));
}

ir::GlobalVar BlockBuilder::Declare(const std::string& name, const std::vector<Var>& params, Type result_type,
                                    bool is_pure) {
  return ir::Make<ir::GlobalVarNode>(name, CallableOf(params, std::move(result_type), is_pure));
}

void BlockBuilder::Define(const ir::GlobalVar& var, std::vector<Var> params, const Body& body,
                          FunctionOptions options) {
  if (!status_.ok()) return;
  const ir::Function function = MakeFunction(std::move(params), body, std::move(options));
  if (function == nullptr) {
    status_ = std::move(status_).WithContext("function \"" + var->name + "\"");
  } else if (module_.Contains(var->name)) {  // the body may have added it
    Fail("the module has a function \"" + var->name + "\" already");
  } else {
    module_.Set(var, function);
  }
}

ir::GlobalVar BlockBuilder::Function(const std::string& name, std::vector<Var> params, const Body& body,
                                     FunctionOptions options) {
  ir::GlobalVar var = options.result_type != nullptr ? Declare(name, params, options.result_type, options.is_pure)
                                                     : ir::Make<ir::GlobalVarNode>(name);
  Define(var, std::move(params), body, std::move(options));
  return var;
}

Var BlockBuilder::LocalFunction(const std::string& name, std::vector<Var> params,
                                const std::function<Expr(const Var& self)>& body, FunctionOptions options) {
  if (!CanEmit("LocalFunction")) return Fail(status_);
  const bool is_dataflow = scopes_.back().in_dataflow;
  const auto variable = [&](const Type& result) {
    return ir::Make<ir::VarNode>(name, CallableOf(params, result, options.is_pure), is_dataflow);
  };
  Var var = options.result_type != nullptr ? variable(options.result_type) : nullptr;
  const ir::Function function = MakeFunction(
      params, [&] { return body(var); }, options);
  if (function == nullptr) return Fail(status_);
  if (var == nullptr) var = variable(function->result_type);
  ir::FunctionNode typed = *function;
  typed.type = var->type;
  CurrentBlock().bindings.push_back({var, ir::Make<ir::FunctionNode>(std::move(typed)), nullptr, {}});
  return var;
}

void BlockBuilder::Dataflow(const std::function<void()>& body) {
  if (!CanEmit("Dataflow")) return;
  if (scopes_.back().in_dataflow) {
    Fail("a dataflow block within a dataflow block");
    return;
  }
  scopes_.back().blocks.push_back({{}, /*is_dataflow=*/true});
  scopes_.back().in_dataflow = true;
  body();
  Scope& scope = scopes_.back();
  scope.in_dataflow = false;
  if (status_.ok()) MergeOutputs(scope.blocks.back());
}

Var BlockBuilder::If(Expr condition, const Body& then_branch, const Body& else_branch, std::string name) {
  if (!CanEmit("If")) return Fail(status_);
  if (scopes_.back().in_dataflow) return Fail("a branch in a dataflow block");
  Result<Expr> atom = Atom(condition);
  if (!atom.ok()) return Fail(std::move(atom).status());
  const ir::SeqExpr then_seq = RunBody(then_branch);
  const ir::SeqExpr else_seq = RunBody(else_branch);
  if (then_seq == nullptr || else_seq == nullptr) return Fail(status_);
  const Type type = ir::JoinTypes(then_seq->type, else_seq->type);
  return Bind(ir::Make<ir::IfNode>(*atom, then_seq, else_seq, type), nullptr, std::move(name), /*is_dataflow=*/false);
}

// ---- bindings

ir::BindingBlock& BlockBuilder::CurrentBlock() {
  Scope& scope = scopes_.back();
  if (!scope.in_dataflow && (scope.blocks.empty() || scope.blocks.back().is_dataflow)) scope.blocks.emplace_back();
  return scope.blocks.back();
}

Var BlockBuilder::Bind(Expr value, Type match_cast, std::string name, bool is_dataflow) {
  if (name.empty()) name = is_dataflow ? "lv" : "gv";
  Var var = ir::Make<ir::VarNode>(std::move(name), match_cast != nullptr ? match_cast : value->type, is_dataflow);
  const ir::Span span = value->span;
  CurrentBlock().bindings.push_back({var, std::move(value), std::move(match_cast), span});
  return var;
}

Var BlockBuilder::Emit(Expr value, std::string name) {
  if (!CanEmit("Emit")) return Fail(status_);
  Result<Expr> normal = Normalize(value);
  if (!normal.ok()) return Fail(std::move(normal).status());
  return Bind(*normal, nullptr, std::move(name), scopes_.back().in_dataflow);
}

Var BlockBuilder::EmitOutput(Expr value, std::string name) {
  if (!CanEmit("EmitOutput")) return Fail(status_);
  if (!scopes_.back().in_dataflow) return Fail("EmitOutput outside of a dataflow block");
  Result<Expr> normal = Normalize(value);
  if (!normal.ok()) return Fail(std::move(normal).status());
  return Bind(*normal, nullptr, std::move(name), /*is_dataflow=*/false);
}

Var BlockBuilder::EmitOp(std::string_view op, std::vector<Expr> args, ir::Attrs attrs, std::string name) {
  return Emit(Call(op, std::move(args), std::move(attrs)), std::move(name));
}

Var BlockBuilder::MatchCast(Expr value, Type type, std::string name) {
  if (!CanEmit("MatchCast")) return Fail(status_);
  Result<Expr> atom = Atom(value);
  if (!atom.ok()) return Fail(std::move(atom).status());
  return Bind(*atom, std::move(type), std::move(name), scopes_.back().in_dataflow);
}

Var BlockBuilder::EmitCallTIR(const ir::GlobalVar& function, std::vector<Expr> inputs, std::vector<Type> out_types,
                              std::vector<ir::PrimExpr> shape_vars, std::string name) {
  if (!CanEmit("EmitCallTIR")) return Fail(status_);
  for (Expr& input : inputs) {
    Result<Expr> atom = Atom(input);
    if (!atom.ok()) return Fail(std::move(atom).status());
    input = *std::move(atom);
  }
  return Emit(op::MakeCallTIR(function, std::move(inputs), std::move(out_types), std::move(shape_vars)),
              std::move(name));
}

Var BlockBuilder::EmitTe(const std::string& hint, std::vector<Expr> inputs, const Definition& define,
                         std::string name) {
  if (!CanEmit("EmitTe")) return Fail(status_);
  ir::PrimVarMap own, outer;  // from the inputs' symbols to the function's, and back
  std::vector<ir::PrimVar> symbols;
  std::vector<te::Tensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Result<Expr> atom = Atom(inputs[i]);
    if (!atom.ok()) return Fail(std::move(atom).status());
    inputs[i] = *std::move(atom);
    const auto* type = As<ir::TensorTypeNode>(inputs[i]->type);
    if (type == nullptr || !type->dims || !type->dtype) {
      return Fail("EmitTe \"" + hint + "\": input " + std::to_string(i) + " is " + op::Describe(inputs[i]->type) +
                  ", expected a tensor of known shape and dtype");
    }
    std::vector<ir::PrimExpr> dims;
    for (const ir::PrimExpr& dim : *type->dims) {
      for (const ir::PrimVar& symbol : ir::FreePrimVars(dim)) {
        const ir::PrimVar mine = ir::MakePrimVar(symbol->name, symbol->dtype);
        if (!own.emplace(symbol, mine).second) continue;
        outer.emplace(mine, symbol);
        symbols.push_back(mine);
      }
      dims.push_back(ir::Substitute(dim, own));
    }
    const auto* var = As<ir::VarNode>(inputs[i]);
    tensors.push_back(te::Placeholder(std::move(dims), *type->dtype, var != nullptr ? var->name : "input"));
  }
  std::vector<te::Tensor> args = tensors;
  std::vector<Type> out_types;
  for (const te::Tensor& output : define(tensors)) {
    args.push_back(output);
    std::vector<ir::PrimExpr> dims;
    for (const ir::PrimExpr& dim : output.shape()) dims.push_back(ir::Substitute(dim, outer));
    out_types.push_back(ir::Make<ir::TensorTypeNode>(std::move(dims), output.dtype()));
  }
  // Symbols that are not by themselves a dimension become scalar parameters.
  std::unordered_set<const ir::PrimExprNode*> lone;
  for (const te::Tensor& arg : args) {
    for (const ir::PrimExpr& dim : arg.shape()) lone.insert(dim.get());
  }
  std::vector<ir::PrimVar> scalars;
  std::vector<ir::PrimExpr> shape_vars;
  for (const ir::PrimVar& symbol : symbols) {
    if (lone.contains(symbol.get())) continue;
    scalars.push_back(symbol);
    shape_vars.push_back(outer.at(symbol));
  }
  ir::PrimFuncNode function = *te::CreatePrimFunc(args, scalars);
  function.is_private = true;
  const ir::GlobalVar var = Share(hint, ir::Make<ir::PrimFuncNode>(std::move(function)));
  return Emit(op::MakeCallTIR(var, std::move(inputs), std::move(out_types), std::move(shape_vars)), std::move(name));
}

ir::GlobalVar BlockBuilder::Share(std::string_view hint, const ir::PrimFunc& function) {
  for (const ir::IRModule::Entry& entry : module_) {
    if (entry.var->name.starts_with(hint) && ir::StructuralEqual(entry.function, Expr(function))) return entry.var;
  }
  return module_.Add(hint, function);
}

Expr BlockBuilder::Call(std::string_view op, std::vector<Expr> args, ir::Attrs attrs) {
  const op::OpRow* row = op::FindOp(op);
  if (row != nullptr) return ir::Make<ir::CallNode>(op::GetOp(op), std::move(args), std::move(attrs));
  const std::string near = op::SuggestOp(op);
  return Fail("there is no operator \"" + std::string(op) + "\"" +
              (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

// ---- normal form

// The expression as a leaf; an expression that is no leaf is bound to a variable first.
Result<Expr> BlockBuilder::Atom(const Expr& expr) {
  INGOT_ASSIGN_OR_RETURN(Expr value, Normalize(expr));
  if (op::IsLeaf(value)) return value;
  return Expr(Bind(std::move(value), nullptr, "", scopes_.back().in_dataflow));
}

Result<Expr> BlockBuilder::Normalize(const Expr& expr) {
  if (!status_.ok()) return status_;
  if (expr == nullptr) return Status(StatusCode::kInvalidArgument, "an expression is null");
  switch (expr->kind) {
    case ir::ExprKind::kCall:
      return NormalizeCall(static_cast<const ir::CallNode&>(*expr));
    case ir::ExprKind::kTuple: {
      ir::TupleNode tuple = static_cast<const ir::TupleNode&>(*expr);
      std::vector<Type> types;
      for (Expr& field : tuple.fields) {
        INGOT_ASSIGN_OR_RETURN(field, Atom(field));
        types.push_back(field->type);
      }
      tuple.type = ir::Make<ir::TupleTypeNode>(std::move(types));
      return Expr(ir::Make<ir::TupleNode>(std::move(tuple)));
    }
    case ir::ExprKind::kTupleGetItem: {
      ir::TupleGetItemNode item = static_cast<const ir::TupleGetItemNode&>(*expr);
      INGOT_ASSIGN_OR_RETURN(item.tuple, Atom(item.tuple));
      const auto* type = As<ir::TupleTypeNode>(item.tuple->type);
      if (type == nullptr || item.index < 0 || item.index >= std::ssize(type->fields)) {
        return Status(StatusCode::kInvalidArgument,
                      "element " + std::to_string(item.index) + " of " + op::Describe(item.tuple->type));
      }
      item.type = type->fields[static_cast<size_t>(item.index)];
      return Expr(ir::Make<ir::TupleGetItemNode>(std::move(item)));
    }
    case ir::ExprKind::kVar:
      if (expr->type == nullptr) {
        return Status(StatusCode::kInvalidArgument,
                      "variable \"" + static_cast<const ir::VarNode&>(*expr).name + "\" has no type");
      }
      return expr;
    case ir::ExprKind::kConstant:
    case ir::ExprKind::kShapeExpr:
    case ir::ExprKind::kPrimValue:
    case ir::ExprKind::kStringValue:
    case ir::ExprKind::kDataTypeValue:
    case ir::ExprKind::kOp:
    case ir::ExprKind::kGlobalVar:
    case ir::ExprKind::kExternFunc:
      return expr;
    case ir::ExprKind::kIf:
    case ir::ExprKind::kSeqExpr:
    case ir::ExprKind::kFunction:
    case ir::ExprKind::kPrimFunc:
      return Status(StatusCode::kInvalidArgument,
                    "a scope is no value: use If, LocalFunction, Function or AddFunction");
  }
  INGOT_UNREACHABLE("ExprKind");
}

Result<Expr> BlockBuilder::NormalizeCall(const ir::CallNode& call) {
  ir::CallNode copy = call;
  for (Expr& arg : copy.args) {
    INGOT_ASSIGN_OR_RETURN(arg, Atom(arg));
  }
  INGOT_ASSIGN_OR_RETURN(copy.callee, Atom(copy.callee));
  if (const auto* op = As<ir::OpNode>(copy.callee)) {
    INGOT_ASSIGN_OR_RETURN(const ir::Call made,
                           op::MakeCall(op->name, std::move(copy.args), std::move(copy.attrs), copy.type_args));
    if (!made->span.is_known() && !call.span.is_known()) return Expr(made);
    ir::CallNode placed = *made;
    placed.span = call.span;
    return Expr(ir::Make<ir::CallNode>(std::move(placed)));
  }
  copy.type = nullptr;
  const ir::Call untyped = ir::Make<ir::CallNode>(copy);
  INGOT_ASSIGN_OR_RETURN(copy.type, op::InferCallType(module_, untyped));
  return Expr(ir::Make<ir::CallNode>(std::move(copy)));
}

}  // namespace ingot::builder
