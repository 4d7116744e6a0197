// Values of graph functions: names, tuples, constants, shapes and calls of operators, functions and closures. A part of
// GraphReader (graph_reader.h).
#include <algorithm>

#include "compiler/op/registry.h"
#include "compiler/script/composite_operators.h"
#include "compiler/script/constant_text.h"
#include "compiler/script/foreign_operators.h"
#include "compiler/script/graph_reader.h"
#include "runtime/suggest.h"

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

// Older and newer names of the argument that states the type of a call's result.
constexpr std::string_view kOutTypeNames[] = {"out_ty", "out_sinfo", "sinfo_args", "ty_args"};

// Arguments that are read as tuples of numbers; other lists of numbers are shapes.
constexpr std::string_view kNumberTuples[] = {"axes", "begin", "end", "strides"};

// Whether the syntax is a type, or a list of types.
bool IsTypeSyntax(const Syntax& syntax) {
  if (syntax.kind == SyntaxKind::kTuple || syntax.kind == SyntaxKind::kList) {
    return !syntax.children.empty() && IsTypeSyntax(syntax[0]);
  }
  constexpr std::string_view kTypes[] = {"R.Any", "R.Object", "R.Prim", "R.Shape", "R.Tensor", "R.Tuple", "R.Callable"};
  const std::string name = syntax.kind == SyntaxKind::kCall ? CalleeName(syntax) : DottedName(syntax);
  return std::find(std::begin(kTypes), std::end(kTypes), name) != std::end(kTypes);
}

// call_tir and similar operators take the result's type by place, too: (gvar, args[, inplace_indices], out_ty[,
// tir_vars]).
size_t PlaceOfType(const Syntax& call) {
  for (size_t i = 3; i < call.children.size() && call[i].kind != SyntaxKind::kKeyword; ++i) {
    if (IsTypeSyntax(call[i])) return i - 1;
  }
  return static_cast<size_t>(-1);
}

Type TupleTypeOf(const std::vector<Expr>& fields) {
  std::vector<Type> types;
  for (const Expr& field : fields) types.push_back(field->type ? field->type : Type(Make<ObjectTypeNode>()));
  return Make<TupleTypeNode>(std::move(types));
}

}  // namespace

Expr GraphReader::ReadArgument(const Syntax& syntax, Builder& builder) {
  return Leaf(ReadValue(syntax, builder), syntax.place, builder);
}

Expr GraphReader::ReadPrimValue(const Syntax& syntax) {
  PrimExpr value = prim_.Read(syntax, AsFloat(syntax) ? DataType::Float(64) : DataType::Int(64));
  return value == nullptr ? Expr() : MakeExpr<PrimValueNode>(syntax, std::move(value));
}

Expr GraphReader::ReadValue(const Syntax& syntax, Builder& builder) {
  switch (syntax.kind) {
    case SyntaxKind::kError:
      return nullptr;
    case SyntaxKind::kName:
      return ReadName(syntax);
    case SyntaxKind::kUnary:
    case SyntaxKind::kBinary:
      return NamesValue(syntax) ? ReadOperator(syntax, builder) : ReadPrimValue(syntax);
    case SyntaxKind::kInt:
    case SyntaxKind::kFloat:
    case SyntaxKind::kConditional:
      return ReadPrimValue(syntax);
    case SyntaxKind::kString:
      return MakeExpr<StringValueNode>(syntax, syntax.value);
    case SyntaxKind::kAttribute:
      return ReadAttributeValue(syntax);
    case SyntaxKind::kSubscript:
      return ReadSubscript(syntax, builder);
    case SyntaxKind::kTuple:
    case SyntaxKind::kList:
      return ReadTuple(syntax, builder);
    case SyntaxKind::kCall:
      return ReadCall(syntax, builder);
    case SyntaxKind::kKeyword:
    case SyntaxKind::kSlice:
    case SyntaxKind::kDict:
      return context_.Error(syntax, "expected a value, got " + Describe(syntax));
  }
  INGOT_UNREACHABLE("SyntaxKind");
}

