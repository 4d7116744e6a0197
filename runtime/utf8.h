// UTF-8 well-formedness (Unicode 15, table 3-7): no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace ingot {

// Bytes of the well-formed character that the text begins with; 0 when there is none.
size_t Utf8Length(std::string_view text);
bool IsUtf8(std::string_view text);

}  // namespace ingot
