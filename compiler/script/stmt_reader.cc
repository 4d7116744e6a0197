// Functions, loops and simple statements of the tensor level. A flat statement with a body waits in Suite::open until
// its suite ends. Heads of blocks are in block_reader.cc.
#include "compiler/script/stmt_reader.h"

#include <algorithm>
#include <utility>

namespace ingot::script {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

bool Holds(const std::vector<Statement>& body, const std::function<bool(const Statement&)>& predicate) {
  return std::any_of(body.begin(), body.end(), [&](const Statement& statement) {
    return predicate(statement) || Holds(statement.body, predicate) || Holds(statement.orelse, predicate);
  });
}
bool IsBlock(const Statement& statement, std::string_view function) {
  return statement.kind == StatementKind::kWith && statement.value != nullptr &&
         CalleeName(*statement.value) == function;
}
bool IsRootPragma(const Statement& statement) {
  return statement.kind == StatementKind::kPragma && statement.text.starts_with("with T.");
}

}  // namespace

PrimFunc StmtReader::ReadFunction(const Statement& def, bool is_private) {
  const size_t errors = context_.sink().count();
  if (def.annotation != nullptr && !IsNone(*def.annotation)) {
    context_.Error(*def.annotation, "a tensor function returns nothing; its results are buffers among the parameters");
  }
  ReadParams(def);
  old_dialect_ = Holds(def.body, [](const Statement& statement) {
    return IsBlock(statement, "T.block") || (IsRootPragma(statement) && statement.text.starts_with("with T.block"));
  });
  std::unordered_map<std::string, int> assignments;
  Holds(def.body, [&](const Statement& statement) {
    const bool assigns = statement.kind == StatementKind::kAssign && statement.target->kind == SyntaxKind::kName;
    if (assigns && statement.value != nullptr && ++assignments[std::string(statement.target->text)] == 2) {
      assigned_again_.insert(std::string(statement.target->text));
    }
    return false;
  });
  const auto makes_root = [&](const Statement& statement) {
    if (IsRootPragma(statement) || IsBlock(statement, "T.sblock") || IsBlock(statement, "T.block")) return true;
    const std::string callee = statement.value == nullptr ? "" : CalleeName(*statement.value);
    return callee == "T.sblock_alloc_buffer" || (old_dialect_ && callee == "T.alloc_buffer");
  };
  Stmt body = ReadRootBody(def, Holds(def.body, makes_root));
  if (context_.sink().count() != errors || body == nullptr) return nullptr;
  PrimFuncNode function(std::move(params_), std::move(body), is_private, std::move(attrs_));
  function.span = context_.SpanOf(def.place);
  return Make<PrimFuncNode>(std::move(function));
}

Stmt StmtReader::ReadRootBody(const Statement& def, bool has_root) {
  if (!has_root) return ReadBody(def.body, nullptr, true);
  BlockFrame root;
  root.is_root = true;
  Stmt body = ReadBody(def.body, &root, true);
  if (body == nullptr) return nullptr;
  // The text may contain the root block explicitly.
  if (const auto* realize = As<BlockRealizeNode>(body); realize != nullptr && realize->block->name == "root" &&
                                                        realize->iter_values.empty() && root.alloc_buffers.empty() &&
                                                        !std::any_of(def.body.begin(), def.body.end(), IsRootPragma)) {
    return body;
  }
  BlockNode block("root", {}, {}, {}, std::move(body));
  block.alloc_buffers = std::move(root.alloc_buffers);
  block.span = context_.SpanOf(def.place);
  return MakeStmt<BlockRealizeNode>(def.place, std::vector<PrimExpr>{}, BoolImm(true),
                                    Make<BlockNode>(std::move(block)));
}

