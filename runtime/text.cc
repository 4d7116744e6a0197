// Appends the pieces of a Text to a string, with numbers in decimal.
#include "runtime/text.h"

namespace ingot {

void Text::AppendTo(std::string& text) const {
  switch (kind_) {
    case Kind::kLiteral:
      text += value_.characters;
      return;
    case Kind::kString:
      text += *value_.string;
      return;
    case Kind::kView:
      text.append(value_.characters, size_);
      return;
    case Kind::kList:
      for (uint32_t i = 0; i < size_; ++i) value_.pieces[i].AppendTo(text);
      return;
    case Kind::kLetter:
      text += static_cast<char>(value_.number);
      return;
    case Kind::kSigned:
      text += std::to_string(value_.number);
      return;
    case Kind::kUnsigned:
      text += std::to_string(static_cast<uint64_t>(value_.number));
      return;
  }
}

std::string Text::ToString() const {
  std::string text;
  AppendTo(text);
  return text;
}

std::string StrCat(std::initializer_list<Text> pieces) { return Text(pieces).ToString(); }

void StrAppend(std::string& text, std::initializer_list<Text> pieces) { Text(pieces).AppendTo(text); }

}  // namespace ingot
