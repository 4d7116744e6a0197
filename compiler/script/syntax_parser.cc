// Statements: suites by indentation, compound statements, definitions. The other half of SyntaxParser; expressions are
// in expression_parser.cc.
#include "compiler/script/syntax_parser.h"

#include <algorithm>
#include <iterator>

namespace ingot::script {
namespace {

constexpr int kMaxSuites = 200;

// Statements of Python that TVMScript does not allow.
constexpr std::string_view kRefusedStatements[] = {"async",  "await",  "break",    "continue", "del",
                                                   "global", "lambda", "nonlocal", "raise",    "try",
                                                   "yield",  "except", "finally"};

bool IsCompound(std::string_view word) {
  return word == "for" || word == "while" || word == "if" || word == "with" || word == "def" || word == "class" ||
         word == "@";
}

}  // namespace

std::vector<Statement> SyntaxParser::ParseFile() {
  std::vector<Statement> statements;
  while (!IsAt(TokenKind::kEnd)) {
    if (IsAt(TokenKind::kIndent)) {
      sink_.Error(Peek().place, "unexpected indentation");
      SkipSuite();
    } else if (IsAt(TokenKind::kDedent)) {
      Take();
    } else {
      ParseStatement(&statements);
    }
  }
  return statements;
}

void SyntaxParser::SkipLine() {
  while (!IsAt(TokenKind::kNewline) && !IsAt(TokenKind::kEnd) && !IsAt(TokenKind::kIndent) &&
         !IsAt(TokenKind::kDedent)) {
    Take();
  }
  if (IsAt(TokenKind::kNewline)) Take();
}

// At an indent: skips everything up to its dedent.
void SyntaxParser::SkipSuite() {
  int depth = 0;
  do {
    if (IsAt(TokenKind::kIndent)) ++depth;
    if (IsAt(TokenKind::kDedent)) --depth;
    Take();
  } while (depth > 0 && !IsAt(TokenKind::kEnd));
}

void SyntaxParser::ParseStatement(std::vector<Statement>* out) {
  failed_ = false;
  nesting_ = 0;
  const Place start = Peek().place;
  const bool compound = (IsAt(TokenKind::kName) || IsAt(TokenKind::kOperator)) && IsCompound(Peek().text);
  Statement statement = compound ? ParseCompound() : ParseSimple();
  if (failed_) {
    SkipLine();
    if (IsAt(TokenKind::kIndent)) SkipSuite();
    Statement error(StatementKind::kError, start);
    // The target of the failed assignment counts as defined, so that its uses are not reported as well.
    if (statement.kind == StatementKind::kAssign) error.target = std::move(statement.target);
    if (statement.kind == StatementKind::kFunction) error.text = statement.text;
    out->push_back(std::move(error));
    failed_ = false;
    return;
  }
  out->push_back(std::move(statement));
}

namespace {
SyntaxPtr Clone(const Syntax& syntax) {
  auto copy = std::make_unique<Syntax>(syntax.kind, syntax.place, syntax.text);
  copy->value = syntax.value;
  copy->depth = syntax.depth;
  copy->parenthesized = syntax.parenthesized;
  for (const SyntaxPtr& child : syntax.children) copy->children.push_back(child == nullptr ? nullptr : Clone(*child));
  return copy;
}

bool IsAugmentedAssignment(const Token& token) {
  constexpr std::string_view kStatements[] = {"+=", "-=", "*=", "/=", "//=", "%=", "<<=", ">>=", "&=", "|=", "^="};
  return token.kind == TokenKind::kOperator &&
         std::find(std::begin(kStatements), std::end(kStatements), token.text) != std::end(kStatements);
}
}  // namespace

Statement SyntaxParser::ParseSimple() {
  const Token& first = Peek();
  Statement statement(StatementKind::kExpression, first.place);
  if (first.kind == TokenKind::kPragma) {
    statement.kind = StatementKind::kPragma;
    statement.text = Take().text;
  } else if (first.kind == TokenKind::kName && std::find(std::begin(kRefusedStatements), std::end(kRefusedStatements),
                                                         first.text) != std::end(kRefusedStatements)) {
    Fail(first.place, "\"" + std::string(first.text) + "\" is not supported");
    return statement;
  } else if (TakeIf("pass")) {
    statement.kind = StatementKind::kPass;
  } else if (IsAt("import") || IsAt("from")) {
    statement.kind = StatementKind::kImport;
    while (!IsAt(TokenKind::kNewline) && !IsAt(TokenKind::kEnd)) Take();
  } else if (TakeIf("return")) {
    statement.kind = StatementKind::kReturn;
    if (!IsAt(TokenKind::kNewline)) statement.value = ParseExpressionList();
  } else if (TakeIf("assert")) {
    statement.kind = StatementKind::kAssert;
    statement.value = ParseExpression();
    if (TakeIf(",")) statement.message = ParseExpression();
  } else {
    SyntaxPtr left = ParseExpressionList();
    if (!failed_ && (IsAt("**=") || IsAt("@="))) {
      Fail(Peek().place, "the statement \"" + std::string(Peek().text) + "\" is not supported; write a = f(a, b)");
    } else if (!failed_ && IsAugmentedAssignment(Peek())) {  // a += b is a = a + b
      const Token& token = Take();
      statement.kind = StatementKind::kAssign;
      statement.target = Clone(*left);
      const Place place = left->place;
      std::vector<SyntaxPtr> operands;
      operands.push_back(std::move(left));
      operands.push_back(ParseExpressionList());
      statement.value =
          Make(SyntaxKind::kBinary, place, token.text.substr(0, token.text.size() - 1), std::move(operands));
    } else if (!failed_ && (IsAt(":") || IsAt("="))) {
      statement.kind = StatementKind::kAssign;
      statement.target = std::move(left);
      if (TakeIf(":")) statement.annotation = ParseExpression();
      if (TakeIf("=")) statement.value = ParseExpressionList();
      if (!failed_ && IsAt("=")) Fail(Peek().place, "assignments to several targets are not supported");
    } else {
      statement.value = std::move(left);
    }
  }
  if (failed_) return statement;
  if (!TakeIf(";")) {
    if (!IsAt(TokenKind::kNewline)) {
      FailHere("the end of the statement");
      return statement;
    }
    statement.comment = Take().text;
  } else if (IsAt(TokenKind::kNewline)) {
    Take();
  }
  return statement;
}

std::vector<Statement> SyntaxParser::ParseSuite() {
  std::vector<Statement> body;
  if (!Expect(":", "before the body")) return body;
  if (!IsAt(TokenKind::kNewline)) {  // if x: y
    ParseStatement(&body);
    return body;
  }
  const Place colon = Peek().place;
  Take();
  if (!IsAt(TokenKind::kIndent)) {
    Fail(colon, "expected an indented body");
    return body;
  }
  if (suites_ >= kMaxSuites) {
    Fail(Peek().place, "bodies are nested more than " + std::to_string(kMaxSuites) + " deep");
    SkipSuite();
    return body;
  }
  Take();
  ++suites_;
  while (!IsAt(TokenKind::kDedent) && !IsAt(TokenKind::kEnd)) {
    if (IsAt(TokenKind::kIndent)) {
      sink_.Error(Peek().place, "unexpected indentation");
      SkipSuite();
      continue;
    }
    ParseStatement(&body);
  }
  --suites_;
  if (IsAt(TokenKind::kDedent)) Take();
  return body;
}

std::vector<SyntaxPtr> SyntaxParser::ParseDecorators() {
  std::vector<SyntaxPtr> decorators;
  while (!failed_ && TakeIf("@")) {
    decorators.push_back(ParseExpression());
    if (!failed_ && !IsAt(TokenKind::kNewline)) FailHere("the end of the line after a decorator");
    if (!failed_) Take();
  }
  return decorators;
}

Statement SyntaxParser::ParseIf() {
  Statement statement(StatementKind::kIf, Take().place);
  statement.value = ParseExpression();
  statement.body = ParseSuite();
  if (failed_) return statement;
  if (IsAt("elif")) {
    if (suites_ >= kMaxSuites) {
      Fail(Peek().place, "bodies are nested more than " + std::to_string(kMaxSuites) + " deep");
      return statement;
    }
    ++suites_;
    statement.orelse.push_back(ParseIf());
    --suites_;
  } else if (TakeIf("else")) {
    statement.orelse = ParseSuite();
  }
  return statement;
}

void SyntaxParser::ParseFunction(Statement* statement) {
  statement->kind = StatementKind::kFunction;
  Take();
  if (!IsAt(TokenKind::kName)) {
    FailHere("the name of the function");
    return;
  }
  statement->place = Peek().place;
  statement->text = Take().text;
  if (!Expect("(", "after the name of the function")) return;
  while (!failed_ && !IsAt(")")) {
    if (IsAt("*") || IsAt("**")) {
      Fail(Peek().place, "variadic parameters are not supported");
      return;
    }
    if (!IsAt(TokenKind::kName)) {
      FailHere("the name of a parameter");
      return;
    }
    Parameter param{Peek().text, Peek().place, nullptr};
    Take();
    if (TakeIf(":")) param.annotation = ParseExpression();
    if (!failed_ && IsAt("=")) Fail(Peek().place, "default values of parameters are not supported");
    statement->params.push_back(std::move(param));
    if (!TakeIf(",")) break;
  }
  if (!Expect(")", "after the parameters")) return;
  if (TakeIf("->")) statement->annotation = ParseExpression();
  if (!failed_) statement->body = ParseSuite();
}

void SyntaxParser::ParseClass(Statement* statement) {
  statement->kind = StatementKind::kClass;
  Take();
  if (!IsAt(TokenKind::kName)) {
    FailHere("the name of the class");
    return;
  }
  statement->place = Peek().place;
  statement->text = Take().text;
  if (TakeIf("(")) Expect(")", "(a module has no bases)");
  if (!failed_) statement->body = ParseSuite();
}

void SyntaxParser::ParseWith(Statement* statement) {
  statement->kind = StatementKind::kWith;
  Take();
  statement->value = ParseExpression();
  if (TakeIf("as")) statement->target = ParseExpression();
  if (!failed_ && IsAt(",")) Fail(Peek().place, "several items in one \"with\" are not supported; nest them");
  if (!failed_) statement->body = ParseSuite();
}

Statement SyntaxParser::ParseCompound() {
  Statement statement(StatementKind::kFor, Peek().place);
  if (IsAt("@")) statement.decorators = ParseDecorators();
  if (failed_) return statement;
  if (!statement.decorators.empty() && !IsAt("def") && !IsAt("class")) {
    FailHere("\"def\" or \"class\" after a decorator");
    return statement;
  }
  if (IsAt("if")) return ParseIf();
  if (IsAt("def")) {
    ParseFunction(&statement);
  } else if (IsAt("class")) {
    ParseClass(&statement);
  } else if (IsAt("with")) {
    ParseWith(&statement);
  } else if (TakeIf("while")) {
    statement.kind = StatementKind::kWhile;
    statement.value = ParseExpression();
    statement.body = ParseSuite();
  } else {
    Take();
    statement.target = ParseExpressionList();
    if (Expect("in", "after the variables of the loop")) {
      statement.value = ParseExpressionList();
      statement.body = ParseSuite();
    }
  }
  if (!failed_ && IsAt("else") && statement.kind != StatementKind::kIf) FailHere("a statement");
  return statement;
}

}  // namespace ingot::script
