// The stages of a graph of tensors, as CreatePrimFunc lays them out: in which order, and under which names their blocks
// stand. Schedules of stages find their blocks by it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/te/tensor.h"

namespace ingot::te {

struct NamedStage {
  Operation operation;
  std::string block;  // unique; empty for placeholders
};
// Everything that args need, producers before consumers, placeholders among them.
std::vector<NamedStage> StagesOf(std::span<const Tensor> args);

}  // namespace ingot::te
