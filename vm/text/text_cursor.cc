// The tokens of assembler text, and messages that show the line with a caret.
#include "vm/text/text_cursor.h"

#include <algorithm>
#include <charconv>

#include "runtime/suggest.h"

namespace ingot::vm {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordCharacter(char c) { return IsLetter(c) || IsDigit(c) || c == '.' || c == '$'; }

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void TextCursor::SkipSpace() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++at_;
    } else if (c == ';') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

bool TextCursor::AtEnd() {
  SkipSpace();
  return at_ == text_.size();
}

size_t TextCursor::position() {
  SkipSpace();
  return at_;
}

bool TextCursor::FailAt(size_t position, const std::string& message) {
  if (!error_.ok()) return false;
  const std::string_view before = text_.substr(0, position);
  const size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const size_t line_end = std::min(text_.find('\n', position), text_.size());
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t column = position - line_start + 1;
  std::string out = file_name_ + ":" + std::to_string(line) + ":" + std::to_string(column) + ": error: " + message;
  // A very long line is shown around the place alone.
  constexpr size_t kShown = 60;
  const size_t from = column > kShown ? position - kShown : line_start;
  const size_t to = std::min(line_end, position + kShown);
  out += "\n" + std::string(text_.substr(from, to - from)) + "\n" + std::string(position - from, ' ') + "^";
  error_ = Status(StatusCode::kBadInput, std::move(out));
  return false;
}

bool TextCursor::Peek(std::string_view token) {
  if (!ok()) return false;
  SkipSpace();
  if (IsLetter(token[0])) return PeekWord() == token;
  return text_.substr(at_).starts_with(token);
}

bool TextCursor::Take(std::string_view token) {
  if (!Peek(token)) return false;
  at_ += token.size();
  return true;
}

bool TextCursor::Expect(std::string_view token) {
  if (Take(token)) return true;
  return Fail("expected '" + std::string(token) + "'");
}

std::string_view TextCursor::PeekWord() {
  if (!ok()) return {};
  SkipSpace();
  if (at_ == text_.size() || !IsLetter(text_[at_])) return {};
  size_t end = at_;
  // Two dots in a row are a range, not part of the word.
  while (end < text_.size() && IsWordCharacter(text_[end]) && !text_.substr(end).starts_with("..")) ++end;
  return text_.substr(at_, end - at_);
}

std::string_view TextCursor::TakeWord() {
  const std::string_view word = PeekWord();
  at_ += word.size();
  return word;
}

std::string TextCursor::ExpectWord(const char* what) {
  const std::string_view word = TakeWord();
  if (word.empty()) Fail(std::string("expected ") + what);
  return std::string(word);
}

int TextCursor::ExpectOneOf(const char* what, std::span<const std::string_view> words) {
  const size_t start = position();
  const std::string_view word = TakeWord();
  const auto found = std::find(words.begin(), words.end(), word);
  if (ok() && found != words.end()) return static_cast<int>(found - words.begin());
  if (word.empty()) {
    FailAt(start, std::string("expected ") + what);
  } else {
    FailAt(start, std::string("unknown ") + what + " \"" + std::string(word) + "\"" + DidYouMean(word, words));
  }
  return -1;
}

std::string TextCursor::ExpectString() {
  const size_t start = position();
  if (!Expect("\"")) return {};
  std::string out;
  while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
    const char c = text_[at_++];
    if (c != '\\') {
      out += c;
      continue;
    }
    const char escape = at_ < text_.size() ? text_[at_++] : '\0';
    if (escape == 'n') {
      out += '\n';
    } else if (escape == '"' || escape == '\\') {
      out += escape;
    } else if (escape == 'x' && text_.size() - at_ >= 2 && HexDigit(text_[at_]) >= 0 && HexDigit(text_[at_ + 1]) >= 0) {
      out += static_cast<char>(HexDigit(text_[at_]) * 16 + HexDigit(text_[at_ + 1]));
      at_ += 2;
    } else {
      FailAt(at_ - 1, "unknown escape; there are \\n, \\\", \\\\ and \\xHH");
      return {};
    }
  }
  if (at_ == text_.size() || text_[at_] != '"') {
    FailAt(start, "a string without an end");
    return {};
  }
  ++at_;
  return out;
}

std::string TextCursor::ExpectName() {
  if (Peek("\"")) return ExpectString();
  return ExpectWord("a name");
}

int64_t TextCursor::ExpectInt() {
  const size_t start = position();
  if (!ok()) return 0;
  if (text_.substr(at_).starts_with("0x")) return static_cast<int64_t>(ExpectUnsigned(UINT64_MAX));
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
  if (error != std::errc()) {
    FailAt(start, error == std::errc::result_out_of_range ? "a number beyond 64 bits" : "expected a number");
    return 0;
  }
  at_ = end - text_.data();
  return value;
}

uint64_t TextCursor::ExpectUnsigned(uint64_t max) {
  const size_t start = position();
  if (!ok()) return 0;
  const bool hex = text_.substr(at_).starts_with("0x");
  uint64_t value = 0;
  const char* begin = text_.data() + at_ + (hex ? 2 : 0);
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value, hex ? 16 : 10);
  if (error == std::errc::invalid_argument) {
    FailAt(start, "expected a number >= 0");
    return 0;
  }
  if (error != std::errc() || value > max) {
    FailAt(start, "expected a number of at most " + std::to_string(max));
    return 0;
  }
  at_ = end - text_.data();
  return value;
}

double TextCursor::ExpectFloat() {
  const size_t start = position();
  if (!ok()) return 0;
  double value = 0;
  const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
  if (error != std::errc()) {
    FailAt(start, "expected a floating-point number");
    return 0;
  }
  at_ = end - text_.data();
  return value;
}

std::string_view TextCursor::TakeUntil(std::string_view stops) {
  SkipSpace();
  const size_t start = at_;
  int depth = 0;
  for (; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
    const char c = text_[at_];
    if (c == ';') break;
    if (depth == 0 && stops.find(c) != std::string_view::npos) break;
    if (c == '(') ++depth;
    if (c == ')') --depth;
  }
  std::string_view taken = text_.substr(start, at_ - start);
  while (!taken.empty() && (taken.back() == ' ' || taken.back() == '\r' || taken.back() == '\t'))
    taken.remove_suffix(1);
  return taken;
}

}  // namespace ingot::vm
