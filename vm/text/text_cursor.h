// A cursor over assembler text: words, numbers, quoted strings, punctuation and raw dimension text, with positions
// for messages. It skips spaces, line ends and comments (; to the end of the line). The first error is kept, and
// everything after it fails too, so that a parser need not check each step.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/status.h"

namespace ingot::vm {

class TextCursor {
 public:
  TextCursor(std::string_view text, std::string_view file_name) : text_(text), file_name_(file_name) {}

  bool ok() const { return error_.ok(); }
  const Status& error() const { return error_; }
  bool AtEnd();
  size_t position();  // of the next token

  // Reports at a position (the next token by default); always false.
  bool Fail(const std::string& message) { return FailAt(position(), message); }
  bool FailAt(size_t position, const std::string& message);

  bool Peek(std::string_view punctuation_or_word);
  bool Take(std::string_view punctuation_or_word);    // false, without an error, when it is not next
  bool Expect(std::string_view punctuation_or_word);  // an error when it is not next
  // [A-Za-z_][A-Za-z0-9_.$]*; empty, without an error, when none is next.
  std::string_view PeekWord();
  std::string_view TakeWord();
  std::string ExpectWord(const char* what);
  // One of these words; its index, or -1 with an error that suggests.
  int ExpectOneOf(const char* what, std::span<const std::string_view> words);
  std::string ExpectString();
  std::string ExpectName();  // a word or a string
  int64_t ExpectInt();       // decimal or 0x, minus allowed
  uint64_t ExpectUnsigned(uint64_t max);
  double ExpectFloat();
  // Text up to (not with) one of `stops` outside parentheses, a comment or the end of the line; trimmed.
  std::string_view TakeUntil(std::string_view stops);

 private:
  void SkipSpace();
  std::string_view text_;
  std::string file_name_;
  size_t at_ = 0;
  Status error_;
};

}  // namespace ingot::vm
