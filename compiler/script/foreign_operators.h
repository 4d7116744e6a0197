// Operators and attributes that TVM's text may hold and this compiler has no meaning for, with the reason: so that they
// are refused by name and not as misspellings.
#pragma once

#include <string_view>

namespace ingot::script {

// Why "vm.alloc_tensor" (without "R.") is not supported; empty for a name that TVM does not have either.
std::string_view WhyForeign(std::string_view name);

// The attribute of TVM's operator that the row here has not; while it is None, the two mean the same. Empty: none.
std::string_view ForeignAttribute(std::string_view op);

}  // namespace ingot::script
