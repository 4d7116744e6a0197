// A recursive descent over characters: PTX is regular enough to need no token stream. The first error stops the parser:
// `failed_` is set, and every reader gives an empty result from then on.
//
// Names have scopes: blocks in braces inside of a function declare registers, parameters and labels of their own (call
// sequences and inline assembly do). A register or variable is resolved where it is read; a label may come later, so
// that a use carries its scope ("name@3") and is resolved at the end of the function.
#include "tests/cuda_standin/ptx_parser.h"

#include <bit>
#include <cctype>
#include <cstdlib>
#include <cstring>

namespace ingot::ptx {
namespace {

struct TypeRow {
  const char* name;
  Type type;
  int bytes;
};
constexpr TypeRow kTypes[] = {
    {"pred", Type::kPred, 0}, {"b8", Type::kB8, 1},       {"u8", Type::kU8, 1},         {"s8", Type::kS8, 1},
    {"b16", Type::kB16, 2},   {"u16", Type::kU16, 2},     {"s16", Type::kS16, 2},       {"f16", Type::kF16, 2},
    {"bf16", Type::kBf16, 2}, {"b32", Type::kB32, 4},     {"u32", Type::kU32, 4},       {"s32", Type::kS32, 4},
    {"f32", Type::kF32, 4},   {"f16x2", Type::kF16x2, 4}, {"bf16x2", Type::kBf16x2, 4}, {"tf32", Type::kTf32, 4},
    {"b64", Type::kB64, 8},   {"u64", Type::kU64, 8},     {"s64", Type::kS64, 8},       {"f64", Type::kF64, 8},
};

bool IsWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$'; }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Module> Run() {
    while (!failed_ && SkipSpace()) ParseTopLevel();
    if (!failed_ && module_.target.empty()) Fail("no .target");
    if (failed_) return Status(StatusCode::kBadInput, {"ptx: line ", error_line_, ": ", error_});
    return std::move(module_);
  }

 private:
  struct Scope {
    std::map<std::string, int32_t, std::less<>> registers, variables;
    int parent;
  };

