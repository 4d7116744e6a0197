// Expressions: precedence climbing over a table of infix operators, postfix chains, brackets and literals. The other
// half of SyntaxParser; statements are in syntax_parser.cc.
#include <iterator>

#include "compiler/ir/prim_expr.h"
#include "compiler/script/syntax_parser.h"

namespace ingot::script {
namespace {

struct InfixRow {
  std::string_view text;
  int precedence;
};
constexpr int kNotLevel = 3, kCompareLevel = 4, kUnaryLevel = 11;
constexpr InfixRow kInfix[] = {{"or", 1},
                               {"and", 2},
                               {"<", kCompareLevel},
                               {"<=", kCompareLevel},
                               {">", kCompareLevel},
                               {">=", kCompareLevel},
                               {"==", kCompareLevel},
                               {"!=", kCompareLevel},
                               {"in", kCompareLevel},
                               {"is", kCompareLevel},
                               {"|", 5},
                               {"^", 6},
                               {"&", 7},
                               {"<<", 8},
                               {">>", 8},
                               {"+", 9},
                               {"-", 9},
                               {"*", 10},
                               {"/", 10},
                               {"//", 10},
                               {"%", 10},
                               {"@", 10},
                               {"**", 12}};

// Python syntax that TVMScript lacks, with what to write instead.
struct Refusal {
  std::string_view text, message;
};
constexpr Refusal kRefusals[] = {
    {"await", "await is not supported"},
    {"yield", "yield is not supported"},
    {"in", "the operator \"in\" is not supported"},
    {"is", "the operator \"is\" is not supported"},
    {"@", "the operator \"@\" is not supported; write R.matmul(a, b)"},
    {"**", "the operator \"**\" is not supported; write T.pow(a, b)"},
    {":=", "assignment expressions are not supported"},
    {"...", "\"...\" is not supported"},
};

Place SpanOf(const Place& from, const Place& to) {
  return {from.line, from.column, from.line == to.line ? to.end_column : 0};
}

}  // namespace

SyntaxPtr SyntaxParser::Fail(Place place, std::string message) {
  if (!failed_) sink_.Error(place, std::move(message));
  failed_ = true;
  return std::make_unique<Syntax>(SyntaxKind::kError, place);
}

std::string SyntaxParser::Describe(const Token& token) const {
  switch (token.kind) {
    case TokenKind::kName:
    case TokenKind::kInt:
    case TokenKind::kFloat:
    case TokenKind::kOperator:
      return "\"" + std::string(token.text) + "\"";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kPragma:
      return "a comment";
    case TokenKind::kNewline:
      return "the end of the line";
    case TokenKind::kIndent:
    case TokenKind::kDedent:
      return "another indentation";
    case TokenKind::kEnd:
      return "the end of the text";
  }
  INGOT_UNREACHABLE("TokenKind");
}

SyntaxPtr SyntaxParser::FailHere(std::string_view expected) {
  return Fail(Peek().place, "expected " + std::string(expected) + ", got " + Describe(Peek()));
}

bool SyntaxParser::Expect(std::string_view text, std::string_view where) {
  if (failed_) return false;
  if (TakeIf(text)) return true;
  if (brackets_reported_ && (text == ")" || text == "]" || text == "}")) {
    failed_ = true;
    return false;
  }
  FailHere("\"" + std::string(text) + "\" " + std::string(where));
  return false;
}

SyntaxPtr SyntaxParser::Make(SyntaxKind kind, Place place, std::string_view text, std::vector<SyntaxPtr> children) {
  auto node = std::make_unique<Syntax>(kind, place, text);
  for (const SyntaxPtr& child : children) {
    if (child != nullptr) node->depth = std::max(node->depth, child->depth + 1);
  }
  node->children = std::move(children);
  if (node->depth <= ir::kMaxNesting) return node;
  return Fail(place, "this expression is nested more than " + std::to_string(ir::kMaxNesting) + " deep");
}

namespace {
template <typename... T>
std::vector<SyntaxPtr> List(T... items) {
  std::vector<SyntaxPtr> list;
  (list.push_back(std::move(items)), ...);
  return list;
}
}  // namespace

SyntaxPtr SyntaxParser::ParseSingleExpression() {
  SyntaxPtr expression = ParseExpression();
  if (!failed_ && !IsAt(TokenKind::kNewline) && !IsAt(TokenKind::kEnd)) return FailHere("an operator or the end");
  return expression;
}

SyntaxPtr SyntaxParser::ParseExpressionList() {
  SyntaxPtr first = ParseExpression();
  if (failed_ || !IsAt(",")) return first;
  std::vector<SyntaxPtr> items;
  const Place start = first->place;
  items.push_back(std::move(first));
  while (!failed_ && TakeIf(",")) {
    if (IsAt("=") || IsAt(TokenKind::kNewline) || IsAt("in") || IsAt(")")) break;
    items.push_back(ParseExpression());
  }
  const Place end = items.back()->place;
  return Make(SyntaxKind::kTuple, SpanOf(start, end), "", std::move(items));
}

SyntaxPtr SyntaxParser::ParseExpression() {
  if (failed_) return std::make_unique<Syntax>(SyntaxKind::kError, Peek().place);
  if (nesting_ >= ir::kMaxNesting) {
    return Fail(Peek().place, "this expression is nested more than " + std::to_string(ir::kMaxNesting) + " deep");
  }
  ++nesting_;
  if (IsAt("lambda")) {
    SyntaxPtr lambda = ParseLambda();
    --nesting_;
    return lambda;
  }
  SyntaxPtr value = ParseBinary(1);
  if (!failed_ && IsAt("if")) {
    Take();
    SyntaxPtr condition = ParseBinary(1);
    if (Expect("else", "of a conditional expression")) {
      SyntaxPtr other = ParseExpression();
      const Place place = SpanOf(value->place, other->place);
      value = Make(SyntaxKind::kConditional, place, "", List(std::move(value), std::move(condition), std::move(other)));
    }
  }
  --nesting_;
  return value;
}

// A call of "lambda": its arguments are the names of the parameters, and last the body.
SyntaxPtr SyntaxParser::ParseLambda() {
  const Token& word = Take();
  std::vector<SyntaxPtr> children = List(Make(SyntaxKind::kName, word.place, word.text, {}));
  while (!failed_ && IsAt(TokenKind::kName)) {
    const Token& name = Take();
    children.push_back(Make(SyntaxKind::kName, name.place, name.text, {}));
    if (!TakeIf(",")) break;
  }
  if (!Expect(":", "before the value of a lambda")) return std::make_unique<Syntax>(SyntaxKind::kError, word.place);
  children.push_back(ParseExpression());
  const Place place = SpanOf(word.place, children.back()->place);
  return Make(SyntaxKind::kCall, place, "", std::move(children));
}

bool SyntaxParser::CheckSupported() {
  for (const Refusal& refusal : kRefusals) {
    if (!IsAt(refusal.text)) continue;
    Fail(Peek().place, std::string(refusal.message));
    return false;
  }
  return true;
}

SyntaxPtr SyntaxParser::ParseBinary(int precedence) {
  SyntaxPtr left = ParseUnary();
  while (!failed_) {
    std::string_view text = Peek().text;
    if (!IsAt(TokenKind::kOperator) && !IsAt(TokenKind::kName)) break;
    const bool not_in = text == "not";
    const auto row = std::find_if(std::begin(kInfix), std::end(kInfix),
                                  [&](const InfixRow& candidate) { return candidate.text == text; });
    if (not_in) return Fail(Peek().place, "the operator \"not in\" is not supported");
    if (row == std::end(kInfix)) {
      if (text == ":=") CheckSupported();
      break;
    }
    // "in" ends the targets of a for statement.
    if (row->precedence < precedence || text == "in") break;
    if (!CheckSupported()) break;
    Take();
    SyntaxPtr right = ParseBinary(row->precedence + 1);
    if (failed_) break;
    const Place place = SpanOf(left->place, right->place);
    left = Make(SyntaxKind::kBinary, place, text, List(std::move(left), std::move(right)));
    if (row->precedence == kCompareLevel && IsAt(TokenKind::kOperator)) {
      const auto next = std::find_if(std::begin(kInfix), std::end(kInfix),
                                     [&](const InfixRow& candidate) { return candidate.text == Peek().text; });
      if (next != std::end(kInfix) && next->precedence == kCompareLevel) {
        return Fail(Peek().place, "chained comparisons are not supported; join them with \"and\"");
      }
    }
  }
  return left;
}

SyntaxPtr SyntaxParser::ParseUnary() {
  if (failed_) return std::make_unique<Syntax>(SyntaxKind::kError, Peek().place);
  const bool is_not = IsAt("not");
  if (!is_not && !IsAt("-") && !IsAt("+") && !IsAt("~")) return ParsePostfix();
  if (nesting_ >= ir::kMaxNesting) {
    return Fail(Peek().place, "this expression is nested more than " + std::to_string(ir::kMaxNesting) + " deep");
  }
  ++nesting_;
  const Token& op = Take();
  SyntaxPtr operand = is_not ? ParseBinary(kNotLevel) : ParseBinary(kUnaryLevel);
  --nesting_;
  const Place place = SpanOf(op.place, operand->place);
  return Make(SyntaxKind::kUnary, place, op.text, List(std::move(operand)));
}

SyntaxPtr SyntaxParser::ParsePostfix() {
  SyntaxPtr value = ParseAtom();
  while (!failed_) {
    if (IsAt(".")) {
      Take();
      if (!IsAt(TokenKind::kName)) return FailHere("a name after \".\"");
      const Token& name = Take();
      const Place place = SpanOf(value->place, name.place);
      value = Make(SyntaxKind::kAttribute, place, name.text, List(std::move(value)));
    } else if (IsAt("(")) {
      const Place start = value->place;
      auto call = Make(SyntaxKind::kCall, start, "", List(std::move(value)));
      if (failed_) return call;
      ParseArguments(call.get());
      if (call->depth > ir::kMaxNesting) return Make(SyntaxKind::kCall, start, "", std::move(call->children));
      value = std::move(call);
    } else if (IsAt("[")) {
      Take();
      const Place start = value->place;
      std::vector<SyntaxPtr> children;
      children.push_back(std::move(value));
      while (!failed_ && !IsAt("]")) {
        children.push_back(ParseSliceOrExpression());
        if (!TakeIf(",")) break;
      }
      const Place end = Peek().place;
      if (!Expect("]", "at the end of the indices")) break;
      value = Make(SyntaxKind::kSubscript, SpanOf(start, end), "", std::move(children));
    } else {
      break;
    }
  }
  return value == nullptr ? std::make_unique<Syntax>(SyntaxKind::kError, Peek().place) : std::move(value);
}

void SyntaxParser::ParseArguments(Syntax* call) {
  Take();
  bool has_keywords = false;
  while (!failed_ && !IsAt(")")) {
    SyntaxPtr argument;
    if (IsAt("*") || IsAt("**")) {
      Fail(Peek().place, "arguments that are unpacked with \"*\" are not supported");
      return;
    }
    if (IsAt(TokenKind::kName) && Peek(1).kind == TokenKind::kOperator && Peek(1).text == "=") {
      const Token& name = Take();
      Take();
      SyntaxPtr value = ParseExpression();
      const Place place = SpanOf(name.place, value->place);
      argument = Make(SyntaxKind::kKeyword, place, name.text, List(std::move(value)));
      has_keywords = true;
    } else {
      argument = ParseExpression();
      if (!failed_ && IsAt("for")) Fail(Peek().place, "comprehensions are not supported");
      if (has_keywords && !failed_) Fail(argument->place, "a positional argument after a keyword argument");
    }
    call->depth = std::max(call->depth, argument->depth + 1);
    call->children.push_back(std::move(argument));
    if (!TakeIf(",")) break;
  }
  const Place end = Peek().place;
  if (Expect(")", "at the end of the arguments")) call->place = SpanOf(call->place, end);
}

SyntaxPtr SyntaxParser::ParseSliceOrExpression() {
  const Place start = Peek().place;
  SyntaxPtr parts[3];
  if (!IsAt(":")) parts[0] = ParseExpression();
  if (failed_ || !IsAt(":")) return std::move(parts[0]);
  for (int i = 1; i < 3 && TakeIf(":"); ++i) {
    if (!IsAt(":") && !IsAt("]") && !IsAt(",")) parts[i] = ParseExpression();
  }
  const Place end = parts[2] ? parts[2]->place : parts[1] ? parts[1]->place : start;
  return Make(SyntaxKind::kSlice, SpanOf(start, end), "",
              List(std::move(parts[0]), std::move(parts[1]), std::move(parts[2])));
}

SyntaxPtr SyntaxParser::ParseString() {
  const Place start = Peek().place;
  Place end = start;
  auto node = std::make_unique<Syntax>(SyntaxKind::kString, start, Peek().text);
  while (IsAt(TokenKind::kString)) {  // adjacent string literals are one string
    end = Peek().place;
    std::optional<std::string> value = UnquoteString(Take().text);
    if (!value) return Fail(end, "a malformed escape in this string");
    node->value += *value;
  }
  node->place = SpanOf(start, end);
  return node;
}

SyntaxPtr SyntaxParser::ParseBrackets() {
  const Token& open = Take();
  const bool is_list = open.text == "[";
  std::vector<SyntaxPtr> items;
  bool has_comma = false;
  while (!failed_ && !IsAt(is_list ? "]" : ")")) {
    if (IsAt("*")) return Fail(Peek().place, "values that are unpacked with \"*\" are not supported");
    items.push_back(ParseExpression());
    if (!failed_ && IsAt("for")) return Fail(Peek().place, "comprehensions are not supported");
    if (!TakeIf(",")) break;
    has_comma = true;
  }
  const Place end = Peek().place;
  if (!Expect(is_list ? "]" : ")", is_list ? "at the end of the list" : "after the expression")) {
    return std::make_unique<Syntax>(SyntaxKind::kError, open.place);
  }
  if (!is_list && items.size() == 1 && !has_comma) {
    items[0]->place = SpanOf(open.place, end);
    return std::move(items[0]);
  }
  SyntaxPtr node =
      Make(is_list ? SyntaxKind::kList : SyntaxKind::kTuple, SpanOf(open.place, end), "", std::move(items));
  node->parenthesized = true;
  return node;
}

SyntaxPtr SyntaxParser::ParseDict() {
  const Token& open = Take();
  std::vector<SyntaxPtr> items;
  while (!failed_ && !IsAt("}")) {
    items.push_back(ParseExpression());
    if (!Expect(":", "after a key")) break;
    items.push_back(ParseExpression());
    if (!TakeIf(",")) break;
  }
  const Place end = Peek().place;
  Expect("}", "at the end of the dictionary");
  return Make(SyntaxKind::kDict, SpanOf(open.place, end), "", std::move(items));
}

SyntaxPtr SyntaxParser::ParseAtom() {
  const Token& token = Peek();
  switch (token.kind) {
    case TokenKind::kInt:
      Take();
      return std::make_unique<Syntax>(SyntaxKind::kInt, token.place, token.text);
    case TokenKind::kFloat:
      Take();
      return std::make_unique<Syntax>(SyntaxKind::kFloat, token.place, token.text);
    case TokenKind::kString:
      return ParseString();
    case TokenKind::kName: {
      if (!CheckSupported()) return std::make_unique<Syntax>(SyntaxKind::kError, token.place);
      const bool constant = token.text == "None" || token.text == "True" || token.text == "False";
      if (IsKeyword(token.text) && !constant) return FailHere("an expression");
      Take();
      if (IsAt(TokenKind::kString) && Peek().place.line == token.place.line &&
          Peek().place.column == token.place.end_column) {
        return Fail(token.place, "strings with a prefix (\"" + std::string(token.text) + "\") are not supported");
      }
      return std::make_unique<Syntax>(SyntaxKind::kName, token.place, token.text);
    }
    case TokenKind::kOperator:
      if (token.text == "(" || token.text == "[") return ParseBrackets();
      if (token.text == "{") return ParseDict();
      if (!CheckSupported()) return std::make_unique<Syntax>(SyntaxKind::kError, token.place);
      return FailHere("an expression");
    case TokenKind::kPragma:
    case TokenKind::kNewline:
    case TokenKind::kIndent:
    case TokenKind::kDedent:
    case TokenKind::kEnd:
      return FailHere("an expression");
  }
  INGOT_UNREACHABLE("TokenKind");
}

}  // namespace ingot::script
