// How characters are escaped.
#include "vm/program/quote.h"

#include "runtime/utf8.h"

namespace ingot::vm {

std::string Quote(std::string_view text) {
  constexpr char kHexDigits[] = "0123456789abcdef";
  std::string out = "\"";
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    const bool is_c1_control = length == 2 && byte == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text[0];
    } else if (byte == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f || length == 0 || is_c1_control) {
      out += "\\x";
      out += kHexDigits[byte >> 4];
      out += kHexDigits[byte & 15];
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 || is_c1_control ? 1 : length);
  }
  return out + "\"";
}

}  // namespace ingot::vm