  // ---- characters
  void Fail(const std::string& message) {
    if (failed_) return;
    failed_ = true;
    error_ = message;
    error_line_ = line_;
    at_ = text_.size();
  }
  // Skips blanks and comments; false at the end.
  bool SkipSpace() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_, ++at_;
      } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (text_.substr(at_, 2) == "/*") {
        const size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) return Fail("a comment does not end"), false;
        for (; at_ < end + 2; ++at_) line_ += text_[at_] == '\n';
      } else {
        return true;
      }
    }
    return false;
  }
  char Peek() { return SkipSpace() && at_ < text_.size() ? text_[at_] : '\0'; }
  bool Accept(char c) {
    if (Peek() != c) return false;
    ++at_;
    return true;
  }
  void Expect(char c) {
    if (!Accept(c)) Fail(StrCat({"expected \"", c, "\" before \"", Rest(), "\""}));
  }
  std::string Rest() { return std::string(text_.substr(at_, text_.substr(at_, 30).find('\n'))); }
  bool AtWord() {
    const char c = Peek();
    return IsWordCharacter(c) || c == '%';
  }
  std::string Word() {
    Peek();
    const size_t start = at_;
    if (at_ < text_.size() && text_[at_] == '%') ++at_;
    while (at_ < text_.size() && IsWordCharacter(text_[at_])) ++at_;
    if (at_ == start) Fail(StrCat({"expected a name before \"", Rest(), "\""}));
    return std::string(text_.substr(start, at_ - start));
  }
  // ".align" and the like, and opcodes with their modifiers: words, dots and "::".
  std::string Dotted() {
    Peek();
    const size_t start = at_;
    while (at_ < text_.size()) {
      const bool colons = text_.substr(at_, 2) == "::";
      if (colons) {
        at_ += 2;
      } else if (IsWordCharacter(text_[at_]) || text_[at_] == '.') {
        ++at_;
      } else {
        break;
      }
    }
    return std::string(text_.substr(start, at_ - start));
  }
  // One directive: a dot and a word.
  std::string Directive() {
    Peek();
    if (at_ >= text_.size() || text_[at_] != '.')
      return Fail(StrCat({"expected a directive before \"", Rest(), "\""})), "";
    ++at_;
    return "." + Word();
  }
  void SkipLine() {
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  }
  void SkipBraces() {
    Expect('{');
    for (int depth = 1; depth > 0 && SkipSpace();) {
      depth += text_[at_] == '{' ? 1 : text_[at_] == '}' ? -1 : 0;
      ++at_;
    }
  }

  // ---- numbers
  bool AtNumber() {
    const char c = Peek();
    return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '+';
  }
  Operand Number() {
    Operand number;
    number.kind = Operand::Kind::kInteger;
    Peek();
    bool minus = false;
    while (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) minus ^= text_[at_++] == '-', Peek();
    const size_t start = at_;
    const std::string_view rest = text_.substr(at_);
    const std::string prefix = std::string(rest.substr(0, 2));
    if (prefix == "0f" || prefix == "0F" || prefix == "0d" || prefix == "0D") {
      const bool is_double = (prefix[1] | 32) == 'd';
      const size_t digits = is_double ? 16 : 8;
      const uint64_t bits = std::strtoull(std::string(rest.substr(2, digits)).c_str(), nullptr, 16);
      at_ += 2 + digits;
      number.kind = Operand::Kind::kFloat;
      number.real = is_double ? std::bit_cast<double>(bits) : std::bit_cast<float>(static_cast<uint32_t>(bits));
      number.integer = static_cast<int64_t>(bits);  // a NaN keeps its bits
      if (minus) number.real = -number.real;
      return number;
    }
    size_t end = at_;
    const bool hexadecimal = prefix == "0x" || prefix == "0X";
    const bool binary = prefix == "0b" || prefix == "0B";
    if (hexadecimal || binary) end += 2;
    bool real = false;
    while (end < text_.size()) {
      const char c = text_[end];
      if (hexadecimal ? std::isxdigit(static_cast<unsigned char>(c)) == 0
                      : std::isdigit(static_cast<unsigned char>(c)) == 0) {
        const bool exponent = !hexadecimal && !binary && (c == 'e' || c == 'E');
        const bool sign = real && (c == '-' || c == '+') && (text_[end - 1] | 32) == 'e';
        if (!exponent && !sign && !(c == '.' && !hexadecimal)) break;
        real = true;
      }
      ++end;
    }
    const std::string digits(text_.substr(start, end - start));
    if (digits.empty()) return Fail(StrCat({"expected a number before \"", Rest(), "\""})), number;
    at_ = end;
    if (real) {
      number.kind = Operand::Kind::kFloat;
      number.real = std::strtod(digits.c_str(), nullptr) * (minus ? -1 : 1);
      return number;
    }
    const uint64_t value =
        binary ? std::strtoull(digits.c_str() + 2, nullptr, 2) : std::strtoull(digits.c_str(), nullptr, 0);
    if (at_ < text_.size() && text_[at_] == 'U') ++at_;
    number.integer = static_cast<int64_t>(minus ? 0 - value : value);
    return number;
  }
  int64_t Integer() { return Number().integer; }

  // ---- declarations
  void ParseTopLevel() {
    const int line = line_;
    std::string directive = Directive();
    bool is_extern = false;
    while (directive == ".visible" || directive == ".extern" || directive == ".weak" || directive == ".common") {
      is_extern |= directive == ".extern";
      directive = Directive();
    }
    if (directive == ".version") {
      module_.version_major = static_cast<int>(Integer0());
      Expect('.');
      module_.version_minor = static_cast<int>(Integer0());
    } else if (directive == ".target") {
      module_.target = Word();
      while (Accept(',')) Word();
    } else if (directive == ".address_size") {
      if (Integer() != 64) Fail("addresses of 64 bits are what is supported");
    } else if (directive == ".file") {
      SkipLine();
    } else if (directive == ".section") {
      Dotted();
      SkipBraces();
    } else if (directive == ".entry" || directive == ".func") {
      ParseFunction(directive == ".entry", line);
    } else if (directive == ".global" || directive == ".const" || directive == ".shared") {
      ParseVariables(SpaceOf(directive), is_extern, module_.variables, nullptr);
    } else if (!failed_) {
      Fail(StrCat({"unknown directive ", directive}));
    }
  }
  // Digits alone: "8.0" is two numbers.
  int64_t Integer0() {
    Peek();
    int64_t value = 0;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0)
      value = value * 10 + (text_[at_++] - '0');
    return value;
  }
  static Space SpaceOf(std::string_view directive) {
    if (directive == ".param") return Space::kParam;
    if (directive == ".shared") return Space::kShared;
    if (directive == ".local") return Space::kLocal;
    if (directive == ".const") return Space::kConst;
    return directive == ".global" ? Space::kGlobal : Space::kGeneric;
  }

  // After the space: ".align 4 .b8 name[16] = {...}, ...". Without `terminator` the list ends with a semicolon.
  void ParseVariables(Space space, bool is_extern, std::vector<Variable>& into, Scope* scope, bool one = false) {
    int64_t align = 0;
    int elements = 1;
    Type type = Type::kNone;
    while (type == Type::kNone && !failed_) {
      const std::string directive = Directive();
      if (directive == ".align") {
        align = Integer();
      } else if (directive == ".v2" || directive == ".v4") {
        elements = directive[2] - '0';
      } else if (directive == ".attribute") {
        Fail("attributes of variables are not supported");
      } else if ((type = ParseType(directive)) == Type::kNone) {
        Fail(StrCat({"unknown type ", directive}));
      }
    }
    do {
      while (Peek() == '.') {  // .ptr .global .align 16 of parameters
        const std::string hint = Directive();
        if (hint == ".align") Integer();
      }
      Variable variable;
      variable.space = space;
      variable.is_extern = is_extern;
      variable.name = Word();
      int64_t count = elements;
      while (Accept('[')) {
        count *= Peek() == ']' ? 0 : Integer();
        Expect(']');
      }
      const int64_t element_bytes = TypeBytes(type);
      variable.size_bytes = count * element_bytes;
      variable.align = align != 0 ? align : element_bytes * elements;
      if (Accept('=')) ParseInitial(type, variable);
      if (scope != nullptr) scope->variables[variable.name] = static_cast<int32_t>(into.size());
      into.push_back(std::move(variable));
    } while (!one && Accept(','));
    if (!one) Expect(';');
  }

  void ParseInitial(Type type, Variable& variable) {
    if (Accept('{')) {
      while (!failed_ && !Accept('}')) {
        ParseInitial(type, variable);
        Accept(',');
      }
      return;
    }
    const size_t bytes = static_cast<size_t>(TypeBytes(type));
    uint64_t bits = 0;
    if (AtNumber()) {
      const Operand number = Number();
      if (number.kind == Operand::Kind::kInteger) {
        bits = static_cast<uint64_t>(number.integer);
      } else {
        bits = type == Type::kF32 ? std::bit_cast<uint32_t>(static_cast<float>(number.real))
                                  : std::bit_cast<uint64_t>(number.real);
      }
    } else {
      std::string symbol = Word();
      const bool generic = symbol == "generic" && Accept('(');
      if (generic) symbol = Word();
      if (generic) Expect(')');
      Relocation pointer{static_cast<int64_t>(variable.initial.size()), symbol, 0};
      if (Peek() == '+' || Peek() == '-') pointer.addend = Integer();
      if (bytes != 8) Fail("an address in an initial value that does not have 64 bits");
      variable.pointers.push_back(pointer);
    }
    for (size_t i = 0; i < bytes; ++i) variable.initial.push_back(static_cast<uint8_t>(bits >> (8 * i)));
  }

  // ---- functions
  void ParseFunction(bool is_entry, int line) {
    function_ = Function();
    scopes_.assign(1, Scope{{}, {}, -1});
    scope_ = 0;
    function_.is_entry = is_entry;
    function_.line = line;
    if (Accept('(')) {
      ParseParameters();
      function_.num_returns = static_cast<int>(function_.variables.size());
    }
    function_.name = Word();
    if (Accept('(')) ParseParameters();
    function_.num_params = static_cast<int>(function_.variables.size()) - function_.num_returns;
    while (Peek() == '.') {
      const std::string directive = Directive();
      int64_t* sizes = directive == ".maxntid"   ? function_.max_threads
                       : directive == ".reqntid" ? function_.required_threads
                                                 : nullptr;
      if (sizes != nullptr) {
        sizes[0] = Integer(), sizes[1] = sizes[2] = 1;
        for (int i = 1; i < 3 && Accept(','); ++i) sizes[i] = Integer();
      } else if (directive == ".minnctapersm" || directive == ".maxnreg") {
        Integer();
      } else if (directive == ".pragma") {
        SkipPragma();
      } else if (directive != ".noreturn") {
        Fail(StrCat({"unknown directive ", directive, " of a function"}));
      }
    }
    if (!Accept(';')) {
      Expect('{');
      function_.has_body = true;
      while (!failed_ && !(Peek() == '}' && scope_ == 0)) ParseStatement();
      Expect('}');
      ResolveLabels();
    }
    for (Function& other : module_.functions) {
      if (other.name != function_.name) continue;  // a declaration before the definition
      if (function_.has_body) other = std::move(function_);
      return;
    }
    module_.functions.push_back(std::move(function_));
  }
  void ParseParameters() {
    while (!failed_ && !Accept(')')) {
      const std::string space = Directive();
      if (space != ".param") Fail(StrCat({"parameters in ", space, " are not supported"}));
      ParseVariables(Space::kParam, false, function_.variables, scopes_.data(), true);
      Accept(',');
    }
  }
  void SkipPragma() {
    while (at_ < text_.size() && text_[at_] != ';') ++at_;
    Expect(';');
  }

  void ParseStatement() {
    if (Accept('{')) {
      scopes_.push_back(Scope{{}, {}, scope_});
      scope_ = static_cast<int>(scopes_.size()) - 1;
    } else if (Accept('}')) {
      scope_ = scopes_[static_cast<size_t>(scope_)].parent;
    } else if (Peek() == '.') {
      ParseBodyDirective();
    } else if (!Accept(';')) {
      ParseInstruction();
    }
  }
  void ParseBodyDirective() {
    const std::string directive = Directive();
    if (directive == ".reg") {
      ParseRegisters();
    } else if (SpaceOf(directive) != Space::kGeneric) {
      ParseVariables(SpaceOf(directive), false, function_.variables, &scopes_[static_cast<size_t>(scope_)]);
    } else if (directive == ".loc" || directive == ".file") {
      SkipLine();
    } else if (directive == ".pragma") {
      SkipPragma();
    } else {
      Fail(StrCat({"unknown directive ", directive}));
    }
  }
  void ParseRegisters() {
    const std::string directive = Directive();
    const Type type = ParseType(directive);
    if (type == Type::kNone) return Fail(StrCat({"unknown type ", directive, " of a register"}));
    do {
      const std::string name = Word();
      if (Accept('<')) {
        const int64_t count = Integer();
        Expect('>');
        if (count < 0 || count > 1000000) return Fail("too many registers");
        for (int64_t i = 0; i < count; ++i) AddRegister(name + std::to_string(i), type);
      } else {
        AddRegister(name, type);
      }
    } while (Accept(','));
    Expect(';');
  }
  void AddRegister(const std::string& name, Type type) {
    scopes_[static_cast<size_t>(scope_)].registers[name] = static_cast<int32_t>(function_.registers.size());
    function_.registers.push_back({name, type});
  }

  void ParseInstruction() {
    Statement statement;
    const size_t start = (Peek(), at_);
    statement.line = line_;
    if (Accept('@')) {
      statement.guard_negated = Accept('!');
      const Operand guard = ParseNamed();
      if (guard.kind != Operand::Kind::kRegister ||
          function_.registers[static_cast<size_t>(guard.index)].type != Type::kPred) {
        return Fail("a guard that is no predicate register");
      }
      statement.guard = guard.index;
    }
    statement.opcode = Dotted();
    if (statement.opcode.empty()) return Fail(StrCat({"expected an instruction before \"", Rest(), "\""}));
    if (statement.guard < 0 && Accept(':')) return ParseLabel(statement.opcode);
    while (!failed_ && !Accept(';')) {
      statement.operands.push_back(ParseOperand());
      if (Peek() != ';') Expect(',');
    }
    if (failed_) return;
    statement.text = std::string(text_.substr(start, at_ - start));
    function_.statements.push_back(std::move(statement));
  }
  std::string Scoped(const std::string& label, int scope) { return StrCat({label, "@", scope}); }
  void ParseLabel(const std::string& name) {
    if (Peek() == '.') {
      const size_t start = at_;
      const std::string directive = Directive();
      if (directive == ".branchtargets") {
        std::vector<std::string> targets;
        do targets.push_back(Scoped(Word(), scope_));
        while (Accept(','));
        Expect(';');
        function_.branch_targets[name] = std::move(targets);
        return;
      }
      if (directive == ".callprototype") return Fail("indirect calls are not supported");
      at_ = start;
    }
    if (!function_.labels.emplace(Scoped(name, scope_), static_cast<int>(function_.statements.size())).second) {
      Fail(StrCat({"label ", name, " twice"}));
    }
  }

  // A register, special register, variable, or else a label or function.
  Operand ParseNamed() {
    Operand operand;
    operand.name = Word();
    for (int scope = scope_; scope >= 0; scope = scopes_[static_cast<size_t>(scope)].parent) {
      const Scope& names = scopes_[static_cast<size_t>(scope)];
      if (const auto found = names.registers.find(operand.name); found != names.registers.end()) {
        operand.kind = Operand::Kind::kRegister;
        operand.index = found->second;
        return operand;
      }
      if (const auto found = names.variables.find(operand.name); found != names.variables.end()) {
        operand.kind = Operand::Kind::kVariable;
        operand.index = found->second;
        return operand;
      }
    }
    if (operand.name == "_") {
      operand.kind = Operand::Kind::kSink;
      return operand;
    }
    if (operand.name[0] == '%' || operand.name == "WARP_SZ") {
      operand.kind = Operand::Kind::kSpecial;
      if (at_ + 1 < text_.size() && text_[at_] == '.' && std::strchr("xyzw", text_[at_ + 1]) != nullptr) {
        operand.name += text_.substr(at_, 2);
        at_ += 2;
      }
      return operand;
    }
    for (const Variable& variable : module_.variables) {
      if (variable.name != operand.name) continue;
      operand.kind = Operand::Kind::kVariable;
      return operand;
    }
    operand.kind = Operand::Kind::kName;
    return operand;
  }

  Operand ParseOperand() {
    Operand operand;
    if (Accept('{') || Peek() == '(') {
      const char close = Accept('(') ? ')' : '}';
      operand.kind = Operand::Kind::kVector;
      while (!failed_ && !Accept(close)) {
        operand.parts.push_back(ParseOperand());
        if (Peek() != close) Expect(',');
      }
    } else if (Accept('[')) {
      operand.kind = Operand::Kind::kAddress;
      if (AtNumber()) {
        operand.parts.push_back(Number());
      } else {
        operand.parts.push_back(ParseNamed());
      }
      if (Peek() == '+' || Peek() == '-') operand.integer = Integer();
      Expect(']');
    } else if (Accept('!')) {
      operand = ParseNamed();
      operand.negated = true;
    } else if (AtNumber()) {
      operand = Number();
    } else {
      operand = ParseNamed();
      if (operand.kind == Operand::Kind::kVariable && (Peek() == '+' || Peek() == '-')) operand.integer = Integer();
      if (operand.kind == Operand::Kind::kName) operand.index = scope_;
      if (Accept('|')) {
        Operand pair;
        pair.kind = Operand::Kind::kPair;
        pair.parts = {operand, ParseNamed()};
        return pair;
      }
    }
    return operand;
  }

  // Names that are labels of a scope around their use become statement indexes in `integer`; others are functions.
  void ResolveLabels() {
    for (Statement& statement : function_.statements) {
      for (Operand& operand : statement.operands) {
        if (operand.kind != Operand::Kind::kName) continue;
        const int target = FindLabel(operand.name, operand.index);
        operand.integer = target;
      }
    }
    for (auto& [name, targets] : function_.branch_targets) {
      for (std::string& target : targets) {
        const size_t at = target.rfind('@');
        const int statement = FindLabel(target.substr(0, at), std::atoi(target.c_str() + at + 1));
        if (statement < 0) return Fail(StrCat({"no label ", target.substr(0, at)}));
        target = std::to_string(statement);
      }
    }
  }
  int FindLabel(const std::string& name, int scope) {
    for (; scope >= 0; scope = scopes_[static_cast<size_t>(scope)].parent) {
      const auto found = function_.labels.find(Scoped(name, scope));
      if (found != function_.labels.end()) return found->second;
    }
    return -1;
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1, error_line_ = 0;
  bool failed_ = false;
  std::string error_;
  Module module_;
  Function function_;
  std::vector<Scope> scopes_;
  int scope_ = 0;
};

}  // namespace

// The rows stand in the order of the enum, without kNone.
int TypeBytes(Type type) { return type == Type::kNone ? 0 : kTypes[static_cast<size_t>(type) - 1].bytes; }
const char* TypeName(Type type) { return type == Type::kNone ? "none" : kTypes[static_cast<size_t>(type) - 1].name; }
Type ParseType(std::string_view text) {
  if (text.starts_with('.')) text.remove_prefix(1);
  for (const TypeRow& row : kTypes) {
    if (text == row.name) return row.type;
  }
  return Type::kNone;
}
bool IsFloat(Type type) { return TypeName(type)[0] == 'f' || type == Type::kBf16 || type == Type::kBf16x2; }
bool IsSigned(Type type) { return TypeName(type)[0] == 's'; }

const char* SpaceName(Space space) {
  constexpr const char* kNames[] = {"generic", "param", "shared", "local", "const", "global"};
  return kNames[static_cast<size_t>(space)];
}

const Function* Module::Find(std::string_view name) const {
  for (const Function& function : functions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

Result<Module> ParsePtx(std::string_view text) { return Parser(text).Run(); }

}  // namespace ingot::ptx
