// The table of the passes from values to buffers. The driver runs it behind the graph pipeline, whichever graph passes
// the user chose.
#include "compiler/lower/pipeline.h"

#include "compiler/lower/destination_passing.h"
#include "compiler/lower/plan_memory.h"

namespace ingot::lower {

std::span<const transform::Pass> LoweringPipeline() {
  // In order. Columns: name, what it does, least -O level, function.
  static const std::vector<transform::Pass> pipeline = {
      {"destination_passing", "give every result of a tensor function a buffer of its own", 0, DestinationPassing},
      {"plan_memory", "place the buffers that stay inside a function in one arena", 0, PlanMemory},
  };
  return pipeline;
}

}  // namespace ingot::lower
