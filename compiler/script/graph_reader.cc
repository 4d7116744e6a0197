// Functions, statements and bindings of the graph level: checks declared types against inferred ones, and gives nested
// calls and branches bindings. Values are read in value_reader.cc and composite_calls.cc.
#include "compiler/script/graph_reader.h"

#include <algorithm>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/registry.h"
#include "compiler/script/printer.h"
#include "compiler/script/syntax_parser.h"
#include "compiler/script/tokenizer.h"

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

TypeFit Worse(TypeFit a, TypeFit b) { return a < b ? b : a; }

TypeFit FitDims(int declared_rank, const std::optional<std::vector<PrimExpr>>& declared, int rank,
                const std::optional<std::vector<PrimExpr>>& dims) {
  if (declared_rank < 0) return TypeFit::kFits;
  if (rank < 0) return TypeFit::kNarrower;
  if (declared_rank != rank) return TypeFit::kDiffers;
  if (!declared) return TypeFit::kFits;
  if (!dims) return TypeFit::kNarrower;
  arith::Analyzer analyzer;
  TypeFit fit = TypeFit::kFits;
  for (size_t i = 0; i < declared->size(); ++i) {
    const PrimExpr &a = (*declared)[i], &b = (*dims)[i];
    if (a.same_as(b)) continue;
    const auto x = AsConstInt(a), y = AsConstInt(b);
    if (x && y) {
      if (*x != *y) return TypeFit::kDiffers;
    } else if (!analyzer.ProveEqual(a, b)) {
      fit = TypeFit::kNarrower;
    }
  }
  return fit;
}

}  // namespace

TypeFit FitType(const Type& declared, const Type& inferred) {
  if (declared->kind == TypeKind::kObject) return TypeFit::kFits;
  if (inferred->kind == TypeKind::kObject) return TypeFit::kNarrower;
  if (declared->kind != inferred->kind) return TypeFit::kDiffers;
  switch (declared->kind) {
    case TypeKind::kObject:
      return TypeFit::kFits;
    case TypeKind::kPrim: {
      const auto *a = As<PrimTypeNode>(declared), *b = As<PrimTypeNode>(inferred);
      if (a->dtype != b->dtype) return TypeFit::kDiffers;
      if (a->value == nullptr) return TypeFit::kFits;
      if (b->value == nullptr) return TypeFit::kNarrower;
      return FitDims(1, std::vector{a->value}, 1, std::vector{b->value});
    }
    case TypeKind::kShape: {
      const auto *a = As<ShapeTypeNode>(declared), *b = As<ShapeTypeNode>(inferred);
      return FitDims(a->rank, a->dims, b->rank, b->dims);
    }
    case TypeKind::kTensor: {
      const auto *a = As<TensorTypeNode>(declared), *b = As<TensorTypeNode>(inferred);
      TypeFit fit = FitDims(a->rank, a->dims, b->rank, b->dims);
      if (a->dtype && !b->dtype) fit = Worse(fit, TypeFit::kNarrower);
      if (a->dtype && b->dtype && *a->dtype != *b->dtype) return TypeFit::kDiffers;
      return fit;
    }
    case TypeKind::kTuple: {
      const auto *a = As<TupleTypeNode>(declared), *b = As<TupleTypeNode>(inferred);
      if (a->fields.size() != b->fields.size()) return TypeFit::kDiffers;
      TypeFit fit = TypeFit::kFits;
      for (size_t i = 0; i < a->fields.size(); ++i) fit = Worse(fit, FitType(a->fields[i], b->fields[i]));
      return fit;
    }
    case TypeKind::kCallable: {  // the dims of two signatures use different variables, so they are not compared
      const auto *a = As<CallableTypeNode>(declared), *b = As<CallableTypeNode>(inferred);
      const bool same_arity = !a->params || !b->params || a->params->size() == b->params->size();
      return same_arity ? TypeFit::kFits : TypeFit::kDiffers;
    }
  }
  INGOT_UNREACHABLE("TypeKind");
}