Expr GraphReader::ReadName(const Syntax& syntax) {
  if (syntax.text == "True" || syntax.text == "False") return ReadPrimValue(syntax);
  if (syntax.text == "None") return context_.Error(syntax, "None is no value here");
  if (released_.contains(std::string(syntax.text))) {
    return context_.Error(
        syntax, "\"" + std::string(syntax.text) + "\" was released before, by R.memory.kill_tensor or the like");
  }
  if (heap_ != nullptr && syntax.text == heap_name_) {
    return context_.Error(syntax, "the heap of dimensions is an argument of vm.builtin.match_shape and the like alone");
  }
  const Symbol* symbol = scope_.Find(syntax.text);
  if (symbol == nullptr) return prim_.UnknownName(syntax);
  switch (symbol->kind) {
    case Symbol::Kind::kError:
      return nullptr;
    case Symbol::Kind::kPrim:
      return MakeExpr<PrimValueNode>(syntax, symbol->prim);
    case Symbol::Kind::kValue:
      return symbol->value;
    case Symbol::Kind::kBuffer:
    case Symbol::Kind::kModule:
      break;
  }
  return context_.Error(syntax, "expected a value, got the module");
}

Expr GraphReader::ReadAttributeValue(const Syntax& syntax) {
  if (syntax[0].kind == SyntaxKind::kName) {
    const Symbol* symbol = scope_.Find(syntax[0].text);
    const bool is_module = symbol != nullptr ? symbol->kind == Symbol::Kind::kModule
                                             : syntax[0].text == "cls" || syntax[0].text == head_.class_name;
    if (is_module) {
      const auto found = head_.functions.find(std::string(syntax.text));
      if (found != head_.functions.end()) return found->second.var;
      std::vector<std::string_view> names;
      for (const auto& [name, function] : head_.functions) names.push_back(name);
      std::sort(names.begin(), names.end());
      return context_.Error(
          syntax, "the module has no function \"" + std::string(syntax.text) + "\"" + DidYouMean(syntax.text, names));
    }
  }
  return context_.Error(syntax, "expected a value, got " + Describe(syntax));
}

Expr GraphReader::ReadTuple(const Syntax& syntax, Builder& builder) {
  std::vector<Expr> fields;
  bool fine = true;
  for (const SyntaxPtr& item : syntax.children) {
    fields.push_back(ReadArgument(*item, builder));
    fine = fine && fields.back() != nullptr;
  }
  if (!fine) return nullptr;
  return MakeTuple(syntax, std::move(fields));
}

Expr GraphReader::MakeTuple(const Syntax& syntax, std::vector<Expr> fields) {
  Type type = TupleTypeOf(fields);
  if (!context_.ChargeType(type)) return context_.Error(syntax, "the tuples of this text are too large together");
  return MakeExpr<TupleNode>(syntax, std::move(fields), std::move(type));
}

// metadata["HASH"] or, with the constant's name, metadata["HASH"]["name"]
Expr GraphReader::ReadMetadata(const Syntax& syntax) {
  const bool has_name = syntax[0].kind == SyntaxKind::kSubscript;
  const Syntax& inner = has_name ? syntax[0] : syntax;
  const std::optional<std::string> hash = inner.children.size() == 2 ? AsString(inner[1]) : std::nullopt;
  if (!hash) return context_.Error(syntax, "expected metadata[\"HASH\"]");
  const std::optional<int64_t> place = has_name && syntax.children.size() == 2 ? AsInt(syntax[1]) : std::nullopt;
  if (place) return ReadTvmMetadata(syntax, *hash, *place);
  const std::optional<std::string> name = has_name && syntax.children.size() == 2 ? AsString(syntax[1]) : "";
  std::shared_ptr<const ConstantData> data = constants_ == nullptr ? nullptr : constants_->Find(*hash);
  if (data == nullptr) return context_.Error(syntax, "the constant \"" + *hash + "\" is not in the side file");
  return MakeExpr<ConstantNode>(syntax, std::move(data), name.value_or(""));
}

