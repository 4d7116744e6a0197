// Which calls of a dataflow block run as one function: the decision alone, on a graph of numbers. fuse_ops builds the
// graph and rewrites the program.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/op/registry.h"

namespace ingot::transform {

struct FusionNode {
  op::FusionClass fusion = op::FusionClass::kOpaque;
  // Later nodes that read this one, with the class of each reading: the reader's class, or elementwise if a
  // broadcasting reader reads this one at its own shape. A reader is listed once per reading.
  struct Reader {
    int32_t node;
    op::FusionClass fusion;
  };
  std::vector<Reader> readers;
  bool is_visible = false;  // whether something that is no node reads it, too
  int32_t num_inputs = 0;   // number of tensors that it reads
};

// Larger groups would make functions that take long to compile and are no faster.
inline constexpr int32_t kMaxFusionGroup = 64;
// Limit of inputs of all members of a group together: kernels take a limited number of tensors (vm::kMaxKernelParams).
inline constexpr int32_t kMaxFusionInputs = 192;

// Returns for each node the number of the last node of its group (its own for a node that stays alone). Nodes are in
// execution order. Only the last node of a group is read outside of it.
std::vector<int32_t> PartitionFusion(const std::vector<FusionNode>& nodes, int32_t max_group = kMaxFusionGroup);

}  // namespace ingot::transform
