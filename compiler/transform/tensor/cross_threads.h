// A reduction whose summands the threads of a block have, by exchange between them.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/ir/stmt.h"

namespace ingot::transform {

// The statement as loops over the `threads` threads of the block; nothing where it is no such reduction. It is one where
// a loop that a schedule marked (kCudaCrossThreads) combines its iterations into an element, and it and the loops around
// it, which are over elements, have as many iterations as there are threads.
std::optional<ir::Stmt> ReduceAcrossThreads(const ir::Stmt& stmt, int64_t threads);

}  // namespace ingot::transform
