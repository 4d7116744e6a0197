// Reads what TVM's later passes make of memory and shapes. Allocations of R.memory, R.vm and R.builtin become the
// allocations of the operator table. A release ends the life of a name: the VM frees what nobody refers to any more, so
// that nothing is left of it but the check that no later line uses the name. The heap of dimensions that VMShapeLower
// makes is evaluated while it is read: what the program stores in it are expressions over symbolic variables, what it
// loads are shapes of these, and its checks are the types' own, or a match_cast where they say more. A part of
// GraphReader (graph_reader.h).
#include <algorithm>

#include "compiler/ir/visitor.h"
#include "compiler/op/registry.h"
#include "compiler/script/graph_reader.h"

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

// An allocation under TVM's name: its arguments in TVM's order, and which of them the operator here takes.
struct AllocationForm {
  std::string_view name;
  const char* row;
  std::vector<std::string_view> args;
  size_t num_required;
  std::vector<size_t> taken;
};

const std::vector<AllocationForm>& AllocationForms() {
  static const std::vector<AllocationForm> kForms = {
      {"builtin.alloc_tensor",
       "builtin.alloc_tensor",
       {"shape", "dtype", "runtime_device_index", "storage_scope"},
       3,
       {0, 1, 2}},
      {"memory.alloc_storage",
       "memory.alloc_storage",
       {"size", "virtual_device_index", "storage_scope", "dtype"},
       4,
       {0, 1, 2, 3}},
      {"memory.alloc_tensor",
       "memory.alloc_tensor",
       {"storage", "offset", "shape", "dtype", "runtime_device_ind"},
       4,
       {0, 1, 2, 3}},
      {"vm.alloc_storage",
       "memory.alloc_storage",
       {"shape", "runtime_device_index", "dtype", "storage_scope"},
       4,
       {0, 1, 3, 2}},
      {"vm.alloc_tensor",
       "memory.alloc_tensor",
       {"storage", "offset", "shape", "dtype", "runtime_device_ind"},
       4,
       {0, 1, 2, 3}},
  };
  return kForms;
}

constexpr std::string_view kReleases[] = {"R.memory.kill_tensor", "R.memory.kill_storage", "R.vm.kill_object"};

// Where a dimension of vm.builtin.match_shape and the like comes from, or goes.
constexpr int64_t kImmediate = 0, kStoreOrLoad = 1, kAny = 2, kCompare = 3;

// A number, or R.prim_value of one.
std::optional<int64_t> NumberOf(const Syntax& syntax) {
  const bool is_wrapped = CalleeName(syntax) == "R.prim_value" && syntax.children.size() == 2;
  return AsInt(is_wrapped ? syntax[1] : syntax);
}

// Puts dimensions in the place of loads from the heap.
class HeapReader : public PrimMutator {
 public:
  explicit HeapReader(const std::vector<PrimExpr>& heap) : heap_(heap) {}
  PrimExpr Run(const PrimExpr& expr) {
    PrimExpr result = MutatePrim(expr);
    return failed_ ? nullptr : result;
  }

 protected:
  using PrimMutator::Mutate;
  PrimExpr Mutate(const ir::Ref<BufferLoadNode>& load) override {
    const auto place = load->indices.size() == 1 ? AsConstInt(load->indices[0]) : std::nullopt;
    if (place && *place >= 0 && *place < std::ssize(heap_) && heap_[static_cast<size_t>(*place)] != nullptr) {
      return heap_[static_cast<size_t>(*place)];
    }
    failed_ = true;
    return load;
  }

 private:
  const std::vector<PrimExpr>& heap_;
  bool failed_ = false;
};

}  // namespace

