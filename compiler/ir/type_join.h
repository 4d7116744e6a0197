// JoinTypes gives the type of a value that may have either of two types, such as the result of a branch.
#pragma once

#include "compiler/ir/type.h"

namespace ingot::ir {

// Rank, dtype and fields stay where both agree; types with nothing in common join to Object.
Type JoinTypes(const Type& a, const Type& b);

}  // namespace ingot::ir
