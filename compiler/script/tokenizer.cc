// A single pass over the characters, with a stack of indentations and one of open brackets. A statement word at the
// start of a line ends an unclosed bracket, so that one mistake does not hide the rest of the file.
#include "compiler/script/tokenizer.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace ingot::script {
namespace {

constexpr std::string_view kKeywords[] = {
    "False",  "None",     "True", "and",    "as",   "assert", "async",   "await",  "break", "class",  "continue", "def",
    "del",    "elif",     "else", "except", "for",  "from",   "finally", "global", "if",    "import", "in",       "is",
    "lambda", "nonlocal", "not",  "or",     "pass", "raise",  "return",  "try",    "while", "with",   "yield"};
// Longest first.
constexpr std::string_view kOperatorTexts[] = {
    "**=", "//=", ">>=", "<<=", "...", "->", "==", "!=", "<=", ">=", "<<", ">>", "//", "**", ":=", "+=",
    "-=",  "*=",  "/=",  "%=",  "&=",  "|=", "^=", "@=", "(",  ")",  "[",  "]",  "{",  "}",  ",",  ":",
    ".",   "=",   "+",   "-",   "*",   "/",  "%",  "<",  ">",  "&",  "|",  "^",  "~",  "@",  ";"};
// Words that start a statement and never occur in an expression: a line that starts with one ends an unclosed bracket.
constexpr std::string_view kStatementWords[] = {"class", "def", "return", "while", "with"};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
template <size_t N>
bool Contains(const std::string_view (&list)[N], std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}
bool AllDigits(std::string_view text) {
  return !text.empty() && IsDigit(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) { return IsDigit(c) || c == '_'; });
}

class Tokenizer {
 public:
  Tokenizer(const ir::SourceText& source, DiagnosticSink& sink) : text_(source.text), sink_(sink) {}
  std::vector<Token> Run();

 private:
  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void Advance(size_t count);
  Place PlaceFrom(Place start) const { return {start.line, start.column, start.line == line_ ? column_ : 0}; }
  void Add(TokenKind kind, size_t begin, Place start) {
    tokens_.push_back({kind, text_.substr(begin, at_ - begin), PlaceFrom(start)});
  }
  // Reads the start of a line: indentation, blank and comment lines.
  void StartLine();
  void SetIndentation(int width);
  void EndLine(std::string_view comment);
  std::string_view TakeComment();
  void ReadToken();
  void ReadNumberOrName();
  void ReadString();
  void ReadOperator();

  std::string_view text_;
  DiagnosticSink& sink_;
  std::vector<Token> tokens_;
  std::vector<int> indents_{0};
  std::vector<Token> brackets_;  // the open ones
  size_t at_ = 0;
  int32_t line_ = 1, column_ = 1;
  bool line_has_tokens_ = false;
};

void Tokenizer::Advance(size_t count) {
  for (; count > 0 && !AtEnd(); --count, ++at_) {
    if (text_[at_] == '\n') {
      ++line_;
      column_ = 1;
    } else if (at_ + 1 >= text_.size() || (static_cast<unsigned char>(text_[at_ + 1]) & 0xC0) != 0x80) {
      ++column_;
    }
  }
}

std::string_view Tokenizer::TakeComment() {
  const size_t begin = at_;
  const size_t end = std::min(text_.find('\n', at_), text_.size());
  Advance(end - at_);
  std::string_view comment = text_.substr(begin + 1, end - begin - 1);
  if (comment.starts_with(' ')) comment.remove_prefix(1);
  while (!comment.empty() && std::isspace(static_cast<unsigned char>(comment.back())) != 0) comment.remove_suffix(1);
  return comment;
}

void Tokenizer::EndLine(std::string_view comment) {
  if (!line_has_tokens_) return;
  tokens_.push_back({TokenKind::kNewline, comment, {line_, column_, 0}});
  line_has_tokens_ = false;
}

void Tokenizer::SetIndentation(int width) {
  const Place here{line_, column_, 0};
  if (width > indents_.back()) {
    indents_.push_back(width);
    tokens_.push_back({TokenKind::kIndent, "", here});
    return;
  }
  int popped = width;
  while (width < indents_.back()) {
    popped = indents_.back();
    indents_.pop_back();
    tokens_.push_back({TokenKind::kDedent, "", here});
  }
  if (width == indents_.back()) return;
  sink_.Error(here, "this indentation matches no line above");
  tokens_.pop_back();  // the line counts as part of the deeper body
  indents_.push_back(popped);
}

