// Text: a piece of a message, borrowed from the expression it stands in: a string, an integer, or a list of pieces.
// Functions that report failures take one, so that `Fail({"axis ", axis, " of ", name})` costs its caller a few stores,
// and the message is built in one place, and only when it is needed. A Text is a parameter: it never outlives the
// expression, so it is no member and no variable.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace ingot {

class Text {
 public:
  // Implicit on purpose, all of them.
  Text(const char* text) : kind_(Kind::kLiteral) { value_.characters = text; }                   // NOLINT
  Text(const std::string& text) : kind_(Kind::kString) { value_.string = &text; }                // NOLINT
  Text(std::string_view text) : kind_(Kind::kView), size_(static_cast<uint32_t>(text.size())) {  // NOLINT
    value_.characters = text.data();
  }
  Text(std::initializer_list<Text> pieces)  // NOLINT
      : kind_(Kind::kList), size_(static_cast<uint32_t>(pieces.size())) {
    value_.pieces = pieces.begin();
  }
  Text(char letter) : kind_(Kind::kLetter) { value_.number = letter; }  // NOLINT
  template <std::signed_integral Integer>
  Text(Integer number) : kind_(Kind::kSigned) {
    value_.number = number;
  }  // NOLINT
  template <std::unsigned_integral Integer>
  Text(Integer number) : kind_(Kind::kUnsigned) {
    value_.number = static_cast<int64_t>(number);
  }                     // NOLINT
  Text(bool) = delete;  // which word would it be?

  void AppendTo(std::string& text) const;
  std::string ToString() const;

 private:
  enum class Kind : uint32_t { kLiteral, kString, kView, kList, kLetter, kSigned, kUnsigned };
  Kind kind_;
  uint32_t size_ = 0;  // of kView and kList
  union {
    const char* characters;
    const std::string* string;
    const Text* pieces;
    int64_t number;  // of kUnsigned its bits
  } value_;
};

// The pieces one after the other.
std::string StrCat(std::initializer_list<Text> pieces);
void StrAppend(std::string& text, std::initializer_list<Text> pieces);

}  // namespace ingot