namespace {

// The type as callers of the function with these parameters see it: dims over variables that only the body binds become
// unknown.
Type WithoutLocalSymbols(const Type& type, const std::unordered_set<const Node*>& known) {
  const auto is_known = [&](const std::optional<std::vector<PrimExpr>>& dims) {
    return !dims || std::all_of(dims->begin(), dims->end(), [&](const PrimExpr& dim) {
      const std::vector<PrimVar> free = FreePrimVars(dim);
      return std::all_of(free.begin(), free.end(), [&](const PrimVar& var) { return known.contains(var.get()); });
    });
  };
  if (const auto* tensor = As<TensorTypeNode>(type); tensor != nullptr && !is_known(tensor->dims)) {
    return Make<TensorTypeNode>(tensor->rank, tensor->dtype, tensor->virtual_device);
  }
  if (const auto* shape = As<ShapeTypeNode>(type); shape != nullptr && !is_known(shape->dims)) {
    return Make<ShapeTypeNode>(shape->rank);
  }
  if (const auto* prim = As<PrimTypeNode>(type); prim != nullptr && prim->value != nullptr) {
    if (!is_known(std::vector{prim->value})) return Make<PrimTypeNode>(prim->dtype);
  }
  if (const auto* tuple = As<TupleTypeNode>(type)) {
    std::vector<Type> fields;
    for (const Type& field : tuple->fields) fields.push_back(WithoutLocalSymbols(field, known));
    return Make<TupleTypeNode>(std::move(fields));
  }
  return type;
}

bool IsOutput(const Statement& statement) {
  return statement.kind == StatementKind::kExpression && statement.value != nullptr &&
         CalleeName(*statement.value) == "R.output";
}

}  // namespace

bool GraphReader::CheckType(const Type& declared, const Type& inferred, Place place) {
  if (declared == nullptr || inferred == nullptr) return true;
  switch (FitType(declared, inferred)) {
    case TypeFit::kFits:
      return true;
    case TypeFit::kDiffers:
      context_.Error(place, "declared " + PrintType(declared) + ", but the value is " + PrintType(inferred));
      return false;
    case TypeFit::kNarrower:
      context_.Error(place, "declared " + PrintType(declared) + ", but the value is only known to be " +
                                PrintType(inferred) + "; check it with R.match_cast");
      return false;
  }
  INGOT_UNREACHABLE("Fit");
}

// A trailing comment `from "model.onnx" "node_Conv_3"` says where the printed operation came from.
Span GraphReader::SpanOf(Place place, std::string_view comment) const {
  Span span = context_.SpanOf(place);
  if (!comment.starts_with("from \"")) return span;
  const SourceText text{"", std::string(comment)};
  DiagnosticSink ignored(nullptr);
  const std::vector<Token> tokens = Tokenize(text, ignored);
  if (tokens.size() < 3 || tokens[1].kind != TokenKind::kString || tokens[2].kind != TokenKind::kString) return span;
  const auto source = UnquoteString(tokens[1].text), operation = UnquoteString(tokens[2].text);
  if (!source || !operation) return span;
  return {std::make_shared<const SourceText>(SourceText{*source, ""}), 0, 0, 0,
          std::make_shared<const std::string>(*operation)};
}

// ---- Functions

namespace {

// Whether a name stands in an expression.
bool Mentions(const Syntax* syntax, std::string_view name) {
  if (syntax == nullptr) return false;
  if (syntax->kind == SyntaxKind::kName && syntax->text == name) return true;
  return std::ranges::any_of(syntax->children, [&](const SyntaxPtr& part) { return Mentions(part.get(), name); });
}

// Whether it stands in a shape or a type there.
bool MentionsAsDim(const Syntax* syntax, std::string_view name) {
  if (syntax == nullptr) return false;
  const std::string callee = CalleeName(*syntax);
  if (callee == "R.shape" || callee == "R.Shape" || callee == "R.Tensor" || callee == "R.prim_value") {
    return Mentions(syntax, name);
  }
  return std::ranges::any_of(syntax->children, [&](const SyntaxPtr& part) { return MentionsAsDim(part.get(), name); });
}
bool MentionsAsDim(const std::vector<Statement>& body, std::string_view name) {
  return std::ranges::any_of(body, [&](const Statement& statement) {
    return MentionsAsDim(statement.annotation.get(), name) || MentionsAsDim(statement.value.get(), name) ||
           MentionsAsDim(statement.body, name) || MentionsAsDim(statement.orelse, name);
  });
}

}  // namespace

GraphReader::Numbers GraphReader::DeclareNumbers(const Statement& def) {
  Numbers numbers;
  for (const Parameter& param : def.params) {
    if (param.annotation == nullptr || DottedName(*param.annotation) != "T.int64") continue;
    const bool is_dim =
        std::ranges::any_of(def.params,
                            [&](const Parameter& other) { return Mentions(other.annotation.get(), param.name); }) ||
        Mentions(def.annotation.get(), param.name) || MentionsAsDim(def.body, param.name);
    if (!is_dim) continue;
    const PrimVar var = MakePrimVar(std::string(param.name));
    numbers.emplace(param.name, var);
    scope_.Define(param.name, Symbol::Prim(var));
  }
  return numbers;
}

