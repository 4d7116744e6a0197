// Escapes the control characters of ASCII and the C1 controls of Unicode.
#include "apps/common/printable.h"

namespace ingot::apps {

std::string Printable(std::string_view text) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    const bool is_of_unicode = byte == 0xC2 && next >= 0x80 && next < 0xA0;
    const bool is_control = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F;
    if (!is_of_unicode && !is_control) {
      out += text[i];
      continue;
    }
    const unsigned char shown = is_of_unicode ? static_cast<unsigned char>(next) : byte;
    out += "\\x";
    out += kDigits[shown >> 4];
    out += kDigits[shown & 15];
    i += is_of_unicode ? 1 : 0;
  }
  return out;
}

}  // namespace ingot::apps
