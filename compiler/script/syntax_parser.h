// The syntax parser: tokens to statements. An error is reported, the rest of its statement is skipped, and parsing
// resumes at the next one. Python syntax that TVMScript does not allow is refused by name.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/script/diagnostics.h"
#include "compiler/script/syntax.h"
#include "compiler/script/tokenizer.h"

namespace ingot::script {

class SyntaxParser {
 public:
  SyntaxParser(const std::vector<Token>& tokens, DiagnosticSink& sink)
      : tokens_(tokens), sink_(sink), brackets_reported_(sink.has_errors()) {}
  std::vector<Statement> ParseFile();
  // Parses one expression with nothing after it (a dimension in quotes).
  SyntaxPtr ParseSingleExpression();

 private:
  // ---- Statements (syntax_parser.cc)
  void ParseStatement(std::vector<Statement>* out);
  Statement ParseSimple();
  Statement ParseCompound();
  void ParseFunction(Statement* statement);
  void ParseClass(Statement* statement);
  void ParseWith(Statement* statement);
  Statement ParseIf();
  std::vector<SyntaxPtr> ParseDecorators();
  std::vector<Statement> ParseSuite();
  void SkipLine();
  void SkipSuite();

  // ---- Expressions (expression_parser.cc)
  SyntaxPtr ParseExpressionList();  // a, b: a tuple
  SyntaxPtr ParseExpression();
  SyntaxPtr ParseBinary(int precedence);
  SyntaxPtr ParseUnary();
  SyntaxPtr ParsePostfix();
  SyntaxPtr ParseAtom();
  SyntaxPtr ParseBrackets();
  SyntaxPtr ParseDict();
  SyntaxPtr ParseLambda();
  SyntaxPtr ParseString();
  SyntaxPtr ParseSliceOrExpression();
  void ParseArguments(Syntax* call);
  bool CheckSupported();
  // Makes a node with the children; fails if the tree becomes too deep.
  SyntaxPtr Make(SyntaxKind kind, Place place, std::string_view text, std::vector<SyntaxPtr> children);

  // ---- Tokens
  const Token& Peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  bool IsAt(std::string_view text) const {
    const TokenKind kind = Peek().kind;
    return (kind == TokenKind::kOperator || kind == TokenKind::kName) && Peek().text == text;
  }
  bool IsAt(TokenKind kind) const { return Peek().kind == kind; }
  const Token& Take() {
    const Token& token = Peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool TakeIf(std::string_view text) {
    if (!IsAt(text)) return false;
    Take();
    return true;
  }
  // Takes the token with this text, or fails with "expected ..., got ...".
  bool Expect(std::string_view text, std::string_view where);
  // Reports, once per statement, and marks the statement as failed; every function then returns quickly.
  SyntaxPtr Fail(Place place, std::string message);
  SyntaxPtr FailHere(std::string_view expected);
  std::string Describe(const Token& token) const;

  const std::vector<Token>& tokens_;
  DiagnosticSink& sink_;
  const bool brackets_reported_;  // then the tokenizer's errors explain missing brackets
  size_t at_ = 0;
  bool failed_ = false;
  int nesting_ = 0;  // of brackets and unary operators, which bounds the recursion
  int suites_ = 0;
};

}  // namespace ingot::script
