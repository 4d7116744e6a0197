// An attribute of tensor functions: a size for each symbol that the shapes of the buffers bind, in their order. The rules
// choose the schedule for these sizes, which then holds for all of them (the pass share_depths). A function to which it
// does not carry over is scheduled as if it did not have the attribute.
#pragma once

#include <optional>

#include "compiler/ir/expr.h"

namespace ingot::schedule {

inline constexpr const char* kLikelySizesAttr = "ingot.likely_sizes";

// The function with these sizes in the place of its symbols; nothing where it has no such attribute.
std::optional<ir::PrimFunc> AtLikelySizes(const ir::PrimFunc& function);

}  // namespace ingot::schedule
