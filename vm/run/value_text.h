// The text of values in printed messages and assertions. A tensor shows its type and, on the host, its first elements.
// Such text is not counted against the memory of a context, so its length is bounded, whatever the values hold.
#pragma once

#include <cstddef>
#include <string>

#include "vm/run/value.h"

namespace ingot::vm {

constexpr size_t kMostTextBytes = 64 << 10;  // of a message: longer ones end with "..."

std::string TensorText(const TensorView& view);
// A string that is longer is cut after a byte more.
std::string ValueText(const Value& value);

}  // namespace ingot::vm