void Tokenizer::StartLine() {
  int width = 0;
  while (Peek() == ' ' || Peek() == '\t' || Peek() == '\f') {
    width = Peek() == '\t' ? (width / 8 + 1) * 8 : width + 1;
    Advance(1);
  }
  if (Peek() == '\n' || Peek() == '\r' || AtEnd()) return;
  if (Peek() == '#') {
    const Place start{line_, column_, 0};
    const std::string_view comment = TakeComment();
    const bool root = comment.starts_with("with T.sblock(\"root\")") || comment.starts_with("with T.block(\"root\")");
    if (!root && !comment.starts_with("param names:")) return;
    SetIndentation(width);
    tokens_.push_back({TokenKind::kPragma, comment, {start.line, start.column, column_}});
    line_has_tokens_ = true;
    return;
  }
  SetIndentation(width);
  line_has_tokens_ = true;
}

void Tokenizer::ReadNumberOrName() {
  const size_t begin = at_;
  const Place start{line_, column_, 0};
  const auto skip_digits = [&] {
    while (IsDigit(Peek()) || Peek() == '_') Advance(1);
  };
  const auto skip_exponent = [&] {
    if (Peek() != 'e' && Peek() != 'E') return;
    const size_t sign = Peek(1) == '+' || Peek(1) == '-' ? 1 : 0;
    if (!IsDigit(Peek(1 + sign))) return;
    Advance(1 + sign);
    skip_digits();
  };
  size_t length = 0;
  while (IsWord(Peek(length))) ++length;
  const std::string_view word = text_.substr(begin, length);
  if (AllDigits(word) && Peek(length) == '.') {
    Advance(length + 1);
    skip_digits();
    skip_exponent();
    return Add(TokenKind::kFloat, begin, start);
  }
  if (length == 0) {  // .5
    Advance(1);
    skip_digits();
    skip_exponent();
    return Add(TokenKind::kFloat, begin, start);
  }
  const char last = word.back();
  const bool signed_exponent = (last == 'e' || last == 'E') && AllDigits(word.substr(0, length - 1)) &&
                               (Peek(length) == '+' || Peek(length) == '-') && IsDigit(Peek(length + 1));
  Advance(length);
  if (signed_exponent) {
    Advance(1);
    skip_digits();
    return Add(TokenKind::kFloat, begin, start);
  }
  if (!IsDigit(word[0]) || !IsNumberWord(word)) return Add(TokenKind::kName, begin, start);
  const bool is_hex = word.starts_with("0x") || word.starts_with("0X");
  const bool is_float = !is_hex && word.find_first_of("eE") != std::string_view::npos;
  Add(is_float ? TokenKind::kFloat : TokenKind::kInt, begin, start);
}

void Tokenizer::ReadString() {
  const size_t begin = at_;
  const Place start{line_, column_, 0};
  const char quote = Peek();
  const bool triple = Peek(1) == quote && Peek(2) == quote;
  Advance(triple ? 3 : 1);
  while (true) {
    if (AtEnd() || (!triple && Peek() == '\n')) {
      sink_.Error({start.line, start.column, start.line == line_ ? column_ : 0}, "this string is not closed");
      return;
    }
    if (Peek() == '\\') {
      Advance(2);
    } else if (Peek() == quote && (!triple || (Peek(1) == quote && Peek(2) == quote))) {
      Advance(triple ? 3 : 1);
      break;
    } else {
      Advance(1);
    }
  }
  Add(TokenKind::kString, begin, start);
}

void Tokenizer::ReadOperator() {
  const size_t begin = at_;
  const Place start{line_, column_, 0};
  const std::string_view rest = text_.substr(at_);
  const auto found =
      std::find_if(std::begin(kOperatorTexts), std::end(kOperatorTexts),
                   [&](std::string_view candidate) { return candidate[0] == rest[0] && rest.starts_with(candidate); });
  if (found == std::end(kOperatorTexts)) {
    size_t length = 1;  // a whole UTF-8 character
    while (at_ + length < text_.size() && (static_cast<unsigned char>(text_[at_ + length]) & 0xC0) == 0x80) ++length;
    Advance(length);
    sink_.Error(PlaceFrom(start), "unexpected character");
    return;
  }
  Advance(found->size());
  Add(TokenKind::kOperator, begin, start);
  const char c = found->size() == 1 ? (*found)[0] : '\0';
  if (c == '(' || c == '[' || c == '{') {
    brackets_.push_back(tokens_.back());
  } else if (c == ')' || c == ']' || c == '}') {
    const char open = c == ')' ? '(' : c == ']' ? '[' : '{';
    if (brackets_.empty()) {
      sink_.Error(tokens_.back().place, "\"" + std::string(1, c) + "\" closes nothing");
      tokens_.pop_back();
    } else {
      if (brackets_.back().text[0] != open) {
        sink_.Error(tokens_.back().place, "\"" + std::string(1, c) + "\" does not match \"" +
                                              std::string(brackets_.back().text) + "\" at line " +
                                              std::to_string(brackets_.back().place.line));
      }
      brackets_.pop_back();
    }
  }
}

