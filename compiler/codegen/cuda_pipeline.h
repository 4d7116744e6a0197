// What an iteration of a loop of kPipelineStages does, for those that make code of it. Private to code generation.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"

namespace ingot::codegen {

// The iteration's tiles, the loops over threads that copy to them, and the one that multiplies them.
struct PipelinedIteration {
  std::vector<ir::Buffer> tiles;
  std::vector<ir::Stmt> copies;
  const ir::ForNode *threads = nullptr, *product = nullptr;
  bool is_of_groups = false;  // the product is one of kGroupProduct
};

// Nothing where it is something else than copies from global memory and then one product, which stores to nothing there.
std::optional<PipelinedIteration> ReadPipelinedIteration(const ir::ForNode& loop);
// Of a tile in shared memory, up to a multiple of the alignment.
int64_t TileBytes(const ir::Buffer& tile, int64_t alignment);

}  // namespace ingot::codegen