// metadata["ir.GenericConst"][0]
Expr GraphReader::ReadTvmMetadata(const Syntax& syntax, const std::string& type, int64_t index) {
  if (head_.has_bad_metadata) return nullptr;
  if (!head_.metadata) {
    return context_.Error(syntax,
                          "this constant stands in TVM's metadata, which the text does not hold; print it with "
                          "show_meta=True, or keep weights as parameters and bind them from a file");
  }
  Result<std::shared_ptr<const ConstantData>> data = head_.metadata->Find(type, index);
  if (!data.ok()) return context_.Error(syntax, data.status().message());
  return MakeExpr<ConstantNode>(syntax, *std::move(data));
}

Expr GraphReader::ReadSubscript(const Syntax& syntax, Builder& builder) {
  const Syntax& base = syntax[0];
  const Syntax& root = base.kind == SyntaxKind::kSubscript ? base[0] : base;
  if (root.is_name("metadata") && scope_.FindLocal("metadata") == nullptr) return ReadMetadata(syntax);
  Expr tuple = ReadArgument(base, builder);
  if (tuple == nullptr) return nullptr;
  const auto* tuple_type = As<TupleTypeNode>(tuple->type);
  const std::optional<int64_t> place = syntax.children.size() == 2 ? AsInt(syntax[1]) : std::nullopt;
  int64_t index = place.value_or(-1);
  // negative: counted from the end
  if (place && index < 0 && tuple_type != nullptr) index += std::ssize(tuple_type->fields);
  if (index < 0) return context_.Error(syntax, "expected the place in a tuple, such as t[0]");
  Type type = Make<ObjectTypeNode>();
  if (tuple_type != nullptr) {
    if (index >= std::ssize(tuple_type->fields)) {
      return context_.Error(syntax[1], "the tuple has " + std::to_string(tuple_type->fields.size()) + " fields");
    }
    type = tuple_type->fields[static_cast<size_t>(index)];
  } else if (tuple->type != nullptr && tuple->type->kind != TypeKind::kObject) {
    return context_.Error(syntax, "expected a tuple before \"[\"");
  }
  return MakeExpr<TupleGetItemNode>(syntax, std::move(tuple), index, std::move(type));
}

Expr GraphReader::ReadConst(const Syntax& call) {
  Arguments args(context_, call, "R.const");
  const Syntax* value = args.Require(0, "value");
  const Syntax* dtype_syntax = args.Get(1, "dtype");
  const Syntax* name_syntax = args.Keyword("name");
  if (value == nullptr || !args.Done()) return nullptr;
  std::optional<DataType> dtype;
  if (dtype_syntax != nullptr && !IsNone(*dtype_syntax) && !(dtype = prim_.ReadDataType(*dtype_syntax))) return nullptr;
  const std::shared_ptr<const ConstantData> data = ReadConstantElements(context_, *value, dtype);
  if (data == nullptr) return nullptr;
  return MakeExpr<ConstantNode>(call, data, name_syntax == nullptr ? "" : AsString(*name_syntax).value_or(""));
}

bool GraphReader::IsScalarSyntax(const Syntax& syntax) {
  switch (syntax.kind) {
    case SyntaxKind::kInt:
    case SyntaxKind::kUnary:
    case SyntaxKind::kBinary:
      return true;
    case SyntaxKind::kName: {
      const Symbol* symbol = scope_.Find(syntax.text);
      return symbol != nullptr && symbol->kind == Symbol::Kind::kPrim;
    }
    case SyntaxKind::kCall:
      return CalleeName(syntax).starts_with("T.");
    default:
      return false;
  }
}

