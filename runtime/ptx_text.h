// What the text of a module for CUDA says of itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace ingot {

// "PTX 8.0"; "no PTX" of machine code.
std::string PtxVersionOf(std::string_view text);

// How many arguments of 8 bytes each kernel takes; -1 - k if its argument k is no such. Machine code has no text, and
// says nothing here: the driver's answer to a question beyond the last argument is an error of a call.
using NumArguments = std::map<std::string, int64_t, std::less<>>;
NumArguments ArgumentsOf(std::string_view text);

}  // namespace ingot