Expr GraphReader::ReadAllocation(const Syntax& call, const std::string& name, Builder& builder) {
  const std::vector<AllocationForm>& forms = AllocationForms();
  auto form = std::ranges::find(forms, std::string_view(name), &AllocationForm::name);
  Arguments args(context_, call, "R." + name);
  std::vector<Expr> values;
  for (size_t i = 0; i < form->args.size(); ++i) {
    const Syntax* syntax = i < form->num_required ? args.Require(i, form->args[i]) : args.Get(i, form->args[i]);
    if (syntax == nullptr && i < form->num_required) return nullptr;
    values.push_back(syntax == nullptr ? Expr() : ReadShapeArgument(*syntax, form->args[i], builder));
    if (syntax != nullptr && values.back() == nullptr) return nullptr;
  }
  AttrDict attrs;
  if (const Syntax* bytes = args.Keyword("bytes")) {
    std::optional<AttrValue> value = prim_.ReadAttr(*bytes);
    if (!value) return nullptr;
    attrs.emplace_back("bytes", std::move(*value));
  }
  for (const std::string_view type : {"out_ty", "ty_args", "sinfo_args"}) args.Keyword(type);  // it is inferred
  if (!args.Done()) return nullptr;
  for (size_t i = form->num_required; i < values.size(); ++i) {  // what the operator here does not take
    if (values[i] == nullptr) continue;
    const auto* scope = As<StringValueNode>(values[i]);
    const auto* device = As<PrimValueNode>(values[i]);
    const bool is_default =
        (scope != nullptr && scope->value == "global") || (device != nullptr && IsConstInt(device->value, 0));
    if (!is_default) {
      return context_.Error(call, "R." + name + ": " + std::string(form->args[i]) + ": only " +
                                      (scope != nullptr ? "\"global\"" : "0") + " is supported, there is one device");
    }
  }
  // The VM here has one arena for a function. Of several storages no tensor is placed by hand: the memory plan does it.
  if (num_storages_ > 1 && std::string_view(form->row) == "memory.alloc_storage") return Nothing(call);
  if (num_storages_ > 1 && std::string_view(form->row) == "memory.alloc_tensor") {
    values = {values[2], values[3], MakeExpr<PrimValueNode>(call, Int64(0))};
    form = std::ranges::find(forms, "builtin.alloc_tensor", &AllocationForm::name);
    attrs.clear();
  }
  std::vector<Expr> taken;
  for (const size_t place : form->taken) {
    if (values[place] == nullptr) values[place] = Make<StringValueNode>("global");
    const auto* shape = As<ShapeTypeNode>(values[place]->type);
    if (shape != nullptr && shape->dims) values[place] = MakeExpr<ShapeExprNode>(call, *shape->dims);
    taken.push_back(values[place]);
  }
  const Result<Call> made = op::MakeCall(form->row, std::move(taken), Attrs(std::move(attrs)));
  if (!made.ok()) return context_.Error(call, made.status().message());
  CallNode node = **made;
  node.span = context_.SpanOf(call.place);
  return Make<CallNode>(std::move(node));
}

Expr GraphReader::ReadShapeArgument(const Syntax& syntax, std::string_view name, Builder& builder) {
  const bool is_list = syntax.kind == SyntaxKind::kTuple || syntax.kind == SyntaxKind::kList;
  if (is_list && name == "shape") {
    std::optional<std::vector<PrimExpr>> dims = prim_.ReadDims(syntax);
    return dims ? MakeExpr<ShapeExprNode>(syntax, std::move(*dims)) : Expr();
  }
  if (name == "dtype" && syntax.kind == SyntaxKind::kString) {
    const std::optional<DataType> dtype = prim_.ReadDataType(syntax);
    return dtype ? MakeExpr<DataTypeValueNode>(syntax, *dtype) : Expr();
  }
  return ReadArgument(syntax, builder);
}

void GraphReader::CountStorages(const std::vector<Statement>& body) {
  for (const Statement& statement : body) {
    const std::string callee = statement.value == nullptr ? "" : CalleeName(*statement.value);
    if (callee == "R.memory.alloc_storage" || callee == "R.vm.alloc_storage") ++num_storages_;
    CountStorages(statement.body);
    CountStorages(statement.orelse);
  }
}

bool GraphReader::IsAllocation(std::string_view name) {
  return std::ranges::find(AllocationForms(), name, &AllocationForm::name) != AllocationForms().end();
}

// ---- Releases

bool GraphReader::ReadRelease(const Syntax& call) {
  const std::string name = CalleeName(call);
  if (std::ranges::find(kReleases, name) == std::end(kReleases)) return false;
  Arguments args(context_, call, name);
  const Syntax* target = args.Require(0, name == "R.memory.kill_tensor" ? "tensor" : "storage");
  if (target == nullptr || !args.Done()) return true;
  if (target->kind != SyntaxKind::kName) {
    context_.Error(*target, name + ": expected the name of a value, got " + Describe(*target));
    return true;
  }
  const Symbol* symbol = scope_.Find(target->text);
  if (symbol == nullptr) {
    prim_.UnknownName(*target);
  } else if (symbol->kind == Symbol::Kind::kValue) {
    if (ReadName(*target) != nullptr) released_.insert(std::string(target->text));
  } else if (symbol->kind != Symbol::Kind::kError) {
    context_.Error(*target, name + ": expected a value, got " + Describe(*target));
  }
  return true;
}