bool StmtReader::ReadParams(const Statement& def) {
  // Scalars are named first: a buffer's shape may name a scalar parameter that follows it.
  params_.resize(def.params.size());
  std::vector<const Syntax*> buffers(def.params.size());
  bool fine = true;
  for (size_t i = 0; i < def.params.size(); ++i) {
    const Parameter& param = def.params[i];
    if (param.annotation == nullptr) {
      context_.Error(param.place,
                     "the parameter \"" + std::string(param.name) + "\" needs a type, such as T.Buffer(...)");
      scope_.Define(param.name, Symbol());
      fine = false;
      continue;
    }
    const std::string callee = CalleeName(*param.annotation);
    const bool in_brackets = param.annotation->kind == SyntaxKind::kSubscript &&  // T.Buffer[(n,), "float32"]
                             DottedName((*param.annotation)[0]) == "T.Buffer";
    if (callee == "T.Buffer" || in_brackets) {
      buffers[i] = param.annotation.get();
      continue;
    }
    const bool pointer = callee == "T.handle" || callee == "T.Ptr";
    const std::optional<DataType> dtype = pointer ? DataType::Handle() : prim_.ReadDataType(*param.annotation);
    if (!dtype) {
      scope_.Define(param.name, Symbol());
      fine = false;
      continue;
    }
    params_[i].var = MakePrimVar(std::string(param.name), *dtype);
    scope_.Define(param.name, Symbol::Prim(params_[i].var));
  }
  for (size_t i = 0; i < def.params.size(); ++i) {
    if (buffers[i] == nullptr) continue;
    const Parameter& param = def.params[i];
    Arguments args(context_, *buffers[i], "T.Buffer");
    const Buffer buffer = ReadBufferArguments(args, 0, param.name);
    if (buffer == nullptr || !args.Done()) {
      scope_.Define(param.name, Symbol());
      fine = false;
      continue;
    }
    params_[i] = {MakePrimVar(std::string(param.name) + "_handle", DataType::Handle()), buffer};
    scope_.Define(param.name, Symbol::OfBuffer(buffer));
  }
  return fine;
}

Stmt StmtReader::ReadBody(const std::vector<Statement>& body, BlockFrame* block, bool is_function) {
  const size_t errors = context_.sink().count();
  const size_t num_open = num_open_;
  Suite suite;
  suite.block = block;
  suite.is_function = is_function;
  for (const Statement& statement : body) ReadStatement(statement, suite);
  num_open_ = num_open;
  if (context_.sink().count() != errors) return nullptr;
  // Each flat statement takes the statements behind it as its body, the innermost one first.
  while (!suite.open.empty()) {
    Suite::Open open = std::move(suite.open.back());
    suite.open.pop_back();
    const auto first = suite.stmts.begin() + static_cast<std::ptrdiff_t>(open.first);
    std::vector<Stmt> rest(std::make_move_iterator(first), std::make_move_iterator(suite.stmts.end()));
    suite.stmts.erase(first, suite.stmts.end());
    suite.stmts.push_back(open.wrap(MakeSeq(std::move(rest))));
  }
  return MakeSeq(std::move(suite.stmts));
}

void StmtReader::AddScoped(const Statement& statement, Suite& suite, bool has_own_body, std::function<Stmt(Stmt)> wrap,
                           size_t count) {
  // Deeper than a function may be: the statements are not made, for even to give them back is recursive.
  constexpr size_t kMaxOpen = 4000;
  num_open_ += count;
  if (num_open_ > kMaxOpen) {
    if (!is_too_deep_) context_.Error(statement.place, "statements nest deeper than " + std::to_string(kMaxOpen));
    is_too_deep_ = true;
    return;
  }
  if (!has_own_body) {
    suite.open.push_back({suite.stmts.size(), std::move(wrap)});
    return;
  }
  Stmt body = ReadBody(statement.body, nullptr);
  if (body != nullptr) suite.stmts.push_back(wrap(std::move(body)));
}

