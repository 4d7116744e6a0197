// Text for a terminal: what comes from a file may hold characters that a terminal obeys.
#pragma once

#include <string>
#include <string_view>

namespace ingot::apps {

// The text with control characters (of ASCII and of Unicode, in UTF-8) but newlines and tabs as \x and two digits.
std::string Printable(std::string_view text);

}  // namespace ingot::apps
