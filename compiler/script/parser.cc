// The module level: head (symbolic variables, TVM's metadata), class, decorators; then the functions, each by the
// reader of its level. The signatures of all functions are read first.
#include "compiler/script/parser.h"

#include <algorithm>

#include "compiler/script/graph_reader.h"
#include "compiler/script/stmt_reader.h"
#include "compiler/script/syntax_parser.h"
#include "compiler/script/tokenizer.h"
#include "runtime/suggest.h"

namespace ingot::script {
namespace {

// A function of the module, and what its decorator says.
struct FunctionSyntax {
  const Statement* def;
  bool is_prim_func = false;
  bool is_private = false;
  bool is_pure = true;
};

class ModuleReader {
 public:
  ModuleReader(ReadContext& context, const ConstantStore* constants) : context_(context), constants_(constants) {}

  ir::IRModule Read(const std::vector<Statement>& file) {
    ReadHead(file);
    for (const Statement& statement : file) ReadTopLevel(statement);
    if (!has_module_ && functions_.empty() && !context_.sink().has_errors()) {
      context_.Error(Place{1, 1, 0}, "there is no module: expected @I.ir_module and class Module, or a function");
    }
    ReadFunctions();
    return std::move(module_);
  }

 private:
  // n = TypeVar("n"), n = T.int64(): each is a symbolic variable of every function that names it. The head also holds
  // TVM's constants.
  void ReadHead(const std::vector<Statement>& file) {
    for (const Statement& statement : file) {
      if (statement.kind != StatementKind::kAssign || statement.value == nullptr) continue;
      const Syntax& target = *statement.target;
      const std::string callee = CalleeName(*statement.value);
      if (target.is_name("metadata")) {
        ReadMetadata(*statement.value);
        continue;
      }
      std::optional<DataType> dtype;
      if (callee == "TypeVar" || callee == "typing.TypeVar") dtype = DataType::Int(64);
      if (callee.starts_with("T.") && statement.value->children.size() == 1) {
        const Result<DataType> parsed = DataType::Parse(callee.substr(2));
        if (parsed.ok()) dtype = *parsed;
      }
      if (!dtype || target.kind != SyntaxKind::kName) {
        context_.Error(statement.place, "expected the declaration of a symbolic variable: n = TypeVar(\"n\")");
        continue;
      }
      head_.symbols[std::string(target.text)] = *dtype;
    }
  }

  // tvm.ir.load_json("""...""")
  void ReadMetadata(const Syntax& value) {
    const std::string callee = CalleeName(value);
    const std::optional<std::string> json = value.children.size() == 2 ? AsString(value[1]) : std::nullopt;
    const auto fail = [&](const std::string& message) {
      head_.has_bad_metadata = true;
      context_.Error(value, message);
    };
    if (!callee.ends_with("load_json") || !json) {
      return fail("expected tvm.ir.load_json(\"...\"), got " + Describe(value));
    }
    Result<TvmMetadata> metadata = TvmMetadata::Parse(*json);
    if (!metadata.ok()) return fail(metadata.status().message());
    head_.metadata = *std::move(metadata);
  }

  void ReadTopLevel(const Statement& statement) {
    switch (statement.kind) {
      case StatementKind::kClass:
        return ReadClass(statement);
      case StatementKind::kFunction:
        if (has_module_) {
          context_.Error(statement.place, "a function after the module; functions stand inside of the class");
          return;
        }
        return CollectFunction(statement);
      case StatementKind::kError:
      case StatementKind::kAssign:
      case StatementKind::kPass:
      case StatementKind::kPragma:
      case StatementKind::kImport:
        return;
      case StatementKind::kExpression:
        if (statement.value->kind == SyntaxKind::kString) return;
        break;
      case StatementKind::kFor:
      case StatementKind::kWhile:
      case StatementKind::kIf:
      case StatementKind::kWith:
      case StatementKind::kAssert:
      case StatementKind::kReturn:
        break;
    }
    context_.Error(statement.place, "expected a module, a function or the declaration of a symbolic variable");
  }

  void ReadClass(const Statement& statement) {
    if (has_module_ || !functions_.empty()) {
      context_.Error(statement.place, "a second module");
      return;
    }
    has_module_ = true;
    head_.class_name = statement.text;
    const bool decorated = std::any_of(statement.decorators.begin(), statement.decorators.end(), [](const auto& d) {
      const std::string name = d->kind == SyntaxKind::kCall ? CalleeName(*d) : DottedName(*d);
      return name == "I.ir_module" || name == "tvm.script.ir_module" || name == "ir_module";
    });
    if (!decorated) context_.Error(statement.place, "expected @I.ir_module before the class");
    for (const Statement& inner : statement.body) {
      switch (inner.kind) {
        case StatementKind::kFunction:
          CollectFunction(inner);
          break;
        case StatementKind::kExpression:
          ReadModuleStatement(*inner.value);
          break;
        case StatementKind::kError:
        case StatementKind::kPass:
        case StatementKind::kPragma:
        case StatementKind::kImport:
          break;
        case StatementKind::kAssign:
        case StatementKind::kFor:
        case StatementKind::kWhile:
        case StatementKind::kIf:
        case StatementKind::kWith:
        case StatementKind::kAssert:
        case StatementKind::kReturn:
        case StatementKind::kClass:
          context_.Error(inner.place, "a module holds functions and I.module_attrs alone");
          break;
      }
    }
  }