void StmtReader::DefineError(const Syntax& target) {
  if (target.kind == SyntaxKind::kName) scope_.Define(target.text, Symbol());
  if (target.kind != SyntaxKind::kTuple) return;
  for (const SyntaxPtr& item : target.children) DefineError(*item);
}

void StmtReader::ReadStatement(const Statement& statement, Suite& suite) {
  switch (statement.kind) {
    case StatementKind::kError:
      if (statement.target != nullptr) DefineError(*statement.target);
      return;
    case StatementKind::kExpression:
      return ReadExpressionStatement(statement, suite);
    case StatementKind::kAssign:
      return ReadAssign(statement, suite);
    case StatementKind::kFor:
      return ReadFor(statement, suite);
    case StatementKind::kWhile: {
      PrimExpr condition = prim_.ReadCondition(*statement.value);
      const ScopeTable::Scope inner(scope_);
      Stmt body = ReadBody(statement.body, nullptr);
      if (condition == nullptr || body == nullptr) return;
      suite.stmts.push_back(MakeStmt<WhileNode>(statement.place, std::move(condition), std::move(body)));
      return;
    }
    case StatementKind::kIf: {
      PrimExpr condition = prim_.ReadCondition(*statement.value);
      Stmt then_case, else_case;
      {
        const ScopeTable::Scope inner(scope_);
        then_case = ReadBody(statement.body, nullptr);
      }
      if (!statement.orelse.empty()) {
        const ScopeTable::Scope inner(scope_);
        else_case = ReadBody(statement.orelse, nullptr);
        if (else_case == nullptr) return;
      }
      if (condition == nullptr || then_case == nullptr) return;
      suite.stmts.push_back(
          MakeStmt<IfStmtNode>(statement.place, std::move(condition), std::move(then_case), std::move(else_case)));
      return;
    }
    case StatementKind::kWith:
      return ReadWith(statement, suite);
    case StatementKind::kAssert:
      return ReadAssert(statement, suite);
    case StatementKind::kPass:
    case StatementKind::kPragma:
    case StatementKind::kImport:
      return;
    case StatementKind::kReturn:
      context_.Error(statement.place,
                     "a tensor function returns nothing; its results are buffers among the parameters");
      return;
    case StatementKind::kFunction:
    case StatementKind::kClass:
      context_.Error(statement.place, "a tensor function holds no other functions");
      return;
  }
  INGOT_UNREACHABLE("StatementKind");
}

std::optional<std::string> StmtReader::ReadMessage(const Syntax* syntax) {
  if (syntax == nullptr) return "";
  if (const auto text = AsString(*syntax)) return text;
  // TVM 0.27: ("RuntimeError", ["part", "part"])
  if (syntax->kind == SyntaxKind::kTuple && syntax->children.size() == 2 && (*syntax)[1].kind == SyntaxKind::kList) {
    std::string message;
    for (const SyntaxPtr& part : (*syntax)[1].children) message += AsString(*part).value_or("");
    return message;
  }
  context_.Error(*syntax, "expected a string, got " + Describe(*syntax));
  return std::nullopt;
}

void StmtReader::ReadAssert(const Statement& statement, Suite& suite) {
  PrimExpr condition = prim_.ReadCondition(*statement.value);
  std::optional<std::string> message = ReadMessage(statement.message.get());
  if (condition == nullptr || !message) return;
  AddScoped(statement, suite, false, [this, place = statement.place, condition, message](Stmt body) {
    return MakeStmt<AssertStmtNode>(place, condition, *message, std::move(body));
  });
}

