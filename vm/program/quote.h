// Quote: text as the assembler's language and messages write it.
#pragma once

#include <string>
#include <string_view>

namespace ingot::vm {

// "text" in double quotes; quotes, backslashes and control characters escaped, bytes that are no UTF-8 as \xNN.
std::string Quote(std::string_view text);

}  // namespace ingot::vm