// ---- The heap of dimensions

// Whether the call is of a function of TVM's VM that this reader evaluates, which it does then; `value` gets what the
// call gives, null after a report. A call of a builtin of the VM here has other arguments.
bool GraphReader::ReadVmBuiltin(const Syntax& call, Builder& builder, Expr* value) {
  const std::string callee = CalleeName(call);
  const bool with_context = callee == "R.call_builtin_with_ctx";
  *value = nullptr;
  if (heap_ != nullptr && call.children.size() == 2 && call[1].is_name(heap_name_)) {
    RunShapeFunction(call);
    *value = Nothing(call);
    return true;
  }
  if (!with_context && callee != "R.call_packed") return false;
  const std::optional<std::string> name = call.children.size() > 1 ? AsString(call[1]) : std::nullopt;
  if (!name || !name->starts_with("vm.builtin.")) return false;
  std::vector<const Syntax*> args;
  for (size_t i = 2; i < call.children.size(); ++i) {
    if (call[i].kind != SyntaxKind::kKeyword) args.push_back(&call[i]);
  }
  if (with_context && args.size() == 1 && args[0]->kind == SyntaxKind::kTuple) {
    const Syntax& tuple = *args[0];
    args.clear();
    for (const SyntaxPtr& item : tuple.children) args.push_back(item.get());
  }
  const std::string_view builtin = std::string_view(*name).substr(11);
  const auto wrong = [&] {
    context_.Error(call, *name + ": expected the arguments that TVM's VMShapeLower gives it");
    return true;
  };
  if (builtin == "match_shape") {
    *value = MatchShape(call, args, builder);
    return true;
  }
  if (builtin == "make_shape" || builtin == "make_prim_value") {
    const bool is_shape = builtin == "make_shape";
    const size_t first = is_shape ? 2 : 1;
    const auto count = !is_shape ? 1 : args.size() > 1 ? NumberOf(*args[1]) : std::nullopt;
    if (!count || *count < 0 || args.size() != first + 2 * static_cast<size_t>(*count)) return wrong();
    std::vector<PrimExpr> dims;
    for (size_t i = first; i < args.size(); i += 2) {
      const auto code = NumberOf(*args[i]), number = NumberOf(*args[i + 1]);
      if (!code || !number || *code > kStoreOrLoad) return wrong();
      PrimExpr dim = *code == kImmediate ? Int64(*number) : HeapAt(call, *args[0], *number);
      if (dim == nullptr) return true;
      dims.push_back(std::move(dim));
    }
    *value = is_shape ? MakeExpr<ShapeExprNode>(call, std::move(dims)) : MakeExpr<PrimValueNode>(call, dims[0]);
    return true;
  }
  if (builtin == "match_prim_value") {
    const auto code = args.size() > 3 ? NumberOf(*args[2]) : std::nullopt;
    const auto number = args.size() > 3 ? NumberOf(*args[3]) : std::nullopt;
    if (!code || !number) return wrong();
    const Expr given = ReadArgument(*args[0], builder);
    if (given == nullptr) return true;
    const auto* prim = As<PrimTypeNode>(given->type);
    const auto* written = As<PrimValueNode>(given);
    const PrimExpr known = written != nullptr ? written->value : prim != nullptr ? prim->value : nullptr;
    if (known == nullptr) {
      context_.Error(call, *name + ": the number has no symbolic variable, R.Prim(value=\"n\")");
    } else if (*code == kStoreOrLoad) {
      if (StoreInHeap(call, *args[1], *number, known)) *value = Nothing(call);
    } else {
      const PrimExpr expected = *code == kImmediate ? Int64(*number) : HeapAt(call, *args[1], *number);
      if (expected == nullptr) return true;
      *value = Checked(call, *args[0], given, Make<PrimTypeNode>(expected), builder);
    }
    return true;
  }
  if (builtin == "check_tensor_info" || builtin == "check_shape_info") {
    const bool is_tensor = builtin == "check_tensor_info";
    const auto rank = args.size() > 1 ? NumberOf(*args[1]) : std::nullopt;
    if (!rank || *rank < -1 || *rank > 64) return wrong();
    std::optional<DataType> dtype;
    if (is_tensor && args.size() > 2 && CalleeName(*args[2]) == "R.dtype" && AsString((*args[2])[1]) != "" &&
        AsString((*args[2])[1]) != "void" && !(dtype = prim_.ReadDataType(*args[2]))) {
      return true;
    }
    const Expr given = ReadArgument(*args[0], builder);
    if (given == nullptr) return true;
    const Type type = is_tensor ? Type(Make<TensorTypeNode>(static_cast<int>(*rank), dtype))
                                : Type(Make<ShapeTypeNode>(static_cast<int>(*rank)));
    *value = Checked(call, *args[0], given, type, builder);
    return true;
  }
  if (builtin == "check_tuple_info" || builtin == "check_func_info" || builtin == "check_prim_value_info") {
    if (args.empty()) return wrong();
    const Expr given = ReadArgument(*args[0], builder);
    if (given == nullptr) return true;
    const auto* tuple = As<TupleTypeNode>(given->type);
    const auto count = args.size() > 1 ? NumberOf(*args[1]) : std::nullopt;
    const bool fits = builtin == "check_tuple_info"  ? tuple != nullptr && count == std::ssize(tuple->fields)
                      : builtin == "check_func_info" ? As<CallableTypeNode>(given->type) != nullptr
                                                     : As<PrimTypeNode>(given->type) != nullptr;
    if (!fits) {
      context_.Error(call, *name + ": the value has another type; check it with R.match_cast");
    } else {
      *value = Nothing(call);
    }
    return true;
  }
  if (builtin == "reshape" && args.size() == 2) {
    const Expr given = ReadArgument(*args[0], builder), shape = ReadArgument(*args[1], builder);
    if (given == nullptr || shape == nullptr) return true;
    if (shape->type == nullptr || shape->type->kind != TypeKind::kShape) return false;  // the VM's own: (out, in)
    *value = MadeCall(call, "reshape", {given, shape});
    return true;
  }
  if ((builtin == "shape_of" || builtin == "tensor_to_shape") && args.size() == 1) {
    const Expr given = ReadArgument(*args[0], builder);
    if (given != nullptr) *value = MadeCall(call, builtin, {given});
    return true;
  }
  if (builtin == "call_tir_dyn" && !args.empty()) {
    *value = CallDynamic(call, args, builder);
    return true;
  }
  return false;
}