void StmtReader::ReadExpressionStatement(const Statement& statement, Suite& suite) {
  const Syntax& value = *statement.value;
  if (value.kind == SyntaxKind::kString || value.kind == SyntaxKind::kError) return;  // a docstring
  const std::string callee = CalleeName(value);
  if (callee == "T.func_attr") {
    if (!suite.is_function) {
      context_.Error(value, "T.func_attr stands at the head of a function");
      return;
    }
    Arguments args(context_, value, callee);
    const Syntax* dict = args.Require(0, "attrs");
    if (dict == nullptr || !args.Done()) return;
    if (std::optional<Attrs> attrs = prim_.ReadAttrs(*dict)) attrs_ = std::move(*attrs);
    return;
  }
  if (IsBlockHead(callee)) return ReadBlockHead(statement, callee, value, suite);
  const bool wraps = callee == "T.evaluate" && value.children.size() == 2;
  if (callee == "T.assume" || (wraps && CalleeName(value[1]) == "T.assume")) {  // a promise that nothing here uses
    Arguments args(context_, wraps ? value[1] : value, "T.assume");
    const Syntax* condition = args.Require(0, "cond");
    if (condition != nullptr && args.Done()) prim_.ReadCondition(*condition);
    return;
  }
  if (callee == "T.attr") return ReadAttribute(statement, value, suite, false);
  if (callee == "T.launch_thread") return ReadLaunchThread(statement, value, suite, false);
  if (callee == "T.LetStmt" || callee == "T.let") return ReadLetStatement(statement, callee, suite, false);
  PrimExpr expr;
  if (callee == "T.evaluate") {
    Arguments args(context_, value, callee);
    const Syntax* argument = args.Require(0, "value");
    if (argument == nullptr || !args.Done()) return;
    expr = prim_.Read(*argument, DataType::Int(32));
  } else {
    if (value.kind != SyntaxKind::kCall) {
      context_.Error(value, "expected a statement, got " + Describe(value));
      return;
    }
    expr = prim_.Read(value);
  }
  if (expr != nullptr) suite.stmts.push_back(MakeStmt<EvaluateNode>(statement.place, std::move(expr)));
}

void StmtReader::ReadStore(const Statement& statement, Suite& suite) {
  const Syntax& target = *statement.target;
  const Buffer buffer = prim_.ReadBuffer(target[0]);
  if (buffer == nullptr) return;
  std::optional<std::vector<PrimExpr>> indices = prim_.ReadIndices(target, buffer);
  if (!indices) return;
  const int lanes = indices->empty() ? 1 : indices->back()->dtype.lanes;
  const DataType dtype = prim_.DTypeOf(buffer);
  PrimExpr value = prim_.ReadAs(*statement.value, dtype.with_lanes(dtype.lanes * lanes));
  if (value == nullptr) return;
  for (Stmt& stmt : prim_.Store(target, buffer, std::move(value), std::move(*indices))) {
    suite.stmts.push_back(std::move(stmt));
  }
}

void StmtReader::ReadLet(const Statement& statement, std::optional<DataType> dtype, const Syntax& value, Suite& suite) {
  const Syntax& target = *statement.target;
  PrimExpr expr = dtype ? prim_.ReadAs(value, *dtype) : prim_.Read(value);
  if (expr == nullptr) return DefineError(target);
  if (const Symbol* known = scope_.FindLocal(target.text); known != nullptr && known->kind == Symbol::Kind::kPrim) {
    context_.Error(target,
                   "\"" + std::string(target.text) + "\" has a value already; what changes is an element of a buffer");
    return;
  }
  const PrimVar var = MakePrimVar(std::string(target.text), expr->dtype);
  scope_.Define(target.text, Symbol::Prim(var));
  AddScoped(statement, suite, false, [this, place = statement.place, var, expr](Stmt body) {
    return MakeStmt<LetStmtNode>(place, var, expr, std::move(body));
  });
}

