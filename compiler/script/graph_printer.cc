// Each binding is one line, or more for branches and nested functions. A function's body is printed before its head,
// since the symbols that it uses decide which declarations the head needs.
#include "compiler/script/graph_printer.h"

#include <algorithm>

#include "compiler/script/constant_text.h"
#include "compiler/script/literals.h"

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

std::string GraphPrinter::VarName(const VarNode& var) {
  if (const std::string* name = names().Find(&var)) return *name;
  return names().DefineOutermost(&var, var.name);  // a fragment: its binding is not printed
}

void GraphPrinter::Assign(const std::string& name, const std::string& annotation, const std::string& value,
                          const Span& span) {
  std::string line = name + (annotation.empty() ? "" : ": " + annotation) + " = " + value;
  if (options_.spans && span.operation != nullptr) {
    line += "  # from " + Quote(span.source == nullptr ? "" : span.source->name) + " " + Quote(*span.operation);
  }
  lines_.Add(line);
}

// ---- Functions

void GraphPrinter::Signature(std::string_view name, const FunctionNode& function) {
  std::string flags = function.is_pure ? "" : "pure=False";
  if (function.is_private) flags += flags.empty() ? "private=True" : ", private=True";
  lines_.Add(flags.empty() ? "@R.function" : "@R.function(" + flags + ")");
  std::string params;
  for (const Var& param : function.params) {
    params += (params.empty() ? "" : ", ") + names().Define(param.get(), param->name);
    if (param->type) params += ": " + Type(param->type, true);
  }
  std::string line = "def " + std::string(name) + "(" + params + ")";
  if (function.result_type) line += " -> " + Type(function.result_type, true);
  lines_.Add(line + ":");
}

// Parameter names are part of the signature that users see; names that are no names in the text are put in a comment.
void GraphPrinter::ParamNames(const FunctionNode& function) {
  const bool changed = std::any_of(function.params.begin(), function.params.end(),
                                   [&](const Var& param) { return VarName(*param) != param->name; });
  if (!changed) return;
  AttrList list;
  for (const Var& param : function.params) list.push_back(param->name);
  lines_.Add("# param names: " + Attr(AttrValue(std::move(list))));
}

void GraphPrinter::Function(std::string_view name, const FunctionNode& function) {
  Signature(name, function);
  signature_symbols_ = symbols();
  TextLines::Indent indent(lines_);
  ParamNames(function);
  if (!function.attrs.empty()) lines_.Add("R.func_attr(" + Dict(function.attrs.items()) + ")");
  // The body is printed first, into lines of its own: the symbols that it uses decide on the declarations above it.
  TextLines outer = std::exchange(lines_, TextLines(lines_.indent()));
  Blocks(*function.body);
  lines_.Add("return " + Value(function.body->body));
  TextLines body = std::exchange(lines_, std::move(outer));
  if (uses_module_) lines_.Add("cls = Module");
  for (size_t i = signature_symbols_.size(); i < symbols().size(); ++i) {
    const PrimVar& symbol = symbols()[i];
    lines_.Add(*names().Find(symbol.get()) + " = T." + symbol->dtype.ToString() + "()");
  }
  lines_.Append(body.Take());
}

void GraphPrinter::NestedFunction(const Var& var, const FunctionNode& function) {
  const std::string name = names().Define(var.get(), var->name);
  NameSupply::Scope scope(names());
  Signature(name, function);
  TextLines::Indent indent(lines_);
  ParamNames(function);
  if (!function.attrs.empty()) lines_.Add("R.func_attr(" + Dict(function.attrs.items()) + ")");
  Blocks(*function.body);
  lines_.Add("return " + Value(function.body->body));
}

void GraphPrinter::Blocks(const SeqExprNode& seq) {
  for (const BindingBlock& block : seq.blocks) {
    if (!block.is_dataflow) {
      for (const ir::Binding& binding : block.bindings) Binding(binding);
      continue;
    }
    lines_.Add("with R.dataflow():");
    TextLines::Indent indent(lines_);
    std::string outputs;
    for (const ir::Binding& binding : block.bindings) {
      Binding(binding);
      if (!binding.var->is_dataflow) outputs += (outputs.empty() ? "" : ", ") + VarName(*binding.var);
    }
    lines_.Add("R.output(" + outputs + ")");
  }
}

void GraphPrinter::Binding(const ir::Binding& binding) {
  const Var& var = binding.var;
  if (const auto* function = As<FunctionNode>(binding.value)) return NestedFunction(var, *function);
  if (const auto* node = As<IfNode>(binding.value)) return If(binding, *node);
  std::string annotation = var->type ? Type(var->type) : "";
  std::string value = Value(binding.value);
  if (binding.is_match_cast()) {
    value = "R.match_cast(" + value + ", " + Type(binding.match_cast) + ")";
  } else if (const auto* call = As<CallNode>(binding.value); call != nullptr && call->callee->kind == ExprKind::kOp) {
    // out_ty states the type already.
    if (call->type_args.size() == 1 && Type(call->type_args[0]) == annotation) annotation.clear();
  }
  Assign(names().Define(var.get(), var->name), annotation, value,
         binding.span.operation != nullptr ? binding.span : binding.value->span);
}

void GraphPrinter::If(const ir::Binding& binding, const IfNode& node) {
  lines_.Add("if " + Value(node.condition) + ":");
  const std::string name = names().Define(binding.var.get(), binding.var->name);
  Branch(*node.then_branch, name, binding.var->type);
  lines_.Add("else:");
  Branch(*node.else_branch, name, binding.var->type);
}

