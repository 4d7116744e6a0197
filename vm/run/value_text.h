// The text of values in printed messages and assertions. A tensor shows its type and, on the host, its first elements.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "vm/run/value.h"

namespace ingot::vm {

std::string ValueText(const Value& value);

// Each "{}" of the format is replaced by the next value; values that are left over follow it.
std::string FormatValues(std::string_view format, std::span<const Value> values);

}  // namespace ingot::vm
