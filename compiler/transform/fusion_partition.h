// Which calls of a dataflow block run as one function: the decision alone, on a graph of numbers. fuse_ops builds the
// graph and rewrites the program.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/op/registry.h"

namespace ingot::transform {

struct FusionNode {
  op::FusionClass fusion = op::FusionClass::kOpaque;
  // Later nodes that read this one, with the class of that reading: the reader's, or elementwise where a broadcasting
  // reader takes this one at its own shape. A reader appears once per reading.
  struct Reader {
    int32_t node;
    op::FusionClass fusion;
  };
  std::vector<Reader> readers;
  bool is_visible = false;  // something that is no node reads it, too
  int32_t num_inputs = 0;   // tensors that it reads
};

// Larger groups would make functions that take long to compile and gain nothing.
inline constexpr int32_t kMaxFusionGroup = 64;
// Of all members of a group together: kernels take a limited number of tensors (vm::kMaxKernelParams).
inline constexpr int32_t kMaxFusionInputs = 192;

// For each node the number of the last node of its group (its own for a node that stays alone). Nodes are in order of
// execution. Only the last node of a group is read from outside of it.
std::vector<int32_t> PartitionFusion(const std::vector<FusionNode>& nodes, int32_t max_group = kMaxFusionGroup);

}  // namespace ingot::transform
