// A reduction whose summands the threads of a block have, by exchange between them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"

namespace ingot::transform {

// A reduction as loops over the threads of a block, and what each thread keeps of it.
struct CrossThreads {
  ir::Stmt stmt;
  std::vector<ir::Buffer> buffers;    // that the loops need
  ir::Buffer out;                     // the elements
  ir::Buffer kept;                    // by thread: the element of its group
  ir::PrimVar thread;                 // of the loop that stores to both, in
  std::vector<ir::PrimExpr> indices;  // the place of the element
};

// The statement as loops over the `threads` threads of the block; nothing where it is no such reduction. It is one where
// a loop that a schedule marked (kCudaCrossThreads) combines its iterations into an element, and it and the loops around
// it, which are over elements, have as many iterations as there are threads.
std::optional<CrossThreads> ReduceAcrossThreads(const ir::Stmt& stmt, int64_t threads);

// The statements of a block of threads that hold these, with their buffers: where threads read the element of their group
// later on, they read what they keep.
ir::Stmt KeepElements(ir::Stmt seq, const std::vector<CrossThreads>& made, int64_t threads);

// The function's body, in which those of these elements that nobody reads are not stored.
ir::Stmt DropUnreadElements(const ir::Stmt& body, const std::vector<ir::Buffer>& elements);

}  // namespace ingot::transform