// heap = R.call_builtin_with_ctx("vm.builtin.alloc_shape_heap", (n,)), or R.null_value() where nothing is stored
bool GraphReader::ReadHeap(const Syntax& target, const Syntax& value) {
  if (CalleeName(value) != "R.call_builtin_with_ctx" || value.children.size() < 3) return false;
  if (AsString(value[1]) != "vm.builtin.alloc_shape_heap") return false;
  const Syntax& args = value[2];
  const auto size = args.kind == SyntaxKind::kTuple && args.children.size() == 1 ? NumberOf(args[0]) : std::nullopt;
  if (!size || *size < 0 || *size > 65536 || heap_ != nullptr) {
    context_.Error(value, "vm.builtin.alloc_shape_heap: expected one heap of a number of dimensions");
    DefineError(target);
    return true;
  }
  heap_ = std::make_unique<std::vector<PrimExpr>>(static_cast<size_t>(*size));
  heap_name_ = std::string(target.text);
  scope_.Define(target.text, Symbol());  // its uses are the builtins', and those alone
  return true;
}

Expr GraphReader::Nothing(const Syntax& syntax) {
  return MakeExpr<TupleNode>(syntax, std::vector<Expr>{}, Make<TupleTypeNode>(std::vector<Type>{}));
}

Expr GraphReader::MadeCall(const Syntax& call, std::string_view row, std::vector<Expr> args) {
  const Result<Call> made = op::MakeCall(row, std::move(args));
  if (!made.ok()) return context_.Error(call, made.status().message());
  CallNode node = **made;
  node.span = context_.SpanOf(call.place);
  return Make<CallNode>(std::move(node));
}

PrimExpr GraphReader::HeapAt(const Syntax& call, const Syntax& heap, int64_t place) {
  if (heap_ == nullptr || !heap.is_name(heap_name_) || place < 0 || place >= std::ssize(*heap_)) {
    return context_.Error(call, "expected a place of the heap that vm.builtin.alloc_shape_heap gave");
  }
  const PrimExpr value = (*heap_)[static_cast<size_t>(place)];
  if (value != nullptr) return value;
  return context_.Error(call,
                        "place " + std::to_string(place) + " of the heap of dimensions is read before it is written");
}