void GraphPrinter::Branch(const SeqExprNode& seq, const std::string& name, const ir::Type& type) {
  TextLines::Indent indent(lines_);
  NameSupply::Scope scope(names());
  Blocks(seq);
  Assign(name, type ? Type(type) : "", Value(seq.body), Span());
}

// ---- Expressions

std::string GraphPrinter::ValueTuple(const std::vector<ir::Expr>& fields) {
  std::string text;
  for (const ir::Expr& field : fields) text += (text.empty() ? "" : ", ") + Value(field);
  return "(" + text + (fields.size() == 1 ? ",)" : ")");
}

std::string GraphPrinter::Value(const ir::Expr& expr) {
  if (expr == nullptr) return "<null>";
  switch (expr->kind) {
    case ExprKind::kVar:
      return VarName(*As<VarNode>(expr));
    case ExprKind::kConstant:
      return Constant(*As<ConstantNode>(expr));
    case ExprKind::kCall:
      return Call(*As<CallNode>(expr));
    case ExprKind::kTuple: {
      const auto& fields = As<TupleNode>(expr)->fields;
      return fields.empty() ? "R.tuple()" : ValueTuple(fields);
    }
    case ExprKind::kTupleGetItem: {
      const auto* node = As<TupleGetItemNode>(expr);
      return Value(node->tuple) + "[" + std::to_string(node->index) + "]";
    }
    case ExprKind::kIf: {  // a binding in functions; an expression of its own in messages only
      const auto* node = As<IfNode>(expr);
      return "if " + Value(node->condition) + ": " + Value(node->then_branch->body) +
             " else: " + Value(node->else_branch->body);
    }
    case ExprKind::kShapeExpr:
      return "R.shape(" + List(As<ShapeExprNode>(expr)->dims) + ")";
    case ExprKind::kPrimValue:
      return "R.prim_value(" + PrimPrinter::Expr(As<PrimValueNode>(expr)->value) + ")";
    case ExprKind::kStringValue:
      return "R.str(" + Quote(As<StringValueNode>(expr)->value) + ")";
    case ExprKind::kDataTypeValue:
      return "R.dtype(" + Quote(As<DataTypeValueNode>(expr)->value.ToString()) + ")";
    case ExprKind::kOp:
      return "I.Op(" + Quote(As<OpNode>(expr)->name) + ")";
    case ExprKind::kGlobalVar:
      uses_module_ = true;
      return "cls." + As<GlobalVarNode>(expr)->name;
    case ExprKind::kExternFunc:
      return "R.ExternFunc(" + Quote(As<ExternFuncNode>(expr)->name) + ")";
    case ExprKind::kSeqExpr:
      return Value(As<SeqExprNode>(expr)->body);
    case ExprKind::kFunction:
      return "<function>";
    case ExprKind::kPrimFunc:
      return "<prim_func>";
  }
  INGOT_UNREACHABLE("ExprKind");
}

std::string GraphPrinter::OutTypes(const std::vector<ir::Type>& types) {
  const auto join = [&](const std::vector<ir::Type>& list) {
    std::string text;
    for (const ir::Type& type : list) text += (text.empty() ? "" : ", ") + Type(type);
    return text;
  };
  // A list means several results; a single tuple type means one result that is a tuple.
  return types.size() == 1 ? Type(types[0]) : "[" + join(types) + "]";
}

std::string GraphPrinter::OpCall(const CallNode& call, const OpNode& op) {
  std::string args;
  const auto add = [&](const std::string& text) { args += (args.empty() ? "" : ", ") + text; };
  for (const ir::Expr& arg : call.args) add(Value(arg));
  for (const auto& [name, value] : call.attrs.items()) {
    // Data types are printed as strings, as TVM does; the operator's attribute specification says that they are types.
    const auto* dtype = value.get<DataType>();
    add(name + "=" + (dtype != nullptr ? Quote(dtype->ToString()) : Attr(value)));
  }
  if (!call.type_args.empty()) add("out_ty=" + OutTypes(call.type_args));
  return "R." + op.name + "(" + args + ")";
}

std::string GraphPrinter::Call(const CallNode& call) {
  if (const auto* op = As<OpNode>(call.callee)) return OpCall(call, *op);
  const auto* external = As<ExternFuncNode>(call.callee);
  std::string args = external != nullptr ? Quote(external->name) : "";
  const auto add = [&](const std::string& text) { args += (args.empty() ? "" : ", ") + text; };
  for (const ir::Expr& arg : call.args) add(Value(arg));
  if (!call.attrs.empty()) add("attrs=" + Dict(call.attrs.items()));
  if (!call.type_args.empty()) add("out_ty=" + OutTypes(call.type_args));
  return (external != nullptr ? "R.call_packed" : Value(call.callee)) + "(" + args + ")";
}

std::string GraphPrinter::Constant(const ConstantNode& constant) {
  const ConstantData& data = *constant.data;
  if (HasElementText(data)) {
    const std::string name = constant.name.empty() ? "" : ", name=" + Quote(constant.name);
    return "R.const(" + ElementText(data) + ", " + Quote(data.dtype().ToString()) + name + ")";
  }
  const std::string hash = store_ != nullptr ? store_->Add(constant.data) : HashName(data);
  const std::string name = constant.name.empty() ? "" : "[" + Quote(constant.name) + "]";
  return "metadata[" + Quote(options_.golden ? "<hash>" : hash) + "]" + name;
}

}  // namespace ingot::script