// x: T.float32, x: T.float32 = value: a scalar that is assigned again is memory of one element, which TVM prints as a
// name. False: it is none.
bool StmtReader::ReadScalar(const Statement& statement, Suite& suite) {
  const Syntax& target = *statement.target;
  const std::string name(target.text);
  if (const auto known = scalars_.find(name); known != scalars_.end() && statement.annotation == nullptr) {
    const Symbol* symbol = scope_.Find(name);
    const bool is_scalar = symbol != nullptr && symbol->kind == Symbol::Kind::kPrim;
    const auto* load = is_scalar ? As<BufferLoadNode>(symbol->prim) : nullptr;
    if (load == nullptr || !load->buffer.same_as(known->second)) return false;
    PrimExpr value = prim_.ReadAs(*statement.value, load->buffer->dtype);
    if (value != nullptr) {
      suite.stmts.push_back(MakeStmt<BufferStoreNode>(statement.place, load->buffer, std::move(value), load->indices));
    }
    return true;
  }
  const bool is_scalar = statement.annotation != nullptr && statement.annotation->kind == SyntaxKind::kAttribute &&
                         DottedName(*statement.annotation).starts_with("T.") &&
                         (statement.value == nullptr || assigned_again_.contains(name));
  if (!is_scalar) return false;
  const std::optional<DataType> dtype = prim_.ReadDataType(*statement.annotation);
  PrimExpr value;
  if (dtype && statement.value != nullptr) value = prim_.ReadAs(*statement.value, *dtype);
  if (!dtype || (statement.value != nullptr && value == nullptr)) {
    DefineError(target);
    return true;
  }
  BufferNode node(name, *dtype, std::vector<PrimExpr>{Int64(1)}, "local");
  node.span = context_.SpanOf(target.place);
  const Buffer buffer = Make<BufferNode>(std::move(node));
  scalars_[name] = buffer;
  scope_.Define(name, Symbol::Prim(Make<BufferLoadNode>(buffer, std::vector<PrimExpr>{Int64(0)})));
  AddScoped(statement, suite, false, [this, place = statement.place, buffer](Stmt body) {
    return MakeStmt<AllocateNode>(place, buffer, std::move(body));
  });
  if (value != nullptr) {
    suite.stmts.push_back(
        MakeStmt<BufferStoreNode>(statement.place, buffer, std::move(value), std::vector<PrimExpr>{Int64(0)}));
  }
  return true;
}

void StmtReader::ReadLetStatement(const Statement& statement, const std::string& callee, Suite& suite,
                                  bool has_own_body) {
  Arguments args(context_, *statement.value, callee);
  const bool var_first = callee == "T.let";
  const Syntax* var_syntax = args.Get(var_first ? 0 : static_cast<size_t>(-1), "var");
  const Syntax* value_syntax = args.Require(var_first ? 1 : 0, "value");
  if (value_syntax == nullptr || !args.Done()) return;
  const Syntax* name = var_syntax != nullptr ? var_syntax : statement.target.get();
  if (name == nullptr || name->kind != SyntaxKind::kName) {
    context_.Error(*statement.value, "expected a name: with " + callee + "(...) as x");
    return;
  }
  PrimVar var;
  if (var_syntax != nullptr) {  // declared before, by T.Var or T.float32()
    const Symbol* symbol = scope_.FindLocal(name->text);
    if (symbol != nullptr && symbol->kind == Symbol::Kind::kPrim) var = AsRef<PrimVarNode>(symbol->prim);
    if (var == nullptr) {
      context_.Error(*name, callee + ": expected a declared variable, such as x = T.float32()");
      return;
    }
  }
  PrimExpr expr = var != nullptr ? prim_.ReadAs(*value_syntax, var->dtype) : prim_.Read(*value_syntax);
  if (expr == nullptr) return DefineError(*name);
  if (var == nullptr) {
    var = MakePrimVar(std::string(name->text), expr->dtype);
    scope_.Define(name->text, Symbol::Prim(var));
  }
  AddScoped(statement, suite, has_own_body, [this, place = statement.place, var, expr](Stmt body) {
    return MakeStmt<LetStmtNode>(place, var, expr, std::move(body));
  });
}

