// The table of the passes over memory, in the form of the table of graph passes.
#include "compiler/memory/passes.h"

#include "compiler/memory/destination_passing.h"
#include "compiler/memory/plan_memory.h"

namespace ingot::memory {

std::span<const transform::Pass> MemoryPasses() {
  // In order. Columns: name, what it does, least -O level, function.
  static const std::vector<transform::Pass> pipeline = {
      {"destination_passing", "give every result of a tensor function a buffer of its own", 0, DestinationPassing},
      {"plan_memory", "place the buffers that stay inside a function in one arena", 0, PlanMemory},
  };
  return pipeline;
}

}  // namespace ingot::memory
