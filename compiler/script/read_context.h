// What all readers of the parser share: the source, the sink, the symbols in scope, and the arguments of a call by
// place or name. A reader that cannot make sense of its syntax reports once and returns null (or false); its callers
// return the null without a second report.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/script/syntax.h"

namespace ingot::script {

// The meaning of a name.
struct Symbol {
  enum class Kind : uint8_t {
    kError,   // an error in its definition was reported; uses are silent
    kPrim,    // a scalar variable
    kBuffer,  // a buffer
    kValue,   // a graph variable
    kModule,  // cls
  };
  Kind kind = Kind::kError;
  ir::PrimExpr prim;
  ir::Buffer buffer;
  ir::Expr value;
  std::optional<ir::Range> domain;  // the domain of a loop variable

  static Symbol Prim(ir::PrimExpr expr) { return {Kind::kPrim, std::move(expr), nullptr, nullptr, std::nullopt}; }
  static Symbol OfBuffer(ir::Buffer buffer) {
    return {Kind::kBuffer, nullptr, std::move(buffer), nullptr, std::nullopt};
  }
  static Symbol Value(ir::Expr value) { return {Kind::kValue, nullptr, nullptr, std::move(value), std::nullopt}; }
  static Symbol Module() { return {Kind::kModule, nullptr, nullptr, nullptr, std::nullopt}; }
};

// The names of one function, innermost scope last. Symbolic variables of the module's head (n = TypeVar("n")) become
// variables of the function that names them.
class ScopeTable {
 public:
  using ModuleSymbols = std::unordered_map<std::string, DataType>;

  explicit ScopeTable(const ModuleSymbols* module_symbols = nullptr) : module_symbols_(module_symbols) {
    scopes_.emplace_back();
  }
  void Define(std::string_view name, Symbol symbol) { DefineAt(scopes_.size() - 1, name, std::move(symbol)); }
  void DefineOutermost(std::string_view name, Symbol symbol) { DefineAt(0, name, std::move(symbol)); }
  // Returns null if there is none.
  const Symbol* Find(std::string_view name);
  // Like Find, without the module's symbolic variables.
  const Symbol* FindLocal(std::string_view name) const;
  // Every name in scope, for suggestions.
  std::vector<std::string_view> Names() const;

  class Scope {
   public:
    explicit Scope(ScopeTable& table) : table_(table) { table_.scopes_.emplace_back(); }
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ScopeTable& table_;
  };

 private:
  void DefineAt(size_t scope, std::string_view name, Symbol symbol);

  struct Definition {
    size_t scope;
    Symbol symbol;
  };
  const ModuleSymbols* module_symbols_;
  std::unordered_map<std::string, std::vector<Definition>> symbols_;  // per name, innermost scope last
  std::vector<std::vector<std::string>> scopes_;
};

class ReadContext {
 public:
  ReadContext(std::shared_ptr<const ir::SourceText> source, DiagnosticSink& sink)
      : source_(std::move(source)), sink_(sink), types_left_(FreeTypes(*source_)) {}

  std::nullptr_t Error(Place place, std::string message) {
    sink_.Error(quoted_ ? *quoted_ : place, std::move(message));
    return nullptr;
  }
  std::nullptr_t Error(const Syntax& syntax, std::string message) { return Error(syntax.place, std::move(message)); }
  ir::Span SpanOf(Place place) const {
    const Place& at = quoted_ ? *quoted_ : place;
    return {source_, at.line, at.column, at.end_column, nullptr};
  }
  const std::shared_ptr<const ir::SourceText>& source() const { return source_; }
  // Takes a tuple's type, and all that it is made of, from what the tuples of a text of this size may have; false: it
  // has more. A tuple of a tuple twice takes few characters, but passes look at all of its fields.
  bool ChargeType(const ir::Type& type);
  DiagnosticSink& sink() { return sink_; }

  // While it lives, the contents of a string are read, and every place is that of the string.
  class Quoted {
   public:
    Quoted(ReadContext& context, Place place) : context_(context), outer_(context.quoted_) {
      if (!context_.quoted_) context_.quoted_ = place;
    }
    ~Quoted() { context_.quoted_ = outer_; }
    Quoted(const Quoted&) = delete;
    Quoted& operator=(const Quoted&) = delete;

   private:
    ReadContext& context_;
    std::optional<Place> outer_;
  };

 private:
  static int64_t FreeTypes(const ir::SourceText& source);

  std::shared_ptr<const ir::SourceText> source_;
  DiagnosticSink& sink_;
  int64_t types_left_;
  std::optional<Place> quoted_;
};

// Returns "T.axis.spatial" for an attribute chain over a name; empty for anything else.
std::string DottedName(const Syntax& syntax);
// Returns the name of a call's function in the same form; empty if the syntax is no call.
std::string CalleeName(const Syntax& syntax);
// Returns the source text of the syntax, shortened, for messages.
std::string Describe(const Syntax& syntax);

// The arguments of a call, taken by place or keyword. Done() reports the arguments that were not taken.
class Arguments {
 public:
  Arguments(ReadContext& context, const Syntax& call, std::string function);
  // Returns null if the argument is absent.
  const Syntax* Get(size_t place, std::string_view name);
  const Syntax* Keyword(std::string_view name) { return Get(static_cast<size_t>(-1), name); }
  // Reports a missing argument, and returns null.
  const Syntax* Require(size_t place, std::string_view name);
  size_t num_positional() const { return positional_.size(); }
  bool Done();

 private:
  ReadContext& context_;
  const Syntax& call_;
  std::string function_;
  struct Argument {
    const Syntax* syntax;
    std::string_view name;  // empty: positional
    bool taken = false;
  };
  std::vector<Argument> positional_, keywords_;
  std::vector<std::string_view> known_;
};

// Plain literals; nothing for other syntax.
std::optional<std::string> AsString(const Syntax& syntax);
std::optional<int64_t> AsInt(const Syntax& syntax);  // with a sign
std::optional<double> AsFloat(const Syntax& syntax);
bool IsNone(const Syntax& syntax);

}  // namespace ingot::script