// The tensor function of the module that a call of a number is of; null if it is none.
const Statement* GraphReader::FindNumberFunction(const Syntax& call) {
  const Syntax& callee = call[0];
  if (callee.kind != SyntaxKind::kAttribute || callee[0].kind != SyntaxKind::kName) return nullptr;
  const Symbol* module = scope_.Find(callee[0].text);
  if (callee[0].text != head_.class_name && (module == nullptr || module->kind != Symbol::Kind::kModule))
    return nullptr;
  const auto found = head_.number_functions.find(std::string(callee.text));
  return found == head_.number_functions.end() ? nullptr : found->second;
}

// The number that the function returns of these arguments, as TVM's ComputePrimValue made the function of it.
Expr GraphReader::ReadNumberCall(const Syntax& call, const Statement& def) {
  std::vector<PrimExpr> values;
  for (size_t i = 1; i < call.children.size(); ++i) {
    values.push_back(prim_.Read(call[i]));
    if (values.back() == nullptr) return nullptr;
  }
  const Statement* last = def.body.empty() ? nullptr : &def.body.back();
  const bool is_attrs_before = std::all_of(def.body.begin(), def.body.end(), [&](const Statement& statement) {
    return &statement == last ||
           (statement.kind == StatementKind::kExpression &&
            (statement.value->kind == SyntaxKind::kString || CalleeName(*statement.value) == "T.func_attr"));
  });
  if (last == nullptr || last->kind != StatementKind::kReturn || last->value == nullptr || !is_attrs_before) {
    return context_.Error(call, "\"" + std::string(def.text) + "\" does more than to return a number");
  }
  if (values.size() != def.params.size()) {
    return context_.Error(
        call, "expected " + std::to_string(def.params.size()) + " arguments, got " + std::to_string(values.size()));
  }
  const ScopeTable::Scope inner(scope_);
  for (size_t i = 0; i < values.size(); ++i) scope_.Define(def.params[i].name, Symbol::Prim(values[i]));
  PrimExpr number = prim_.Read(*last->value);
  return number == nullptr ? Expr() : MakeExpr<PrimValueNode>(call, std::move(number));
}

Expr GraphReader::ReadCall(const Syntax& call, Builder& builder) {
  const std::string name = CalleeName(call);
  if (name.starts_with("T.")) return ReadPrimValue(call);
  if (name == "lambda") return context_.Error(call, "lambda expressions are not supported");
  if (name == "R.const") return ReadConst(call);
  if (const Statement* def = FindNumberFunction(call)) return ReadNumberCall(call, *def);
  if (Expr value; ReadVmBuiltin(call, builder, &value)) return value;
  if (name == "R.call_packed") return ReadExternCall(call, builder);
  if (name == "R.shape" || name == "R.prim_value" || name == "R.str" || name == "R.dtype" || name == "R.ExternFunc" ||
      name == "I.Op") {
    Arguments args(context_, call, name);
    const Syntax* value = args.Require(0, "value");
    if (value == nullptr || !args.Done()) return nullptr;
    if (name == "R.shape") {
      std::optional<std::vector<PrimExpr>> dims = prim_.ReadDims(*value);
      return dims ? MakeExpr<ShapeExprNode>(call, std::move(*dims)) : Expr();
    }
    if (name == "R.prim_value") return ReadPrimValue(*value);
    if (name == "R.dtype") {
      const std::optional<DataType> dtype = prim_.ReadDataType(*value);
      return dtype ? MakeExpr<DataTypeValueNode>(call, *dtype) : Expr();
    }
    const std::optional<std::string> text = AsString(*value);
    if (!text) return context_.Error(*value, name + ": expected a string, got " + Describe(*value));
    if (name == "R.str") return MakeExpr<StringValueNode>(call, *text);
    if (name == "R.ExternFunc") return MakeExpr<ExternFuncNode>(call, *text);
    if (op::FindOp(*text) != nullptr) return op::GetOp(*text);
    return context_.Error(*value, "unknown operator \"" + *text + "\"");
  }
  if (name == "R.tuple") {
    std::vector<Expr> fields;
    for (size_t i = 1; i < call.children.size(); ++i) {
      fields.push_back(ReadArgument(call[i], builder));
      if (fields.back() == nullptr) return nullptr;
    }
    return MakeTuple(call, std::move(fields));
  }
  if (name == "R.match_cast")
    return context_.Error(call, "R.match_cast stands on its own: x = R.match_cast(value, type)");
  if (name == "R.memory.view" || name == "R.memory.ensure_zero_offset") return ReadMemoryView(call, name, builder);
  if (name == "R.null_value") return ReadNullValue(call);
  if (name == "R.layout_transform") return ReadLayoutTransform(call, builder);
  if (name == "R.call_builtin_with_ctx") return ReadContextCall(call, builder);
  if (name == "R.vm.call_tir_dyn") return ReadDynamicCall(call, builder);
  if (name.starts_with("R.") && IsAllocation(std::string_view(name).substr(2))) {
    return ReadAllocation(call, name.substr(2), builder);
  }
  if (name.starts_with("R.")) return ReadOpCall(call, name.substr(2), builder);
  Expr callee = ReadValue(call[0], builder);
  if (callee == nullptr) return nullptr;
  return ReadFunctionCall(call, Leaf(std::move(callee), call.place, builder), builder);
}