void StmtReader::ReadAssign(const Statement& statement, Suite& suite) {
  const Syntax& target = *statement.target;
  if (statement.value == nullptr) {
    if (statement.annotation != nullptr && target.kind == SyntaxKind::kName && ReadScalar(statement, suite)) return;
    context_.Error(target, "expected a value after the annotation");
    return DefineError(target);
  }
  const Syntax& value = *statement.value;
  if (target.kind == SyntaxKind::kSubscript) return ReadStore(statement, suite);
  if (target.kind == SyntaxKind::kName && ReadScalar(statement, suite)) return;
  if (value.kind == SyntaxKind::kCall && value[0].kind == SyntaxKind::kAttribute && value[0].text == "view" &&
      target.kind == SyntaxKind::kName) {
    return ReadViewMethod(statement, value);
  }
  const std::string callee = CalleeName(value);
  if (callee.starts_with("T.axis.")) return ReadBlockHead(statement, callee, value, suite);
  if (target.kind == SyntaxKind::kTuple && value.kind == SyntaxKind::kTuple &&
      target.children.size() == value.children.size()) {  // m, k = T.int64(), T.int64()
    for (size_t i = 0; i < target.children.size(); ++i) {
      const std::optional<DataType> dtype = prim_.ReadVarDeclaration(value[i]);
      if (!dtype || target[i].kind != SyntaxKind::kName) {
        context_.Error(target,
                       "expected the declaration of symbolic variables, such as m, n = T.int64(), T.int64(); other "
                       "values are assigned one by one");
        return DefineError(target);
      }
      scope_.Define(target[i].text, Symbol::Prim(MakePrimVar(std::string(target[i].text), *dtype)));
    }
    return;
  }
  if (target.kind != SyntaxKind::kName) {
    if (target.kind != SyntaxKind::kError) context_.Error(target, "expected a name or an element of a buffer");
    return DefineError(target);
  }
  if (callee == "T.match_buffer") return ReadMatchBuffer(statement, value, suite);
  const bool views = callee == "T.decl_buffer" &&
                     std::any_of(value.children.begin(), value.children.end(), [](const SyntaxPtr& argument) {
                       return argument->kind == SyntaxKind::kKeyword && argument->text == "data";
                     });
  if (callee == "T.sblock_alloc_buffer" || callee == "T.alloc_buffer" || callee == "T.alloc_local" ||
      callee == "T.alloc_shared" || (callee == "T.decl_buffer" && !views)) {
    return ReadAllocate(statement, callee, value, suite, false);
  }
  if (callee == "T.launch_thread") return ReadLaunchThread(statement, value, suite, false);
  if (callee == "T.env_thread") {
    Arguments args(context_, value, callee);
    const Syntax* tag = args.Require(0, "thread_tag");
    if (tag == nullptr || !args.Done()) return DefineError(target);
    const PrimVar var = MakePrimVar(std::string(target.text));
    env_threads_[var.get()] = AsString(*tag).value_or("");
    scope_.Define(target.text, Symbol::Prim(var));
    return;
  }
  if (callee == "T.decl_buffer" || callee == "T.Buffer") return ReadView(statement, callee, value);
  if (callee == "T.allocate") return ReadAllocatePointer(statement, value, suite, false);
  if (callee == "T.allocate_const") {
    context_.Error(value, callee + " is not supported; pass the numbers as a parameter");
    return DefineError(target);
  }
  if (callee == "T.meta_var" && value.children.size() == 2) {  // a name for the value on the right
    const PrimExpr meaning = prim_.Read(value[1]);
    if (meaning == nullptr) return DefineError(target);
    scope_.Define(target.text, Symbol::Prim(meaning));
    return;
  }
  if (const std::optional<DataType> dtype = prim_.ReadVarDeclaration(value)) {
    scope_.Define(target.text, Symbol::Prim(MakePrimVar(std::string(target.text), *dtype)));
    return;
  }
  std::optional<DataType> dtype;
  if (statement.annotation != nullptr) {  // x: T.let[T.int64] = value, x: T.int64 = value
    const Syntax& annotation = *statement.annotation;
    const bool is_let = annotation.kind == SyntaxKind::kSubscript && annotation.children.size() == 2 &&
                        DottedName(annotation[0]) == "T.let";
    dtype = prim_.ReadDataType(is_let ? annotation[1] : annotation);
    if (!dtype) return DefineError(target);
  }
  if ((callee == "T.bind" || callee == "T.let") && value.children.size() == 2) {
    return ReadLet(statement, dtype, value[1], suite);
  }
  ReadLet(statement, dtype, value, suite);
}