void Tokenizer::ReadToken() {
  const char c = Peek();
  if (c == '"' || c == '\'') return ReadString();
  if (IsWord(c) || (c == '.' && IsDigit(Peek(1)))) return ReadNumberOrName();
  ReadOperator();
}

std::vector<Token> Tokenizer::Run() {
  if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  bool at_line_start = true;
  while (!AtEnd()) {
    if (at_line_start && brackets_.empty()) StartLine();
    at_line_start = false;
    const char c = Peek();
    if (AtEnd()) break;
    if (c == '\n') {
      if (brackets_.empty()) EndLine("");
      Advance(1);
      at_line_start = true;
      if (brackets_.empty()) continue;
      // A statement inside brackets means that one of them is not closed.
      size_t ahead = 0;
      while (Peek(ahead) == ' ' || Peek(ahead) == '\t') ++ahead;
      size_t length = 0;
      while (IsWord(Peek(ahead + length))) ++length;
      if (Contains(kStatementWords, text_.substr(std::min(at_ + ahead, text_.size()), length)) || Peek(ahead) == '@') {
        sink_.Error(brackets_.back().place, "\"" + std::string(brackets_.back().text) + "\" is not closed");
        brackets_.clear();
        EndLine("");
      }
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      Advance(1);
    } else if (c == '\\' && (Peek(1) == '\n' || (Peek(1) == '\r' && Peek(2) == '\n'))) {
      Advance(Peek(1) == '\n' ? 2 : 3);
    } else if (c == '#') {
      const std::string_view comment = TakeComment();
      if (brackets_.empty()) EndLine(comment);
    } else {
      ReadToken();
    }
  }
  if (!brackets_.empty()) {
    sink_.Error(brackets_.back().place, "\"" + std::string(brackets_.back().text) + "\" is not closed");
  }
  EndLine("");
  while (indents_.size() > 1) {
    indents_.pop_back();
    tokens_.push_back({TokenKind::kDedent, "", {line_, column_, 0}});
  }
  tokens_.push_back({TokenKind::kEnd, "", {line_, column_, 0}});
  return std::move(tokens_);
}

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

void AppendUtf8(uint32_t code, std::string* out) {
  const auto tail = [&](int shift) { *out += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) {
    *out += static_cast<char>(code);
  } else if (code < 0x800) {
    *out += static_cast<char>(0xC0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    *out += static_cast<char>(0xE0 | (code >> 12));
    tail(6);
    tail(0);
  } else {
    *out += static_cast<char>(0xF0 | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace

bool IsKeyword(std::string_view word) { return Contains(kKeywords, word); }

bool IsNumberWord(std::string_view word) {
  if (AllDigits(word)) return true;
  if (word.size() > 2 && word[0] == '0') {
    const char base = static_cast<char>(std::tolower(static_cast<unsigned char>(word[1])));
    const int limit = base == 'x' ? 16 : base == 'o' ? 8 : base == 'b' ? 2 : 0;
    const std::string_view digits = word.substr(2);
    const auto fits = [&](char c) { return c == '_' || (HexDigit(c) >= 0 && HexDigit(c) < limit); };
    if (std::all_of(digits.begin(), digits.end(), fits)) return true;
  }
  const size_t e = word.find_first_of("eE");
  return e != std::string_view::npos && AllDigits(word.substr(0, e)) && AllDigits(word.substr(e + 1));
}

// \xNN is the byte NN (the printer writes bytes that are not UTF-8 so); \u and \U are characters.
std::optional<std::string> UnquoteString(std::string_view token) {
  const size_t quotes = token.size() >= 6 && token[1] == token[0] && token[2] == token[0] ? 3 : 1;
  token = token.substr(quotes, token.size() - 2 * quotes);
  std::string out;
  for (size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '\\') {
      out += token[i];
      continue;
    }
    const char c = ++i < token.size() ? token[i] : '\0';
    constexpr std::string_view kSimple = "ntrabfv0\\\"'", kValue{"\n\t\r\a\b\f\v\0\\\"'", 11};
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits > 0) {
      uint32_t code = 0;
      for (size_t k = 0; k < digits; ++k) {
        const int digit = ++i < token.size() ? HexDigit(token[i]) : -1;
        if (digit < 0) return std::nullopt;
        code = code * 16 + static_cast<uint32_t>(digit);
      }
      if (code > 0x10FFFF) return std::nullopt;
      if (c == 'x') {
        out += static_cast<char>(code);
      } else {
        AppendUtf8(code, &out);
      }
    } else if (c == '\n') {
      // a continued line
    } else if (const size_t at = kSimple.find(c); at != std::string_view::npos && c != '\0') {
      out += kValue[at];
    } else {
      return std::nullopt;
    }
  }
  return out;
}

std::vector<Token> Tokenize(const ir::SourceText& source, DiagnosticSink& sink) {
  return Tokenizer(source, sink).Run();
}

}  // namespace ingot::script
