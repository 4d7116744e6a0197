// "Did you mean": the known name nearest to a mistyped one, by edit distance. For error messages alone. Texts and
// names of more than 64 bytes get no suggestion.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ingot {

// The name with the fewest edits (insert, delete, replace a character), the first of equals; empty when all are farther
// than two edits, or than a third of a longer text.
std::string_view NearestName(std::string_view text, std::span<const std::string_view> names);
// `; did you mean "NAME"?`, or an empty text.
std::string DidYouMean(std::string_view text, std::span<const std::string_view> names);

}  // namespace ingot