bool GraphReader::StoreInHeap(const Syntax& call, const Syntax& heap, int64_t place, PrimExpr value) {
  if (heap_ == nullptr || !heap.is_name(heap_name_) || place < 0 || place >= std::ssize(*heap_)) {
    context_.Error(call, "expected a place of the heap that vm.builtin.alloc_shape_heap gave");
    return false;
  }
  (*heap_)[static_cast<size_t>(place)] = std::move(value);
  return true;
}

// Returns nothing as a value, and sees to it that the value named by `place` has the type from here on.
Expr GraphReader::Checked(const Syntax& call, const Syntax& name, const Expr& value, const Type& type,
                          Builder& builder) {
  switch (FitType(type, value->type)) {
    case TypeFit::kFits:
      return Nothing(call);
    case TypeFit::kDiffers:
      CheckType(type, value->type, call.place);
      return nullptr;
    case TypeFit::kNarrower:
      break;
  }
  VarNode node(name.kind == SyntaxKind::kName ? std::string(name.text) : "checked", type, builder.in_dataflow);
  node.span = context_.SpanOf(call.place);
  const Var var = Make<VarNode>(std::move(node));
  BindSymbols(type);
  AddBinding({var, value, type, context_.SpanOf(call.place)}, builder);
  if (name.kind == SyntaxKind::kName) scope_.Define(name.text, Symbol::Value(var));
  return Nothing(call);
}

// match_shape(value, heap, rank, code, number, ..., message)
Expr GraphReader::MatchShape(const Syntax& call, const std::vector<const Syntax*>& args, Builder& builder) {
  const auto rank = args.size() > 2 ? NumberOf(*args[2]) : std::nullopt;
  if (!rank || *rank < 0 || args.size() < 3 + 2 * static_cast<size_t>(*rank)) {
    return context_.Error(call, "vm.builtin.match_shape: expected a rank, and two numbers per dimension");
  }
  const Expr value = ReadArgument(*args[0], builder);
  if (value == nullptr) return nullptr;
  const auto* tensor = As<TensorTypeNode>(value->type);
  const auto* shape = As<ShapeTypeNode>(value->type);
  const std::optional<std::vector<PrimExpr>> known = tensor != nullptr  ? tensor->dims
                                                     : shape != nullptr ? shape->dims
                                                                        : std::nullopt;
  std::vector<PrimExpr> dims;
  for (size_t i = 0; i < static_cast<size_t>(*rank); ++i) {
    const auto code = NumberOf(*args[3 + 2 * i]), number = NumberOf(*args[4 + 2 * i]);
    if (!code || !number || *code < kImmediate || *code > kCompare) {
      return context_.Error(call, "vm.builtin.match_shape: expected two numbers per dimension");
    }
    PrimExpr dim;
    if (*code == kImmediate) {
      dim = Int64(*number);
    } else if (*code == kCompare) {
      dim = HeapAt(call, *args[1], *number);
    } else if (known && i < known->size()) {
      dim = (*known)[i];
    } else {
      dim = MakePrimVar((*code == kAny ? "any" : "dim") + std::to_string(++num_dims_), DataType::Int(64));
    }
    if (dim == nullptr || (*code == kStoreOrLoad && !StoreInHeap(call, *args[1], *number, dim))) return nullptr;
    dims.push_back(std::move(dim));
  }
  const std::optional<DataType> dtype = tensor == nullptr ? std::nullopt : tensor->dtype;
  const Type type = shape != nullptr ? Type(Make<ShapeTypeNode>(std::move(dims)))
                                     : Type(Make<TensorTypeNode>(std::move(dims), dtype));
  return Checked(call, *args[0], value, type, builder);
}

// cls.shape_func(heap): a tensor function whose statements compute places of the heap from others.
void GraphReader::RunShapeFunction(const Syntax& call) {
  const auto fail = [&](const std::string& why) {
    context_.Error(call, "the heap of dimensions is an argument of a tensor function " + why);
  };
  const auto found = head_.tensor_functions.find(std::string(call[0].text));
  if (call[0].kind != SyntaxKind::kAttribute || found == head_.tensor_functions.end()) {
    return fail("of the module alone");
  }
  const PrimFunc& function = found->second;
  if (function->params.size() != 1 || function->params[0].buffer == nullptr) return fail("with one parameter");
  const Buffer& buffer = function->params[0].buffer;
  std::vector<Stmt> stmts{function->body};
  if (const auto* list = As<SeqNode>(function->body)) stmts = list->stmts;
  for (const Stmt& stmt : stmts) {
    const auto* store = As<BufferStoreNode>(stmt);
    if (store == nullptr) {
      const auto* idle = As<EvaluateNode>(stmt);
      if (idle != nullptr && As<IntImmNode>(idle->value) != nullptr) continue;
      return fail("that stores dimensions one by one");
    }
    const auto place = store->indices.size() == 1 ? AsConstInt(store->indices[0]) : std::nullopt;
    if (!store->buffer.same_as(buffer) || !place || *place < 0 || *place >= std::ssize(*heap_)) {
      return fail("that stores dimensions at known places");
    }
    const PrimExpr value = HeapReader(*heap_).Run(store->value);
    if (value == nullptr) return fail("that reads dimensions which are written before");
    (*heap_)[static_cast<size_t>(*place)] = value;
  }
}

