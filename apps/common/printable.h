// Text for a terminal. Text from a file may hold control characters, which a terminal would obey.
#pragma once

#include <string>
#include <string_view>

namespace ingot::apps {

// The text with control characters (of ASCII and of Unicode, in UTF-8), except newlines and tabs, as \x and two digits.
std::string Printable(std::string_view text);

}  // namespace ingot::apps