Type GraphReader::ReadParamType(const Parameter& param, const Numbers& numbers) {
  const auto number = numbers.find(param.name);
  return number != numbers.end() ? Type(Make<PrimTypeNode>(PrimExpr(number->second))) : types_.Read(*param.annotation);
}

Var GraphReader::ReadParam(const Parameter& param, const Numbers& numbers) {
  Type type;
  if (param.annotation == nullptr) {
    context_.Error(param.place,
                   "the parameter \"" + std::string(param.name) + "\" needs a type, such as R.Tensor(...)");
  } else {
    type = ReadParamType(param, numbers);
  }
  VarNode node(std::string(param.name), std::move(type));
  node.span = context_.SpanOf(param.place);
  return Make<VarNode>(std::move(node));
}

void GraphReader::BindSymbols(const Type& type) {
  if (type == nullptr) return;
  for (const PrimVar& var : FreePrimVars(type)) bound_symbols_.insert(var.get());
}

Type GraphReader::ReadSignature(const Statement& def, bool is_pure) {
  std::vector<Type> params;
  const Numbers numbers = DeclareNumbers(def);
  for (const Parameter& param : def.params) {
    params.push_back(param.annotation == nullptr ? Type() : ReadParamType(param, numbers));
    if (params.back() == nullptr) params.back() = Make<ObjectTypeNode>();
  }
  Type result = def.annotation == nullptr ? Type(Make<ObjectTypeNode>()) : types_.Read(*def.annotation);
  if (result == nullptr) result = Make<ObjectTypeNode>();
  return Make<CallableTypeNode>(std::move(params), std::move(result), is_pure);
}

Function GraphReader::ReadFunction(const Statement& def, bool is_pure, bool is_private) {
  std::vector<Var> params;
  const Numbers numbers = DeclareNumbers(def);
  for (const Parameter& param : def.params) params.push_back(ReadParam(param, numbers));
  // The symbols of the whole signature are declared before scalars and tensors get their names.
  Type declared = def.annotation == nullptr ? Type() : types_.Read(*def.annotation);
  return ReadFunctionBody(def, std::move(params), std::move(declared), is_pure, is_private);
}

Function GraphReader::ReadFunctionBody(const Statement& def, std::vector<Var> params, Type declared, bool is_pure,
                                       bool is_private) {
  const size_t errors = context_.sink().count();
  Attrs attrs;
  size_t begin = 0;
  if (num_storages_ == 0) CountStorages(def.body);
  // The head: docstring, names of parameters, attributes.
  for (; begin < def.body.size(); ++begin) {
    const Statement& statement = def.body[begin];
    constexpr std::string_view kParamNames = "param names: ";
    if (statement.kind == StatementKind::kPragma && statement.text.starts_with(kParamNames)) {
      const SourceText text{context_.source()->name, std::string(statement.text.substr(kParamNames.size()))};
      DiagnosticSink inner(std::make_shared<const SourceText>(text));
      const std::vector<Token> tokens = Tokenize(text, inner);
      const SyntaxPtr list = SyntaxParser(tokens, inner).ParseSingleExpression();
      if (inner.has_errors() || list->children.size() != params.size()) {
        context_.Error(statement.place, "expected a list of " + std::to_string(params.size()) + " names");
        continue;
      }
      for (size_t i = 0; i < params.size(); ++i) {
        VarNode named = *params[i];
        named.name = AsString((*list)[i]).value_or(named.name);
        params[i] = Make<VarNode>(std::move(named));
      }
      continue;
    }
    if (statement.kind == StatementKind::kExpression && statement.value->kind == SyntaxKind::kString) continue;
    if (statement.kind != StatementKind::kExpression || CalleeName(*statement.value) != "R.func_attr") break;
    Arguments args(context_, *statement.value, "R.func_attr");
    const Syntax* dict = args.Require(0, "attrs");
    if (dict == nullptr || !args.Done()) continue;
    if (std::optional<Attrs> read = prim_.ReadAttrs(*dict)) attrs = std::move(*read);
  }
  for (size_t i = 0; i < params.size(); ++i) {
    scope_.Define(def.params[i].name, Symbol::Value(params[i]));
    BindSymbols(params[i]->type);
  }
  const std::unordered_set<const Node*> known_outside = bound_symbols_;
  Builder builder;
  size_t end = def.body.size();
  const Statement* last = end > begin ? &def.body[end - 1] : nullptr;
  const bool returns = last != nullptr && last->kind == StatementKind::kReturn;
  if (returns) --end;
  ReadStatements(def.body, begin, end, builder);
  if (!returns) {
    const bool reported = last != nullptr && last->kind == StatementKind::kError;
    if (!reported)
      context_.Error(def.place, "the function \"" + std::string(def.text) + "\" does not end with a return");
    return nullptr;
  }
  Expr result = last->value == nullptr
                    ? Expr(Make<TupleNode>(std::vector<Expr>{}, Make<TupleTypeNode>(std::vector<Type>{})))
                    : ReadArgument(*last->value, builder);
  if (result == nullptr || context_.sink().count() != errors) return nullptr;
  if (result->type == nullptr) {  // a tensor function, an external function or an operator
    const auto is_result = [&](const Var& param) { return Expr(param).same_as(result); };
    if (std::any_of(params.begin(), params.end(), is_result)) return nullptr;  // the missing type was reported
    return context_.Error(last->place, "expected a value after \"return\", got what can only be called");
  }
  if (declared != nullptr && FitType(declared, result->type) == TypeFit::kNarrower) {
    // The inferred type says less than the declared one, so the result is checked when the function returns.
    VarNode checked("returned", declared, false);
    checked.span = context_.SpanOf(last->place);
    const Var var = Make<VarNode>(std::move(checked));
    AddBinding({var, std::move(result), declared, SpanOf(last->place, last->comment)}, builder);
    result = var;
  }
  if (!CheckType(declared, result->type, last->place)) return nullptr;
  if (declared == nullptr) declared = WithoutLocalSymbols(result->type, known_outside);
  SeqExprNode body(std::move(builder.blocks), std::move(result));
  body.span = context_.SpanOf(def.place);
  FunctionNode function(std::move(params), Make<SeqExprNode>(std::move(body)), std::move(declared), is_pure, is_private,
                        std::move(attrs));
  function.span = context_.SpanOf(def.place);
  return Make<FunctionNode>(std::move(function));
}