// vm.builtin.call_tir_dyn(cls.f, a, b, R.shape([n])): the tensor function is called, dimensions of a shape as numbers.
Expr GraphReader::CallDynamic(const Syntax& call, const std::vector<const Syntax*>& args, Builder& builder) {
  std::vector<Expr> values;
  for (const Syntax* syntax : args) {
    values.push_back(ReadArgument(*syntax, builder));
    if (values.back() == nullptr) return nullptr;
  }
  const Expr callee = values[0];
  const auto* global = As<GlobalVarNode>(callee);
  if (global == nullptr || !head_.functions.at(global->name).is_prim_func) {
    return context_.Error(call, "expected a tensor function of the module, got " + Describe(*args[0]));
  }
  std::vector<Expr> operands;
  for (size_t i = 1; i < values.size(); ++i) {
    const auto* shape = As<ShapeTypeNode>(values[i]->type);
    if (shape == nullptr) {
      operands.push_back(values[i]);
      continue;
    }
    if (!shape->dims) return context_.Error(call, "the dimensions of the last argument are not known");
    for (const PrimExpr& dim : *shape->dims) operands.push_back(MakeExpr<PrimValueNode>(call, dim));
  }
  return FinishCall(call, CallNode(callee, std::move(operands), {}, {}));
}

// R.vm.call_tir_dyn(cls.f, (a, b, R.shape([n])))
Expr GraphReader::ReadDynamicCall(const Syntax& call, Builder& builder) {
  Arguments arguments(context_, call, "R.vm.call_tir_dyn");
  const Syntax* function = arguments.Require(0, "func");
  const Syntax* tuple = arguments.Require(1, "args");
  if (function == nullptr || tuple == nullptr || !arguments.Done()) return nullptr;
  std::vector<const Syntax*> args{function};
  if (tuple->kind == SyntaxKind::kTuple || tuple->kind == SyntaxKind::kList) {
    for (const SyntaxPtr& item : tuple->children) args.push_back(item.get());
  } else {
    args.push_back(tuple);
  }
  return CallDynamic(call, args, builder);
}

// R.call_builtin_with_ctx("name", (a, b), ty_args=...): a function of TVM's VM that this reader does not evaluate is
// one of the embedding program, which is called without the VM's context.
Expr GraphReader::ReadContextCall(const Syntax& call, Builder& builder) {
  Arguments args(context_, call, "R.call_builtin_with_ctx");
  const Syntax* name_syntax = args.Require(0, "func");
  const Syntax* tuple = args.Require(1, "args");
  const Syntax* types_syntax = args.Keyword("ty_args");
  if (types_syntax == nullptr) types_syntax = args.Keyword("sinfo_args");
  if (name_syntax == nullptr || tuple == nullptr || !args.Done()) return nullptr;
  const std::optional<std::string> name = AsString(*name_syntax);
  if (!name || (tuple->kind != SyntaxKind::kTuple && tuple->kind != SyntaxKind::kList)) {
    return context_.Error(call, "R.call_builtin_with_ctx: expected a name and a tuple of arguments");
  }
  std::vector<Expr> values;
  for (const SyntaxPtr& item : tuple->children) {
    values.push_back(ReadArgument(*item, builder));
    if (values.back() == nullptr) return nullptr;
  }
  std::vector<Type> types;
  if (types_syntax != nullptr) {
    std::optional<std::vector<Type>> read = ReadOutTypes(*types_syntax, true);
    if (!read) return nullptr;
    types = std::move(*read);
  }
  Expr callee = MakeExpr<ExternFuncNode>(*name_syntax, *name);
  return FinishCall(call, CallNode(std::move(callee), std::move(values), {}, std::move(types)));
}

}  // namespace ingot::script
