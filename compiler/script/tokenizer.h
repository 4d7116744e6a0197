// The tokenizer: TVMScript text to tokens, with Python's rules of indentation, brackets and comments. Comments that
// carry meaning become tokens of their own: the root block (`# with T.sblock("root"):`), the names of parameters, and
// trailing source operations. Nothing here knows what the tokens mean.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/node.h"
#include "compiler/script/diagnostics.h"

namespace ingot::script {

enum class TokenKind : uint8_t {
  kName,      // also keywords
  kInt,       // decimal, hexadecimal, octal or binary, underscores allowed
  kFloat,     // with '.', 'e' or both
  kString,    // with its quotes and escapes; UnquoteString gives the contents
  kOperator,  // punctuation, the longest match
  kPragma,    // a comment with a meaning, on a line of its own; text is what follows "# "
  kNewline,   // end of a logical line; text is the trailing comment after "# ", or nothing
  kIndent,
  kDedent,
  kEnd,
};
struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;  // as in the source
  Place place;
};

bool IsKeyword(std::string_view word);
// Whether a word [0-9A-Za-z_]+ is a number: digits, hexadecimal and the like, or digits with an exponent.
bool IsNumberWord(std::string_view word);
// Returns the contents of a string token; nothing if an escape is malformed.
std::optional<std::string> UnquoteString(std::string_view token);

// Never fails: text that cannot be read is reported and left out. The list ends with kEnd, and indents match dedents.
// The tokens point into the source.
std::vector<Token> Tokenize(const ir::SourceText& source, DiagnosticSink& sink);

}  // namespace ingot::script