void GraphReader::ReadNested(const Statement& def, Builder& builder) {
  bool is_pure = true, is_private = false;
  for (const SyntaxPtr& decorator : def.decorators) {
    const bool is_call = decorator->kind == SyntaxKind::kCall;
    if ((is_call ? CalleeName(*decorator) : DottedName(*decorator)) != "R.function") {
      context_.Error(*decorator, "expected @R.function, got " + Describe(*decorator));
      continue;
    }
    if (!is_call) continue;
    Arguments args(context_, *decorator, "R.function");
    if (const Syntax* pure = args.Keyword("pure")) is_pure = !pure->is_name("False");
    if (const Syntax* hidden = args.Keyword("private")) is_private = hidden->is_name("True");
    args.Done();
  }
  if (def.decorators.empty()) context_.Error(def.place, "expected @R.function before a function");
  Var self;
  Function function;
  {
    const ScopeTable::Scope inner(scope_);
    std::vector<Var> params;
    std::vector<Type> types;
    const Numbers numbers = DeclareNumbers(def);
    for (const Parameter& param : def.params) {
      params.push_back(ReadParam(param, numbers));
      types.push_back(params.back()->type ? params.back()->type : Type(Make<ObjectTypeNode>()));
    }
    Type declared = def.annotation == nullptr ? Type() : types_.Read(*def.annotation);
    const Type result = declared ? declared : Type(Make<ObjectTypeNode>());
    const bool dataflow = builder.in_dataflow && (builder.outputs == nullptr || !builder.outputs->contains(def.text));
    VarNode node(std::string(def.text), Make<CallableTypeNode>(std::move(types), result, is_pure), dataflow);
    node.span = context_.SpanOf(def.place);
    self = Make<VarNode>(std::move(node));
    const bool is_known = declared != nullptr;
    if (is_known) scope_.Define(def.text, Symbol::Value(self));  // it may call itself
    function = ReadFunctionBody(def, std::move(params), std::move(declared), is_pure, is_private);
    if (!is_known && function != nullptr) {
      VarNode typed = *self;
      typed.type = Make<CallableTypeNode>(*As<CallableTypeNode>(self->type)->params, function->result_type, is_pure);
      self = Make<VarNode>(std::move(typed));
    }
  }
  scope_.Define(def.text, Symbol::Value(self));
  if (function != nullptr) AddBinding({self, function, nullptr, context_.SpanOf(def.place)}, builder);
}

