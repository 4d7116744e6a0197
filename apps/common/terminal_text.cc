// Passes what is printed through Printable() on its way to the stream's own buffer.
#include "apps/common/terminal_text.h"

#include "apps/common/printable.h"

namespace ingot::apps {

void TerminalText::WriteAsIs(const std::string& text) {
  target_->sputn(text.data(), static_cast<std::streamsize>(text.size()));
}

TerminalText::int_type TerminalText::overflow(int_type character) {
  if (traits_type::eq_int_type(character, traits_type::eof())) return traits_type::not_eof(character);
  const char one = traits_type::to_char_type(character);
  return xsputn(&one, 1) == 1 ? character : traits_type::eof();
}

std::streamsize TerminalText::xsputn(const char* text, std::streamsize size) {
  const std::string out = Printable({text, static_cast<size_t>(size)});
  const auto length = static_cast<std::streamsize>(out.size());
  return target_->sputn(out.data(), length) == length ? size : 0;
}

}  // namespace ingot::apps
