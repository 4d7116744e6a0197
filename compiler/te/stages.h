// The stages of a graph of tensors in the order in which CreatePrimFunc lays them out, with the names of their blocks.
// Schedules of stages find their blocks by these names.
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
// All stages that args need, placeholders included, producers before consumers.
std::vector<NamedStage> StagesOf(std::span<const Tensor> args);

}  // namespace ingot::te