// ---- Statements

void GraphReader::DefineError(const Syntax& target) {
  if (target.kind == SyntaxKind::kName) scope_.Define(target.text, Symbol());
  if (target.kind != SyntaxKind::kTuple) return;
  for (const SyntaxPtr& item : target.children) DefineError(*item);
}

void GraphReader::ReadStatements(const std::vector<Statement>& body, size_t begin, size_t end, Builder& builder) {
  for (size_t i = begin; i < end; ++i) ReadStatement(body[i], builder);
}

void GraphReader::ReadStatement(const Statement& statement, Builder& builder) {
  switch (statement.kind) {
    case StatementKind::kError:
      if (statement.target != nullptr) DefineError(*statement.target);
      if (!statement.text.empty()) scope_.Define(statement.text, Symbol());
      return;
    case StatementKind::kExpression: {
      if (statement.value->kind == SyntaxKind::kString || statement.value->kind == SyntaxKind::kError) return;
      if (IsOutput(statement)) {
        context_.Error(statement.place, "R.output ends a dataflow block");
        return;
      }
      if (CalleeName(*statement.value) == "R.func_attr") {
        context_.Error(statement.place, "R.func_attr stands at the head of a function");
        return;
      }
      if (CalleeName(*statement.value) == "R.match_cast") return ReadMatchCast(statement, builder);
      if (ReadRelease(*statement.value)) return;
      Expr value = ReadValue(*statement.value, builder);
      const auto* nothing = As<TupleNode>(value);
      if (nothing != nullptr && nothing->fields.empty()) return;
      if (value != nullptr) Bind("_", std::move(value), nullptr, statement.place, builder, statement.comment);
      return;
    }
    case StatementKind::kAssign:
      return ReadBinding(statement, builder);
    case StatementKind::kIf:
      return ReadIf(statement, builder);
    case StatementKind::kWith:
      return ReadDataflow(statement, builder);
    case StatementKind::kFunction:
      return ReadNested(statement, builder);
    case StatementKind::kReturn:
      context_.Error(statement.place, "a return stands at the end of its function alone");
      return;
    case StatementKind::kPass:
    case StatementKind::kPragma:
    case StatementKind::kImport:
      return;
    case StatementKind::kFor:
    case StatementKind::kWhile:
    case StatementKind::kAssert:
    case StatementKind::kClass:
      context_.Error(statement.place,
                     "a graph function holds bindings, if, dataflow blocks and functions; loops stand in "
                     "tensor functions (@T.prim_func)");
      return;
  }
  INGOT_UNREACHABLE("StatementKind");
}

void GraphReader::DeclareSymbol(const Syntax& target, DataType dtype) {
  const Symbol* known = scope_.FindLocal(target.text);
  if (known != nullptr && known->kind == Symbol::Kind::kPrim && known->prim->dtype == dtype)
    return;  // a symbol of the signature
  scope_.DefineOutermost(target.text, Symbol::Prim(MakePrimVar(std::string(target.text), dtype)));
}

bool GraphReader::ReadDeclaration(const Statement& statement) {
  const Syntax &target = *statement.target, &value = *statement.value;
  const auto symbol_type = [&](const Syntax& syntax) { return prim_.ReadVarDeclaration(syntax); };
  if (target.kind == SyntaxKind::kTuple && value.kind == SyntaxKind::kTuple &&
      target.children.size() == value.children.size() && !value.children.empty() && symbol_type(value[0])) {
    for (size_t i = 0; i < target.children.size(); ++i) {
      const std::optional<DataType> dtype = symbol_type(value[i]);
      if (dtype && target[i].kind == SyntaxKind::kName) {
        DeclareSymbol(target[i], *dtype);
      } else {
        context_.Error(target[i], "expected the declaration of a symbolic variable, such as n = T.int64()");
        DefineError(target[i]);
      }
    }
    return true;
  }
  if (target.kind != SyntaxKind::kName) return false;
  if (const std::optional<DataType> dtype = symbol_type(value)) {
    DeclareSymbol(target, *dtype);
    return true;
  }
  if (value.kind == SyntaxKind::kName && value.text == head_.class_name && scope_.FindLocal(value.text) == nullptr) {
    scope_.Define(target.text, Symbol::Module());
    return true;
  }
  return false;
}

