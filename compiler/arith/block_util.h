// The regions that a statement reads and writes, as a box per buffer: a block's reads and writes. Tensor expressions,
// the parser (for blocks written without T.reads / T.writes) and schedule primitives use it.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace ingot::arith {

struct ReadWriteRegions {
  std::vector<ir::BufferRegion> reads, writes;  // by first occurrence, one per buffer
};

// Regions of body (and init) over the variables that are free in them: loops and inner blocks inside are relaxed over
// their ranges, lets are expanded. Buffers allocated inside are left out. With an init, buffers that are written are
// left out of the reads, as TVM does for reductions. A region that cannot be bounded is the whole buffer.
ReadWriteRegions GetBlockReadWriteRegions(const ir::Stmt& body, const ir::Stmt& init = nullptr);
// The same for a block's body and init, over the domains of its iteration variables. Buffers that the block allocates
// are left out; accesses of a matched buffer count as accesses of its source.
ReadWriteRegions GetBlockReadWriteRegions(const ir::BlockNode& block);

}  // namespace ingot::arith