namespace {
struct LoopFunction {
  std::string_view name;
  ForKind kind;
};
constexpr LoopFunction kLoops[] = {{"range", ForKind::kSerial},        {"T.serial", ForKind::kSerial},
                                   {"T.parallel", ForKind::kParallel}, {"T.vectorized", ForKind::kVectorized},
                                   {"T.unroll", ForKind::kUnrolled},   {"T.thread_binding", ForKind::kThreadBinding},
                                   {"T.grid", ForKind::kSerial}};

bool IsString(const Syntax* syntax) { return syntax != nullptr && syntax->kind == SyntaxKind::kString; }
}  // namespace

void StmtReader::ReadFor(const Statement& statement, Suite& suite) {
  const Syntax& iterable = *statement.value;
  const std::string callee = CalleeName(iterable);
  const auto function =
      std::find_if(std::begin(kLoops), std::end(kLoops), [&](const LoopFunction& row) { return row.name == callee; });
  const ScopeTable::Scope inner(scope_);
  if (function == std::end(kLoops)) {
    context_.Error(iterable,
                   "expected range, T.serial, T.parallel, T.vectorized, T.unroll, T.thread_binding or T.grid");
    return;
  }
  std::vector<const Syntax*> targets;
  if (statement.target->kind == SyntaxKind::kTuple) {
    for (const SyntaxPtr& target : statement.target->children) targets.push_back(target.get());
  } else {
    targets.push_back(statement.target.get());
  }
  Arguments args(context_, iterable, callee);
  std::vector<std::optional<Range>> domains;
  std::string thread;
  Attrs annotations;
  int64_t stride = 1;
  if (callee == "T.grid") {
    for (size_t i = 0; i < args.num_positional(); ++i) {
      domains.push_back(prim_.ReadRange(nullptr, *args.Get(i, "extent")));
    }
  } else {
    const Syntax* start = args.Require(0, "start");
    const Syntax* stop = args.Get(1, "stop");
    const bool binds_thread = function->kind == ForKind::kThreadBinding;
    const Syntax* tag = binds_thread ? args.Get(2, "thread") : nullptr;
    if (binds_thread && tag == nullptr && IsString(stop)) tag = std::exchange(stop, nullptr);  // (extent, tag)
    const Syntax* step = binds_thread ? args.Keyword("step") : args.Get(2, "step");
    if (step != nullptr) stride = AsInt(*step).value_or(0);
    if (stride < 1) {
      context_.Error(*step, "expected a step of at least 1, as a number");
      for (const Syntax* name : targets) DefineError(*name);
      return;
    }
    const Syntax* dict = callee == "range" ? nullptr : args.Keyword("annotations");
    if (start == nullptr) return;
    domains.push_back(stop == nullptr ? prim_.ReadRange(nullptr, *start) : prim_.ReadRange(start, *stop));
    if (function->kind == ForKind::kThreadBinding) thread = tag == nullptr ? "" : AsString(*tag).value_or("");
    if (function->kind == ForKind::kThreadBinding && thread.empty()) {
      context_.Error(iterable, "T.thread_binding: expected thread=\"threadIdx.x\" or the like");
      return;
    }
    if (dict != nullptr) {
      std::optional<Attrs> attrs = prim_.ReadAttrs(*dict);
      if (!attrs) return;
      annotations = std::move(*attrs);
    }
  }
  if (!args.Done()) return;
  if (targets.size() != domains.size()) {
    context_.Error(*statement.target, "expected " + std::to_string(domains.size()) + " loop variables, got " +
                                          std::to_string(targets.size()));
    return;
  }
  std::vector<PrimVar> vars;
  if (targets.size() > kMaxNesting) {
    context_.Error(statement.place, "a loop of more than " + std::to_string(kMaxNesting) + " axes");
    return;
  }
  bool fine = !domains.empty();
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i]->kind != SyntaxKind::kName) {
      context_.Error(*targets[i], "expected the name of a loop variable");
      return;
    }
    if (!domains[i]) {
      DefineError(*targets[i]);
      fine = false;
      continue;
    }
    vars.push_back(MakePrimVar(std::string(targets[i]->text), domains[i]->extent->dtype));
    Symbol symbol = Symbol::Prim(vars.back());
    symbol.domain = *domains[i];
    if (stride != 1) {  // the loop counts steps
      const PrimExpr start = domains[i]->min, step = IntImm(vars[i]->dtype, stride);
      symbol = Symbol::Prim(IsConstInt(start, 0) ? vars[i] * step : start + vars[i] * step);
      domains[i] = Range{IntImm(vars[i]->dtype, 0), FloorDiv(domains[i]->extent + (stride - 1), step)};
    }
    scope_.Define(targets[i]->text, std::move(symbol));
  }
  Stmt body = ReadBody(statement.body, nullptr);
  if (body == nullptr || !fine) return;
  for (size_t i = vars.size(); i-- > 0;) {
    body = MakeStmt<ForNode>(statement.place, vars[i], domains[i]->min, domains[i]->extent, function->kind,
                             std::move(body), thread, annotations);
  }
  suite.stmts.push_back(std::move(body));
}