void GraphReader::ReadBinding(const Statement& statement, Builder& builder) {
  const Syntax& target = *statement.target;
  if (statement.value == nullptr) {
    context_.Error(target, "expected a value after the annotation");
    return DefineError(target);
  }
  if (ReadDeclaration(statement)) return;
  if (target.kind != SyntaxKind::kName) {
    if (target.kind == SyntaxKind::kTuple && statement.annotation == nullptr) return ReadUnpacking(statement, builder);
    if (target.kind != SyntaxKind::kError) context_.Error(target, "expected a name on the left");
    return DefineError(target);
  }
  if (CalleeName(*statement.value) == "R.match_cast") return ReadMatchCast(statement, builder);
  if (CalleeName(*statement.value) == "R.ExternFunc") {  // a name for the function, which calls may have
    Expr function = ReadValue(*statement.value, builder);
    return function == nullptr ? DefineError(target) : scope_.Define(target.text, Symbol::Value(std::move(function)));
  }
  if (CalleeName(*statement.value) == "R.null_value") {
    Expr absent = ReadNullValue(*statement.value);
    return absent == nullptr ? DefineError(target) : scope_.Define(target.text, Symbol::Value(std::move(absent)));
  }
  if (ReadHeap(target, *statement.value)) return;
  Type declared;
  if (statement.annotation != nullptr) {
    declared = types_.Read(*statement.annotation);
    if (declared == nullptr) return DefineError(target);
  }
  if (ReadRelease(*statement.value)) return;
  Expr value = ReadValue(*statement.value, builder);
  if (value == nullptr) return DefineError(target);
  // TVM's split into one part gives the part itself.
  const auto* parts = As<TupleTypeNode>(value->type);
  if (parts != nullptr && parts->fields.size() == 1 && declared != nullptr && As<TensorTypeNode>(declared) != nullptr) {
    const Type part = parts->fields[0];
    value = MakeExpr<TupleGetItemNode>(*statement.value, Leaf(std::move(value), statement.place, builder), 0, part);
  }
  // VMShapeLower leaves dimensions out of the types that it states; the heap knows them.
  if (heap_ != nullptr && declared != nullptr && value->type != nullptr &&
      FitType(declared, value->type) == TypeFit::kFits) {
    declared = value->type;
  }
  Bind(target.text, std::move(value), declared, statement.place, builder, statement.comment);
}

// a, b = t: binds the fields of a tuple one by one.
void GraphReader::ReadUnpacking(const Statement& statement, Builder& builder) {
  const Syntax& target = *statement.target;
  const Expr tuple = ReadArgument(*statement.value, builder);
  if (tuple == nullptr) return DefineError(target);
  const auto* type = As<TupleTypeNode>(tuple->type);
  if (type == nullptr || type->fields.size() != target.children.size()) {
    context_.Error(target, "expected a tuple of " + std::to_string(target.children.size()) + " fields, got " +
                               (tuple->type == nullptr ? "a value of unknown type" : PrintType(tuple->type)));
    return DefineError(target);
  }
  for (size_t i = 0; i < target.children.size(); ++i) {
    const Syntax& name = target[i];
    if (name.kind != SyntaxKind::kName) {
      context_.Error(name, "expected a name on the left");
      return DefineError(target);
    }
    Expr field = MakeExpr<TupleGetItemNode>(name, tuple, static_cast<int64_t>(i), type->fields[i]);
    Bind(name.text, std::move(field), nullptr, name.place, builder, statement.comment);
  }
}

// x = R.match_cast(value, type), or R.match_cast(value, type) alone, which only checks.
void GraphReader::ReadMatchCast(const Statement& statement, Builder& builder) {
  const Syntax unnamed(SyntaxKind::kName, statement.place, "_");
  const Syntax& target = statement.target != nullptr ? *statement.target : unnamed;
  Arguments args(context_, *statement.value, "R.match_cast");
  const Syntax* value_syntax = args.Require(0, "value");
  const Syntax* type_syntax = args.Require(1, "ty");
  if (value_syntax == nullptr || type_syntax == nullptr || !args.Done()) return DefineError(target);
  Expr value = ReadArgument(*value_syntax, builder);
  const Type type = types_.Read(*type_syntax);
  if (value == nullptr || type == nullptr) return DefineError(target);
  Type declared = type;
  if (statement.annotation != nullptr) {
    declared = types_.Read(*statement.annotation);
    if (declared == nullptr || !CheckType(declared, type, statement.annotation->place)) return DefineError(target);
  }
  const bool dataflow = builder.in_dataflow && !builder.outputs->contains(target.text);
  VarNode node(std::string(target.text), declared, dataflow);
  node.span = context_.SpanOf(target.place);
  const Var var = Make<VarNode>(std::move(node));
  scope_.Define(target.text, Symbol::Value(var));
  BindSymbols(type);
  AddBinding({var, std::move(value), type, SpanOf(statement.place, statement.comment)}, builder);
}