std::optional<std::vector<Type>> GraphReader::ReadOutTypes(const Syntax& syntax, bool one_is_itself) {
  std::vector<Type> types;
  const bool is_list = syntax.kind == SyntaxKind::kList || syntax.kind == SyntaxKind::kTuple;
  for (size_t i = 0; i < (is_list ? syntax.children.size() : 1); ++i) {
    types.push_back(types_.Read(is_list ? syntax[i] : syntax));
    if (types.back() == nullptr) return std::nullopt;
  }
  // A list of one type is a tuple of one for call_tir and similar operators; for external functions and closures it is
  // the one result's type.
  if (is_list && types.size() < (one_is_itself ? 1 : 2))
    return std::vector<Type>{Make<TupleTypeNode>(std::move(types))};
  return types;
}

Expr GraphReader::ReadOpCall(const Syntax& call, const std::string& name, Builder& builder) {
  const CompositeOperator* composite = FindComposite(name);
  const auto states = [&](const SyntaxPtr& argument) {
    return argument->kind == SyntaxKind::kKeyword && argument->text == composite->known_by;
  };
  if (composite != nullptr && (composite->known_by.empty() || std::ranges::any_of(call.children, states))) {
    return ReadComposite(call, *composite, builder);
  }
  // A gradient belongs to training.
  const bool has_gradient = name == "call_tir_with_grad";
  const op::OpRow* row = op::FindOp(has_gradient ? "call_tir" : name);
  Arguments args(context_, call, "R." + name);
  if (has_gradient) {
    args.Keyword("te_grad_name");
    args.Keyword("te_grad_kwargs");
  }
  if (row == nullptr) {
    if (const std::string_view why = WhyForeign(name); !why.empty()) {
      return context_.Error(call[0], "the operator \"R." + name + "\" is not supported: " + std::string(why));
    }
    const std::string near = op::SuggestOp(name);
    return context_.Error(
        call[0], "unknown operator \"R." + name + "\"" + (near.empty() ? "" : "; did you mean \"R." + near + "\"?"));
  }
  std::vector<Expr> values;
  std::vector<Type> out_types;
  AttrDict attrs;
  bool fine = true, ended = false;
  const auto read_argument = [&](const Syntax& syntax, std::string_view arg_name) -> Expr {
    if (arg_name == "args" && !row->variadic) {  // the inputs of call_tir and similar operators: always a tuple
      if (syntax.kind == SyntaxKind::kTuple || syntax.kind == SyntaxKind::kList) return ReadTuple(syntax, builder);
      Expr value = ReadArgument(syntax, builder);
      if (value == nullptr || As<TupleTypeNode>(value->type) != nullptr) return value;
      return MakeExpr<TupleNode>(syntax, std::vector<Expr>{value}, TupleTypeOf({value}));
    }
    if (arg_name == "func" && syntax.kind == SyntaxKind::kString) return MakeExpr<ExternFuncNode>(syntax, syntax.value);
    const bool is_list = syntax.kind == SyntaxKind::kTuple || syntax.kind == SyntaxKind::kList;
    if (is_list && std::find(std::begin(kNumberTuples), std::end(kNumberTuples), arg_name) != std::end(kNumberTuples)) {
      return ReadTuple(syntax, builder);
    }
    if (is_list && std::all_of(syntax.children.begin(), syntax.children.end(),
                               [&](const SyntaxPtr& item) { return IsScalarSyntax(*item); })) {
      std::optional<std::vector<PrimExpr>> dims = prim_.ReadDims(syntax);
      return dims ? MakeExpr<ShapeExprNode>(syntax, std::move(*dims)) : Expr();
    }
    return ReadArgument(syntax, builder);
  };
  const auto add_argument = [&](const Syntax* syntax, std::string_view arg_name) {
    if (syntax == nullptr || IsNone(*syntax)) {
      ended = true;
      return;
    }
    if (ended) {
      context_.Error(*syntax, "R." + name + ": an argument before \"" + std::string(arg_name) + "\" is missing");
      fine = false;
      return;
    }
    values.push_back(read_argument(*syntax, arg_name));
    fine = fine && values.back() != nullptr;
  };
  constexpr auto kNoPlace = static_cast<size_t>(-1);
  const size_t type_place = row->is_primitive && !row->variadic ? PlaceOfType(call) : kNoPlace;
  const auto attr_place = [&](size_t place) { return place < type_place ? place : kNoPlace; };
  size_t place = 0;
  for (; place < row->arg_names.size(); ++place) {
    const size_t shift = type_place == kNoPlace || place < 2 ? 0 : type_place - 1;
    add_argument(args.Get(place + shift, row->arg_names[place]), row->arg_names[place]);
  }
  for (; row->variadic && place < args.num_positional(); ++place) {
    add_argument(args.Get(place, row->arg_names.back()), row->arg_names.back());
  }
  if (type_place != kNoPlace) place = 2;
  for (const op::AttrSpec& spec : row->attrs) {
    const Syntax* syntax = args.Get(attr_place(place++), spec.name);
    if (syntax == nullptr) continue;
    const std::string wrapper = CalleeName(*syntax);
    const bool wrapped = (wrapper == "R.prim_value" || wrapper == "R.str") && syntax->children.size() == 2;
    if (wrapped) syntax = &(*syntax)[1];
    std::optional<AttrValue> value;
    if (spec.type == op::AttrType::kDataType) {
      const bool is_void = IsNone(*syntax) || AsString(*syntax) == "void" || AsString(*syntax) == "";
      const std::optional<DataType> dtype = is_void ? DataType() : prim_.ReadDataType(*syntax);
      if (dtype) value = is_void ? AttrValue() : AttrValue(*dtype);
    } else {
      value = prim_.ReadAttr(*syntax);
    }
    if (value) attrs.emplace_back(spec.name, std::move(*value));
    fine = fine && value;
  }
  if (const std::string_view foreign = ForeignAttribute(name); !foreign.empty()) {
    const Syntax* syntax = args.Keyword(foreign);
    if (syntax != nullptr && !IsNone(*syntax)) {
      context_.Error(*syntax, "R." + name + ": " + std::string(foreign) + " is not supported, only None");
      fine = false;
    }
  }
  const bool calls_closure = name == "invoke_closure" || name == "invoke_pure_closure";
  for (const std::string_view out_name : kOutTypeNames) {
    const bool by_place = type_place != kNoPlace && out_name == kOutTypeNames[0];
    const Syntax* syntax = args.Get(by_place ? type_place : kNoPlace, out_name);
    if (syntax == nullptr) continue;
    std::optional<std::vector<Type>> types = ReadOutTypes(*syntax, row->variadic || calls_closure);
    if (types) out_types = std::move(*types);
    fine = fine && types;
  }
  if (!args.Done() || !fine) return nullptr;
  const bool arithmetic = row->arg_names.size() == 2 && std::string_view(row->arg_names[1]) == "x2";
  if (arithmetic && !ScalarsToTensors(call, values, builder)) return nullptr;
  const std::string row_name = has_gradient ? row->name : AdaptCall(call, name, values, attrs, builder);
  if (row_name.empty()) return nullptr;
  Result<Call> made = op::MakeCall(row_name, std::move(values), Attrs(attrs), std::move(out_types));
  if (!made.ok()) return context_.Error(call, made.status().message());
  CallNode node = **made;
  node.span = context_.SpanOf(call.place);
  return Make<CallNode>(std::move(node));
}

