// Operators and attributes that TVM's text may hold and this compiler does not support, with the reason: they are
// refused by name and not taken for misspellings.
#pragma once

#include <string_view>

namespace ingot::script {

// Returns why "vm.alloc_tensor" (without "R.") is not supported; empty for a name that TVM does not have either.
std::string_view WhyForeign(std::string_view name);

// Returns the attribute of TVM's operator that the operator here lacks; the two mean the same while it is None. Empty:
// there is none.
std::string_view ForeignAttribute(std::string_view op);

}  // namespace ingot::script