void GraphReader::ReadDataflow(const Statement& statement, Builder& builder) {
  if (CalleeName(*statement.value) != "R.dataflow") {
    context_.Error(*statement.value, "expected R.dataflow() after \"with\", got " + Describe(*statement.value));
    return;
  }
  if (builder.in_dataflow) {
    context_.Error(statement.place, "a dataflow block holds no other one");
    return;
  }
  // A variable is a dataflow variable unless it leaves the block, so the last line, R.output(...), is read first.
  std::unordered_set<std::string_view> outputs;
  size_t end = statement.body.size();
  const Statement* last = end > 0 ? &statement.body[end - 1] : nullptr;
  if (last != nullptr && IsOutput(*last)) {
    --end;
    for (size_t i = 1; i < last->value->children.size(); ++i) {
      const Syntax& output = (*last->value)[i];
      if (output.kind == SyntaxKind::kName) outputs.insert(output.text);
    }
  }
  builder.blocks.emplace_back();
  builder.blocks.back().is_dataflow = true;
  builder.in_dataflow = true;
  builder.outputs = &outputs;
  ReadStatements(statement.body, 0, end, builder);
  builder.in_dataflow = false;
  builder.outputs = nullptr;
  if (last == nullptr || !IsOutput(*last)) {
    const bool reported = last != nullptr && last->kind == StatementKind::kError;
    if (!reported) context_.Error(statement.place, "this dataflow block does not end with R.output(...)");
    return;
  }
  for (size_t i = 1; i < last->value->children.size(); ++i) {
    const Syntax& output = (*last->value)[i];
    if (output.kind != SyntaxKind::kName) {
      context_.Error(output, "R.output: expected the name of a variable, got " + Describe(output));
      continue;
    }
    const auto& bindings = builder.blocks.back().bindings;
    const Symbol* symbol = scope_.Find(output.text);
    const bool here = symbol != nullptr && std::any_of(bindings.begin(), bindings.end(), [&](const Binding& binding) {
                        return binding.var.get() == symbol->value.get();
                      });
    if (symbol == nullptr) {
      prim_.UnknownName(output);
    } else if (!here && symbol->kind != Symbol::Kind::kError) {
      context_.Error(output, "\"" + std::string(output.text) + "\" is not bound in this dataflow block");
    }
  }
}

namespace {
// Returns the statement that gives a branch its value: the target of the last statement.
const Statement* ResultOf(const std::vector<Statement>& body) {
  if (body.empty()) return nullptr;
  const Statement& last = body.back();
  const bool is_assignment = last.kind == StatementKind::kAssign && last.value != nullptr;
  if (is_assignment && last.target->kind == SyntaxKind::kName) return &last;
  return nullptr;
}
// The name that a statement gives a value; for an if at the end, the name in its branches.
std::string_view ResultName(const Statement& statement) {
  if (statement.body.empty()) return "";
  const Statement& last = statement.body.back();
  if (last.kind == StatementKind::kIf) return ResultName(last);
  const Statement* result = ResultOf(statement.body);
  return result == nullptr ? "" : result->target->text;
}
}  // namespace

SeqExpr GraphReader::ReadBranch(const std::vector<Statement>& body, std::string_view name, const Type& declared) {
  const ScopeTable::Scope inner(scope_);
  Builder builder;
  const size_t errors = context_.sink().count();
  const Statement* result = ResultOf(body);
  Expr value;
  if (result != nullptr) {
    ReadStatements(body, 0, body.size() - 1, builder);
    value = ReadValue(*result->value, builder);
    const auto* call = As<CallNode>(value);
    if (value != nullptr && CalleeName(*result->value) == "R.match_cast") {
      context_.Error(*result->value, "bind the match_cast to a name of its own first");
    }
    if (value != nullptr && !CheckType(declared, value->type, result->place)) return nullptr;
    // A value that needs a binding gets one, named after the result.
    if (call != nullptr || As<TupleGetItemNode>(value) != nullptr) {
      value = Bind(name, std::move(value), declared, result->place, builder, result->comment);
    } else if (value != nullptr) {
      value = Leaf(std::move(value), result->place, builder);
    }
  } else {  // the branch ends with another if
    ReadStatements(body, 0, body.size(), builder);
    const Symbol* symbol = scope_.Find(name);
    if (symbol != nullptr && symbol->kind == Symbol::Kind::kValue) value = symbol->value;
  }
  if (value == nullptr || context_.sink().count() != errors) return nullptr;
  return Make<SeqExprNode>(std::move(builder.blocks), std::move(value));
}