Expr GraphReader::ReadExternCall(const Syntax& call, Builder& builder) {
  const std::optional<std::string> name = call.children.size() > 1 ? AsString(call[1]) : std::nullopt;
  if (!name) return context_.Error(call, "R.call_packed: expected the function's name first");
  if (*name == "runtime.TVMTensorCreateView" ||
      *name == "vm.builtin.ensure_zero_offset") {  // by R.memory.view, and so on
    return ReadMemoryView(call, *name, builder);
  }
  ExternFuncNode callee(*name);
  callee.span = context_.SpanOf(call[1].place);
  return ReadFunctionCall(call, Make<ExternFuncNode>(std::move(callee)), builder);
}

Expr GraphReader::ReadFunctionCall(const Syntax& call, Expr callee, Builder& builder) {
  const bool external = callee->kind == ExprKind::kExternFunc;
  const bool is_named = external && CalleeName(call) == "R.call_packed";  // whose first argument is the name
  std::vector<Expr> values;
  std::vector<Type> out_types;
  Attrs attrs;
  Arguments args(context_, call, is_named ? "R.call_packed" : Describe(call[0]));
  for (size_t i = 0; i < args.num_positional(); ++i) {
    const Syntax* syntax = args.Get(i, "argument");
    if (is_named && i == 0) continue;
    values.push_back(ReadArgument(*syntax, builder));
    if (values.back() == nullptr) return nullptr;
  }
  if (const Syntax* dict = args.Keyword("attrs")) {
    std::optional<Attrs> read = prim_.ReadAttrs(*dict);
    if (!read) return nullptr;
    attrs = std::move(*read);
  }
  args.Keyword("attrs_type_key");  // TVM's name for the type of the attributes
  for (const std::string_view out_name : kOutTypeNames) {
    const Syntax* syntax = args.Keyword(out_name);
    if (syntax == nullptr) continue;
    std::optional<std::vector<Type>> types = ReadOutTypes(*syntax, external);
    if (!types) return nullptr;
    out_types = std::move(*types);
  }
  if (!args.Done()) return nullptr;
  return FinishCall(call, CallNode(std::move(callee), std::move(values), std::move(attrs), std::move(out_types)));
}

Expr GraphReader::FinishCall(const Syntax& call, CallNode node) {
  node.span = context_.SpanOf(call.place);
  const auto* global = As<GlobalVarNode>(node.callee);
  if (global != nullptr && head_.functions.at(global->name).is_prim_func) {
    node.type = Make<TupleTypeNode>(std::vector<Type>{});  // destination passing: the call returns nothing
    return Make<CallNode>(std::move(node));
  }
  const Call untyped = Make<CallNode>(node);
  Result<Type> type = op::InferCallType(no_functions_, untyped);
  if (!type.ok()) return context_.Error(call, type.status().message());
  node.type = std::move(*type);
  return Make<CallNode>(std::move(node));
}

}  // namespace ingot::script