  void ReadModuleStatement(const Syntax& value) {
    const std::string callee = CalleeName(value);
    if (value.kind == SyntaxKind::kString || value.kind == SyntaxKind::kError) return;
    if (callee == "I.module_global_infos") {  // it declares virtual devices, which are named where they are used
      return;
    }
    if (callee != "I.module_attrs") {
      context_.Error(value, "expected a function or I.module_attrs, got " + Describe(value));
      return;
    }
    ScopeTable scope(&head_.symbols);
    PrimReader prim(context_, scope);
    Arguments args(context_, value, callee);
    const Syntax* dict = args.Require(0, "attrs");
    if (dict == nullptr || !args.Done()) return;
    if (std::optional<ir::Attrs> attrs = prim.ReadAttrs(*dict)) module_.SetAttrs(std::move(*attrs));
  }

  bool Flag(const Syntax& value) {
    if (value.is_name("True")) return true;
    if (!value.is_name("False")) context_.Error(value, "expected True or False, got " + Describe(value));
    return false;
  }

  void CollectFunction(const Statement& def) {
    FunctionSyntax function{&def};
    bool known = false;
    for (const SyntaxPtr& decorator : def.decorators) {
      const bool is_call = decorator->kind == SyntaxKind::kCall;
      const std::string name = is_call ? CalleeName(*decorator) : DottedName(*decorator);
      if (decorator->kind == SyntaxKind::kError) continue;
      known = name == "R.function" || name == "T.prim_func";
      if (!known) {
        constexpr std::string_view kNames[] = {"R.function", "T.prim_func"};
        context_.Error(*decorator, "unknown decorator " + Describe(*decorator) + DidYouMean(name, kNames));
        return;
      }
      function.is_prim_func = name == "T.prim_func";
      if (!is_call) continue;
      Arguments args(context_, *decorator, name);
      if (const Syntax* hidden = args.Keyword("private")) function.is_private = Flag(*hidden);
      args.Keyword("check_well_formed");
      if (function.is_prim_func) {
        args.Keyword("s_tir");
      } else if (const Syntax* pure = args.Keyword("pure")) {
        function.is_pure = Flag(*pure);
      }
      args.Done();
    }
    if (!known) {
      context_.Error(def.place, "expected @R.function or @T.prim_func before \"" + std::string(def.text) + "\"");
      return;
    }
    const std::string name(def.text);
    if (head_.functions.contains(name)) {
      context_.Error(def.place, "the function \"" + name + "\" is defined twice");
      return;
    }
    if (function.is_prim_func && function.is_private && def.annotation != nullptr && !IsNone(*def.annotation)) {
      if (!head_.number_functions.emplace(name, &def).second) {
        context_.Error(def.place, "the function \"" + name + "\" is defined twice");
      }
      return;
    }
    head_.functions[name] = {nullptr, function.is_prim_func};
    functions_.push_back(function);
  }

  void ReadFunctions() {
    // Names and types first: functions may call each other. Errors in signatures are reported with the bodies.
    for (const FunctionSyntax& function : functions_) {
      ir::Type type;
      if (!function.is_prim_func) {
        DiagnosticSink ignored(context_.source());
        ReadContext quiet(context_.source(), ignored);
        type = GraphReader(quiet, head_, constants_).ReadSignature(*function.def, function.is_pure);
      }
      ir::GlobalVarNode node(std::string(function.def->text), std::move(type));
      node.span = context_.SpanOf(function.def->place);
      head_.functions[std::string(function.def->text)].var = ir::Make<ir::GlobalVarNode>(std::move(node));
    }
    // Graph functions see the tensor functions; the module keeps the order of the text.
    for (const FunctionSyntax& function : functions_) {
      if (!function.is_prim_func) continue;
      ir::PrimFunc read = StmtReader(context_, &head_.symbols).ReadFunction(*function.def, function.is_private);
      if (read != nullptr) head_.tensor_functions[std::string(function.def->text)] = std::move(read);
    }
    for (const FunctionSyntax& function : functions_) {
      ir::Expr read;
      if (function.is_prim_func) {
        const auto found = head_.tensor_functions.find(std::string(function.def->text));
        if (found != head_.tensor_functions.end()) read = found->second;
      } else {
        read =
            GraphReader(context_, head_, constants_).ReadFunction(*function.def, function.is_pure, function.is_private);
      }
      if (read != nullptr) module_.Set(head_.functions.at(std::string(function.def->text)).var, std::move(read));
    }
  }

  ReadContext& context_;
  const ConstantStore* constants_;
  ModuleHead head_;
  std::vector<FunctionSyntax> functions_;
  bool has_module_ = false;
  ir::IRModule module_;
};

}  // namespace

Result<ir::IRModule> ParseModule(std::string text, std::string_view filename, const ConstantStore* constants) {
  const auto source = std::make_shared<const ir::SourceText>(ir::SourceText{std::string(filename), std::move(text)});
  DiagnosticSink sink(source);
  const std::vector<Token> tokens = Tokenize(*source, sink);
  const std::vector<Statement> file = SyntaxParser(tokens, sink).ParseFile();
  ReadContext context(source, sink);
  ir::IRModule module = ModuleReader(context, constants).Read(file);
  if (sink.has_errors()) return Status(StatusCode::kBadInput, sink.ToString());
  return module;
}

}  // namespace ingot::script