void GraphReader::ReadIf(const Statement& statement, Builder& builder) {
  if (builder.in_dataflow) {
    context_.Error(statement.place, "a dataflow block is straight-line: no if inside");
    return;
  }
  const std::string_view name = ResultName(statement);
  const auto ends_with = [&](const std::vector<Statement>& body) {
    if (body.empty()) return false;
    if (body.back().kind == StatementKind::kIf) return ResultName(body.back()) == name;
    const Statement* result = ResultOf(body);
    return result != nullptr && result->target->text == name;
  };
  if (name.empty() || !ends_with(statement.orelse)) {
    const auto reported = [](const std::vector<Statement>& body) {
      return !body.empty() && body.back().kind == StatementKind::kError;
    };
    if (!reported(statement.body) && !reported(statement.orelse)) {
      context_.Error(statement.place, "both branches of an if end with an assignment to the same name, its result");
    }
    if (!name.empty()) scope_.Define(name, Symbol());
    return;
  }
  Expr condition = ReadArgument(*statement.value, builder);
  const Statement *yes = ResultOf(statement.body), *no = ResultOf(statement.orelse);
  Type declared;
  for (const Statement* result : {yes, no}) {
    if (declared == nullptr && result != nullptr && result->annotation != nullptr)
      declared = types_.Read(*result->annotation);
  }
  SeqExpr then_branch = ReadBranch(statement.body, name, declared);
  SeqExpr else_branch = ReadBranch(statement.orelse, name, declared);
  if (condition == nullptr || then_branch == nullptr || else_branch == nullptr) {
    scope_.Define(name, Symbol());
    return;
  }
  const bool known = then_branch->type != nullptr && else_branch->type != nullptr;
  const Type type = declared                                                          ? declared
                    : !known                                                          ? Type()
                    : FitType(then_branch->type, else_branch->type) == TypeFit::kFits ? then_branch->type
                    : FitType(else_branch->type, then_branch->type) == TypeFit::kFits ? else_branch->type
                                                                                      : Type();
  if (type == nullptr) {
    context_.Error(statement.place, "the branches give " + PrintType(then_branch->type) + " and " +
                                        PrintType(else_branch->type) + "; declare the result's type");
    scope_.Define(name, Symbol());
    return;
  }
  IfNode node(std::move(condition), std::move(then_branch), std::move(else_branch), type);
  node.span = context_.SpanOf(statement.place);
  Bind(name, Make<IfNode>(std::move(node)), type, statement.place, builder);
}

// ---- Bindings

void GraphReader::AddBinding(Binding binding, Builder& builder) {
  if (!builder.in_dataflow && (builder.blocks.empty() || builder.blocks.back().is_dataflow))
    builder.blocks.emplace_back();
  builder.blocks.back().bindings.push_back(std::move(binding));
}

Var GraphReader::Bind(std::string_view name, Expr value, const Type& declared, Place place, Builder& builder,
                      std::string_view comment) {
  CheckType(declared, value->type, place);
  const bool dataflow = builder.in_dataflow && (builder.outputs == nullptr || !builder.outputs->contains(name));
  VarNode node(std::string(name), declared ? declared : value->type, dataflow);
  node.span = context_.SpanOf(place);
  const Var var = Make<VarNode>(std::move(node));
  scope_.Define(name, Symbol::Value(var));
  released_.erase(std::string(name));
  AddBinding({var, std::move(value), nullptr, SpanOf(place, comment)}, builder);
  return var;
}

Expr GraphReader::Leaf(Expr value, Place place, Builder& builder) {
  if (value == nullptr) return nullptr;
  switch (value->kind) {
    case ExprKind::kCall:
    case ExprKind::kTupleGetItem:
    case ExprKind::kIf:
    case ExprKind::kSeqExpr:
    case ExprKind::kFunction:
    case ExprKind::kPrimFunc: {
      VarNode node(builder.in_dataflow ? "lv" : "gv", value->type, builder.in_dataflow);
      node.span = context_.SpanOf(place);
      const Var var = Make<VarNode>(std::move(node));
      AddBinding({var, std::move(value), nullptr, context_.SpanOf(place)}, builder);
      return var;
    }
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
      return value;
  }
  INGOT_UNREACHABLE("ExprKind");
}

}  // namespace ingot::script