void StmtReader::ReadWith(const Statement& statement, Suite& suite) {
  const Syntax& value = *statement.value;
  const std::string callee = CalleeName(value);
  const bool needs_name = callee == "T.alloc_buffer" || callee == "T.allocate";
  if (needs_name && (statement.target == nullptr || statement.target->kind != SyntaxKind::kName)) {
    context_.Error(value, "expected \"as NAME\" after " + callee + "(...)");
    return;
  }
  if (callee == "T.sblock" || callee == "T.block") return ReadBlock(statement, suite);
  if (callee == "T.init") return ReadBlockHead(statement, callee, value, suite);
  const ScopeTable::Scope inner(scope_);
  if (callee == "T.attr") return ReadAttribute(statement, value, suite, true);
  if (callee == "T.alloc_buffer") return ReadAllocate(statement, callee, value, suite, true);
  if (callee == "T.launch_thread") return ReadLaunchThread(statement, value, suite, true);
  if (callee == "T.LetStmt" || callee == "T.let") return ReadLetStatement(statement, callee, suite, true);
  Arguments args(context_, value, callee);
  if (callee == "T.Assert") {
    const Syntax* condition_syntax = args.Require(0, "condition");
    const Syntax* message_syntax = args.Get(1, "message");
    if (condition_syntax == nullptr || !args.Done()) return;
    PrimExpr condition = prim_.ReadCondition(*condition_syntax);
    std::optional<std::string> message = ReadMessage(message_syntax);
    if (condition == nullptr || !message) return;
    AddScoped(statement, suite, true, [this, place = statement.place, condition, message](Stmt body) {
      return MakeStmt<AssertStmtNode>(place, condition, *message, std::move(body));
    });
    return;
  }
  if (callee == "T.allocate") return ReadAllocatePointer(statement, value, suite, true);
  context_.Error(value,
                 "expected T.sblock, T.init, T.attr, T.LetStmt, T.Assert, T.alloc_buffer, T.allocate or "
                 "T.launch_thread after \"with\", got " +
                     Describe(value));
}

}  // namespace ingot::script
