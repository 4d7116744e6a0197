// Scopes as a stack per name, arguments by place and keyword, and the conversions of literals.
#include "compiler/script/read_context.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <limits>

#include "compiler/ir/type.h"
#include "compiler/script/literals.h"
#include "runtime/suggest.h"

namespace ingot::script {
namespace {

// The number of types that this one is made of, counted as often as they stand in it; or any number above `most`.
int64_t CountTypes(const ir::Type& type, int64_t most) {
  int64_t count = 1;
  const auto* const tuple = ir::As<ir::TupleTypeNode>(type);
  if (tuple == nullptr) return count;
  for (const ir::Type& field : tuple->fields) {
    if (count > most) break;
    count += CountTypes(field, most - count);
  }
  return count;
}

}  // namespace

int64_t ReadContext::FreeTypes(const ir::SourceText& source) {
  return (1 << 14) + 16 * static_cast<int64_t>(source.text.size());
}

bool ReadContext::ChargeType(const ir::Type& type) {
  types_left_ -= CountTypes(type, types_left_);
  return types_left_ >= 0;
}

void ScopeTable::DefineAt(size_t scope, std::string_view name, Symbol symbol) {
  std::vector<Definition>& definitions = symbols_[std::string(name)];
  auto place = definitions.end();
  while (place != definitions.begin() && (place - 1)->scope > scope) --place;
  if (place != definitions.begin() && (place - 1)->scope == scope) {
    (place - 1)->symbol = std::move(symbol);
    return;
  }
  definitions.insert(place, {scope, std::move(symbol)});
  scopes_[scope].emplace_back(name);
}

const Symbol* ScopeTable::FindLocal(std::string_view name) const {
  const auto it = symbols_.find(std::string(name));
  return it == symbols_.end() || it->second.empty() ? nullptr : &it->second.back().symbol;
}

const Symbol* ScopeTable::Find(std::string_view name) {
  if (const Symbol* local = FindLocal(name)) return local;
  if (module_symbols_ == nullptr) return nullptr;
  const std::string key(name);
  const auto symbol = module_symbols_->find(key);
  if (symbol == module_symbols_->end()) return nullptr;
  DefineOutermost(name, Symbol::Prim(ir::MakePrimVar(key, symbol->second)));
  return &symbols_.find(key)->second.back().symbol;
}

std::vector<std::string_view> ScopeTable::Names() const {
  std::vector<std::string_view> names;
  for (const auto& [name, definitions] : symbols_) {
    if (!definitions.empty()) names.push_back(name);
  }
  std::sort(names.begin(), names.end());  // makes the suggestion independent of the hash table's order
  return names;
}

ScopeTable::Scope::~Scope() {
  for (const std::string& name : table_.scopes_.back()) table_.symbols_[name].pop_back();
  table_.scopes_.pop_back();
}

std::string DottedName(const Syntax& syntax) {
  if (syntax.kind == SyntaxKind::kName) return std::string(syntax.text);
  if (syntax.kind != SyntaxKind::kAttribute) return "";
  std::string base = DottedName(syntax[0]);
  return base.empty() ? "" : std::move(base) + "." + std::string(syntax.text);
}

std::string CalleeName(const Syntax& syntax) { return syntax.kind == SyntaxKind::kCall ? DottedName(syntax[0]) : ""; }

std::string Describe(const Syntax& syntax) {
  switch (syntax.kind) {
    case SyntaxKind::kError:
      return "an error";
    case SyntaxKind::kName:
    case SyntaxKind::kInt:
    case SyntaxKind::kFloat:
      return "\"" + std::string(syntax.text) + "\"";
    case SyntaxKind::kString:
      return "the string " + Quote(syntax.value.substr(0, 40));
    case SyntaxKind::kAttribute: {
      const std::string name = DottedName(syntax);
      return name.empty() ? "an attribute" : "\"" + name + "\"";
    }
    case SyntaxKind::kCall: {
      const std::string name = CalleeName(syntax);
      return name.empty() ? "a call" : "a call of \"" + name + "\"";
    }
    case SyntaxKind::kKeyword:
      return "a keyword argument";
    case SyntaxKind::kSubscript:
      return "an indexed value";
    case SyntaxKind::kSlice:
      return "a slice";
    case SyntaxKind::kTuple:
      return "a tuple";
    case SyntaxKind::kList:
      return "a list";
    case SyntaxKind::kDict:
      return "a dictionary";
    case SyntaxKind::kUnary:
    case SyntaxKind::kBinary:
      return "an expression with \"" + std::string(syntax.text) + "\"";
    case SyntaxKind::kConditional:
      return "a conditional expression";
  }
  INGOT_UNREACHABLE("SyntaxKind");
}

Arguments::Arguments(ReadContext& context, const Syntax& call, std::string function)
    : context_(context), call_(call), function_(std::move(function)) {
  for (size_t i = 1; i < call.children.size(); ++i) {
    const Syntax& child = call[i];
    if (child.kind == SyntaxKind::kKeyword) {
      keywords_.push_back({&child[0], child.text});
    } else {
      positional_.push_back({&child, ""});
    }
  }
}

const Syntax* Arguments::Get(size_t place, std::string_view name) {
  known_.push_back(name);
  if (place < positional_.size()) {
    positional_[place].taken = true;
    return positional_[place].syntax;
  }
  for (Argument& argument : keywords_) {
    if (argument.name != name) continue;
    argument.taken = true;
    return argument.syntax;
  }
  return nullptr;
}

const Syntax* Arguments::Require(size_t place, std::string_view name) {
  const Syntax* syntax = Get(place, name);
  if (syntax == nullptr) {
    context_.Error(call_, function_ + ": the argument \"" + std::string(name) + "\" is missing");
  }
  return syntax;
}

bool Arguments::Done() {
  bool fine = true;
  for (const Argument& argument : positional_) {
    if (argument.taken || !fine) continue;
    context_.Error(*argument.syntax, function_ + ": unexpected argument");
    fine = false;
  }
  for (const Argument& argument : keywords_) {
    if (argument.taken) continue;
    context_.Error(*argument.syntax, function_ + " has no argument \"" + std::string(argument.name) + "\"" +
                                         DidYouMean(argument.name, known_));
    fine = false;
  }
  return fine;
}

std::optional<std::string> AsString(const Syntax& syntax) {
  if (syntax.kind != SyntaxKind::kString) return std::nullopt;
  return syntax.value;
}

bool IsNone(const Syntax& syntax) { return syntax.is_name("None"); }

std::optional<int64_t> AsInt(const Syntax& syntax) {
  bool negative = false;
  const Syntax* number = &syntax;
  if (syntax.kind == SyntaxKind::kUnary && (syntax.text == "-" || syntax.text == "+")) {
    negative = syntax.text == "-";
    number = &syntax[0];
  }
  if (number->kind != SyntaxKind::kInt) return std::nullopt;
  std::string digits(number->text);
  std::erase(digits, '_');
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0') {
    const char letter = digits[1];
    base = letter == 'x' || letter == 'X'   ? 16
           : letter == 'o' || letter == 'O' ? 8
           : letter == 'b' || letter == 'B' ? 2
                                            : 10;
    if (base != 10) digits.erase(0, 2);
  }
  uint64_t value = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (end.ec != std::errc() || end.ptr != digits.data() + digits.size()) return std::nullopt;
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (negative) {
    if (value > kMax + 1) return std::nullopt;
    return static_cast<int64_t>(-value);
  }
  // Numbers above int64's range are the upper uint64 numbers; their bits are returned.
  return static_cast<int64_t>(value);
}

std::optional<double> AsFloat(const Syntax& syntax) {
  bool negative = false;
  const Syntax* number = &syntax;
  if (syntax.kind == SyntaxKind::kUnary && (syntax.text == "-" || syntax.text == "+")) {
    negative = syntax.text == "-";
    number = &syntax[0];
  }
  if (number->kind != SyntaxKind::kFloat) return std::nullopt;
  std::string digits(number->text);
  std::erase(digits, '_');
  double value = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end.ec == std::errc::result_out_of_range) {  // infinity or 0, as in Python
    value = std::strtod(digits.c_str(), nullptr);
  } else if (end.ec != std::errc() || end.ptr != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return negative ? -value : value;
}

}  // namespace ingot::script
